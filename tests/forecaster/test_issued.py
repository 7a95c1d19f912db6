"""The gradient that tuning follows is that of forecasts as they were issued."""

import numpy as np
import pytest

from streamridge import AutoregressiveRidge, Forecaster, KernelRidge, Matern, Samples, Standardized
from streamridge.forecaster.correction import HALF_LIVES, KEEPS
from streamridge.forecaster.issued import Trail
from streamridge.models import hypergradient
from streamridge.models.base import Tangents
from streamridge.models.ridge import Fit
from tests.oracles import central_difference

N, M = 40, 12
KERNEL_RIDGE = Standardized(KernelRidge(Matern(np.full(3, 0.3), order=1.5), regularization=0.5))


def rows(rng, count, horizon, start):
    t = start + np.arange(count)
    x = rng.standard_normal((count, 3))
    y = 50 * (np.sin(x.sum(axis=1))[:, None] + 0.3 * rng.standard_normal((count, horizon)))
    return Samples.of(t, x, y * np.arange(1, horizon + 1))


def a_trail(rng, steps, horizon):
    trail = Trail.start(horizon)
    for step in steps:
        pulls = rng.uniform(0, 0.3, (horizon, len(HALF_LIVES)))
        trail = trail.after(step, pulls, 10 * rng.standard_normal(horizon))
    return trail


def issued_errors(errors, times, trail):
    """Return what is left of errors if those of this window, and what came before, correct them.

    What came before is all of the offset that errors at the trail do not explain.
    """

    def own(errors):
        means, own = np.zeros(len(HALF_LIVES)), []
        for t in range(int(times[0]), int(times[-1]) + 1):
            at = np.flatnonzero(trail.steps == t)
            row = np.flatnonzero(times == t)
            if len(row):
                own.append(trail.pulls[at[0]] @ means if len(at) else 0 * errors[0])
            told = errors[row[0], 0] if len(row) and len(at) else 0.0
            means = KEEPS * means + (1 - KEEPS) * told
        return np.array(own)

    known = np.isin(times, trail.steps)
    offsets = np.zeros_like(errors)
    offsets[known] = trail.offsets[np.searchsorted(trail.steps, times[known])]
    before = offsets - own(errors)
    return lambda other: other - before - own(other)


def root_mean_square(errors):
    return 2 * errors.size * np.sqrt(np.mean(errors**2))


def a_stream(rng, horizon):
    """Return a training set, a window of which one step has no row, and its trail.

    Of the trail, the forecasts of two steps, of which one came late, are not known.
    """
    train, window = rows(rng, N, horizon, 0), rows(rng, M, horizon, N)
    window = Samples.of(*(np.delete(each, 4, axis=0) for each in (window.t, window.x, window.y)))
    return train, window, a_trail(rng, [t for t in range(N + 1, N + M) if t != N + 7], horizon)


@pytest.mark.parametrize("horizon", [1, 3])
def test_it_is_exact_with_the_refit(horizon):
    train, window, trail = a_stream(np.random.default_rng(horizon), horizon)
    model = KERNEL_RIDGE
    lam = model.space.values
    units = (train.y - train.x[:, :1]).std(axis=0)

    def errors(lam):
        return window.y - model.fit(train, lam).predict(window.inputs)

    issue = issued_errors(errors(lam), window.t, trail)
    g = model.fit(train, lam).gradient_of(window, loss=trail.loss(window.t))

    def loss(lam):
        return root_mean_square(issue(errors(lam)) / units)

    np.testing.assert_allclose(g, central_difference(loss, lam), rtol=1e-6, atol=1e-7)
    plain = model.fit(train, lam).loss_and_gradient(window)[1]
    assert not np.allclose(g, plain, rtol=0.01)


def moved(samples, tangents, numbers):
    """Return samples whose rows have moved along their tangents, in a bend."""
    along = np.tensordot(numbers + numbers**2, tangents, axes=1)
    return Samples.of(samples.t, samples.x + along, samples.y)


@pytest.mark.parametrize("model", [KERNEL_RIDGE, Standardized(AutoregressiveRidge(np.ones(3)))])
@pytest.mark.parametrize("horizon", [1, 3])
def test_it_is_exact_through_the_rows_as_well(model, horizon):
    rng = np.random.default_rng(horizon)
    train, window, trail = a_stream(rng, horizon)
    # The first column, the latest value, stays: units follow from it.
    tangents = [rng.standard_normal((2, *each.x.shape)) * [0, 1, 1] for each in (train, window)]
    units = (train.y - train.x[:, :1]).std(axis=0)
    z = np.append(model.space.values, [0.3, 0.1])

    def fitted(z):
        history, ahead = (
            moved(each, along, z[-2:])
            for each, along in zip((train, window), tangents, strict=True)
        )
        return model.fit(history, z[:-2]), ahead

    def errors(z):
        fit, ahead = fitted(z)
        return ahead.y - fit.predict(ahead.inputs)

    issue = issued_errors(errors(z), window.t, trail)
    fit, ahead = fitted(z)
    bend = (1 + 2 * z[-2:])[:, None, None]
    along = Tangents(*(bend * each for each in tangents))
    g = fit.gradient_of(ahead, along, trail.loss(window.t))

    def loss(z):
        return root_mean_square(issue(errors(z)) / units)

    np.testing.assert_allclose(g, central_difference(loss, z), rtol=1e-6, atol=1e-7)
    assert not np.allclose(g[-2:], fit.gradient_of(ahead, along)[-2:], rtol=0.01)


def test_without_a_trail_it_is_the_gradient_of_squared_errors_over_their_root_mean_square():
    rng = np.random.default_rng(0)
    train, window = rows(rng, N, 2, 0), rows(rng, M, 2, N)
    fit = Standardized(KernelRidge(Matern(np.full(3, 0.3), order=1.5))).fit(train)

    g = fit.gradient_of(window, loss=Trail.start(2).loss(window.t))

    loss, plain = fit.loss_and_gradient(window)
    np.testing.assert_allclose(g, plain / np.sqrt(loss / (2 * M)), rtol=1e-10)


def test_ten_times_smaller_errors_make_a_gradient_ten_times_smaller():
    errors = np.random.default_rng(0).standard_normal((M, 2))
    loss = Trail.start(2).loss(np.arange(float(M)))

    # The residuals are the same, and each counts as much as the error it moves with.
    np.testing.assert_allclose(loss.of(errors / 10)[1], loss.of(errors)[1], rtol=1e-12)
    assert loss.of(0 * errors)[1].tolist() == (0 * errors).tolist()


def test_a_window_too_long_to_hold_has_the_same_gradient_for_twice_the_kernels(monkeypatch):
    rng = np.random.default_rng(0)
    train, window = rows(rng, N, 2, 0), rows(rng, M, 2, N)
    fit = KernelRidge(Matern(np.full(3, 0.3), order=1.5)).fit(train)
    loss, made = a_trail(rng, window.t, 2).loss(window.t), []
    monkeypatch.setattr(fit, "rows", lambda inputs: made.append(inputs) or Fit.rows(fit, inputs))

    held = fit.gradient_of(window, loss=loss)
    once, made[:] = len(made), []
    monkeypatch.setattr(hypergradient, "HELD_ROWS", 0)
    again = fit.gradient_of(window, loss=loss)

    np.testing.assert_array_equal(again, held)
    assert len(made) == 2 * once


def test_residuals_of_two_errors_worked_by_hand():
    pulls = np.array([[0.0, 0.0, 0.5, 0.0]])
    trail = Trail.start(1)
    for step in (5, 8):
        trail = trail.after(step, pulls, np.array([1.0]))

    loss, residuals = trail.loss(np.array([5.0, 8.0])).of(np.array([[3.0], [7.0]]))

    # Issued errors are 2 and 6; the second was corrected by a mean of which the first is a part.
    keep = 0.5 ** (1 / 3)
    assert loss == pytest.approx(4 * np.sqrt(20))
    by_hand = np.array([[2 - 6 * 0.5 * (1 - keep) * keep**2], [6.0]]) / np.sqrt(20)
    np.testing.assert_allclose(residuals, by_hand)


def test_a_trail_begins_anew_at_a_refit():
    trail = a_trail(np.random.default_rng(0), range(20), 1)

    later = trail.since(15)

    assert later.steps.tolist() == [15, 16, 17, 18, 19]
    assert later.loss(np.array([14.0, 15.0])).told.tolist() == [0, 1]
    np.testing.assert_array_equal(later.loss(np.array([16.0])).pulls, trail.pulls[16:17])


def test_a_trail_is_not_longer_than_a_refit_may_be_late(monkeypatch):
    monkeypatch.setattr("streamridge.forecaster.issued.MOST", 6)

    assert a_trail(np.random.default_rng(0), range(20), 2).steps.tolist() == list(range(14, 20))


def test_a_forecaster_tells_how_it_corrects():
    rng = np.random.default_rng(1)
    forecaster = Forecaster("1h", train_size=60, warmup=60, seasons=())
    assert forecaster.correction == {"half_life": pytest.approx(2.12, abs=0.01), "share": 0.0}
    for i, value in enumerate(100 + np.cumsum(rng.standard_normal(150))):
        forecaster.observe(np.datetime64("2021-06-13T00", "h") + i, value)

    told = forecaster.correction

    assert HALF_LIVES[0] < told["half_life"] < HALF_LIVES[-1]
    assert 0 <= told["share"] <= 1
    assert Forecaster.paper("1h").correction == {}
