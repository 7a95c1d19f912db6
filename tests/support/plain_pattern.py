"""The correction of changed patterns once more, on lists of all rows and of all corrections."""

from statistics import fmean, median

import numpy as np


def discounts(count, memory):
    """Return the weights of some entries, the oldest first."""
    return (1 - 1 / memory) ** np.arange(count)[::-1]


def simple_forecasts(past, step, day, week):
    """Return the median of weeks, the same plus yesterday's deviation, and the mean of days.

    None if there are too few weeks.
    """

    def readings(at, season, count):
        steps = [at - round(season * k) for k in range(1, count + 1)]
        return [past.value_at(each) if past.is_trusted(each) else None for each in steps]

    def usual(at, back=0.0):
        steps = [at - round(back + week * k) for k in range(1, 9)]
        known = [past.value_at(each) for each in steps if past.is_trusted(each)]
        return median(known) if len(known) >= 3 else None

    own, before, days = usual(step), usual(step, day), readings(step, day, 7)
    if own is None:
        return None
    deviation = 0.0 if days[0] is None or before is None else days[0] - before
    return [own, own + deviation, fmean([own if each is None else each for each in days])]


class PlainPattern:
    """What the errors of all forecasts from two steps ahead on say of the next ones."""

    def __init__(self, periods, day, horizon):
        seasons = [each for each in periods if each >= horizon][:2]
        self.works = horizon > 1 and bool(seasons)
        self.seasons, self.day, self.horizon = seasons, day, horizon
        self.made = {}  # by first step: for each lead the differences, forecast, change and share
        self.rows = []  # for each reading that was learned from: differences and errors
        self.past_changes = {h: [] for h in range(1, horizon)}  # (change, error, what is left)
        self.solved = np.zeros(3), {h: (0.0, np.inf) for h in self.past_changes}

    def weights(self):
        """Return the weights of a ridge regression, as least squares with rows for the penalty."""
        weighted = [
            np.sqrt(weight) * np.append(x, error)
            for weight, rows in zip(discounts(len(self.rows), self.day), self.rows, strict=True)
            for x, error in rows
        ]
        table = np.array(weighted).reshape(-1, 4)
        size = np.square(table[:, :3]).sum() / 3
        system = np.vstack([table[:, :3], np.sqrt(0.05 * size) * np.eye(3)])
        return np.linalg.lstsq(system, np.append(table[:, 3], np.zeros(3)), rcond=None)[0]

    def share(self, h):
        """Return how far the corrections of a lead have helped, less half a standard error."""
        every = self.past_changes[h]
        weights = discounts(len(every), 28 * self.day)
        change, error, left = np.array(every).reshape(-1, 3).T
        squares, seen = (weights * change**2).sum(), weights[change != 0].sum()
        if not squares:
            return 0.0
        noise = np.sqrt((h + 1) * (weights * (change * left) ** 2).sum())
        best = ((weights * change * error).sum() - noise / 2) / squares
        return min(max(best, 0.0), 1.0) * seen / (seen + self.day / 4)

    def largest(self, h):
        """Return four times the usual size of earlier changes."""
        weights = discounts(len(self.past_changes[h]), 28 * self.day)
        earlier = np.array([each[0] for each in self.past_changes[h]])
        seen = weights[earlier != 0].sum()
        return 4 * np.sqrt((weights * earlier**2).sum() / seen) if seen else np.inf

    def corrected(self, past, step, values):
        """Return forecasts with their corrections, and what is to be remembered of them."""
        (weights, by_lead), values, leads = self.solved, values.copy(), {}
        for h in range(1, self.horizon):
            simple = simple_forecasts(past, step + h, self.seasons[0], self.seasons[-1])
            x = np.zeros(3) if simple is None else np.array(simple) - values[h]
            share, most = by_lead[h]
            change = min(max(x @ weights, -most), most)
            leads[h] = (x, values[h], change, share)
            values[h] += share * change
        return values, leads

    def learn(self, step, value, verdict, told):
        """Learn from a reading, and remember what was `told` of the steps from it on."""
        if verdict == "good":
            rows = []
            for h, changes in self.past_changes.items():
                nothing = np.zeros(3), value, 0.0, 0.0
                x, forecast, change, share = self.made.get(step - h, {}).get(h, nothing)
                rows.append((x, value - forecast))
                changes.append((change, value - forecast, value - forecast - share * change))
            self.rows.append(rows)
        if told is not None:
            self.made[step] = told
        if step % 4 == 0:
            by_lead = {h: (self.share(h), self.largest(h)) for h in self.past_changes}
            self.solved = self.weights(), by_lead
