"""fp32 matrices whose structure shows what a product loses: large numbers that meet small ones, few that count, and
what fp32's own arithmetic has exactly. Each kind makes a: f32[m,k] and b: f32[k,n] from a seed."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch

Pair = tuple[torch.Tensor, torch.Tensor]
LARGEST_SAFE = 2.0**127  # from where on fp32's sums may overflow in one order and not in another


class Draw:
    """Random numbers of one seed."""

    def __init__(self, seed: int) -> None:
        self._generator = torch.Generator().manual_seed(seed)

    def normal(self, *shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=self._generator)

    def uniform(self, *shape: int) -> torch.Tensor:
        return torch.rand(shape, generator=self._generator)

    def below(self, bound: int, *shape: int) -> torch.Tensor:
        return torch.randint(bound, shape, generator=self._generator)

    def signed(self, magnitudes: torch.Tensor) -> torch.Tensor:
        return magnitudes * (2 * self.below(2, *magnitudes.shape) - 1)

    def log_uniform(self, low: float, high: float, *shape: int) -> torch.Tensor:
        """Of either sign, from 2**low to 2**high."""
        return self.signed(torch.exp2(low + (high - low) * self.uniform(*shape).double()).float())


Kind = Callable[[Draw, int, int, int], Pair]


def _normal(d: Draw, m: int, n: int, k: int) -> Pair:
    return d.normal(m, k), d.normal(k, n)


def _graded(d: Draw, m: int, n: int, k: int) -> Pair:
    a, b = _normal(d, m, n, k)
    grades = torch.logspace(-8, 8, k)
    return a * grades, b / grades[:, None]


def _graded_at_random(d: Draw, m: int, n: int, k: int) -> Pair:
    a, b = _normal(d, m, n, k)
    grades = torch.exp2(d.below(101, k) - 50.0)
    return a * grades, b / grades[:, None]


def _column_meets_zeros(size: float) -> Kind:
    def made(d: Draw, m: int, n: int, k: int) -> Pair:
        a, b = _normal(d, m, n, k)
        at = int(d.below(k))
        a[:, at] *= size
        b[at] = 0.0
        return a, b

    return made


def _row_meets_zeros(d: Draw, m: int, n: int, k: int) -> Pair:
    a, b = _normal(d, m, n, k)
    a[:, k // 3] = 0.0
    b[k // 3] *= 1e12
    return a, b


def _log_uniform(low: float, high: float) -> Kind:
    def made(d: Draw, m: int, n: int, k: int) -> Pair:
        return d.log_uniform(low, high, m, k), d.log_uniform(low, high, k, n)

    return made


def _whole_range(d: Draw, m: int, n: int, k: int) -> Pair:
    return d.log_uniform(-126, 126, m, k), d.log_uniform(-126, 0, k, n)


def _rows_apart(d: Draw, m: int, n: int, k: int) -> Pair:
    a, b = _normal(d, m, n, k)
    return a * torch.logspace(-15, 15, m)[:, None], b * torch.logspace(15, -15, n)


def _scaled(left: float, right: float) -> Kind:
    def made(d: Draw, m: int, n: int, k: int) -> Pair:
        a, b = _normal(d, m, n, k)
        return a * left, b * right

    return made


def _heavy(where: str) -> Kind:
    def made(d: Draw, m: int, n: int, k: int) -> Pair:
        a, b = _normal(d, m, n, k)
        at = {"row": (m // 2, slice(None)), "column": (slice(None), k // 2), "element": (m // 2, k // 2)}[where]
        a[at] *= 1e10
        return a, b

    return made


def _block_sparse(d: Draw, m: int, n: int, k: int) -> Pair:
    a, b = _normal(d, m, n, k)
    spans = [torch.arange(size) // 16 for size in (m, k, n)]
    keep_a, keep_b = (d.uniform(int(x[-1]) + 1, int(y[-1]) + 1) < 0.15 for x, y in (spans[:2], spans[1:]))
    return a * keep_a[spans[0]][:, spans[1]], b * keep_b[spans[1]][:, spans[2]]


def _integers_times_one_hot(d: Draw, m: int, n: int, k: int) -> Pair:
    b = torch.zeros(k, n)
    b[d.below(k, n), torch.arange(n)] = 1.0
    return d.signed(d.below(1 << 24, m, k).float()), b


def _one_hot_times_integers(d: Draw, m: int, n: int, k: int) -> Pair:
    b, a = _integers_times_one_hot(d, n, m, k)
    return a.T.contiguous(), b.T.contiguous()


def _small_integers(d: Draw, m: int, n: int, k: int) -> Pair:
    return (d.below(1025, m, k) - 512).float(), (d.below(1025, k, n) - 512).float()


def _few_in_a_row(d: Draw, m: int, n: int, k: int) -> Pair:
    a, b = _normal(d, m, n, k)
    return a * (d.uniform(m, k) < 4.0 / k), b


def _low_rank_with_a_tail(d: Draw, m: int, n: int, k: int) -> Pair:
    left, right = (d.normal(x, 2) @ d.normal(2, y) for x, y in ((m, k), (k, n)))
    return left + 1e-5 * d.normal(m, k), right + 1e-5 * d.normal(k, n)


def _large_mean(d: Draw, m: int, n: int, k: int) -> Pair:
    a, b = _normal(d, m, n, k)
    return a + 100.0, b + 100.0


def _probabilities(d: Draw, m: int, n: int, k: int) -> Pair:
    a, b = _normal(d, m, n, k)
    return torch.softmax(8.0 * a, -1), b


def _cancels(d: Draw, m: int, n: int, k: int) -> Pair:
    """Large terms that come twice, with either sign, and small ones between."""
    a, b = _normal(d, m, n, k)
    half = k // 3
    a[:, :half] *= 1e9
    a[:, half : 2 * half], b[half : 2 * half] = a[:, :half], -b[:half]
    return a, b


KINDS: dict[str, Kind] = {
    "normal": _normal,
    "columns graded, rows inversely": _graded,
    "graded at random": _graded_at_random,
    "column of 1e8 meets zeros": _column_meets_zeros(1e8),
    "column of 1e12 meets zeros": _column_meets_zeros(1e12),
    "row of 1e12 meets zeros": _row_meets_zeros,
    "log-uniform, 1e-6 to 1e6": _log_uniform(-20, 20),
    "log-uniform, half the exponents": _log_uniform(-62, 62),
    "log-uniform, all exponents": _whole_range,
    "rows from 1e-15 to 1e15": _rows_apart,
    "times 1e30 and 1e-30": _scaled(1e30, 1e-30),
    "subnormals times 1e30": _scaled(1e-40, 1e30),
    "tiny": _scaled(1e-19, 1e-18),
    "one heavy row": _heavy("row"),
    "one heavy column": _heavy("column"),
    "one heavy element": _heavy("element"),
    "block-sparse": _block_sparse,
    "four in a row": _few_in_a_row,
    "24-bit integers times one-hot": _integers_times_one_hot,
    "one-hot times 24-bit integers": _one_hot_times_integers,
    "small integers": _small_integers,
    "low rank with a tail": _low_rank_with_a_tail,
    "large mean": _large_mean,
    "probabilities": _probabilities,
    "large terms that cancel": _cancels,
}
EXACT = ("24-bit integers times one-hot", "one-hot times 24-bit integers", "small integers")


def drawn(kind: str, m: int, n: int, k: int, seed: int) -> Pair:
    return KINDS[kind](Draw(seed), m, n, k)


class Loss(NamedTuple):
    """‖out − ref‖ / ‖ref‖, with a's rows and b's columns weighed alike, whatever their sizes; and the worst |out − ref|
    over (|a|·|b|). Of results in whose sums fp32 cannot overflow."""

    norm: float
    worst: float


def loss(got: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> Loss:
    """Against float64's product. What is not finite there counts as infinitely far away."""
    left, right = a.double(), b.double()
    expected, size = left @ right, left.abs() @ right.abs()
    weight = _over(left.norm(dim=1))[:, None] * _over(right.norm(dim=0))
    safe = size < LARGEST_SAFE
    apart = (got.double() - expected).nan_to_num(torch.inf, torch.inf, torch.inf).abs().where(safe, 0.0)
    norm = float((apart * weight).norm() / (expected * weight).where(safe, 0.0).norm()) if bool(apart.any()) else 0.0
    return Loss(norm, float((apart / (size + a.shape[1] * 2.0**-125)).max()))


def _over(norms: torch.Tensor) -> torch.Tensor:
    return (1.0 / norms).where(norms > 0.0, 0.0)
