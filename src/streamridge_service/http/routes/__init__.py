"""The routes, a file for each topic."""
