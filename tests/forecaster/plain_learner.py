"""Algorithm 2 and its guard once more, on lists of all rows: slow, and plain."""

from dataclasses import dataclass

import numpy as np

from streamridge import Box, Inputs, Samples


@dataclass
class Row:
    """A step's features and labels, NaN until they are known, and the fit that forecast it."""

    t: int
    x: np.ndarray
    y: np.ndarray
    fit: object = None
    lam: np.ndarray | None = None


class PlainLearner:
    """Algorithm 2 with its guard, on a list of all rows that were ever learned from."""

    def __init__(self, settings, history):
        self.settings, self.model = settings, settings.preset.model
        self.space = self.model.space
        self.lam = self.space.values
        # Positive intervals are walked in logarithms, weights as they are.
        in_logs = [
            [isinstance(group.feasible, Box)] * len(group.names) for group in self.space.groups
        ]
        self.in_logs = np.concatenate(in_logs)
        self.memory, self.moves, self.frozen = np.zeros(len(self.lam)), 0, set()
        # Labels after the last row's own time count as unknown, and are not seen again.
        self.newest = history[-1].t
        ended = [row for row in history if row.t + settings.horizon - 1 <= self.newest]
        self.known = {row.t: row for row in ended}
        self.waiting, self.fresh, self.admitted, self.path = [], [], [], []
        self.refit()
        self.trust()
        self.remember()

    def stack(self, rows):
        t, x, y = ([getattr(row, name) for row in rows] for name in "txy")
        inputs = Inputs(np.array(t, dtype=float), np.array(x), self.settings.preset.features.layout)
        return Samples(inputs, np.array(y))

    def predict(self, t, x):
        row = Row(t, x, np.zeros(self.settings.horizon))
        values, spreads = self.fit.predict_with_spread(self.stack([row]).inputs)
        return values[0], spreads[0]

    def observe(self, t, x, value):
        """Learn from a value, and return what happened."""
        self.newest = t
        if x is not None:
            unknown = np.full(self.settings.horizon, np.nan)
            self.waiting.append(Row(t, x, unknown, self.fit, self.lam))
        for row in self.waiting:
            if t - row.t < self.settings.horizon:
                row.y[t - row.t] = value
        self.fresh += [row for row in self.waiting if not np.isnan(row.y).any()]
        self.waiting = [
            row
            for row in self.waiting
            if np.isnan(row.y).any() and t - row.t < self.settings.horizon - 1
        ]
        self.steps += 1
        if self.steps < self.settings.update_every:
            return []
        self.move()
        self.refit()
        events = ["fits", "rollbacks"] if self.settings.guard and self.watch() else ["fits"]
        self.remember()
        return events

    def move(self):
        """Take one step along the mean gradient of the rows that a fit has forecast."""
        taught = [row for row in self.fresh if row.fit is not None]
        if not taught or not self.settings.learn:
            return
        g = np.mean([self.gradient(row) for row in taught], axis=0)
        displacement, self.memory = self.settings.preset.step_rule.step(g, self.memory)
        displacement[[name in self.frozen for name in self.space.names]] = 0.0
        moved = np.where(self.in_logs, self.lam * np.exp(-displacement), self.lam - displacement)
        self.lam = self.space.feasible.project(moved)
        self.moves += 1

    def gradient(self, row):
        """Return the gradient of a row's loss, by the fit that forecast it, as it is walked."""
        _, g = row.fit.loss_and_gradient(self.stack([row]))
        return g * np.where(self.in_logs, row.lam, 1.0)

    def refit(self):
        """Fit the last N rows that are known; what was read live counts before what came late."""
        for row in self.fresh + self.admitted:
            self.known.setdefault(row.t, row)
        self.fresh, self.admitted, self.steps = [], [], 0
        last = sorted(self.known)[-self.settings.train_size :]
        self.training = [self.known[t] for t in last]
        self.fit = self.model.fit(self.stack(self.training), self.lam)

    def assign(self, values):
        """Set hyperparameters and refit; rows forecast before are trained on but teach nothing."""
        self.lam = self.space.assigned(self.lam, values)
        for row in self.waiting:
            row.fit = None
        self.refit()

    def trust(self):
        """Let the guard start from here."""
        self.shadow, self.losses, self.age, self.worse = self.lam, np.zeros(2), 0, 0
        self.keep_for_the_guard()

    def keep_for_the_guard(self):
        self.tuned, self.end = self.lam, self.training[-1].t

    def watch(self):
        """Compare tuning with its past in the window that has ended; tell whether it lost."""
        self.losses = 0.8 * self.losses + self.window_losses()
        self.age += 1
        self.worse = self.worse + 1 if self.losses[0] > 1.02 * self.losses[1] else 0
        rolls_back = self.worse >= 5
        if rolls_back:
            before = zip(self.space.names, self.shadow, strict=True)
            self.assign({name: value for name, value in before if name not in self.frozen})
        if rolls_back or (self.age >= 7 and self.worse == 0):
            self.trust()
        self.keep_for_the_guard()
        return rolls_back

    def window_losses(self):
        """Return the squared errors in the window of small fits to what came before it."""
        before = [row for row in self.training if row.t <= self.end]
        window = [row for row in self.training if row.t > self.end]
        recent = before[-max(1, len(self.training) // 4) :]
        if not recent or not window:
            return np.zeros(2)
        held_out = self.stack(window)
        fits = [self.model.fit(self.stack(recent), lam) for lam in (self.tuned, self.shadow)]
        return np.array([np.sum((held_out.y - fit.predict(held_out.inputs)) ** 2) for fit in fits])

    def remember(self):
        self.path.append((self.newest, self.lam))
