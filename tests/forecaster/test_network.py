from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import numpy as np
import pandas as pd
import polars as pl
import pytest

import streamridge as sr
from streamridge.datasets import simulate_roads
from streamridge.errors import InvalidInputError, StateError
from streamridge.forecaster import network as module

SMALL = {"train_size": 120, "model": "compact", "step": "1h"}
HOUR = np.timedelta64(1, "h")


def roads(days=6, detectors=3, waves=0.3, seed=0):
    return simulate_roads(
        np.random.default_rng(seed), detectors=detectors, days=days, step_minutes=60, waves=waves
    )


def steps_of(simulated):
    for time, row in zip(simulated.times, simulated.flows.tolist(), strict=True):
        yield time, dict(zip(simulated.names, row, strict=True))


def fed(simulated, **settings):
    network = sr.Network(**{**SMALL, **settings})
    for time, values in steps_of(simulated):
        network.observe(time, values)
    return network


@pytest.fixture(scope="module")
def data():
    return roads()


@pytest.fixture(scope="module")
def saved(data):
    return fed(data, horizon=2).to_bytes()


@pytest.fixture(scope="module")
def waiting(data):
    """Return the bytes of a network whose refits are all due."""
    return fed(data, defer_refits=True).to_bytes()


@pytest.fixture(scope="module")
def experienced():
    """Return a network that has seen two weeks; tests only look at it."""
    return fed(roads(days=14), level=(0.5, 0.99))


@pytest.fixture
def network(saved):
    return sr.Network.from_bytes(saved)


class TestForecasts:
    def test_without_neighbours_it_equals_separate_forecasters(self, data):
        network = fed(data, neighbours="none", update_every=24)

        for at, name in enumerate(data.names):
            alone = sr.Forecaster(**SMALL, update_every=24, sensor=name)
            own = network[name]
            for time, value in zip(data.times, data.flows[:, at].tolist(), strict=True):
                alone.observe(time, value)
            if at == 0:  # the refits of the others wait for their turn
                assert own.predict() == alone.predict()
                assert own.hyperparameters == alone.hyperparameters
            assert own.counts["fits"] in (alone.counts["fits"] - 1, alone.counts["fits"])

    def test_neighbours_correct_only_near_steps(self):
        network = fed(roads(days=5), horizon=20)

        made, own = network.forecasts()["mainline-2"], network["mainline-2"].predict()

        near = network["mainline-2"].settings.near
        assert near < 20
        assert (made.value[:1] != own.value[:1]).all()
        np.testing.assert_array_equal(made.value[near:], own.value[near:])
        np.testing.assert_array_equal(made.upper[near:], own.upper[near:])

    def test_without_a_guard_no_step_beyond_the_near_ones_is_corrected(self):
        network = fed(roads(days=5), horizon=20, guard=False)

        made, own = network.forecasts()["mainline-2"], network["mainline-2"].predict()

        assert (made.value[:1] != own.value[:1]).all()
        np.testing.assert_array_equal(made.value[12:], own.value[12:])

    def test_corrections_move_forecasts_and_keep_them_in_their_interval(self, network, data):
        corrected = network.forecasts()

        assert tuple(corrected) == data.names
        moved = [
            not np.array_equal(each.value, network[n].predict().value)
            for n, each in corrected.items()
        ]
        assert any(moved)
        for each in corrected.values():
            assert (each.lower <= each.value).all()
            assert (each.value <= each.upper).all()

    def test_one_frame_for_all_sensors_or_some(self, network, data):
        frame = network.predict()
        some = network.predict(1, sensors=[data.names[1]], level=(0.5, 0.9), backend="polars")

        assert list(frame.columns) == ["sensor", "time", "value", "lower", "upper"]
        assert frame["sensor"].tolist() == [name for name in data.names for _ in range(2)]
        assert isinstance(some, pl.DataFrame)
        assert some.columns[3:] == ["lower_50", "upper_50", "lower_90", "upper_90"]
        assert some["value"][0] == frame["value"][2]

    def test_predicting_changes_nothing(self, network, data):
        other = sr.Network.from_bytes(network.to_bytes())
        network.predict()
        for each in (network, other):
            each.observe(data.times[-1] + HOUR, dict.fromkeys(data.names, 100.0))

        pd.testing.assert_frame_equal(network.predict(), other.predict())

    def test_no_later_reading_of_any_sensor_changes_a_forecast(self, saved, data):
        ahead = {}
        for poison in (0.0, 1e6):
            network, found = sr.Network.from_bytes(saved), []
            for at, (_, values) in enumerate(list(steps_of(data))[:12]):
                if at > 4:
                    values = {name: value + poison for name, value in values.items()}
                found.append(network.predict())
                network.observe(data.times[-1] + (at + 1) * HOUR, values)
            ahead[poison] = found

        for one, other in zip(ahead[0.0][:6], ahead[1e6][:6], strict=True):
            pd.testing.assert_frame_equal(one, other)
        assert not ahead[0.0][8].equals(ahead[1e6][8])

    def test_neighbours_are_named_by_their_strength(self, experienced, data):
        heard = experienced.neighbours_of(data.names[1])

        assert data.names[0] in heard
        assert list(heard.values()) == sorted(heard.values(), reverse=True)
        assert next(iter(heard.values())) > 0.2


class TestReadings:
    def test_frames_equal_single_steps(self, data):
        frame = data.frame()
        long = frame.melt("time", var_name="sensor", value_name="value")
        start, later = frame[:96], frame[96:120]

        ways = {}
        for name, given in (
            ("wide", later),
            ("long", long[long.time.isin(later.time)]),
            ("polars", pl.from_pandas(later)),
        ):
            network = sr.Network.start(start, **SMALL)
            network.update(given)
            ways[name] = network.predict(backend="pandas")
        network = sr.Network.start(start, **SMALL)
        for time, values in list(steps_of(data))[96:120]:
            network.observe(time, values)
        ways["steps"] = network.predict()

        for each in ways.values():
            pd.testing.assert_frame_equal(each, ways["wide"])

    def test_a_sensor_without_a_reading_has_a_gap_until_one_comes_late(self, network, data):
        time, first = data.times[-1] + HOUR, data.names[0]
        both = sr.Network.from_bytes(network.to_bytes())
        everyone = {name: 100.0 for name in data.names}
        both.observe(time, everyone)

        network.observe(time, {first: 100.0})
        assert network[data.names[1]].counts["missing"] == 1
        network.observe(time, {name: 100.0 for name in data.names[1:]})

        assert network[data.names[1]].counts["late"] == 1
        assert network[data.names[1]].next_time == time + HOUR
        assert network.forecasts()[first] == both.forecasts()[first]

    def test_sensors_that_pause_together_are_forecast_again(self, network, data):
        later = data.times[-1] + 30 * HOUR

        network.observe(later, {data.names[0]: 300.0})

        assert {network[name].next_time for name in data.names} == {later + HOUR}
        assert np.isfinite(network.predict()["value"]).all()

    def test_an_invalid_reading_changes_nothing(self, network, data):
        before = network.predict()

        with pytest.raises(InvalidInputError, match=r"mainline-2 must be a number, got 'x'"):
            network.observe(data.times[-1] + HOUR, {"mainline-1": 5.0, "mainline-2": "x"})
        with pytest.raises(InvalidInputError, match="time must be"):
            network.observe("yesterday", {"new": 5.0})
        with pytest.raises(InvalidInputError, match=r"values must be a mapping .* Use update"):
            network.observe(data.times[-1] + HOUR, 5.0)

        assert network.sensors == data.names
        pd.testing.assert_frame_equal(network.predict(), before)

    def test_a_frame_with_a_wrong_time_changes_nothing(self, network, data):
        before = network.predict()
        frame = pd.DataFrame(
            {
                "time": [data.times[-1] + HOUR, data.times[-1] + 10**6 * HOUR],
                "mainline-1": [1.0, 2.0],
            }
        )

        with pytest.raises(InvalidInputError, match="of the newest reading"):
            network.update(frame)

        pd.testing.assert_frame_equal(network.predict(), before)

    def test_rows_of_another_rate_are_refused(self, network):
        times = pd.date_range("2017-01-09", periods=40, freq="15min")

        with pytest.raises(InvalidInputError, match="must be 1h apart"):
            network.update(pd.DataFrame({"time": times, "mainline-1": np.arange(40.0)}))


class TestOddReadings:
    def test_the_repeated_hour_in_autumn_is_two_hours(self):
        times = pd.date_range("2021-10-30", periods=53, freq="1h", tz="Europe/London")
        frame = pd.DataFrame({"time": times, "a": np.arange(53.0), "b": 2 * np.arange(53.0)})

        network = sr.Network("1h", tz="Europe/London")
        network.update(frame)

        assert [network[name].counts["readings"] for name in network] == [53, 53]
        assert "missing" not in network["a"].counts

    def test_sensors_with_jittered_stamps_share_their_steps(self, data):
        frame = data.frame()[:100].melt("time", var_name="sensor", value_name="value")
        late = frame.sensor.map({name: 5 * at for at, name in enumerate(data.names)})
        jittered = frame.assign(time=frame.time + pd.to_timedelta(late, unit="s"))

        plain, shifted = sr.Network(**SMALL), sr.Network(**SMALL)
        plain.update(frame)
        shifted.update(jittered)

        assert "missing" not in shifted[data.names[1]].counts
        np.testing.assert_array_equal(plain.predict()["value"], shifted.predict()["value"])

    def test_a_number_replaces_a_missing_duplicate(self):
        times = pd.to_datetime(["2021-06-01 00:00", "2021-06-01 01:00", "2021-06-01 01:00"])
        network = sr.Network("1h")

        network.update(pd.DataFrame({"time": times, "a": [1.0, np.nan, 2.0], "b": [1.0, 3.0, 3.0]}))

        assert network["a"].counts["readings"] == 2

    def test_excluded_readings_are_no_surprise_to_others(self, saved, data):
        networks = [sr.Network.from_bytes(saved) for _ in range(2)]
        time, others = data.times[-1] + HOUR, dict.fromkeys(data.names[1:], 100.0)

        networks[0].observe(time, others)
        networks[1][data.names[0]].exclude(time, time)
        networks[1].observe(time, {data.names[0]: 5000.0, **others})

        one, other = (each.forecasts(data.names[1:]) for each in networks)
        assert one == other

    def test_readings_outside_the_bounds_are_no_surprise_to_others(self, data):
        bounded = fed(data, bounds=(0, 5000)).to_bytes()
        networks = [sr.Network.from_bytes(bounded) for _ in range(2)]
        time, others = data.times[-1] + HOUR, dict.fromkeys(data.names[1:], 100.0)

        networks[0].observe(time, others)
        networks[1].observe(time, {data.names[0]: 9e5, **others})

        one, other = (each.forecasts(data.names[1:]) for each in networks)
        assert one == other

    def test_sensors_fed_one_by_one_learn_from_each_other(self):
        simulated, network = roads(days=9), sr.Network(**SMALL)
        for time, values in steps_of(simulated):
            for name, value in values.items():
                network.observe(time, {name: value})

        assert network.neighbours_of("mainline-2")["mainline-1"] > 0.1

    def test_a_sensor_whose_first_reading_is_late_joins_the_others(self, network, data):
        network.observe(data.times[-5], {"late": 7.0})

        assert network["late"].next_time == network[data.names[0]].next_time

    def test_a_change_of_one_forecaster_shows_at_once(self, network, data):
        before = network.predict()

        network[data.names[0]].tuning.set(regularization=90.0)

        assert not network.predict().equals(before)

    def test_a_new_sensor_is_on_the_grid_of_the_others(self):
        network = sr.Network("1h")
        network.observe("2021-06-01T00:05", {"a": 1.0})
        network.observe("2021-06-01T01:05", {"a": 2.0, "b": 1.0})
        network.observe("2021-06-01T02:06", {"a": 3.0, "c": 1.0})

        assert len({str(network[name].next_time) for name in network}) == 1

    def test_outer_intervals_keep_their_width(self, experienced):
        made = experienced.forecasts()["mainline-2"]

        own = experienced["mainline-2"].predict()
        assert not np.array_equal(made.value, own.value)
        widths = (made.upper - made.lower)[0] / (own.upper - own.lower)[0]
        assert widths[1] == pytest.approx(widths[0], rel=0.05)


class TestSensors:
    def test_sensors_come_and_go(self, network, data):
        network.observe(data.times[-1] + HOUR, {"new": 7.0})
        assert network.sensors == (*data.names, "new")
        assert "new" in network.predict()["sensor"].tolist()

        network.remove(data.names[0])

        assert network.sensors == (*data.names[1:], "new")
        assert len(network) == 3
        for name in network:
            assert data.names[0] not in network.neighbours_of(name)
        network.observe(data.times[-1] + 2 * HOUR, {"new": 8.0, data.names[1]: 400.0})
        assert network.forecasts(["new"])["new"].sensor == "new"

    def test_a_new_sensor_starts_at_the_typical_hyperparameters(self, network):
        for name in network.sensors:
            network[name].tuning.set(regularization=7.0)
        network["mainline-2"].tuning.set(regularization=700.0 / 9)

        network.add("new")

        assert network["new"].hyperparameters["regularization"] == pytest.approx(7.0)
        weights = [v for k, v in network["new"].hyperparameters.items() if k.startswith("weight.")]
        assert sum(weights) == pytest.approx(1.0)
        default = sr.Forecaster(**SMALL, horizon=2).settings.preset.usual_values
        usual = network["new"].settings.preset.usual_values
        np.testing.assert_array_equal(usual, default)

    def test_two_fitted_sensors_are_too_few_to_be_typical(self, network):
        network.remove("ramp-3")
        network["mainline-1"].tuning.set(regularization=7.0)
        network["mainline-2"].tuning.set(regularization=7.0)

        network.add("new")

        assert network["new"].hyperparameters == sr.Forecaster(**SMALL, horizon=2).hyperparameters

    def test_a_failing_sensor_costs_itself_alone(self, network, data, monkeypatch):
        observe = sr.Forecaster.observe

        def failing(self, *arguments):
            if self.settings.sensor == "mainline-2":
                raise ZeroDivisionError("broken")
            return observe(self, *arguments)

        monkeypatch.setattr(sr.Forecaster, "observe", failing)
        network.observe(data.times[-1] + HOUR, dict.fromkeys(data.names, 100.0))
        monkeypatch.undo()
        network.observe(data.times[-1] + 2 * HOUR, dict.fromkeys(data.names, 100.0))

        assert network.failures == {"mainline-2": "ZeroDivisionError: broken"}
        assert set(network.predict()["sensor"]) == {"mainline-1", "ramp-3"}
        with pytest.raises(
            InvalidInputError, match="mainline-2: there must be a forecast, but Zero"
        ):
            network.forecasts(["mainline-2"])
        network.add("mainline-2")
        assert not network.failures

    def test_a_wrong_name_adds_no_sensor(self, network, data):
        for wrong in ("", 5):
            with pytest.raises(InvalidInputError, match="sensor must be a name, got"):
                network.observe(data.times[-1] + HOUR, {"fine": 1.0, wrong: 2.0})

        assert network.sensors == data.names

    def test_a_sensor_may_have_bounds_of_its_own(self, network, data):
        network.add("share", bounds=(0, 1))
        network.observe(data.times[-1] + HOUR, {"share": 0.9})

        assert network["share"].settings.bounds == (0, 1)
        assert network.forecasts(["share"])["share"].upper.max() <= 1

    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"extras": ("rain",)}, "Network must be given options among .*, got 'extras'"),
            ({"sensor": "a"}, "got 'sensor'"),
            ({"engine": 3}, "engine must be a concurrent.futures.Executor or None, got 3"),
            ({"neighbours": np.zeros(2)}, "neighbours must be 'auto'"),
        ],
    )
    def test_other_settings_are_refused(self, settings, message):
        with pytest.raises(InvalidInputError, match=message):
            sr.Network("1h", **settings)

    def test_one_name_is_not_a_list_of_letters(self, network):
        assert sr.Network("1h", sensors="abc").sensors == ("abc",)
        assert list(network.forecasts("ramp-3")) == ["ramp-3"]

    def test_histories_on_different_grids_are_refused(self):
        hours = pd.date_range("2021-01-01", periods=200, freq="1h")
        values = np.sqrt(np.arange(200) % 24)

        with pytest.raises(InvalidInputError, match="must be read at the same times"):
            sr.Network.start(
                {
                    "a": pd.Series(values, hours),
                    "b": pd.Series(values, hours + pd.Timedelta("20min")),
                }
            )

    def test_names_are_checked(self, network):
        with pytest.raises(InvalidInputError, match=r"sensor must be one of .*, got 'x'"):
            network["x"]
        with pytest.raises(InvalidInputError, match="sensor must be new, got 'ramp-3'"):
            network.add("ramp-3")
        with pytest.raises(InvalidInputError, match="sensor must be a name, got ''"):
            network.add("")
        with pytest.raises(InvalidInputError, match="horizon must be at most 2"):
            network.predict(3)

    def test_sensors_of_different_steps_need_a_network_each(self):
        hourly = pd.Series(np.arange(200.0), pd.date_range("2021-01-01", periods=200, freq="1h"))
        daily = pd.Series(np.arange(90.0), pd.date_range("2021-01-01", periods=90, freq="1D"))

        with pytest.raises(InvalidInputError, match="must have the same step, got"):
            sr.Network.start({"a": np.sqrt(hourly % 24), "b": np.sqrt(daily % 7)})


class TestRefits:
    def test_refits_spread_over_steps(self, monkeypatch):
        refits = []
        monkeypatch.setattr(
            sr.Forecaster, "refit", lambda self, memory=None: refits.append(self.settings.sensor)
        )
        network = sr.Network(**SMALL, sensors=list("abcdef"), update_every=3)
        monkeypatch.setattr(module.Forecaster, "refit_due", property(lambda self: True))
        tuning = property(lambda self: type("Tuning", (), {"has_model": True}))
        monkeypatch.setattr(module.Forecaster, "tuning", tuning)

        for hour in range(3):
            time = np.datetime64("2021-01-01T00") + hour * HOUR
            network.observe(time, dict.fromkeys("abcdef", 1.0))

        assert refits == list("abcdef")  # two at each step

    def test_deferred_refits_wait_and_follow_a_budget(self, data, waiting):
        network = sr.Network.from_bytes(waiting)
        assert set(network.refit_due) == set(data.names)
        assert network.predict()["value"].notna().all()  # naive forecasts

        assert network.refit(seconds=0) == ()
        assert set(network.refit()) == set(data.names)

        assert network.refit_due == ()
        assert all(network[name].tuning.has_model for name in network)

    @pytest.mark.parametrize("processes", [False, True])
    def test_an_engine_gives_the_same_results(self, data, waiting, processes):
        here, there = (sr.Network.from_bytes(waiting) for _ in range(2))
        here.refit()

        context = get_context("forkserver")
        pool = ProcessPoolExecutor(1, context) if processes else ThreadPoolExecutor(1)
        with pool as engine:
            there.engine = engine
            assert there.refit() == data.names

        pd.testing.assert_frame_equal(here.predict(), there.predict())

    def test_a_broken_engine_leaves_refits_due(self, data, waiting):
        network = sr.Network.from_bytes(waiting)
        network.engine = ThreadPoolExecutor(1)
        network.engine.shutdown()

        with pytest.raises(StateError, match=r"the engine cannot refit: .* new executor"):
            network.refit()

        assert network.failures == {}
        assert set(network.refit_due) == set(data.names)

    def test_sensors_that_have_waited_longest_come_first(self, data):
        network = sr.Network(**SMALL, defer_refits=True)
        for at, (time, values) in enumerate(steps_of(data)):
            late = {
                name: value for name, value in values.items() if name != "mainline-1" or at > 20
            }
            network.observe(time, late)

        assert network.refit_due[-1] == "mainline-1"


class TestSaving:
    def test_a_saved_network_continues_bit_for_bit(self, network, data, tmp_path):
        network.save(tmp_path / "roads.sr")
        copy = sr.Network.load(tmp_path / "roads.sr")

        for hour in range(1, 40):
            values = dict(zip(data.names, data.flows[hour].tolist(), strict=True))
            for each in (network, copy):
                each.observe(data.times[-1] + hour * HOUR, values)
            pd.testing.assert_frame_equal(network.predict(), copy.predict())
        assert repr(network) == repr(copy)

    def test_positions_and_deferred_refits_are_saved(self):
        places = {"a": (0.0, 1.0), "b": (2.0, 3.0)}
        network = sr.Network("1h", neighbours=places, defer_refits=True, sensors=("a", "b"))

        copy = sr.Network.from_bytes(network.to_bytes())

        assert copy.to_bytes() == network.to_bytes()

    def test_other_files_are_refused(self, network, saved):
        forecaster = network["ramp-3"].to_bytes()

        with pytest.raises(StateError, match="content must hold a network, got a 'forecaster'"):
            sr.Network.from_bytes(forecaster)
        with pytest.raises(StateError):
            sr.Network.from_bytes(saved[:-40])
        with pytest.raises(StateError, match="must hold a forecaster, got 'network'"):
            sr.Forecaster.from_bytes(saved)

    def test_it_takes_no_more_than_its_forecasters_in_a_file(self, network):
        alone = sum(len(network[name].to_bytes()) for name in network)

        assert len(network.to_bytes()) < 1.2 * alone
