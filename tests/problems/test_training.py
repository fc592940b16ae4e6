"""KernelBench's models in training mode, as its harness runs them: batch statistics, and no live dropout."""

from __future__ import annotations

import pytest
import torch

from cutegen_lab.core.errors import ProblemError
from cutegen_lab.problems import Reference, read_text
from cutegen_lab.templates.recognise import template_for

MODEL = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(8, 8)
        self.layer = {layer}
        {last}
    def forward(self, x):
        return {result}
def get_inputs(): return [torch.rand({shape})]
def get_init_inputs(): return []
"""


def model(layer: str, shape: str = "6, 8", result: str = "self.layer(x)", last: str = "pass") -> str:
    return MODEL.format(layer=layer, shape=shape, result=result, last=last)


@pytest.mark.parametrize(
    ("layer", "shape"),
    [
        ("nn.BatchNorm1d(8)", "6, 8"),
        ("nn.BatchNorm2d(8, momentum=None, affine=False)", "6, 8, 5, 4"),
        ("nn.BatchNorm3d(8, track_running_stats=False)", "6, 8, 3, 2, 4"),
        ("nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8))", "6, 8"),
    ],
)
def test_batch_norm_normalises_by_the_batch_and_modifies_nothing(layer: str, shape: str) -> None:
    problem = read_text(model(layer, shape))
    reference = Reference(problem)
    inputs = [torch.randn(spec.shape).to(torch.float32) for spec in problem.workload.inputs]
    before = [t.clone() for t in inputs]
    got, wide = reference.run(inputs)[0], reference.run_float64(inputs)[0]
    names = [spec.name for spec in problem.workload.inputs]
    stage = inputs[0]
    if "Linear" in layer:
        at = names.index("layer_0_weight")
        stage = torch.nn.functional.linear(stage, inputs[at], inputs[at + 1])
    dims = [0, *range(2, stage.dim())]
    mean, variance = stage.mean(dims, keepdim=True), stage.var(dims, correction=0, keepdim=True)
    want = (stage - mean) / (variance + 1e-5).sqrt()
    scale = [inputs[names.index(n)] for n in names if n.startswith("layer") and n.endswith(("weight", "bias"))][-2:]
    if scale:
        want = want * scale[0].view(-1, *[1] * (stage.dim() - 2)) + scale[1].view(-1, *[1] * (stage.dim() - 2))
    assert torch.allclose(got, want, atol=1e-5) and torch.allclose(wide.float(), want, atol=1e-5)
    assert all(torch.equal(a, b) for a, b in zip(inputs, before, strict=True))
    assert template_for(problem, "sm_90a").name


@pytest.mark.parametrize("tracked", [False, True])
def test_instance_norm_normalises_by_the_instance_and_modifies_nothing(tracked: bool) -> None:
    problem = read_text(model(f"nn.InstanceNorm2d(8, track_running_stats={tracked})", "6, 8, 5, 4"))
    reference = Reference(problem)
    inputs = [torch.randn(spec.shape) for spec in problem.workload.inputs]
    before = [t.clone() for t in inputs]
    x = inputs[0]
    want = (x - x.mean((2, 3), keepdim=True)) / (x.var((2, 3), correction=0, keepdim=True) + 1e-5).sqrt()
    for _ in range(2):
        assert torch.allclose(reference.run(inputs)[0], want, atol=1e-5)
    assert all(torch.equal(a, b) for a, b in zip(inputs, before, strict=True))
    assert [spec.name for spec in problem.workload.inputs] == ["x", "lin_weight", "lin_bias"][: len(inputs)]


def test_a_model_that_calls_eval_itself_uses_its_running_statistics() -> None:
    problem = read_text(model("nn.BatchNorm1d(8)", last="self.eval()"))
    names = [spec.name for spec in problem.workload.inputs]
    assert "layer_running_mean" in names
    reference = Reference(problem)
    inputs = [torch.rand(spec.shape) + 0.5 for spec in problem.workload.inputs]
    moved = list(inputs)
    moved[names.index("layer_running_mean")] = inputs[names.index("layer_running_mean")] + 1
    assert not torch.equal(reference.run(inputs)[0], reference.run(moved)[0])


def test_a_buffer_that_a_model_writes_itself_is_still_an_input_modified() -> None:
    counts = "self.layer.add_(1) * x"
    text = model("None", result=counts, last="del self.layer; self.register_buffer('layer', torch.zeros(8))")
    with pytest.raises(ProblemError, match="modifies its input 'layer'"):
        read_text(text)


@pytest.mark.parametrize(
    ("layer", "result", "says"),
    [
        ("nn.Dropout(0.2)", "self.layer(x)", r"dropout is live at line 9 \(layer = Dropout\(p=0.2\)\).*eval"),
        ("nn.Dropout1d(0.5)", "self.layer(x)", r"layer = Dropout1d\(p=0.5\)"),
        ("nn.TransformerEncoderLayer(8, 2)", "self.layer(x)", r"layer.dropout = Dropout\(p=0.1\)"),
        ("nn.MultiheadAttention(8, 2, dropout=0.1)", "self.layer(x, x, x)[0]", r"MultiheadAttention\(dropout=0.1\)"),
        ("None", "F.dropout(x, 0.3)", "dropout is live at line 9: the answer is random"),
    ],
)
def test_live_dropout_is_refused_by_name(layer: str, result: str, says: str) -> None:
    with pytest.raises(ProblemError, match=says) as refused:
        read_text(model(layer, result=result))
    assert refused.value.action


@pytest.mark.parametrize(
    ("layer", "result", "last"),
    [
        ("nn.Dropout(0.0)", "self.layer(x)", "pass"),
        ("nn.Dropout(0.5)", "self.layer(x)", "self.layer.eval()"),
        ("nn.Dropout(0.5)", "self.lin(x)", "pass"),
        ("nn.Dropout(0.5)", "F.dropout(x, 0.5, training=False)", "pass"),
    ],
)
def test_dropout_that_drops_nothing_is_no_dropout(layer: str, result: str, last: str) -> None:
    read_text(model(layer, result=result, last=last))
