"""The past in the sensor's local time."""

from datetime import timedelta

import numpy as np
import pytest

from streamridge.features.base import Past
from streamridge.features.timeline import Timeline
from streamridge.series.clock import Clock
from streamridge.series.holidays import Holidays
from streamridge.series.zones import parse_zone

ZONES = [None, "Europe/Berlin", "Australia/Lord_Howe", "Pacific/Apia", "America/New_York"]


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("holidays", [None, Holidays(("2021-03-24", "2021-03-30"))])
def test_one_step_a_season_ago_equals_the_steps_of_an_array(zone, holidays):
    clock = Clock(timedelta(hours=1), zone=parse_zone(zone), holidays=holidays)
    timeline = Timeline()
    timeline.start_at(448_000)
    for value in range(1500):
        timeline.push(float(value), read=True, trusted=True)
    past = Past(timeline, clock)

    for step in range(448_000 + 400, 448_000 + 1500, 7):
        now = np.array([step])
        week = 168 - clock.before_sunday(now)
        assert past.seasonal(step, (24.0, 168.0)) == timeline.value(past.ago(now, week)[0])
        assert past.seasonal(step, (24.0,)) == timeline.value(past.ago(now, 24)[0])
