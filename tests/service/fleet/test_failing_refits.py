"""A refit that fails: the fit in force goes on, and the next one mends it."""

import msgspec
import numpy as np
import pytest

import streamridge.models.ridge
from streamridge import FitError, Forecaster, Workspace
from streamridge.service.fleet.making import limits_of, refitted
from streamridge.service.fleet.tracker import Standing, Tracker
from streamridge.service.plan import Declaration
from tests.service.fleet.logs import DAY, PLAN, SENSOR, World, daily, entries

LIVED = 5 * DAY
AFTER = 3  # readings that come after a refit that failed
ready = streamridge.models.ridge.ready


def no_factor(*args):
    raise FitError("the factorization failed.")


def no_numbers(*args):
    system = ready(*args)
    system.factor[:] = np.nan
    return system


@pytest.fixture(scope="module")
def log():
    return entries(daily(LIVED + 110))


@pytest.fixture(scope="module")
def lived(log):
    """Return a sensor with a model, and its tracker's state."""
    tracker = World().follow(log[:LIVED]).tracker
    assert tracker.standing.fitted
    return refitted(tracker.as_now(), Workspace())


def resumed(snapshot):
    return Tracker.resumed(SENSOR, PLAN, snapshot)


def cut(tracker):
    """Return the cut of a refit at the newest step."""
    ripe = tracker.as_now()
    return msgspec.structs.replace(ripe, cut=msgspec.structs.replace(ripe.cut, kind="refit"))


def taken(tracker, entries):
    return [issued for entry in entries for issued in tracker.take(entry)]


every_fault = pytest.mark.parametrize("fault", [no_factor, no_numbers])


def failed(tracker, fault, monkeypatch):
    """Return the snapshot of a refit that fails."""
    with monkeypatch.context() as broken:
        broken.setattr(streamridge.models.ridge, "ready", fault)
        return refitted(cut(tracker), Workspace())


@pytest.mark.parametrize("cases", [25, pytest.param(100, marks=pytest.mark.slow)])
@every_fault
def test_at_any_step_the_fit_in_force_goes_on(
    lived, log, fault, cases, monkeypatch, record_property
):
    record_property("row", "C1")
    record_property("cases", cases)
    tracker = resumed(lived)
    for step in range(LIVED, LIVED + cases):
        [before] = tracker.take(log[step])

        after = resumed(failed(tracker, fault, monkeypatch))

        assert after.forecaster.hyperparameters == tracker.forecaster.hyperparameters
        assert after.issued(before.seq).values == before.values
        issued = taken(after, log[step + 1 : step + 1 + AFTER])
        assert len(issued) == AFTER
        assert {each.source for each in issued} <= {"model", "seasonal", "last"}
        assert np.isfinite([(*e.lower, *e.values, *e.upper) for e in issued]).all()
        assert refitted(cut(after), Workspace()).cut.kind == "refit"


@every_fault
def test_it_is_told_and_the_next_refit_starts_at_the_most_regular(
    lived, log, fault, monkeypatch, record_property
):
    record_property("row", "C1")
    tracker, most = resumed(lived), limits_of(PLAN.settings(Declaration()))["regularization"][1]
    tracker.take(log[LIVED])

    snapshot = failed(tracker, fault, monkeypatch)

    told = msgspec.json.decode(snapshot.summary, type=Standing)
    assert (snapshot.cut.kind, told.fitted, told.failed is not None) == ("failed", True, True)
    began, refit = [], Forecaster.refit
    monkeypatch.setattr(
        Forecaster,
        "refit",
        lambda self, *args: (began.append(dict(self.hyperparameters)), refit(self, *args))[1],
    )
    mended = refitted(cut(resumed(snapshot)), Workspace())
    assert (mended.cut.kind, msgspec.json.decode(mended.summary)["failed"]) == ("refit", None)
    assert [each["regularization"] for each in began] == [pytest.approx(most)]
