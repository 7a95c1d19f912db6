"""Which cases of a test are tried on every change, and which in the slow suite."""

from itertools import product

import pytest


def tiered(*axes, quick):
    """Return all combinations of some axes; those that are not `quick` belong to the slow suite.

    Parameters
    ----------
    axes
        The values of each parameter.
    quick
        Function of one combination: whether it is tried on every change.
    """
    return [
        pytest.param(*case, marks=() if quick(*case) else pytest.mark.slow)
        for case in product(*axes)
    ]


def each_horizon(*horizons):
    """Return the mark of a test that is tried with several numbers of steps ahead.

    Results for several steps hold for one as a rule; that they do is tried in the slow suite.
    """
    return pytest.mark.parametrize(
        "horizon", tiered(horizons, quick=lambda horizon: horizon == max(horizons))
    )
