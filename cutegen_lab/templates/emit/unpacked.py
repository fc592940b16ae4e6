"""Replaces expressions that index, unpack, count or iterate over a known tuple or list with its elements."""

from __future__ import annotations

from collections.abc import Collection

import libcst as cst

from cutegen_lab.templates.emit.branches import Renamed, parenthesised
from cutegen_lab.templates.emit.displays import (
    Display,
    display,
    elements,
    index_of,
    is_steady,
    list_of,
    matched,
    reads_any,
    sequence,
    tuple_of,
    with_star_gathered,
)
from cutegen_lab.templates.emit.literals import ReadsReplaced
from cutegen_lab.templates.emit.names import dotted, names_of

Known = dict[str, cst.BaseExpression]
"""By name, the display or function of the module that it stands for."""


class Unpacked(ReadsReplaced):
    """Replaces what an expression reads of ``known``."""

    def __init__(self, known: Known, module_functions: Collection[str]) -> None:
        short = {name: value for name, value in known.items() if isinstance(value, cst.Name) or _is_name_alone(value)}
        super().__init__(short)
        self._known, self._functions = known, module_functions
        self._hidden = list[set[str]]()

    def _shown(self, node: cst.BaseExpression) -> Display | None:
        if isinstance(node, cst.Name):
            return display(None if any(node.value in each for each in self._hidden) else self._known.get(node.value))
        return display(node)

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.BaseExpression:
        hidden = any(updated_node.value in each for each in self._hidden)
        return updated_node if hidden else super().leave_Name(original_node, updated_node)

    def visit_ListComp(self, node: cst.ListComp) -> bool:
        self._hidden.append(targets_of(node.for_in))
        return True

    def visit_GeneratorExp(self, node: cst.GeneratorExp) -> bool:
        self._hidden.append(targets_of(node.for_in))
        return True

    def leave_ListComp(self, original_node: cst.ListComp, updated_node: cst.ListComp) -> cst.BaseExpression:
        self._hidden.pop()
        return self._unrolled(updated_node)

    def leave_GeneratorExp(self, original_node: cst.GeneratorExp, updated_node: cst.GeneratorExp) -> cst.BaseExpression:
        self._hidden.pop()
        return self._unrolled(updated_node)

    def _unrolled(self, node: cst.ListComp | cst.GeneratorExp) -> cst.BaseExpression:
        walk = node.for_in
        whole = sequence(walk.iter, self._shown)
        if whole is None or walk.inner_for_in is not None or walk.ifs:
            return node
        given = [matched(walk.target, each, self._shown) for each in elements(whole)]
        found = list[cst.BaseExpression]()
        for each in given:
            if each is None or not all(map(is_steady, each.values())):
                return node
            named = node.elt.visit(Renamed(each))
            assert isinstance(named, cst.BaseExpression)
            element = named.visit(Unpacked(self._known, self._functions))
            assert isinstance(element, cst.BaseExpression)
            found.append(element)
        if len(found) > 1 and not all(is_steady(each) or _is_slot(each) for each in found):
            unread = not reads_any(node.elt, names_of(walk.target)) and isinstance(walk.iter, cst.Name)
            counted = cst.parse_expression(f"range({len(found)})")
            return node.with_changes(for_in=walk.with_changes(iter=counted)) if unread else node
        return list_of(found)

    def leave_Subscript(self, original_node: cst.Subscript, updated_node: cst.Subscript) -> cst.BaseExpression:
        whole, at = self._shown(updated_node.value), index_of(updated_node)
        if whole is None or at is None or at >= len(whole.elements):
            return updated_node
        return parenthesised(elements(whole)[at].deep_clone())

    def leave_Assign(self, original_node: cst.Assign, updated_node: cst.Assign) -> cst.Assign:
        """Rewrites ``*xs, y = record`` to ``xs, y = [a, b], c``."""
        target = updated_node.targets[0].target
        if len(updated_node.targets) > 1 or not isinstance(target, cst.Tuple):
            return updated_node
        value = self._like(target, updated_node.value)
        if value is updated_node.value:
            return updated_node
        plain = [cst.Element(each.value) for each in target.elements]
        left = cst.Tuple(plain, lpar=target.lpar, rpar=target.rpar)
        right = value.with_changes(lpar=(), rpar=()) if isinstance(value, cst.Tuple) and len(plain) > 1 else value
        return updated_node.with_changes(targets=[cst.AssignTarget(left)], value=right)

    def _like(self, target: cst.CSTNode, value: cst.BaseExpression) -> cst.BaseExpression:
        """``value`` with displays where ``target`` unpacks."""
        whole = self._shown(value) if isinstance(target, cst.Tuple) else None
        if whole is None or not isinstance(target, cst.Tuple):
            return value
        given = with_star_gathered(target.elements, elements(whole))
        if given is None:
            return value
        inner = [self._like(each.value, part) for each, part in zip(target.elements, given, strict=True)]
        starred = any(isinstance(each, cst.StarredElement) for each in target.elements)
        if (
            whole is value
            and isinstance(value, cst.Tuple)
            and not starred
            and all(a is b for a, b in zip(inner, given, strict=True))
        ):
            return value
        return tuple_of(inner)

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        name = dotted(updated_node.func)
        args = list[cst.Arg]()
        for argument in updated_node.args:
            whole = self._shown(argument.value) if argument.star == "*" else None
            args += [argument] if whole is None else [cst.Arg(each.deep_clone()) for each in elements(whole)]
        if len(args) == 1 and name == "len" and (whole := self._shown(args[0].value)) is not None:
            return cst.Integer(str(len(whole.elements)))
        same = len(args) == len(updated_node.args) and all(a is b for a, b in zip(args, updated_node.args, strict=True))
        return updated_node if same else updated_node.with_changes(args=args)

    def leave_BinaryOperation(
        self, original_node: cst.BinaryOperation, updated_node: cst.BinaryOperation
    ) -> cst.BaseExpression:
        left, right = display(updated_node.left), display(updated_node.right)
        if not isinstance(updated_node.operator, cst.Add) or left is None or type(left) is not type(right):
            return updated_node
        assert right is not None
        put = tuple_of if isinstance(left, cst.Tuple) else list_of
        return put([*elements(left), *elements(right)])

    def leave_Comparison(self, original_node: cst.Comparison, updated_node: cst.Comparison) -> cst.BaseExpression:
        """Decides ``record is None``."""
        match updated_node.comparisons:
            case [cst.ComparisonTarget(operator=cst.Is() | cst.IsNot() as sign, comparator=cst.Name(value="None"))]:
                left = updated_node.left
                function = isinstance(left, cst.Name) and left.value in self._functions
                if function or self._shown(left) is not None:
                    return cst.Name(str(isinstance(sign, cst.IsNot)))
        return updated_node


def targets_of(walk: cst.CompFor | None) -> set[str]:
    found = set[str]()
    while walk is not None:
        found |= set(names_of(walk.target))
        walk = walk.inner_for_in
    return found


def _is_slot(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.Subscript) and isinstance(node.value, cst.Name) and index_of(node) is not None


def _is_name_alone(node: cst.CSTNode) -> bool:
    """Whether ``node`` is a display of one name: ``(x,)`` or ``[x]``."""
    whole = display(node)
    return whole is not None and len(whole.elements) == 1 and isinstance(elements(whole)[0], cst.Name)
