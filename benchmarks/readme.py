"""Updates the tables of ``docs/measured.md`` that show ``cutegen bench h200``.

    python -m benchmarks.readme

Each is between a line ``<!-- bench: NAME -->`` and the next ``<!-- end -->``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import geometric_mean

from benchmarks.harness import RESULTS, ROOT, command_line
from cutegen_lab.bench.quack import QUACK
from cutegen_lab.bench.record import COPY, Row, read
from cutegen_lab.bench.report import LARGE_BYTES, ratio
from cutegen_lab.bench.suite import CASES

MEASURED, RECORD = ROOT / "docs/measured.md", RESULTS / "bench_h200.json"
WORKS = {  # as a reader calls them
    "log_softmax": "log-softmax", "rms_norm": "RMSNorm", "layer_norm": "LayerNorm",
    "fused_add_rmsnorm": "fused add and RMSNorm", "silu_and_mul": "silu and mul",
    "merge_attn_states": "merged attention states", "gelu": "GELU", "sum": "sum of rows",
    "cross_entropy": "cross-entropy", "column_sum": "sum of columns", "total": "sum of all",
    "gemm": "bf16", "gemm_f32": "fp32 at fp32's accuracy", "gemm_tf32": "fp32 as TF32",
    "gemm_f8": "e4m3, bf16 results", "gemm_few_tiles": "bf16, few tiles", "gemm_odd": "bf16, odd sizes",
    "few_rows": "bf16, few rows", "few_rows_f32": "fp32, one row",
    "linear_bias_gelu": "bias + GELU", "swiglu": "SwiGLU", "linear_residual_norm": "residual + RMSNorm",
    "linear_softmax": "softmax", "linear_logsumexp": "log-sum-exp",
}  # fmt: skip
MODELS = {
    "gpt_2": "GPT-2", "bert_large": "BERT-large", "vit_h": "ViT-H", "llama_3_8b": "Llama 3 8B",
    "qwen_2.5_7b": "Qwen 2.5 7B", "qwen_2.5_1.5b": "Qwen 2.5 1.5B",
    "qwen_3_30b": "Qwen 3 30B", "deepseek_v3": "DeepSeek V3", "tinyllama": "TinyLlama",
}  # fmt: skip
FUSED = ("linear_bias_gelu", "swiglu", "linear_residual_norm", "linear_softmax", "linear_logsumexp")


def _shape(row: Row) -> str:
    """``4096³``, ``16 × 1024³``, ``GPT-2 16384×768×768``."""
    *words, sizes = row.name.removeprefix(f"{row.work}-").split("-")
    numbers = sizes.split("x")
    batches = f"{numbers.pop(0)} × " if "batched" in words else ""
    model = "".join(MODELS.get(word, "") for word in words)
    cube = f"{numbers[0]}³" if len(set(numbers)) == 1 else "×".join(numbers)
    return f"{model} {batches}{cube}".strip()


def _us(time_us: float) -> str:
    return f"{time_us:,.1f} µs" if time_us < 100 else f"{time_us:,.0f} µs"


def _ratios(rows: Sequence[Row], other: str, most: bool = False) -> str:
    found = [ratio(row, other) for row in rows if other in row.ratios]
    if not found:
        return ""
    return f"{geometric_mean(found):.2f} ({min(found):.2f}{f' to {max(found):.2f}' if most else ''})"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], beside: int = 1) -> list[str]:
    """Lines of a table, with ``beside`` rows to a line."""
    every = list(rows)
    every += [[""] * len(head)] * (-len(every) % beside)
    lines = [list(head) * beside, ["---"] * len(head) * beside]
    lines += [[c for row in every[at : at + beside] for c in row] for at in range(0, len(every), beside)]
    return [f"| {' | '.join(line)} |" for line in lines]


def gemm(works: Mapping[str, Sequence[Row]]) -> list[str]:
    rows = [(_shape(r), _us(r.times_us["eager"]), f"{ratio(r, 'eager'):.2f}") for r in works["gemm"]]
    return _table(("bf16", "cuBLAS", "ratio"), rows, beside=2)


def products(works: Mapping[str, Sequence[Row]]) -> list[str]:
    lines = []
    for work, rows in works.items():
        if rows[0].flops and work not in FUSED:
            errors = [r.errors["c0"] / r.errors["eager"] for r in rows if r.errors.get("eager")]
            told = f"{min(errors):.2f} to {max(errors):.2f}" if errors else ""
            others = (_ratios(rows, other, most=True) for other in ("eager", "compile"))
            lines.append((WORKS[work], str(len(rows)), *others, told))
    return _table(("products", "shapes", "eager", "`torch.compile`", "error / eager's error"), lines)


def fused(works: Mapping[str, Sequence[Row]]) -> list[str]:
    lines = []
    for work in FUSED:
        for row in works[work]:
            times = (_us(row.times_us[name]) for name in ("c0", "eager", "compile"))
            lines.append((f"{WORKS[work]}, {_shape(row)}", *times, f"{ratio(row, 'compile'):.2f}"))
        lines.append((f"**{WORKS[work]}**", "", "", "", f"**{_ratios(works[work], 'compile')}**"))
    return _table(("product with", "ours", "eager", "`torch.compile`", "ratio to `torch.compile`"), lines)


def memory(works: Mapping[str, Sequence[Row]]) -> list[str]:
    lines = []
    for work, rows in works.items():
        if not rows[0].flops:
            shares = [ratio(r, COPY) for r in rows if r.bytes >= LARGE_BYTES and COPY in r.ratios]
            others = (_ratios(rows, other) for other in ("eager", "compile", QUACK))
            lines.append((WORKS.get(work, work), f"{min(shares):.2f} to {max(shares):.2f}", *others))
    return _table(("", "share of the copy rate", "eager", "`torch.compile`", "quack 0.6.5"), lines)


def sure(works: Mapping[str, Sequence[Row]]) -> list[str]:
    """How wide the ratios' 95% intervals are."""
    found = [r.ratios[other] for rows in works.values() for r in rows for other in r.ratios]
    widths = sorted((high - low) / 2 / middle for middle, low, high in found)
    half, most = widths[len(widths) // 2], widths[len(widths) * 19 // 20]
    return [
        f"Half of the {len(widths):,} ratios have a 95% confidence interval of ±{half:.1%} or less, and 95% of them "
        f"±{most:.1%} or less. The widest is ±{widths[-1]:.0%}: a large product, whose clock the card's power limits.",
    ]


TABLES: Mapping[str, Callable[[Mapping[str, Sequence[Row]]], list[str]]] = {
    "sure": sure, "gemm": gemm, "products": products, "fused": fused, "memory": memory,
}  # fmt: skip


def written(text: str, rows: Iterable[Row]) -> str:
    """``text`` with every table anew. Raises KeyError for a table that there is not."""
    order = [case.name for case in CASES]
    works: dict[str, list[Row]] = {}
    for row in sorted(rows, key=lambda row: order.index(row.name)):
        if "c0" in row.times_us and not row.insensitive:
            works.setdefault(row.work, []).append(row)
    return re.sub(
        r"(<!-- bench: (\w+) -->\n).*?(?=<!-- end -->)",
        lambda found: found[1] + "\n".join(TABLES[found[2]](works)) + "\n",
        text,
        flags=re.DOTALL,
    )


def main() -> None:
    MEASURED.write_text(written(MEASURED.read_text(encoding="utf-8"), read(RECORD)), encoding="utf-8")


if __name__ == "__main__":
    command_line(main)
