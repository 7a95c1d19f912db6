"""Forecasts of sensor streams by kernel ridge regression that tunes itself as they flow."""

from streamridge import datasets, tuners
from streamridge.errors import (
    FitError,
    InvalidInputError,
    MissingExtraError,
    NotPositiveDefiniteError,
    StateError,
    StreamRidgeError,
)
from streamridge.features.lags import Features
from streamridge.features.profiles import Profiles, Season
from streamridge.forecaster.forecast import Forecast
from streamridge.forecaster.forecaster import Forecaster
from streamridge.forecaster.many import predict_many
from streamridge.forecaster.presets import Preset
from streamridge.forecaster.recipes import register
from streamridge.forecaster.sizes import affordable
from streamridge.hyperparameters.box import Box
from streamridge.hyperparameters.coordinates import Chart
from streamridge.hyperparameters.feasible import Product
from streamridge.hyperparameters.simplex import Simplex
from streamridge.kernels.drifting import Drifting
from streamridge.kernels.linear import Linear
from streamridge.kernels.mixture import Mixture
from streamridge.kernels.periodic import Periodic
from streamridge.kernels.radial import ARD, Matern, SquaredExponential
from streamridge.kernels.remembering import Remembering
from streamridge.learners.base import Step, run
from streamridge.learners.lazy_descent import LazyDescent
from streamridge.learners.online import OnlineLearner
from streamridge.learners.regret import gradient_variation, local_regret, projected_gradient
from streamridge.learners.rolling import RollingLearner
from streamridge.learners.smoothed_leader import SmoothedLeader
from streamridge.learners.steps import (
    AdaGradStep,
    AgreementStep,
    ConstantStep,
    DiscountedStep,
)
from streamridge.learners.workspace import Workspace
from streamridge.models.autoregressive import AutoregressiveRidge
from streamridge.models.kernel_ridge import KernelRidge
from streamridge.models.nystrom import NystromRidge
from streamridge.models.standardized import Standardized
from streamridge.runs.compare import compare
from streamridge.runs.comparison import Comparison
from streamridge.runs.engines.dask import DaskEngine
from streamridge.runs.engines.local import LocalEngine
from streamridge.runs.replay import replay
from streamridge.runs.run import Run
from streamridge.samples import Inputs, Layout, Samples

__version__ = "0.1.0"

__all__ = [
    "ARD",
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
    "NotPositiveDefiniteError",
    "NystromRidge",
    "OnlineLearner",
    "Periodic",
    "Preset",
    "Product",
    "Profiles",
    "Remembering",
    "RollingLearner",
    "Run",
    "Samples",
    "Season",
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
    "gradient_variation",
    "local_regret",
    "predict_many",
    "projected_gradient",
    "register",
    "replay",
    "run",
    "tuners",
]
