"""Kernels, and what they believe.

A kernel says how similar two moments are. Left: the similarity with step 0. Right: functions
drawn from a Gaussian process with this kernel, which shows what the kernel takes for likely.
"""

import matplotlib.pyplot as plt
import numpy as np

import streamridge as sr

DAY = 96
t = np.arange(-2.0 * DAY, 2.0 * DAY)
inputs = sr.Inputs.of(t, t[:, None] / DAY)  # one feature: the time in days
smooth = sr.SquaredExponential(4.0)
kernels = {
    "squared exponential": smooth,
    "Matern 3/2": sr.Matern(np.array([4.0])),
    "periodic": sr.Periodic(period=DAY, inverse_scale=4.0),
    "drifting periodic": sr.Drifting(sr.Periodic(period=DAY, inverse_scale=4.0), rate=0.01),
}

rng = np.random.default_rng(2)
figure, axes = plt.subplots(len(kernels), 2, figsize=(8, 7), sharex=True, layout="constrained")
for (similarity, draws), (name, kernel) in zip(axes, kernels.items(), strict=True):
    gram = kernel(inputs, inputs)
    similarity.plot(t / DAY, gram[len(t) // 2])
    similarity.set(title=name, ylim=(-0.05, 1.05))
    sizes, directions = np.linalg.eigh(gram)
    root = directions * np.sqrt(np.maximum(sizes, 0))
    draws.plot(t / DAY, root @ rng.normal(size=(len(t), 3)), linewidth=1)
axes[-1, 0].set(xlabel="days")
axes[-1, 1].set(xlabel="days")
figure.savefig("kernels.png")
