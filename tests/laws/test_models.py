"""Laws that every model must pass."""

import gc
import pickle
import weakref

import numpy as np
import pytest

from streamridge import (
    ARD,
    AutoregressiveRidge,
    Drifting,
    InvalidInputError,
    KernelRidge,
    Linear,
    Matern,
    Mixture,
    NystromRidge,
    Periodic,
    SquaredExponential,
    Standardized,
)
from streamridge.models.base import Model, ModelFit, Tangents, predict_with_residuals
from streamridge.samples import Inputs, Samples
from tests.oracles import central_difference
from tests.support.samples import make_samples

SCALES = [0.3, 0.05, 0.7, 0.2, 0.4]
PERIODIC = Periodic(period=7.3, period_bounds=(5, 9))

MODELS = {
    "periodic": KernelRidge(PERIODIC),
    "squared exponential": KernelRidge(SquaredExponential(0.2)),
    "ard": KernelRidge(ARD(SCALES), regularization=0.05),
    "ard, not centred": KernelRidge(ARD(SCALES), centered=False),
    "matern 1/2": KernelRidge(Matern(SCALES)),
    "matern 3/2": KernelRidge(Matern(SCALES, order=1.5)),
    "matern 5/2": KernelRidge(Matern(0.2, order=2.5)),
    "linear": KernelRidge(Linear()),
    "paper": KernelRidge(PERIODIC + ARD(SCALES)),
    "drifting mixture": KernelRidge(
        Drifting(
            Mixture([PERIODIC, Matern(SCALES), Linear(("lags",))], weights=[0.5, 0.3, 0.2]),
            rate=0.005,
        )
    ),
    "landmarks": NystromRidge(PERIODIC + Matern(SCALES, order=1.5), landmarks=30),
    "landmarks, drifting, not centred": NystromRidge(
        Drifting(Matern(SCALES, order=1.5), rate=0.005) + Linear(("lags",)),
        centered=False,
        landmarks=40,
    ),
    "every row a landmark": NystromRidge(PERIODIC + ARD(SCALES), landmarks=10**6),
    "autoregressive": AutoregressiveRidge([0.5, 1.0, 2.0, 0.1, 3.0]),
}
MODELS |= {
    "standardized": Standardized(MODELS["paper"]),
    "standardized, in a constant unit": Standardized(MODELS["paper"], unit=2.0),
    "standardized landmarks": Standardized(MODELS["landmarks"]),
    "standardized autoregressive": Standardized(MODELS["autoregressive"]),
}


def models_with(method, base, values):
    """Return the models whose `values` override a method of the base class."""
    chosen = {
        name: model
        for name, model in MODELS.items()
        if getattr(type(values(model)), method) is not getattr(base, method)
    }
    return pytest.mark.parametrize("model", chosen.values(), ids=chosen)


def small_fit(model):
    return model.fit(make_samples(np.random.default_rng(0), 9), model.space.values)


def has_smaller_predictor(model):
    fit = small_fit(model)
    return fit.predictor() is not fit


every_model = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
models_with_spread = models_with("predict_with_spread", ModelFit, small_fit)
SMALLER = {name: model for name, model in MODELS.items() if has_smaller_predictor(model)}
models_with_predictors = pytest.mark.parametrize("model", SMALLER.values(), ids=SMALLER)
models_with_approximate_fits = models_with("approximate", Model, lambda model: model)
horizons = pytest.mark.parametrize("horizon", [1, 3])


@every_model
@horizons
def test_window_gradient_is_the_derivative_of_the_loss_refit_included(model, horizon, rng):
    train = make_samples(rng, 150, horizon=horizon)
    window = make_samples(rng, 40, horizon=horizon, start=150.0)
    lam = model.space.values

    def loss(moved):
        return model.fit(train, moved).window_loss(window)

    g = model.fit(train, lam).loss_and_gradient(window)[1]

    np.testing.assert_allclose(g, central_difference(loss, lam), rtol=1e-6, atol=1e-7)


@every_model
@horizons
def test_forward_and_adjoint_gradients_are_equal(model, horizon, rng):
    fit = model.fit(make_samples(rng, 150, horizon=horizon), model.space.values)
    window = make_samples(rng, 40, horizon=horizon, start=150.0)

    each = fit.step_gradients(window)

    assert each.shape == (40, len(model.space.names))
    summed = fit.loss_and_gradient(window)[1]
    np.testing.assert_allclose(each.sum(axis=0), summed, rtol=1e-9, atol=1e-9 * abs(summed).max())


def make_moving(rng, samples):
    """Return tangents of rows for two parameters; the second moves two columns only.

    The first column, the latest value, stays: units follow from it.
    """
    tangents = rng.normal(size=(2, *samples.x.shape))
    tangents[:, :, 0] = 0.0
    tangents[1, :, 1:3] = 0.0
    return tangents


def moved(samples, tangents, numbers):
    """Return samples whose rows moved along their tangents, on a curve."""
    along = np.tensordot(numbers + numbers**2, tangents, axes=1)
    inputs = Inputs(samples.t, samples.x + along, samples.inputs.layout)
    return Samples(inputs, samples.y)


@every_model
@horizons
def test_the_gradient_through_rows_is_the_derivative_of_the_loss_refit_included(
    model, horizon, rng
):
    train = make_samples(rng, 130, horizon=horizon)
    window = make_samples(rng, 40, horizon=horizon, start=130.0)
    tangents = Tangents(make_moving(rng, train), make_moving(rng, window))
    numbers, lam = np.array([0.3, 0.1]), model.space.values

    def rows(at):
        return (moved(train, tangents.training, at), moved(window, tangents.window, at))

    def loss(at):
        history, ahead = rows(at)
        return model.fit(history, lam).window_loss(ahead)

    history, ahead = rows(numbers)
    bend = (1 + 2 * numbers)[:, None, None]
    along = Tangents(bend * tangents.training, bend * tangents.window)
    g = model.fit(history, lam).loss_and_gradient(ahead, along)[1]

    plain = model.fit(history, lam).loss_and_gradient(ahead)[1]
    np.testing.assert_allclose(g[:-2], plain, rtol=1e-9, atol=1e-12)
    wanted = central_difference(loss, numbers)
    np.testing.assert_allclose(g[-2:], wanted, rtol=1e-6, atol=1e-7)


@every_model
@horizons
def test_forward_and_adjoint_gradients_through_rows_are_equal(model, horizon, rng):
    train = make_samples(rng, 130, horizon=horizon)
    window = make_samples(rng, 40, horizon=horizon, start=130.0)
    tangents = Tangents(make_moving(rng, train), make_moving(rng, window))
    fit = model.fit(train, model.space.values)

    each = fit.step_gradients(window, tangents)

    assert each.shape == (40, len(model.space.names) + 2)
    summed = fit.loss_and_gradient(window, tangents)[1]
    np.testing.assert_allclose(each.sum(axis=0), summed, rtol=1e-9, atol=1e-9 * abs(summed).max())


@every_model
def test_the_gradient_of_a_window_is_the_sum_over_its_parts(model, rng):
    fit = model.fit(make_samples(rng, 90), model.space.values)
    window = make_samples(rng, 70, start=90.0)

    parts = fit.loss_and_gradient(window[:5])[1] + fit.loss_and_gradient(window[5:])[1]

    whole = fit.loss_and_gradient(window)[1]
    np.testing.assert_allclose(whole, parts, rtol=1e-9, atol=1e-10 * abs(whole).max())


@models_with_spread
@horizons
def test_predictions_with_their_spread_are_the_predictions(model, horizon, rng):
    fit = model.fit(make_samples(rng, 90, horizon=horizon), model.space.values)
    rows = make_samples(rng, 20, horizon=horizon, start=90.0).inputs

    predictions, spreads = fit.predict_with_spread(rows)

    np.testing.assert_allclose(predictions, fit.predict(rows), rtol=1e-12, atol=1e-12)
    assert spreads.shape == predictions.shape
    assert (spreads > 0).all()


@every_model
@horizons
def test_a_single_row_is_predicted_as_in_a_batch(model, horizon, rng):
    fit = model.fit(make_samples(rng, 80, horizon=horizon), model.space.values)
    rows = make_samples(rng, 5, start=80.0).inputs
    together = fit.predict(rows)

    alone = np.vstack([fit.predict(rows[i : i + 1]) for i in range(5)])
    fit.release()
    again = np.vstack([fit.predict(rows[i : i + 1]) for i in range(5)])

    np.testing.assert_allclose(alone, together, rtol=1e-11, atol=1e-11)
    np.testing.assert_array_equal(again, alone)


@models_with_spread
@horizons
def test_a_single_row_has_the_same_spread_as_in_a_batch(model, horizon, rng):
    fit = model.fit(make_samples(rng, 80, horizon=horizon), model.space.values)
    rows = make_samples(rng, 5, start=80.0).inputs
    before = fit.predict(rows[:1])  # its weighted sum does not include the spread yet
    together = fit.predict_with_spread(rows)

    alone = [fit.predict_with_spread(rows[i : i + 1]) for i in range(5)]

    for one, many in zip(map(np.vstack, zip(*alone, strict=True)), together, strict=True):
        assert one.shape == many.shape
        np.testing.assert_allclose(one, many, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(fit.predict(rows[:1]), before, rtol=1e-11, atol=1e-11)


@models_with_spread
@horizons
def test_a_resumed_fit_has_the_same_spread_bit_for_bit(model, horizon, rng):
    train = make_samples(rng, 90, horizon=horizon)
    rows = make_samples(rng, 1, horizon=horizon, start=90.0).inputs
    fit = model.fit(train, model.space.values)
    spread = fit.predict_with_spread(rows)

    resumed = model.resume(train, model.space.values, fit.state())

    for one, other in zip(spread, resumed.predict_with_spread(rows), strict=True):
        np.testing.assert_array_equal(one, other)


@models_with_spread
def test_a_spread_learned_early_equals_a_spread_learned_on_demand(model, rng):
    train, rows = make_samples(rng, 90), make_samples(rng, 5, start=90.0).inputs
    early, late = (model.fit(train, model.space.values) for _ in range(2))

    early.learn_spread()

    for one, other in zip(
        early.predict_with_spread(rows), late.predict_with_spread(rows), strict=True
    ):
        np.testing.assert_array_equal(one, other)


@models_with_predictors
@horizons
def test_a_predictor_gives_the_same_bits_without_the_samples(model, horizon, rng):
    fit = model.fit(make_samples(rng, 90, horizon=horizon), model.space.values)
    fit.learn_spread()
    rows = [make_samples(rng, 1, start=90.0 + i).inputs for i in range(3)]
    values = [(fit.predict(row), *fit.predict_with_spread(row)) for row in rows]
    held = weakref.ref(fit)

    predictor = fit.predictor()
    del fit
    gc.collect()

    assert held() is None
    for row, expected in zip(rows, values, strict=True):
        again = predictor.predict(row), *predictor.predict_with_spread(row)
        for one, other in zip(again, expected, strict=True):
            np.testing.assert_array_equal(one, other)


def results(fit, window):
    """Return all results of a fit for a window."""
    return [
        fit.predict(window.inputs),
        fit.loss_and_gradient(window)[1],
        fit.window_loss(window),
        fit.step_gradients(window),
    ]


@every_model
def test_a_released_fit_gives_the_same_results(model, rng):
    fit = model.fit(make_samples(rng, 90), model.space.values)
    window = make_samples(rng, 20, start=90.0)
    before = results(fit, window)

    fit.release()

    for first, second in zip(before, results(fit, window), strict=True):
        np.testing.assert_array_equal(first, second)


@every_model
@pytest.mark.parametrize("released", [False, True])
def test_a_pickled_fit_gives_the_same_results_and_takes_no_more_than_its_samples(
    model, released, rng
):
    train, window = make_samples(rng, 200), make_samples(rng, 20, start=200.0)
    fit = model.fit(train, model.space.values)
    before = results(fit, window)
    if released:
        fit.release()

    content = pickle.dumps(fit)

    assert len(content) < 12 * train.x.nbytes  # and never an N by N matrix
    for first, second in zip(before, results(pickle.loads(content), window), strict=True):
        np.testing.assert_array_equal(first, second)


@every_model
def test_a_fit_may_take_over_the_memory_of_a_retired_one(model, rng):
    lam = model.space.values
    small, large = make_samples(rng, 60), make_samples(rng, 90)
    window = make_samples(rng, 20, start=90.0)

    chain = model.fit(small, lam)
    for samples in (large, small, large):
        chain = model.fit(samples, lam, chain)

    fresh = model.fit(large, lam)
    np.testing.assert_array_equal(chain.predict(window.inputs), fresh.predict(window.inputs))
    np.testing.assert_array_equal(
        chain.loss_and_gradient(window)[1], fresh.loss_and_gradient(window)[1]
    )


@every_model
@horizons
def test_a_resumed_fit_continues_bit_for_bit(model, horizon, rng):
    train = make_samples(rng, 90, horizon=horizon)
    lam = model.space.values
    fit = model.fit(train, lam)

    resumed = model.resume(train, lam, fit.state())

    window = make_samples(rng, 20, horizon=horizon, start=90.0)
    np.testing.assert_array_equal(resumed.predict(window.inputs), fit.predict(window.inputs))
    np.testing.assert_array_equal(
        resumed.loss_and_gradient(window)[1], fit.loss_and_gradient(window)[1]
    )


@every_model
@horizons
def test_the_loss_of_a_window_is_the_sum_of_its_squared_errors_in_the_units_of_the_fit(
    model, horizon, rng
):
    train = make_samples(rng, 90, horizon=horizon)
    fit = model.fit(train, model.space.values)
    window = make_samples(rng, 40, horizon=horizon, start=90.0)

    loss = fit.window_loss(window)

    errors = (window.y - fit.predict(window.inputs)) / units_of(model, train)
    np.testing.assert_allclose(loss, np.sum(errors**2), rtol=1e-12)
    np.testing.assert_allclose(loss, fit.loss_and_gradient(window)[0], rtol=1e-12)


def units_of(model, train):
    """Return the units in which a model measures errors."""
    if not isinstance(model, Standardized):
        return 1.0
    return model.unit or (train.y - train.x[:, :1]).std(axis=0)


@models_with_approximate_fits
@horizons
def test_an_approximate_fit_with_a_tight_tolerance_equals_the_exact_fit(model, horizon, rng):
    train = make_samples(rng, 100, horizon=horizon)
    window = make_samples(rng, 40, horizon=horizon, start=100.0)
    lam = model.space.values

    fit = model.approximate(train, lam, 1e-10)

    exact = model.fit(train, lam)
    predictions = exact.predict(window.inputs)
    np.testing.assert_allclose(fit.predict(window.inputs), predictions, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(fit.window_loss(window), exact.window_loss(window), rtol=1e-6)
    (loss, g), (exact_loss, exact_g) = (each.loss_and_gradient(window) for each in (fit, exact))
    np.testing.assert_allclose(loss, exact_loss, rtol=1e-6)
    np.testing.assert_allclose(g, exact_g, rtol=1e-6, atol=1e-6 * abs(exact_g).max())


@models_with_approximate_fits
def test_successive_approximate_fits_converge_to_the_exact_fit(model, rng):
    train, window = make_samples(rng, 100), make_samples(rng, 40, start=100.0)
    start = model.space.values
    lam = model.space.feasible.project(1.2 * start)

    fit = None
    for place, tolerance in ((start, 0.1), (lam, 1e-3), (lam, 1e-10)):
        fit = model.approximate(train, place, tolerance, fit)
        loss, g = fit.loss_and_gradient(window)

    exact_loss, exact_g = model.fit(train, lam).loss_and_gradient(window)
    np.testing.assert_allclose(loss, exact_loss, rtol=1e-6)
    np.testing.assert_allclose(g, exact_g, rtol=1e-6, atol=1e-6 * abs(exact_g).max())


@models_with_approximate_fits
def test_an_approximate_fit_does_not_change_its_arguments(model, rng):
    train = make_samples(rng, 60)
    lam = model.space.values

    before = model.approximate(train, lam, 0.1)
    after = model.approximate(train, lam, 0.01, before)

    assert np.isfinite(after.predict(train.inputs)).all()


@every_model
def test_predictions_do_not_depend_on_other_rows(model, rng):
    fit = model.fit(make_samples(rng, 90), model.space.values)
    rows = make_samples(rng, 15, start=90.0).inputs

    alone = np.vstack([fit.predict(rows[i : i + 1]) for i in range(len(rows))])

    np.testing.assert_allclose(fit.predict(rows), alone, rtol=1e-10, atol=1e-12)


@every_model
def test_horizons_are_independent(model, rng):
    both = make_samples(rng, 90, horizon=2)
    rows = make_samples(rng, 15, start=90.0).inputs
    lam = model.space.values

    second = type(both)(both.inputs, both.y[:, 1:])

    np.testing.assert_allclose(
        model.fit(both, lam).predict(rows)[:, 1:], model.fit(second, lam).predict(rows), rtol=1e-9
    )


@every_model
def test_no_samples_are_refused(model, rng):
    with pytest.raises(InvalidInputError, match="samples must hold at least one row, got none"):
        model.fit(make_samples(rng, 3)[:0], model.space.values)


@every_model
def test_a_wrong_number_of_hyperparameters_is_refused(model, rng):
    with pytest.raises(InvalidInputError, match="hyperparameters must have shape"):
        model.fit(make_samples(rng, 3), np.ones(99))


class CoreOnly(ModelFit):
    """A fit that implements the abstract methods only."""

    def __init__(self, fit):
        self.fit = fit

    def predict(self, inputs):
        return self.fit.predict(inputs)

    def window_loss(self, window):
        return self.fit.window_loss(window)

    def loss_and_gradient(self, window, tangents=None, loss=None):
        return self.fit.loss_and_gradient(window)

    def release(self):
        return self.fit.release()

    def state(self):
        return self.fit.state()


@every_model
@horizons
def test_without_a_spread_of_its_own_a_fit_has_the_errors_of_its_samples(model, horizon, rng):
    train = make_samples(rng, 90, horizon=horizon)
    fit = CoreOnly(model.fit(train, model.space.values))
    rows = make_samples(rng, 4, horizon=horizon, start=90.0).inputs

    fit.learn_spread()
    assert fit.predict_with_spread(rows) is None
    predictions, spreads = predict_with_residuals(fit, train, rows)

    np.testing.assert_array_equal(predictions, fit.predict(rows))
    rms = np.sqrt(np.mean((train.y - fit.predict(train.inputs)) ** 2, axis=0))
    np.testing.assert_allclose(spreads, np.broadcast_to(rms, (4, horizon)))


def test_a_fit_without_step_gradients_raises_an_error(rng):
    fit = CoreOnly(MODELS["ard"].fit(make_samples(rng, 9)))

    with pytest.raises(InvalidInputError, match="must have step_gradients to be watched, got Core"):
        fit.step_gradients(make_samples(rng, 3))


def test_a_model_without_approximate_fits_is_fitted_exactly(rng):
    model, train = MODELS["autoregressive"], make_samples(rng, 60)

    fit = model.approximate(train, model.space.values, 0.5)

    expected = model.fit(train, model.space.values)
    np.testing.assert_array_equal(fit.predict(train.inputs), expected.predict(train.inputs))
