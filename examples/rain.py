"""Rain that is known in advance.

Heavy rain halves the flow. One forecaster knows the rain of the next hours as an extra column,
the other does not.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import streamridge as sr

hours = np.arange(24 * 24)
rng = np.random.default_rng(0)
rain = rng.uniform(size=24).repeat(24) * (rng.uniform(size=hours.size) < 0.25)
rain[-24:] = np.where((hours[-24:] % 24 >= 8) & (hours[-24:] % 24 < 13), 0.9, 0.0)
flow = (300 + 200 * np.sin(2 * np.pi * (hours - 8) / 24)) * (1 - 0.5 * rain)
flow += rng.normal(0, 8, hours.size)
table = pd.DataFrame({"time": pd.date_range("2021-06-01", periods=hours.size, freq="h")})
table["flow"], table["rain"] = flow, rain
known = table.assign(flow=table["flow"].where(hours < hours.size - 24))  # tomorrow has no reading

informed = sr.forecast(known, horizon=24, extras=("rain",), train_size=400)
unaware = sr.forecast(table[["time", "flow"]][:-24], horizon=24, train_size=400)

figure, ax = plt.subplots(figsize=(8, 3.5), layout="constrained")
ax.bar(table["time"][-24:], 400 * rain[-24:], width=1 / 24, alpha=0.2, label="rain")
ax.plot(table["time"][-24:], flow[-24:], "k.", label="what happened")
ax.plot(unaware["time"], unaware["value"], "--", label="without the rain")
ax.plot(informed["time"], informed["value"], label="with the rain")
ax.set(ylabel="vehicles / hour", ylim=(0, None))
ax.legend(fontsize="small", loc="upper right")
figure.savefig("rain.png")
