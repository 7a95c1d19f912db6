"""The forecaster that users work with, and its parts."""
