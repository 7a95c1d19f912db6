"""Models that learners fit and tune: kernel ridge regression, a linear filter, and their contract."""
