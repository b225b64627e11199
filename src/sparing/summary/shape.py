"""What a posterior looks like, in words: modes, bends, funnels, shells, heavy tails, edges.

Measured on evenly spread draws from its mixture, in standardised coordinates, in which bounds are
far away. Limits lie between what exact draws from the benchmarks' shapes have (the set tuning) and
what normals, lumpy and skewed posteriors have.

Notation (N draws of a mode, D parameters)
    z      draws, each coordinate with mean zero and variance one, (N, D)
    L, P   lower Cholesky factor and inverse of their correlation matrix, (D, D)
    w      whitened draws: z = L w
    u, v   directions, at right angles, in which a ridge runs and bends
    r_j    what is left of z_j after regression on all others: (P z)_j / P_jj
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.spatial import KDTree
from scipy.special import gammaincinv

from sparing.numerics.arrays import Array
from sparing.numerics.quasi_random import scrambled_halton
from sparing.problem.evaluations import Evaluation, Status
from sparing.summary.numbers import listed, rounded
from sparing.variational.normal_mixture import NormalMixture, even_sample
from sparing.variational.other_coordinates import in_coordinates
from sparing.variational.posterior import Posterior
from sparing.vbmc.hidden_modes import separate_modes

N_DRAWS = 2048
# Nats that part two modes, the smallest mass that is told of, and the most there are: with more,
# they are pieces of one thin surface. From four on only the parameter that tells best is named.
VALLEY, SMALLEST_MODE, MOST_MODES, MOST_IN_FULL = 1.0, 0.01, 8, 3
# Share of the variance along v that the square along u explains: 0.49 and more on bananas, 0.28 and
# less on what is not bent; but of two exponentials side by side 0.4.
BENT = 0.32
# Growth of log |r_j| with a standard deviation of another: 0.4 to 1 on funnels, 0.3 elsewhere but
# on bent ridges. Their two arms have less kurtosis than a normal, a funnel's wide end has more.
FUNNEL, ONE_CLOUD = 0.4, 3.0
N_STARTS, N_SWEEPS = 32, 4  # of the search for u and v
# Nats by which the mean's density is below a normal's: 19 and more on shells, up to 1.7 elsewhere.
HOLLOW = 3.0
# Mean fourth power of the distance from the mean, to a normal's: 1.7 to 2.2 with Student's tails.
HEAVY = 1.6
# Mass nearest to a point of density zero: worth a word, and more than exact posteriors have (0.06).
SMALLEST_CUT, LARGEST_CUT = 0.005, 0.1
TINY = np.finfo(np.float64).tiny


@dataclass(frozen=True)
class Feature:
    """What there is to see, what would help, and whether numbers are wrong because of it."""

    finding: str
    advice: str
    harmful: bool = False


def features(posterior: Posterior, evaluations: Sequence[Evaluation]) -> tuple[Feature, ...]:
    """What is out of the ordinary; nothing: it is one compact mode."""
    transform = posterior.transform
    mixture = in_coordinates(posterior.mixture, transform, transform.unwhitened())
    modes = [mode for mode in separate_modes(mixture, VALLEY) if mode[0] >= SMALLEST_MODE]
    modes.sort(key=lambda mode: -mode[0])
    if not 1 <= len(modes) <= MOST_MODES:
        modes = [(1.0, mixture)]
    found = (
        _modes(modes, posterior) if len(modes) > 1 else None,
        _form(modes[0][1], posterior.names),
        _edge(mixture, posterior, evaluations),
    )
    return tuple(feature for feature in found if feature is not None)


def _modes(modes: Sequence[tuple[float, NormalMixture]], posterior: Posterior) -> Feature:
    transform = posterior.transform.unwhitened()
    means = np.array([mode.mean for _, mode in modes])
    sds = np.sqrt([np.diag(mode.covariance) for _, mode in modes])
    x, low, high = (transform.to_user(s) for s in (means, means - sds, means + sds))
    widths = [transform.unwrapped(high[[k]], low[k])[0] - low[k] for k in range(len(modes))]
    best = np.argsort(-means.std(axis=0) / sds.mean(axis=0))
    named = np.sort(best[: 3 if len(modes) <= MOST_IN_FULL else 1])
    shares = []
    for (mass, _), middle, width in zip(modes, x, widths, strict=True):
        place = [f"{posterior.names[i]} = {rounded(middle[i], 0.5 * width[i])}" for i in named]
        shares.append(f"{', '.join(place)} ({100.0 * mass:.0f} %)")
    return Feature(
        f"{len(modes)} separate modes, with their masses: {'; '.join(shares)}",
        "see whether other runs find the same modes with the same masses (runs=3)",
    )


def _form(mode: NormalMixture, names: tuple[str, ...]) -> Feature | None:
    """The foremost of what is odd about a mode; None: nothing."""
    s = even_sample(mode, N_DRAWS)
    mean, dimension = s.mean(axis=0), mode.dimension
    z = (s - mean) / s.std(axis=0)
    L = np.linalg.cholesky(z.T @ z / N_DRAWS)
    w = np.linalg.solve(L, z.T).T
    bend = _bend(w, L) if dimension > 1 else None
    if (funnel := _funnel(z, w, L, bent=bend is not None)) is not None:
        wide = listed([names[j] for j in funnel[1]])
        return Feature(
            f"a funnel: the width of {wide} depends on {names[funnel[0]]}, and its narrow end is "
            "easily missed",
            f"infer {wide} in units of the width that {names[funnel[0]]} stands for (the "
            "non-centred parameterisation)",
        )
    if bend is not None:
        i, j = bend
        return Feature(
            f"a curved ridge: {names[j]} bends with {names[i]}, which standard deviations and "
            "correlations do not show",
            "infer parameters in which the ridge is straight, such as the product, the ratio or "
            f"the logarithms of {names[i]} and {names[j]}",
        )
    # From the mean to the median draw a normal's density falls by half the median of chi squared.
    fall = float(mode.log_density(mean[None])[0] - np.median(mode.log_density(s)))
    expected = float(gammaincinv(0.5 * dimension, 0.5))
    if dimension > 1 and expected - fall > HOLLOW:
        return Feature(
            "a thin shell, or a part of one: its mean is not on it, and is no plausible value",
            "infer parameters in which it is flat, such as a radius and angles",
        )
    distances = np.sum(w * w, axis=1)
    if np.mean(distances**2) > HEAVY * dimension * (dimension + 2) and fall > expected:
        most = names[int(np.argmax(np.mean(z**4, axis=0)))]
        return Feature(
            f"heavy tails, most of all in {most}: far values are likelier than standard deviations "
            "suggest",
            "give intervals instead of standard deviations",
        )
    return None


def _funnel(z: Array, w: Array, L: Array, *, bent: bool) -> tuple[int, list[int]] | None:
    """The parameter that others' widths depend on, and these; arms of a bent ridge do not count."""
    r = np.linalg.solve(L.T, w.T).T  # but for factors
    log_widths = np.log(np.maximum(np.abs(r), TINY))
    growth = z.T @ (log_widths - log_widths.mean(axis=0)) / len(z)
    np.fill_diagonal(growth, 0.0)
    i, j = divmod(int(np.argmax(np.abs(growth))), len(L))
    wide_end = r[np.argsort(z[:, i] * np.sign(growth[i, j]))[-len(z) // 4 :], j]
    wide_end -= wide_end.mean()
    arms = bent and np.mean(wide_end**4) < ONE_CLOUD * np.mean(wide_end**2) ** 2
    if arms or abs(growth[i, j]) < FUNNEL:
        return None
    return i, [j for j, slope in enumerate(growth[i]) if abs(slope) > FUNNEL]


def _bend(w: Array, L: Array) -> tuple[int, int] | None:
    """The parameter along which a ridge runs, and the one in which it bends the most.

    For given u the best v is that of E[(u w)^2 w], and for given v u is an eigenvector of
    E[(v w) w w^T]: they are found in turn.
    """
    n, dimension = w.shape
    third = (w.T @ (w[:, :, None] * w[:, None, :]).reshape(n, -1)).reshape([dimension] * 3) / n
    tried = []
    for u in np.vstack([L, scrambled_halton(N_STARTS, dimension) - 0.5]):
        for _ in range(N_SWEEPS):
            u = u / np.linalg.norm(u)
            pull = third @ u @ u
            v = pull - (pull @ u) * u
            v /= max(float(np.linalg.norm(v)), TINY)
            tried.append((u, v))
            across = np.eye(dimension) - np.outer(v, v)
            values, vectors = np.linalg.eigh(across @ (third @ v) @ across)
            u = vectors[:, np.argmax(np.abs(values))]
    along, bent = (w @ np.transpose(side) for side in zip(*tried, strict=True))
    squares = along**2 - 1.0
    rest = np.mean(squares**2, axis=0) - np.mean(squares * along, axis=0) ** 2
    shares = np.mean(squares * bent, axis=0) ** 2 / np.maximum(rest, TINY)
    best = int(np.argmax(shares))
    if shares[best] < BENT:
        return None
    u, v = tried[best]
    j = int(np.argmax(np.abs(np.linalg.solve(L.T, v))))
    return int(np.argmax(np.where(np.arange(dimension) == j, 0.0, np.abs(L @ u)))), j


def _edge(
    mixture: NormalMixture, posterior: Posterior, evaluations: Sequence[Evaluation]
) -> Feature | None:
    """An edge beyond which the density is zero, where it cuts the posterior.

    What is nearer to a point of density zero than to any other is taken to lie beyond it.
    """
    known = [entry for entry in evaluations if not entry.failed]
    zero = np.array([entry.status is Status.OUT_OF_SUPPORT for entry in known], dtype=np.bool_)
    if not zero.any():
        return None
    s = posterior.transform.standardised(np.array([entry.x for entry in known]))
    covariance = mixture.covariance
    whitening = np.linalg.inv(np.linalg.cholesky(covariance))
    draws = even_sample(mixture, N_DRAWS)
    nearest = KDTree(s @ whitening.T).query(draws @ whitening.T)[1]
    beyond = float(zero[nearest].mean())
    if not SMALLEST_CUT < beyond < 1.0:
        return None
    near = np.isin(np.arange(len(s)), nearest)
    across = s[near & zero].mean(axis=0) - s[near & ~zero].mean(axis=0)
    pull = np.abs(np.linalg.solve(covariance, across)) * np.sqrt(np.diag(covariance))
    names = [posterior.names[i] for i in np.flatnonzero(pull > 0.5 * pull.max())]
    edge, harmful = listed(names), beyond > LARGEST_CUT
    finding = f"an edge in {edge} cuts it, beyond which the density is zero"
    if harmful:
        finding += (
            f"; some {100.0 * beyond:.0f} % of it seem to lie there, so that the log evidence is "
            f"too high by about {-np.log1p(-beyond):.1g}"
        )
    advice = f"give the edge as a bound of {edge} (lower, upper)"
    if len(names) > 1:
        advice = f"infer parameters that the edge is a bound of: sums or differences of {edge}, say"
    return Feature(finding, advice, harmful)
