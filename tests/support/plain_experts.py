"""The experts of a forecaster once more: what each one has earned, one by one."""

import numpy as np


class PlainWeights:
    """ML-Poly for one horizon, as it is defined, expert by expert, number by number."""

    def __init__(self, prior, memory, lead=None):
        self.prior, self.keep = prior, 1 - 1 / memory
        self.lead = lead or [0.0] * len(prior)
        self.totals, self.squares = [0.0] * len(prior), [0.0] * len(prior)
        self.largest = 0.0

    def of(self, opinions):
        """Return the weights of experts; NaN is no opinion."""
        awake = [not np.isnan(opinion) for opinion in opinions]
        ahead = [lead * self.largest**0.5 for lead in self.lead]
        totals = [total + more for total, more in zip(self.totals, ahead, strict=True)]
        sums = zip(totals, self.squares, awake, strict=True)
        earned = [
            total / (squares + self.largest) if is_awake and total > 0 else 0.0
            for total, squares, is_awake in sums
        ]
        for weights in (earned, self.prior, [1.0] * len(awake)):
            counted = [weight * is_awake for weight, is_awake in zip(weights, awake, strict=True)]
            if any(counted):
                return [each / sum(counted) for each in counted]
        return None

    def mix(self, opinions):
        """Return the mean of opinions by their weights."""
        weighted = zip(self.of(opinions), opinions, strict=True)
        return sum(weight * opinion for weight, opinion in weighted if weight)

    def learn(self, opinions, mixture, value):
        """Add what each expert would have gained, but for those without an opinion."""
        self.largest *= self.keep
        for k, opinion in enumerate(opinions):
            if not np.isnan(opinion):
                gained = 2 * (mixture - value) * (mixture - opinion)
                self.totals[k] = self.keep * self.totals[k] + gained
                self.squares[k] = self.keep * self.squares[k] + gained**2
                self.largest = max(self.largest, gained**2)


class PlainExperts:
    """Three committees of all experts, and the vote between the model and the committees."""

    def __init__(self, count, horizon, day):
        even, model = [1 / count] * count, [1.0, 0.0, 0.0, 0.0]
        self.committees = [
            [PlainWeights(even, days * day) for days in (1, 4, 16)] for _ in range(horizon)
        ]
        self.vote = [PlainWeights(model, 7 * day, model) for _ in range(horizon)]

    def mix(self, opinions):
        """Return the mixture of (K, H) opinions, and what each committee alone would say."""
        mixture, spoken = [], []
        for h, column in enumerate(np.transpose(opinions)):
            spoken.append([each.mix(column) for each in self.committees[h]])
            mixture.append(self.vote[h].mix([column[0], *spoken[h]]))
        return np.array(mixture), spoken

    def weights(self, opinions):
        """Return the weights one step ahead."""
        of_model, *of_committees = self.vote[0].of([opinions[0], 0.0, 0.0, 0.0])
        weights = np.zeros(len(opinions))
        weights[0] = of_model
        for share, committee in zip(of_committees, self.committees[0], strict=True):
            weights += share * np.array(committee.of(opinions))
        return list(weights)

    def learn(self, h, opinions, spoken, mixture, value):
        """Learn from what was said of a value so many steps ahead."""
        for committee, said in zip(self.committees[h], spoken, strict=True):
            committee.learn(opinions, said, value)
        self.vote[h].learn([opinions[0], *spoken], mixture, value)
