"""Computes the experiments of the paper, and draws their figures."""
