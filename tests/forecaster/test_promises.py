"""Promises of the forecaster that are easily broken: what changes nothing, and what survives."""

import pickle

import numpy as np
import pytest

from streamridge import FitError, Forecaster, KernelRidge
from streamridge.files.checkpoint import read_checkpoint
from tests.support.forecasters import DAY, daily, hours, live, lived, same, small
from tests.support.tiers import tiered


def with_rain(**settings):
    return small(extras=("rain",), **settings)


def live_with_rain(forecaster, values, first=0, *, looks=()):
    """Return the forecasts, with further looks ahead at other columns before each reading."""
    forecasts = []
    for i, (time, value) in enumerate(
        zip(hours(first, first + len(values)), values, strict=True), start=first
    ):
        for rain in looks:
            forecaster.predict({"rain": rain})
        rain = {"rain": float(np.sin(i))}
        forecasts.append(forecaster.predict(rain))
        forecaster.observe(time, value, rain)
    return forecasts


def same_arrays(one, other):
    """Return whether two arrays are the same to the last bit."""
    return one.tobytes() == other.tobytes()


class TestLookingAheadChangesNothing:
    def test_with_other_columns(self):
        values = daily(6 * DAY)

        plain = live_with_rain(with_rain(), values)
        curious = live_with_rain(with_rain(), values, looks=(0.0, 99.0, 3.0))

        for one, other in zip(plain, curious, strict=True):
            same(one, other)

    def test_predicting_changes_no_saved_state(self, tmp_path):
        forecaster = with_rain()
        live_with_rain(forecaster, daily(4 * DAY))
        forecaster.save(tmp_path / "before.sr")

        forecaster.predict({"rain": 7.0})

        forecaster.save(tmp_path / "after.sr")
        before, after = (read_checkpoint(tmp_path / f"{name}.sr") for name in ("before", "after"))
        assert before[0] == after[0]
        assert before[1].keys() == after[1].keys()
        differ = [name for name in before[1] if not same_arrays(before[1][name], after[1][name])]
        assert differ == ["costs.seconds"]
        loaded = [Forecaster.load(tmp_path / f"{name}.sr") for name in ("before", "after")]
        same(*(each.predict({"rain": 0.5}) for each in loaded))

    def test_in_a_reading_that_comes_without_columns(self):
        values = daily(5 * DAY)
        asked, silent = with_rain(), with_rain()
        for forecaster in (asked, silent):
            live_with_rain(forecaster, values[: 4 * DAY])

        for time, value in zip(hours(4 * DAY, 5 * DAY), values[4 * DAY :], strict=True):
            asked.predict({"rain": 3.0})
            for forecaster in (asked, silent):
                forecaster.observe(time, value)

        same(asked.predict({"rain": 0.0}), silent.predict({"rain": 0.0}))


class TestPickles:
    @pytest.mark.parametrize(
        ("settings", "released", "steps"),
        tiered(
            [{}, {"horizon": 3}, {"learn": False}],
            [False, True],
            [0, 1, 3 * DAY, 4 * DAY + 5, 5 * DAY],
            quick=lambda settings, released, steps: (
                (steps == 4 * DAY + 5 if released else steps == 3 * DAY)
                and settings == ({"horizon": 3} if released else {})
            ),
        ),
    )
    def test_a_pickled_forecaster_continues_bit_for_bit(self, steps, released, settings):
        values = daily(7 * DAY)
        forecaster = small(train_size=60, **settings)
        live(forecaster, values[:steps])
        if released:
            forecaster.workspace = None

        twin = pickle.loads(pickle.dumps(forecaster))

        later = values[steps:]
        for one, other in zip(
            live(forecaster, later, steps), live(twin, later, steps), strict=True
        ):
            same(one, other)
        assert twin.hyperparameters == forecaster.hyperparameters
        assert twin.counts == forecaster.counts

    def test_a_pickle_holds_no_matrix_of_the_fit(self):
        forecaster = small(train_size=240)
        live(forecaster, daily(12 * DAY))

        assert len(pickle.dumps(forecaster)) < 240 * 240 * 8


class TestFitsThatFail:
    def test_any_fit_error_is_survived_the_same_way(self, monkeypatch):
        values = daily(10 * DAY)
        forecaster, _ = lived(6)
        fits, fit = forecaster.counts["fits"], KernelRidge.fit

        def fails(*_):
            raise FitError("the solver did not converge.")

        monkeypatch.setattr(KernelRidge, "fit", fails)
        failing = live(forecaster, values[6 * DAY : 8 * DAY], first=6 * DAY)
        monkeypatch.setattr(KernelRidge, "fit", fit)
        live(forecaster, values[8 * DAY :], first=8 * DAY)

        assert {forecast.source for forecast in failing} == {"model"}
        assert forecaster.counts["failed_refits"] == 2
        assert forecaster.counts["fits"] == fits + 2


class TestLoading:
    @pytest.mark.parametrize("settings", [{}, {"horizon": 3}], ids=str)
    def test_a_forecaster_is_loaded_without_a_single_fit(self, settings, tmp_path, monkeypatch):
        forecaster = small(**settings)
        live(forecaster, daily(5 * DAY))
        forecaster.save(tmp_path / "f.sr")
        monkeypatch.setattr(KernelRidge, "fit", pytest.fail)

        loaded = Forecaster.load(tmp_path / "f.sr")

        same(loaded.predict(), forecaster.predict())


def test_forecasts_with_other_extras_are_not_accumulated():
    forecaster = small(extras=("rain",))
    for hour, value in enumerate(daily(4 * DAY)):
        time = np.datetime64("2021-06-13T00:00", "m") + hour * np.timedelta64(60, "m")
        forecaster.observe(time, value, {"rain": 0.0})
    before = len(pickle.dumps(vars(forecaster)))

    for rain in range(50):
        forecaster.predict({"rain": float(rain)})

    assert len(pickle.dumps(vars(forecaster))) < before + 5000
