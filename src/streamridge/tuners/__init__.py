"""Searches for hyperparameters on the past: the ways of tuning that Algorithm 1 repeats."""

from streamridge.tuners.base import Tuned, Tuner
from streamridge.tuners.bayesian import Bayesian
from streamridge.tuners.fixed import Fixed
from streamridge.tuners.grid import Grid
from streamridge.tuners.hoag import HOAG
from streamridge.tuners.random_search import RandomSearch

__all__ = ["HOAG", "Bayesian", "Fixed", "Grid", "RandomSearch", "Tuned", "Tuner"]
