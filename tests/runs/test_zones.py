from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from streamridge.errors import InvalidInputError
from streamridge.files.tables import write_table
from streamridge.forecaster.forecaster import Forecaster
from streamridge.report import write_report
from streamridge.runs.compare import compare
from streamridge.runs.replay import replay
from streamridge.runs.run_files import read_run, write_run
from streamridge.series.time_format import NAIVE
from tests.support.tiers import tiered

N, WARMUP = 168, 96
ZONE = "Europe/Berlin"
FORMS = {
    "naive": lambda utc: utc.tz_localize(None),
    "offset": lambda utc: utc.tz_convert("+02:00"),
    "utc": lambda utc: utc,
    "zone": lambda utc: utc.tz_convert(ZONE),
    "local": lambda utc: utc.tz_convert(ZONE).tz_localize(None),
}
# Both changes of the clock lie within the scored steps.
CHANGES = ("2023-03-24T22:00", "2023-10-27T22:00")
# Put back, some times are written twice.
FORWARD, BACK = CHANGES


def written(form, start, unit="us"):
    utc = pd.date_range(start, periods=N, freq="15min", tz="UTC", unit=unit)
    steps = np.arange(N)
    values = 100 + 0.3 * steps + 50 * np.sin(steps * 2 * np.pi / 96)
    return pd.DataFrame({"time": FORMS[form](utc), "a": values})


def run_of(source, form, **options):
    tz = ZONE if form == "local" else None
    forecaster = Forecaster(train_size=96, warmup=WARMUP, learn=False, tz=tz)
    return replay(forecaster, source, **options)


@pytest.mark.parametrize(
    ("form", "start", "unit"),
    tiered(
        FORMS,
        CHANGES,
        ("us", "ns"),
        quick=lambda *case: case in (("zone", BACK, "us"), ("zone", FORWARD, "ns")),
    ),
)
def test_a_frame_of_forecasts_joins_its_source(form, start, unit):
    frame = written(form, start, unit)
    sources = frame, pl.from_pandas(frame), pa.Table.from_pandas(frame)

    by_pandas, by_polars, by_pyarrow = (run_of(source, form).frame() for source in sources)

    scored = frame.iloc[WARMUP:]
    joined = scored.merge(by_pandas, on="time", how="left")
    assert by_pandas["time"].dtype == frame["time"].dtype
    assert joined["value"].notna().all()
    assert set(joined["a"]) == set(scored["a"])
    assert sources[1][WARMUP:].join(by_polars, on="time", how="left")["value"].null_count() == 0
    assert by_pyarrow.schema.field("time").type == sources[2].schema.field("time").type


@pytest.mark.parametrize(
    ("form", "start", "ending"),
    tiered(
        FORMS,
        CHANGES,
        ("csv", "csv.gz", "parquet"),
        quick=lambda *case: case[1:] == (BACK, "csv") or case == ("zone", FORWARD, "parquet"),
    ),
)
def test_a_file_of_predictions_joins_its_source(form, start, ending, tmp_path):
    source, target = (tmp_path / f"{name}.{ending}" for name in ("source", "target"))
    frame = written(form, start)
    parquet = ending == "parquet"
    if parquet:
        frame.to_parquet(source)
    else:
        frame.to_csv(source, index=False)

    write_table(target, run_of(source, form).columns())

    read = pd.read_parquet if parquet else pd.read_csv
    before, after = read(source).iloc[WARMUP:], read(target)
    if not parquet:
        after["time"] = after["time"].str.replace("T", " ")
    assert before.merge(after, on="time", how="left")["value"].notna().all()


def test_the_repeated_hour_has_distinct_times():
    run = run_of(written("local", CHANGES[1]), "local")

    frame = run.frame()

    assert frame["time"].duplicated().sum() == 4
    assert frame["utc"].is_unique


def test_a_stored_run_keeps_the_format_of_its_times(tmp_path):
    run = run_of(written("zone", CHANGES[0]), "zone")

    write_run(tmp_path / "kept.run", run)

    assert read_run(tmp_path / "kept.run").time_format == run.time_format


@pytest.mark.parametrize(
    ("form", "name"), [pytest.param("offset", "UTC+02:00", marks=pytest.mark.slow), ("local", ZONE)]
)
@pytest.mark.usefixtures("quick_figures")
def test_a_report_names_its_zone(form, name, tmp_path):
    run = run_of(written(form, CHANGES[0]), form)

    page = write_report([run], tmp_path, title="Zones").read_text(encoding="utf-8")

    assert f"Times are in {name}." in page


def test_excluded_spans_move_with_the_times_of_a_report():
    span = "2023-03-26T00:00Z/2023-03-26T12:00Z"
    run = run_of(written("zone", CHANGES[0]), "zone", exclude=[span])

    shown = run.in_local_time()

    assert shown.time_format == NAIVE
    np.testing.assert_array_equal(np.isnan(shown.scored), np.isnan(run.scored))
    assert shown.times[0] - run.times[0] == np.timedelta64(1, "h")


def test_a_forecaster_continues_with_the_time_format_of_its_replay():
    forecaster = Forecaster(train_size=96, warmup=WARMUP)
    frame = written("offset", CHANGES[0])
    replay(forecaster, frame)

    [stamp] = forecaster.predict().stamps
    forecaster.observe(stamp, 100.0)

    assert stamp == frame["time"].iloc[-1] + pd.Timedelta("15min")
    assert stamp.utcoffset() == pd.Timedelta("2h")
    with pytest.raises(InvalidInputError, match="time must have an offset"):
        forecaster.observe("2023-04-01T00:00", 100.0)


def late(frame, rows, by):
    """Return a frame in which some rows come later."""
    order = np.arange(len(frame), dtype=float)
    order[rows] += by + 0.5
    return frame.iloc[np.argsort(order)]


def test_late_readings_are_late_only_in_arrival_order():
    frame = late(written("naive", CHANGES[0]), [130, 150], by=5)

    sorted_run, run = run_of(frame, "naive"), run_of(frame, "naive", arrival_order=True)

    assert "late" not in sorted_run.counts
    assert (run.counts["late"], run.counts["out_of_order"]) == (2, 2)
    np.testing.assert_array_equal(run.actual, sorted_run.actual)
    same = run.value[:, 0] == sorted_run.value[:, 0]
    assert same[: 131 - WARMUP].all()
    assert not same[131 - WARMUP]  # the reading before it was not known yet


def test_readings_in_order_arrive_in_time():
    frame = written("naive", CHANGES[0])

    one, other = (run_of(frame, "naive", arrival_order=order) for order in (False, True))

    assert replace(one, costs=other.costs, seconds=0.0).counts == other.counts
    np.testing.assert_array_equal(one.value, other.value)


def test_sensors_with_and_without_offsets_are_not_put_into_one_table():
    rows = [written(form, CHANGES[0]).assign(sensor=form) for form in ("naive", "utc")]
    long = pd.concat([each.assign(time=each["time"].astype(str)) for each in rows])

    with pytest.raises(InvalidInputError, match="an offset for all sensors, or for none"):
        compare(long.rename(columns={"a": "value"}), ["fixed"], train_size=96, warmup=WARMUP)


def test_a_monthly_series_from_before_1800_is_replayed():
    months = [f"{year}-{month:02}-01" for year in range(1740, 1752) for month in range(1, 13)]
    frame = pd.DataFrame({"time": months, "spots": 100 + 50 * np.sin(np.arange(144) / 20)})

    run = replay(Forecaster("1mo", train_size=48, warmup=48), frame)

    assert run.times[0] < np.datetime64("1745")
    assert len(run.times) == 96


@pytest.mark.parametrize(
    ("start", "freq", "step", "tz"),
    [
        ("2018-01-31", "ME", "1mo", None),
        ("2018-01-01", "QS", "3mo", "America/New_York"),
        ("2021-03-10", "D", "1d", ZONE),
    ],
)
def test_forecasts_of_calendar_steps_join_their_source(start, freq, step, tz):
    times = pd.date_range(start, periods=30, freq=freq, tz=tz, unit="us")
    source = pd.DataFrame({"time": times, "a": 100.0 + np.arange(30) % 7})

    frame = replay(Forecaster(step, horizon=3, warmup=20), source, warmup=20).frame()

    joined = source.merge(frame, on="time", how="left")[20:]
    assert frame["time"].dtype == source["time"].dtype
    assert joined["value"].notna().all()
    for ahead in (2, 3):
        assert set(frame.time[frame.horizon == ahead][:-2]) <= set(times)
