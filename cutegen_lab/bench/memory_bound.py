"""Memory-bound cases: each operation in eight shapes from 4 MiB to 4 GiB, in bf16 and fp32.

Sizes are compulsory bytes: every input read once, every output written once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cutegen_lab.bench import quack
from cutegen_lab.bench.case import Case

MIB = 1 << 20
ITEMSIZE = {"bf16": 2, "f32": 4}
SIZES = (  # (compulsory bytes, columns): powers of two, a model's hidden and feed-forward sizes, long rows
    (4 * MIB, 1024), (16 * MIB, 4096), (64 * MIB, 5120), (256 * MIB, 4096), (512 * MIB, 11008), (1024 * MIB, 8192),
    (2048 * MIB, 65536), (4096 * MIB, 8192),
)  # fmt: skip
HEAD = 128  # elements of an attention head
HEADS = (1024, 4096, 5120, 4096, 6144, 8192, 16384, 8192)  # columns of all heads together: 8 to 128 heads
MERGED = """(
        torch.exp(la - torch.logaddexp(la, lb)).unsqueeze(-1) * a
        + torch.exp(lb - torch.logaddexp(la, lb)).unsqueeze(-1) * b
    ).to(a.dtype), torch.logaddexp(la, lb)"""
# Rows of GPT-2's 50257 columns are not aligned.
VOCABULARIES = (1024, 32000, 50257, 32768, 128256, 50304, 152064, 262144)


@dataclass(frozen=True)
class Work:
    """A template of cases. ``inputs`` contains the placeholders {n} (rows), {k} (columns), {k2} (twice as many), {h}
    (heads) and {t} (type); ``tensors`` is the number of [n, k] tensors that are read or written."""

    name: str
    expression: str
    inputs: str
    tensors: float
    peer: str = ""
    columns: tuple[int, ...] = tuple(k for _, k in SIZES)


WORKS = (
    Work("softmax", "torch.softmax(x, -1)", "x: {t}[{n},{k}]", 2, quack.kernel("softmax")),
    Work("log_softmax", "torch.log_softmax(x, -1)", "x: {t}[{n},{k}]", 2),
    Work("rms_norm", "F.rms_norm(x, w.shape, w, 1e-6)", "x: {t}[{n},{k}], w: {t}[{k}]", 2, quack.kernel("rms_norm")),
    Work("layer_norm", "F.layer_norm(x, w.shape, w, b)", "x: {t}[{n},{k}], w: {t}[{k}], b: {t}[{k}]", 2,
         quack.kernel("layer_norm")),
    Work("fused_add_rmsnorm", "F.rms_norm(x + r, w.shape, w, 1e-6), x + r",
         "x: {t}[{n},{k}], r: {t}[{n},{k}], w: {t}[{k}]", 4, quack.kernel("add_rms_norm")),
    Work("silu_and_mul", "F.silu(x[..., : x.shape[-1] // 2]) * x[..., x.shape[-1] // 2 :]", "x: {t}[{n},{k2}]", 3),
    Work("merge_attn_states", MERGED,
         "a: {t}[{n},{h},128], la: f32[{n},{h}], b: {t}[{n},{h},128], lb: f32[{n},{h}]", 3, columns=HEADS),
    Work("gelu", "F.gelu(x)", "x: {t}[{n},{k}]", 2),
    Work("sum", "x.sum(-1)", "x: {t}[{n},{k}]", 1),
    Work("cross_entropy", 'F.cross_entropy(x, t, reduction="none")', "x: {t}[{n},{k}], t: i64[{n}]", 1,
         quack.kernel("cross_entropy"), VOCABULARIES),
    Work("column_sum", "x.sum(0)", "x: {t}[{n},{k}]", 1),
    Work("total", "x.sum()", "x: {t}[{n},{k}]", 1),
)  # fmt: skip


def cases() -> Iterator[Case]:
    for work in WORKS:
        for dtype, itemsize in ITEMSIZE.items():
            for (size, _), columns in zip(SIZES, work.columns, strict=True):
                rows = max(round(size / (work.tensors * itemsize * columns)), 1)
                inputs = work.inputs.format(n=rows, k=columns, k2=2 * columns, h=columns // HEAD, t=dtype)
                yield Case(work.name, f"{dtype}-{rows}x{columns}", work.expression, inputs, work.peer)
