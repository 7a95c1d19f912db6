"""Forecasts that are just being made: waited for, but not for long."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from streamridge.service import views
from streamridge.service.service import Service

# Seconds that a request waits for its forecasts, and between two looks; sensors of one answer.
PATIENCE, LOOK_EVERY, MOST_SENSORS = 5.0, 0.01, 1000


async def forecasts_of(service: Service, sensors: Iterable[int]) -> list[dict[str, Any]]:
    """Return the next forecasts of sensors, once all readings so far have been worked off.

    After a few seconds it returns those that there are.
    """
    await _worked_off(service, service.writer.seq)
    named = list(dict.fromkeys(sensors))[:MOST_SENSORS]
    return [views.newest_forecast(service, service.board.places[each]) for each in named]


async def _worked_off(service: Service, seq: int) -> None:
    loop = asyncio.get_running_loop()
    deadline, settled = loop.time() + PATIENCE, False
    # Forecasts reach the board a moment after they are stored, so one more look is waited for.
    while not settled and loop.time() < deadline:
        settled = service.fleet.done >= seq
        await asyncio.sleep(LOOK_EVERY)
