"""Variable names for values, from the reference's text."""

from __future__ import annotations

import ast
import builtins
import keyword
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from cutegen_lab.core.syntax import parse
from cutegen_lab.templates.frontend.names import RESERVED

_LONGEST = 24  # maximum length of a name


@dataclass(frozen=True)
class Call:
    """A call of an operator. ``lines``: its line in each frame of the reference, outermost first. ``item``: the tuple
    item that it selects, if it is a ``getitem``."""

    name: str
    lines: tuple[int, ...]
    item: int | None = None


def variables(calls: Sequence[Call], source: str) -> dict[str, str]:
    """Names of calls → the variable to which the result is assigned, for calls that have one.

    ``name = …`` names the last call in the statement; ``a, b = …`` names the items of a tuple. If the statement calls
    functions of the reference, its names take precedence over names inside these functions.
    """
    statements = _statements(source)
    places = [[statements.get(line, _Statement(line)) for line in call.lines] for call in calls]
    found = dict[str, str]()
    for call, place, following in zip(calls, places, [*places[1:], []], strict=True):
        for depth, statement in enumerate(place, 1):
            names = statement.names
            if call.item is None and len(names) == 1 and following[:depth] != place[:depth]:
                found.setdefault(call.name, names[0])
            elif call.item is not None and call.item < len(names) > 1:
                found.setdefault(call.name, names[call.item])
    return {name: variable for name, variable in found.items() if is_usable_name(variable)}


def is_usable_name(name: str) -> bool:
    """Whether kernels can use the name: short, ASCII, not private, and defined neither by Python nor by a kernel."""
    taken = keyword.iskeyword(name) or keyword.issoftkeyword(name) or hasattr(builtins, name) or name in RESERVED
    return name.isascii() and name.isidentifier() and not name.startswith("_") and len(name) <= _LONGEST and not taken


@dataclass(frozen=True)
class _Statement:
    """A statement. ``line``: its first line. ``names``: the variables that it assigns (several if it assigns a
    tuple)."""

    line: int
    names: tuple[str, ...] = ()


def _statements(source: str) -> dict[int, _Statement]:
    """The assignment on each line, if the line has no other statement."""
    simple = [node for node in ast.walk(parse(source)) if isinstance(node, ast.stmt) and not hasattr(node, "body")]
    lines = {id(node): range(node.lineno, (node.end_lineno or node.lineno) + 1) for node in simple}
    count = Counter(line for node in simple for line in lines[id(node)])
    found = dict[int, _Statement]()
    for node in simple:
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign) and node.value is not None:
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            statement = _Statement(node.lineno, tuple(_names(target, node.value)))
            found |= {line: statement for line in lines[id(node)] if count[line] == 1}
    return found


def _names(target: ast.expr, value: ast.expr) -> list[str]:
    """Names in ``target``; none if the value is a display or comprehension, whose elements have calls of their own."""
    if isinstance(value, ast.Tuple | ast.List | ast.Dict | ast.ListComp | ast.DictComp | ast.GeneratorExp | ast.Lambda):
        return []
    targets = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
    names = [each.id for each in targets if isinstance(each, ast.Name)]
    return names if len(names) == len(targets) else []
