import json

import numpy as np
import pytest
from typer.testing import CliRunner

from streamridge import Forecaster, replay
from streamridge.cli.main import app
from streamridge.datasets import simulate_roads
from streamridge.errors import InvalidInputError
from streamridge.forecaster.candidates import Candidates
from streamridge.forecaster.neighbours import Neighbours
from streamridge.runs.neighbour_runs import corrected_runs


@pytest.fixture(scope="module")
def roads_file(tmp_path_factory):
    file = tmp_path_factory.mktemp("waves") / "roads.csv"
    rng = np.random.default_rng(0)
    roads = simulate_roads(rng, detectors=3, days=14, step_minutes=60, waves=0.4)
    roads.frame().to_csv(file, index=False)
    return file


def replayed(file, *flags):
    arguments = ["replay", str(file), "--model", "compact", "--train-size", "120", "--json"]
    result = CliRunner().invoke(app, [*arguments, "--quiet", *flags])
    assert result.exit_code == 0, result.output
    return {each["sensor"]: each for each in map(json.loads, result.stdout.splitlines())}


@pytest.fixture(scope="module")
def alone(roads_file):
    return replayed(roads_file)


def test_neighbours_foresee_waves_in_a_replay(roads_file, alone):
    helped = replayed(roads_file, "--neighbours", "auto")

    assert list(helped) == list(alone)
    for name in ("mainline-2", "ramp-3"):
        assert helped[name]["rmse"] < 0.85 * alone[name]["rmse"]
    assert helped["mainline-1"]["rmse"] < 1.01 * alone["mainline-1"]["rmse"]
    assert next(iter(helped["mainline-2"]["neighbours"])) == "mainline-1"
    assert alone["mainline-2"]["neighbours"] is None


def test_a_single_sensor_is_left_as_it_is(roads_file, alone):
    helped = replayed(roads_file, "--sensor", "ramp-3", "--neighbours", "auto")["ramp-3"]

    assert helped["rmse"] == pytest.approx(alone["ramp-3"]["rmse"], rel=0.01)


def test_two_runs_of_one_sensor_are_refused():
    class Twice:
        sensor = "a"

    with pytest.raises(InvalidInputError, match="neighbours need one run of each sensor"):
        corrected_runs([Twice, Twice], Neighbours(1, 24, 0.9), Candidates("auto"))


def test_the_relevance_of_a_run_has_its_neighbours(roads_file):
    runs = [
        replay(Forecaster("1h", train_size=120, model="compact"), roads_file, sensor=name)
        for name in ("mainline-1", "mainline-2")
    ]

    _, second = corrected_runs(runs, Neighbours(1, 24, 0.9), Candidates("auto"))

    assert runs[1].relevance().neighbours == {}
    assert second.relevance().neighbours == second.neighbours
    assert second.neighbours["mainline-1"] > 0.1
    assert second.relevance().features == runs[1].relevance().features
