"""Finds out which branches a module takes, with probes in its text.

A *site* is a test of an ``if`` or a conditional expression, an argument of a loop's range, a parameter of a top-level
function, or the value of an assignment that calls such a function. While the DSL traces ``launch``, Python evaluates
the sites that do not depend on the GPU. The probed module records their values; once ``launch`` is traced, it raises an
exception whose message holds them. Nothing runs outside the compile cage.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import libcst as cst

from cutegen_lab.core.syntax import expression
from cutegen_lab.templates.emit.hosts import with_launchers_written_out
from cutegen_lab.templates.emit.names import (
    Quick,
    called,
    const_expr_argument,
    functions,
    is_range,
    parameters,
    target_names,
)
from cutegen_lab.templates.emit.records import with_records_open
from cutegen_lab.templates.emit.refusal import CannotSpecialise

REPORT = "CutegenReport"
Value = bool | int | str | tuple["Value", ...] | None
"""Values that a site may have. Others, and values that depend on the GPU, are unknown."""
_UNKNOWN, _UNSEEN = "?", "-"
_TOKEN = re.compile(r"\{[^\n]*?\};|[TFN?\-0-9]")
_NO_CALLS = {"min", "max", "len", "sum", "any", "all", "tuple", "range", "int", "bool"}

_PROBES = """

class {report}(Exception):
    pass


CUTEGEN_SEEN = {{}}


def cutegen_plain(value):
    if type(value) is tuple:
        return all(cutegen_plain(each) for each in value)
    return value is None or type(value) in (bool, int, str)


def cutegen_test(site, value):
    known = type(value) in (list, tuple, dict, str, int) or value is None
    cutegen_seen(site, len(value) > 0 if type(value) in (list, tuple, dict, str) else bool(value) if known else value)
    return value


def cutegen_seen(site, value):
    token = repr(value) if cutegen_plain(value) else "?"
    token = {{"True": "T", "False": "F", "None": "N"}}.get(token, token)
    if len(token) > 1:
        token = "{{" + token + "}};"
    CUTEGEN_SEEN[site] = token if CUTEGEN_SEEN.get(site, token) == token and len(token) < 200 else "?"
    return value


def cutegen_report():
    report = ""
    for site in range({first}, {count}):
        token = CUTEGEN_SEEN.get(site, "-")
        if len(report) + len(token) > 1800:  # longer messages are cut
            break
        report += token
    raise {report}(report)
"""


@dataclass(frozen=True)
class Facts:
    """Facts that hold in every workload. ``tests`` and ``values`` are keyed by the node of the probed tree, ``ranges``
    by the loop, ``arguments`` by function and parameter name. ``unseen``: nodes that no workload executes."""

    tests: Mapping[cst.CSTNode, bool]
    ranges: Mapping[cst.CSTNode, tuple[int, ...]]
    values: Mapping[cst.CSTNode, Value]
    arguments: Mapping[tuple[str, str], Value]
    unseen: frozenset[cst.CSTNode]


@dataclass(frozen=True)
class _Site:
    """``node``: the key of its fact (an argument: the function). ``expression``: the probed expression (None: the
    parameter ``name``)."""

    kind: str  # "test", "range", "value" or "argument"
    node: cst.CSTNode
    expression: cst.BaseExpression | None
    name: str = ""


@lru_cache(maxsize=4)
def _with_records_open(source: str) -> cst.Module:
    """A module's tree with unpacked records. Cached: it takes about a second and all steps of a folding need it."""
    try:
        return with_records_open(with_launchers_written_out(cst.parse_module(source)))
    except cst.ParserSyntaxError as error:
        raise CannotSpecialise(f"the module is not valid Python: {error.message}") from None


class Probe:
    """Probes for the text of a module with unpacked records. Raises CannotSpecialise if ``source`` is not Python."""

    def __init__(self, source: str) -> None:
        self.module = _with_records_open(source)
        self._seen: dict[int, str] = {}

    @cached_property
    def _sites(self) -> list[_Site]:
        found = _Sites(functions(self.module))
        self.module.visit(found)
        return found.sites

    def __len__(self) -> int:
        return len(self._sites)

    def text(self, first: int = 0) -> str:
        """The module with probes that report as many sites as fit, from number ``first`` on."""
        numbers = {id(s.expression): (n, s.kind) for n, s in enumerate(self._sites) if s.expression is not None}
        entries: dict[str, list[int]] = {}
        for number, site in enumerate(self._sites):
            if site.kind == "argument":
                assert isinstance(site.node, cst.FunctionDef)
                entries.setdefault(site.node.name.value, []).append(number)
        names = {number: self._sites[number].name for numbers in entries.values() for number in numbers}
        changed = self.module.visit(_Instrument(numbers, entries, names))
        report = _PROBES.format(report=REPORT, first=first, count=len(self))
        return changed.code.rstrip("\n") + "\n" + report

    def read(self, reports: Sequence[str], first: int = 0) -> int:
        """Adds the reports of all workloads on the sites from ``first`` on. Returns the number of the next site to
        report."""
        tokens = [_TOKEN.findall(report)[: len(self) - first] for report in reports]
        count = min((len(each) for each in tokens), default=0)
        for at in range(count):
            seen = {_checked(each[at]) for each in tokens} - {_UNSEEN} or {_UNSEEN}
            self._seen[first + at] = seen.pop() if len(seen) == 1 else _UNKNOWN
        return first + count

    def facts(self) -> Facts:
        """Facts on which all workloads agree."""
        known = [(site, _value(self._seen[n])) for n, site in enumerate(self._sites) if _is_known(self._seen.get(n))]
        ranges: dict[cst.CSTNode, list[int]] = {}
        for site, value in known:
            if site.kind == "range" and type(value) is int:
                ranges.setdefault(site.node, []).append(value)
        return Facts(
            {site.node: bool(value) for site, value in known if site.kind == "test"},
            {node: tuple(found) for node, found in ranges.items() if len(found) == _arguments(node)},
            {site.node: value for site, value in known if site.kind == "value"},
            {_argument(site): value for site, value in known if site.kind == "argument"},
            frozenset(site.node for n, site in enumerate(self._sites) if self._seen.get(n) == _UNSEEN),
        )


class _Sites(cst.CSTVisitor):
    """Collects the sites inside functions, in text order."""

    def __init__(self, module_functions: Iterable[str]) -> None:
        self.sites: list[_Site] = []
        self._functions, self._depth = frozenset(module_functions), 0

    def visit_ClassDef(self, node: cst.ClassDef) -> None:
        self._depth += 1

    def leave_ClassDef(self, original_node: cst.ClassDef) -> None:
        self._depth -= 1

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        if not self._depth:
            self.sites += [_Site("argument", node, None, name) for name in parameters(node)]
        self._depth += 1

    def leave_FunctionDef(self, original_node: cst.FunctionDef) -> None:
        self._depth -= 1

    def visit_If(self, node: cst.If) -> None:
        self._test(node, node.test)

    def visit_IfExp(self, node: cst.IfExp) -> None:
        self._test(node, node.test)

    def visit_For(self, node: cst.For) -> None:
        if self._depth and is_range(node.iter):
            assert isinstance(node.iter, cst.Call)
            plain = [argument for argument in node.iter.args if argument.keyword is None and not argument.star]
            self.sites += [_Site("range", node, argument.value) for argument in plain]

    def visit_Assign(self, node: cst.Assign) -> None:
        calls = called(node.value)
        computes = calls & self._functions and not calls - _NO_CALLS - self._functions
        if self._depth and target_names(node) and computes:
            self.sites.append(_Site("value", node, node.value))

    def _test(self, node: cst.CSTNode, test: cst.BaseExpression) -> None:
        if self._depth:
            self.sites.append(_Site("test", node, const_expr_argument(test) or test))


class _Instrument(Quick):
    """Inserts probes. ``numbers``: site and kind by expression. ``entries``: sites by function."""

    def __init__(
        self, numbers: Mapping[int, tuple[int, str]], entries: Mapping[str, list[int]], names: Mapping[int, str]
    ) -> None:
        super().__init__()
        self._numbers, self._entries, self._names = numbers, entries, names
        self._depth = 0

    def on_leave(self, original_node: cst.CSTNode, updated_node: cst.CSTNode) -> cst.CSTNode:  # type: ignore[override]
        updated: cst.CSTNode = super().on_leave(original_node, updated_node)
        site = self._numbers.get(id(original_node))
        if site is None or not isinstance(updated, cst.BaseExpression):
            return updated
        probe = "cutegen_test" if site[1] == "test" else "cutegen_seen"
        if isinstance(updated, cst.Tuple) and not updated.lpar:
            updated = updated.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
        return cst.Call(cst.Name(probe), [cst.Arg(cst.Integer(str(site[0]))), cst.Arg(updated)])

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        self._depth += 1

    def visit_ClassDef(self, node: cst.ClassDef) -> None:
        self._depth += 1

    def leave_ClassDef(self, original_node: cst.ClassDef, updated_node: cst.ClassDef) -> cst.ClassDef:
        self._depth -= 1
        return updated_node

    def leave_FunctionDef(self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef) -> cst.FunctionDef:
        self._depth -= 1
        if self._depth or not isinstance(updated_node.body, cst.IndentedBlock):
            return updated_node
        name, body = updated_node.name.value, list(updated_node.body.body)
        at = 1 if original_node.get_docstring() is not None else 0
        probes = [f"cutegen_seen({n}, {self._names[n]})" for n in self._entries.get(name, ())]
        body[at:at] = [cst.parse_statement(probe) for probe in probes]
        if name == "launch":
            body.append(cst.parse_statement("cutegen_report()"))
        return updated_node.with_changes(body=updated_node.body.with_changes(body=body))


def _is_known(token: str | None) -> bool:
    return token is not None and token not in (_UNKNOWN, _UNSEEN)


def _checked(token: str) -> str:
    """A value in a report. Reports are untrusted: anything but a plain value is unknown."""
    try:
        if _is_known(token):
            _value(token)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return _UNKNOWN
    return token


def _value(token: str) -> Value:
    plain = {"T": "True", "F": "False", "N": "None"}.get(token, token.removeprefix("{").removesuffix("};"))
    value: Value = ast.literal_eval(expression(plain))
    return value


def _arguments(node: cst.CSTNode) -> int:
    assert isinstance(node, cst.For) and isinstance(node.iter, cst.Call)
    return sum(argument.keyword is None for argument in node.iter.args)


def _argument(site: _Site) -> tuple[str, str]:
    assert isinstance(site.node, cst.FunctionDef)
    return site.node.name.value, site.name
