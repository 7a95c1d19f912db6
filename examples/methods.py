"""Tuning methods compared.

All methods forecast the same steps. The regularization starts at 0.001, far from the usual 2, and
roadworks begin after nine days. The self-tuned model (`ohl`) leaves the bad start.
"""

import matplotlib.pyplot as plt
import numpy as np

import streamridge as sr

roads = sr.datasets.simulate_roads(np.random.default_rng(0), detectors=1, days=14, works=9)
table = sr.compare(
    roads.frame(),
    ["ohl", "fixed", "last"],
    train_size=200,
    hyperparameters={"regularization": 0.001},
)
print(table)

figure, ax = plt.subplots(figsize=(8, 3.5), layout="constrained")
for run in table.runs:
    errors = np.square(run.actual - run.value[:, 0])
    recent = np.convolve(errors, np.ones(192) / 192, mode="valid")
    ax.plot(run.times[191:], np.sqrt(recent), label=run.method)
ax.axvline(np.datetime64("2017-01-10"), color="grey", linestyle="--", label="roadworks begin")
ax.set(ylabel="RMSE of the last two days")
ax.legend(fontsize="small")
figure.autofmt_xdate()
figure.savefig("methods.png")
