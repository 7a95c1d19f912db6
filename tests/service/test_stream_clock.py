"""The clock of a stream follows a share of the sensors, and no few of them."""

import pytest

from streamridge_service.intake import IngestOptions
from streamridge_service.plan import DAY, MINUTE
from streamridge_service.rows import Batch, Row
from streamridge_service.stream_clock import FAR, FEW, RECENT, StreamClock
from tests.support.service.in_process import serving, settled

STEP = 15 * MINUTE
NOW = 19_000 * DAY
FAR_YEAR = NOW + 460 * 365 * DAY


def clock_of(names, steps=5):
    """Return a clock after some steps of all sensors, the last of them at `NOW`."""
    clock = StreamClock()
    for step in range(1 - steps, 1):
        clock.add([(name, NOW + step * STEP) for name in names])
    return clock


def test_there_is_no_time_before_the_first_reading():
    clock = StreamClock()
    clock.add([])

    assert clock.now is None


@pytest.mark.parametrize("count", [1, 2, 3, 4, 63])
def test_it_follows_readings(count):
    names = range(count)
    clock = clock_of(names)

    for step in range(1, 200):
        clock.add([(name, NOW + step * STEP) for name in names])

        assert clock.now == NOW + step * STEP


@pytest.mark.parametrize("count", [1, 2, 3, 4, 63])
@pytest.mark.parametrize("ahead", [FAR_YEAR - NOW, 3 * DAY, FAR + STEP])
def test_one_reading_far_ahead_does_not_move_it(count, ahead):
    clock = clock_of(range(count))

    clock.add([(0, NOW + ahead)])

    assert clock.now == NOW


@pytest.mark.parametrize("count", [3, 4, 63])
def test_one_sensor_that_is_ahead_does_not_move_it(count):
    clock = clock_of(range(count))

    for step in range(1, 50):
        clock.add([(0, NOW + step * STEP + DAY)])
        clock.add([(name, NOW + step * STEP) for name in range(1, count)])

        assert clock.now == NOW + step * STEP


@pytest.mark.parametrize(("count", "wrong"), [(5, 2), (12, 2), (63, 3), (63, 15), (1000, 249)])
@pytest.mark.parametrize("ahead", [FAR_YEAR - NOW, DAY])
def test_less_than_a_quarter_of_the_sensors_does_not_move_it(count, wrong, ahead):
    clock = clock_of(range(count))

    for step in range(1, 50):
        clock.add([(name, NOW + step * STEP + ahead) for name in range(wrong)])
        assert clock.now == NOW + (step - 1) * STEP
        clock.add([(name, NOW + step * STEP) for name in range(wrong, count)])
        assert clock.now == NOW + step * STEP


def test_wrong_readings_do_not_add_up():
    clock = clock_of(range(63))

    for step in range(1, 63):
        clock.add([(name, NOW + step * STEP) for name in range(63)])
        clock.add([(step, FAR_YEAR)])

        assert clock.now == NOW + step * STEP


def test_frequent_sensors_move_it_between_the_readings_of_others():
    hourly, frequent = range(53), range(53, 63)
    clock = clock_of(range(63))

    behind = []
    for minute in range(180):
        if minute % 60 == 0:
            clock.add([(name, NOW + minute * MINUTE) for name in hourly])
        clock.add([(name, NOW + minute * MINUTE) for name in frequent])
        behind.append(NOW + minute * MINUTE - clock.now)

    assert max(behind) <= 15 * MINUTE
    assert behind[-1] == 0


def test_sensors_that_ended_a_week_ago_do_not_count():
    clock = clock_of(range(100))
    for step in range(1, 8 * 96):
        clock.add([(name, NOW + step * STEP) for name in range(26)])
    now = NOW + (8 * 96 - 1) * STEP
    assert clock.now == now

    clock.add([(name, now + STEP) for name in range(7)])

    assert clock.now == now + STEP


def test_few_sensors_that_are_left_continue_after_a_long_gap():
    clock = clock_of(range(63))
    for step in range(1, 20):
        clock.add([(name, NOW + step * STEP) for name in range(10)])
    now, later = NOW + 19 * STEP, NOW + 30 * DAY
    assert clock.now == now

    found = []
    for step in range(FEW):
        for name in range(10):
            assert clock.now == now
            clock.add([(name, later + step * STEP)])
        found.append(clock.now)

    assert found == [now, now, later + (FEW - 1) * STEP]


def test_some_of_the_few_that_are_left_do_not_move_it_far():
    clock = clock_of(range(63))
    for step in range(1, 40):
        clock.add([(name, NOW + step * STEP) for name in range(7)])
        clock.add([(name, FAR_YEAR + step * STEP) for name in range(7, 10)])

    assert clock.now == NOW + 39 * STEP


def test_many_rows_of_one_sensor_far_ahead_do_not_move_it_for_long():
    clock = clock_of(range(63))
    clock.add([(0, FAR_YEAR + i * STEP) for i in range(RECENT - 2)])
    assert clock.now == NOW

    clock.add([(0, FAR_YEAR + i * STEP) for i in range(1000)])
    clock.add([(name, NOW + STEP) for name in range(1, 63)])

    assert clock.now == NOW + STEP


@pytest.mark.parametrize(("count", "alive"), [(2, 1), (63, 1), (63, 2)])
def test_it_follows_the_sensors_that_are_left(count, alive):
    clock = clock_of(range(count))

    for step in range(1, 2 * RECENT):
        clock.add([(name, NOW + step * STEP) for name in range(alive)])

    assert clock.now == NOW + (2 * RECENT - 1) * STEP


def test_a_long_gap_is_over_once_enough_sensors_agree():
    clock = clock_of(range(63))
    later = NOW + 8 * DAY

    found = []
    for name in range(17):
        clock.add([(name, later)])
        found.append(clock.now)

    assert found == [NOW] * 15 + [later] * 2


def test_a_long_gap_of_a_single_sensor_is_over_after_a_few_readings():
    clock = clock_of([0])
    later = NOW + 8 * DAY

    for step in range(FEW):
        assert clock.now == NOW
        clock.add([(0, later + step * STEP)])

    assert clock.now == later + (FEW - 1) * STEP


def test_past_readings_do_not_move_it_back():
    clock = clock_of(range(4))

    clock.add([(name, NOW - 90 * DAY + i * STEP) for name in range(9) for i in range(500)])

    assert clock.now == NOW


def test_a_second_sensor_may_begin_with_its_past():
    clock = clock_of([0])

    clock.add([(1, NOW - 90 * DAY + i * STEP) for i in range(500)])

    assert clock.now == NOW


def test_a_wrong_first_reading_is_corrected_by_others():
    clock = StreamClock()
    clock.add([(0, FAR_YEAR)])

    clock.add([(name, NOW) for name in (1, 2, 3)])

    assert clock.now == NOW


def test_a_first_file_with_one_wrong_row_gives_the_time_of_the_others():
    clock = StreamClock()

    clock.add([*((0, NOW - (20 - i) * STEP) for i in range(21)), (0, FAR_YEAR)])

    assert clock.now == NOW


def test_three_readings_of_a_far_year_make_no_sensor_silent(tmp_path):
    names = [f"s{i}" for i in range(63)]

    async def sent(service, rows):
        batch = Batch([Row(i + 1, *row) for i, row in enumerate(rows)], [])
        receipt = await service.ingest.store(batch, IngestOptions())
        await settled(service)
        return receipt

    async def fed(service):
        for step in range(3):
            await sent(service, [(name, NOW + step * STEP, 1.0) for name in names])
        held = (await sent(service, [(name, FAR_YEAR, 1.0) for name in names[5:8]])).held
        return held, service.now, {each.state(service.now)[0] for each in states(service)}

    async def restarted(service):
        before = service.now
        await sent(service, [(name, NOW + 3 * STEP, 1.0) for name in names])
        return before, service.now, {each.state(service.now)[0] for each in states(service)}

    def states(service):
        return [service.statuses.find(name) for name in names]

    assert serving(fed, tmp_path / "a.db") == (3, NOW + 2 * STEP, {"new"})
    assert serving(restarted, tmp_path / "a.db") == (NOW + 2 * STEP, NOW + 3 * STEP, {"new"})
