"""Batches of readings for services that are killed or lose their workers."""

from tests.support.workers.logs import DAY, PLAN, START, STEP, daily

SENSORS, PAST = 6, 16 * DAY


def spread_names(count):
    """Return names of sensors whose refits are spread evenly over a day."""
    candidates = [f"road-{i}" for i in range(10_000)]
    return [
        next(name for name in candidates if PLAN.stagger(name) == i * DAY // count)
        for i in range(count)
    ]


NAMES = spread_names(SENSORS)


def batches_of(steps):
    """Return what is sent: the past in one batch, then a batch a step; times count seconds."""
    values = [daily(PAST + steps, seed) for seed in range(SENSORS)]

    def rows(step):
        seconds = (START + step * STEP) // 10**6
        return [(name, seconds, each[step]) for name, each in zip(NAMES, values, strict=True)]

    past = [row for step in range(PAST) for row in rows(step)]
    return [past, *(rows(step) for step in range(PAST, PAST + steps))]
