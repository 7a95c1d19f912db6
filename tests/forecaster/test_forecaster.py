"""The forecaster: what it promises of readings, forecasts, bands, and of itself."""

from datetime import UTC, datetime, timedelta
from typing import ClassVar
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest

from streamridge import Forecaster, InvalidInputError
from streamridge.features.base import Past, input_at
from streamridge.features.timeline import Timeline
from streamridge.series.clock import Clock
from tests.support.forecasters import (
    DAY,
    HOUR,
    START,
    column,
    daily,
    hours,
    live,
    lived,
    same,
    small,
    watched,
)
from tests.support.tiers import each_horizon, tiered


def training(model):
    """Return the latest training set; after it a small fit may have been made."""
    return max(model.seen[-2:], key=len)


class TestForecasts:
    def test_before_the_first_reading_there_is_nothing_to_say(self):
        forecast = small(horizon=3).predict()

        assert forecast.source == "none"
        assert len(forecast) == 3
        assert np.isnan(forecast.value).all()

    def test_a_missing_first_reading_starts_nothing(self):
        forecaster = small()

        forecaster.observe(START, None)
        forecaster.observe(START + 5 * HOUR, 7.0)

        assert forecaster.predict().value == [7.0]
        assert "missing" not in forecaster.counts

    def test_the_best_recent_naive_forecast_is_the_fallback_until_the_first_fit(self):
        values = daily(5 * DAY)

        _, forecasts = lived(5)

        assert {forecast.source for forecast in forecasts[1 : 3 * DAY]} == {"seasonal", "last"}
        assert forecasts[3 * DAY].source == "model"
        for at in range(2 * DAY, 3 * DAY):
            is_last = forecasts[at].source == "last"
            assert forecasts[at].value[0] == values[at - 1 if is_last else at - DAY]

    @pytest.mark.parametrize(
        ("noise", "source", "back"), [(0.0, "seasonal", DAY), (1e3, "last", 1)], ids=["day", "walk"]
    )
    def test_the_value_a_season_ago_or_the_last_reading_is_the_fallback(self, noise, source, back):
        walk = np.cumsum(np.random.default_rng(0).normal(size=3 * DAY)) * noise
        values = 50 * np.sin(2 * np.pi * np.arange(3 * DAY) / DAY) + walk

        (*_, forecast) = live(small(warmup=9 * DAY), values)

        assert forecast.source == source
        assert forecast.value[0] == values[-1 - back]

    def test_the_model_beats_the_season_and_the_latest_value(self):
        values = daily(20 * DAY)

        forecasts = lived(20)[1][5 * DAY :]

        errors = np.abs(values[5 * DAY :] - column(forecasts)).mean()
        assert errors < 0.7 * np.abs(np.diff(values)).mean()
        assert errors < 0.7 * np.abs(values[DAY:] - values[:-DAY]).mean()

    def test_horizons_are_times_one_step_apart(self):
        forecaster = small(horizon=4)
        live(forecaster, daily(5 * DAY))

        forecast = forecaster.predict()

        assert forecast.time.tolist() == [
            (START + (5 * DAY + h) * HOUR).astype(datetime) for h in range(4)
        ]
        assert forecast.value.shape == forecast.lower.shape == forecast.upper.shape == (4,)

    def test_every_horizon_is_better_than_the_latest_value(self):
        values = daily(11 * DAY, noise=1.0)
        forecasts = live(small(horizon=4), values)

        for ahead in range(4):
            made = column(forecasts[5 * DAY : -4], ahead=ahead)
            actual = values[5 * DAY + ahead : len(values) - 4 + ahead]
            latest = values[5 * DAY - 1 : -5]
            assert np.abs(actual - made).mean() < 0.5 * np.abs(actual - latest).mean()

    def test_units_do_not_matter(self):
        values = daily(9 * DAY)

        forecasts = column(lived(9)[1][DAY:])
        thousandfold = column(live(small(), 1000 * values)[DAY:])

        np.testing.assert_allclose(thousandfold, 1000 * forecasts, rtol=1e-6)

    def test_predicting_changes_nothing(self):
        asked, not_asked = small(), small()
        values = daily(6 * DAY)

        for time, value in zip(hours(0, len(values)), values, strict=True):
            asked.predict()
            asked.predict()
            asked.observe(time, value)
            not_asked.observe(time, value)

        same(asked.predict(), not_asked.predict())

    def test_counts_are_never_forecast_below_zero(self):
        rng = np.random.default_rng(1)
        values = rng.poisson(1.5, 10 * DAY).astype(float)

        forecasts = live(small(), values)[4 * DAY :]

        assert column(forecasts, "lower").min() >= 0
        assert column(forecasts).min() >= 0

    def test_a_column_known_in_advance_helps(self):
        rng = np.random.default_rng(2)
        holiday = (np.repeat(rng.random(16), DAY) < 0.3).astype(float)
        values = daily(16 * DAY) - 80 * holiday
        knowing, ignorant = small(extras=("holiday",)), small()

        errors = []
        for time, value, off in zip(hours(0, len(values)), values, holiday, strict=True):
            known = {"holiday": off}
            errors.append([knowing.predict(known).value[0] - value, 0.0])
            errors[-1][1] = ignorant.predict().value[0] - value
            knowing.observe(time, value, known)
            ignorant.observe(time, value)

        with_it, without = np.sqrt(np.mean(np.square(errors[10 * DAY :]), axis=0))
        assert with_it < 0.9 * without


class TestGaps:
    def test_forecasts_go_on_and_bands_widen(self):
        forecaster, _ = lived(10)

        silent = live(forecaster, [None] * (3 * DAY), first=10 * DAY)

        widths = column(silent, "upper") - column(silent, "lower")
        assert np.isfinite(widths).all()
        assert (np.diff(widths[:6]) >= -1e-9).all()
        assert widths[2 * DAY :].min() > 1.5 * widths[0]
        assert silent[DAY].source == "model"
        assert silent[DAY + 2].source == "seasonal"
        expected = daily(13 * DAY, noise=0.0)[10 * DAY :]
        assert np.abs(column(silent) - expected).mean() < 15

    def test_left_out_steps_are_the_same_as_missing_readings(self):
        values = daily(9 * DAY)
        (told, _), (untold, _) = lived(6), lived(6)

        live(told, [None] * 9 + values[6 * DAY + 9 :].tolist(), first=6 * DAY)
        live(untold, values[6 * DAY + 9 :], first=6 * DAY + 9)

        same(told.predict(), untold.predict())

    @pytest.mark.parametrize(("length", "left_out"), [(3, 0), (5, 2), (9, 2)])
    def test_rows_are_trained_on_when_a_quarter_of_their_lags_and_their_target_were_read(
        self, length, left_out
    ):
        forecaster, model = watched()
        values = daily(9 * DAY).tolist()
        gap = range(6 * DAY, 6 * DAY + length)
        for step in gap:
            values[step] = None

        live(forecaster, values)

        first = forecaster.tuning.path.steps[0] - (
            3 * DAY - 1
        )  # the step of the very first reading
        trained = set((training(model).t - first).astype(int).tolist())
        assert not trained & set(range(gap.start, gap.stop + left_out))
        assert gap.stop + left_out in trained  # of six lags two were read at least
        assert gap.start - 1 in trained

    def test_rows_with_a_doubted_lag_are_not_trained_on(self):
        forecaster, model = watched()
        values = daily(9 * DAY)
        spike = 6 * DAY
        values[spike] *= 9

        live(forecaster, values)

        first = forecaster.tuning.path.steps[0] - (3 * DAY - 1)
        trained = set((training(model).t - first).astype(int).tolist())
        assert not trained & set(range(spike, spike + 7))
        assert {spike - 1, spike + 7} <= trained

    def test_the_model_is_back_after_as_many_readings_as_it_has_lags(self):
        values = daily(20 * DAY)
        forecaster, _ = lived(8)

        live(forecaster, values[16 * DAY : 16 * DAY + 7], first=16 * DAY)

        assert forecaster.predict().source == "model"
        errors = values[16 * DAY + 7 :] - column(
            live(forecaster, values[16 * DAY + 7 :], first=16 * DAY + 7)
        )
        assert np.abs(errors).mean() < 12

    def test_random_gaps_never_give_a_number_that_is_none(self):
        rng = np.random.default_rng(5)
        values = daily(16 * DAY)
        values[rng.random(len(values)) < 0.3] = np.nan
        values[7 * DAY : 11 * DAY] = np.nan

        forecasts = live(small(horizon=2), values)[2:]

        for ahead in range(2):
            lower, value, upper = (
                column(forecasts, part, ahead) for part in ("lower", "value", "upper")
            )
            assert (lower <= value).all()
            assert (value <= upper).all()


class TestOrder:
    def test_a_duplicate_changes_nothing(self):
        (once, _), twice = lived(6), small()
        values = daily(6 * DAY)

        for time, value in zip(hours(0, len(values)), values, strict=True):
            twice.observe(time, value)
            twice.observe(time, value)

        same(once.predict(), twice.predict())
        assert twice.counts["duplicates"] == len(values)

    def test_in_a_conflict_the_first_reading_stays(self):
        (quiet, _), (contradicted, _) = lived(6), lived(6)

        contradicted.observe(START + 5 * HOUR, 1e6)
        contradicted.observe(START + (6 * DAY - 1) * HOUR, 0.0)

        same(quiet.predict(), contradicted.predict())
        assert contradicted.counts["conflicts"] == 2

    def test_a_late_reading_takes_its_place_at_once_and_is_trained_on_at_the_next_refit(self):
        values = daily(9 * DAY)
        late_step = 6 * DAY + 3
        (on_time, calm), (late, model) = watched(), watched()
        live(on_time, values)
        for step, time in enumerate(hours(0, late_step + 4)):
            if step != late_step:
                late.observe(time, values[step])

        before = late.predict()
        late.observe(START + late_step * HOUR, values[late_step])
        after = late.predict()
        live(late, values[late_step + 4 :], first=late_step + 4)

        assert before.value != after.value
        assert late.counts["late"] == 1
        times = np.intersect1d(training(model).t, training(calm).t)
        first = late.tuning.path.steps[0] - (3 * DAY - 1)
        assert set(range(late_step - 5, late_step + 8)) <= set((times - first).astype(int))
        rows = [np.isin(training(each).t, times) for each in (model, calm)]
        np.testing.assert_allclose(training(model).x[rows[0]], training(calm).x[rows[1]])

    def test_a_reading_older_than_the_history_is_only_counted(self):
        forecaster = small(lags=4, seasons=("1d",), update_every=4 * DAY, learn=False)
        values = daily(50 * DAY, noise=0.0)
        for time, value in zip(hours(0, len(values)), values, strict=True):
            forecaster.observe(time, value)
        before = forecaster.predict()

        forecaster.observe(START, 5.0)

        same(before, forecaster.predict())
        assert forecaster.counts["too_late"] == 1

    def test_stamps_off_the_grid_go_to_the_nearest_step_and_are_counted(self):
        (exact, _), jittered = lived(6), small()
        values = daily(6 * DAY)
        rng = np.random.default_rng(0)

        for i, (time, value) in enumerate(zip(hours(0, len(values)), values, strict=True)):
            jitter = (
                np.timedelta64(int(rng.integers(1, 1500)), "s") if i else np.timedelta64(0, "s")
            )
            jittered.observe(time + jitter, value)

        same(exact.predict(), jittered.predict())
        assert jittered.counts["off_grid"] == len(values) - 1

    @each_horizon(1, 4)
    def test_every_reading_a_step_late_is_learned_from_all_the_same(self, horizon):
        values = daily(9 * DAY)
        late, model = watched(horizon=horizon)

        for step, time in enumerate(hours(0, len(values))):
            late.observe(time, None)
            if step:
                late.observe(time - HOUR, values[step - 1])

        assert late.tuning.has_model
        late.tuning.set(regularization=2.0)  # a refit takes in what was admitted
        assert len(training(model)) > 4 * DAY

    @pytest.mark.parametrize("value", [1e9, -1e9])
    def test_a_late_reading_that_is_implausible_is_not_taken(self, value):
        values = daily(9 * DAY)
        values[6 * DAY] = np.nan
        forecaster, _ = lived(6)
        live(forecaster, values[6 * DAY : 6 * DAY + 5], first=6 * DAY)
        before = forecaster.predict()

        forecaster.observe(START + 6 * DAY * HOUR, value)

        same(before, forecaster.predict())
        assert forecaster.counts["implausible"] == 1

    def test_a_jump_of_years_is_quick_and_keeps_the_season(self):
        forecaster = small()
        live(forecaster, daily(10 * DAY, noise=0.0))

        forecaster.observe(START + 700 * DAY * HOUR, None)

        forecast = forecaster.predict()
        assert forecast.source == "seasonal"
        assert forecaster.counts["missing"] == 690 * DAY + 1
        assert abs(forecast.value[0] - 113) < 30  # one o'clock, as in the last week known


class TestHindsight:
    @pytest.mark.parametrize(("step", "horizon"), [("1h", 1), ("1h", 24), ("1h", 30), ("1d", 1)])
    def test_a_row_is_the_same_live_and_in_hindsight(self, step, horizon):
        rng = np.random.default_rng(0)
        settings = Forecaster(step, lags=3, horizon=horizon).settings
        features, timeline = settings.preset.features, Timeline()
        past, live_rows = Past(timeline, Clock(settings.step)), []
        for i in range(200):
            timeline.push(float(rng.normal(100, 20)), read=True, trusted=True)
            live_rows.append(input_at(features, past, i + 1).x[0])

        for i in range(150, 199 - horizon):
            later = input_at(features, past, i + 1).x[0]
            np.testing.assert_allclose(later, live_rows[i], atol=1e-9)


class TestLocalTime:
    ZONES = ("America/Los_Angeles", "Europe/London", "Australia/Lord_Howe")
    CHANGES: ClassVar = {
        "America/Los_Angeles": ("2017-03-12T10:00", "2017-11-05T09:00"),
        "Europe/London": ("2014-03-30T01:00", "2014-10-26T01:00"),
        "Australia/Lord_Howe": ("2021-10-02T15:30", "2021-04-03T15:00"),
    }

    @pytest.mark.parametrize(
        ("zone", "change"),
        tiered(ZONES, [0, 1], quick=lambda zone, change: change == 1 and "Lord_Howe" in zone),
    )
    def test_a_pattern_of_local_time_survives_the_change_of_clocks(self, zone, change):
        rng = np.random.default_rng(4)
        middle = np.datetime64(self.CHANGES[zone][change], "m")
        utc = middle + np.arange(-10 * 48, 4 * 48) * np.timedelta64(30, "m")
        aware = [time.replace(tzinfo=UTC) for time in utc.tolist()]
        local = [time.astimezone(ZoneInfo(zone)) for time in aware]
        hour = np.array([time.hour + time.minute / 60 for time in local])
        # A sharp step in the local morning: an hour's shift would show at once.
        values = 100 + 400 * ((hour >= 7) & (hour < 19)) + 5 * rng.standard_normal(len(hour))
        forecaster = Forecaster(
            "30min", tz=zone, lags=6, train_size=240, update_every=96, warmup=96
        )

        errors = []
        for time, value in zip(aware, values, strict=True):
            errors.append(value - forecaster.predict().value[0])
            forecaster.observe(time, value)

        days = 4 * 48
        before = np.sqrt(np.mean(np.square(errors[-2 * days : -days])))
        after = np.sqrt(np.mean(np.square(errors[-days:])))
        assert after <= 1.1 * before

    def test_both_passes_of_a_repeated_hour_are_taken(self):
        forecaster = Forecaster("30min", tz="Europe/Berlin")
        local = ("01:30", "02:00", "02:30", "02:00", "02:30", "03:00")

        for i, time in enumerate(local):
            forecaster.observe(f"2023-10-29T{time}", float(i))

        assert forecaster.counts == {"readings": 6}
        assert str(forecaster.predict().time[0])[:16] == "2023-10-29T02:30"  # UTC

    def test_a_skipped_hour_is_refused(self):
        forecaster = Forecaster("30min", tz="Europe/Berlin")
        forecaster.observe("2023-03-26T01:30", 1.0)

        with pytest.raises(InvalidInputError, match="2023-03-26T02:30:00, which clocks skip there"):
            forecaster.observe("2023-03-26T02:30", 1.0)

    def test_times_with_and_without_an_offset_do_not_mix(self):
        forecaster = small()
        forecaster.observe("2021-06-13T00:00+02:00", 1.0)

        with pytest.raises(
            InvalidInputError, match="time must have an offset, as the times before it"
        ):
            forecaster.observe("2021-06-13T01:00", 1.0)

    @pytest.mark.parametrize("step", ["2h", "5h"])
    def test_steps_longer_than_the_change_of_clocks_are_refused(self, step):
        with pytest.raises(InvalidInputError, match="step must be at most 1h with tz"):
            Forecaster(step, tz="Europe/Berlin")

    def test_with_a_zone_times_may_carry_an_offset_or_not(self):
        forecaster = Forecaster("1h", tz="Europe/Berlin")

        forecaster.observe("2023-06-01T00:00+00:00", 1.0)
        forecaster.observe("2023-06-01T03:00", 2.0)

        assert forecaster.counts == {"readings": 2}

    def test_a_repeated_stamp_in_the_repeated_hour_is_a_duplicate(self):
        forecaster = Forecaster("30min", tz="Europe/Berlin")
        for i, time in enumerate(("01:30", "02:00")):
            forecaster.observe(f"2023-10-29T{time}", float(i))

        forecaster.observe("2023-10-29T02:00", 1.0)

        assert forecaster.counts == {"readings": 3, "duplicates": 1}


class TestBands:
    def test_they_stay_within_a_range_beyond_what_was_read(self):
        rng = np.random.default_rng(0)
        values = np.where(rng.random(6 * DAY) < 0.1, 500.0, 100.0) + rng.random(6 * DAY)

        forecasts = live(small(), values)[3 * DAY :]

        assert column(forecasts, "upper").max() <= 1000
        assert column(forecasts, "lower").min() >= 0

    def test_they_do_not_collapse_while_a_sensor_is_stuck(self):
        values = daily(23 * DAY, noise=8.0)
        values[5 * DAY : 15 * DAY] = 100.0

        forecasts = live(small(), values)

        # What lasts for days is believed; the bands are back on the fourth day after it.
        back = slice(18 * DAY, 23 * DAY)
        inside = (values >= column(forecasts, "lower")) & (values <= column(forecasts, "upper"))
        assert inside[back].mean() > 0.7

    @pytest.mark.slow
    @pytest.mark.parametrize("seed", range(3))
    def test_coverage_holds_on_a_series_that_drifts(self, seed):
        rng = np.random.default_rng(seed)
        count = 120 * DAY
        t = np.arange(count)
        swelling = 2 + 6 * (1 + np.sin(2 * np.pi * t / (40 * DAY))) * (1 + t / count)
        level = np.cumsum(rng.normal(0, 0.5, count)) + 200 * (t > count / 2)
        heavy = rng.standard_t(4, count)
        values = 300 + level + 60 * np.sin(2 * np.pi * t / DAY) + swelling * heavy

        forecasts = live(small(train_size=160), values)[5 * DAY :]

        inside = (values[5 * DAY :] >= column(forecasts, "lower")) & (
            values[5 * DAY :] <= column(forecasts, "upper")
        )
        assert 0.88 <= inside.mean() <= 0.92

    @pytest.mark.parametrize(
        ("level", "days", "margin"),
        [
            (0.8, 25, 0.05),
            *(pytest.param(each, 90, 0.02, marks=pytest.mark.slow) for each in (0.5, 0.8, 0.95)),
        ],
    )
    def test_every_horizon_keeps_the_level_asked_for(self, level, days, margin):
        values = daily(days * DAY, noise=8.0)

        forecasts = live(small(horizon=3, level=level, train_size=120), values)[5 * DAY :]

        for ahead in range(3):
            actual = values[5 * DAY + ahead :]
            lower, upper = (
                column(forecasts, part, ahead)[: len(actual)] for part in ("lower", "upper")
            )
            assert abs(((actual >= lower) & (actual <= upper)).mean() - level) < margin

    @pytest.mark.parametrize(
        "value", tiered([0.0, 1.0, 1e-300, 1e6, -5.0], quick=lambda value: value in {1e-300, -5.0})
    )
    def test_a_constant_sensor_has_a_finite_narrow_band(self, value):
        forecasts = live(small(), np.full(9 * DAY, value))[1:]

        assert np.isfinite(column(forecasts, "upper")).all()
        np.testing.assert_allclose(column(forecasts), value, rtol=1e-6, atol=1e-12)
        # Not wider than the unit of the last digit.
        assert 0 < forecasts[-1].upper[0] - forecasts[-1].lower[0] <= 1.0

    def test_the_band_is_wider_where_errors_are_larger(self):
        rng = np.random.default_rng(0)
        count = 14 * DAY
        noisy = np.arange(count) % DAY >= 12
        values = 500 + np.where(noisy, 40.0, 4.0) * rng.standard_normal(count)

        forecasts = live(small(train_size=300), values)[8 * DAY :]

        widths = column(forecasts, "upper") - column(forecasts, "lower")
        assert widths[noisy[8 * DAY :]].mean() > 2 * widths[~noisy[8 * DAY :]].mean()


class TestHostileReadings:
    @pytest.mark.parametrize(
        "size", tiered([1e3, 1e6, 1e9, 1e12], quick=lambda size: size in {1e3, 1e12})
    )
    def test_one_huge_reading_in_the_warm_up_spoils_nothing(self, size):
        values = daily(8 * DAY)
        values[DAY + 3] = size

        forecasts = live(small(), values)

        errors = np.abs(values - column(forecasts))[5 * DAY :]
        assert forecasts[-1].source == "model"
        assert errors.mean() < 10

    def test_a_first_fit_that_fails_is_tried_again(self):
        values = daily(6 * DAY)
        forecaster, model = watched()

        model.fails = True
        forecasts = live(forecaster, values[: 4 * DAY])
        model.fails = False
        live(forecaster, values[4 * DAY :], first=4 * DAY)

        assert forecasts[-1].source in ("seasonal", "last")
        # Every fourth step: an eighth of the steps between refits, and one.
        assert forecaster.counts["failed_refits"] == DAY // 4 + 1
        assert forecaster.tuning.has_model

    def test_a_caller_may_write_on_a_forecast(self):
        forecaster, _ = lived(4)
        before = forecaster.predict().value.copy()

        forecaster.predict().value[:] = 1e9

        np.testing.assert_array_equal(forecaster.predict().value, before)

    def test_extras_that_are_not_given_are_not_remembered_from_a_ring_ago(self):
        timeline = Timeline(extras=1)
        for value in range(20):
            timeline.push(float(value), read=True, trusted=True, extras=np.array([7.0]))

        for value in range(3):
            timeline.push(float(value), read=True, trusted=True)

        extras, given = Past(timeline, Clock(timedelta(hours=1))).extras(np.arange(18, 23))
        assert given.tolist() == [True, True, False, False, False]
        assert extras[:, 0].tolist() == [7.0, 7.0, 0.0, 0.0, 0.0]

    @pytest.mark.parametrize("missing", [np.float32("nan"), pd.NA, pd.NaT, None])
    def test_a_missing_value_of_any_kind_is_missing(self, missing):
        forecaster = small()
        forecaster.observe(START, 1.0)

        forecaster.observe(START + HOUR, missing)

        assert forecaster.counts["missing"] == 1


class TestHyperparameters:
    def test_they_are_read_by_name_with_their_path(self):
        forecaster, _ = lived(10)
        start = small().hyperparameters

        path = forecaster.tuning.path

        assert path.names == tuple(forecaster.hyperparameters) == tuple(start)
        assert len(path.steps) == forecaster.counts["fits"] == 8
        assert forecaster.tuning.refit_times[0] == START + (3 * DAY - 1) * HOUR
        assert set(np.diff(forecaster.tuning.refit_times)) == {DAY * HOUR}
        assert path["regularization"][0] == pytest.approx(start["regularization"])
        assert path["regularization"][-1] == forecaster.hyperparameters["regularization"]
        assert len(set(path["regularization"])) > 4

    def test_a_frozen_one_stays_while_others_move(self):
        values = daily(10 * DAY)
        forecaster, _ = lived(4)
        before = forecaster.hyperparameters

        forecaster.tuning.freeze("regularization")
        live(forecaster, values[4 * DAY : 7 * DAY], first=4 * DAY)
        frozen = forecaster.hyperparameters
        forecaster.tuning.unfreeze("regularization")
        live(forecaster, values[7 * DAY :], first=7 * DAY)

        assert frozen["regularization"] == before["regularization"]
        assert frozen["drifting.rate"] != before["drifting.rate"]
        assert forecaster.hyperparameters["regularization"] != frozen["regularization"]

    def test_one_can_be_set_while_it_runs(self):
        forecaster, _ = lived(5)
        before = forecaster.predict()

        forecaster.tuning.set(regularization=50.0)

        assert forecaster.hyperparameters["regularization"] == pytest.approx(50.0)
        assert forecaster.predict().value != before.value

    def test_a_weight_that_is_set_takes_its_share_from_the_others(self):
        forecaster, _ = lived(5)

        forecaster.tuning.set(**{"weight.linear": 0.25})

        assert forecaster.hyperparameters["weight.linear"] == pytest.approx(0.25)
        assert forecaster.hyperparameters["weight.drifting"] == pytest.approx(0.75)

    @pytest.mark.parametrize(
        ("values", "message"),
        [
            (
                {"nonsense": 1.0},
                "hyperparameter must be one of 'weight.drifting', .* got 'nonsense'",
            ),
            ({"regularization": -1.0}, "must lie between 0.001 and 100, got regularization = -1"),
            ({"regularization": float("nan")}, "regularization must be finite, got nan"),
            ({"weight.linear": 1.5}, "between 0 and 1 and sum to 1, got weight.linear = 1.5"),
        ],
    )
    def test_what_cannot_be_set_is_refused_and_nothing_changes(self, values, message):
        forecaster, _ = lived(5)
        before = forecaster.hyperparameters

        with pytest.raises(InvalidInputError, match=message):
            forecaster.tuning.set(**values)

        assert forecaster.hyperparameters == before

    def test_before_the_first_fit_there_is_nothing_to_set(self):
        with pytest.raises(InvalidInputError, match="the model must have been fitted first"):
            small().tuning.set(regularization=1.0)

    def test_a_fixed_one_does_not_move(self):
        forecaster = small(learn=False)
        start = forecaster.hyperparameters

        live(forecaster, daily(10 * DAY))

        assert forecaster.hyperparameters == pytest.approx(start)
        assert forecaster.tuning.costs.tuning < 0.5 * forecaster.tuning.costs.fitting


class TestGuard:
    def test_a_burst_of_outliers_does_not_drag_hyperparameters_away(self):
        values = daily(20 * DAY)
        rng = np.random.default_rng(0)
        burst = values.copy()
        burst[12 * DAY + rng.choice(DAY, 10, replace=False)] *= 50

        (calm, _), (guarded, _) = lived(20), lived(12)
        live(guarded, burst[12 * DAY :], first=12 * DAY)

        assert guarded.counts["implausible"] + guarded.counts.get("outlier", 0) == 10
        for name, value in calm.hyperparameters.items():
            assert guarded.hyperparameters[name] == pytest.approx(value, rel=0.35, abs=0.1)

    def test_a_stuck_sensor_does_not_drag_hyperparameters_away(self):
        values = daily(16 * DAY)
        values[12 * DAY : 14 * DAY] = values[12 * DAY]
        forecaster, _ = lived(12)
        live(forecaster, values[12 * DAY : 12 * DAY + 12], first=12 * DAY)
        before = forecaster.hyperparameters

        live(forecaster, values[12 * DAY + 12 : 13 * DAY], first=12 * DAY + 12)

        assert forecaster.counts["stuck"] == DAY - 8  # then it is believed
        assert forecaster.hyperparameters == before
        live(forecaster, values[13 * DAY : 14 * DAY], first=13 * DAY)
        assert forecaster.counts["stuck"] == DAY - 8
        for name, value in before.items():
            assert forecaster.hyperparameters[name] == pytest.approx(value, rel=0.35, abs=0.1)
        back = live(forecaster, values[14 * DAY :], first=14 * DAY)
        assert np.abs(column(back) - values[14 * DAY :])[8:].mean() < 10

    def test_implausible_readings_count_as_gaps(self):
        values = daily(12 * DAY)[6 * DAY :]
        planted = np.arange(0, 6 * DAY, 37)
        with_gaps, with_errors = values.copy(), values.copy()
        with_gaps[planted] = np.nan
        with_errors[planted] = 1e6

        quiet, loud = (
            live(lived(6)[0], readings, first=6 * DAY) for readings in (with_gaps, with_errors)
        )

        spared = np.setdiff1d(np.arange(6 * DAY), planted)
        np.testing.assert_allclose(column(loud)[spared], column(quiet)[spared], rtol=0.05)

    def test_a_new_level_is_believed_in_the_end(self):
        values = daily(20 * DAY)
        values[10 * DAY :] *= 30

        forecaster, forecasts = lived(10)
        forecasts += live(forecaster, values[10 * DAY :], first=10 * DAY)

        assert forecaster.counts["implausible"] <= DAY
        errors = np.abs(values - column(forecasts))[15 * DAY :]
        assert errors.mean() < 0.2 * values[15 * DAY :].mean()

    def test_values_set_by_an_operator_are_not_rolled_back(self):
        values = daily(14 * DAY)
        forecaster, _ = lived(8)
        forecaster.tuning.set(regularization=99.0)
        forecaster.tuning.freeze("regularization")

        live(forecaster, values[8 * DAY :], first=8 * DAY)

        assert forecaster.hyperparameters["regularization"] == pytest.approx(99.0)

    def test_a_refit_without_a_factor_keeps_the_fit_in_force(self, caplog):
        forecaster, model = watched()
        values = daily(10 * DAY)
        live(forecaster, values[: 6 * DAY])
        fits = forecaster.counts["fits"]

        model.fails = True
        failing = live(forecaster, values[6 * DAY : 8 * DAY], first=6 * DAY)
        model.fails = False
        live(forecaster, values[8 * DAY :], first=8 * DAY)

        assert {forecast.source for forecast in failing} == {"model"}
        assert np.isfinite(column(failing)).all()
        assert forecaster.counts["failed_refits"] == 2
        assert forecaster.counts["fits"] == fits + 2
        assert "the fit in force is kept" in caplog.text
        # No reading was lost over it: the last training set holds them all.
        assert np.diff(training(model).t).tolist() == [1.0] * (len(training(model)) - 1)


class TestBadInput:
    @pytest.mark.parametrize(
        ("time", "value", "message"),
        [
            (START + 99 * HOUR, float("inf"), "value must be finite, got inf"),
            (START + 99 * HOUR, 1e13, r"value must be at most 1e\+12 in size, got 10{13}"),
            ("0001-01-02T00:00", 1.0, "time must be between the years 1000 and 2500"),
            (START + 99 * HOUR, "5", "value must be a number, got '5'"),
            (START + 99 * HOUR, True, "value must be a number, got True"),
            (START + 99 * HOUR, [1.0], r"value must be one number, got \[1.0\]"),
            ("yesterday", 1.0, "time must be an ISO 8601 time such as 2021-06-13T08:15, got"),
            (5, 1.0, "time must be an ISO 8601 time"),
            (None, 1.0, "time must be an ISO 8601 time"),
            ("2021-06-13T08:15:60", 1.0, "time must be an ISO 8601 time"),
            (np.datetime64("NaT"), 1.0, "time must be an ISO 8601 time"),
            ("9999-12-31T23:59-01:00", 1.0, "time must be an ISO 8601 time"),
            ("2041-01-01", 1.0, "time must be within 1000 days of the newest reading"),
            ("2021-06-14T08:00Z", 1.0, "time must have no offset, as the times before it"),
        ],
    )
    def test_a_bad_reading_is_refused_and_nothing_changes(self, time, value, message):
        (forecaster, _), (untouched, _) = lived(4), lived(4)

        with pytest.raises(InvalidInputError, match=message):
            forecaster.observe(time, value)

        same(forecaster.predict(), untouched.predict())
        assert forecaster.counts == untouched.counts

    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"horizon": 0}, "horizon must be a whole number of at least 1, got 0"),
            ({"level": 90}, "level must lie between 0 and 1, got 90"),
            ({"tz": "Nowhere"}, "tz must be the name of a time zone"),
            ({"train_size": 0}, "train_size must be a whole number"),
            ({"update_every": 0}, "update_every must be a whole number"),
            ({"warmup": 0}, "warmup must be a whole number"),
            ({"lags": 0}, "lags must be a whole number"),
            ({"extras": "holiday"}, "extras must be a tuple of names"),
            ({"tz": 3}, "tz must be the name of a time zone"),
            (
                {"horizon": 30, "guard": False},
                r"horizon must be at most update_every \(24\), got 30",
            ),
        ],
    )
    def test_bad_settings_are_refused(self, settings, message):
        with pytest.raises(InvalidInputError, match=message):
            small(**settings)

    def test_extras_must_be_those_declared(self):
        forecaster = small(extras=("holiday",))

        with pytest.raises(InvalidInputError, match="extras must give holiday, got none"):
            forecaster.predict()
        with pytest.raises(InvalidInputError, match="extras must give holiday, got rain"):
            forecaster.observe(START, 1.0, {"rain": 1.0})
        with pytest.raises(InvalidInputError, match="extras must give nothing, got rain"):
            small().observe(START, 1.0, {"rain": 1.0})


class TestPaper:
    def test_it_has_no_local_time(self):
        with pytest.raises(InvalidInputError, match="tz must be left out with the paper's model"):
            Forecaster.paper(tz="Europe/London")

    def test_it_forecasts(self):
        values = 10 * daily(9 * DAY)
        forecaster = Forecaster.paper("1h", train_size=100, update_every=DAY, warmup=4 * DAY)

        forecasts = live(forecaster, values)

        assert forecasts[-1].source == "model"
        errors = np.abs(values - column(forecasts))[5 * DAY :]
        assert errors.mean() < 0.4 * np.abs(values - values.mean()).mean()
