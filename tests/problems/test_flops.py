"""How much arithmetic a problem's matrix products, convolutions and attention are."""

from __future__ import annotations

import pytest

from cutegen_lab.core.roofline import speed_of_light, target_gpu
from cutegen_lab.problems import read_text

ATTENTION = "F.scaled_dot_product_attention"
QKV = "q: bf16[2,8,{0},64], k: bf16[2,{2},{1},64], v: bf16[2,{2},{1},64]"
LAYER = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = {layer}
    def forward(self, x):
        return {result}
def get_inputs(): return [torch.rand(2, 16, 64)]
def get_init_inputs(): return []
"""
IN_AND_OUT = 2 * 2 * 16 * 64 * (4 * 64)  # the layer's projections
BETWEEN = 2 * 2 * 16 * 16 * 64 * 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("layer", "gates", "directions"),
    [("LSTM(64, 32", 4, 1), ("LSTM(64, 32, bidirectional=True", 4, 2), ("GRU(64, 32", 3, 1), ("RNN(64, 32", 1, 1)],
)
def test_a_recurrent_layer_is_two_products_a_step(layer: str, gates: int, directions: int) -> None:
    problem = read_text(LAYER.format(layer=f"nn.{layer}, batch_first=True)", result="self.layer(x)[0]"))
    assert problem.flops == 2 * directions * 2 * 16 * (64 + 32) * gates * 32


@pytest.mark.parametrize(
    ("arguments", "queries", "keys", "key_heads", "pairs"),
    [
        ("q, k, v", 96, 96, 8, 96 * 96),
        ("q, k, v", 32, 96, 8, 32 * 96),
        ("q, k, v, is_causal=True", 96, 96, 8, 96 * 97 // 2),
        ("q, k, v, is_causal=True", 4, 96, 8, 1 + 2 + 3 + 4),
        ("q, k, v, is_causal=True", 96, 2, 8, 1 + 2 + 94 * 2),
        ("q, k, v, enable_gqa=True", 96, 96, 2, 96 * 96),
        ("q, k, v, is_causal=True, enable_gqa=True, scale=0.2", 96, 96, 2, 96 * 97 // 2),
        ("q, k, v, torch.ones(96, 96, dtype=torch.bool).tril()", 96, 96, 8, 96 * 96),
        ("q, k, v[..., :64]", 96, 96, 8, 96 * 96),
    ],
)
def test_attention_is_two_products_over_the_pairs_it_keeps(
    arguments: str, queries: int, keys: int, key_heads: int, pairs: int
) -> None:
    text = f"def reference(q, k, v):\n    return {ATTENTION}({arguments})\n"
    problem = read_text(text, inputs_text=QKV.format(queries, keys, key_heads))
    assert problem.flops == 2 * 2 * 2 * 8 * pairs * 64
    assert speed_of_light(problem, target_gpu("sm_90a")).compute_us > 0


def test_attention_that_has_no_fused_kernel_is_counted() -> None:
    text = f"def reference(q, k, v):\n    return {ATTENTION}(q, k, v)\n"
    problem = read_text(text, inputs_text="q: f32[8,96,64], k: f32[8,48,64], v: f32[8,48,32]")
    assert problem.flops == 2 * 8 * 96 * 48 * (64 + 32)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("layer", "result", "flops"),
    [
        ("nn.MultiheadAttention(64, 4, batch_first=True)", "self.layer(x, x, x)[0]", IN_AND_OUT + BETWEEN),
        (
            "nn.MultiheadAttention(64, 4, batch_first=True)",
            "self.layer(x, x, x, need_weights=False)[0]",
            IN_AND_OUT + BETWEEN,
        ),
        (
            "nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0, batch_first=True)",
            "self.layer(x)",
            IN_AND_OUT + BETWEEN + 2 * (2 * 2 * 16 * 64 * 128),
        ),
    ],
)
def test_layers_with_attention_are_counted(layer: str, result: str, flops: int) -> None:
    assert read_text(LAYER.format(layer=layer, result=result)).flops == flops


@pytest.mark.parametrize(
    ("inputs", "tf32", "rate"),
    [
        ("a: bf16[1024,1024], b: bf16[1024,1024]", False, 989e12),
        ("a: f32[1024,1024], b: f32[1024,1024]", False, 989e12 / 3),  # two fp16 halves each: three products
        ("a: f32[1024,1024], b: f32[1024,1024]", True, 989e12 / 2),
        ("i: i64[1024] below 1024, a: bf16[1024,1024], b: bf16[1024,1024]", False, 989e12),
    ],
)
def test_the_bound_is_that_of_the_fastest_way(inputs: str, tf32: bool, rate: float) -> None:
    indexed = inputs.startswith("i:")
    allowed = 'torch.set_float32_matmul_precision("high")\n' if tf32 else ""
    signature = f"def reference({'i, ' if indexed else ''}a, b):"
    problem = read_text(f"{allowed}{signature}\n    return a{'[i]' if indexed else ''} @ b\n", inputs_text=inputs)
    bound = speed_of_light(problem, target_gpu("sm_90a"))
    assert bound.compute_us == pytest.approx(2 * 1024**3 / rate * 1e6)
