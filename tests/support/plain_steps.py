"""The step rules once more: each move worked out anew from all gradients before it."""

import numpy as np

from streamridge import AdaGradStep, AgreementStep, ConstantStep, DiscountedStep


def displacement(rule, gradients):
    """Return what a rule subtracts after these mean gradients, the last of which is the newest."""
    columns = np.transpose(gradients)
    return np.array([MOVES[type(rule)](rule, column.tolist()) for column in columns])


def constant(rule, column):
    return rule.learning_rate * column[-1]


def adagrad(rule, column):
    total = sum(g**2 for g in column)
    return rule.learning_rate * column[-1] / np.sqrt(total) if total else 0.0


def discounted(rule, column):
    return rule.size * in_units(column, rule.memory)[-1]


def agreeing(rule, column):
    mean = growth = 0.0
    for u in in_units(column, rule.memory):
        growth = (1 - 1 / rule.memory) * growth + 0.3 * min(max(u * mean, -1), 1)
        growth = min(max(growth, -np.log(10)), np.log(10))
        mean = 0.8 * mean + 0.2 * u
    return rule.size * np.exp(growth) * u


def in_units(column, memory):
    """Return gradients over their usual size of late; what is beyond three times that is cut off.

    The usual size is the root of a weighted mean of squares. A gradient is cut off by the usual
    size of those before it, and divided by that of all up to itself.
    """
    kept, measured = [], []
    for g in column:
        usual = usual_size(kept, memory)
        kept.append(min(max(g, -3 * usual), 3 * usual) if usual else g)
        measured.append(kept[-1] / (usual_size(kept, memory) or 1.0))
    return measured


def usual_size(kept, memory):
    weights = [(1 - 1 / memory) ** age for age in range(len(kept))][::-1]
    squares = sum(weight * g**2 for weight, g in zip(weights, kept, strict=True))
    return np.sqrt(squares / sum(weights)) if kept else 0.0


MOVES = {
    ConstantStep: constant,
    AdaGradStep: adagrad,
    DiscountedStep: discounted,
    AgreementStep: agreeing,
}
