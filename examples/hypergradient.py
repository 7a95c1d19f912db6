"""The gradient of a window's loss.

A model is fitted to four days. Its errors on the next day are a function of one hyperparameter.
The red lines have the slopes that one adjoint solve gives at each fit. Following them leads
downhill.
"""

import matplotlib.pyplot as plt
import numpy as np

import streamridge as sr

roads = sr.datasets.simulate_roads(np.random.default_rng(0), detectors=1, days=6)
samples = sr.Features(lags=8).samples(roads.flows[:, 0] / 100)
history, window = samples[: 4 * 96], samples[4 * 96 : 5 * 96]
model = sr.KernelRidge(sr.SquaredExponential(0.01))


def loss_at(regularization):
    """Return the mean loss of the window, and its derivative along log10(regularization)."""
    lam = model.space.values.copy()
    lam[-1] = regularization
    loss, gradient = model.fit(history, lam).loss_and_gradient(window)
    return loss / len(window), np.log(10) * regularization * gradient[-1] / len(window)


exponents = np.linspace(-4, 1, 51)
losses, slopes = np.transpose([loss_at(10.0**exponent) for exponent in exponents])

figure, ax = plt.subplots(figsize=(8, 3.5), layout="constrained")
ax.plot(exponents, losses, label="loss of the next day")
for at in range(4, 51, 7):
    ends = exponents[at] + np.array([-0.35, 0.35])
    ax.plot(ends, losses[at] + slopes[at] * (ends - exponents[at]), color="tab:red")
ax.plot([], [], color="tab:red", label="its gradient")
ax.set(xlabel="log10 of the regularization", ylabel="mean squared error")
ax.legend(fontsize="small")
figure.savefig("hypergradient.png")
