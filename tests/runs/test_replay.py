from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest

from streamridge import Forecaster, InvalidInputError, compare, forecast, replay
from tests.support.forecasters import DAY, START, daily, small
from tests.support.series import frame, series


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_a_frame_comes_from_the_library_of_the_input(kind):
    run = replay(small(), frame(daily(5 * DAY), kind))

    result = run.frame()

    assert isinstance(result, kind)
    assert list(result.columns) == [
        *("sensor", "method", "time", "horizon", "actual", "value", "lower", "upper"),
    ]
    assert len(result) == 2 * DAY


def test_every_forecast_was_made_before_its_value():
    values = daily(6 * DAY)
    poisoned = values.copy()
    poisoned[5 * DAY :] += 1000

    calm = replay(small(), frame(values))
    shaken = replay(small(), frame(poisoned))

    before = 2 * DAY + 1  # scored steps up to and including the first poisoned one
    np.testing.assert_array_equal(calm.value[:before], shaken.value[:before])
    assert calm.value[before, 0] != shaken.value[before, 0]


def test_scores_count_the_scored_steps_only():
    values = daily(6 * DAY)
    values[4 * DAY + 3] = np.nan

    run = replay(small(), frame(values), warmup=4 * DAY, steps=DAY)

    errors = values[4 * DAY : 5 * DAY] - run.value[:, 0]
    known = ~np.isnan(errors)
    assert run.rmse == pytest.approx(np.sqrt(np.mean(errors[known] ** 2)))
    assert run.mae == pytest.approx(np.abs(errors[known]).mean())
    record = run.record()
    assert (record["steps"], record["scored"], record["missing"]) == (5 * DAY, DAY - 1, 1)
    assert record["fits"] == run.counts["fits"] == 3
    assert set(record) >= {
        *("sensor", "method", "steps", "scored", "missing", "rmse", "mae", "coverage"),
        *("seconds_total", "seconds_tuning", "seconds_fitting", "seconds_predicting"),
        *("fits", "hyperparameters"),
    }


def test_a_row_of_the_frame_has_the_reading_of_its_own_step():
    values = daily(6 * DAY)

    table = replay(small(horizon=3), frame(values)).frame()

    later = table[table.horizon == 3].iloc[0]
    assert later.time == pd.Timestamp(START + (3 * DAY + 2) * np.timedelta64(60, "m"))
    assert later.actual == values[3 * DAY + 2]
    assert np.isnan(table[table.horizon == 3].iloc[-1].actual)


def test_a_path_and_a_frame_give_the_same_run(tmp_path):
    table = frame(daily(5 * DAY))
    table.to_csv(tmp_path / "flows.csv", index=False)

    from_path = replay(small(), tmp_path / "flows.csv")

    np.testing.assert_array_equal(from_path.value, replay(small(), table).value)


def test_one_of_several_sensors_must_be_named():
    table = frame(daily(5 * DAY)).assign(other=daily(5 * DAY, seed=1))

    with pytest.raises(InvalidInputError, match=r"sensor must be one of 'ramp', 'other', got none"):
        replay(small(), table)
    assert replay(small(), table, sensor="ramp").sensor == "ramp"


def test_a_series_shorter_than_the_warm_up_is_refused():
    with pytest.raises(
        InvalidInputError, match="ramp: the series must have more than the 72 steps"
    ):
        replay(small(), frame(daily(2 * DAY)))


def test_ctrl_c_returns_the_steps_that_are_done():
    def press(done, total):
        if done == 4 * DAY:
            raise KeyboardInterrupt

    run = replay(small(), frame(daily(6 * DAY)), progress=press)

    assert run.interrupted
    assert len(run.times) == DAY
    assert np.isfinite(run.rmse)


def test_a_run_has_a_text_and_a_figure():
    figure = replay(small(), frame(daily(6 * DAY))).plot()

    assert len(figure.axes) == 2
    assert figure.axes[0].get_title().startswith("ramp, one step ahead")


def test_extra_columns_reach_the_forecaster():
    values = daily(8 * DAY)
    table = frame(values).assign(holiday=np.repeat(np.arange(8) % 2, DAY).astype(float))

    run = replay(small(extras=("holiday",)), table)

    assert np.isfinite(run.rmse)
    assert run.sensor == "ramp"


def test_local_times_are_replayed_across_a_change_of_clocks():
    local = pd.date_range("2023-10-25", periods=8 * DAY, freq="h", tz="Europe/Berlin")
    values = daily(8 * DAY)
    table = pd.DataFrame({"time": local.tz_localize(None), "ramp": values})

    run = replay(small(tz="Europe/Berlin"), table)

    assert run.counts.get("missing", 0) == 0
    np.testing.assert_array_equal(run.actual, values[3 * DAY :])


def test_a_forecaster_continues_with_the_next_part_of_a_series():
    values = daily(8 * DAY)
    whole, parts = small(), small()

    replay(whole, frame(values))
    replay(parts, frame(values).iloc[: 5 * DAY])
    rest = frame(values).iloc[5 * DAY + 7 :]
    run = replay(parts, rest, warmup=0)

    assert run.times[0] == rest.time.iloc[0].to_datetime64()
    assert np.abs(run.errors()).mean() < 12
    assert parts.counts["missing"] == 7


def test_a_series_from_the_past_of_the_forecaster_is_refused():
    values = daily(5 * DAY)
    forecaster = small()
    replay(forecaster, frame(values))

    with pytest.raises(InvalidInputError, match=r"the series must continue from 2021-06-18T00:00"):
        replay(forecaster, frame(values))


def test_a_series_of_another_step_is_refused():
    with pytest.raises(InvalidInputError, match="series must have the forecaster's step, 15min"):
        replay(Forecaster("15min"), series("a", 0))


@pytest.mark.parametrize("ahead", [0, 2])
def test_errors_of_a_horizon_that_was_not_forecast_are_refused(ahead):
    run = replay(small(), frame(daily(4 * DAY)))

    with pytest.raises(InvalidInputError, match="ahead must lie between 1 and 1"):
        run.errors(ahead)


def with_a_bad_value():
    one = series("ramp-7", 0)
    values = one.values.copy()
    values[90] = 1e13
    return replace(one, values=values)


def test_a_too_large_value_is_reported_with_its_time_before_any_step():
    forecaster = small()

    with pytest.raises(
        InvalidInputError,
        match=r"^ramp-7: at 2021-06-16T18:00:00: value must be at most 1e\+12 in size, "
        r"got 1e\+13\. Pass --exclude 2021-06-16T18:00:00/2021-06-16T18:00:00 ",
    ):
        replay(forecaster, with_a_bad_value())
    assert forecaster.next_time is None


def test_a_too_large_value_may_be_excluded_or_after_the_last_step():
    at = "2021-06-16T18:00:00"

    run = replay(small(), with_a_bad_value(), exclude=[(at, at)])

    assert run.counts["excluded"] == 1
    assert replay(small(), with_a_bad_value(), steps=90 - 72).steps_done == 90


def test_an_error_in_a_step_names_the_series_and_the_time_once(monkeypatch):
    def refuse(self, time, value, extras=None):
        raise InvalidInputError("value must be even, got 3.")

    monkeypatch.setattr(Forecaster, "observe", refuse)

    with pytest.raises(InvalidInputError, match=r"^ramp-7: at 2021-06-13T00:00:00: value must be"):
        replay(small(), series("ramp-7", 0))


@pytest.fixture(scope="module")
def leveled():
    """Return a run with two levels, two steps ahead."""
    return replay(small(level=(0.975, 0.5), horizon=2), frame(daily(5 * DAY)))


class TestSeveralLevels:
    def test_each_has_its_bands_and_its_coverage(self, leveled):
        assert leveled.levels == leveled.level == (0.975, 0.5)
        assert leveled.lower.shape == leveled.upper.shape == (2 * DAY, 2, 2)
        for band in leveled.bands:
            alone = replay(small(level=band.level, horizon=2), frame(daily(5 * DAY)))
            np.testing.assert_array_equal(leveled.value, alone.value)
            np.testing.assert_array_equal(band.lower, alone.lower)
            np.testing.assert_array_equal(band.upper, alone.upper)
            assert leveled.coverages[band.level] == alone.coverage
        assert leveled.coverage == leveled.coverages[0.975]

    def test_each_has_columns_of_its_own(self, leveled):
        table = leveled.frame()

        assert list(table.columns[5:]) == [
            *("value", "lower_97.5", "upper_97.5", "lower_50", "upper_50"),
        ]
        assert len(table) == 4 * DAY
        np.testing.assert_array_equal(table["upper_50"], leveled.upper[:, :, 1].ravel())

    def test_each_has_its_coverage_in_the_record(self, leveled):
        record = leveled.record()

        assert "coverage" not in record
        assert record["coverage_97.5"] == leveled.coverages[0.975]
        assert record["coverage_50"] == leveled.coverages[0.5]

    def test_they_can_be_looked_at(self, leveled):
        above, _ = leveled.plot().axes

        assert above.get_title().endswith("with the 97.5% and 50% intervals")
        assert {"97.5% interval", "50% interval"} <= set(above.get_legend_handles_labels()[1])

    def test_a_run_that_scored_nothing_has_them_too(self):
        run = replay(small(level=(0.5, 0.9)), frame(daily(4)), warmup=3, steps=1)

        assert run.lower.shape == (1, 1, 2)


def test_a_run_has_the_path_of_all_refits():
    forecaster = Forecaster("1h", lags=3, train_size=60, update_every=12)

    run = replay(forecaster, frame(daily(22 * DAY)))

    assert len(run.path.steps) == len(run.refit_times) == forecaster.counts["fits"] > 36
    assert len(forecaster.tuning.path.steps) == 32
    np.testing.assert_array_equal(run.path.values[-32:], forecaster.tuning.path.values)


def test_a_replay_releases_the_memory_of_refits_at_its_end():
    forecaster = Forecaster("1h", lags=3, train_size=60)

    replay(forecaster, frame(daily(6 * DAY)))

    assert forecaster.workspace is None


@pytest.mark.parametrize("options", [{"first": "2021-06-13"}, {"train_size": 96}], ids=str)
def test_replay_refuses_an_unknown_option(options):
    with pytest.raises(InvalidInputError, match="replay must be given options among sensor, "):
        replay(small(), frame(daily(5 * DAY)), **options)


@pytest.mark.parametrize(
    "use",
    [
        lambda rows: Forecaster.start(rows, train_size=2 * DAY),
        lambda rows: small().observe(rows),
        lambda rows: replay(small(), rows),
        lambda rows: compare(rows, ["fixed"], train_size=2 * DAY),
        lambda rows: forecast(rows, train_size=2 * DAY),
    ],
    ids=["start", "observe", "replay", "compare", "forecast"],
)
def test_decisions_about_formats_are_warnings_at_the_line_of_the_caller(use):
    rows = frame(daily(5 * DAY))
    rows["time"] = rows["time"].dt.strftime("%d/%m/%Y %H:%M")

    with pytest.warns(UserWarning, match="dates are read as day/month/year, as .13/06/") as found:
        use(rows)

    assert [each.filename for each in found] == [__file__]


def test_a_constant_column_is_left_out_with_a_warning():
    rows = frame(daily(5 * DAY)).assign(lanes=3)

    with pytest.warns(RuntimeWarning, match="^lanes: one value throughout"):
        run = replay(small(), rows)

    assert run.sensor == "ramp"
