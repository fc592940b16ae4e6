"""Compute-bound cases, all of them matrix products: plain, at fp32 accuracy, in TF32, with few tiles, with odd sizes,
fused."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from cutegen_lab.bench.case import Case

BF16, F32 = "bf16", "f32"


def _nn(work: str, m: int, n: int, k: int, dtype: str = BF16) -> Case:
    return Case(work, f"{m}x{n}x{k}", "a @ b", f"a: {dtype}[{m},{k}], b: {dtype}[{k},{n}]", flops=2.0 * m * n * k)


def _linear(work: str, m: int, n: int, k: int, dtype: str = BF16) -> Case:
    inputs = f"a: {dtype}[{m},{k}], b: {dtype}[{n},{k}]"
    return Case(work, f"linear-{m}x{n}x{k}", "F.linear(a, b)", inputs, flops=2.0 * m * n * k)


def _batched(work: str, batches: int, m: int, n: int, k: int, dtype: str = BF16) -> Case:
    inputs = f"a: {dtype}[{batches},{m},{k}], b: {dtype}[{batches},{k},{n}]"
    return Case(work, f"batched-{batches}x{m}x{n}x{k}", "torch.bmm(a, b)", inputs, flops=2.0 * batches * m * n * k)


def _gelu(model: str, m: int, n: int, k: int) -> Case:
    inputs = f"a: bf16[{m},{k}], b: bf16[{n},{k}], bias: bf16[{n}]"
    expression = "F.gelu(F.linear(a, b, bias))"
    return Case("linear_bias_gelu", f"{model}-{m}x{n}x{k}", expression, inputs, flops=2.0 * m * n * k)


def _swiglu(model: str, m: int, n: int, k: int) -> Case:
    inputs = f"x: bf16[{m},{k}], g: bf16[{n},{k}], u: bf16[{n},{k}]"
    expression = "F.silu(F.linear(x, g)) * F.linear(x, u)"
    return Case("swiglu", f"{model}-{m}x{n}x{k}", expression, inputs, flops=4.0 * m * n * k)


def _norm(model: str, m: int, n: int, k: int) -> Case:
    inputs = f"a: bf16[{m},{k}], b: bf16[{n},{k}], r: bf16[{m},{n}], w: bf16[{n}]"
    expression = "F.rms_norm(F.linear(a, b) + r, w.shape, w, 1e-6)"
    return Case("linear_residual_norm", f"{model}-{m}x{n}x{k}", expression, inputs, flops=2.0 * m * n * k)


def _f8(m: int, n: int, k: int) -> Case:
    inputs = f"a: f8e4m3fn[{m},{k}], b: f8e4m3fn[{n},{k}], sa: f32[], sb: f32[]"
    expression = "torch._scaled_mm(a, b.t(), sa, sb, out_dtype=torch.bfloat16)"
    return Case("gemm_f8", f"{m}x{n}x{k}", expression, inputs, flops=2.0 * m * n * k)


def _gate(model: str, m: int, n: int, k: int) -> Case:
    """Router of a mixture of experts: probabilities of experts for each token."""
    inputs = f"a: bf16[{m},{k}], b: bf16[{n},{k}]"
    expression = "F.softmax(F.linear(a, b).float(), dim=-1)"
    return Case("linear_softmax", f"{model}-{m}x{n}x{k}", expression, inputs, flops=2.0 * m * n * k)


def _head(model: str, m: int, n: int, k: int) -> Case:
    """Logsumexp of a language model's logits, which its loss needs."""
    inputs = f"a: bf16[{m},{k}], b: bf16[{n},{k}]"
    expression = "F.linear(a, b).float().logsumexp(-1)"
    return Case("linear_logsumexp", f"{model}-{m}x{n}x{k}", expression, inputs, flops=2.0 * m * n * k)


def cases() -> Iterator[Case]:
    """All products. Fused shapes are (tokens, output features, input features) of models."""
    yield from (_nn("gemm", n, n, n) for n in (512, 1024, 2048, 4096, 8192, 16384))
    yield from (_linear("gemm", *mnk) for mnk in ((64, 4096, 4096), (256, 8192, 8192), (4096, 14336, 4096)))
    yield from (_nn("gemm", *mnk) for mnk in ((8192, 128, 8192), (1000, 1000, 1000), (3000, 5000, 2000)))
    yield _linear("gemm", 4096, 1111, 4096)
    yield _batched("gemm", 16, 1024, 1024, 1024)
    yield _batched("gemm", 64, 512, 512, 128)
    yield _batched("gemm", 8, 2048, 2048, 2048)

    yield from (_nn("gemm_f32", n, n, n, F32) for n in (512, 1024, 2048, 4096, 8192))
    yield _linear("gemm_f32", 256, 8192, 8192, F32)
    yield _nn("gemm_f32", 1001, 1003, 1005, F32)
    yield _batched("gemm_f32", 16, 1024, 1024, 1024, F32)

    for case in (
        *(_nn("gemm_tf32", n, n, n, F32) for n in (1024, 2048, 4096, 8192)),
        _linear("gemm_tf32", 8192, 8192, 8192, F32),
        _linear("gemm_tf32", 4096, 14336, 4096, F32),
        _linear("gemm_tf32", 256, 8192, 8192, F32),
        _nn("gemm_tf32", 1001, 1003, 1005, F32),
        _batched("gemm_tf32", 16, 1024, 1024, 1024, F32),
    ):
        yield replace(case, tf32=True)

    yield _linear("gemm_few_tiles", 512, 512, 16384)
    yield _linear("gemm_few_tiles", 64, 4096, 16384)
    yield _nn("gemm_few_tiles", 1024, 256, 32768)
    yield _linear("gemm_few_tiles", 16, 4096, 11008)
    yield _nn("gemm_odd", 1001, 1003, 1005)
    yield _linear("gemm_odd", 4095, 4097, 4099)

    yield from (_f8(*mnk) for mnk in ((2048, 2048, 2048), (4096, 4096, 4096), (4096, 14336, 4096), (8192, 8192, 8192)))
    yield from (_linear("few_rows", *mnk) for mnk in ((1, 4096, 4096), (1, 14336, 4096), (1, 128256, 4096)))
    yield from (_linear("few_rows", *mnk) for mnk in ((4, 14336, 4096), (16, 14336, 4096)))
    yield _linear("few_rows_f32", 1, 14336, 4096, F32)
    yield _batched("few_rows", 256, 1, 128, 4096)

    yield _gelu("gpt_2", 16384, 3072, 768)
    yield _gelu("bert_large", 16384, 4096, 1024)
    yield _gelu("vit_h", 16448, 5120, 1280)
    yield _gelu("llama_3_8b", 4096, 14336, 4096)
    yield _gelu("square", 8192, 8192, 8192)
    yield _swiglu("llama_3_8b", 4096, 14336, 4096)
    yield _swiglu("qwen_2.5_7b", 4096, 18944, 3584)
    yield _swiglu("qwen_2.5_1.5b", 8192, 8960, 1536)
    yield _norm("gpt_2", 16384, 768, 768)
    yield _norm("gpt_2", 16384, 768, 3072)
    yield _norm("llama_3_8b", 4096, 4096, 4096)
    yield _norm("llama_3_8b", 4096, 4096, 14336)
    yield _gate("qwen_3_30b", 16384, 128, 2048)
    yield _gate("deepseek_v3", 16384, 256, 7168)
    yield _head("tinyllama", 8192, 32000, 2048)
