"""Why hyperparameters drift.

A sensor is noisy from day 12 to day 22. Colours show the error of each day for fixed settings of
the regularization, relative to the best setting of that day. The best setting moves with the
noise. The online learner (black) follows it by four steps a day, without a search.
"""

import matplotlib.pyplot as plt
import numpy as np

import streamridge as sr

DAY, HISTORY, DAYS = 96, 2, 34
NOISY = (12, 22)
rng = np.random.default_rng(5)
steps = np.arange((DAYS + 1) * DAY)
noise = np.where((steps >= NOISY[0] * DAY) & (steps < NOISY[1] * DAY), 0.4, 0.02)
values = np.sin(2 * np.pi * steps / DAY) + noise * rng.normal(size=steps.size)
samples = sr.Features(lags=8).samples(values)
model = sr.KernelRidge(
    sr.SquaredExponential(0.1, inverse_scale_bounds=None),
    regularization=0.1,
    regularization_bounds=(1e-4, 1e2),
)
settings = np.geomspace(1e-4, 1e2, 19)


def error(regularization, day):
    """Return the RMSE of a day, forecast by a fit to the days before it."""
    lam = model.space.values.copy()
    lam[-1] = regularization
    fit = model.fit(samples[(day - HISTORY) * DAY : day * DAY], lam)
    loss, _ = fit.loss_and_gradient(samples[day * DAY : (day + 1) * DAY])
    return np.sqrt(loss / DAY)


days = np.arange(HISTORY, DAYS)
errors = np.array([[error(setting, day) for day in days] for setting in settings])

learner = sr.OnlineLearner(
    model,
    samples[: HISTORY * DAY],
    train_size=HISTORY * DAY,
    update_every=DAY // 4,
    step=sr.AgreementStep(),
)
path = []
for at in range(HISTORY * DAY, DAYS * DAY):
    if at % DAY == 0:
        path.append(learner.hyperparameters["regularization"])
    learner.predict(samples.t[at], samples.x[at])
    learner.observe(samples.t[at], samples.x[at], samples.y[at, 0])

figure, ax = plt.subplots(figsize=(8, 3.8), layout="constrained")
excess = 100 * (errors / errors.min(axis=0) - 1)
mesh = ax.pcolormesh(days, np.log10(settings), excess, vmax=20, cmap="viridis_r")
ax.plot(days, np.log10(settings[errors.argmin(axis=0)]), "wo", mec="black", label="best of the day")
ax.plot(days, np.log10(path), "k", linewidth=2, label="learned online")
ax.set(xlabel="day", ylabel="log10 of the regularization")
ax.legend(fontsize="small", loc="lower right")
figure.colorbar(mesh, label="RMSE above the best, %")
figure.savefig("drift.png")
