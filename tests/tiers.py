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
