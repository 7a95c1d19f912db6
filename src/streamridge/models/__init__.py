"""Models that learners fit and tune: kernel ridge regression and a linear filter."""
