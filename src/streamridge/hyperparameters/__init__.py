"""Named groups of hyperparameters, their feasible sets, and the coordinates they move in."""
