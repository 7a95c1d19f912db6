"""Ridge regression on landmarks: claims beyond the laws of every model."""

from dataclasses import replace

import numpy as np
import pytest

from streamridge import (
    Drifting,
    FitError,
    Forecaster,
    Inputs,
    InvalidInputError,
    KernelRidge,
    Linear,
    Matern,
    NystromRidge,
    Periodic,
    Remembering,
    Samples,
    SquaredExponential,
)
from streamridge.forecaster.presets import on_landmarks
from streamridge.models import landmarks, nystrom
from streamridge.models.landmarks import HALF_LIFE, chosen, drawn
from tests.support.samples import make_samples

SCALES = [0.3, 0.05, 0.7, 0.2, 0.4]
KERNELS = {
    "matern": Matern(SCALES, order=1.5),
    "periodic and matern": Periodic(7.3, period_bounds=(5, 9)) + Matern(SCALES),
    "drifting and linear": Drifting(Matern(SCALES, order=1.5), rate=0.01) + Linear(("lags",)),
    "remembering": Remembering(Matern(SCALES, order=1.5), rates=(0.01, 0.001)) + Linear(),
    "linear": Linear(),
}
every_kernel = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)


@every_kernel
@pytest.mark.parametrize("centered", [True, False])
def test_every_row_as_landmark_gives_kernel_ridge_regression(kernel, centered, rng):
    train = make_samples(rng, 150, horizon=3)
    window = make_samples(rng, 40, horizon=3, start=150.0)
    exact = KernelRidge(kernel, centered=centered).fit(train)
    whole = NystromRidge(kernel, centered=centered, landmarks=150).fit(train)

    np.testing.assert_allclose(
        whole.predict(window.inputs), exact.predict(window.inputs), rtol=1e-7, atol=1e-7
    )
    for one, other in zip(
        whole.loss_and_gradient(window), exact.loss_and_gradient(window), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6)


@every_kernel
def test_the_weights_solve_the_normal_equations_of_the_module(kernel, rng):
    train = make_samples(rng, 120)
    fit = NystromRidge(kernel, landmarks=25, regularization=0.5).fit(train)
    rows = fit.center.inputs(train.inputs)
    among = fit.ridge.kernel(rows[fit.places], rows[fit.places])
    against = fit.ridge.kernel(rows, rows[fit.places])
    wanted = np.linalg.lstsq(
        against.T @ against + 0.5 * among, against.T @ (train.y - fit.center.y), rcond=None
    )[0]

    np.testing.assert_allclose(against @ fit.theta, against @ wanted, rtol=1e-6, atol=1e-7)


def test_redundant_landmarks_are_left_out(rng):
    train = make_samples(rng, 90)

    fit = NystromRidge(Linear(), landmarks=60).fit(train)

    assert len(fit.places) == train.x.shape[1]


def test_identical_rows_have_one_landmark(rng):
    rows = make_samples(rng, 40)
    same = Inputs(rows.t, np.broadcast_to(rows.x[0], rows.x.shape), rows.inputs.layout)

    fit = NystromRidge(Matern(SCALES, order=1.5), landmarks=20).fit(Samples(same, rows.y))

    assert len(fit.places) == 1
    assert np.isfinite(fit.predict(same)).all()


def test_rows_with_a_kernel_of_zero_are_forecast_by_their_mean(rng):
    rows = make_samples(rng, 40)
    same = Inputs(rows.t, np.ones_like(rows.x), rows.inputs.layout)
    train = Samples(same, rows.y)
    for samples in (train, train[:1]):
        fit = NystromRidge(Linear(), landmarks=20).fit(samples)

        expected = KernelRidge(Linear()).fit(samples)
        np.testing.assert_allclose(fit.predict(same), expected.predict(same))
        assert fit.predict(same[:1]).shape == (1, 1)
        assert np.isfinite(fit.predict_with_spread(same)[1]).all()
        assert np.isfinite(fit.loss_and_gradient(train)[1]).all()


@pytest.mark.parametrize("kernel", [Linear(), Matern(0.3), SquaredExponential()], ids=str)
def test_rows_that_overflow_have_no_fit(kernel, rng):
    rows = make_samples(rng, 40)
    huge = Inputs(rows.t, 1e200 * rows.x, rows.inputs.layout)

    with np.errstate(all="ignore"), pytest.raises(FitError):
        NystromRidge(kernel, landmarks=20).fit(Samples(huge, rows.y))


def test_a_kernel_too_large_to_keep_has_the_same_gradients(rng, monkeypatch):
    train, window = make_samples(rng, 500), make_samples(rng, 30, start=500.0)
    model = NystromRidge(KERNELS["remembering"], landmarks=60)
    held = model.fit(train)
    expected = held.loss_and_gradient(window)[1], held.step_gradients(window)
    monkeypatch.setattr(nystrom, "HELD", 0)

    fit = model.fit(train)

    np.testing.assert_array_equal(fit.loss_and_gradient(window)[1], expected[0])
    np.testing.assert_array_equal(fit.step_gradients(window), expected[1])


def test_more_landmarks_come_closer_to_the_exact_fit(rng):
    train, window = make_samples(rng, 300), make_samples(rng, 50, start=300.0)
    kernel = Matern([0.3] * 5, order=1.5)
    exact = KernelRidge(kernel).fit(train).predict(window.inputs)

    far = [
        np.abs(NystromRidge(kernel, landmarks=m).fit(train).predict(window.inputs) - exact).max()
        for m in (10, 40, 150, 300)
    ]

    assert far == sorted(far, reverse=True)
    assert far[-1] < 1e-8 < far[0]


@pytest.mark.parametrize("rows", [1, 7, 96, 2880])
@pytest.mark.parametrize("count", [1, 5, 250])
def test_the_number_of_candidates_is_limited_by_the_rows(rows, count):
    places = drawn(np.arange(float(rows)), count)

    assert len(np.unique(places)) == min(rows, count)


@pytest.mark.parametrize("since", [0.0, 96.0, 12_345.0, 1e7])
def test_candidates_come_from_every_hour_of_the_day_and_every_week(since):
    t = since + np.arange(2880.0)

    places = drawn(t, 250, HALF_LIFE)

    assert np.bincount(places % 96 // 4, minlength=24).min() >= 3
    of_weeks = np.bincount((2879 - places) // 672, minlength=5)[:4]
    assert of_weeks.tolist() == sorted(of_weeks, reverse=True)
    assert of_weeks.min() >= 15


def test_a_row_stays_a_candidate_while_the_training_set_moves_on():
    t = np.arange(2976.0)

    before, after = (times[drawn(times, 250, HALF_LIFE)] for times in (t[:2880], t[96:]))

    assert len(np.intersect1d(before, after)) >= 0.9 * 250


def explained_least(K, candidates, count, taken=()):
    """Return the least explained candidates, one after the other."""
    taken = list(taken)
    before = len(taken)
    for _ in range(count):
        left = np.diagonal(K) - (
            np.sum(K[:, taken] * np.linalg.solve(K[np.ix_(taken, taken)], K[taken]).T, axis=1)
            if taken
            else 0.0
        )
        taken.append(max(candidates, key=lambda each, left=left: left[each]))
    return taken[before:]


def test_landmarks_are_the_candidates_that_others_explain_least(rng, monkeypatch):
    monkeypatch.setattr(landmarks, "BATCH", 30)
    kernel, rows = Matern(SCALES, order=1.5), make_samples(rng, 90)
    embedding = kernel.embed(rows.inputs)
    K = kernel.evaluate(embedding, embedding).value
    expected = []
    for batch in (range(30), range(30, 60), range(60, 90)):
        expected += explained_least(K, batch, 5, expected)

    assert chosen(kernel, embedding, 15).tolist() == expected


def crowd(samples):
    """Return samples with three quarters of them close together."""
    scale = np.where(np.arange(len(samples)) % 4, 0.1, 1.0)[:, None]
    inputs = Inputs(samples.t, scale * samples.x, samples.inputs.layout)
    return Samples(inputs, np.sin(inputs.x.sum(axis=1, keepdims=True)))


def test_chosen_landmarks_come_closer_to_the_exact_fit_than_drawn_ones(rng, monkeypatch):
    crowded = [crowd(make_samples(rng, n, start=start)) for n, start in ((400, 0.0), (60, 400.0))]
    train, window = crowded
    kernel = Matern([0.3] * 5, order=1.5)
    exact = KernelRidge(kernel).fit(train).predict(window.inputs)

    def far():
        fit = NystromRidge(kernel, landmarks=50).fit(train)
        return np.sqrt(np.mean((fit.predict(window.inputs) - exact) ** 2))

    of_many = far()
    monkeypatch.setattr(nystrom, "CANDIDATES", 1)

    assert of_many < 0.9 * far()


def test_a_thinned_model_takes_the_landmarks_of_another_fit(rng):
    train, model = make_samples(rng, 200), NystromRidge(KERNELS["matern"], landmarks=40)
    whole = model.fit(train)
    times, part = train.t[whole.places], train[np.sort(drawn(train.t, 100))]
    shared = np.flatnonzero(np.isin(part.t, times))

    fit = model.thinned(1, times).fit(part)
    fewer = model.thinned(8, times).fit(part)
    others = model.thinned(2, times + 0.5).fit(part)

    assert 5 < len(shared) < 40
    np.testing.assert_array_equal(fit.places, shared)
    assert len(fewer.places) == 5
    assert set(fewer.places) < set(shared)
    np.testing.assert_array_equal(others.places, replace(model, landmarks=20).fit(part).places)


@pytest.mark.parametrize("landmarks", [0, -3, 2.5, "many"])
def test_bad_numbers_of_landmarks_are_refused(landmarks):
    with pytest.raises(InvalidInputError, match="landmarks must be a whole number"):
        NystromRidge(Linear(), landmarks=landmarks)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"landmarks": np.array([0, 500])}, "landmarks must be rows of the samples"),
        ({"weights": np.ones((3, 1))}, "weights must have shape"),
        ({"weights": np.full((20, 1), np.nan)}, "weights must be finite"),
        ({"landmarks": np.zeros(20, int)}, "landmarks must be rows of the samples"),
        (
            {"spread_weights": np.ones((20, 1)), "spread_range": np.ones((4, 1))},
            "spread_range must have shape",
        ),
    ],
)
def test_states_of_the_wrong_shape_are_refused(changed, message, rng):
    train, model = make_samples(rng, 60), NystromRidge(KERNELS["matern"], landmarks=20)
    state = dict(model.fit(train).state()) | changed

    with pytest.raises(InvalidInputError, match=message):
        model.resume(train, model.space.values, state)


def lived(model, train_size, steps):
    """Return a forecaster that has observed a daily wave, with its state."""
    values = 100 + 50 * np.sin(2 * np.pi * np.arange(steps) / 96)
    values += np.random.default_rng(0).normal(0, 5, steps)
    forecaster = Forecaster("15min", model=model, train_size=train_size, update_every=48)
    feed(forecaster, values)
    return forecaster, forecaster.to_bytes(), values


def feed(forecaster, values, first=0):
    """Return the forecasts that a forecaster makes before each reading."""
    forecasts = []
    for step, value in enumerate(values, start=first):
        forecasts.append(forecaster.predict().value)
        forecaster.observe(np.datetime64("2026-06-01") + np.timedelta64(15 * step, "m"), value)
    return forecasts


@pytest.mark.parametrize("model", ["compact", pytest.param("default", marks=pytest.mark.slow)])
def test_a_forecaster_of_any_size_continues_bit_for_bit(model):
    forecaster, content, values = lived(model, 300, 96 * 4)
    again = Forecaster.from_bytes(content)

    later = values[:110]  # two windows and more

    np.testing.assert_array_equal(
        feed(again, later, len(values)), feed(forecaster, later, len(values))
    )
    assert forecaster.predict().source == "model"


@pytest.mark.slow
def test_a_compact_forecaster_is_smaller():
    default, compact = (len(lived(model, 480, 96 * 6)[1]) for model in ("default", "compact"))

    assert compact < default, "few landmarks instead of 480 rows"


def test_only_kernel_ridge_regression_can_use_landmarks():
    preset = Forecaster(model="compact").settings.preset

    with pytest.raises(InvalidInputError, match="preset must have a standardized kernel ridge"):
        on_landmarks(preset, 100)
