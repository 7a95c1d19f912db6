"""Kernels: frozen values with named hyperparameters, a value and the products of its gradient."""
