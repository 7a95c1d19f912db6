"""`MultipleKernelRidge`, a batch regressor of scikit-learn with the kernels of this library."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from streamridge.errors import InvalidInputError, listed, missing_library, shown
from streamridge.hyperparameters.feasible import Coordinates
from streamridge.hyperparameters.space import Bounds
from streamridge.kernels.base import Kernel
from streamridge.kernels.drifting import Forgetting
from streamridge.kernels.linear import Linear
from streamridge.kernels.mixture import Mixture
from streamridge.kernels.periodic import Periodic
from streamridge.kernels.radial import SquaredExponential
from streamridge.models.kernel_ridge import KernelRidge
from streamridge.samples import Inputs, Layout, Samples
from streamridge.tuners.base import Backtest
from streamridge.tuners.hoag import HOAG

try:
    from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError as error:
    raise missing_library("scikit-learn", error) from error


class MultipleKernelRidge(MultiOutputMixin, RegressorMixin, BaseEstimator):
    """Ridge regression with a sum of kernels, whose hyperparameters can be tuned by gradients.

    Parameters
    ----------
    kernel
        A kernel of this library, or a sum of several. Its values are the initial hyperparameters,
        and its bounds limit the tuning. A kernel with `features` reads these columns only, by their
        names in the frame, or "x0", "x1" and so on in an array. The default is
        `SquaredExponential(1 / n_features) + Linear()`.
    regularization, regularization_bounds
        The initial ridge constant, and the interval in which it is tuned; None keeps it constant.
    time_column
        The name or number of the column of X that holds the times, for `Periodic`, `Drifting` and
        `Remembering`. Other kernels do not read it. Rows are put in the order of their times; by
        default they are in the order of time already.
    tune
        True tunes the hyperparameters before the fit: the model is fitted to the earlier rows, and
        hyperparameters descend the gradient of its squared error on the latest rows.
    validation_fraction
        The share of the rows, the latest ones, on which this error is measured.
    iterations
        The largest number of steps of this descent.
    coordinates
        "log" descends in logarithms. "natural" is better if a period is tuned.

    Attributes
    ----------
    kernel_, regularization_
        The kernel and the ridge constant at the fitted hyperparameters.
    hyperparameters_
        All hyperparameters by name.
    validation_error_
        The mean squared error on the latest rows, after tuning; only with `tune`.

    Examples
    --------
    >>> x = np.random.default_rng(0).uniform(0, 6, (80, 1))
    >>> model = MultipleKernelRidge(tune=True).fit(x, np.sin(3 * x[:, 0]))
    >>> model.predict([[1.0], [2.0]]).round(2), np.sin([3.0, 6.0]).round(2)
    (array([ 0.14, -0.28]), array([ 0.14, -0.28]))
    """

    def __init__(
        self,
        kernel: Kernel | None = None,
        *,
        regularization: float = 0.3,
        regularization_bounds: Bounds = (1e-3, 1e2),
        time_column: str | int | None = None,
        tune: bool = False,
        validation_fraction: float = 0.2,
        iterations: int = 100,
        coordinates: Coordinates = "log",
    ) -> None:
        self.kernel = kernel
        self.regularization = regularization
        self.regularization_bounds = regularization_bounds
        self.time_column = time_column
        self.tune = tune
        self.validation_fraction = validation_fraction
        self.iterations = iterations
        self.coordinates = coordinates

    def fit(self, X: Any, y: Any) -> Self:
        """Return the estimator, tuned if `tune` is set, and fitted to all rows.

        Notes
        -----
        Cost: one Cholesky factorization, N^3 / 3 multiplications. Each step of the tuning solves
        two systems by conjugate gradients, which start from the solutions of the step before.
        """
        rows, targets = validate_data(
            self, X, y, dtype=np.float64, multi_output=True, y_numeric=True
        )
        self._is_flat = targets.ndim == 1
        self._names = getattr(self, "feature_names_in_", _numbered(rows.shape[1]))
        inputs = self._inputs(rows)
        order = np.argsort(inputs.t, kind="stable")
        samples = Samples(inputs, np.asarray(targets.reshape(len(rows), -1), np.float64))[order]
        model = KernelRidge(self._kernel(samples), self.regularization, self.regularization_bounds)
        self.__dict__.pop("validation_error_", None)  # of an earlier fit
        lam = self._tuned(model, samples) if self.tune else model.space.values
        fit = model.fit(samples, lam)
        fit.release()
        self._fit = fit
        self.kernel_, self.regularization_ = fit.ridge.kernel, fit.ridge.regularization
        self.hyperparameters_ = model.space.named(lam)
        return self

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Return the predictions, (n,) or (n, outputs) like the targets of `fit`."""
        check_is_fitted(self)
        rows = validate_data(self, X, dtype=np.float64, reset=False)
        predicted = self._fit.predict(self._inputs(rows))
        return predicted[:, 0] if self._is_flat else predicted

    def _inputs(self, rows: NDArray[np.float64]) -> Inputs:
        """Return rows with their times, and the other columns as blocks of their names."""
        names = [str(name) for name in self._names]
        if self.time_column is None:
            times = np.arange(len(rows), dtype=np.float64)
        else:
            at = self._place(self.time_column, names)
            times, rows = rows[:, at], np.delete(rows, at, axis=1)
            del names[at]
        return Inputs(times, rows, Layout(tuple((name, 1) for name in names)))

    def _place(self, column: str | int, names: Sequence[str]) -> int:
        if isinstance(column, str) and column in names:
            return names.index(column)
        if isinstance(column, int | np.integer) and 0 <= column < len(names):
            return int(column)
        raise InvalidInputError(
            f"time_column must be a column of X, {listed(names)}, or its number, got "
            f"{shown(column)}."
        )

    def _kernel(self, samples: Samples) -> Kernel:
        """Return the kernel; raise unless it can read the columns of the samples."""
        kernel = self.kernel
        if kernel is None:
            kernel = SquaredExponential(1 / max(samples.x.shape[1], 1)) + Linear()
        if not isinstance(kernel, Kernel):
            raise InvalidInputError(
                f"kernel must be a kernel of streamridge, or None, got {shown(kernel)}."
            )
        if self.time_column is None and _reads_time(kernel):
            raise InvalidInputError(
                f"time_column must be given for a kernel of the time, got None with {kernel!r}."
            )
        kernel.embed(samples.inputs[:1])
        return kernel

    def _tuned(self, model: KernelRidge, samples: Samples) -> NDArray[np.float64]:
        """Return the hyperparameters with which a fit to earlier rows predicts the latest best."""
        share = self.validation_fraction
        is_share = isinstance(share, int | float | np.number) and 0 < share < 1
        latest = round(float(share) * len(samples)) if is_share else 0
        if not 1 <= latest < len(samples):
            raise InvalidInputError(
                "validation_fraction must leave rows to fit and rows to predict, got "
                f"{shown(share)} of n_samples = {len(samples)}."
            )
        backtest = Backtest(model, samples[:-latest], samples[-latest:])
        tuner = HOAG(iterations=self.iterations, coordinates=self.coordinates)
        tuned = tuner.tune(backtest, model.space.values, np.random.default_rng(0))
        self.validation_error_ = tuned.loss / samples.y.shape[1]
        return tuned.lam


def _numbered(width: int) -> list[str]:
    return [f"x{at}" for at in range(width)]


def _reads_time(kernel: Kernel) -> bool:
    if isinstance(kernel, Mixture):
        return any(map(_reads_time, kernel.kernels))
    return isinstance(kernel, Periodic | Forgetting)
