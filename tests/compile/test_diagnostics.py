"""Errors of the DSL come back with code, candidate line, note and suggestion."""

from __future__ import annotations

import pytest

from cutegen_lab.compile import CageCompiler
from cutegen_lab.core.verdict import Verdict
from tests.compile.conftest import MATRIX, fail_one
from tests.compile.sources import BODY_LINE, kernel_body


@pytest.mark.parametrize(
    ("line", "code", "suggested"),
    [
        ("y[tidx, 0] = cute.maximum(v, 0.0)", "AttributeError", "cute.where"),
        ("y[tidx, 0] = max(v, 0.0)", "INTERNAL", "cute.where"),
        ("y[tidx, 0] = x[tidx, 0] + qq", "DSLUserCodeError", "before"),
        ("w = x[0:3, 0]", "ValueError", "x[row, None]"),
        ("w = v.astype(cutlass.Float32)", "AttributeError", "v.to("),
        ("w = cute.arch.threads_idx()", "AttributeError", "thread_idx"),
        ("w = cute.make_layout((8, 4)).shapes", "AttributeError", "shape"),
    ],
)
def test_an_error_has_its_place_and_its_remedy(compiler: CageCompiler, line: str, code: str, suggested: str) -> None:
    failure = fail_one(compiler, kernel_body(line), MATRIX)
    assert failure.verdict is Verdict.COMPILE_ERROR
    first = failure.diagnostics[0]
    assert (first.severity, first.code, first.line) == ("error", code, BODY_LINE)
    assert suggested in first.suggestion
    assert f">   {BODY_LINE} | " in first.excerpt and line in first.excerpt
    assert "\x1b" not in str(failure)


def test_lint_findings_come_with_the_error(compiler: CageCompiler) -> None:
    failure = fail_one(compiler, kernel_body("y[tidx, 0] = cute.maximun(v.astype(1), 0.0)"), MATRIX)
    codes = {d.code for d in failure.diagnostics if d.severity == "warning"}
    assert codes == {"L01-unknown-name", "L10-no-method"}


def test_an_error_that_is_told_at_another_line_is_explained(compiler: CageCompiler) -> None:
    """The DSL names the line of the launch; the mistake is in the kernel."""
    failure = fail_one(compiler, kernel_body("y[tidx, 0 if tidx > 3 else 1] = x[tidx, 0]"), MATRIX)
    error = next(d for d in failure.diagnostics if d.severity == "error")
    assert error.code == "TypeError" and "Choose the index on a line before" in error.suggestion
    places = {d.line for d in failure.diagnostics if d.code == "L14-chosen-index"}
    assert error.line != BODY_LINE and places == {BODY_LINE}
