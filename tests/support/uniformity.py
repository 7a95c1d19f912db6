"""A test of numbers drawn at random."""

import numpy as np
from scipy.special import kolmogorov


def p_value_of_uniform(shares):
    """Return the p-value of Kolmogorov's test that many shares are uniform between 0 and 1.

    It is the asymptotic one of `scipy.stats.kstest`, which takes half a second to import.
    """
    count = len(shares)
    shares, steps = np.sort(shares), np.arange(count + 1) / count
    distance = max((steps[1:] - shares).max(), (shares - steps[:-1]).max())
    return kolmogorov(np.sqrt(count) * distance)
