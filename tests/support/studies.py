"""Studies of the paper, small enough for tests."""

from streamridge.experiments.regret.study import RegretSize
from streamridge.experiments.traffic.study import (
    TrafficSize,
    make_study,
    simulated_series,
)
from streamridge.files.reading import read

ETA, N, T = 1.0, 16, 24
TOY_REGRET = RegretSize(
    train_size=N,
    steps=T,
    pairs=8,
    windows=2,
    update_every=(1, 4),
    window=4,
    tolerance=0.4,
    learning_rate=ETA,
)

TOY = TrafficSize(
    2, 3, warmup=150, steps=100, train_size=60, validation_size=40, update_every=48, tune_every=96
)


def study_of(folder, *, series=None, size=TOY, seed=0, **options):
    """Return a study of series, or of simulated ones."""
    given = simulated_series(size, seed) if series is None else series
    return make_study(folder, read(given), size=size, seed=seed, **options)
