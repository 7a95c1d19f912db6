"""The predictor of GluonTS: rolling windows continue as live, scores, files, and bad input."""

import pickle

import numpy as np
import pandas as pd
import pytest
from gluonts.dataset.split import split
from gluonts.ev.metrics import MAE, MASE, MeanWeightedSumQuantileLoss
from gluonts.model import evaluate_model
from gluonts.model.predictor import Predictor

from streamridge.adapters.gluonts import DECILES, StreamRidgePredictor
from streamridge.errors import InvalidInputError
from tests.support.rolling_windows import SETTINGS, START, WINDOWS, H, by_hand, entries


def test_rolling_windows_equal_a_forecaster_that_lives():
    test_set = split(entries(), offset=-WINDOWS * H)[1].generate_instances(H, windows=WINDOWS)

    made = list(StreamRidgePredictor(H, SETTINGS).predict(test_set.input))

    own = [forecast for entry in entries() for forecast in by_hand(entry["target"])]
    assert len(made) == len(own) == 2 * WINDOWS
    for theirs, ours in zip(made, own, strict=True):
        np.testing.assert_array_equal(theirs.quantile(0.5), ours.value)
        np.testing.assert_array_equal(theirs.quantile(0.1), ours.lower[:, 3])
        np.testing.assert_array_equal(theirs.quantile(0.6), ours.upper[:, 0])
    assert made[0].start_date == START + 240 - WINDOWS * H
    assert [each.item_id for each in made[::WINDOWS]] == ["road-0", "road-1"]


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::RuntimeWarning")
def test_scores_equal_those_of_our_benchmark():
    template = split(entries(), offset=-WINDOWS * H)[1]
    metrics = [MASE(), MAE(), MeanWeightedSumQuantileLoss(quantile_levels=DECILES)]

    scores = evaluate_model(
        StreamRidgePredictor(H, SETTINGS),
        test_data=template.generate_instances(H, windows=WINDOWS),
        metrics=metrics,
        seasonality=24,
    )

    mase, losses, sizes = [], [], []
    for entry in entries():
        for number, forecast in enumerate(by_hand(entry["target"])):
            cut = 240 - (WINDOWS - number) * H
            past, actual = entry["target"][:cut], entry["target"][cut : cut + H]
            scale = np.abs(past[24:] - past[:-24]).mean()
            mase.append(np.abs(actual - forecast.value).mean() / scale)
            bands = [forecast.lower[:, ::-1], forecast.value, forecast.upper]
            left = actual[:, None] - np.column_stack(bands)
            shares = np.array(DECILES)
            losses.append(2 * np.maximum(shares * left, (shares - 1) * left).mean())
            sizes.append(np.abs(actual).mean())
    np.testing.assert_allclose(scores["MASE[0.5]"].item(), np.mean(mase))
    loss = scores["mean_weighted_sum_quantile_loss"].item()
    np.testing.assert_allclose(loss, np.mean(losses) / np.mean(sizes))


def test_another_history_of_the_same_name_starts_anew():
    first, second = entries()
    predictor = StreamRidgePredictor(H, SETTINGS)
    next(predictor.predict([first]))

    again = next(predictor.predict([{**second, "item_id": "road-0"}]))

    fresh = next(StreamRidgePredictor(H, SETTINGS).predict([second]))
    np.testing.assert_array_equal(again.forecast_array, fresh.forecast_array)


def test_gaps_at_the_end_move_nothing():
    (entry,) = entries(1)
    entry["target"][-3:] = np.nan

    made = next(StreamRidgePredictor(H, SETTINGS).predict([entry]))

    assert made.start_date == START + 240
    assert np.abs(made.quantile(0.5) - 100 - 50 * np.sin(np.arange(12) * np.pi / 12)).mean() < 15


def test_a_saved_predictor_is_the_same(tmp_path):
    predictor = StreamRidgePredictor(prediction_length=H, settings=SETTINGS)

    predictor.serialize(tmp_path)

    assert Predictor.deserialize(tmp_path) == predictor


def test_a_pickled_predictor_continues():
    (entry,) = entries(1)
    predictor = StreamRidgePredictor(H, SETTINGS)
    next(predictor.predict([{**entry, "target": entry["target"][:-3]}]))

    again = pickle.loads(pickle.dumps(predictor))

    theirs, ours = (next(each.predict([entry])) for each in (again, predictor))
    np.testing.assert_array_equal(theirs.forecast_array, ours.forecast_array)


@pytest.mark.parametrize("freq", ["h", "M", "W"])
@pytest.mark.parametrize("target", [[5.0], [np.nan, 5.0, np.nan]])
def test_one_value_is_repeated(freq, target):
    start = pd.Period("2021-06-14 00:00", freq)

    made = next(StreamRidgePredictor(H).predict([{"start": start, "target": target}]))

    assert made.start_date == start + len(target)
    np.testing.assert_array_equal(made.quantile(0.5), np.full(H, 5.0))


def test_regular_gaps_do_not_change_the_step():
    (entry,) = entries(1)
    entry["target"][1::2] = np.nan

    made = next(StreamRidgePredictor(H, SETTINGS).predict([entry]))

    assert np.abs(made.quantile(0.5) - 100 - 50 * np.sin(np.arange(12) * np.pi / 12)).mean() < 15


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"target": np.ones((2, 5))}, "road-0: target must be one series with a value"),
        ({"target": np.full(50, np.nan)}, "road-0: target must be one series with a value"),
        ({"target": np.full(50, np.inf)}, "must"),
        ({"target": ["many"]}, "could not convert string to float"),
    ],
)
def test_bad_entries_are_value_errors(change, message):
    (entry,) = entries(1)

    with pytest.raises(ValueError, match=message):
        next(StreamRidgePredictor(H, SETTINGS).predict([{**entry, **change}]))


@pytest.mark.filterwarnings("ignore::FutureWarning")  # pandas will drop such periods
def test_business_days_are_refused():
    (entry,) = entries(1)
    entry["start"] = pd.Period("2021-06-14", "B")

    with pytest.raises(InvalidInputError, match="road-0: the index must have a row for each step"):
        next(StreamRidgePredictor(H, SETTINGS).predict([entry]))


def test_bad_settings_are_value_errors():
    with pytest.raises(ValueError, match="train_size must be a whole number"):
        next(StreamRidgePredictor(H, {"train_size": 0}).predict(entries(1)))
    with pytest.raises(ValueError, match=r"settings must be given options among .*, got 'foo'"):
        StreamRidgePredictor(H, {"foo": 1})
