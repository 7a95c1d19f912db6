"""Searches for hyperparameters on the past: the tuners that Algorithm 1 repeats."""

from streamridge.tuners.base import Tuned, Tuner
from streamridge.tuners.bayesian import Bayesian
from streamridge.tuners.candidates import Fixed, Grid, RandomSearch
from streamridge.tuners.hoag import HOAG

__all__ = ["HOAG", "Bayesian", "Fixed", "Grid", "RandomSearch", "Tuned", "Tuner"]
