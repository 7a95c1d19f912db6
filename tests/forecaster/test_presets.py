"""What a row usually holds of a season, for steps and seasons of any length."""

import pytest

from streamridge import Season
from streamridge.forecaster.presets import FORGETTING, FORGETTING_BOUNDS, seasonal_features
from streamridge.series.lengths import default_seasons, parse_step


def season(name, period, count, lags, **named):
    """Return a season that forgets as usual; the shortest one has 16 lags, and forgets faster."""
    rate = FORGETTING[lags < 16]
    return Season(
        *(name, period, count, lags), **named, forgetting=rate, forgetting_bounds=FORGETTING_BOUNDS
    )


@pytest.mark.parametrize(
    ("step", "seasons"),
    [
        ("15min", (season("day", 96, 28, 16), season("week", 672, 12, 4))),
        ("5min", (season("day", 288, 28, 16), season("week", 2016, 12, 4))),
        ("7min", (season("day", 1440 / 7, 28, 16), season("week", 1440, 12, 4))),
        (
            "1min",
            (
                season("day", 1440, 28, 16, beside=3, apart=5),
                season("week", 10080, 12, 4, beside=3, apart=5),
            ),
        ),
        (
            "1d",
            (season("week", 7, 28, 16), season("year", 365.25, 10, 4, beside=5, apart=3)),
        ),
        ("7d", (season("year", 365.25 / 7, 10, 16, beside=2),)),
        ("1mo", (season("year", 12, 10, 16),)),
        (1, ()),
    ],
)
def test_a_typical_value_is_the_mean_of_what_suits_the_step(step, seasons):
    length = parse_step(step)

    assert seasonal_features(default_seasons(length), length) == seasons


def test_times_around_stay_within_a_short_season():
    (usual,) = seasonal_features((parse_step("15min"),), parse_step("10s"))

    assert usual == season("15min", 90, 28, 16, beside=0, apart=30)
