"""What a row usually holds of a season, for steps and seasons of any length."""

import pytest

from streamridge import Season
from streamridge.forecaster.presets import usual_seasons
from streamridge.series.clock import parse_step
from streamridge.series.seasons import default_seasons


@pytest.mark.parametrize(
    ("step", "seasons"),
    [
        ("15min", (Season("day", 96, 7, 16), Season("week", 672, 4, 4))),
        ("5min", (Season("day", 288, 7, 16), Season("week", 2016, 4, 4))),
        ("7min", (Season("day", 1440 / 7, 7, 16), Season("week", 1440, 4, 4))),
        (
            "1min",
            (
                Season("day", 1440, 7, 16, beside=3, apart=5),
                Season("week", 10080, 4, 4, beside=3, apart=5),
            ),
        ),
        (
            "1d",
            (Season("week", 7, 7, 16), Season("year", 365.25, 10, 4, beside=5, apart=3)),
        ),
        ("7d", (Season("year", 365.25 / 7, 10, 16, beside=2),)),
        ("1mo", (Season("year", 12, 10, 16),)),
        (1, ()),
    ],
)
def test_a_typical_value_is_the_mean_of_what_suits_the_step(step, seasons):
    length = parse_step(step)

    assert usual_seasons(default_seasons(length), length) == seasons


def test_times_around_stay_within_a_short_season():
    (season,) = usual_seasons((parse_step("15min"),), parse_step("10s"))

    assert season == Season("15min", 90, 7, 16, beside=0, apart=30)
