"""`MultipleKernelRidge`: the checks of scikit-learn, every kernel, tuning, and bad input."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import streamridge as sr
from streamridge.adapters.sklearn import MultipleKernelRidge

KERNELS = {
    "squared exponential": sr.SquaredExponential(0.5),
    "ard": sr.ARD((0.5, 0.1, 0.2)),
    "matern": sr.Matern(0.5),
    "linear": sr.Linear(),
    "periodic": sr.Periodic(24.0),
    "drifting": sr.Drifting(sr.SquaredExponential(0.5)),
    "remembering": sr.Remembering(sr.SquaredExponential(0.5)),
    "mixture": sr.SquaredExponential(0.5) + sr.Linear() + sr.Periodic(24.0),
}


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(200, 3)), columns=["a", "b", "c"])
    return frame.assign(hour=np.arange(200.0))


@pytest.fixture(scope="module")
def target(frame) -> np.ndarray:
    noise = np.random.default_rng(1).normal(0, 0.1, len(frame))
    return np.asarray(np.sin(2 * frame["a"]) + 0.5 * frame["b"]) + noise


# No check fails, so no failure is expected. scikit-learn skips its check of array API input
# unless SCIPY_ARRAY_API is set.
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(
    [MultipleKernelRidge(), MultipleKernelRidge(tune=True, iterations=3)],
    expected_failed_checks=lambda estimator: {},
)
def test_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize("name", KERNELS)
def test_every_kernel_fits_and_predicts_the_closed_form(name, frame, target):
    kernel = KERNELS[name]
    model = MultipleKernelRidge(kernel, regularization=0.5, time_column="hour")

    predicted = model.fit(frame[:150], target[:150]).predict(frame[150:])

    X, t = frame[["a", "b", "c"]].to_numpy(), frame["hour"].to_numpy()
    X = X - X[:150].mean(axis=0)
    past, later = sr.Inputs.of(t[:150], X[:150]), sr.Inputs.of(t[150:], X[150:])
    mean = target[:150].mean()
    dual = np.linalg.solve(kernel(past, past) + 0.5 * np.eye(150), target[:150] - mean)
    np.testing.assert_allclose(predicted, kernel(later, past) @ dual + mean, rtol=1e-8)


def test_one_kernel_equals_kernel_ridge_of_scikit_learn(frame, target):
    X, y = frame[["a", "b"]], target - target.mean()
    X = X - X.mean()

    ours = MultipleKernelRidge(sr.SquaredExponential(0.7), regularization=0.2).fit(X, y).predict(X)

    theirs = KernelRidge(alpha=0.2, kernel="rbf", gamma=0.7).fit(X, y).predict(X)
    np.testing.assert_allclose(ours, theirs, rtol=1e-8)


@pytest.mark.parametrize("name", KERNELS)
def test_tuning_lowers_the_error_on_the_latest_rows(name, frame, target):
    model = MultipleKernelRidge(KERNELS[name], time_column="hour", tune=True).fit(frame, target)

    fixed = MultipleKernelRidge(KERNELS[name], time_column="hour").fit(frame[:160], target[:160])
    before = np.mean((fixed.predict(frame[160:]) - target[160:]) ** 2)
    tuned = MultipleKernelRidge(
        model.kernel_, regularization=model.regularization_, time_column="hour"
    )
    after = np.mean((tuned.fit(frame[:160], target[:160]).predict(frame[160:]) - target[160:]) ** 2)
    assert after < before
    np.testing.assert_allclose(model.validation_error_, after, rtol=1e-6)


def test_tuning_finds_the_column_that_matters(frame, target):
    kernel = sr.SquaredExponential(0.5, features=("a", "b")) + sr.SquaredExponential(
        0.5, features=("c",)
    )

    model = MultipleKernelRidge(kernel, time_column="hour", tune=True).fit(frame, target)

    weights = [value for name, value in model.hyperparameters_.items() if name.startswith("weight")]
    assert weights[0] > 0.9


def test_rows_are_validated_in_the_order_of_time(frame, target):
    order = np.random.default_rng(2).permutation(len(frame))
    model = MultipleKernelRidge(KERNELS["mixture"], time_column="hour", tune=True)

    sorted_rows = clone(model).fit(frame, target)
    shuffled = clone(model).fit(frame.iloc[order], target[order])

    np.testing.assert_allclose(shuffled.predict(frame), sorted_rows.predict(frame))


def test_a_fit_without_tuning_has_no_validation_error(frame, target):
    model = MultipleKernelRidge(tune=True, iterations=2).fit(frame, target)

    model.set_params(tune=False).fit(frame, target)

    assert not hasattr(model, "validation_error_")


def test_it_works_in_pipelines_searches_and_with_frames_as_output(frame, target):
    pipeline = make_pipeline(StandardScaler(), MultipleKernelRidge()).set_output(transform="pandas")
    search = GridSearchCV(
        pipeline,
        {"multiplekernelridge__kernel": [sr.Linear(), sr.SquaredExponential(0.3)]},
        cv=TimeSeriesSplit(3),
    )

    search.fit(frame[["a", "b", "c"]], target)

    assert search.best_params_ == {"multiplekernelridge__kernel": sr.SquaredExponential(0.3)}
    fitted = search.best_estimator_[-1]
    assert list(fitted.feature_names_in_) == ["a", "b", "c"]
    assert search.score(frame[["a", "b", "c"]], target) > 0.9


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kernel": "rbf"}, "kernel must be a kernel of streamridge, or None, got 'rbf'"),
        ({"kernel": sr.Periodic(24.0)}, "time_column must be given for a kernel of the time"),
        ({"kernel": sr.Linear(features=("z",))}, "features must be among 'a', 'b', 'c', 'hour'"),
        ({"time_column": "day"}, "time_column must be a column of X, 'a', 'b', 'c', 'hour'"),
        ({"regularization": -1.0}, "regularization"),
        ({"tune": True, "validation_fraction": 1.5}, "validation_fraction must leave rows to fit"),
        ({"tune": True, "validation_fraction": "a"}, "rows to predict, got 'a' of n_samples = 200"),
        ({"tune": True, "iterations": 0}, "iterations must be a whole number of at least 1"),
    ],
)
def test_bad_settings_are_value_errors(settings, message, frame, target):
    with pytest.raises(ValueError, match=message):
        MultipleKernelRidge(**settings).fit(frame, target)
