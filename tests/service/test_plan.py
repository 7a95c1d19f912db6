"""The settings of a service determine every sensor's forecaster."""

import pytest

from streamridge.forecaster.sizes import NAMED
from streamridge_service.ledger.records import StoredReading
from streamridge_service.plan import HOUR, MINUTE, Declaration, Plan
from streamridge_service.settings import settings_of
from streamridge_service.workers.snapshots import StartHistory

DAY = 24 * HOUR


@pytest.mark.parametrize("model", NAMED)
def test_a_model_has_the_rows_of_its_size(model):
    plan = settings_of(model=model).plan

    assert plan.train_size == NAMED[model].train_size
    assert plan.settings(Declaration()).train_size == NAMED[model].train_size
    assert settings_of(model=model, train_size=960).plan.train_size == 960


@pytest.mark.parametrize("model", NAMED)
def test_a_new_start_has_the_history_that_its_rows_need(model):
    plan = Plan(step=15 * MINUTE, train_size=96, model=model)
    days = range(200)
    entries = [StoredReading(seq, 1, day * DAY, 1.0, 0) for seq, day in enumerate(days, start=1)]

    times = StartHistory.of(entries, plan).times

    known = (times[-1] - times[0]).astype(int)
    reach = plan.settings(Declaration()).preset.features.reach * plan.step
    assert known >= (35 * DAY if model == "default" else reach - DAY)
