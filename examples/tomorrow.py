"""Tomorrow, with intervals.

One call forecasts the next day of every sensor of a frame. The bands contain the reading in 80 %
and in 95 % of all cases.
"""

import matplotlib.pyplot as plt
import numpy as np

import streamridge as sr

roads = sr.datasets.simulate_roads(np.random.default_rng(4), detectors=3, days=22)
frame = roads.frame("pandas")
history, truth = frame[:-96], frame[-96:]

tomorrow = sr.forecast(history, horizon=96, level=(0.8, 0.95), train_size=400)

figure, axes = plt.subplots(3, figsize=(8, 6), sharex=True, layout="constrained")
for ax, name in zip(axes, roads.names, strict=True):
    steps = tomorrow[tomorrow["sensor"] == name]
    ax.fill_between(
        steps["time"], steps["lower_95"], steps["upper_95"], color="C0", alpha=0.15, label="95 %"
    )
    ax.fill_between(
        steps["time"], steps["lower_80"], steps["upper_80"], color="C0", alpha=0.3, label="80 %"
    )
    ax.plot(steps["time"], steps["value"], label="forecast")
    ax.plot(truth["time"], truth[name], "k.", markersize=3, label="what happened")
    ax.set(ylabel="vehicles / 15 min", title=name)
axes[0].legend(ncols=4, fontsize="small")
figure.savefig("tomorrow.png")
