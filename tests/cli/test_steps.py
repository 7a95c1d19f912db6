"""Files of weeks, months, odd minutes and whole numbers, replayed from the command line."""

import json

import numpy as np
import pandas as pd
import pytest


def write(path, times, period):
    """Write a file with a season of so many steps."""
    t = np.arange(len(times))
    noise = np.random.default_rng(0).standard_normal(len(t))
    table = pd.DataFrame({"time": times, "flow": 50 + 20 * np.sin(2 * np.pi * t / period) + noise})
    table.to_csv(path, index=False)
    return np.sqrt(np.mean(np.diff(table.flow) ** 2))


def dates(count, freq):
    return pd.date_range("2001-01-01", periods=count, freq=freq)


@pytest.mark.parametrize(
    ("times", "period", "step", "flags"),
    [
        (dates(180, "7D"), 52.18, "7d", []),
        pytest.param(dates(180, "7D"), 52.18, "7d", ["--seasons", "none"], marks=pytest.mark.slow),
        (dates(180, "MS"), 12, "1mo", []),
        pytest.param(dates(180, "MS"), 12, "1mo", ["--step", "30d"], marks=pytest.mark.slow),
        pytest.param(dates(180, "30D"), 12, "30d", ["--seasons", "360d"], marks=pytest.mark.slow),
        pytest.param(dates(500, "7min"), 60, "7min", ["--seasons", "7h"], marks=pytest.mark.slow),
        (dates(300, "10s"), 60, "10s", ["--seasons", "10min"]),
        (np.arange(180), 12, "1", []),
        (np.arange(180), 12, "1", ["--seasons", "12", "--from", "20"]),
    ],
)
def test_any_step_is_detected_and_forecast(invoke, tmp_path, times, period, step, flags):
    last = write(tmp_path / "flow.csv", times, period)

    result = invoke("replay", "flow.csv", "--json", *flags)

    assert result.exit_code == 0, result.output
    assert f"steps of {step}, " in result.stderr
    record = json.loads(result.stdout)
    assert record["missing"] == 0
    assert record["rmse"] < 0.8 * last
    assert 0.8 < record["coverage"] <= 1


def test_forecasts_of_an_index_have_integer_times(invoke, tmp_path):
    write(tmp_path / "flow.csv", np.arange(100), 12)

    result = invoke("replay", "flow.csv", "--predictions", "p.csv", "--keep", "kept")

    assert result.exit_code == 0, result.output
    assert pd.read_csv(tmp_path / "p.csv").time.tolist() == list(range(32, 100))
    again = invoke("replay", "flow.csv", "--predictions", "again.csv", "--keep", "kept")
    assert again.exit_code == 0, again.output
    assert (tmp_path / "again.csv").read_bytes() == (tmp_path / "p.csv").read_bytes()


@pytest.mark.parametrize(
    ("times", "by_hour", "by_weekday"),
    [
        pytest.param(np.arange(100), False, False, id="index"),
        pytest.param(dates(120, "7D"), False, False, id="weeks", marks=pytest.mark.slow),
        pytest.param(dates(120, "1D"), False, True, id="days", marks=pytest.mark.slow),
        pytest.param(dates(120, "60min"), True, True, id="hours"),
    ],
)
def test_a_report_has_the_figures_that_suit_its_step(invoke, tmp_path, times, by_hour, by_weekday):
    write(tmp_path / "flow.csv", times, 12)

    result = invoke("replay", "flow.csv", "--report", "report", "--warmup", "60")

    assert result.exit_code == 0, result.output
    page = (tmp_path / "report" / "index.html").read_text()
    assert ("Error by hour of day" in page) == by_hour
    assert ("Error by day of week" in page) == by_weekday
    assert ("over the week before each step" in page) == by_hour
    assert ("over the 168 steps before each step" in page) == (not by_hour)
    assert ("At most the last four weeks" in page) == by_hour


def test_seconds_since_1970_are_not_an_index(invoke, tmp_path):
    write(tmp_path / "flow.csv", 1_700_000_000 + 900 * np.arange(400), 12)

    result = invoke("replay", "flow.csv", "--steps", "1", "--warmup", "300")

    assert result.exit_code == 0, result.stderr
    assert "400 steps of 15min, 2023-11-14T22:13+00:00 to" in result.stderr
    assert "flow.csv: times are read as seconds since 1970, in UTC" in result.stderr


def test_an_integer_is_refused_as_a_time_of_a_file_with_dates(invoke, tmp_path):
    write(tmp_path / "flow.csv", dates(180, "7D"), 52.18)

    result = invoke("replay", "flow.csv", "--from", "2002")

    assert result.exit_code == 2
    assert "flow: time must be an ISO 8601 time such as 2021-06-13T08:15, got 2" in result.stderr


def test_dates_and_integers_cannot_be_mixed(invoke, tmp_path):
    write(tmp_path / "one.csv", dates(120, "7D"), 12)
    table = pd.DataFrame({"time": np.arange(120), "other": np.arange(120.0)})
    table.to_csv(tmp_path / "two.csv", index=False)

    result = invoke("replay", "one.csv", "two.csv", "--report", "report")

    assert result.exit_code == 2
    assert (
        "got dates for 'flow' and whole numbers for 'other'. Run them separately." in result.stderr
    )
