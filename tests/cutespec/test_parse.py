"""The grammar: what is read, and that whatever is not gives a line and a column."""

from __future__ import annotations

import random

import pytest

from cutegen_lab.core.dtypes import DType
from cutegen_lab.core.errors import SpecError
from cutegen_lab.cutespec import GRAMMAR, parse
from cutegen_lab.cutespec.form import Apply, Name, Number
from cutegen_lab.cutespec.functions import FUNCTIONS
from cutegen_lab.cutespec.reference import reference

LINEAR = """\
# a linear layer
kernel linear_gelu for sm_90a

in  x: bf16[M, K]
in  w: bf16[N, K]:(1, 64)    # columns first
in  b: bf16[N]
y0 = x @ w.T + b
out y: bf16[M, N] = gelu(y0, approximate="tanh")
size M=4096, N=128, K=64
size M=300, N=72, K=8
tile 128 x 256x64
cluster 2x1
schedule pingpong
with group=8, raster=n
"""


def test_a_whole_spec() -> None:
    spec = parse(LINEAR)
    assert (spec.name, spec.arch) == ("linear_gelu", "sm_90a")
    x, w, b = spec.inputs
    assert (x.dtype, x.dims, x.strides) == (DType.BF16, ("M", "K"), ())
    assert (w.strides, w.place.line, b.dims) == ((1, 64), 5, ("N",))
    (step,) = spec.steps
    assert [(v.kind, v.name) for v in step.values] == [("let", "y0"), ("out", "y")]
    assert [(o.name, o.values) for o in step.options] == [
        ("tile", (128, 256, 64)), ("cluster", (2, 1)), ("schedule", ("pingpong",)), ("group", (8,)), ("raster", ("n",)),
    ]  # fmt: skip
    assert spec.sizes == ({"M": 4096, "N": 128, "K": 64}, {"M": 300, "N": 72, "K": 8})


def test_the_grammar_is_short_and_its_own_examples_are_read() -> None:
    text = GRAMMAR.read_text()
    assert len(text.splitlines()) <= 120
    comments = [line.removeprefix("//").removeprefix(" ") for line in text.splitlines() if line.startswith("//")]
    examples = "\n".join(line.strip() if line.startswith("    ") else "" for line in comments).strip()
    first, second = examples.split("kernel ")[1:]
    assert len(parse(f"kernel {first}").sizes) == 2
    assert [s.name for s in parse(f"kernel {second}").steps] == ["norm", "product"]


@pytest.mark.parametrize(
    ("text", "means"),
    [
        ("a + b * c", "(a + (b * c))"),
        ("a - b - c", "((a - b) - c)"),
        ("-a ** 2", "(-(a ** 2))"),
        ("a ** -b", "(a ** (-b))"),
        ("a * b < c + 1", "((a * b) < (c + 1))"),
        ("a / (b - 2.5e-1)", "(a / (b - 0.25))"),
        ("a @ b.T.T", "(a @ b.mT.mT)"),
        ("where(a > 0, a, b)", "torch.where((a > 0), a, b)"),
        ("sum(a, dim=[0, -1], keepdim=true)", "torch.sum(a, dim=[0, -1], keepdim=True)"),
        ("clamp(a, min=-1, max=.5)", "torch.clamp(a, min=-1, max=0.5)"),
        ('gelu(a, approximate="none")', "F.gelu(a, approximate='none')"),
        ("rms_norm(a, b, eps=1e-6)", "F.rms_norm(a, a.shape[-1:], b, eps=1e-06)"),
    ],
)
def test_expressions_bind_as_in_python(text: str, means: str) -> None:
    source, _ = reference(
        parse(f"kernel k\nin a: f32[4, 4]\nin b: f32[4, 4]\nin c: f32[4, 4]\ny = {text}\nout z: f32 = y\n")
    )
    assert f"    y = {means}\n" in source


def test_places_are_those_of_the_text() -> None:
    spec = parse("kernel k\nin x: f32[4]\nout y: f32 = exp(  x + 2)\n")
    expr = spec.outputs[0].expr
    assert isinstance(expr, Apply) and (expr.place.line, expr.place.column) == (3, 14)
    (add,) = expr.arguments
    assert isinstance(add, Apply) and add.place.column == 20
    left, right = add.arguments
    assert isinstance(left, Name) and isinstance(right, Number) and right.place.column == 24


@pytest.mark.parametrize(
    ("text", "line", "column", "says"),
    [
        ("", 1, 1, "'kernel'"),
        ("kernel", 1, 7, "a name"),
        ("kernel k in tf33", 1, 10, "in tf32"),
        ("kernl k", 1, 1, "Did you mean 'kernel'?"),
        ("kernel k\nim x: f32[4]", 2, 4, "Did you mean 'in'? A line begins with one of kernel, in, out,"),
        ("kernel k\nin x: f32[4]\nt = x 5.\nout y: f32 = t", 3, 7, "'5.' does not fit here. Expected '!="),
        ("kernel k\nin x: float[4]", 2, 7, "a dtype"),
        ("kernel k\nin x: f32[4", 2, 12, "']'"),
        ("kernel k\nin x f32[4]", 2, 6, "`in x` lacks ':'. Write it as `in NAME: DTYPE[SIZES]`."),
        ("kernel k\nin x: f32[4] 5", 2, 14, "'5' does not fit here. Expected ':', the end"),
        ("kernel k\nin x: f32[4]\nout y", 3, 6, "`out y` lacks ':' and '='. Write it as `out NAME: DTYPE[SIZES] ="),
        ("kernel k\nin x: f32[4]\nout y exp(x)", 3, 7, "`out y` lacks ':' and '='"),
        ("kernel k\nin x: f32[4]\nout y = exp(x)", 3, 7, "`out y` lacks ':'. Write it as"),
        ("kernel k\nin x: f32[4]\nout y: f32 sum(x, dim=0)", 3, 12, "`out y` lacks '='. Write it as"),
        ("kernel k\nin x: f32[4]\ntmp h: f32", 3, 11, "`tmp h` lacks '='. Write it as `tmp NAME: DTYPE = EXPRESSION`."),
        ("kernel k\nin x: f32[4]\nout y  # = x", 3, 13, "`out y` lacks ':' and '='"),
        ("kernel k\nin x: f32[4]\nout y: f32 = exp(x))", 3, 20, "')' does not fit"),
        ("kernel k\nin x: f32[4]\nout y: f32 = x $ 2", 3, 16, "'$' is not allowed in a statement"),
        ("kernel k\ntile 128x64\n", 2, 1, "before the outputs it applies to"),
        ("kernel k\nin x: f32[4]\nsize M=0", 3, 8, "a size of 0"),
        ("kernel k\nin x: f32[4]\nsize M=4, M=5", 3, 11, "given twice"),
        ("kernel k\nin x: f32[M]\nout y: f32 = exp(x)\nsize M=4, Q=5", 4, 11, "size Q is given, but no tensor has it"),
        (f"kernel k\nin x: f32[4]\nout y: f32 = {'-' * 80}x", 3, 79, "more than 64 deep"),
        (f"kernel k\nin x: f32[{'9' * 5000}]", 2, 11, "5000 digits"),
        ("kernel k\nin x: f32[4]\nout y: f32 = x * 1e999", 3, 18, "fp64"),
        ("kernel k\nin x: f32[4]\nout y: f32 = sum(x, dim=0, dim=1)", 3, 28, "dim is given twice"),
        ("kernel k\nin x: f32[4]\nout y: f32 = sum(dim=0, x)", 3, 25, "without a name after"),
        ("x" * 30_000, 1, 1, "30,000 characters"),
    ],
)
def test_what_is_wrong_is_placed(text: str, line: int, column: int, says: str) -> None:
    with pytest.raises(SpecError) as error:
        parse(text)
    assert (error.value.line, error.value.column) == (line, column), error.value
    assert says in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("statements", "says"),
    [
        ("out y: f32 = exp(x, dim=9) * xx", "line 3, column 14: exp has no keyword 'dim'"),
        ("xval = x * 2\nout y: f32 = exp(xvla)", "xvla is not defined here. Did you mean 'xval'? So far there are: "),
        ("out y: f32 = sofmax(x, dim=-1)", "line 3, column 14: there is no function 'sofmax'. Did you mean 'softmax'?"),
        ("out y: f32 = swish(x)", "there is no function 'swish'. Did you mean 'silu'?"),
        ("out y: f32 = hsigmoid(x)", "there is no function 'hsigmoid'. Did you mean 'hardsigmoid'?"),
        ("out y: f32 = softmax(x)", "softmax needs dim=…"),
        ("out y: f32 = exp(x, x)", "exp takes 1 tensors, not 2"),
        ("out y: f32 = exp(x, dim=1)", "exp has no keyword 'dim'"),
        ("out y: f32 = softmax(x, dim=true)", "softmax's dim is True. It must be a whole number."),
        ("out y: f32 = z", "z is not defined here. So far there are: x."),
        ("out x: f32 = exp(x)", "x is defined twice. It is defined first at line 2."),
        ("lambda = x\nout y: f32 = lambda", "'lambda' cannot be a name"),
        ("y = x", "the kernel has no result"),
        ("out y: f32 = 2", "line 3, column 14: y is a number, not a tensor"),
        ("out y: f32 = x * exp(2)", "line 3, column 18: exp takes tensors, but argument 1 is the number 2"),
        ("c = 2\nout y: f32 = maximum(x, c)", "argument 2 is the number 2. Write clamp(x, min=…)."),
        ("out y: f32 = x * (1 / 0)", "line 3, column 19: divide of 1 and 0: float division by zero"),
        ("out y: f32 = x * (0 - 8) ** 0.5", "power of -8 and 0.5 cannot be represented in fp64"),
        ("out y: f32 = x * 9 ** 9 ** 9", "power of 9 and 3.8742e+08: Numerical result out of range"),
    ],
)
def test_meaningless_expressions_are_named(statements: str, says: str) -> None:
    with pytest.raises(SpecError, match="line ") as error:
        reference(parse(f"kernel k\nin x: f32[4]\n{statements}\n"))
    assert says in str(error.value)


def mangled(rng: random.Random) -> str:
    """A sound spec with a few pieces deleted, doubled, swapped or replaced by others, or by any character."""
    words = [*FUNCTIONS, *["in", "out", "tmp", "size", "with", "step", "bf16", "[", "]", "(", ")", "=", ",", ":", "@"]]
    text = LINEAR
    for _ in range(rng.randint(1, 6)):
        at, end = sorted(rng.sample(range(len(text) + 1), 2))
        end = min(end, at + rng.randint(0, 12))
        new = rng.choice(["", text[at:end] * 2, rng.choice(words), chr(rng.choice([0, 9, 10, 34, 92, 233, 0x1F600])),
                          str(rng.randint(-9, 10**9)), " " * rng.randint(1, 3)])  # fmt: skip
        text = text[:at] + new + text[end:]
    return text


def test_ten_thousand_mangled_texts_give_a_spec_or_a_place() -> None:
    rng, sound = random.Random(7), 0  # noqa: S311 - the same every time
    for _ in range(10_000):
        text = mangled(rng)
        try:
            reference(parse(text))
            sound += 1
        except SpecError as error:
            lines = text.split("\n")
            assert 1 <= error.line <= len(lines) + 1, (text, error)
            assert error.column >= 1 and "\n" not in str(error), (text, error)
    assert 100 < sound < 5000  # the mangling neither breaks all nor nothing
