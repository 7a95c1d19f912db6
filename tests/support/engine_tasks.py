"""Tasks to try engines on, and a tuner that worker processes can import."""

import os
import signal
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from streamridge.runs.engines import LocalEngine
from streamridge.runs.run_tasks import run_tasks
from streamridge.runs.tasks import Task
from tests.support.forecasters import DAY, daily, small
from tests.support.series import series


def kill_this_process(*arguments, **options):
    os.kill(os.getpid(), signal.SIGKILL)


@dataclass(frozen=True)
class Deadly:
    """Kill the process that tunes with it."""

    def require_space(self, space):
        """Take any space."""

    def trials(self, space):
        return 1

    def tune(self, *arguments, **options):
        kill_this_process()


def tasks(names="abc", **parts):
    """Return a short task for each name."""
    return [
        Task(series(name, seed), small().settings, "ohl", **parts)
        for seed, name in enumerate(names)
    ]


def long_tasks(names="ab", days=10):
    """Return tasks of a second or so each, with a refit every other step."""
    settings = small(update_every=2).settings
    return [
        Task(replace(series(name, 0), values=daily(days * DAY, seed=at)), settings, "ohl")
        for at, name in enumerate(names)
    ]


@cache
def runs_of_long_tasks():
    """Return the runs of two long tasks, made in this process."""
    return [outcome.run for outcome in run_tasks(long_tasks(), LocalEngine())]


def failing(task):
    """Return a task whose series holds a value that no forecaster takes."""
    values = task.series.values.copy()
    values[90] = 1e13
    return replace(task, series=replace(task.series, values=values))


def deadly(task):
    """Return a task that kills every process that runs it."""
    return replace(task, settings=replace(task.settings, tuner=Deadly()))


def assert_same_runs(runs, others):
    """Check that two lists of runs agree to the last bit; seconds apart."""
    assert [run.sensor for run in runs] == [run.sensor for run in others]
    for one, other in zip(runs, others, strict=True):
        for part in ("times", "actual", "value", "lower", "upper", "by_model"):
            np.testing.assert_array_equal(getattr(one, part), getattr(other, part))
        np.testing.assert_array_equal(one.path.values, other.path.values)
        assert (one.counts, one.hyperparameters) == (other.counts, other.hyperparameters)


QUICK = {"lags": 6, "train_size": 96, "warmup": 3 * DAY}
