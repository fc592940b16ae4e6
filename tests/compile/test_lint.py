"""Each rule finds its habit, and sound kernels are clean."""

from __future__ import annotations

import pytest

from cutegen_lab.compile.lint import lint
from tests.compile.sources import BODY_LINE, CLUSTER, COLUMN_SUM, SCALE, TMA, kernel_body


@pytest.mark.parametrize("source", [SCALE, COLUMN_SUM, CLUSTER, TMA])
def test_sound_kernels_are_clean(source: str) -> None:
    assert lint(source) == []


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("if tidx > 3: return", "L02"),
        ("w = x[0:4, 0]", "L03"),
        ("w = x[..., 0]", "L03"),
        ("w = x[tidx, -1]", "L04"),
        ("w = x[tidx / 2, 0]", "L05"),
        ("w = sum(v)", "L06"),
        ("w = v.reduce(cute.ReductionOp.ADD, 0.0)", "L09"),
        ("w = v.astype(cutlass.Float32)", "L10"),
        ("w = cute.make_tensor(x.iterator + tidx, cute.make_layout(4))", "L11"),
        ("w = math.exp(v)", "L12"),
        ("y[tidx, 0 if tidx > 3 else 1] = x[tidx, 0]", "L14"),
        ("y[tidx, 2 * (0 if tidx > 3 else 1)] = x[tidx, 0]", "L14"),
    ],
)
def test_a_habit_is_found_at_its_line(line: str, rule: str) -> None:
    found = lint(kernel_body(line))
    assert [(d.code[:3], d.line, d.severity) for d in found] == [(rule, BODY_LINE, "warning")]
    assert found[0].suggestion


@pytest.mark.parametrize(
    "line",
    [
        "w = x[tidx, 0 if tidx > 3 else 1]",
        "y[tidx, 0 if tidx > 3 else 1] += 1.0",
        "y[tidx, 0] = 1.0 if tidx > 3 else v[0]",
    ],
)
def test_a_conditional_expression_elsewhere_is_sound(line: str) -> None:
    assert lint(kernel_body(line)) == []


@pytest.mark.parametrize(
    ("argument", "warned"),
    [
        ("min(40, k / 4) * k", False),
        ("float(-k) ** 2 + math.pi", False),
        ("math.log2(k)", False),
        ("n", True),
        ("k * n", True),
        ("min(k, n)", True),
        ("round(k, ndigits=n)", True),
    ],
)
def test_math_of_what_is_known_while_tracing_is_sound(argument: str, warned: bool) -> None:
    head = "@cute.jit\ndef scale(n: cutlass.Int32, k: cutlass.Constexpr):\n"
    body = f"    return n * (1.0 / math.sqrt({argument}))\n"
    assert {d.code for d in lint(SCALE + head + body)} == ({"L12-python-math"} if warned else set())
    assert {d.code for d in lint(SCALE + head + f"    k = n\n{body}")} == {"L12-python-math"}


@pytest.mark.parametrize(
    ("before", "argument", "warned"),
    [
        ("batch, heads, queries, d = q.shape", "d", False),
        ("d = q.shape[3]", "d", False),
        ("b, d = q.shape[0], q.shape[1]", "b * d", False),
        ("(b, *rest), d = q.shape, k", "d + rest[0]", False),
        ("b: int = 4", "b", False),
        ("width = max(q.shape[3], k)\n    half = width // 2", "half", False),
        ("d = 2\n    d = q.shape[1]", "d", False),
        ("pass", "q.shape[3] * k", False),
        ("d = q[0, 0]", "d", True),
        ("d = q.shape[3]\n    d = q[0, 0]", "d", True),
        ("d = q.shape[3]\n    d += n", "d", True),
        ("b, d = q.shape[0], n", "b + d", True),
        ("d = n\n    e = d * 2", "e", True),
        ("n = 4", "n", True),
        ("for d in range(n):\n        pass", "n", True),
        ("for d in range(4):\n        e = d\n        z = 1.0 / math.sqrt(e)", "k", True),
    ],
)
@pytest.mark.parametrize("decorator", ["jit", "kernel"])
def test_math_of_shapes_and_of_what_is_computed_from_them_is_sound(
    before: str, argument: str, warned: bool, decorator: str
) -> None:
    head = f"@cute.{decorator}\ndef scale(q: cute.Tensor, n: cutlass.Int32, k: cutlass.Constexpr[int]):\n"
    found = {d.code for d in lint(f"{SCALE}{head}    {before}\n    x = 1.0 / math.sqrt({argument})\n")}
    assert found == ({"L12-python-math"} if warned else set())


def test_a_name_born_in_a_branch_and_used_after_it() -> None:
    source = kernel_body("if tidx > 3:\n        w = x[tidx, 0]\n    y[tidx, 0] = w")
    assert [(d.code, d.line) for d in lint(source)] == [("L13-born-in-region", BODY_LINE + 2)]
    before = kernel_body("w = x[0, 0]\n    if tidx > 3:\n        w = x[tidx, 0]\n    y[tidx, 0] = w")
    assert lint(before) == []
    unrolled = kernel_body("if cutlass.const_expr(True):\n        w = x[tidx, 0]\n    y[tidx, 0] = w")
    assert lint(unrolled) == []


def test_launch_without_block_and_oversized_blocks() -> None:
    assert [d.code for d in lint(SCALE.replace("block=[threads, 1, 1], ", ""))] == ["L07-launch"]
    assert [d.code for d in lint(SCALE.replace("block=[threads, 1, 1]", "block=[64, 32, 1]"))] == ["L08-block"]


def test_unknown_names_get_the_nearest_real_ones() -> None:
    def missing(names: list[str]) -> dict[str, list[str]]:
        return {n: ["thread_idx", "block_idx"] for n in names if n.endswith("threads_idx")}

    (found,) = lint(kernel_body("w = cute.arch.threads_idx()"), missing)
    assert (found.code, found.line) == ("L01-unknown-name", BODY_LINE)
    assert "thread_idx" in found.suggestion and "cutlass.cute.arch.threads_idx" in found.message


@pytest.mark.slow
@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "part", ["@cute.jit\ndef f{0}():\n    a{0} = 1\n", "    if a > {0}:\n        b{0} = 1\n", "    x = a.f(b).g(c)\n"]
)
def test_long_texts_are_read_in_linear_time(part: str) -> None:
    assert (
        lint(
            SCALE + "@cute.jit\ndef g(a):\n" + "".join(part.format(n) for n in range(15_000)).join(["    b = 1\n", ""])
        )
        == []
    )


@pytest.mark.parametrize(
    "body", ["x = a" + ".b" * 400, "x = a" + ".b(1)" * 200, "x = " + " + ".join("a" * 400),
             "if a: x = 1\n" + "".join(f"    elif a > {n}: x = 1\n" for n in range(400))],
)  # fmt: skip
def test_deep_texts_are_read(body: str) -> None:
    assert lint(SCALE + f"@cute.jit\ndef g(a):\n    {body}\n") == []


def test_few_names_are_asked_of_the_cage() -> None:
    """A text may use any number of them, and each that is missing brings a list."""
    asked: list[str] = []

    def missing(names: list[str]) -> dict[str, list[str]]:
        asked.extend(names)
        return {name: ["thread_idx"] for name in names}

    found = lint(SCALE + "".join(f"x = cute.name_{n}\n" for n in range(5000)), missing)
    assert len(asked) == 500 and len(found) == 20
