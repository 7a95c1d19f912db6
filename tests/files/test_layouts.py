import gzip

import numpy as np
import pytest

from streamridge import InvalidInputError
from tests.support.input_files import read_readings

LANES = ",80,120,.05,64.1,1,,,,,"


def row(time="06/01/2017 00:00:00", station=715898, observed=100, flow=228, speed=63.9):
    return f"{time},{station},7,5,S,ML,.36,80,{observed},{flow},.0473,{speed}{LANES}\n"


@pytest.fixture
def station_file(tmp_path):
    def write(*rows, name="d07_text_station_5min_2017_06_01.txt.gz"):
        path = tmp_path / name
        path.write_bytes(gzip.compress("".join(rows).encode()))
        return path

    return write


def test_the_value_is_the_total_flow_of_a_station(station_file):
    path = station_file(
        row(),
        row(station=716078, flow=31),
        row("06/01/2017 00:05:00", flow=240),
    )

    first, second = read_readings(path)

    assert (first.sensor, second.sensor) == ("715898", "716078")
    np.testing.assert_array_equal(first.values, [228, 240])
    np.testing.assert_array_equal(second.values, [31])
    assert first.times.astype(str).tolist() == [
        "2017-06-01T00:00:00.000000",
        "2017-06-01T00:05:00.000000",
    ]
    assert not first.time_format.zoned


def test_a_flow_that_was_filled_in_is_missing_and_counted(station_file):
    rows = [row(observed=share) for share in (100, 50, 49.9, 0)]
    path = station_file(*rows, row(observed=0, flow=""), row(observed=""))

    [readings] = read_readings(path)

    np.testing.assert_array_equal(readings.values, [228, 228, np.nan, np.nan, np.nan, 228])
    assert (readings.imputed, readings.skipped) == (2, 0)


def test_a_file_per_day_is_joined_per_station(station_file):
    days = [
        station_file(row(f"06/0{day}/2017 00:00:00", flow=day), name=f"{day}.txt.gz")
        for day in (2, 1)
    ]

    [readings] = read_readings(days)

    np.testing.assert_array_equal(readings.values, [2, 1])


def test_only_requested_stations_are_read(station_file):
    path = station_file(row(station=1, flow="broken"), row(station=2), row(station=3))

    readings = read_readings(path, sensors=["3", "2"])

    assert [one.sensor for one in readings] == ["3", "2"]


def test_an_extra_keeps_the_flow_that_was_filled_in(station_file):
    [readings] = read_readings(station_file(row(observed=0)), extras=["flow"])

    assert np.isnan(readings.values).all()
    assert readings.extras["flow"].tolist() == [228]


def test_other_columns_are_extras(station_file):
    [readings] = read_readings(station_file(row(speed=60.5)), extras=["speed", "observed"])

    assert {name: list(column) for name, column in readings.extras.items()} == {
        "speed": [60.5],
        "observed": [100],
    }


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (row(flow="many"), r"line 2, column flow: must be a number, got 'many'. Pass --gap skip"),
        (row(observed="all"), "line 2, column observed: must be a number, got 'all'"),
        (row(time="06/31/2017 00:00:00"), "line 2, column time: must be an ISO 8601 time"),
        (row(station=""), "line 2, column station: must be the name of a sensor, got ''"),
        ("06/01/2017 00:05:00,715898\n", "line 2 must have 22 cells like the first line, got 2"),
    ],
)
def test_a_bad_row_is_named_or_skipped(bad, message, station_file):
    path = station_file(row(), bad)

    with pytest.raises(InvalidInputError, match=message):
        read_readings(path)
    [readings] = read_readings(path, gap="skip")

    np.testing.assert_array_equal(readings.values, [228])
    assert readings.skipped == 1


def test_a_file_of_another_layout_is_refused_as_a_station_file(tmp_path):
    path = tmp_path / "flow.csv"
    path.write_text("time,a\n2021-06-13,1\n")

    with pytest.raises(InvalidInputError, match=r"flow\.csv must be a PeMS station file, .*'time'"):
        read_readings(path, layout="pems")


def test_too_few_columns_are_rows_without_a_header(tmp_path):
    path = tmp_path / "flow.csv"
    path.write_text("06/01/2017 00:00:00,715898,7\n")

    with pytest.raises(InvalidInputError, match=r"flow\.csv line 1 must be a header"):
        read_readings(path)
