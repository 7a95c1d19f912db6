import numpy as np
import pytest

from streamridge import InvalidInputError
from streamridge.datasets import simulate_roads


@pytest.fixture(scope="module")
def roads():
    return simulate_roads(np.random.default_rng(3))


def by_day(roads):
    """Return the counts as days, steps of the day, detectors."""
    return roads.flows.reshape(-1, 96, len(roads.names))


def weekdays(roads):
    days = roads.times[::96].astype("datetime64[D]")
    return (days.astype(int) + 3) % 7


def test_the_default_is_the_size_of_the_papers_study(roads):
    assert roads.flows.shape == (136 * 96, 13)
    assert len(roads.names) == 13
    assert sum(name.startswith("ramp") for name in roads.names) == 4
    assert roads.times[0] == np.datetime64("2017-01-01T00:00")
    assert set(np.diff(roads.times).astype(int)) == {15}


def test_counts_are_whole_and_not_negative(roads):
    assert (roads.flows >= 0).all()
    assert (roads.flows == np.rint(roads.flows)).all()


def test_workdays_have_two_peaks_and_weekends_one(roads):
    mean = by_day(roads)[:, :, 0]
    workday = mean[weekdays(roads) < 5].mean(axis=0).reshape(24, 4).mean(axis=1)
    restday = mean[weekdays(roads) >= 5].mean(axis=0).reshape(24, 4).mean(axis=1)

    morning, midday, evening = workday[6:10].max(), workday[11:14].min(), workday[15:20].max()
    assert midday < morning
    assert midday < evening
    assert 11 <= restday.argmax() <= 17
    assert workday[7] > 1.5 * restday[7]


def test_mainlines_carry_more_than_ramps(roads):
    ramp = np.array([name.startswith("ramp") for name in roads.names])

    assert roads.flows[:, ~ramp].mean() > 3 * roads.flows[:, ramp].mean()


def test_counts_vary_more_than_poisson_counts(roads):
    # Second differences remove smooth parts; for white noise their variance is sixfold.
    noise = np.diff(roads.flows, n=2, axis=0).var(axis=0) / 6

    assert (noise > 1.5 * roads.flows.mean(axis=0)).all()


def test_levels_drift_over_weeks(roads):
    weeks = roads.flows[: 19 * 672].reshape(19, 672, 13).mean(axis=1)

    spread = weeks.std(axis=0) / weeks.mean(axis=0)
    assert (spread > 0.02).all()
    assert (spread < 0.4).all()


def test_incidents_reduce_the_flow_of_neighbours():
    rng = np.random.default_rng(3)
    quiet = simulate_roads(rng, days=300, detectors=4)
    ratio = quiet.flows[48::96] / np.median(quiet.flows[48::96], axis=0)

    assert (ratio < 0.6).any()


def test_the_same_seed_gives_the_same_roads(roads):
    again = simulate_roads(np.random.default_rng(3))

    np.testing.assert_array_equal(roads.flows, again.flows)


@pytest.mark.parametrize("backend", ["pandas", "polars"])
def test_a_frame_has_a_time_column_and_one_per_detector(backend):
    roads = simulate_roads(np.random.default_rng(3), detectors=2, days=1)

    frame = roads.frame(backend)

    assert type(frame).__module__.startswith(backend)
    assert list(frame.columns) == ["time", "mainline-1", "mainline-2"]
    assert len(frame) == 96


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"step_minutes": 7}, "step_minutes must divide 1440, the minutes of a day, got 7"),
        ({"start": "foo"}, "start must be a date such as 2017-01-01, got 'foo'"),
        ({"start": "2017-01-02T05:00"}, "start must be a date such as 2017-01-01"),
        ({"start": "NaT"}, "start must be a date such as 2017-01-01, got 'NaT'"),
        ({"days": 0}, "days must be a whole number of at least 1, got 0"),
        ({"detectors": 0}, "detectors must be a whole number of at least 1, got 0"),
    ],
)
def test_bad_settings_are_refused(settings, message):
    with pytest.raises(InvalidInputError, match=message):
        simulate_roads(np.random.default_rng(0), **settings)


def working(day):
    return simulate_roads(np.random.default_rng(3), days=28, works=day)


def test_roadworks_change_nothing_before_they_begin():
    with_works, without = working(14), working(None)

    begin = 14 * 96
    np.testing.assert_array_equal(with_works.flows[:begin], without.flows[:begin])
    assert (with_works.flows[begin:] != without.flows[begin:]).any(axis=0).all()


def test_roadworks_flatten_mainline_peaks_and_fill_the_ramps():
    before, after = working(None), working(0)

    ramps = np.array([name.startswith("ramp") for name in before.names])
    peaks = after.flows.max(axis=0) / before.flows.max(axis=0)
    assert (peaks[~ramps] < 0.8).all()
    assert (after.flows.mean(axis=0) > before.flows.mean(axis=0))[ramps].all()
    assert (after.flows == np.rint(after.flows)).all()


def test_roadworks_before_the_first_day_are_refused():
    with pytest.raises(InvalidInputError, match=r"works must be .* got -1"):
        working(-1)
