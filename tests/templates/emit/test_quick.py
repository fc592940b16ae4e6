"""A transformer that keeps what does not change does what LibCST's does."""

from __future__ import annotations

import libcst as cst
import pytest

from cutegen_lab.templates.emit.names import Quick

TEXT = """
def f(x):
    if x:
        a = 1  # one
    elif gone:
        a = gone
    elif y:
        gone(2)
    else:
        a = [g(gone), 3]
    gone = 4; b = 5
    for gone in x:
        pass
    return a
"""


class _Edits:
    """Drops branches and lines, doubles a line, and renames."""

    def leave_If(self, original_node: cst.If, updated_node: cst.If) -> cst.If | cst.RemovalSentinel:
        named = isinstance(original_node.test, cst.Name) and original_node.test.value == "y"
        return cst.RemovalSentinel.REMOVE if named else updated_node

    def leave_Expr(self, original_node: cst.Expr, updated_node: cst.Expr) -> cst.RemovalSentinel:
        return cst.RemovalSentinel.REMOVE

    def leave_Return(
        self, original_node: cst.Return, updated_node: cst.Return
    ) -> cst.FlattenSentinel[cst.BaseSmallStatement]:
        return cst.FlattenSentinel([cst.Pass(), updated_node])

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.Name:
        return updated_node.with_changes(value="new") if updated_node.value == "gone" else updated_node


class _Ours(_Edits, Quick):
    pass


class _Theirs(_Edits, cst.CSTTransformer):
    pass


def test_it_edits_as_libcst_does() -> None:
    module = cst.parse_module(TEXT)
    ours, theirs = module.visit(_Ours()), module.visit(_Theirs())
    assert ours.code == theirs.code != TEXT
    assert "elif new" in ours.code and "elif y" not in ours.code and "else" not in ours.code


def test_what_does_not_change_is_the_same_node() -> None:
    module = cst.parse_module(TEXT + "\n\ndef h(x):\n    return x\n")
    changed = module.visit(_Ours())
    assert isinstance(changed, cst.Module)
    assert module.visit(Quick()) is module and changed.body[0] is not module.body[0]


@pytest.mark.parametrize("name", ["If", "Call", "Subscript", "For", "FunctionDef"])
def test_what_a_handler_does_not_enter_is_not_visited(name: str) -> None:
    seen = list[str]()

    class Names(Quick):
        def visit_Name(self, node: cst.Name) -> None:
            seen.append(node.value)

    setattr(Names, f"visit_{name}", lambda self, node: False)
    cst.parse_statement("if q:\n    r(s[t])\n    for u in v:\n        w\n").visit(Names())
    whole = ["q", "r", "s", "t", "u", "v", "w"]
    inside = {"If": whole, "Call": ["r", "s", "t"], "Subscript": ["s", "t"], "For": ["u", "v", "w"], "FunctionDef": []}
    assert seen == [each for each in whole if each not in inside[name]]
