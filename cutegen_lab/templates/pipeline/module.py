"""Several modules as one: their kernels side by side, what they share once, one ``launch`` that calls theirs."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from cutegen_lab.templates.emit.bundle import definitions as emit_definitions

_STARTS, _WAITS = "cute.arch.griddepcontrol_launch_dependents()", "cute.arch.griddepcontrol_wait()"
_ENTRIES = ("launch", "constraints", "workspace")


@dataclass(frozen=True)
class Module:
    """One step's text, taken apart. ``step`` is its name, which goes before whatever is its own."""

    step: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @cached_property
    def imports(self) -> list[str]:
        return [ast.unparse(node) for node in self.tree.body if isinstance(node, ast.Import | ast.ImportFrom)]

    @cached_property
    def definitions(self) -> dict[str, str]:
        """The text of each top-level name, the entries and TUNABLE too."""
        return emit_definitions(self.text)

    def function(self, name: str) -> ast.FunctionDef | None:
        return next((n for n in self.tree.body if isinstance(n, ast.FunctionDef) and n.name == name), None)

    def asks(self, entry: str) -> bool:
        """Does ``entry`` look at its workload?"""
        function = self.function(entry)
        return function is not None and any(
            isinstance(node, ast.Name) and node.id == "workload" for node in ast.walk(function)
        )

    @property
    def parameters(self) -> list[str]:
        """Of its ``launch``."""
        launch = self.function("launch")
        assert launch is not None, "every module has a launch"
        return [argument.arg for argument in launch.args.args]

    def workspace(self, tensors: int) -> list[str]:
        """Names of the workspace that it declares; ``tensors`` are its inputs and outputs."""
        return self.parameters[tensors : self.parameters.index("stream")]


def imports(modules: Sequence[Module]) -> list[str]:
    """Every step's, once each."""
    return list(dict.fromkeys(line for module in modules for line in module.imports))


def definitions(modules: Sequence[Module], taken: Collection[str]) -> list[str]:
    """Every step's functions and constants: what is the same in all that have it once, under its own name, the rest
    behind the step's, as are names that are ``taken``."""
    clashing = _clashing(modules, taken)
    written: dict[str, None] = {}
    for module in modules:
        mine = {name: f"{module.step}_{name}" for name in module.definitions if name in clashing or name in _ENTRIES}
        for name, text in module.definitions.items():
            if name != "TUNABLE":
                written[renamed(text, mine)] = None
    return list(written)


def _clashing(modules: Sequence[Module], taken: Collection[str]) -> set[str]:
    """Names that are taken or differ between modules, by their own texts or by what those use."""
    texts: dict[str, set[str]] = {}
    for module in modules:
        for name, text in module.definitions.items():
            texts.setdefault(name, set()).add(text)
    clashing = {name for name, found in texts.items() if len(found) > 1 or name in taken}
    shared = {name for name in texts if sum(name in module.definitions for module in modules) > 1}
    while True:
        more = {n for n in shared - clashing if any(_uses(text) & clashing for text in texts[n])}
        if not more:
            return clashing
        clashing |= more


def _uses(text: str) -> set[str]:
    return {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}


def renamed(text: str, names: Mapping[str, str]) -> str:
    """``text`` with names replaced where they stand for themselves: not as attributes, not as keywords."""
    before, lines = text.splitlines(), text.splitlines()
    tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    for last, token, following in zip([None, *tokens], tokens, [*tokens[1:], None], strict=False):
        if token.type != tokenize.NAME or token.string not in names or (last and last.string == "."):
            continue
        if last and last.string in ("(", ",") and following and following.string == "=":
            continue
        row, column = token.start[0] - 1, token.start[1]
        at = column + len(lines[row]) - len(before[row])
        lines[row] = lines[row][:at] + names[token.string] + lines[row][at + len(token.string) :]
    return "\n".join(lines)


def overlapped(text: str) -> str:
    """``text`` with kernels that start while the one before them ends, and wait for it before they touch memory.

    What is left between two kernels is not a launch then. A kernel that says so itself keeps its own place for it.
    """
    lines = text.splitlines()
    added: list[tuple[int, int, str]] = []  # (row, column, what goes there)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef) and "cute.kernel" in map(ast.unparse, node.decorator_list):
            said = ast.unparse(node)
            row = node.body[1 if ast.get_docstring(node) else 0].lineno - 1
            if calls := [call for call in (_STARTS, _WAITS) if call not in said]:
                head = "    if cutlass.const_expr(overlapping()):\n"
                added.append((row, 0, head + "".join(f"        {call}\n" for call in calls)))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "launch":
            last = node.keywords[-1].value
            if all(keyword.arg != "use_pdl" for keyword in node.keywords):
                row, column = (last.end_lineno or 0) - 1, last.end_col_offset or 0
                added.append((row, column, ", use_pdl=overlapping()"))
    for row, column, more in sorted(added, reverse=True):
        lines[row] = lines[row][:column] + more + lines[row][column:]
    return "\n".join(lines) + "\n"
