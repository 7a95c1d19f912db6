"""A road that is closed.

Counts fall to a tenth and stay there. Forecasts follow within hours: the ensemble gives most of
the weight to the last reading, and the model regains it as it learns the new level.
"""

import matplotlib.pyplot as plt
import numpy as np

import streamridge as sr

roads = sr.datasets.simulate_roads(np.random.default_rng(3), detectors=1, days=14)
flows = roads.flows[:, 0].copy()
flows[8 * 96 :] *= 0.1
forecaster = sr.Forecaster.start(roads.frame()[: 7 * 96], train_size=300)

forecasts, weights = [], []
for time, flow in zip(roads.times[7 * 96 :], flows[7 * 96 :], strict=True):
    forecasts.append(forecaster.predict().value[0])
    weights.append(list(forecaster.tuning.experts.values()))
    forecaster.observe(time, flow)

times = roads.times[7 * 96 :]
figure, (above, below) = plt.subplots(2, figsize=(8, 5), sharex=True, layout="constrained")
above.plot(times, flows[7 * 96 :], "k.", markersize=2, label="reading")
above.plot(times, forecasts, linewidth=1, label="forecast, one step ahead")
above.set(ylabel="vehicles / 15 min")
above.legend(fontsize="small")
below.stackplot(times, np.transpose(weights), labels=list(forecaster.tuning.experts), alpha=0.8)
below.set(ylabel="weights of the experts", ylim=(0, 1))
below.legend(ncols=5, fontsize="small", loc="lower center")
figure.savefig("closed_road.png")
