"""A refit that fails: the fit in force goes on, and the next one mends it."""

import msgspec
import numpy as np
import pytest

import streamridge.models.kernel_ridge
from streamridge import FitError, Forecaster, Workspace
from streamridge_service.plan import Declaration
from streamridge_service.workers.sensor_state import SensorSummary, hyperparameter_bounds
from streamridge_service.workers.snapshots import refitted
from streamridge_service.workers.tracker import Tracker
from tests.support.workers.logs import DAY, PLAN, SENSOR, World, daily, entries

LIVED = 5 * DAY
AFTER = 3  # readings that come after a refit that failed
solvable = streamridge.models.kernel_ridge.solvable


def no_factor(*args):
    raise FitError("the factorization failed.")


def no_numbers(*args):
    system = solvable(*args)
    system.factor[:] = np.nan
    return system


@pytest.fixture(scope="module")
def log():
    return entries(daily(LIVED + 110))


@pytest.fixture(scope="module")
def lived(log):
    """Return a sensor with a model, and its tracker's state."""
    tracker = World().follow(log[:LIVED]).tracker
    assert tracker.summary.fitted
    return refitted(tracker.saved_state(), Workspace())


def resumed(snapshot):
    return Tracker.resumed(SENSOR, PLAN, snapshot)


def point(tracker):
    """Return the cut of a refit at the newest step."""
    saved = tracker.saved_state()
    return msgspec.structs.replace(saved, point=msgspec.structs.replace(saved.point, kind="refit"))


def taken(tracker, entries):
    return [issued for entry in entries for issued in tracker.process(entry)]


every_fault = pytest.mark.parametrize("fault", [no_factor, no_numbers])


def failed(tracker, fault, monkeypatch):
    """Return the snapshot of a refit that fails."""
    with monkeypatch.context() as broken:
        broken.setattr(streamridge.models.kernel_ridge, "solvable", fault)
        return refitted(point(tracker), Workspace())


@pytest.mark.parametrize("cases", [4, pytest.param(100, marks=pytest.mark.slow)])
@every_fault
def test_a_failed_refit_keeps_the_old_fit(lived, log, fault, cases, monkeypatch, record_property):
    record_property("row", "C1")
    record_property("cases", cases)
    tracker = resumed(lived)
    for step in range(LIVED, LIVED + cases):
        [before] = tracker.process(log[step])

        after = resumed(failed(tracker, fault, monkeypatch))

        assert after.forecaster.hyperparameters == tracker.forecaster.hyperparameters
        assert after.forecast(before.seq).values == before.values
        issued = taken(after, log[step + 1 : step + 1 + AFTER])
        assert len(issued) == AFTER
        assert {each.source for each in issued} <= {"model", "seasonal", "last"}
        assert np.isfinite([(*e.lower, *e.values, *e.upper) for e in issued]).all()
        assert refitted(point(after), Workspace()).point.kind == "refit"


@every_fault
def test_the_refit_after_a_failure_starts_with_the_largest_regularization(
    lived, log, fault, monkeypatch, record_property
):
    record_property("row", "C1")
    tracker, most = (
        resumed(lived),
        hyperparameter_bounds(PLAN.settings(Declaration()))["regularization"][1],
    )
    tracker.process(log[LIVED])

    snapshot = failed(tracker, fault, monkeypatch)

    told = msgspec.json.decode(snapshot.summary, type=SensorSummary)
    assert (snapshot.point.kind, told.fitted, told.failed is not None) == ("failed", True, True)
    began, refit = [], Forecaster.refit
    monkeypatch.setattr(
        Forecaster,
        "refit",
        lambda self, *args: (began.append(dict(self.hyperparameters)), refit(self, *args))[1],
    )
    mended = refitted(point(resumed(snapshot)), Workspace())
    assert (mended.point.kind, msgspec.json.decode(mended.summary)["failed"]) == ("refit", None)
    assert [each["regularization"] for each in began] == [pytest.approx(most)]
