"""Named groups of hyperparameters, the sets they may lie in, and the coordinates they move in."""
