"""Kernels: frozen values with named hyperparameters, and products with their gradients."""
