"""The ensemble: weights of its members, and the comparison of the model with its baseline."""

from dataclasses import replace

import numpy as np
import pytest

from streamridge import Forecaster, InvalidInputError
from streamridge.forecaster.ensemble import Ensemble
from tests.support.forecasters import noisy
from tests.support.plain_experts import PlainExperts

HOURS = np.datetime64("2021-06-13T00:00", "m") + np.arange(400) * np.timedelta64(60, "m")
NO_LIMITS = (-np.inf, np.inf)
ALL = np.ones(3, dtype=bool)


def ensemble(*, horizon=1, has_baseline=True, day=24):
    return Ensemble.start(("day", "last"), horizon, day, has_baseline=has_baseline)


def mixed(ensemble, step, forecasts):
    """Return the mixture of the forecasts of all members, (K, H)."""
    forecasts = np.array(forecasts, dtype=float)
    first = 1 + ensemble.has_baseline
    return ensemble.mix(step, forecasts[:2], forecasts[:2], forecasts[first:], NO_LIMITS, None)


def after(ensemble, step, forecasts, value, *, learns=True, plausible=True):
    """Return the ensemble after all members forecast a step."""
    forecast = mixed(ensemble, step, forecasts)
    return ensemble.observe(step, value, forecast, learns=learns, plausible=plausible)


def test_losses_are_mean_squared_errors_since_the_last_refit():
    later = after(ensemble(), 0, [[3.0], [1.0], [0.0], [0.0]], value=2.0)
    later = after(later, 1, [[5.0], [2.0], [0.0], [0.0]], value=2.0)

    np.testing.assert_allclose(later.losses, [(1 + 9) / 2, (1 + 0) / 2])
    assert later.after_refit().losses is None


def test_losses_are_those_of_all_horizons():
    said = [[3.0, 5.0], [1.0, 2.0], [0.0, 0.0], [0.0, 0.0]]

    later = after(ensemble(horizon=2), 0, said, value=2.0)
    later = later.observe(1, 2.0, None, learns=True, plausible=True)

    np.testing.assert_allclose(later.losses, [(1 + 9) / 2, (1 + 0) / 2])


@pytest.mark.parametrize(
    ("baseline", "learns"), [(1.0, False), (np.nan, True)], ids=["an outlier", "nothing said"]
)
def test_values_without_learning_or_without_a_baseline_are_not_compared(baseline, learns):
    later = after(ensemble(), 0, [[3.0], [baseline], [0.0], [0.0]], value=2.0, learns=learns)

    assert later.losses is None


def test_without_a_baseline_nothing_is_compared():
    later = after(ensemble(has_baseline=False), 0, [[3.0], [1.0], [0.0]], value=2.0)

    assert later.losses is None
    assert later.names == ("model", "day", "last")


def test_restored_it_continues_and_refuses_what_is_damaged():
    before = after(ensemble(), 0, [[3.0], [1.0], [0.0], [0.0]], value=2.0)

    later = ensemble().restore(before.state())

    np.testing.assert_array_equal(later.losses, before.losses)
    with pytest.raises(InvalidInputError, match="squares must have shape"):
        ensemble().restore({**before.state(), "window.squares": np.zeros(3)})
    with pytest.raises(InvalidInputError, match="seen must be a whole number"):
        ensemble().restore({**before.state(), "window.seen": np.array(-1)})


def lived(count):
    forecaster = Forecaster("1h", train_size=60, update_every=24)
    rng = np.random.default_rng(0)
    values = 100 + 50 * np.sin(np.arange(count) * 2 * np.pi / 24) + rng.normal(0, 5, count)
    for time, value in zip(HOURS[:count], values, strict=True):
        forecaster.observe(time, value)
    return forecaster


def test_a_refit_and_a_new_setting_restart_the_comparison():
    forecaster = lived(130)
    assert forecaster._ensemble.losses is not None

    forecaster.tuning.set(regularization=3.0)

    assert forecaster._ensemble.losses is None


@pytest.mark.parametrize("since_refit", [False, True], ids=["whole", "in two parts"])
def test_saved_within_a_window_the_comparison_continues(since_refit):
    whole, forecaster = lived(124).to_bytes(), lived(130)

    later = forecaster.to_bytes(since_refit=True)
    twin = Forecaster.from_bytes(*((whole, later) if since_refit else (forecaster.to_bytes(),)))

    np.testing.assert_array_equal(twin._ensemble.losses, forecaster._ensemble.losses)


class TestWeights:
    def lived(self, deviations, count=960):
        """Return the losses of the mixture and of each member, and the weights at the end."""
        values, forecasts = noisy(7, count, deviations)
        members, losses = ensemble(has_baseline=False, day=96), np.zeros(4)
        for step, (value, each) in enumerate(zip(values, forecasts, strict=True)):
            forecast = mixed(members, step, each[:, None])
            losses += (np.append(forecast.values, each) - value) ** 2
            members = members.observe(step, value, forecast, learns=True, plausible=True)
        return losses / count, members.weights(ALL)

    def test_at_first_only_the_model_has_weight(self):
        members = ensemble(horizon=2, has_baseline=False)

        np.testing.assert_array_equal(members.weights(ALL), [1, 0, 0])

    def test_where_the_model_is_right_the_others_cost_next_to_nothing(self):
        (mixture, model, *_), weights = self.lived((1.0, 5.0, 5.0))

        assert mixture < 1.01 * model
        assert weights[0] > 0.9

    def test_where_the_model_is_wrong_it_loses_its_weight(self):
        (mixture, model, _, last), weights = self.lived((9.0, 5.0, 1.0))

        assert mixture < 1.35 * last < 0.1 * model
        assert weights[2] > 0.9

    def test_weights_sum_to_one_and_none_is_negative(self):
        weights = self.lived((1.0, 1.0, 1.0))[1]

        assert weights.sum() == pytest.approx(1.0)
        assert (weights >= 0).all()

    def test_every_mixture_equals_the_oracle(self):
        values, forecasts = noisy(8, 200)
        forecasts[100:110, 2] = np.nan
        ours, plain = ensemble(has_baseline=False), PlainExperts(3, 1, 24)

        for step, (value, each) in enumerate(zip(values, forecasts, strict=True)):
            forecast = mixed(ours, step, each[:, None])
            expected, spoken = plain.mix(each[:, None])
            assert forecast.values[0] == pytest.approx(expected[0])
            np.testing.assert_allclose(ours.weights(~np.isnan(each)), plain.weights(each))
            ours = ours.observe(step, value, forecast, learns=True, plausible=True)
            plain.learn(0, each, spoken[0], forecast.values[0], value)

    def test_one_lucky_step_of_the_others_leaves_the_model_the_largest_weight(self):
        later = after(ensemble(has_baseline=False, day=96), 0, [[10.0], [12.0], [12.0]], value=12.0)

        # The model has as much of the final mixture as each of the others, and a part in them.
        assert later.weights(ALL).argmax() == 0


def test_the_source_is_the_kind_of_member_with_most_of_the_weight():
    members = ensemble(has_baseline=False)
    sources = []
    for step in range(200):
        forecast = mixed(members, step, [[10.0], [20.0], [30.0]])
        sources.append(members.source(forecast))
        value = 10.0 if step < 50 else 20.0 if step < 120 else 30.0
        members = members.observe(step, value, forecast, learns=True, plausible=True)

    assert sources[49] == "model"
    assert sources[119] == "seasonal"
    assert sources[-1] == "last"


class TestAfterAJump:
    def lived(self, values, model):
        """Return what was issued; the model says `model`, the last member the value before."""
        members, issued, last = ensemble(has_baseline=False, day=96), [], 10.0
        for step, value in enumerate(values):
            forecast = mixed(members, step, [[model], [model], [last]])
            issued.append(members.issued(forecast, large=2.0)[0].item())
            members = members.observe(step, value, forecast, learns=True, plausible=True, large=2.0)
            last = value
        return np.array(issued), members

    def test_the_last_reading_is_issued_after_two_large_errors(self):
        issued, _ = self.lived(50 * [10.0] + 6 * [100.0], model=10.0)

        assert issued[50] == 10.0
        assert issued[51] == pytest.approx(55.0)  # both were wrong: halfway
        assert (issued[52:] > 80).all()

    def test_tiny_errors_of_long_ago_do_no_harm(self):
        latest = np.array([[0, 0], [1e-200, 0], [0, 0], [0, 0]])
        members = replace(ensemble(has_baseline=False), latest=latest)
        forecast = mixed(members, 0, [[10.0], [10.0], [10.0]])

        assert members.issued(forecast, large=2.0)[0] == 10.0

    def test_it_is_also_issued_where_ten_small_errors_exceed_its_own(self):
        issued, _ = self.lived(50 * [10.0] + 30 * [11.5], model=10.0)

        assert abs(issued[60:] - 11.5).max() < 0.4

    @pytest.mark.parametrize(
        ("more", "less", "expected"),
        [
            (0.2, 0.0, 11.5),  # the last reading alone was right
            (0.2, 0.02, 10 + 1.5 * 0.2 / 0.36),
            (0.2, 0.03, 10.0),  # both had errors of their own
            (0.15, 0.0, 10.0),  # small errors
        ],
    )
    def test_it_is_also_issued_where_nearly_all_errors_exceed_its_own(self, more, less, expected):
        latest = np.array([[1.0, 1.0], [1.0, 1.0], [more, less], [0.0, 0.0]])
        members = replace(ensemble(has_baseline=False, day=96), latest=latest)

        issued, _ = members.issued(mixed(members, 0, [[10.0], [10.0], [11.5]]), large=2.0)

        assert issued.item() == pytest.approx(expected)

    def test_errors_that_both_made_do_not_count(self):
        members = ensemble(has_baseline=False, day=96)
        for step, last in enumerate((9.0, 100.0)):
            forecast = mixed(members, step, [[10.0], [10.0], [last]])
            members = members.observe(step, 100.0, forecast, learns=True, plausible=True)
            if step == 0:  # the last reading missed the jump by 91, the model by 90
                assert members.latest[2].tolist() == [0.0, 0.25 * (91**2 - 90**2)]

        assert members.latest[2, 0] > 8 * members.latest[2, 1]

    @pytest.mark.parametrize(("of_last", "expected"), [(0.9, 11.5), (1.1, 10.0)])
    def test_it_is_not_issued_if_it_was_worse_at_earlier_suspicions(self, of_last, expected):
        latest = np.array([[1.0, 1.0], [1.0, 1.0], [0.2, 0.0], [1.0, of_last]])
        members = replace(ensemble(has_baseline=False, day=96), latest=latest)

        issued, _ = members.issued(mixed(members, 0, [[10.0], [10.0], [11.5]]), large=2.0)

        assert issued.item() == pytest.approx(expected)

    @pytest.mark.parametrize(("more", "expected"), [(0.2, [0.99, 0.99 + 0.01]), (0.1, [1.0, 1.0])])
    def test_only_steps_with_a_suspicion_are_compared(self, more, expected):
        latest = np.array([[1.0, 1.0], [1.0, 1.0], [more, 0.0], [1.0, 1.0]])
        members = replace(ensemble(has_baseline=False, day=96), latest=latest)
        forecast = mixed(members, 0, [[10.0], [10.0], [11.0]])

        after = members.observe(0, 10.0, forecast, learns=True, plausible=True, large=2.0)

        np.testing.assert_allclose(after.latest[3], expected)

    def test_after_bursts_that_fell_back_at_once_it_is_not_issued(self):
        issued, _ = self.lived(4 * (20 * [0.0] + [100.0]) + 5 * [0.0], model=0.0)

        assert issued[21] == pytest.approx(50, abs=1)  # halfway after the first burst
        assert issued[42] == issued[63] == issued[84] == 0.0

    def test_errors_as_usual_change_nothing(self):
        rng = np.random.default_rng(0)
        members, last = ensemble(has_baseline=False, day=96), 0.0
        for step, value in enumerate(rng.normal(0, 1, 200)):
            forecast = mixed(members, step, [[0.0], [0.0], [last]])
            assert members.issued(forecast, large=5.0)[0] is forecast.values
            members = members.observe(step, value, forecast, learns=True, plausible=True)
            last = value

    def test_it_is_restored(self):
        _, members = self.lived(5 * [10.0] + 3 * [100.0], model=10.0)

        again = ensemble(has_baseline=False, day=96).restore(members.state())

        np.testing.assert_array_equal(again.latest, members.latest)

    def test_a_model_that_was_bad_for_days_comes_back(self):
        rng = np.random.default_rng(0)
        members = ensemble(has_baseline=False, day=24)
        for step in range(24 * 12):
            value = rng.normal(0, 10)
            forecasts = value + rng.normal(size=3) * [50 if 48 <= step < 72 else 1, 4, 4]
            forecast = mixed(members, step, forecasts[:, None])
            members = members.observe(step, value, forecast, learns=True, plausible=True)
            if step == 71:
                shut_out = members.weights(ALL)[0]

        assert shut_out < 0.1
        assert members.weights(ALL)[0] > 0.5
