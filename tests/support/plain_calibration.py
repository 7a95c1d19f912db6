"""What a forecaster learns of its errors once more: candidate by candidate, number by number."""

import math

import numpy as np

# Errors older than this are faded from every mean: half a trillionth of one is left.
FADED = 240


def mean_of(said, half_life):
    """Return the mean of the one-step errors so far, zero where there was none."""
    keep = 0.5 ** (1 / half_life)
    mean = 0.0
    for error in said[-FADED:]:
        mean = keep * mean + (1 - keep) * error
    return mean


class Candidate:
    """A correction of one half-life, whose share has one memory, for one horizon."""

    def __init__(self, half_life, memory):
        self.half_life, self.fade = half_life, 1 - 1 / memory
        self.products = self.squares = self.loss = 0.0

    def share(self, variance):
        evidence = self.squares + 10 * variance
        return min(max(self.products / evidence, 0.0), 1.0) if evidence > 0 else 0.0

    def learn(self, error, mean, variance):
        self.loss = (1 - 1 / 96) * self.loss + (error - self.share(variance) * mean) ** 2
        self.products = self.fade * self.products + error * mean
        self.squares = self.fade * self.squares + mean * mean


class PlainCorrection:
    """The candidates of one horizon, weighed by the squared errors that they have left."""

    half_lives = (0.75, 1.5, 3, 6)

    def __init__(self):
        self.candidates = [
            Candidate(half_life, memory)
            for memory in (32, 96, 288)
            for half_life in self.half_lives
        ]
        self.count, self.variance = 0.0, 0.0

    def learn(self, error, means):
        """Learn from an error, given the means by half-life when its forecast was made."""
        for candidate in self.candidates:
            candidate.learn(error, means[candidate.half_life], self.variance)
        self.count = (1 - 1 / 96) * self.count + 1
        seen = self.variance > 0
        self.variance = 0.995 * self.variance + 0.005 * error**2 if seen else error**2

    def pulls(self):
        """Return the share of the mean of each half-life that is added to a forecast."""
        least = min(candidate.loss for candidate in self.candidates)
        ratios = [least / each.loss if each.loss > 0 else 1.0 for each in self.candidates]
        weights = [ratio ** (self.count / 2) for ratio in ratios]
        pulls = dict.fromkeys(self.half_lives, 0.0)
        for weight, each in zip(weights, self.candidates, strict=True):
            pulls[each.half_life] += weight * each.share(self.variance) / sum(weights)
        return pulls


def residuals(steps, errors, units, issued_log):
    """Return what moves the root mean square of the errors, as issued, with each raw error.

    `issued_log` tells of a step, for each horizon, the share of the mean of each half-life that was
    added, and what was added in all. Where it tells nothing, nothing was added.
    """
    horizons = range(len(units))
    nothing = [({}, 0.0) for _ in horizons]
    made = [issued_log.get(step, nothing) for step in steps]
    issued = [[e[h] - m[h][1] for h in horizons] for e, m in zip(errors, made, strict=True)]
    moves = [list(each) for each in issued]
    for i, earlier in enumerate(steps):
        for j in range(i + 1, len(steps) if earlier in issued_log else 0):
            for h in horizons:
                for half_life, pull in made[j][h][0].items():
                    keep = 0.5 ** (1 / half_life)
                    weight = (1 - keep) * keep ** (steps[j] - earlier - 1)
                    moves[i][0] -= weight * pull * issued[j][h] * (units[0] / units[h]) ** 2
    mean_square = np.mean(
        [[(e / u) ** 2 for e, u in zip(row, units, strict=True)] for row in issued] or [1.0]
    )
    return np.array(moves) / np.sqrt(mean_square)


class PlainVolatility:
    """How much larger the errors of one horizon are of late than usual."""

    def __init__(self):
        self.late, self.usual = {2: 1.0, 8: 1.0, 32: 1.0}, 1.0
        self.fits = {(each, power): 0.0 for each in self.late for power in (0.5, 1.0)}
        self.seen = 0

    def factor(self):
        weights = {each: math.exp(fit - max(self.fits.values())) for each, fit in self.fits.items()}
        logs = {each: self.of(*each) for each in self.fits}
        return math.exp(sum(weights[each] * logs[each] for each in logs) / sum(weights.values()))

    def of(self, half_life, power):
        """Return the logarithm of the factor of one candidate."""
        return power * math.log(self.late[half_life] / self.usual)

    def learn(self, score):
        score = min(max(score, 0.01), 8 * max(self.usual, *self.late.values()))
        first = 1 / (8 + self.seen)
        for each in self.fits:
            likelihood = -self.of(*each) - score / (self.usual * math.exp(self.of(*each)))
            self.fits[each] = (1 - 1 / 200) * self.fits[each] + likelihood
        for half_life, mean in self.late.items():
            self.late[half_life] += max(1 - 0.5 ** (1 / half_life), first) * (score - mean)
        usual = min(score, 2 * self.usual)
        self.usual += max(1 - 0.5 ** (1 / 480), first) * (usual - self.usual)
        self.seen += 1
