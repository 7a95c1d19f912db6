"""Algorithm 2 and its guard once more, on rows made from the past: slow, and plain."""

from dataclasses import dataclass, replace

import numpy as np

from streamridge import Box, Inputs, Samples
from streamridge.models.base import Tangents
from tests.support.plain_calibration import residuals
from tests.support.plain_steps import displacement


@dataclass
class Row:
    """A step's features and labels, and how the features move with each rate of forgetting."""

    t: int
    x: np.ndarray
    y: np.ndarray
    slopes: np.ndarray | None = None


class PlainLearner:
    """Algorithm 2 with its guard; at each refit all rows are made anew of what is known then."""

    def __init__(self, settings, past, issued_log):
        self.settings, self.model, self.past = settings, settings.model, past
        self.issued_log = issued_log
        self.space = self.model.space
        self.lam = self.space.values
        # Positive intervals are walked in logarithms, weights as they are.
        in_logs = [
            [isinstance(group.feasible, Box)] * len(group.names) for group in self.space.groups
        ]
        self.in_logs = np.concatenate(in_logs)
        self.walked, self.moves, self.frozen = [], 0, set()
        self.newest, self.training, self.path = past.newest, [], []
        self.gradients, self.duel = [], []
        self.refit()
        self.trust()
        self.remember()

    def rates(self, lam):
        """Return how fast each season is forgotten at some hyperparameters, the last of them."""
        count = sum(season.forgetting > 0 for season in self.settings.preset.features.seasons)
        return list(lam[len(lam) - count :])

    def stack(self, rows):
        t, x, y = ([getattr(row, name) for row in rows] for name in "txy")
        inputs = Inputs(np.array(t, dtype=float), np.array(x), self.settings.preset.features.layout)
        return Samples(inputs, np.array(y))

    def predict(self, t, x):
        row = Row(t, x, np.zeros(self.settings.horizon))
        values, spreads = self.fit.predict_with_spread(self.stack([row]).inputs)
        return values[0], spreads[0]

    def observe(self, t):
        """Learn from the value at a step, and return what happened."""
        self.newest = t
        self.steps += 1
        if self.steps < self.settings.update_every:
            return []
        return self.renew()

    def renew(self):
        """Move and refit, and return what happened."""
        rates = self.rates(self.lam)
        rows = self.past.known_rows(rates, after=self.refit_time - self.settings.horizon + 1)
        self.teach(self.past.with_slopes(rows, rates))
        self.move()
        self.refit()
        watched = self.settings.guard and self.settings.learn
        events = ["fits", "rollbacks"] if watched and self.watch() else ["fits"]
        self.duel = []
        self.remember()
        return events

    def teach(self, rows):
        """Keep the gradients of rows whose last label came after the refit, as they are walked."""
        fit, lam, training = self.fit, self.lam, self.training
        units = np.std([row.y - row.x[0] for row in training], axis=0)
        predicted = [fit.predict(self.stack([row]).inputs)[0] for row in rows]
        errors = [row.y - each for row, each in zip(rows, predicted, strict=True)]
        moves = residuals([row.t for row in rows], errors, units, self.issued_log())
        for row, each, move in zip(rows, predicted, moves, strict=True):
            slopes = (
                np.stack([each.slopes for each in some], axis=1) for some in (training, [row])
            )
            # A row whose error were its residual would have the same gradient.
            window = self.stack([replace(row, y=each + move)])
            g = fit.loss_and_gradient(window, Tangents(*slopes))[1]
            self.gradients.append(g * np.where(self.in_logs, lam, 1.0))

    def move(self):
        """Take one step along the mean gradient of the rows that a fit has forecast."""
        taught, self.gradients = self.gradients, []
        if not taught or not self.settings.learn:
            return
        mean = np.mean(taught, axis=0)
        mean[~self.in_logs] -= np.mean(mean[~self.in_logs])  # weights gain only over each other
        self.walked.append(mean)
        step = displacement(self.settings.preset.step_rule, self.walked)
        usual = self.space.values
        away = self.lam - usual
        away[self.in_logs] = np.log(self.lam[self.in_logs] / usual[self.in_logs])
        step += self.settings.preset.pull * away
        step[[name in self.frozen for name in self.space.names]] = 0.0
        moved = np.where(self.in_logs, self.lam * np.exp(-step), self.lam - step)
        self.lam = self.space.feasible.project(moved)
        self.moves += 1

    def refit(self):
        """Fit the last N rows that are known; forget what no row needs."""
        # A search would use H - 1 rows more.
        rates = self.rates(self.lam)
        kept = self.past.known_rows(rates)[-self.settings.train_size - self.settings.horizon + 1 :]
        self.training = self.past.with_slopes(kept[-self.settings.train_size :], rates)
        self.fit = self.model.fit(self.stack(self.training), self.lam)
        self.refit_time, self.steps = self.newest, 0
        self.past.forget_before(kept[0].t - self.past.reach)

    def assign(self, values):
        """Set hyperparameters and refit; gradients of fits before are forgotten."""
        self.lam = self.space.assigned(self.lam, values)
        self.gradients = []
        self.refit()

    def trust(self):
        """Let the guard start from here."""
        self.losses, self.worse = np.zeros(2), 0

    def watch(self):
        """Compare the model with a small fit in the window that has ended; tell whether it lost."""
        if not self.duel:
            return False
        self.losses = 0.8 * self.losses + np.mean(np.square(self.duel), axis=0)
        self.worse = self.worse + 1 if self.losses[0] > 1.02 * self.losses[1] else 0
        if self.worse < 5:
            return False
        rolls_back = self.fails()
        if rolls_back:
            start = zip(self.space.names, self.space.values, strict=True)
            self.assign({name: value for name, value in start if name not in self.frozen})
        self.trust()
        return rolls_back

    def fails(self):
        """Return whether a small fit as tuned forecasts the latest rows worse than the start."""
        count = len(self.training)
        if count < 8 + self.settings.horizon:
            return False
        rows, latest = self.training[: -(count // 8)], self.training[-(count // 8) :]
        first = latest[0].t - self.settings.horizon + 1
        before = self.stack([row for row in rows if row.t < first][-(count // 4) :])
        tuned, start = (
            self.model.fit(before, lam).window_loss(self.stack(latest))
            for lam in (self.lam, self.space.values)
        )
        return tuned > 1.02 * start

    def baseline(self, t, x):
        """Return what the small fit at the start forecasts."""
        inputs = self.stack([Row(t, x, np.zeros(self.settings.horizon))]).inputs
        return self.small.predict(inputs)[0]

    def remember(self):
        """Keep the path, and fit the last quarter of the rows beside the model, at its start."""
        self.path.append((self.newest, self.lam))
        recent = self.stack(self.training[-max(1, len(self.training) // 4) :])
        self.small = self.model.fit(recent, self.space.values)
