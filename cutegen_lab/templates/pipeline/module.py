"""Joins the modules of several steps: their kernels, shared definitions once, and one ``launch`` that calls theirs."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from cutegen_lab.core.syntax import parse
from cutegen_lab.templates.emit.bundle import definitions as emit_definitions

_ENTRIES = ("launch", "constraints", "workspace")
_ONCE = ("TUNABLE", "OVERLAP")  # names that the pipeline's module defines itself


@dataclass(frozen=True)
class Module:
    """Parsed text of one step's module. ``step``: the step's name, which prefixes definitions that clash."""

    step: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return parse(self.text)

    @cached_property
    def imports(self) -> list[str]:
        return [ast.unparse(node) for node in self.tree.body if isinstance(node, ast.Import | ast.ImportFrom)]

    @cached_property
    def definitions(self) -> dict[str, str]:
        """Text of each top-level name, including the entries and TUNABLE."""
        return emit_definitions(self.text)

    def function(self, name: str) -> ast.FunctionDef | None:
        return next((n for n in self.tree.body if isinstance(n, ast.FunctionDef) and n.name == name), None)

    def reads_workload(self, entry: str) -> bool:
        """Whether ``entry`` reads its workload."""
        function = self.function(entry)
        return function is not None and any(
            isinstance(node, ast.Name) and node.id == "workload" for node in ast.walk(function)
        )

    @property
    def parameters(self) -> list[str]:
        """Parameters of its ``launch``."""
        launch = self.function("launch")
        assert launch is not None, "every module has a launch"
        return [argument.arg for argument in launch.args.args]

    def workspace(self, tensors: int) -> list[str]:
        """Names of the workspace tensors among the parameters of ``launch``. ``tensors``: number of inputs and outputs,
        which come first."""
        return self.parameters[tensors : self.parameters.index("stream")]


def imports(modules: Sequence[Module]) -> list[str]:
    """Imports of all modules, without duplicates."""
    return list(dict.fromkeys(line for module in modules for line in module.imports))


def definitions(modules: Sequence[Module], taken: Collection[str]) -> list[str]:
    """Functions and constants of all modules. Equal definitions appear once, under their own name. Names whose
    definitions differ between modules, and names in ``taken``, get the step's name as prefix."""
    clashing = _clashing(modules, taken)
    written: dict[str, None] = {}
    for module in modules:
        mine = {name: f"{module.step}_{name}" for name in module.definitions if name in clashing or name in _ENTRIES}
        for name, text in module.definitions.items():
            if name not in _ONCE:
                written[renamed(text, mine)] = None
    return list(written)


def _clashing(modules: Sequence[Module], taken: Collection[str]) -> set[str]:
    """Names that are ``taken``, or whose definitions differ between modules, directly or in what they use."""
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
    return {node.id for node in ast.walk(parse(text)) if isinstance(node, ast.Name)}


def renamed(text: str, names: Mapping[str, str]) -> str:
    """``text`` with names replaced, but not attributes and keywords."""
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
