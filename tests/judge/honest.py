"""Right kernels as PyTorch functions: formulas and orders of summation that are not PyTorch's own, in float32.

``FORMULAS``: a name, the reference's expression, its inputs, and the kernel.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F

Function = Callable[..., torch.Tensor]


def _group_norm_textbook(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    rows = x.float().reshape(x.shape[0], 4, -1)
    centred = rows - rows.mean(-1, keepdim=True)
    scaled = centred * torch.rsqrt(centred.square().mean(-1, keepdim=True) + 1e-5)
    shape = (1, -1, *[1] * (x.dim() - 2))
    return scaled.view(x.shape) * w.view(shape) + b.view(shape)


def _group_norm_folded(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    rows = x.float().reshape(x.shape[0], 4, -1)
    mean = rows.mean(-1, keepdim=True)
    inverse = torch.rsqrt((rows - mean).square().mean(-1, keepdim=True) + 1e-5)
    channels = x.shape[1] // 4
    shape = (-1, x.shape[1], *[1] * (x.dim() - 2))
    scale = inverse.expand(-1, -1, channels).reshape(shape) * w.view(shape)
    return x.float() * scale + (b.view(shape) - mean.expand(-1, -1, channels).reshape(shape) * scale)


def _layer_norm(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    x = x.float()
    centred = x - x.mean(-1, keepdim=True)
    return centred * torch.rsqrt(centred.square().mean(-1, keepdim=True) + 1e-5) * w.float() + b.float()


def _layer_norm_by_parts(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Means and squares of parts are merged, as Chan does."""
    count, mean, squares = 0, torch.zeros(x.shape[0]), torch.zeros(x.shape[0])
    for part in x.split(64, -1):
        more = part.shape[-1]
        own, apart = part.mean(-1), part.mean(-1) - mean
        squares = squares + (part - own[:, None]).square().sum(-1) + apart.square() * (count * more / (count + more))
        mean, count = mean + apart * (more / (count + more)), count + more
    return (x - mean[:, None]) * torch.rsqrt(squares / count + 1e-5)[:, None] * w + b


def _products_by_blocks(x: torch.Tensor) -> torch.Tensor:
    """As a GPU scans: each block, and then what comes before it."""
    count = x.shape[-1]
    blocks = F.pad(x.float(), (0, -count % 32), value=1.0).unflatten(-1, (-1, 32)).cumprod(-1)
    before = blocks[..., -1].cumprod(-1).roll(1, -1)
    before[..., 0] = 1
    return (blocks * before[..., None]).flatten(-2)[..., :count]


def _product_by_pairs(x: torch.Tensor) -> torch.Tensor:
    while x.shape[-1] > 1:
        x = F.pad(x, (0, x.shape[-1] % 2), value=1.0)
        x = x[..., : x.shape[-1] // 2] * x[..., x.shape[-1] // 2 :]
    return x[..., 0]


def _kahan(x: torch.Tensor) -> torch.Tensor:
    total = lost = torch.zeros(x.shape[:-1])
    for value in x.unbind(-1):
        term = value - lost
        grown = total + term
        lost, total = torch.where(grown.isfinite(), (grown - total) - term, 0.0), grown
    return total


def _batch_norm(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    centred = x - x.mean(0)
    return centred * (torch.rsqrt(centred.square().mean(0) + 1e-5) * w) + b


def _softmax_by_exp2(x: torch.Tensor) -> torch.Tensor:
    x = x.float() * math.log2(math.e)
    power = torch.exp2(x - x.amax(-1, keepdim=True))
    return power / power.sum(-1, keepdim=True)


def _softmax_online(x: torch.Tensor) -> torch.Tensor:
    x = x.float()
    top, total = torch.full((*x.shape[:-1], 1), -math.inf), torch.zeros(*x.shape[:-1], 1)
    for part in x.split(64, -1):
        grown = torch.maximum(top, part.amax(-1, keepdim=True))
        by = torch.where(grown == -math.inf, 0.0, grown)  # −∞ may hide all of a part
        total = total * torch.where(top == grown, 1.0, (top - by).exp()) + (part - by).exp().sum(-1, keepdim=True)
        top = grown
    return (x - top).exp() / total


def _logsumexp(x: torch.Tensor) -> torch.Tensor:
    top = x.amax(-1)
    shift = torch.where(top.isfinite(), top, 0.0)
    return shift + (x - shift[..., None]).exp().sum(-1).log()


def _product_in_steps(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    total = torch.zeros(a.shape[0], b.shape[1])
    for k in range(0, a.shape[1], 16):
        total = total + a[:, k : k + 16].float() @ b[k : k + 16].float()
    return total


def _product_backwards(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a.flip(1).float() @ b.flip(0).float()


def _sum_in_pairs(x: torch.Tensor) -> torch.Tensor:
    x = x.float()
    while x.shape[-1] > 1:
        if x.shape[-1] % 2:
            x = F.pad(x, (0, 1))
        x = x[..., ::2] + x[..., 1::2]
    return x[..., 0]


def _sum_one_by_one(x: torch.Tensor) -> torch.Tensor:
    total = torch.zeros_like(x[0])
    for row in x.unbind(0):
        total = total + row
    return total


def _attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return _softmax_online((q.float() * q.shape[-1] ** -0.5) @ k.float().mT) @ v.float()


def _attention_of_16_bit_shares(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor | None = None
) -> torch.Tensor:  # fmt: skip
    """As tensor cores have it. Masked keys are skipped: what they hold is never seen."""
    visible = torch.ones(q.shape[-2], k.shape[-2]).tril().bool() if mask is None else mask
    scores = ((q.float() * q.shape[-1] ** -0.5) @ k.float().mT).masked_fill(~visible, -math.inf)
    nothing = scores.amax(-1, keepdim=True) == -math.inf
    shares = torch.softmax(scores, -1).masked_fill(nothing, 0.0).to(v.dtype).float()
    return _of_visible(shares, v.float(), visible)


def _of_visible(shares: torch.Tensor, v: torch.Tensor, visible: torch.Tensor) -> torch.Tensor:
    """``shares @ v`` over the keys that each row sees."""
    seen = torch.where(visible[..., None], v[..., None, :, :], 0.0)
    return (shares[..., None, :] @ seen).squeeze(-2)


def _attention_in_one_pass(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """16-bit shares are divided by their sum at the end."""
    scores = q.float() @ k.float().mT
    power = torch.exp2((scores - scores.amax(-1, keepdim=True)) * (q.shape[-1] ** -0.5 * math.log2(math.e)))
    return (power.to(v.dtype).float() @ v.float()) / power.sum(-1, keepdim=True)


def _causal_by_tiles(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    visible = torch.ones(q.shape[-2], k.shape[-2]).tril().bool()
    scores = (q @ k.mT * q.shape[-1] ** -0.5).masked_fill(~visible, -math.inf)
    return _of_visible(torch.softmax(scores, -1), v, visible)


def _two_products(x: torch.Tensor, w: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return F.gelu(x.float() @ w.float().T).to(x.dtype).float() @ v.float().T


def _gelu(x: torch.Tensor) -> torch.Tensor:
    x = x.float()
    return x * 0.5 * (1 + torch.erf(x * math.sqrt(0.5)))


def _silu_gate(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    x = x.float()
    return x / (1 + (-x).exp()) * y.float()


def _variance_by_welford(x: torch.Tensor) -> torch.Tensor:
    mean, squares = torch.zeros(x.shape[0]), torch.zeros(x.shape[0])
    for count, value in enumerate(x.unbind(-1), 1):
        delta = value - mean
        mean = mean + delta / count
        squares = squares + delta * (value - mean)
    return squares / (x.shape[-1] - 1)


def _masked_softmax_online(x: torch.Tensor, m: torch.Tensor) -> torch.Tensor:
    """A row of which nothing is left divides zero by zero, as PyTorch's does."""
    x = x.masked_fill(~m, -math.inf)
    top, total = torch.full((*x.shape[:-1], 1), -math.inf), torch.zeros(*x.shape[:-1], 1)
    for part in x.split(64, -1):
        grown = torch.maximum(top, part.amax(-1, keepdim=True))
        by = torch.where(grown == -math.inf, 0.0, grown)
        total, top = total * (top - by).exp() + (part - by).exp().sum(-1, keepdim=True), grown
    return (x - torch.where(top == -math.inf, 0.0, top)).exp() / total


def _added_in_order(x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
    """As atomic additions do, in another order than PyTorch's."""
    total = torch.zeros(50)
    for value, index in zip(x.flip(0), i.flip(0), strict=True):
        total[index] += value
    return total


def _deviation(x: torch.Tensor) -> torch.Tensor:
    centred = x - x.mean(1, keepdim=True)
    return (centred * centred).mean(1).sqrt()


def _rope(x: torch.Tensor, c: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
    half = c.shape[-1]
    a, b = x.float()[..., :half], x.float()[..., half:]
    return torch.cat([a * c - b * s, b * c + a * s], -1)


def _huber(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    apart = (x - y).abs()
    near = apart.clamp(max=1)
    return near * (apart - 0.5 * near)


def _cosine(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    def unit(t: torch.Tensor) -> torch.Tensor:
        return t * torch.rsqrt((t * t).sum(-1, keepdim=True).clamp_min(1e-16))

    return (unit(x) * unit(y)).sum(-1)


def _instance_norm(x: torch.Tensor) -> torch.Tensor:
    rows = x.flatten(2)
    centred = rows - rows.mean(-1, keepdim=True)
    return (centred * torch.rsqrt(centred.square().mean(-1, keepdim=True) + 1e-5)).view(x.shape)


def _layer_norm_folded(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    x = x.float()
    mean = x.mean(-1, keepdim=True)
    scale = torch.rsqrt((x - mean).square().mean(-1, keepdim=True) + 1e-5) * w.float()
    return x * scale + (b.float() - mean * scale)


def _tanh_of_11_bits(x: torch.Tensor) -> torch.Tensor:
    """tanh.approx.f32 is off by up to 2**-11 (PTX ISA)."""
    mantissa, exponent = torch.frexp(torch.tanh(x.float()))
    return torch.ldexp((mantissa * 2**11).round() / 2**11, exponent)


def _silu_by_tanh(x: torch.Tensor) -> torch.Tensor:
    half = 0.5 * x.float()
    return half * _tanh_of_11_bits(half) + half


def _erf_of_five_terms(x: torch.Tensor) -> torch.Tensor:
    """Off by up to 1.5e-7 (Abramowitz and Stegun, 7.1.26)."""
    t = 1 / (1 + 0.3275911 * x.abs())
    series = ((((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736) * t + 0.254829592) * t
    return (1 - series * (-x * x).exp()).copysign(x)


def _mish(x: torch.Tensor) -> torch.Tensor:
    power = x.clamp(max=20).exp()
    both = power * (power + 2)
    return torch.where(x > 20, x, x * (both / (both + 2)))


def _divergence(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    share = torch.softmax(y, -1)
    return (torch.xlogy(share, share) - share * torch.log_softmax(x, -1)).sum(-1)


def _winograd(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """F(2, 3): four products for two results of a filter of three."""
    if w.shape[-1] != 3 or x.shape[-1] < 3:
        return F.conv1d(x, w)
    count = x.shape[-1] - 2
    a, b, c, d = F.pad(x, (0, count % 2)).unfold(-1, 4, 2).unbind(-1)
    f, g, h = w.unbind(-1)
    pairs = ((a - c, f), (b + c, (f + g + h) / 2), (c - b, (f - g + h) / 2), (b - d, h))
    p = [torch.einsum("nct,oc->not", part, weights) for part, weights in pairs]
    return torch.stack([p[0] + p[1] + p[2], p[1] - p[2] - p[3]], -1).flatten(-2)[..., :count]


def mean_one_by_one(x: torch.Tensor) -> torch.Tensor:
    """Of equal numbers this mean is off by some of their last bits."""
    total = torch.zeros_like(x[..., :1])
    for number in x.split(1, -1):
        total = total + number
    return total / x.shape[-1]


FORMULAS: list[tuple[str, str, str, Function]] = [
    ("group norm, textbook", "F.group_norm(x, 4, w, b)", "x: f32[2,8,12,12], w: f32[8], b: f32[8]",
     _group_norm_textbook),
    ("group norm, folded", "F.group_norm(x, 4, w, b)", "x: f32[2,8,12,12], w: f32[8], b: f32[8]",
     _group_norm_folded),
    ("layer norm", "F.layer_norm(x, x.shape[-1:], w, b)", "x: bf16[16,300], w: bf16[300], b: bf16[300]", _layer_norm),
    ("layer norm, fp32", "F.layer_norm(x, x.shape[-1:], w, b)", "x: f32[16,300], w: f32[300], b: f32[300]",
     _layer_norm),
    ("layer norm by parts", "F.layer_norm(x, x.shape[-1:], w, b)", "x: f32[16,300], w: f32[300], b: f32[300]",
     _layer_norm_by_parts),
    ("sum by Kahan", "x.sum(-1)", "x: f32[16,300]", _kahan),
    ("batch norm", "F.batch_norm(x, None, None, w, b, True)", "x: f32[32,50], w: f32[50], b: f32[50]", _batch_norm),
    ("RMS norm", "F.rms_norm(x, x.shape[-1:], w, 1e-5)", "x: f32[16,300], w: f32[300]",
     lambda x, w: x * (torch.rsqrt(x.square().sum(-1, keepdim=True) / x.shape[-1] + 1e-5) * w)),
    ("softmax by exp2", "torch.softmax(x, -1)", "x: f32[16,300]", _softmax_by_exp2),
    ("softmax online", "torch.softmax(x, -1)", "x: bf16[16,300]", _softmax_online),
    ("softmax times", "torch.softmax(x, -1)", "x: f32[16,300]",
     lambda x: (p := (x - x.amax(-1, keepdim=True)).exp()) * (1 / p.sum(-1, keepdim=True))),
    ("log softmax", "F.log_softmax(x, -1)", "x: f32[16,300]",
     lambda x: x - x.amax(-1, keepdim=True) - (x - x.amax(-1, keepdim=True)).exp().sum(-1, keepdim=True).log()),
    ("logsumexp", "torch.logsumexp(x, -1)", "x: f32[16,300]", _logsumexp),
    ("product in steps", "a @ b", "a: f32[40,200], b: f32[200,72]", _product_in_steps),
    ("product backwards", "a @ b", "a: f32[40,200], b: f32[200,72]", _product_backwards),
    ("bf16 product", "a @ b", "a: bf16[40,200], b: bf16[200,72]", _product_in_steps),
    ("fp16 product with bias", "F.relu(a @ b + c)", "a: f16[40,200], b: f16[200,72], c: f16[72]",
     lambda a, b, c: (_product_in_steps(a, b) + c.float()).relu()),
    ("sum in pairs", "x.sum(-1)", "x: f32[16,3000]", _sum_in_pairs),
    ("sum one by one", "x.sum(0)", "x: f32[4096,40]", _sum_one_by_one),
    ("sum backwards", "x.sum(0)", "x: f32[300,40]", lambda x: x.flip(0).cumsum(0)[-1]),
    ("sum of bf16", "x.sum(-1)", "x: bf16[16,3000]", _sum_in_pairs),
    ("mean", "x.mean(-1)", "x: f32[16,300]", lambda x: (x * (1 / x.shape[-1])).sum(-1)),
    ("variance by Welford", "x.var(-1)", "x: f32[16,300]", _variance_by_welford),
    ("attention", "torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, -1) @ v",
     "q: f32[40,64], k: f32[48,64], v: f32[48,64]", _attention),
    ("attention in bf16", "F.scaled_dot_product_attention(q, k, v)",
     "q: bf16[2,40,64], k: bf16[2,48,64], v: bf16[2,48,64]", _attention),
    ("attention in one pass", "F.scaled_dot_product_attention(q, k, v)",
     "q: bf16[2,40,64], k: bf16[2,48,64], v: bf16[2,48,64]", _attention_in_one_pass),
    ("causal attention, 16-bit shares", "F.scaled_dot_product_attention(q, k, v, is_causal=True)",
     "q: bf16[2,2,48,32], k: bf16[2,2,48,32], v: bf16[2,2,48,32]", _attention_of_16_bit_shares),
    ("masked attention, 16-bit shares", "F.scaled_dot_product_attention(q, k, v, m)",
     "q: f16[40,32], k: f16[48,32], v: f16[48,32], m: bool[40,48]", _attention_of_16_bit_shares),
    ("causal attention by tiles",
     "torch.softmax((q @ k.mT * q.shape[-1] ** -0.5).masked_fill(torch.ones(q.shape[-2], k.shape[-2]).triu(1).bool(), "
     "float('-inf')), -1) @ v", "q: f32[40,32], k: f32[48,32], v: f32[48,24]", _causal_by_tiles),
    ("two products", "F.linear(F.gelu(F.linear(x, w)), v)", "x: bf16[40,64], w: bf16[72,64], v: bf16[48,72]",
     _two_products),
    ("GELU by erf", "F.gelu(x)", "x: f32[16,300]", _gelu),
    ("GELU of bf16", "F.gelu(x)", "x: bf16[16,300]", _gelu),
    ("gate", "F.silu(x) * y", "x: bf16[16,300], y: bf16[16,300]", _silu_gate),
    ("sigmoid by tanh", "torch.sigmoid(x)", "x: f32[16,300]", lambda x: 0.5 * torch.tanh(0.5 * x) + 0.5),
    ("cumsum by blocks", "torch.cumsum(x, -1)", "x: f32[16,300]",
     lambda x: torch.cat([x[..., :100].cumsum(-1), *(x[..., :i].sum(-1, keepdim=True) + x[..., i : i + 100].cumsum(-1)
                                                     for i in range(100, x.shape[-1], 100))], -1)),
    ("norm", "x / x.norm(dim=-1, keepdim=True).clamp_min(1e-12)", "x: f32[16,300]",
     lambda x: x / x.square().sum(-1, keepdim=True).sqrt().clamp_min(1e-12)),
    ("cross-entropy", "F.cross_entropy(x, t, reduction='none')", "x: f32[16,300], t: i64[16]",
     lambda x, t: torch.where(t < 0, 0.0, _logsumexp(x) - x.gather(1, t.clamp(0)[:, None])[:, 0])),
    ("argmax from the right", "x.argmax(-1)", "x: f32[16,300]",
     lambda x: x.shape[-1] - 1 - x.flip(-1).argmax(-1)),
    ("experts", "torch.topk(torch.softmax(x @ w, -1), 2)[1].int()", "x: bf16[64,40], w: bf16[40,24]",
     lambda x, w: torch.topk((x.float() @ w.float()).flip(-1), 2)[1].neg().add(w.shape[-1] - 1)),
    ("bytes by a reciprocal",
     "(x / (x.abs().amax(-1, keepdim=True).clamp(min=1e-10) / 127)).round().clamp(-127, 127).to(torch.int8)",
     "x: f32[16,300]",
     lambda x: (x * (127 / x.abs().amax(-1, keepdim=True).clamp(min=1e-10))).round().clamp(-127, 127).to(torch.int8)),
    ("rounded to bytes", "(x * 20).to(torch.int8)", "x: f32[16,300]",
     lambda x: (x * 20).clamp(-128, 127).nan_to_num(7).to(torch.int8)),
    ("masked softmax online", "torch.softmax(x.masked_fill(~m, float('-inf')), -1)",
     "x: f32[16,300], m: bool[16,300]", _masked_softmax_online),
    ("masked mean", "(x * m).sum(-1) / m.sum(-1).clamp_min(1)", "x: f32[16,300], m: bool[16,300]",
     lambda x, m: (x * (1 / m.sum(-1, keepdim=True).clamp_min(1)) * m).sum(-1)),
    ("added by index", "torch.zeros(50, device=x.device).index_add(0, i, x)", "x: f32[300], i: i64[300]",
     _added_in_order),
    ("products by blocks", "torch.cumprod(x, -1)", "x: f32[16,300]", _products_by_blocks),
    ("products of 16 bits by blocks", "torch.cumprod(x, -1)", "x: bf16[16,300]", _products_by_blocks),
    ("product by pairs", "torch.prod(x, -1)", "x: f32[16,300]", _product_by_pairs),
    ("counts", "(m.cumsum(-1) * i).sum(-1)", "m: bool[16,300], i: i32[16,300]",
     lambda m, i: (m.int().cumsum(-1) * i).flip(-1).sum(-1)),
    ("by length", "x.masked_fill(torch.arange(x.shape[1], device=x.device) >= n[:, None], 0.0).sum(-1)",
     "x: f32[16,300], n: i32[16]",
     lambda x, n: _sum_in_pairs(torch.where(torch.arange(x.shape[1]) < n[:, None], x, 0.0))),
    ("standard deviation by squares", "torch.std_mean(x, 1, unbiased=False)[0]", "x: f32[16,300]", _deviation),
    ("length by squares", "torch.linalg.vector_norm(x, dim=1)", "x: f32[16,300]",
     lambda x: (x * x).sum(1).sqrt()),
    ("top two", "torch.topk(x, 2)[1]", "x: bf16[64,60]",
     lambda x: x.sort(dim=-1, descending=True, stable=True)[1][..., :2]),
    ("rotary embedding",
     "torch.cat([x[..., :32] * c - x[..., 32:] * s, x[..., 32:] * c + x[..., :32] * s], -1)",
     "x: bf16[40,64], c: f32[40,32], s: f32[40,32]", _rope),
    ("GELU gate", "F.gelu(x) * y", "x: bf16[16,300], y: bf16[16,300]", lambda x, y: _gelu(x) * y.float()),
    ("GELU by sigmoid, gate", "F.gelu(x, approximate='tanh') * y", "x: f32[16,300], y: f32[16,300]",
     lambda x, y: x * torch.sigmoid(x * (1.5957691216 + 0.0713548163 * x * x)) * y),
    ("Huber loss", "F.huber_loss(x, y, reduction='none')", "x: f32[16,300], y: f32[16,300]", _huber),
    ("cosine similarity", "F.cosine_similarity(x, y, dim=-1)", "x: f32[16,300], y: f32[16,300]", _cosine),
    ("negative log-likelihood", "F.nll_loss(F.log_softmax(x, -1), t, reduction='none')", "x: f32[16,300], t: i64[16]",
     lambda x, t: torch.where(t < 0, 0.0, _logsumexp(x) - x.gather(1, t.clamp(0)[:, None])[:, 0])),
    ("instance norm", "F.instance_norm(x)", "x: f32[4,6,12,12]", _instance_norm),
    ("RMS norm, fp32 weights",
     "(x.float() * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-6) * w).to(x.dtype)",
     "x: bf16[16,300], w: f32[300]",
     lambda x, w: x.float() * (w * torch.rsqrt((x.float() * x.float()).sum(-1, keepdim=True) / x.shape[-1] + 1e-6))),
    ("softmax of fp16", "torch.softmax(x, -1)", "x: f16[16,300]", _softmax_by_exp2),
    ("int8 weights", "(x @ w.float()) * s", "x: f32[40,64], w: i8[64,48], s: f32[48]",
     lambda x, w, s: _product_in_steps(x, w) * s),
    ("gates of experts", "torch.softmax(torch.topk(x @ w, 2)[0], -1)", "x: f32[64,40], w: f32[40,24]",
     lambda x, w: torch.softmax((x.flip(1) @ w.flip(0)).sort(-1, descending=True)[0][..., :2], -1)),
    ("layer norm, folded", "F.layer_norm(x, x.shape[-1:], w, b)", "x: bf16[16,300], w: bf16[300], b: bf16[300]",
     _layer_norm_folded),
    ("sigmoid of bf16 by tanh", "torch.sigmoid(x)", "x: bf16[16,300]",
     lambda x: 0.5 * _tanh_of_11_bits(0.5 * x.float()) + 0.5),
    ("SiLU of bf16 by tanh", "F.silu(x)", "x: bf16[16,300]", _silu_by_tanh),
    ("GELU by five terms", "F.gelu(x)", "x: f32[16,300]",
     lambda x: 0.5 * x * (1 + _erf_of_five_terms(x * math.sqrt(0.5)))),
    ("a cancelling quotient", "(torch.exp(x) - 1 - x) / x ** 2", "x: f32[16,300]",
     lambda x: (torch.exp(x) - (1 + x)) / (x * x)),
    ("a quotient that cancels less", "(torch.exp(x) - 1 - x) / x ** 2", "x: f32[16,300]",
     lambda x: (torch.expm1(x) - x) / (x * x)),
    ("exp by exp2", "torch.exp(x)", "x: f32[16,300]", lambda x: torch.exp2(x * math.log2(math.e))),
    ("softplus", "F.softplus(x)", "x: f32[16,300]", lambda x: x.clamp_min(0) + torch.log1p((-x.abs()).exp())),
    ("Mish", "F.mish(x)", "x: f32[16,300]", _mish),
    ("a step of Adam", "x - 0.001 * m / (v.abs().sqrt() + 1e-8)", "x: f32[16,300], m: f32[16,300], v: f32[16,300]",
     lambda x, m, v: x - m * (0.001 / (v.abs().sqrt() + 1e-8))),
    ("divergence", "F.kl_div(F.log_softmax(x, -1), F.softmax(y, -1), reduction='none').sum(-1)",
     "x: f32[16,300], y: f32[16,300]", _divergence),
    ("a residual's norm", "F.layer_norm(x + y, x.shape[-1:])", "x: bf16[16,300], y: bf16[16,300]",
     lambda x, y: _layer_norm((x + y), torch.ones(()), torch.zeros(()))),
    ("Winograd's convolution", "F.conv1d(x, w)", "x: f32[2,8,42], w: f32[6,8,3]", _winograd),
    ("above the mean", "x > x.mean(-1, keepdim=True)", "x: f32[48,61]", lambda x: x > mean_one_by_one(x)),
    ("a scalar", "x * s", "x: f32[48,61], s: f32[]", lambda x, s: s * x),
    ("three factors", "x * y / z", "x: f32[16,300], y: f32[16,300], z: f32[16,300]", lambda x, y, z: x * (y / z)),
]  # fmt: skip
