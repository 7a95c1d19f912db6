"""Runs of random values for reports, and a reader of pages."""

import json
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np

from streamridge.forecaster.self_tuning import HyperparameterPath
from streamridge.hyperparameters.space import GroupNames
from streamridge.learners.base import Costs
from streamridge.report.sensor_runs import by_sensor
from streamridge.runs.run import ExpertPath, Run

# A name that would run a script if it were not escaped.
HOSTILE = "<script>alert(1)</script>"
WEIGHTS = ("weight.matern", "weight.linear")
SCALES = ("matern.inverse_scales[0]", "matern.inverse_scales[1]")
OTHERS = ("drifting.rate", "regularization")
NAMES = (*WEIGHTS, *SCALES, *OTHERS)
GROUPS = (
    GroupNames("weight", "weight", WEIGHTS),
    GroupNames("matern.inverse_scales", "scale", SCALES),
    GroupNames("drifting.rate", "rate", OTHERS[:1]),
    GroupNames("regularization", "ridge", OTHERS[1:]),
)
DAY = 24


def make_run(*, sensor="ramp-7", method="ohl", days=40, horizon=1, seed=0, **parts):
    """Return a run of random values by the hour, with a gap of two steps before its end."""
    rng, steps = np.random.default_rng(seed), days * DAY
    times = np.datetime64("2021-06-13T00:00", "us") + np.arange(steps) * np.timedelta64(1, "h")
    actual = 100 + rng.normal(0, 10, steps)
    actual[-5:-3] = np.nan
    value = np.full((steps, horizon), 100.0) + rng.normal(0, 1, (steps, horizon))
    weight = rng.uniform(0.2, 0.8, days + 1)
    values = np.column_stack([weight, 1 - weight, 10 ** rng.normal(size=(days + 1, 4))])
    run = Run(
        sensor=sensor,
        method=method,
        step=np.timedelta64(1, "h"),
        times=times,
        local_times=times,
        actual=actual,
        value=value,
        lower=value - 15,
        upper=value + 15,
        by_model=np.ones(steps, dtype=bool),
        steps_done=steps + 3 * DAY,
        path=HyperparameterPath(np.arange(days + 1) * DAY, GROUPS, values),
        refit_times=times[0] + np.arange(days + 1) * np.timedelta64(1, "D"),
        hyperparameters=dict(zip(NAMES, values[-1].tolist(), strict=True)),
        active_bounds={"drifting.rate": "lower", "matern.inverse_scales[1]": "upper"},
        costs=Costs(tuning=1.0, fitting=2.0, predicting=0.5),
        seconds=4.5,
        counts={"readings": steps, "missing": 2, "conflicts": 3, "fits": days},
        level=0.9,
    )
    return replace(run, **parts)


def fixed_run(**parts):
    """Return a run whose hyperparameters stay where they are."""
    run = make_run(method="fixed", seed=1, active_bounds={}, **parts)
    still = np.repeat(run.path.values[:1], len(run.path.values), axis=0)
    return replace(run, path=replace(run.path, values=still))


def only(*runs):
    (sensor,) = by_sensor(runs)
    return sensor


def words(html):
    """Return the text of a page with one space between words."""
    return " ".join(Reader.of(html).text.split())


class Reader(HTMLParser):
    """Reads a page as a browser does."""

    def __init__(self):
        super().__init__()
        self.tags, self.attributes, self.scripts, self.text = [], [], [], ""
        self._inside = ""

    @classmethod
    def of(cls, html):
        reader = cls()
        reader.feed(html)
        reader.close()
        return reader

    def handle_starttag(self, tag, attrs):
        self._inside = tag
        self.tags.append(tag)
        self.attributes += attrs
        self.scripts += [(dict(attrs).get("type"), "")] if tag == "script" else []

    def handle_endtag(self, tag):
        self._inside = ""

    def handle_data(self, data):
        if self._inside == "script":
            kind, before = self.scripts[-1]
            self.scripts[-1] = (kind, before + data)
        elif self._inside != "style":
            self.text += data

    @property
    def figures(self):
        return [json.loads(text) for kind, text in self.scripts if kind == "application/json"]


def run_with_two_levels(**parts):
    """Return a run with bands of 80 % and 95 %."""
    run = make_run(**parts)
    reach = np.array([12.0, 20.0])
    ends = {"lower": run.value[..., None] - reach, "upper": run.value[..., None] + reach}
    return replace(run, level=(0.8, 0.95), **ends)


def run_with_experts(count=5, **parts):
    """Return a run that trusts its model less day by day."""
    share = np.linspace(1.0, 0.5, count)
    run = make_run(days=5)
    path = ExpertPath(
        run.times[: count * DAY : DAY], ("model", "8h"), np.column_stack([share, 1 - share])
    )
    return replace(run, expert_path=path, **parts)


NAIVE_LEVELS = {"last": 90.0, "week": 80.0}


def run_with_glitch(**parts):
    """Return a run with a reading that no road can have, and with forecasts that need no model."""
    run = make_run(**parts)
    actual = run.actual.copy()
    actual[-30] = 9e11
    naive = {name: np.full_like(run.value, level) for name, level in NAIVE_LEVELS.items()}
    return replace(run, actual=actual, implausible=actual > 1e6, naive_forecasts=naive)
