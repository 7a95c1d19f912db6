"""Readings that are missing.

A sensor is silent for six hours. Forecasts fill the gap, and use the readings again as soon as
they come back.
"""

import matplotlib.pyplot as plt
import numpy as np

import streamridge as sr

roads = sr.datasets.simulate_roads(np.random.default_rng(2), detectors=1, days=9)
flows = roads.flows[:, 0].copy()
silent = slice(-60, -36)
forecaster = sr.Forecaster.start(roads.frame()[:-96], train_size=300)

day = []
for step in range(len(flows) - 96, len(flows)):
    day.append(forecaster.predict())
    missing = step in range(*silent.indices(len(flows)))
    forecaster.observe(roads.times[step], None if missing else flows[step])

times = roads.times[-96:]
figure, ax = plt.subplots(figsize=(8, 3.5), layout="constrained")
ax.fill_between(
    times, [each.lower[0] for each in day], [each.upper[0] for each in day], alpha=0.3,
    label="90 % interval",
)  # fmt: skip
ax.plot(times, [each.value[0] for each in day], label="forecast, one step ahead")
shown = flows[-96:].copy()
shown[silent] = np.nan
ax.plot(times, shown, "k.", markersize=4, label="reading")
ax.plot(times[silent], flows[silent], "o", color="grey", markersize=3, mfc="none",
        label="never received")  # fmt: skip
ax.set(ylabel="vehicles / 15 min")
ax.legend(ncols=2, fontsize="small")
figure.savefig("gaps.png")
