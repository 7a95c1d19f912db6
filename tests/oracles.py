"""Slow, independent versions of the package's numerics: loops, explicit inverses, no structure."""

import numpy as np


def central_difference(f, z):
    """Return df/dz from two central differences, extrapolated for strong curvature.

    A function with several values has a row of derivatives for each number of z.
    """

    def differences(step):
        sides = zip(z + np.diag(step), z - np.diag(step), step, strict=True)
        return np.array([(f(above) - f(below)) / (2 * h) for above, below, h in sides])

    step = 1e-4 * np.abs(z)
    return (4 * differences(step / 2) - differences(step)) / 3


def project_simplex_by_bisection(u):
    """Return max(u - sigma, 0) with sigma found by halving an interval."""
    low, high = u.min() - 1, u.max()
    for _ in range(200):
        sigma = (low + high) / 2
        if np.maximum(u - sigma, 0).sum() > 1:
            low = sigma
        else:
            high = sigma
    return np.maximum(u - low, 0)


def periodic(lam, t, other):
    """Return eq. (7) and its derivatives in omega and nu, entry by entry."""
    omega, nu = lam
    K = np.empty((len(t), len(other)))
    dK = np.empty((2, len(t), len(other)))
    for i, a in enumerate(t):
        for j, b in enumerate(other):
            phase = np.pi * abs(a - b) / omega
            K[i, j] = np.exp(-nu * np.sin(phase) ** 2)
            dK[0, i, j] = K[i, j] * nu * 2 * np.sin(phase) * np.cos(phase) * phase / omega
            dK[1, i, j] = -K[i, j] * np.sin(phase) ** 2
    return K, dK


def ard(nu, x, other):
    """Return eq. (9), with its square, and its derivatives, as one array per feature."""
    D = (x[:, None, :] - other[None, :, :]) ** 2
    K = np.exp(-(D @ nu))
    return K, -K * np.moveaxis(D, 2, 0)


def matern12(nu, x, other):
    """Return exp(-sqrt(s)) and its derivatives, as one array per feature."""
    D = (x[:, None, :] - other[None, :, :]) ** 2
    s = D @ nu
    K = np.exp(-np.sqrt(s))
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = np.where(s > 0, K / (2 * np.sqrt(s)), 0.0)
    return K, -slope * np.moveaxis(D, 2, 0)


def paper_kernel(lam, a, b):
    """Return beta_1 K^prd + beta_2 K^ard and derivatives in (beta, omega, nu, nu_1..p)."""
    (t, x), (other_t, other_x) = a, b
    beta = lam[:2]
    prd, dprd = periodic(lam[2:4], t, other_t)
    rel, drel = ard(lam[4:], x, other_x)
    K = beta[0] * prd + beta[1] * rel
    return K, np.concatenate([[prd, rel], beta[0] * dprd, beta[1] * drel])


def drifting_kernel(lam, a, b):
    """Return (beta_1 K^prd + beta_2 Matern + beta_3 linear) exp(-rho |t - t'|), and derivatives."""
    (t, x), (other_t, other_x) = a, b
    rho, beta = lam[0], lam[1:4]
    prd, dprd = periodic(lam[4:6], t, other_t)
    rel, drel = matern12(lam[6:], x, other_x)
    lin = x @ other_x.T
    age = np.abs(t[:, None] - other_t)
    factor = np.exp(-rho * age)
    K = factor * (beta[0] * prd + beta[1] * rel + beta[2] * lin)
    inner = np.concatenate([[prd, rel, lin], beta[0] * dprd, beta[1] * drel])
    return K, np.concatenate([[-age * K], factor * inner])


def algorithm_2(kernel, t, x, y, lam, *, N, m, T, move):
    """Return predictions and hyperparameters of T steps, by the lines of Algorithm 2.

    The first N samples are the history. `move(lam, g)` is line 4, with g the summed gradient.
    X and y are centred on the mean of each training set.
    """
    predictions, path, g = [], [lam], np.zeros(len(lam))
    for step in range(T):
        now = N + step
        if step % m == 0:
            if step > 0:
                lam = move(lam, g)
                path.append(lam)
            train = slice(now - N, now)
            x_mean, y_mean = x[train].mean(axis=0), y[train].mean()
            S = t[train], x[train] - x_mean
            K, dK = kernel(lam[:-1], S, S)
            A_inverse = np.linalg.inv(K + lam[-1] * np.eye(N))
            theta = A_inverse @ (y[train] - y_mean)
            dA = [*dK, np.eye(N)]
            J = np.column_stack([-A_inverse @ dA_i @ theta for dA_i in dA])
            g = np.zeros(len(lam))
        row = t[now : now + 1], x[now : now + 1] - x_mean
        k, dk = kernel(lam[:-1], row, S)
        predictions.append(y_mean + k[0] @ theta)
        error = y[now] - predictions[-1]
        for i in range(len(lam)):
            direct = dk[i, 0] @ theta if i < len(lam) - 1 else 0.0
            g[i] += -2 * error * (direct + k[0] @ J[:, i])
    return np.array(predictions), np.array(path)
