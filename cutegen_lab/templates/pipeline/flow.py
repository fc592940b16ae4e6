"""A program as stored values and the operations between them, which can be cut into kernels."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

import torch

from cutegen_lab.core.errors import NotCovered
from cutegen_lab.templates.frontend.program import Program, Region, place, target
from cutegen_lab.templates.frontend.reader import CASTS

# Operators that keep the order of elements in a row-major tensor.
_SHAPES = frozenset(
    f"aten.{name}"
    for name in (
        "view.default", "_unsafe_view.default", "reshape.default", "unsqueeze.default", "squeeze.dim", "squeeze.dims",
        "squeeze.default", "clone.default", "alias.default", "detach.default", "contiguous.default",
        "lift_fresh_copy.default",
    )
)  # fmt: skip
# Operators that a kernel can apply while it reads a tensor.
_MOVES = _SHAPES | {
    f"aten.{name}"
    for name in (
        "expand.default", "permute.default", "transpose.int", "t.default", "mT.default", "slice.Tensor",
        "narrow.default", "select.int", "split.Tensor", "split_with_sizes.default", "chunk.default",
        "broadcast_tensors.default", "full.default", "full_like.default", "zeros_like.default", "ones_like.default",
        "scalar_tensor.default",
    )
}  # fmt: skip


class Flow:
    """The operations that lead to ``results``, values of the program by name (default: all its results).

    ``order``: values that may be stored, each after those on which it depends. Every kernel that reads a moved value
    repeats the move, unless the value is in ``kept``. Raises ProviderError if a result is an input.
    """

    def __init__(self, program: Program, kept: Iterable[str] = (), results: Sequence[str] | None = None) -> None:
        self.program, self.kept = program, frozenset(kept)
        self.results = tuple(results or program.whole().results)
        self._input_independent = _without_inputs(program)
        self.stored = {n.name for n in program.calls if _is_tensor(n) and not self._is_move(n)} | self.kept
        self.regrouped: dict[str, str] = {}  # a view with other dimensions → the stored value that it views
        for node in program.calls:
            if _regroups(node):
                self.regrouped[node.name] = self._root(self._sources(node)[0], force=True)
        self.targets: dict[str, list[int]] = {}  # a stored value → the results that equal it
        for position, name in enumerate(self.results):
            root = self._root(name)
            if root not in self.stored:
                if program.nodes[name].op != "call_function":
                    raise NotCovered("the templates do not cover several kernels if an input is returned as a result")
                self.stored.add(name)
                root = name
            self.targets.setdefault(root, []).append(position)
        self.order = self._ordered()

    def sources_of(self, name: str) -> list[str]:
        """Names of the operands of value ``name``."""
        return self._sources(self.program.nodes[name])

    def region(self, computed: Sequence[str]) -> Region | None:
        """The region that computes the values ``computed``; None if a single kernel cannot, because it would need a
        tensor in two shapes."""
        mine, inputs = set(computed), dict[str, None]()
        nodes, stack = set(computed), [s for name in computed for s in self.sources_of(name)]
        while stack:
            name = stack.pop()
            if name in nodes or name in self.program.constants:
                continue
            if name in self.regrouped:
                if self.regrouped[name] in mine:
                    return None
                inputs[name] = None
            elif name in self.stored or self.program.nodes[name].op == "placeholder":
                inputs[name] = None
            else:
                nodes.add(name)
                stack += self.sources_of(name)
        later = {s for name in self.order if name not in mine for s in self._reached(name)}
        results = [name for name in computed for _ in range(len(self.targets.get(name, ())) or name in later)]
        positions = {name: at for at, name in enumerate(self.program.nodes)}
        return Region(tuple(sorted(inputs, key=positions.__getitem__)), frozenset(nodes), tuple(results))

    def leading_to(self, names: Iterable[str]) -> set[str]:
        """The values ``names`` and all stored values on which they depend."""
        found, stack = set[str](), list(names)
        while stack:
            name = stack.pop()
            if name not in found:
                found.add(name)
                stack += self._reached(name)
        return found & set(self.order)

    def storage(self, name: str) -> str:
        """Value whose memory holds the input ``name`` of a region."""
        return self.regrouped.get(name, name)

    def value(self, name: str) -> object:
        return self.program.nodes[name].meta.get("val")

    def bytes_of(self, names: Iterable[str]) -> int:
        tensors = (self.value(self.storage(name)) for name in names)
        return sum(math.prod(t.shape) * t.element_size() for t in tensors if isinstance(t, torch.Tensor))

    def described(self, name: str) -> str:
        """An operation for messages: its name and its position in the reference."""
        node = self.program.nodes[name]
        return f"{target(node)}{place(node)}"

    def _is_move(self, node: torch.fx.Node) -> bool:
        if node.name in self._input_independent:
            return True
        if target(node) == "getitem":
            return self._is_move(node.all_input_nodes[0])
        if target(node) in CASTS:
            return _widens(node.all_input_nodes[0].meta["val"].dtype, node.meta["val"].dtype)
        return target(node) in _MOVES

    def _sources(self, node: torch.fx.Node) -> list[str]:
        return [source.name for source in node.all_input_nodes]

    def _root(self, name: str, force: bool = False) -> str:
        """The value at the start of a chain of views. ``force``: it is stored, unless it is an input."""
        while name not in self.stored and name not in self.regrouped and self._is_view(name):
            name = self.sources_of(name)[0]
        name = self.regrouped.get(name, name)
        if force and self.program.nodes[name].op == "call_function":
            self.stored.add(name)
        return name

    def _is_view(self, name: str) -> bool:
        node = self.program.nodes[name]
        return node.op == "call_function" and target(node) in _SHAPES

    def _reached(self, name: str) -> Iterator[str]:
        """Stored values that ``name`` reads, directly or through moves."""
        stack = self.sources_of(name)
        while stack:
            source = stack.pop()
            root = self.regrouped.get(source, source)
            if root in self.stored:
                yield root
            else:
                stack += self.sources_of(root)

    def _ordered(self) -> list[str]:
        found: dict[str, None] = {}
        stack = [(root, False) for root in reversed(self.targets)]
        while stack:
            name, done = stack.pop()
            if done:
                found[name] = None
            elif name not in found:
                stack.append((name, True))
                stack += [(source, False) for source in reversed(list(self._reached(name)))]
        return list(found)


def _without_inputs(program: Program) -> set[str]:
    """Values that depend on no input (masks of indices, constants): every kernel can compute them itself."""
    found = set[str]()
    for node in program.calls:
        if all(source.name in found or source.name in program.constants for source in node.all_input_nodes):
            found.add(node.name)
    return found


def _is_tensor(node: torch.fx.Node) -> bool:
    return isinstance(node.meta.get("val"), torch.Tensor)


def _widens(before: torch.dtype, after: torch.dtype) -> bool:
    """Whether ``before`` → ``after`` is a lossless cast."""
    return before == after or bool(
        before.is_floating_point and after.is_floating_point and before.itemsize < after.itemsize
    )


def _regroups(node: torch.fx.Node) -> bool:
    """Whether ``node`` is a view that changes more than dimensions of size 1."""
    if target(node) not in _SHAPES or not _is_tensor(node):
        return False
    before, after = node.all_input_nodes[0].meta["val"].shape, node.meta["val"].shape
    return [size for size in before if size > 1] != [size for size in after if size > 1]
