"""Simulated series: the synthetic series of the paper, and road traffic."""

from streamridge.datasets.roads import Roads, simulate_roads
from streamridge.datasets.synthetic import drifting_series, synthetic_series

__all__ = ["Roads", "drifting_series", "simulate_roads", "synthetic_series"]
