"""Forecasts of sensor streams by kernel ridge regression that tunes itself as they flow."""

from streamridge import datasets, tuners
from streamridge.compare import Comparison, compare
from streamridge.errors import (
    InvalidInputError,
    NotPositiveDefiniteError,
    StateError,
    StreamRidgeError,
)
from streamridge.feasible import Box, Chart, Product, Simplex
from streamridge.forecast import Forecast
from streamridge.forecaster import Forecaster
from streamridge.kernels.drifting import Drifting
from streamridge.kernels.linear import Linear
from streamridge.kernels.mixture import Mixture
from streamridge.kernels.periodic import Periodic
from streamridge.kernels.radial import ARD, Matern, SquaredExponential
from streamridge.lazy_descent import AdaGradStep, ConstantStep, LazyDescent
from streamridge.models.autoregressive import AutoregressiveRidge
from streamridge.models.kernel_ridge import KernelRidge
from streamridge.models.standardized import Standardized
from streamridge.ohl import OnlineLearner
from streamridge.presets import Preset
from streamridge.protocols.base import Step, run
from streamridge.protocols.rolling import RollingLearner
from streamridge.regret import gradient_variation, local_regret, projected_gradient
from streamridge.replay import replay
from streamridge.runs import Run
from streamridge.samples import Inputs, Layout, Samples
from streamridge.smoothed_leader import SmoothedLeader
from streamridge.streams.features import Features
from streamridge.streams.profiles import Profiles

__version__ = "0.1.0"

__all__ = [
    "ARD",
    "AdaGradStep",
    "AutoregressiveRidge",
    "Box",
    "Chart",
    "Comparison",
    "ConstantStep",
    "Drifting",
    "Features",
    "Forecast",
    "Forecaster",
    "Inputs",
    "InvalidInputError",
    "KernelRidge",
    "Layout",
    "LazyDescent",
    "Linear",
    "Matern",
    "Mixture",
    "NotPositiveDefiniteError",
    "OnlineLearner",
    "Periodic",
    "Preset",
    "Product",
    "Profiles",
    "RollingLearner",
    "Run",
    "Samples",
    "Simplex",
    "SmoothedLeader",
    "SquaredExponential",
    "Standardized",
    "StateError",
    "Step",
    "StreamRidgeError",
    "compare",
    "datasets",
    "gradient_variation",
    "local_regret",
    "projected_gradient",
    "replay",
    "run",
    "tuners",
]
