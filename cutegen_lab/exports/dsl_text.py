"""A kernel's CuTe text and its host code as one module, which needs torch and nvidia-cutlass-dsl."""

from __future__ import annotations

import ast
import pprint
import textwrap
from collections.abc import Sequence

from cutegen_lab.core.syntax import parse
from cutegen_lab.exports.join_modules import joined
from cutegen_lab.exports.shapes import shapes
from cutegen_lab.exports.subject import Subject

_RUNTIME = ("cutegen_lab.exports.carried_shapes", "cutegen_lab.exports.dsl_host")
_FUTURE = "from __future__ import annotations\n"


def dsl_module(subject: Subject, docstring: str, tail: Sequence[str]) -> str:
    """The kernel's text, then ``_kernel()``, which returns the callable kernel, then ``tail``. Added code is inside
    functions, so that its names do not collide with the kernel's."""
    kernel, future = _without_head(subject.source)
    workloads = pprint.pformat([shapes(*each) for each in subject.builds], width=110, compact=True, sort_dicts=False)
    host = (
        f"{joined(_RUNTIME).removeprefix(_FUTURE).strip()}\n\n"
        f"workloads = {workloads}\nreturn Kernel(launch, {dict(subject.config)!r}, workloads)"
    )
    parts = [
        f'"""{docstring}"""',
        *([_FUTURE.strip()] if future else []),
        kernel,
        f"def _kernel():\n{textwrap.indent(host, '    ')}",
        *tail,
    ]
    return "\n\n\n".join(part.strip("\n") for part in parts) + "\n"


def _without_head(source: str) -> tuple[str, bool]:
    """(``source`` without its docstring and ``from __future__``, which must begin a file; whether it had ``from
    __future__``)."""
    lines, statements = source.splitlines(), parse(source).body
    first = statements[0] if statements else None
    docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    gone: list[ast.stmt] = [s for s in statements if isinstance(s, ast.ImportFrom) and s.module == "__future__"]
    for each in [*([first] if docstring and first else []), *gone]:
        end = each.end_lineno or each.lineno
        lines[each.lineno - 1 : end] = [""] * (end - each.lineno + 1)
    return "\n".join(lines), bool(gone)
