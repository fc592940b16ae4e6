"""A Gaussian process over encoded configs, small enough to refit after every evaluation.

Rasmussen and Williams, Gaussian Processes for Machine Learning, algorithm 2.1, with a Matérn 5/2 kernel. The variance
has its closed form; length scales (one for each dimension) and noise maximise the marginal likelihood on a grid.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_SCALES = (0.25, 0.5, 1.0, 2.0, 4.0)  # length scales to try, for points in the unit cube
_NOISES = (1e-4, 1e-2, 0.1)  # noise levels to try, as fractions of the variance
_STRETCH = (0.5, 2.0, 4.0)  # factors to try on the length scale of one dimension after another
_EVIDENCE = 4.0  # weight of the prior variance, in pseudo-observations


@dataclass(frozen=True)
class Gaussian:
    """A fitted process with prior mean zero over n points of d dimensions."""

    points: Floats
    """Points already known, [n, d]."""
    weights: Floats
    """Weight of each point's covariance in the predicted mean, [n]."""
    inverse: Floats
    """Inverse covariance matrix of the points, [n, n]."""
    scales: Floats
    """Length scale of each dimension, [d]."""
    variance: float
    """Prior variance of a value."""

    @classmethod
    def fit(cls, points: Floats, values: Floats, spread: float) -> Gaussian:
        """``spread``: standard deviation of values expected before any is seen."""
        dimensions = points.shape[1]
        best = min((_likely(points, values, np.full(dimensions, s), spread) for s in _SCALES), key=lambda f: f.cost)
        start = best.scales
        for dimension in range(dimensions) if len(points) > dimensions else ():
            for stretch in _STRETCH:
                tried = best.scales.copy()
                tried[dimension] = start[dimension] * stretch
                best = min(best, _likely(points, values, tried, spread), key=lambda f: f.cost)
        return cls(points, best.inverse @ values, best.inverse, best.scales, best.variance)

    def predict(self, points: Floats) -> tuple[Floats, Floats]:
        """Mean and standard deviation at each of ``points``."""
        across = _matern(points, self.points, self.scales)
        known = np.einsum("ij,jk,ik->i", across, self.inverse, across, optimize=True)
        return across @ self.weights, np.sqrt(self.variance * np.maximum(1 - known, 1e-9))


@dataclass(frozen=True)
class _Fit:
    cost: float  # minus twice the logarithm of the marginal likelihood at the best variance and noise, up to constants
    scales: Floats
    variance: float
    inverse: Floats


def _likely(points: Floats, values: Floats, scales: Floats, spread: float) -> _Fit:
    """The most likely fit over all noise levels, from one eigendecomposition."""
    roots, vectors = np.linalg.eigh(_matern(points, points, scales))
    along, weight = vectors.T @ values, len(points) + _EVIDENCE
    found = []
    for noise in _NOISES:
        wide = np.maximum(roots, 0.0) + noise
        variance = (float((along**2 / wide).sum()) + _EVIDENCE * spread**2) / weight
        found.append((float(np.log(wide).sum()) + weight * float(np.log(variance)), variance, wide))
    cost, variance, wide = min(found, key=lambda one: one[0])
    inverse: Floats = np.asarray((vectors / wide) @ vectors.T, dtype=np.float64)
    return _Fit(cost, scales, variance, inverse)


def squared_distances(left: Floats, right: Floats) -> Floats:
    apart: Floats = (left**2).sum(axis=1)[:, None] + (right**2).sum(axis=1)[None, :] - 2 * left @ right.T
    return np.maximum(apart, 0.0)


def _matern(left: Floats, right: Floats, scales: Floats) -> Floats:
    distance = np.sqrt(5 * squared_distances(left / scales, right / scales))
    found: Floats = (1 + distance + distance**2 / 3) * np.exp(-distance)
    return found
