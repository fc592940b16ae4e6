"""Generated kernels call values as the reference does."""

from __future__ import annotations

import ast
import builtins
import keyword
import re
from collections import Counter
from dataclasses import dataclass

import pytest

from cutegen_lab.core.problem import Problem
from cutegen_lab.session.specialised import specialised
from cutegen_lab.templates.emit.bundle import names_of_kernels
from cutegen_lab.templates.frontend.variables import Call, is_usable_name, variables
from cutegen_lab.templates.recognise import template_for
from tests.harness.checking import ARCH, Compiler, passed, problem_of

KERNELS = names_of_kernels()


def _body(lines: str) -> str:
    return "def reference(x):\n" + "".join(f"    {line}\n" for line in lines.splitlines())


@pytest.mark.parametrize(
    ("body", "lines", "named"),
    [
        ("y = x * 2 + 1", [2, 2], {"1": "y"}),
        ("y = (x * 2\n  + 1)\nz = y", [2, 3], {"1": "y"}),
        ("y: object = x + 1\ny *= 2\ny.z = y + 1", [2, 3, 4], {"0": "y", "1": "y"}),
        ("a = b = x * 2", [2], {"0": "a"}),
        ("a, b = x + 1, x * 2\nc = [x, x + 1]\nd = {0: x}", [2, 2, 3, 4], {}),
        ("for i in range(2):\n    y = x * 2\n    z = y + 1", [3, 4, 3, 4], {"0": "y", "1": "z", "2": "y", "3": "z"}),
        ("if x > 0:\n    y = x * 2", [2, 3], {"1": "y"}),
        ("return x * 2", [2], {}),
        ("y = x * 2; return y + 1", [2, 2], {}),
    ],
)
def test_a_statements_last_call_has_its_variable(body: str, lines: list[int], named: dict[str, str]) -> None:
    calls = [Call(str(number), (line,)) for number, line in enumerate(lines)]
    assert variables(calls, _body(body)) == named


def test_items_of_a_tuple_have_their_own() -> None:
    calls = [Call("split", (2,)), Call("first", (2,), 0), Call("last", (2,), 2)]
    assert variables(calls, _body("q, k, v = x.chunk(3)")) == {"first": "q", "last": "v"}
    assert variables(calls, _body("parts = x.chunk(3)")) == {}
    assert variables(calls, _body("q, *rest = x.chunk(3)")) == {}


def test_the_outer_statement_names_what_an_inner_one_ends_with() -> None:
    text = "def forward(t):\n    inner = t * 2\n    result = inner + 1\n    return result\n\n"
    text += "y = forward(x)\nz = forward(y)\n"
    calls = [Call(str(number), lines) for number, lines in enumerate([(6, 2), (6, 3), (7, 2), (7, 3)])]
    assert variables(calls, text) == {"0": "inner", "1": "y", "2": "inner", "3": "z"}


def test_what_kernels_cannot_use_is_no_name() -> None:
    refused = [
        "cute",
        "cutlass",
        "stream",
        "print",
        "sum",
        "match",
        "lambda",
        "_",
        "_x",
        "__class__",
        "σ",
        "ﬁ",
        "x" * 25,
    ]
    assert [name for name in [*refused, "x", "row_2", "tidx", "Scores"] if is_usable_name(name)] == [
        "x",
        "row_2",
        "tidx",
        "Scores",
    ]


@dataclass(frozen=True)
class Case:
    """A reference's text, its inputs, and names that its kernels have."""

    body: str
    inputs: str
    names: str

    @property
    def problem(self) -> Problem:
        arguments = ", ".join(re.findall(r"(\w+):", self.inputs))
        return problem_of(f"def reference({arguments}):\n{self.body}", self.inputs)


CASES = {
    "softmax": Case(
        """
    row_max = x.amax(-1, keepdim=True)
    weights = torch.exp(x - row_max)
    normaliser = weights.sum(-1, keepdim=True)
    return weights / normaliser
""", "x: bf16[64,1024]", "row_max weights normaliser"),
    "RMSNorm": Case(
        """
    h = x.float()
    mean_of_squares = h.pow(2).mean(-1, keepdim=True)
    scaled_rows = h * torch.rsqrt(mean_of_squares + 1e-6)
    return scaled_rows.to(x.dtype) * w
""", "x: bf16[64,1024], w: bf16[1024]", "mean_of_squares scaled_rows"),
    "gemm": Case(
        """
    y = x @ w + b
    inner = 0.7978845608 * (y + 0.044715 * y ** 3)
    gate = torch.tanh(inner)
    y = 0.5 * y * (1 + gate)
    return y
""", "x: bf16[128,256], w: bf16[256,128], b: bf16[128]", "y inner gate y_2"),
    "parts": Case(
        """
    gate, up = x.chunk(2, -1)
    act = F.silu(gate)
    return act * up + act
""", "x: f32[64,512]", "x_gate x_up act"),
    "several kernels": Case(
        """
    hidden = F.gelu(F.linear(x, w))
    return F.linear(hidden, v)
""", "x: bf16[64,128], w: bf16[256,128], v: bf16[128,256]", "hidden"),
    "scan": Case("\n    sums = torch.cumsum(x, -1)\n    return sums * 2\n", "x: f32[6,96]", "sums"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_kernels_have_the_references_names(name: str) -> None:
    case = CASES[name]
    template = template_for(case.problem, ARCH)
    tree = ast.parse(template.write(template.default_config()))
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    assert set(case.names.split()) <= names | {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}


HOSTILE = {
    "rows": Case(
        """
    cute = x * 3 + 1
    tidx = torch.abs(cute) * cute
    row = tidx * 0.5 - tidx.amax(-1, keepdim=True)
    Float32 = row * 0.5 + tidx
    n = Float32.sum(-1, keepdim=True)
    plus = torch.abs(Float32 * n) + row
    σ = plus * plus + row
    x = σ + torch.abs(σ)
    x = torch.relu(x) * x
    x = torch.abs(x) + x
    finish = torch.abs(x) * 2 + x
    match = torch.relu(finish) * finish
    launch = torch.where(match > 0, match, x)
    return launch * torch.abs(launch)
""", "x: f32[6,96]", ""),
    "elementwise": Case(
        """
    body, width = x.chunk(2, -1)
    vectors = torch.abs(body) * width
    gX = vectors + body
    x_body = gX * torch.abs(gX)
    choose = torch.where(x_body > 0, x_body, gX)
    math = choose * torch.exp(choose)
    return math + x_body
""", "x: f32[64,512]", ""),
    "columns": Case(
        """
    larger = torch.exp(x - x.amax(0, keepdim=True))
    buffer = larger * torch.abs(larger)
    total = buffer.sum(0, keepdim=True)
    return buffer / total
""", "x: f32[40,64]", ""),
    "gemm": Case(
        """
    acc = x @ w + b
    epilogue = torch.relu(acc) * acc
    sizes = epilogue + torch.sigmoid(epilogue)
    sigmoid = sizes * torch.sigmoid(sizes)
    return sigmoid * sizes
""", "x: bf16[64,96], w: bf16[96,64], b: bf16[64]", ""),
    "several kernels": Case(
        """
    X = torch.relu(x @ w)
    gemm1_tile_m = X @ w
    return gemm1_tile_m @ w
""", "x: bf16[64,64], w: bf16[64,64]", ""),
}  # fmt: skip


@pytest.mark.kernel
@pytest.mark.parametrize("name", HOSTILE)
def test_names_never_hide_others(name: str, compiler: Compiler) -> None:
    problem = HOSTILE[name].problem
    template = template_for(problem, ARCH)
    text = template.write(template.default_config())
    for function in _generated(text):
        bound = Counter(node.id for node in ast.walk(function) if isinstance(node, ast.Name) and _is_bound(node))
        assert not {each for each in bound if each in KERNELS or keyword.iskeyword(each) or hasattr(builtins, each)}
        assert not [each for each, count in bound.items() if count > 1], "a value has the name of another"
    passed(compiler, problem, text)
    if name in ("rows", "elementwise"):  # written for one config, where functions are put into each other
        written = specialised(compiler, problem, text, template.default_config(), ARCH)
        assert not written.note and written.folded is not None


def _generated(text: str) -> list[ast.FunctionDef]:
    """Functions of values: those that no kernel file has, and those that stand for what one has."""
    found = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    values = re.compile(r"(gemm\d_)?(before_)?(terms_\d|finish|row_results|body|epilogue|combine|before|after)$")
    return [node for node in found if values.match(node.name)]


def _is_bound(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store)
