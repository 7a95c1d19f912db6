"""Forecasts of sensor streams by kernel ridge regression that tunes itself as they flow."""

from importlib import import_module
from typing import TYPE_CHECKING

from streamridge.errors import (
    FitError,
    FormerFormatError,
    InvalidInputError,
    MissingExtraError,
    NotPositiveDefiniteError,
    StateError,
    StreamRidgeError,
)

if TYPE_CHECKING:
    from streamridge import datasets, tuners
    from streamridge.features.lags import Features
    from streamridge.features.profiles import Profiles
    from streamridge.features.seasons import Season
    from streamridge.files.checkpoint import state_content
    from streamridge.files.reading import ReadResult, read
    from streamridge.files.reading_options import ReadingOptions
    from streamridge.files.tables import open_table
    from streamridge.forecaster.forecast import Forecast
    from streamridge.forecaster.forecaster import Forecaster
    from streamridge.forecaster.neighbours import Neighbours
    from streamridge.forecaster.network import Network
    from streamridge.forecaster.presets import Preset
    from streamridge.forecaster.relevance import Relevance
    from streamridge.forecaster.saving import register
    from streamridge.forecaster.settings import LARGEST_VALUE, Settings
    from streamridge.forecaster.sizes import affordable
    from streamridge.hyperparameters.feasible import Chart, Product
    from streamridge.hyperparameters.sets import Box, Simplex
    from streamridge.kernels.drifting import Drifting, Remembering
    from streamridge.kernels.linear import Linear
    from streamridge.kernels.mixture import Mixture
    from streamridge.kernels.periodic import Periodic
    from streamridge.kernels.radial import ARD, Matern, SquaredExponential
    from streamridge.learners.base import Step, run
    from streamridge.learners.lazy_descent import (
        AdaGradStep,
        AgreementStep,
        ConstantStep,
        DiscountedStep,
        LazyDescent,
    )
    from streamridge.learners.online import OnlineLearner
    from streamridge.learners.regret import (
        SmoothedLeader,
        gradient_variation,
        local_regret,
        projected_gradient,
    )
    from streamridge.learners.rolling import RollingLearner
    from streamridge.learners.workspace import Workspace
    from streamridge.models.autoregressive import AutoregressiveRidge
    from streamridge.models.kernel_ridge import KernelRidge
    from streamridge.models.nystrom import NystromRidge
    from streamridge.models.standardized import Standardized
    from streamridge.runs.compare import Comparison, compare
    from streamridge.runs.dask_engine import DaskEngine
    from streamridge.runs.engines import LocalEngine
    from streamridge.runs.next_steps import forecast
    from streamridge.runs.replay import replay
    from streamridge.runs.run import Run
    from streamridge.samples import Inputs, Layout, Samples
    from streamridge.series.grid import series_from_arrays
    from streamridge.series.lengths import parse_length, step_name
    from streamridge.series.series import Series

__version__ = "0.2.0"

__all__ = [
    "ARD",
    "LARGEST_VALUE",
    "AdaGradStep",
    "AgreementStep",
    "AutoregressiveRidge",
    "Box",
    "Chart",
    "Comparison",
    "ConstantStep",
    "DaskEngine",
    "DiscountedStep",
    "Drifting",
    "Features",
    "FitError",
    "Forecast",
    "Forecaster",
    "FormerFormatError",
    "Inputs",
    "InvalidInputError",
    "KernelRidge",
    "Layout",
    "LazyDescent",
    "Linear",
    "LocalEngine",
    "Matern",
    "MissingExtraError",
    "Mixture",
    "Neighbours",
    "Network",
    "NotPositiveDefiniteError",
    "NystromRidge",
    "OnlineLearner",
    "Periodic",
    "Preset",
    "Product",
    "Profiles",
    "ReadResult",
    "ReadingOptions",
    "Relevance",
    "Remembering",
    "RollingLearner",
    "Run",
    "Samples",
    "Season",
    "Series",
    "Settings",
    "Simplex",
    "SmoothedLeader",
    "SquaredExponential",
    "Standardized",
    "StateError",
    "Step",
    "StreamRidgeError",
    "Workspace",
    "affordable",
    "compare",
    "datasets",
    "forecast",
    "gradient_variation",
    "local_regret",
    "open_table",
    "parse_length",
    "projected_gradient",
    "read",
    "register",
    "replay",
    "run",
    "series_from_arrays",
    "state_content",
    "step_name",
    "tuners",
]

# A module is imported when one of its names is first used. All modules together, with SciPy, take
# half a second.
_PACKAGES = ("datasets", "tuners")
_NAMES = {
    "features.lags": "Features",
    "features.profiles": "Profiles",
    "features.seasons": "Season",
    "files.checkpoint": "state_content",
    "files.reading": "ReadResult read",
    "files.reading_options": "ReadingOptions",
    "files.tables": "open_table",
    "forecaster.forecast": "Forecast",
    "forecaster.forecaster": "Forecaster",
    "forecaster.neighbours": "Neighbours",
    "forecaster.network": "Network",
    "forecaster.presets": "Preset",
    "forecaster.relevance": "Relevance",
    "forecaster.saving": "register",
    "forecaster.settings": "LARGEST_VALUE Settings",
    "forecaster.sizes": "affordable",
    "hyperparameters.feasible": "Chart Product",
    "hyperparameters.sets": "Box Simplex",
    "kernels.drifting": "Drifting Remembering",
    "kernels.linear": "Linear",
    "kernels.mixture": "Mixture",
    "kernels.periodic": "Periodic",
    "kernels.radial": "ARD Matern SquaredExponential",
    "learners.base": "Step run",
    "learners.lazy_descent": "AdaGradStep AgreementStep ConstantStep DiscountedStep LazyDescent",
    "learners.online": "OnlineLearner",
    "learners.regret": "SmoothedLeader gradient_variation local_regret projected_gradient",
    "learners.rolling": "RollingLearner",
    "learners.workspace": "Workspace",
    "models.autoregressive": "AutoregressiveRidge",
    "models.kernel_ridge": "KernelRidge",
    "models.nystrom": "NystromRidge",
    "models.standardized": "Standardized",
    "runs.compare": "Comparison compare",
    "runs.dask_engine": "DaskEngine",
    "runs.engines": "LocalEngine",
    "runs.next_steps": "forecast",
    "runs.replay": "replay",
    "runs.run": "Run",
    "samples": "Inputs Layout Samples",
    "series.grid": "series_from_arrays",
    "series.lengths": "parse_length step_name",
    "series.series": "Series",
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names.split()}


if not TYPE_CHECKING:  # a type checker would accept any name

    def __getattr__(name):
        """Import a public name at its first use."""
        if name in _PACKAGES:
            return import_module(f"{__name__}.{name}")
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module = import_module(f"{__name__}.{_MODULES[name]}")
        globals()[name] = getattr(module, name)
        return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
