"""Which small workloads are derived: of every size that may change, ragged, aligned, and at least three."""

from __future__ import annotations

import time

import pytest

from cutegen_lab.core.problem import Problem, Workload
from cutegen_lab.judge.draws.inputs import draw
from cutegen_lab.problems import Reference, read_text
from cutegen_lab.problems.probes import LONGEST_SUM
from cutegen_lab.problems.summed import sums_of
from cutegen_lab.problems.workloads import FEWEST, MAX_ELEMENTS, TRIVIAL
from tests.harness.checking import problem_of

MODEL = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        {layers}
    def forward(self, x):
        {forward}
def get_inputs():
    return [torch.rand({inputs})]
def get_init_inputs():
    return []
"""
MODELS = {
    "groups of one axis with a Linear's": (
        "self.fc, self.norm = nn.Linear(2048, 4096), nn.GroupNorm(512, 4096)",
        "return F.leaky_relu(self.norm(self.fc(x)))", "256, 2048",
    ),
    "images of three dimensions": (
        "self.conv, self.bias = nn.Conv3d(8, 32, 3), nn.Parameter(torch.rand(32, 1, 1, 1))",
        "return torch.relu(self.conv(x)) + self.bias", "64, 8, 32, 64, 64",
    ),
    "images that are pooled": (
        "self.conv = nn.Conv3d(3, 16, 3)",
        "return F.max_pool3d(F.max_pool3d(self.conv(x).softmax(1), 2), 2)", "128, 3, 16, 32, 32",
    ),
    "images that grow": (
        "self.conv = nn.ConvTranspose3d(3, 16, 3, stride=2, padding=1)",
        "return F.avg_pool3d(self.conv(x) * 0.5, 2)", "128, 3, 16, 32, 32",
    ),
    "images in groups of channels": (
        "self.conv, self.norm = nn.Conv2d(8, 32, 3), nn.GroupNorm(8, 32)",
        "return self.norm(self.conv(x).sigmoid())", "128, 8, 256, 256",
    ),
}  # fmt: skip


def telling(problem: Problem) -> list[Workload]:
    return [workload for workload in problem.check_workloads if workload.name not in TRIVIAL]


@pytest.mark.parametrize(("layers", "forward", "inputs"), MODELS.values(), ids=MODELS)
def test_of_every_model_there_are_enough(layers: str, forward: str, inputs: str) -> None:
    begun = time.process_time()
    problem = read_text(MODEL.format(layers=layers, forward=forward, inputs=inputs))
    assert time.process_time() - begun < 20  # 1 on an idle machine
    assert len(telling(problem)) >= FEWEST
    for workload in problem.check_workloads:
        assert sum(spec.numel for spec in workload.inputs) <= 4 * MAX_ELEMENTS


def test_channels_stay_a_multiple_of_their_groups_and_more_than_one_of_each() -> None:
    layers, forward, inputs = MODELS["groups of one axis with a Linear's"]
    problem = read_text(MODEL.format(layers=layers, forward=forward, inputs=inputs))
    channels = {workload.inputs[1].shape[0] for workload in problem.check_workloads}
    assert channels >= {1024, 1536} and max(channels) < 4096


@pytest.mark.parametrize(
    ("expression", "inputs"),
    [
        ("x + y", "x: f16[256,128], y: f16[256,128]"),
        ("x.cumsum(-1)", "x: f32[64,64]"),
        ("x + y", "x: bf16[64,32,96], y: bf16[64,32,96]"),
        ("torch.softmax(x, 0)", "x: f32[128,32]"),
        ("a @ b", "a: bf16[128,64], b: bf16[64,256]"),
    ],
)
def test_every_axis_is_ragged_somewhere(expression: str, inputs: str) -> None:
    problem = problem_of(expression, inputs, checks=None)
    for at, spec in enumerate(problem.workload.inputs):
        for dim in range(len(spec.shape)):
            sizes = {workload.inputs[at].shape[dim] for workload in telling(problem)}
            assert any(size > 1 and size % 8 for size in sizes), (spec.name, dim, sizes)
    columns = {workload.inputs[0].shape[-1] for workload in telling(problem)}
    assert any(size > 8 and size % 8 for size in columns), columns


ROTATED = "x[..., {0}:] * s, x[..., :{0}] * s + x[..., {0}:] * c], -1)"


@pytest.mark.parametrize(
    ("expression", "inputs"),
    [
        ("F.group_norm(x, 8, w, b)", "x: f32[2,64,64,64], w: f32[64], b: f32[64]"),  # sizes that are all alike
        (
            "torch.cat([x[..., :64] * c - " + ROTATED.format(64),
            "x: bf16[2,16,1024,128], c: f32[1024,64], s: f32[1024,64]",
        ),  # … tied to each other
        (
            "torch.cat([x[..., : x.shape[-1] // 2] * c - " + ROTATED.format("x.shape[-1] // 2"),
            "x: bf16[2,1024,16,128], c: f32[1024,1,64], s: f32[1024,1,64]",
        ),
    ],
    ids=["group norm", "rotation", "rotation of any width"],
)
def test_of_sizes_alike_or_tied_there_are_enough(expression: str, inputs: str) -> None:
    problem = problem_of(expression, inputs, checks=None)
    found = telling(problem)
    assert len(found) >= FEWEST and any(workload.name == "aligned" for workload in found)
    sizes = {size for workload in found for size in workload.inputs[0].shape}
    assert any(size > 8 and size % 8 for size in sizes), sizes


@pytest.mark.parametrize(
    ("expression", "inputs", "shapes"),
    [
        ("x + y", "x: f16[256,128], y: f16[256,128]", {(128, 128)}),
        ("torch.softmax(x, -1)", "x: bf16[4096,8192]", {(128, 128)}),
        ("x * 2", "x: f32[128,128]", {(256, 128)}),  # where one tile is the analyst's own
        ("x * 2", "x: f32[1048576]", {(2048,)}),
        ("x * w", "x: f32[16,64,32,32], w: f32[64,1,1]", {(1, 16, 32, 32), (16, 1, 1)}),
        ("a @ b", "a: bf16[4096,2048], b: bf16[2048,4096]", {(128, 128)}),
    ],
)
def test_one_is_of_whole_tiles(expression: str, inputs: str, shapes: set[tuple[int, ...]]) -> None:
    aligned = problem_of(expression, inputs, checks=None).workload_named("aligned")
    assert {spec.shape for spec in aligned.inputs} == shapes and aligned.derived


def test_none_is_where_no_tile_divides_any_size() -> None:
    assert "aligned" not in {
        workload.name for workload in problem_of("x * 2", "x: f32[1000,300]", checks=None).check_workloads
    }


@pytest.mark.parametrize(
    ("expression", "inputs"),
    [
        ("x * 2", "x: f32[7,9]"),
        ("torch.softmax(x, -1)", "x: bf16[4,130]"),
        ("torch.softmax(x, -1)", "x: bf16[4096,8192]"),
        ("F.conv2d(x, w)", "x: f32[8,16,64,64], w: f32[32,16,3,3]"),
        ("F.instance_norm(x)", "x: f32[16,32,64,64]"),
    ],
)
def test_what_a_workload_is_said_to_be_it_is(expression: str, inputs: str) -> None:
    for workload in problem_of(expression, inputs, checks=None).check_workloads:
        columns = workload.inputs[0].shape[-1]
        if "prime" in workload.why:
            assert all(columns % n for n in range(2, columns)), workload
        if "longer than one pass" in workload.why:
            assert columns >= 2048, workload
        assert workload.why


HEADS_LAST = "F.scaled_dot_product_attention(q, k, v)"
HEADS_BETWEEN = "F.scaled_dot_product_attention(*(t.transpose(1, 2) for t in (q, k, v))).transpose(1, 2)"


@pytest.mark.parametrize(
    ("expression", "inputs", "keys"),
    [
        (HEADS_LAST, "q: bf16[2,8,512,64], k: bf16[2,8,512,64], v: bf16[2,8,512,64]", 2),
        (HEADS_LAST, "q: bf16[1,8,640,128], k: bf16[1,8,1024,128], v: bf16[1,8,1024,128]", 2),
        (HEADS_BETWEEN, "q: f16[4,2048,16,64], k: f16[4,2048,16,64], v: f16[4,2048,16,64]", 1),
    ],
)
def test_an_attention_whose_heads_are_equally_long_has_workloads_of_such(
    expression: str, inputs: str, keys: int
) -> None:
    """One that takes other heads for values serves all; many kernels take only one length."""
    problem = problem_of(expression, inputs, checks=None)
    tiles, deep, whole = (problem.workload_named(name) for name in ("tiles", "deep", "aligned"))
    for workload in (tiles, deep, whole):
        lengths = {spec.shape[-1] for spec in workload.inputs}
        assert len(lengths) == 1 and lengths.pop() % 16 == 0, workload
    q, k, _ = (spec.shape[keys] for spec in tiles.inputs)
    assert q % 64 and k % 64 and q != k
    assert deep.inputs[1].shape[keys] >= 512 > deep.inputs[0].shape[keys]  # the keys are summed over
    assert any(w.inputs[2].shape[-1] != w.inputs[1].shape[-1] for w in problem.check_workloads)


@pytest.mark.parametrize(
    ("expression", "inputs", "longest"),
    [
        ("a @ b", "a: bf16[4096,13824], b: bf16[13824,5120]", LONGEST_SUM),
        ("F.linear(a, b)", "a: bf16[4096,2048], b: bf16[1024,2048]", LONGEST_SUM),
        ("a.view(-1, 4096) @ b", "a: bf16[512,4096], b: bf16[4096,1024]", 4096),  # takes no other
    ],
)
def test_matrix_products_add_up_few_terms_where_the_reference_lets_them(
    expression: str, inputs: str, longest: int
) -> None:
    """A thread may do so one after another; 13,824 of them took an emulator 40 s."""
    problem = problem_of(expression, inputs, checks=None)
    found = telling(problem)
    reference = Reference(problem)

    def most(workload: Workload) -> int:
        inputs = draw(workload, "normal", 1)
        return max(sums_of(lambda: reference.run(inputs)))

    assert len(found) >= FEWEST
    assert max(map(most, found)) == longest
