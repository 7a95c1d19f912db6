"""Laws that every step rule must pass, and laws for rules without a rate."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from streamridge import (
    AdaGradStep,
    AgreementStep,
    Box,
    ConstantStep,
    DiscountedStep,
    Features,
    Forecaster,
    InvalidInputError,
    KernelRidge,
    LazyDescent,
    Linear,
    Preset,
    Product,
    Simplex,
    Standardized,
)
from tests.support.forecasters import DAY, daily, live
from tests.support.plain_steps import displacement

RATE_FREE = {
    "discounted": DiscountedStep(),
    "agreement": AgreementStep(),
}
RULES = {"constant": ConstantStep(0.1), "adagrad": AdaGradStep(), **RATE_FREE}
every_rule = pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
rate_free = pytest.mark.parametrize("rule", RATE_FREE.values(), ids=RATE_FREE)

MIXED = Product((Box([-1.0, 0.0], [1.0, 3.0]), Simplex(3)))
MIDDLE = [0.0, 1.0, 0.2, 0.3, 0.5]
WIDE = Box(np.full(5, -20.0), np.full(5, 20.0))
CURVATURES = np.array([1e-4, 1e-2, 1.0, 1e2, 1e4])


def descended(rule, gradients, start=MIDDLE, feasible=MIXED):
    """Return the descents before and after each of these gradients."""
    path = [LazyDescent.start(start, feasible, rule, update_every=1)]
    for g in gradients:
        path.append(path[-1].observe(lambda z, g=g: g))
    return path


def followed(rule, minimum, windows, *, noise=0.0, start=None, bursts=()):
    """Return the distance of a descent from a moving minimum, per window and coordinate.

    The gradients of the coordinates differ by eight orders. Noise is in units of the distance.
    """
    rng = np.random.default_rng(7)
    start = np.zeros(5) if start is None else start
    descent, distances = LazyDescent.start(start, WIDE, rule, update_every=1), []
    for window in range(windows):
        off = descent.z - minimum(window)
        distances.append(np.abs(off))
        g = CURVATURES * (off + noise * rng.normal(size=5))
        descent = descent.observe(lambda z, g=g: g)
        if window in bursts:
            descent = descent.observe(lambda z, g=g: 1e6 * g)
    return np.array(distances)


def first_within(distances, limit):
    """Return the first window in which every coordinate is within a limit; else their number."""
    near = (distances < limit).all(axis=1)
    return int(near.argmax()) if near.any() else len(near)


HUGE = arrays(float, (12, 5), elements=st.floats(-1e150, 1e150))
# The places of NaN and infinity in the gradients.
SPOILT = st.lists(
    st.tuples(
        st.integers(0, 11),
        st.integers(0, 4),
        st.sampled_from([np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324]),
    ),
    max_size=4,
)


def require_feasible(rule, gradients):
    for descent in descended(rule, gradients):
        assert MIXED.contains(descent.z)
        assert abs(descent.z[2:].sum() - 1) <= 1e-12
        assert np.isfinite(descent.memory).all()


@every_rule
@given(HUGE)
def test_every_move_is_feasible_and_finite(rule, gradients):
    require_feasible(rule, gradients)


@pytest.mark.slow
@every_rule
def test_ten_thousand_runs_stay_feasible_with_nan_gradients(rule, record_property):
    cases = 10_000 // len(RULES)

    @settings(max_examples=cases, database=None)
    @given(HUGE, SPOILT)
    def stays_feasible(gradients, spoilt):
        for row, column, bad in spoilt:
            gradients[row, column] = bad
        require_feasible(rule, gradients)

    stays_feasible()
    record_property("row", "C3")
    record_property("cases", cases)


@every_rule
def test_a_zero_gradient_moves_nothing(rule):
    rng = np.random.default_rng(3)
    fresh, *_, walked = descended(rule, rng.normal(size=(30, 5)))

    for descent in (fresh, walked):
        for _ in range(3):
            after = descent.observe(lambda z: np.zeros(5))
            np.testing.assert_allclose(after.z, descent.z, rtol=0, atol=1e-15)
            descent = after


@every_rule
def test_a_zero_gradient_holds_its_own_coordinate(rule):
    rng = np.random.default_rng(3)
    still = rng.normal(size=(30, 5))
    still[20:, 2] = 0.0

    path = descended(rule, still, np.zeros(5), WIDE)

    assert len({descent.z[2] for descent in path[20:]}) == 1
    assert len({descent.z[1] for descent in path[20:]}) == 11


@every_rule
def test_moves_equal_the_plain_version(rule):
    rng = np.random.default_rng(6)
    gradients = CURVATURES * np.exp(rng.normal(size=(40, 5))) * rng.normal(0.5, 1.0, size=(40, 5))
    gradients[:3, 1] = gradients[10:20, 2] = 0.0
    memory = rule.start(np.zeros(5))

    for newest, g in enumerate(gradients):
        moved, memory = rule.step(np.zeros(5), g, memory)
        np.testing.assert_allclose(moved, displacement(rule, gradients[: newest + 1]), rtol=1e-10)


@every_rule
def test_a_restored_descent_continues_bit_for_bit(rule):
    rng = np.random.default_rng(4)
    fresh, *_, walked = descended(rule, rng.normal(size=(30, 5)))

    resumed = fresh.restore(walked.state())

    for g in rng.normal(size=(10, 5)):
        walked, resumed = (each.observe(lambda z, g=g: g) for each in (walked, resumed))
        np.testing.assert_array_equal(walked.z, resumed.z)
        np.testing.assert_array_equal(walked.memory, resumed.memory)


@every_rule
def test_a_saved_forecaster_continues_with_its_step_rule_bit_for_bit(rule, tmp_path):
    model = Standardized(KernelRidge(Linear(("lags",)), regularization=0.5))
    preset = Preset(Features(lags=2), model, rule)
    sizes = {"train_size": 60, "update_every": DAY, "warmup": 3 * DAY}
    forecaster, values = Forecaster("1h", preset=preset, **sizes), daily(8 * DAY)
    live(forecaster, values[: 6 * DAY + 3])

    forecaster.save(tmp_path / "ruled.sr")
    loaded = Forecaster.load(tmp_path / "ruled.sr")

    assert loaded.settings == forecaster.settings
    for each in (forecaster, loaded):
        live(each, values[6 * DAY + 3 :], 6 * DAY + 3)
    assert loaded.hyperparameters == forecaster.hyperparameters
    assert loaded.hyperparameters["regularization"] != 0.5


@every_rule
def test_memory_of_another_shape_is_refused(rule):
    descent = descended(rule, [])[0]
    wrong = descent.state() | {"memory": np.zeros((9, 9))}

    with pytest.raises(ValueError, match=r"memory must have shape \(.*\), got \(9, 9\)"):
        descent.restore(wrong)


@every_rule
def test_arguments_are_not_changed(rule):
    z, g = np.zeros(5), np.arange(5.0)
    memory = rule.start(z)
    for array in (z, g, memory):
        array.flags.writeable = False

    _, memory = rule.step(z, g, memory)
    memory.flags.writeable = False

    rule.step(z, g, memory)


@rate_free
@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_the_unit_of_the_loss_does_not_matter(rule, unit):
    gradients = np.random.default_rng(5).normal(size=(40, 5))

    own, other = (descended(rule, scale * gradients)[-1].z for scale in (1.0, unit))

    np.testing.assert_allclose(other, own, rtol=1e-9)


@rate_free
@pytest.mark.parametrize("factor", [1e-2, 1e2])
def test_starts_that_are_a_hundred_times_off_find_the_minimum(rule, factor):
    off = np.full(5, np.log(factor))

    distances = followed(rule, lambda window: 0.0, 250, start=off)

    assert first_within(distances, np.log(2)) <= 120
    assert distances[-20:].mean() < 0.02


@rate_free
def test_pure_noise_moves_hyperparameters_only_a_little(rule):
    distances = followed(rule, lambda window: 0.0, 400, noise=1.0)

    assert np.sqrt(np.mean(distances**2)) < 0.35


def jumping(window):
    """Return a minimum that jumps after 1000 windows, to seven times its value in logarithms."""
    return 2.0 if window >= 1000 else 0.0


def windows_to_return(rule, **troubles):
    distances = followed(rule, jumping, 1100, noise=0.3, **troubles)
    return first_within(distances[1000:], 1.0)


@rate_free
def test_a_minimum_that_jumps_after_years_is_tracked(rule):
    assert windows_to_return(rule) <= 30


def quieter(rule):
    """Return the number of windows until a rule is halfway, after years of noise."""
    rng = np.random.default_rng(8)
    loud = 100 * CURVATURES * rng.normal(size=(500, 5))
    walked = descended(rule, loud, np.zeros(5), WIDE)[-1].moved_to(np.full(5, 2.0))
    path = [walked.z]
    for _ in range(200):
        walked = walked.observe(lambda z: CURVATURES * z)
        path.append(walked.z)
    return first_within(np.abs(path), 1.0)


@rate_free
def test_large_gradients_of_past_years_are_forgotten(rule):
    assert quieter(rule) <= 180


def test_a_memory_that_only_grows_does_not_forget():
    assert quieter(AdaGradStep()) == 201


def test_a_memory_that_only_grows_does_not_track_a_jump():
    assert windows_to_return(AdaGradStep()) > 90


@rate_free
def test_a_burst_of_huge_gradients_stops_learning_for_a_few_windows_only(rule):
    burst = range(996, 1000)

    assert windows_to_return(rule, bursts=burst) <= windows_to_return(rule) + 5


def test_a_memory_that_only_grows_does_not_survive_a_burst():
    distances = followed(AdaGradStep(), jumping, 1100, noise=0.3, bursts=[3])

    assert (distances[-1] > 1.5).all()


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: DiscountedStep(0.0), r"size must be positive, got 0\.0\."),
        (lambda: AgreementStep(-0.1), r"size must be positive, got -0\.1\."),
        (lambda: DiscountedStep(memory=0.5), r"memory must be at least one window, got 0\.5\."),
        (lambda: AgreementStep(memory=[20.0]), r"memory must be one number, got \[20\.0\]"),
    ],
)
def test_bad_settings_are_refused(build, message):
    with pytest.raises(InvalidInputError, match=message):
        build()
