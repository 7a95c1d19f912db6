"""A live loop.

The forecaster predicts each step before it reads the value. The first days are forecast by the
last reading or the day before; then the model takes over, and its interval is narrower.
"""

import matplotlib.pyplot as plt
import numpy as np

import streamridge as sr

roads = sr.datasets.simulate_roads(np.random.default_rng(1), detectors=1, days=6)
forecaster = sr.Forecaster(step="15min", bounds=(0, None), train_size=200)

forecasts = []
for time, flow in zip(roads.times, roads.flows[:, 0], strict=True):
    forecasts.append(forecaster.predict())
    forecaster.observe(time, flow)

value, lower, upper = (
    np.array([getattr(forecast, name)[0] for forecast in forecasts[1:]])
    for name in ("value", "lower", "upper")
)
by_model = np.array([forecast.source == "model" for forecast in forecasts[1:]])
times = roads.times[1:]

figure, ax = plt.subplots(figsize=(8, 3.5), layout="constrained")
ax.fill_between(times, lower, upper, alpha=0.3, label="90 % interval")
ax.plot(times, value, linewidth=1, label="forecast, one step ahead")
ax.plot(times, roads.flows[1:, 0], "k.", markersize=2, label="reading")
ax.axvline(times[by_model][0], color="grey", linestyle="--")
ax.annotate("the model takes over", (times[by_model][0], ax.get_ylim()[1]), (4, -12),
            textcoords="offset points")  # fmt: skip
ax.set(ylabel="vehicles / 15 min")
ax.legend(ncols=3, fontsize="small", loc="lower center", bbox_to_anchor=(0.5, 1))
figure.savefig("live_loop.png")
