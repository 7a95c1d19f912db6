import numpy as np
import pytest

from streamridge import KernelRidge, Layout, Linear, Matern, Standardized
from streamridge.models.standardized import Units
from streamridge.samples import Inputs, Samples
from tests.oracles import central_difference

BLOCKS = (("latest", 1), ("day_lags", 3), ("calendar", 2), ("extras", 1))
LAYOUT = Layout(BLOCKS, own_unit=("extras",), unitless=("calendar",))
READ = ("day_lags", "calendar", "extras")
RIDGE = KernelRidge(Matern(np.full(6, 0.3), features=READ) + Linear(("day_lags",)))
MODEL = Standardized(RIDGE)


def samples(rng, n, *, horizon=1, unit=1.0, shift=0.0, start=0):
    x = rng.normal(size=(n, LAYOUT.width))
    values = slice(0, 4)
    y = x[:, :1] + np.sin(x[:, 1:2]) + 0.1 * rng.normal(size=(n, horizon))
    x[:, values] *= unit
    x[:, :1] += shift
    return Samples.of(start + np.arange(n), x, unit * y + shift, LAYOUT)


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_units_and_levels_do_not_matter(unit):
    plain = MODEL.fit(samples(np.random.default_rng(0), 80), RIDGE.space.values)
    rows = samples(np.random.default_rng(1), 9, start=80)
    changed = MODEL.fit(
        samples(np.random.default_rng(0), 80, unit=unit, shift=5 * unit), RIDGE.space.values
    )
    moved = samples(np.random.default_rng(1), 9, unit=unit, shift=5 * unit, start=80)

    one, size = plain.predict_with_spread(rows.inputs)
    other, scaled = changed.predict_with_spread(moved.inputs)

    np.testing.assert_allclose(other, unit * one + 5 * unit, rtol=1e-7)
    np.testing.assert_allclose(scaled, unit * size, rtol=1e-5)
    np.testing.assert_allclose(
        changed.loss_and_gradient(moved)[1], plain.loss_and_gradient(rows)[1], rtol=1e-6, atol=1e-9
    )


def test_the_model_sees_differences_in_standard_deviations(rng):
    train, rows = samples(rng, 60, horizon=2), samples(rng, 7, horizon=2, start=60)
    unit, extra = train.x[:, 0].std(), train.x[:, 6].std()
    scales = np.array([unit, unit, unit, unit, 1.0, 1.0, extra])
    differences = train.y - train.x[:, :1]
    deviations = differences.std(axis=0)
    inner = RIDGE.fit(Samples.of(train.t, train.x / scales, differences / deviations, LAYOUT))

    fit = MODEL.fit(train, RIDGE.space.values)

    expected = inner.predict(Inputs.of(rows.t, rows.x / scales, LAYOUT))
    np.testing.assert_allclose(fit.predict(rows.inputs), rows.x[:, :1] + deviations * expected)


def test_the_gradient_belongs_to_the_standardized_loss(rng):
    train, window = samples(rng, 60, horizon=2, unit=50), samples(rng, 9, horizon=2, unit=50)
    deviations = (train.y - train.x[:, :1]).std(axis=0)

    def loss(lam):
        errors = window.y - MODEL.fit(train, lam).predict(window.inputs)
        return np.sum((errors / deviations) ** 2)

    lam = RIDGE.space.values
    fit = MODEL.fit(train, lam)

    np.testing.assert_allclose(
        fit.loss_and_gradient(window)[1], central_difference(loss, lam), rtol=1e-6, atol=1e-7
    )
    np.testing.assert_allclose(
        fit.step_gradients(window).sum(axis=0),
        fit.loss_and_gradient(window)[1],
        rtol=1e-9,
        atol=1e-9,
    )


def test_a_constant_unit_divides_everything_and_subtracts_nothing(rng):
    train, rows = samples(rng, 60, unit=300), samples(rng, 7, unit=300, start=60)
    inner = RIDGE.fit(Samples.of(train.t, train.x / 100, train.y / 100, LAYOUT))

    fit = Standardized(RIDGE, unit=100.0).fit(train, RIDGE.space.values)

    expected = 100 * inner.predict(Inputs.of(rows.t, rows.x / 100, LAYOUT))
    np.testing.assert_allclose(fit.predict(rows.inputs), expected)


@pytest.mark.parametrize("value", [0.0, 1e6, 1e-300])
def test_columns_that_do_not_vary_keep_their_unit(value):
    x = np.full((20, LAYOUT.width), value)

    units = Units.of(Samples.of(np.arange(20), x, np.full(20, value), LAYOUT))

    np.testing.assert_array_equal(units.x, 1.0)
    np.testing.assert_array_equal(units.y, 1.0)


def test_a_resumed_fit_continues_bit_for_bit(rng):
    train, rows = samples(rng, 60), samples(rng, 1, start=60)
    fit = MODEL.fit(train, RIDGE.space.values)

    resumed = MODEL.resume(train, RIDGE.space.values, fit.state())

    np.testing.assert_array_equal(resumed.predict(rows.inputs), fit.predict(rows.inputs))


def test_the_loss_of_a_window_is_in_deviations_of_the_training_set(rng):
    train, window = samples(rng, 60, horizon=2, unit=50), samples(rng, 9, horizon=2, unit=50)
    deviations = (train.y - train.x[:, :1]).std(axis=0)
    fit = MODEL.fit(train, RIDGE.space.values)

    loss = fit.window_loss(window)

    errors = (window.y - fit.predict(window.inputs)) / deviations
    np.testing.assert_allclose(loss, np.sum(errors**2), rtol=1e-10)
    np.testing.assert_allclose(loss, fit.loss_and_gradient(window)[0], rtol=1e-12)


def test_the_layout_defines_the_latest_value_and_the_blocks_with_its_unit(rng):
    train, rows = samples(rng, 60, horizon=2, unit=30), samples(rng, 7, horizon=2, start=60)
    order = [4, 5, 6, 1, 2, 3, 0]  # calendar, extras, day_lags, latest
    moved = Layout(
        (("calendar", 2), ("extras", 1), ("day_lags", 3), ("latest", 1)),
        latest=6,
        own_unit=("extras",),
        unitless=("calendar",),
    )

    def shuffled(given):
        return Samples.of(given.t, given.x[:, order], given.y, moved)

    inner = KernelRidge(Matern(np.full(7, 0.3)))
    plain, other = (
        Standardized(inner).fit(each, inner.space.values) for each in (train, shuffled(train))
    )

    np.testing.assert_allclose(
        other.predict(shuffled(rows).inputs), plain.predict(rows.inputs), rtol=1e-9
    )
