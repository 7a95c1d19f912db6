"""Forecasts of sensor streams by kernel ridge regression that tunes itself as they flow."""

from streamridge import datasets, tuners
from streamridge.errors import (
    FitError,
    FormerFormatError,
    InvalidInputError,
    MissingExtraError,
    NotPositiveDefiniteError,
    StateError,
    StreamRidgeError,
)
from streamridge.features.lags import Features
from streamridge.features.profiles import Profiles
from streamridge.features.seasons import Season
from streamridge.files.checkpoint import state_content
from streamridge.files.reading import ReadResult, read
from streamridge.files.reading_options import ReadingOptions
from streamridge.files.tables import open_table
from streamridge.forecaster.forecast import Forecast
from streamridge.forecaster.forecaster import Forecaster
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

__version__ = "0.1.0"

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
