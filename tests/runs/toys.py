"""Tasks to try engines on, and a tuner that worker processes can import."""

import os
import signal
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from streamridge.runs.carrying import carry_out
from streamridge.runs.engines.local import LocalEngine
from streamridge.runs.sources import Source
from streamridge.runs.tasks import Task
from tests.forecaster.test_forecaster import DAY, daily, small
from tests.runs.test_replay import series


@dataclass(frozen=True)
class Deadly:
    """Kill the process that tunes with it."""

    def require_space(self, space):
        """Take any space."""

    def trials(self, space):
        return 1

    def tune(self, *arguments, **options):
        os.kill(os.getpid(), signal.SIGKILL)


def tasks(names="abc", **parts):
    """Return a short task for each name."""
    return [
        Task(Source.of(series(name, seed)), small().settings, "ohl", **parts)
        for seed, name in enumerate(names)
    ]


def long_tasks(names="ab", days=10):
    """Return tasks of a second or so each, with a refit every other step."""
    settings = small(update_every=2).settings
    return [
        Task(
            Source.of(replace(series(name, 0), values=daily(days * DAY, seed=at))), settings, "ohl"
        )
        for at, name in enumerate(names)
    ]


@cache
def runs_of_long_tasks():
    """Return the runs of two long tasks, made in this process."""
    with LocalEngine().started(1) as workers:
        outcomes = carry_out(long_tasks(), workers, lambda number, done: None)
        return [outcome.run for outcome in outcomes]


def failing(task):
    """Return a task whose series holds a value that no forecaster takes."""
    one = task.source.load()
    values = one.values.copy()
    values[90] = 1e13
    return replace(task, source=Source.of(replace(one, values=values)))


def deadly(task):
    """Return a task that kills every process that carries it out."""
    return replace(task, settings=replace(task.settings, tuner=Deadly()))


def assert_same_runs(runs, others):
    """Check that two lists of runs agree to the last bit; seconds apart."""
    assert [run.sensor for run in runs] == [run.sensor for run in others]
    for one, other in zip(runs, others, strict=True):
        for part in ("times", "actual", "value", "lower", "upper", "by_model"):
            np.testing.assert_array_equal(getattr(one, part), getattr(other, part))
        np.testing.assert_array_equal(one.path.values, other.path.values)
        assert (one.counts, one.hyperparameters) == (other.counts, other.hyperparameters)
