import json
import tracemalloc
from hashlib import blake2b

import numpy as np
import pytest

from streamridge import Forecaster, FormerFormatError, InvalidInputError, StateError
from streamridge.files import checkpoint
from streamridge.files.checkpoint import decoded, encoded, read_checkpoint, write_checkpoint
from streamridge.forecaster.saving import build, describe
from tests.support.forecasters import DAY, daily, live, same, small
from tests.support.tiers import tiered

ARRAYS = {
    "values": np.array([[1.5, np.nan], [np.inf, -0.0]]),
    "steps": np.array([1, 2**60]),
    "flags": np.array([True, False]),
    "nothing": np.empty((0, 3)),
    "one": np.array(7.0),
}


def test_what_is_written_is_read(tmp_path):
    path = tmp_path / "state.sr"

    write_checkpoint(path, {"name": "ramp 7 é"}, ARRAYS)
    header, arrays = read_checkpoint(path)

    assert header == {"name": "ramp 7 é"}
    assert list(arrays) == list(ARRAYS)
    for name, array in ARRAYS.items():
        assert arrays[name].shape == array.shape
        np.testing.assert_array_equal(arrays[name], array)


def test_counts_are_packed_and_come_back_as_they_were():
    counts = np.random.default_rng(0).poisson(200, 7000).astype(float)

    content = encoded({}, {"counts": counts, **ARRAYS})

    assert len(content) < counts.nbytes / 3
    header, arrays = decoded(content, "it")
    assert header == {}
    np.testing.assert_array_equal(arrays["counts"], counts)


def test_what_cannot_be_packed_stays_as_it_is():
    noise = np.frombuffer(np.random.default_rng(0).bytes(8000), np.uint8)

    assert b"packed" not in encoded({}, {"noise": noise})


@pytest.mark.parametrize("size", [0, 79_999, 4_000_001, -1, "many"])
def test_a_wrong_size_of_what_is_packed_is_noticed(size):
    content = encoded({}, {"zeros": np.zeros(5_000_000)})
    start = len(checkpoint.MAGIC) + 12
    length = int.from_bytes(content[start - 8 : start], "little")
    told = json.loads(content[start : start + length]) | {"packed": size}
    text = json.dumps(told).encode()
    body = content[: start - 8] + len(text).to_bytes(8, "little") + text
    body += content[start + length : -checkpoint.DIGEST_BYTES]

    tracemalloc.start()
    with pytest.raises(StateError, match="is damaged: its header makes no sense"):
        decoded(body + blake2b(body, digest_size=checkpoint.DIGEST_BYTES).digest(), "it")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20e6


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "ramp.sr"
    forecaster = small()
    live(forecaster, daily(4 * DAY))
    forecaster.save(path)
    return path


def test_every_cut_is_noticed(saved):
    content = saved.read_bytes()

    for length in [*range(0, 60), *range(60, len(content), 1999), len(content) - 1]:
        saved.write_bytes(content[:length])
        with pytest.raises(StateError, match=r"not a streamridge checkpoint|damaged|has format"):
            Forecaster.load(saved)


def test_every_flipped_byte_is_noticed(saved):
    content = bytearray(saved.read_bytes())
    rng = np.random.default_rng(0)

    for place in rng.choice(len(content), 500, replace=False):
        altered = content.copy()
        altered[place] ^= 1 << int(rng.integers(8))
        saved.write_bytes(altered)
        with pytest.raises(StateError, match=r"not a streamridge checkpoint|damaged|has format"):
            Forecaster.load(saved)


def test_a_file_of_the_former_numbering_is_refused_and_says_what_to_do(saved):
    former = checkpoint.FORMER_MAGIC + saved.read_bytes()[len(checkpoint.MAGIC) :]
    saved.write_bytes(former)

    with pytest.raises(StateError, match=r"development version .* Start again from the readings"):
        Forecaster.load(saved)

    assert saved.read_bytes() == former


def test_an_earlier_format_is_refused_and_says_what_to_do(saved, monkeypatch):
    forecaster = Forecaster.load(saved)
    monkeypatch.setattr(checkpoint, "VERSION", 1)
    forecaster.save(saved)
    former = saved.read_bytes()
    monkeypatch.undo()

    message = r"has format 1, and this version reads format 2\. Start again from the readings"
    with pytest.raises(FormerFormatError, match=message):
        Forecaster.load(saved)

    assert saved.read_bytes() == former


def test_a_newer_format_is_refused_and_left_alone(saved, monkeypatch):
    forecaster = Forecaster.load(saved)
    monkeypatch.setattr(checkpoint, "VERSION", 9)
    forecaster.save(saved)
    newer = saved.read_bytes()
    monkeypatch.setattr(checkpoint, "VERSION", 8)

    with pytest.raises(StateError, match=r"has format 9, and this version reads formats up to 8"):
        Forecaster.load(saved)

    assert saved.read_bytes() == newer


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: path.write_bytes(b""), "is not a streamridge checkpoint"),
        (lambda path: path.write_bytes(b"PK\x03\x04 zip"), "other.sr is not a streamridge"),
        (lambda path: path.mkdir(), "cannot be read: Is a directory"),
        (lambda path: None, "cannot be read: No such file"),
        (
            lambda path: write_checkpoint(path, {"kind": "sandwich"}, {}),
            "must hold a forecaster, got 'sandwich'",
        ),
        (
            lambda path: write_checkpoint(path, {"kind": "forecaster", "settings": {}}, {}),
            "settings cannot be read: 'step'",
        ),
    ],
)
def test_another_file_is_refused(make, message, tmp_path):
    path = tmp_path / "other.sr"
    make(path)

    with pytest.raises(StateError, match=message):
        Forecaster.load(path)


def test_a_state_with_a_part_missing_is_refused(saved):
    header, arrays = read_checkpoint(saved)
    whole = dict(arrays)

    optional = "model.learner.current.fit.spread_weights"  # it can be made again
    for name in set(whole) - {optional}:
        arrays = {other: array for other, array in whole.items() if other != name}
        write_checkpoint(saved, header, arrays)
        with pytest.raises(StateError):
            Forecaster.load(saved).predict()  # a fit is woken by its first forecast


def test_nothing_is_left_behind_where_nothing_can_be_written(tmp_path):
    with pytest.raises(InvalidInputError, match=r"must be a file that can be written"):
        small().save(tmp_path / "nowhere" / "ramp.sr")

    assert not list(tmp_path.iterdir())


def test_an_error_while_writing_leaves_the_old_file(saved, monkeypatch):
    before = saved.read_bytes()
    forecaster = Forecaster.load(saved)
    monkeypatch.setattr(checkpoint, "blake2b", _fail)

    with pytest.raises(RuntimeError, match="disk on fire"):
        forecaster.save(saved)

    assert saved.read_bytes() == before
    assert list(saved.parent.iterdir()) == [saved]


def _fail(*args, **kwargs):
    raise RuntimeError("disk on fire")


# Before the first fit, and right before a refit, by horizon.
QUICK = {1: (5,), 3: (4 * DAY - 1,)}


@pytest.mark.parametrize(
    ("horizon", "moment"),
    tiered(
        QUICK,
        [0, 5, 2 * DAY, 3 * DAY + 1, 4 * DAY - 1, 5 * DAY + 7],
        quick=lambda horizon, moment: moment in QUICK[horizon],
    ),
)
def test_a_loaded_forecaster_continues_bit_for_bit(horizon, moment, tmp_path):
    values = daily(7 * DAY + 3)
    values[4 * DAY : 4 * DAY + 5] = np.nan
    values[5 * DAY + 5 : 5 * DAY + 12] = np.nan
    values[6 * DAY] = 1e6
    uninterrupted = small(horizon=horizon)
    live(uninterrupted, values[:moment])

    uninterrupted.save(tmp_path / "a.sr")
    resumed = Forecaster.load(tmp_path / "a.sr")

    for step in range(moment, len(values)):
        same(uninterrupted.predict(), resumed.predict())
        live(uninterrupted, values[step : step + 1], first=step)
        live(resumed, values[step : step + 1], first=step)
    assert uninterrupted.counts == resumed.counts
    assert uninterrupted.hyperparameters == resumed.hyperparameters
    np.testing.assert_array_equal(uninterrupted.tuning.path.values, resumed.tuning.path.values)


def test_frozen_hyperparameters_stay_frozen_after_loading(tmp_path):
    forecaster = small()
    live(forecaster, daily(5 * DAY))
    forecaster.tuning.freeze("regularization", "weight.linear")

    forecaster.save(tmp_path / "a.sr")

    frozen = Forecaster.load(tmp_path / "a.sr").tuning.frozen
    assert frozen == ("weight.drifting", "weight.linear", "regularization")


@pytest.mark.parametrize(
    "forecaster",
    [
        Forecaster.paper(),
        Forecaster("5min", horizon=3, tz="Europe/London", extras=("rain",)),
    ],
)
def test_settings_are_saved_whole(forecaster, tmp_path):
    forecaster.save(tmp_path / "a.sr")

    assert Forecaster.load(tmp_path / "a.sr").settings == forecaster.settings


def test_only_parts_of_the_library_are_described():
    with pytest.raises(InvalidInputError, match="made of parts of this library"):
        describe(object())


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        ({"kind": "os.system"}, "kind must be one of Periodic, .* got 'os.system'"),
        ({"kind": "Periodic", "period": -1.0}, "Periodic cannot be made: period must be positive"),
        ({"kind": "Periodic", "colour": 1}, "Periodic cannot be made: .*colour"),
    ],
)
def test_another_recipe_is_refused(recipe, message):
    with pytest.raises(StateError, match=message):
        build(recipe)
