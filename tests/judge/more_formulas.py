"""Right kernels in the words of those who write kernels: lanes, blocks, folded factors, identities, in float32.

``ALL_FORMULAS``: those of :mod:`honest`, and these.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F

from tests.judge.honest import FORMULAS, Function, _logsumexp, _product_in_steps, mean_one_by_one

LOG2_E = math.log2(math.e)


def _sum_in_lanes(x: torch.Tensor) -> torch.Tensor:
    """Each of 16 lanes adds its own, then halves are added; keeps the last dimension."""
    rows = F.pad(x.float(), (0, -x.shape[-1] % 16)).unflatten(-1, (-1, 16))
    total = torch.zeros_like(rows[..., 0, :])
    for row in rows.unbind(-2):
        total = total + row
    while total.shape[-1] > 1:
        half = total.shape[-1] // 2
        total = total[..., :half] + total[..., half:]
    return total


def tanh_by_exp(x: torch.Tensor) -> torch.Tensor:
    """Off by an epsilon of 1, however small the result is."""
    power = (-2 * x.abs()).exp()
    return ((1 - power) / (1 + power)).copysign(x)


def _gelu_by_sigmoid(x: torch.Tensor) -> torch.Tensor:
    """(1 + tanh(u)) / 2 is sigmoid(2u)."""
    x = x.float()
    return x / (1 + (-2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)).exp())


def _rms_norm(x: torch.Tensor, w: torch.Tensor, epsilon: float) -> torch.Tensor:
    return x * torch.rsqrt(_sum_in_lanes(x * x) * (1 / x.shape[-1]) + epsilon) * w.float()


def _known_batch_norm(
    x: torch.Tensor, mean: torch.Tensor, variance: torch.Tensor, w: torch.Tensor, b: torch.Tensor
) -> torch.Tensor:
    scale = w * torch.rsqrt(variance.abs() + 1e-5)
    return x * scale + (b - mean * scale)


def _attention_by_blocks(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """What was added is scaled whenever the maximum grows; powers of two."""
    q = q.float() * (q.shape[-1] ** -0.5 * LOG2_E)
    top = torch.full((*q.shape[:-1], 1), -math.inf)
    total, out = torch.zeros_like(top), torch.zeros(*q.shape[:-1], v.shape[-1])
    for keys, values in zip(k.float().split(16, -2), v.float().split(16, -2), strict=True):
        scores = q @ keys.mT
        grown = torch.maximum(top, scores.amax(-1, keepdim=True))
        by = torch.where(grown == -math.inf, 0.0, grown)
        scale, power = torch.exp2(top - by), torch.exp2(scores - by)
        total, out, top = total * scale + power.sum(-1, keepdim=True), out * scale + power @ values, grown
    return out / total


def _split_k(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    first, *others = (x.float() @ y.float() for x, y in zip(a.chunk(4, 1), b.chunk(4, 0), strict=True))
    return sum(others, first)


def _layer_norm_by_welford(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    x, mean, squares = x.float(), torch.zeros(x.shape[0]), torch.zeros(x.shape[0])
    for count, value in enumerate(x.unbind(-1), 1):
        apart = value - mean
        mean = mean + apart / count
        squares = squares + apart * (value - mean)
    inverse = torch.rsqrt(squares / x.shape[-1] + 1e-5)
    return (x - mean[:, None]) * inverse[:, None] * w.float() + b.float()


def _logsumexp_by_exp2(x: torch.Tensor) -> torch.Tensor:
    top = x.amax(-1)
    shift = torch.where(top.isfinite(), top, 0.0)
    return torch.exp2((x - shift[:, None]) * LOG2_E).sum(-1).log2() * math.log(2) + shift


def _pointwise_divergence(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    right = y * (y.log2() * math.log(2) - x)
    return torch.where(y > 0, right, torch.where(y == 0, 0.0, math.nan))


def _sums_by_blocks(x: torch.Tensor) -> torch.Tensor:
    count = x.shape[-1]
    blocks = F.pad(x.float(), (0, -count % 32)).unflatten(-1, (-1, 32)).cumsum(-1)
    before = blocks[..., -1].cumsum(-1).roll(1, -1)
    before[..., 0] = 0
    return (blocks + before[..., None]).flatten(-2)[..., :count]


def _smoothed_cross_entropy(x: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
    loss = _logsumexp(x) - 0.9 * x.gather(1, t.clamp(0)[:, None])[:, 0] - 0.1 * x.mean(-1)
    return torch.where(t < 0, 0.0, loss)


def _residual_rms_norm(x: torch.Tensor, y: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return _rms_norm(x.float() + y.float(), w, 1e-5)


def _gated(x: torch.Tensor, w: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    gate = _product_in_steps(x, w)
    return gate / (1 + torch.exp2(gate * -LOG2_E)) * _product_in_steps(x, v)


def _deviation_in_lanes(x: torch.Tensor) -> torch.Tensor:
    squares = _sum_in_lanes((x - _sum_in_lanes(x) / x.shape[-1]).square())[..., 0]
    return (squares / torch.tensor(x.shape[-1] - 1.0)).sqrt()


def _largest_by_blocks(x: torch.Tensor) -> torch.Tensor:
    """The index of the first of equal maxima, and of the first NaN."""
    best, at = x[..., 0].float(), torch.zeros(x.shape[:-1], dtype=torch.int64)
    for start, part in zip(range(0, x.shape[-1], 64), x.float().split(64, -1), strict=True):
        top, where = part.max(-1)
        better = ~best.isnan() & ((top > best) | top.isnan())
        best, at = torch.where(better, top, best), torch.where(better, where + start, at)
    return at


def _linear_attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    def positive(x: torch.Tensor) -> torch.Tensor:
        return torch.where(x > 0, x + 1, x.exp())

    parts = zip(k.split(16), v.split(16), strict=True)
    return sum(((positive(q) @ positive(keys).mT) @ values for keys, values in parts), torch.zeros(()))


def _to_bytes_and_back(x: torch.Tensor) -> torch.Tensor:
    largest = x.abs().amax(-1, keepdim=True).clamp(min=1e-10)
    return (x * (127 / largest)).round() * (largest * (1 / 127))


X, XY, OF_BF16 = "x: f32[16,300]", "x: f32[16,300], y: f32[16,300]", "x: bf16[16,300]"
_SCALE = "(x.abs().amax(-1, keepdim=True).clamp(min=1e-10) / 127)"
ALL_FORMULAS: list[tuple[str, str, str, Function]] = [
    *FORMULAS,
    ("tanh by exp", "torch.tanh(x)", X, tanh_by_exp),
    ("tanh of bf16 by a sigmoid", "torch.tanh(x)", OF_BF16, lambda x: 2 * torch.sigmoid(2 * x.float()) - 1),
    ("soft cap", "30 * torch.tanh(x / 30)", OF_BF16, lambda x: 30 * tanh_by_exp(x.float() * (1 / 30))),
    ("sigmoid by exp2", "torch.sigmoid(x)", X, lambda x: 1 / (1 + torch.exp2(-x * LOG2_E))),
    ("GELU's tanh as a sigmoid", "F.gelu(x, approximate='tanh')", OF_BF16, _gelu_by_sigmoid),
    ("GELU's tanh as a sigmoid, fp16", "F.gelu(x, approximate='tanh')", "x: f16[16,300]", _gelu_by_sigmoid),
    ("RMS norm in lanes", "F.rms_norm(x, x.shape[-1:], w, 1e-6)", "x: bf16[16,300], w: bf16[300]",
     lambda x, w: _rms_norm(x.float(), w, 1e-6)),
    ("a residual's RMS norm", "F.rms_norm(x + y, x.shape[-1:], w, 1e-5)",
     "x: f16[16,300], y: f16[16,300], w: f16[300]", _residual_rms_norm),
    ("batch norm by known means, folded", "F.batch_norm(x, m, v.abs(), w, b)",
     "x: f32[32,50], m: f32[50], v: f32[50], w: f32[50], b: f32[50]", _known_batch_norm),
    ("layer norm by Welford", "F.layer_norm(x, x.shape[-1:], w, b)", "x: bf16[16,300], w: bf16[300], b: bf16[300]",
     _layer_norm_by_welford),
    ("attention by blocks", "F.scaled_dot_product_attention(q, k, v)",
     "q: f16[2,40,64], k: f16[2,48,64], v: f16[2,48,64]", _attention_by_blocks),
    ("linear attention", "(F.elu(q) + 1) @ ((F.elu(k) + 1).mT @ v)", "q: f32[40,32], k: f32[48,32], v: f32[48,24]",
     _linear_attention),
    ("split-k product", "a @ b", "a: bf16[40,200], b: bf16[200,72]", _split_k),
    ("split-k product with bias", "a @ b + c", "a: f32[40,200], b: f32[200,72], c: f32[72]",
     lambda a, b, c: _split_k(a, b) + c),
    ("SwiGLU", "F.silu(x @ w) * (x @ v)", "x: bf16[40,64], w: bf16[64,48], v: bf16[64,48]", _gated),
    ("mean by a product", "x.mean(0)", "x: f32[300,40]",
     lambda x: (torch.full((1, x.shape[0]), 1 / x.shape[0]) @ x)[0]),
    ("logsumexp by exp2", "torch.logsumexp(x, -1)", X, _logsumexp_by_exp2),
    ("smoothed cross-entropy", "F.cross_entropy(x, t, reduction='none', label_smoothing=0.1)",
     "x: f32[16,300], t: i64[16]", _smoothed_cross_entropy),
    ("pointwise divergence", "F.kl_div(x, y, reduction='none')", XY, _pointwise_divergence),
    ("binary cross-entropy", "F.binary_cross_entropy_with_logits(x, y, reduction='none')", XY,
     lambda x, y: x.clamp_min(0) - x * y + torch.log1p((-x.abs()).exp())),
    ("cumsum of bf16 by blocks", "torch.cumsum(x, -1)", OF_BF16, _sums_by_blocks),
    ("a step of a GRU", "(1 - torch.sigmoid(z)) * n + torch.sigmoid(z) * h",
     "z: f32[16,300], n: f32[16,300], h: f32[16,300]", lambda z, n, h: n + torch.sigmoid(z) * (h - n)),
    ("squared distances", "(x[:, None] - w).square().sum(-1)", "x: f32[24,32], w: f32[40,32]",
     lambda x, w: sum(((x[:, None, i] - w[:, i]) ** 2 for i in range(x.shape[1])), torch.zeros(()))),
    ("softplus with a threshold", "F.softplus(x, 2.0, 15.0)", X,
     lambda x: torch.where(2 * x > 15, x, 0.5 * torch.log1p((2 * x).exp()))),
    ("log sigmoid", "F.logsigmoid(x)", X, lambda x: x.clamp_max(0) - torch.log1p((-x.abs()).exp())),
    ("SELU", "F.selu(x)", X,
     lambda x: 1.0507009873554805 * torch.where(x > 0, x, 1.6732632423543772 * torch.expm1(x))),
    ("standard deviation in lanes", "x.std(-1)", X, _deviation_in_lanes),
    ("argmax by blocks", "x.argmax(-1)", OF_BF16, _largest_by_blocks),
    ("to bytes and back", f"(x / {_SCALE}).round() * {_SCALE}", "x: f32[48,61]", _to_bytes_and_back),
    ("what is above the mean", "torch.where(x > x.mean(-1, keepdim=True), x, 0.0)", "x: f32[48,61]",
     lambda x: torch.where(x > mean_one_by_one(x), x, 0.0)),
    ("how many are above the mean", "(x > x.mean(-1, keepdim=True)).sum(-1)", "x: f32[48,61]",
     lambda x: (x > mean_one_by_one(x)).sum(-1)),
]  # fmt: skip
