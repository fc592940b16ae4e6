"""Simplifies arithmetic without effect, and tests with a known result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

import libcst as cst

from cutegen_lab.templates.emit.branches import Branches, Renamed, parenthesised
from cutegen_lab.templates.emit.evaluate import UNKNOWN, Constants, evaluate, literal
from cutegen_lab.templates.emit.literals import with_literals_in_place
from cutegen_lab.templates.emit.names import dotted, is_range
from cutegen_lab.templates.emit.unread import with_read_names_only

CHANGE_NOTHING = {
    "min", "max", "len", "sum", "any", "all", "int", "bool", "abs", "isinstance", "getattr", "tuple", "list", "sorted",
    "reversed", "range", "enumerate", "zip", "math.gcd", "math.prod",
    "cute.ceil_div", "cute.size", "cute.make_layout", "cute.make_identity_tensor", "cute.arch.thread_idx",
    "cute.arch.block_idx", "cute.arch.lane_idx", "cute.arch.warp_idx", "cutlass.min", "cutlass.max",
    "cutlass.const_expr", "Float32",
}  # fmt: skip
"""Calls without side effects, which may be removed if their result is unused."""
_MOST_ROUNDS = 8
_DEFAULTS = {("cluster", "None"), ("use_pdl", "False")}


class Simplify(Branches):
    """One pass over a module. ``constants``: the module's, by name. ``pure``: functions without side effects.
    ``returns``: results of functions without parameters."""

    def __init__(self, constants: Constants, pure: set[str], returns: Mapping[str, Any]) -> None:
        super().__init__()
        self._constants, self._pure, self._returns = constants, CHANGE_NOTHING | pure, returns

    def test(self, original: cst.If | cst.IfExp, updated: cst.If | cst.IfExp) -> bool | None:
        value = evaluate(updated.test, self._constants)
        return None if value is UNKNOWN else bool(value)

    def trips(self, original: cst.For, updated: cst.For) -> range | None:
        return self._values(updated.iter)

    def _values(self, node: cst.BaseExpression) -> range | None:
        """The values of a range, if known."""
        if not is_range(node):
            return None
        assert isinstance(node, cst.Call)
        values = [evaluate(a.value, self._constants) for a in node.args if a.keyword is None]
        return range(*values) if values and all(isinstance(v, int) for v in values) else None

    def leave_Comparison(self, original_node: cst.Comparison, updated_node: cst.Comparison) -> cst.BaseExpression:
        return self._decided(updated_node)

    def leave_UnaryOperation(
        self, original_node: cst.UnaryOperation, updated_node: cst.UnaryOperation
    ) -> cst.BaseExpression:
        return self._decided(updated_node) if isinstance(updated_node.operator, cst.Not) else updated_node

    def leave_BooleanOperation(
        self, original_node: cst.BooleanOperation, updated_node: cst.BooleanOperation
    ) -> cst.BaseExpression:
        """``True and x`` becomes ``x`` in a test."""
        decided = self._decided(updated_node)
        if decided is not updated_node:
            return decided
        deciding = isinstance(updated_node.operator, cst.Or)
        left, right = (evaluate(side, self._constants) for side in (updated_node.left, updated_node.right))
        if isinstance(left, bool):
            return updated_node.right if left is not deciding else literal(left)
        if right is (not deciding):
            return updated_node.left
        return updated_node

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        name = dotted(updated_node.func)
        if name in self._returns and not updated_node.args:
            return literal(self._returns[name])
        if any(isinstance(argument.value, cst.List | cst.Tuple) for argument in updated_node.args if argument.star):
            updated_node = updated_node.with_changes(
                args=[a for each in updated_node.args for a in _spread_argument(each)]
            )
        if name in ("min", "max", "tuple") and len(updated_node.args) == 1 and not updated_node.args[0].star:
            return self._of_one(updated_node, updated_node.args[0].value)
        if name in ("min", "max", "len", "math.prod", "cutlass.const_expr", "cute.ceil_div"):
            return self._decided(updated_node)
        if name.endswith(".launch") or (isinstance(updated_node.func, cst.Attribute) and _attribute(updated_node)):
            kept = [a for a in updated_node.args if not _is_default(a)]
            return updated_node if len(kept) == len(updated_node.args) else updated_node.with_changes(args=kept)
        return updated_node

    def leave_BinaryOperation(
        self, original_node: cst.BinaryOperation, updated_node: cst.BinaryOperation
    ) -> cst.BaseExpression:
        """Simplifies x * 1, x // 1, x + 0, x - 0, 0 * x, x % 1, x + 1 - 1, and arithmetic of literals."""
        value = evaluate(updated_node, {})
        if value is not UNKNOWN:
            return literal(value)
        left, right, does = updated_node.left, updated_node.right, type(updated_node.operator)
        a, b = (evaluate(side, {}) for side in (left, right))
        if does is cst.Multiply and 0 in (a, b) and UNKNOWN in (a, b) and _is_int(a, b):
            return literal(0)
        if does is cst.Modulo and _one(b):
            return literal(0)
        kept: cst.BaseExpression | None = None
        if does is cst.Add and isinstance(left, cst.List) and isinstance(right, cst.List):
            kept = left if not right.elements else None
        elif (does in (cst.Multiply, cst.FloorDivide) and _one(b)) or (does in (cst.Add, cst.Subtract) and _zero(b)):
            kept = left
        elif (does is cst.Multiply and _one(a)) or (does is cst.Add and _zero(a)):
            kept = right
        elif does is cst.Subtract and isinstance(left, cst.BinaryOperation) and isinstance(left.operator, cst.Add):
            added = evaluate(left.right, {})
            kept = left.left if type(added) is int and added == b and not left.lpar else None
        if kept is None:
            return updated_node
        if updated_node.lpar and not kept.lpar:
            return parenthesised(kept)
        return kept

    def _of_one(self, call: cst.Call, only: cst.BaseExpression) -> cst.BaseExpression:
        """``max([x])`` is ``x``, ``tuple([])`` is ``()``."""
        takes = "tuple" if dotted(call.func) == "tuple" else "least"
        elements = only.elements if isinstance(only, cst.List) else None
        if takes == "least" and elements is not None and len(elements) == 1 and isinstance(elements[0], cst.Element):
            return elements[0].value
        return literal(()) if takes == "tuple" and elements is not None and not elements else self._decided(call)

    def leave_Subscript(self, original_node: cst.Subscript, updated_node: cst.Subscript) -> cst.BaseExpression:
        """``(x, y)[0]``."""
        whole, index = updated_node.value, updated_node.slice[0].slice
        at = evaluate(index.value, {}) if isinstance(index, cst.Index) and isinstance(whole, cst.Tuple) else UNKNOWN
        if not isinstance(whole, cst.Tuple) or type(at) is not int or not 0 <= at < len(whole.elements):
            return updated_node
        starred = any(isinstance(each, cst.StarredElement) for each in whole.elements)
        return updated_node if starred else parenthesised(whole.elements[at].value)

    def leave_Tuple(self, original_node: cst.Tuple, updated_node: cst.Tuple) -> cst.Tuple:
        elements = self._spread(updated_node.elements)
        return updated_node if elements is None else updated_node.with_changes(elements=elements)

    def leave_List(self, original_node: cst.List, updated_node: cst.List) -> cst.List:
        elements = self._spread(updated_node.elements)
        return updated_node if elements is None else updated_node.with_changes(elements=elements)

    def _spread(self, elements: Sequence[cst.BaseElement]) -> list[cst.BaseElement] | None:
        """Elements with unpacked comprehensions: ``*(f(i) for i in range(1))`` is ``f(0)``. None if there are none."""
        found = list[cst.BaseElement]()
        for each in elements:
            of = each.value
            spread = self._without_range_of_one(of) if isinstance(each, cst.StarredElement) and _walks(of) else of
            found += spread.elements if isinstance(spread, cst.List) and spread is not of else [each]
        return None if all(a is b for a, b in zip(found, elements, strict=False)) else found

    def leave_ListComp(self, original_node: cst.ListComp, updated_node: cst.ListComp) -> cst.BaseExpression:
        return self._without_range_of_one(updated_node)

    def leave_GeneratorExp(self, original_node: cst.GeneratorExp, updated_node: cst.GeneratorExp) -> cst.GeneratorExp:
        found = self._without_range_of_one(updated_node)
        return found if isinstance(found, cst.GeneratorExp) else updated_node

    def _without_range_of_one(self, node: cst.ListComp | cst.GeneratorExp) -> cst.BaseExpression:
        """``[f(x, i) for x in these for i in range(1)]`` is ``[f(x, 0) for x in these]``."""
        if _over_nothing(node.for_in):
            return cst.List([])
        first, last = node.for_in, node.for_in.inner_for_in
        while last is not None and last.inner_for_in is not None:
            first, last = last, last.inner_for_in
        only = last is None
        walked = first if last is None else last
        values = self._values(walked.iter)
        if values is not None and not values:
            return cst.List([])
        if values != range(1) or walked.ifs or not isinstance(walked.target, cst.Name):
            return node
        element = node.elt.visit(Renamed({walked.target.value: cst.Integer("0")}))
        assert isinstance(element, cst.BaseExpression)
        if only:
            return cst.List([cst.Element(element)])
        changed = node.with_changes(elt=element)
        return changed.with_deep_changes(first, inner_for_in=None)

    def leave_FunctionDef(self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef) -> cst.FunctionDef:
        found = super().leave_FunctionDef(original_node, updated_node)
        for _ in range(_MOST_ROUNDS):
            before = found
            found = with_read_names_only(with_literals_in_place(found, self._constants), self._pure)
            if found is before:
                break
        return found

    def _decided(self, node: cst.BaseExpression) -> cst.BaseExpression:
        value = evaluate(node, self._constants)
        return node if value is UNKNOWN else literal(value)


def _spread_argument(argument: cst.Arg) -> list[cst.Arg]:
    """``*[x, y]`` as arguments."""
    of = argument.value
    if argument.star != "*" or not isinstance(of, cst.List | cst.Tuple):
        return [argument]
    return [cst.Arg(e.value, star="*" if isinstance(e, cst.StarredElement) else "") for e in of.elements]


def _walks(node: cst.BaseExpression) -> TypeGuard[cst.ListComp | cst.GeneratorExp]:
    return isinstance(node, cst.ListComp | cst.GeneratorExp)


def _over_nothing(walk: cst.CompFor | None) -> bool:
    """Whether one of a comprehension's sequences is ``()`` or ``[]``."""
    while walk is not None:
        if isinstance(walk.iter, cst.Tuple | cst.List) and not walk.iter.elements:
            return True
        walk = walk.inner_for_in
    return False


def _one(value: Any) -> bool:
    return type(value) is int and value == 1


def _zero(value: Any) -> bool:
    return type(value) is int and value == 0


def _is_int(*values: Any) -> bool:
    return any(_zero(value) for value in values)


def _attribute(call: cst.Call) -> bool:
    return isinstance(call.func, cst.Attribute) and call.func.attr.value == "launch"


def _is_default(argument: cst.Arg) -> bool:
    """``cluster=None`` and ``use_pdl=False``, the defaults of a launch."""
    name = argument.keyword.value if argument.keyword is not None else ""
    return isinstance(argument.value, cst.Name) and (name, argument.value.value) in _DEFAULTS
