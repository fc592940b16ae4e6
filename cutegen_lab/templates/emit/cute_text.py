"""Writes graph expressions as CuTe DSL text.

A value is a *vector* (``TensorSSA``: the elements that a thread holds) or a *scalar* (``Float32``: one for each row),
as the family decides. ``fast`` allows hardware approximations, which are accurate enough for 16-bit results; fp32
results use the accurate functions.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence

from cutegen_lab.templates.emit.bundle import names_of_kernels
from cutegen_lab.templates.frontend.expr import (
    TRUTH_OPS,
    Const,
    Dot,
    Elementwise,
    Extent,
    FullReduce,
    Gather,
    Graph,
    Iota,
    Load,
    Pool,
    Reduce,
    ReducedIota,
    Scan,
    Size,
)

_ATOM, _PRODUCT, _SUM, _COMPARE, _LOOSE = 4, 3, 2, 1, 0
_INFIX = {"add": ("+", _SUM), "sub": ("-", _SUM), "mul": ("*", _PRODUCT), "div": ("/", _PRODUCT)}
_COMPARISONS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
# Without sin: sin.approx is inaccurate for small and large arguments.
_FAST = frozenset({"exp", "exp2", "log", "log2", "rsqrt"})
_MATH = _FAST | {"sin", "cos", "log1p", "expm1", "sqrt", "tanh", "erf", "abs", "floor", "ceil", "trunc"}
_TWICE = frozenset({"max", "min", "isnan"})  # operations whose texts may contain an operand twice
_INLINE_CHARS = 44

Text = tuple[str, int]  # expression, precedence


class Writer:
    """Writes assignments for chosen nodes. ``is_vector``: whether the value of a node is a vector. ``extent``: text of
    the reduced length. ``index``: text of the indices along the reduced dimensions."""

    def __init__(
        self, graph: Graph, is_vector: Callable[[int], bool], *, fast: bool, coarse: bool, extent: str, index: str
    ) -> None:
        self.graph = graph
        self.is_vector = is_vector
        self.fast = fast
        self.coarse = coarse  # bf16 results: the relative error of tanh.approx, 2**-11, is small enough
        self.extent = extent
        self.index = index
        self.users = graph.users()
        self._read_twice = {
            a for node in graph.nodes if isinstance(node, Elementwise) and node.op in _TWICE for a in node.args
        }
        self.suggested = dict(graph.names)
        self._taken = set(names_of_kernels())
        self.known: dict[int, str] = {}

    def name(self, wish: str) -> str:
        """A variable name not yet used in this kernel, derived from ``wish``."""
        name, count = wish, 2
        while name in self._taken:
            name, count = f"{wish}_{count}", count + 1
        self._taken.add(name)
        return name

    def reserve(self, names: Sequence[str]) -> None:
        self._taken.update(names)

    def assignments(self, roots: Sequence[int], env: dict[int, str], local: dict[int, str]) -> list[str]:
        """Lines that compute the operands of ``roots`` from ``env``. New names are added to ``env``; names in ``local``
        are reused if a node is written again in another pass."""
        lines = []
        for index in self.pending(roots, env):
            node = self.graph.nodes[index]
            if not isinstance(node, Elementwise):
                continue
            text, _ = self.expression(index, env)
            length = _length(text, {name for i, name in env.items() if isinstance(self.graph.nodes[i], Elementwise)})
            shared = (self.users[index] > 1 or index in self._read_twice) and length > 6
            if shared or length > _INLINE_CHARS or index in self.suggested:
                if index in roots and self.users[index] == 1 and index not in self.suggested and length < 90:
                    continue
                name = local.get(index) or self.name(self.suggested.get(index) or self._word(node))
                local[index] = env[index] = name
                lines.append(f"{name} = {text}")
        return lines

    def _word(self, node: Elementwise) -> str:
        """A variable name that describes the operation."""
        if node.op in _BY_SECOND:
            first, second = _BY_SECOND[node.op]
            return first if all(map(self.graph.varies, node.args)) else second
        return "mask" if node.op in TRUTH_OPS else _WORDS.get(node.op, node.op)

    def pending(self, roots: Sequence[int], env: Mapping[int, str]) -> list[int]:
        """Nodes to write for ``roots``, operands first."""
        seen: set[int] = set()
        stack = list(roots)
        while stack:
            index = stack.pop()
            if index in seen or index in env:
                continue
            seen.add(index)
            node = self.graph.nodes[index]
            if isinstance(node, Elementwise):
                stack.extend(node.args)
        return sorted(seen)

    def expression(self, index: int, env: Mapping[int, str]) -> Text:
        if index in env:
            return env[index], _ATOM
        node = self.graph.nodes[index]
        if isinstance(node, Const):
            return number(node.value), _ATOM if node.value >= 0 else _PRODUCT
        if isinstance(node, Extent):
            return ("rows" if node.rows else self.extent), _ATOM
        if isinstance(node, Size):
            return f"Float32({node.name})", _ATOM
        if isinstance(node, ReducedIota):
            return self.index, _ATOM
        if isinstance(node, Load | Gather | Iota | Dot | Pool | Reduce | Scan | FullReduce):
            raise KeyError(f"node {index} ({node}) has no name yet")
        return self._map(node, env)

    def _map(self, node: Elementwise, env: Mapping[int, str]) -> Text:
        texts = [self.expression(a, env) for a in node.args]
        vectors = [self.is_vector(a) for a in node.args]
        if node.op in _INFIX:
            return self._infix(node, texts, vectors)
        if node.op in _COMPARISONS:
            return f"{_fit(texts[0], _SUM)} {_COMPARISONS[node.op]} {_fit(texts[1], _SUM)}", _COMPARE
        if node.op in ("and", "or"):
            sign = "&" if node.op == "and" else "|"
            return f"({_fit(texts[0], _ATOM)} {sign} {_fit(texts[1], _ATOM)})", _ATOM
        if node.op == "not":
            return f"{_fit(texts[0], _ATOM)} == False", _COMPARE
        if node.op == "isnan":
            return f"{_fit(texts[0], _SUM)} != {_fit(texts[0], _SUM)}", _COMPARE
        if node.op == "number":
            return texts[0]
        if node.op == "neg":
            return f"-{_fit(texts[0], _PRODUCT)}", _PRODUCT
        if node.op == "recip":
            return f"(1.0 / {_fit(texts[0], _ATOM)})", _ATOM
        if node.op == "sigmoid":
            return f"{'fast_sigmoid' if self.fast else 'sigmoid'}({texts[0][0]})", _ATOM
        if node.op == "erf" and self.fast and vectors[0] and self._added_to_a_number(node):
            return f"fast_erf({texts[0][0]})", _ATOM
        if node.op in ("max", "min"):
            return self._extremum(node, [t[0] for t in texts], vectors)
        if node.op == "where":
            return self._where([t[0] for t in texts], texts, vectors)
        function = "roundeven" if node.op == "round" else node.op
        if function not in _MATH and function != "roundeven":
            raise KeyError(f"no CuTe text for {node.op}")
        approximate = (self.fast and function in _FAST) or (self.coarse and function == "tanh")
        return f"cute.math.{function}({texts[0][0]}{', fastmath=True' if approximate else ''})", _ATOM

    def _added_to_a_number(self, node: Elementwise) -> bool:
        """Whether the value is only added to constants, as in GELU: then its relative error for small results does not
        matter."""
        index = self.graph.nodes.index(node)
        sums = [n for n in self.graph.nodes if isinstance(n, Elementwise) and n.op == "add" and index in n.args]
        numbers = (any(isinstance(self.graph.nodes[a], Const) for a in n.args) for n in sums)
        return len(sums) == self.users[index] and all(numbers)

    def _infix(self, node: Elementwise, texts: list[Text], vectors: list[bool]) -> Text:
        sign, level = _INFIX[node.op]
        right = self.graph.nodes[node.args[1]]
        exact = isinstance(right, Const) and abs(math.frexp(right.value)[0]) == 0.5  # a power of two
        if node.op == "div" and isinstance(right, Const) and right.value and (self.fast or exact):
            return f"{_fit(texts[0], level)} * {number(1 / right.value)}", level
        tight = level + 1 if node.op in ("sub", "div") else level
        return f"{_fit(texts[0], level)} {sign} {_fit(texts[1], tight)}", level

    def _extremum(self, node: Elementwise, texts: list[str], vectors: list[bool]) -> Text:
        first, second = texts
        if not any(vectors):
            return f"cute.arch.f{node.op}({first}, {second}, nan=True)", _ATOM
        constant = next((i for i in (0, 1) if isinstance(self.graph.nodes[node.args[i]], Const)), None)
        if constant is not None:  # a comparison with NaN is false, so NaN is kept
            value, limit = texts[1 - constant], texts[constant]
            return f"cute.where({value} {'<' if node.op == 'max' else '>'} {limit}, {limit}, {value})", _ATOM
        if not vectors[0]:
            first = f"cute.full_like({second}, {first})"
        if not vectors[1]:
            second = f"cute.full_like({first}, {second})"
        return f"cute.math.{node.op}({first}, {second}, propagate_nan=True)", _ATOM

    def _where(self, texts: list[str], full: list[Text], vectors: list[bool]) -> Text:
        condition, yes, no = texts
        if not any(vectors):
            typed = [t if not _literal(t) else f"Float32({t})" for t in (yes, no)]
            return f"({typed[0]} if {condition} else {typed[1]})", _ATOM
        if not vectors[0]:
            model = yes if vectors[1] else no
            condition = f"cute.full_like({model}, {condition}, cutlass.Boolean)"
        elif not (vectors[1] or vectors[2]):
            return f"choose({condition}, {yes}, {no})", _ATOM
        return f"cute.where({condition}, {yes}, {no})", _ATOM


_WORDS = {"sigmoid": "logistic", "recip": "inverse", "where": "selected", "abs": "magnitude", "neg": "negated",
          "floor": "whole", "ceil": "whole", "round": "whole", "trunc": "whole", "sin": "sine",
          "cos": "cosine"}  # fmt: skip
# Names for the result of an operator on two vectors, and on a vector and a scalar.
_BY_SECOND = {"add": ("summed", "shifted"), "sub": ("difference", "shifted"), "mul": ("product", "scaled"),
              "div": ("ratio", "scaled"), "max": ("maximum", "clamped"), "min": ("minimum", "clamped")}  # fmt: skip


def _length(text: str, names: Collection[str]) -> int:
    """Number of characters of ``text`` with each of ``names`` counted as one, so that the order of operations does not
    depend on names."""
    return len(re.sub(r"[\w.]+", lambda found: "v" if found[0] in names else found[0], text))


def number(value: float) -> str:
    """Python literal of an fp32 constant."""
    if math.isinf(value):
        return "Float32.inf" if value > 0 else "-Float32.inf"
    if math.isnan(value):
        return "Float32.nan"
    return repr(value)


def _literal(text: str) -> bool:
    return text.lstrip("-")[:1].isdigit() or "Float32.inf" in text or "Float32.nan" in text


def _fit(text: Text, level: int) -> str:
    return text[0] if text[1] >= level else f"({text[0]})"


def divided_by_rows(graph: Graph, divisor: int | None = None) -> Graph:
    """Replaces vector ÷ row value by vector × reciprocal: one division for each row instead of each element, with at
    most 1 ulp more error. With ``divisor``, only for that row value."""
    from dataclasses import replace

    nodes: list[object] = []
    moved: dict[int, int] = {}
    names = []
    suggested = dict(graph.names)
    for index, node in enumerate(graph.nodes):
        if isinstance(node, Elementwise | Reduce | Scan | FullReduce | Gather):
            node = replace(node, args=tuple(moved[a] for a in node.args))
        old = graph.nodes[index]
        if (
            isinstance(node, Elementwise) and isinstance(old, Elementwise) and node.op == "div"
            and graph.varies(old.args[0]) and divisor in (None, old.args[1]) and not graph.varies(old.args[1])
            and not isinstance(graph.nodes[old.args[1]], Const | Extent)
        ):  # fmt: skip
            inverse = Elementwise("recip", (node.args[1],))
            if inverse not in nodes:
                nodes.append(inverse)
            node = Elementwise("mul", (node.args[0], nodes.index(inverse)))
        moved[index] = len(nodes)
        nodes.append(node)
        if index in suggested:
            names.append((moved[index], suggested[index]))
    outputs = tuple(replace(o, node=moved[o.node]) for o in graph.outputs)
    return replace(graph, nodes=tuple(nodes), outputs=outputs, names=tuple(names)).pruned()  # type: ignore[arg-type]


def tuple_text(entries: Sequence[str]) -> str:
    """Text of a Python tuple of expressions."""
    return f"({', '.join(entries)}{',' if len(entries) == 1 else ''})"
