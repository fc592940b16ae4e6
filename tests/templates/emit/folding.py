"""Tiny modules for tests of folds: traced with a stand-in for the DSL, so that nothing is compiled."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from cutegen_lab.templates.emit.observe import REPORT, Probe
from cutegen_lab.templates.emit.specialise import specialise

HEAD = "import math\n\nimport cutlass\nimport cutlass.cute as cute\n\n"


def module(body: str, parameters: str = "", tunable: str = "{}") -> str:
    """A module whose ``launch(x, note, stream, …)`` has ``body``; ``note`` takes what a kernel would compute."""
    lines = "\n".join(f"    {line}" for line in body.strip("\n").splitlines())
    return f"{HEAD}TUNABLE = {tunable}\n\n\n@cute.jit\ndef launch(x, note, stream{parameters}):\n{lines}\n"


def folded(source: str, *sizes: int, rules: bool = False, **config: Any) -> str:
    """The text for ``config``, observed on an ``x`` of each size."""
    probe, first = Probe(source), 0
    while first < len(probe):
        first = probe.read([_report(probe.text(first), size, config) for size in sizes or (8,)], first)
    text = specialise(probe, config, rules=rules)
    for size in sizes or (8,):  # it computes what the module does
        assert noted(text, size, {}) == noted(source, size, config), text
    return text


def noted(source: str, size: int, config: dict[str, Any]) -> list[Any]:
    """What ``launch`` notes."""
    found: list[Any] = []
    try:
        _namespace(source)["launch"](SimpleNamespace(shape=(size,)), lambda *values: found.append(values), 0, **config)
    except Exception as error:
        if type(error).__name__ != REPORT:
            raise
    return found


def _report(source: str, size: int, config: dict[str, Any]) -> str:
    try:
        _namespace(source)["launch"](SimpleNamespace(shape=(size,)), lambda *values: None, 0, **config)
    except Exception as error:
        if type(error).__name__ == REPORT:
            return str(error)
        raise
    raise AssertionError("no report")


def _namespace(source: str) -> dict[str, Any]:
    cutlass = SimpleNamespace(
        const_expr=lambda value: value, range=lambda *args, unroll=1: range(*args), range_constexpr=range,
        Constexpr=int, min=min, max=max,
    )  # fmt: skip
    arch = SimpleNamespace(thread_idx=lambda: (3, 0, 0))
    cute = SimpleNamespace(
        arch=arch, jit=lambda f: f, kernel=lambda f: f, ceil_div=lambda a, b: -(-a // b), Tensor=object
    )
    lines = [line for line in source.splitlines() if not line.startswith("import cutlass")]
    namespace: dict[str, Any] = {"cutlass": cutlass, "cute": cute}
    exec("\n".join(lines), namespace)  # noqa: S102 - the tests' own text
    return namespace


def launch_of(text: str) -> list[str]:
    """The lines of ``launch`` below its ``def``."""
    return text.partition("def launch(")[2].splitlines()[1:]
