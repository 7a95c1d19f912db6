import pytest

from streamridge import Forecaster


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        ("5min", (864, 288, 2016, 288)),
        ("15min", (288, 96, 672, 96)),
        ("30min", (144, 96, 336, 48)),
        ("1h", (72, 96, 168, 24)),
        ("1min", (2016, 1440, 10080, 1440)),
        ("10s", (9216, 1440, 10080, 1440)),
        ("1d", (39, 24, 168, 8)),
        ("7d", (84, 24, 168, 8)),
        ("1mo", (44, 24, 168, 8)),
        (1, (32, 24, 168, 8)),
    ],
)
def test_cadence_suits_the_step(step, expected):
    settings = Forecaster(step).settings

    shown = (settings.warmup, settings.update_every, settings.tune_every, settings.patience)
    assert shown == expected


def test_a_small_training_set_does_not_change_the_cadence_of_usual_steps():
    assert Forecaster("5min", train_size=100).settings.update_every == 288


def test_refits_are_not_further_apart_than_a_quarter_of_many_rows():
    assert Forecaster("10s", train_size=20_000).settings.update_every == 5000
