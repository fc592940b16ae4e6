"""Text of pointers and layout modes through which a kernel sees tensors, or parts of them, over the iteration space."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cutegen_lab.templates.frontend.expr import Dims, Graph


@dataclass(frozen=True)
class View:
    """Tensor ``tensor``, or a part of it, as ``name``.

    ``starts``: for each dimension of the tensor the start of the part (None: the whole dimension); empty for a whole
    tensor. ``picked``: the dimension that a value indexes. ``padding``: number of zeros before the tensor along the
    reduced dimension. ``padded``: the dimension of the tensor that these zeros precede. ``beyond``: dimensions of the
    space along which part of the view is outside of the tensor.
    """

    name: str
    tensor: str
    dims: Dims
    starts: tuple[str | None, ...] = ()
    picked: int | None = None
    padding: int = 0
    padded: tuple[int, ...] = ()
    beyond: tuple[int, ...] = ()

    @property
    def offset(self) -> str:
        """Text of the distance from the tensor's first element to the part's; empty for none."""
        terms = []
        for axis, start in enumerate(self.starts):
            if not self.padding and axis in (self.dims[d] for d in self.beyond):
                start = f"max({start}, 0)"
            if start not in (None, "0"):
                stride = "" if axis == len(self.starts) - 1 else f" * {self.tensor}.stride[{axis}]"
                terms.append(f"({start}){stride}" if stride and " " in str(start) else f"{start}{stride}")
        return " + ".join(terms)

    @property
    def pointer(self) -> str:
        return f"{self.tensor}.iterator" + (f" + {self.offset}" if self.offset else "")

    def _cut(self, axes: Sequence[int]) -> bool:
        return any(axis == self.picked or (axis < len(self.starts) and self.starts[axis] is not None) for axis in axes)

    @property
    def memory(self) -> list[int]:
        """Dimensions of the space that the tensor has, in its memory order."""
        walked = [(axis, d) for d, axis in enumerate(self.dims) if axis is not None]
        return [d for _, d in sorted(walked)]

    def contiguous(self, over: Sequence[int]) -> bool:
        """Whether the view has all dimensions ``over``, adjacent in memory and in this order."""
        walked = [w for w in (self.dims[d] for d in over) if w is not None]
        if len(walked) < len(over):
            return False
        at = self.memory.index(over[0]) if over else 0
        between = range(walked[0] + 1, walked[-1] + 1) if walked else range(0)
        return self.memory[at : at + len(over)] == list(over) and not self._cut(between)

    def dense(self, over: Sequence[int]) -> bool:
        """Whether the view is contiguous over ``over`` with a stride of 1 in the last dimension."""
        last = self.dims[over[-1]] if over else None
        end = max(len(self.starts), (self.picked or 0) + 1)
        if last is None:
            return self.contiguous(over)
        return self.contiguous(over) and over[-1] == self.memory[-1] and not self._cut(range(last + 1, end))

    def step(self, over: Sequence[int]) -> str:
        """Text of the stride in the last dimension of ``over``, in elements."""
        return "1" if self.dense(over) else f"{self.tensor}.stride[{self.dims[over[-1]]}]"

    def quanta(self, over: Sequence[int]) -> list[str]:
        """Texts of expressions that the vector width must divide for aligned accesses, besides the length of
        ``over``."""
        axis = self.dims[over[0]] if over else None
        if axis is None:
            return []
        pitch = [f"{self.tensor}.stride[{axis - 1}]"] if axis > 0 and self._cut(range(axis, len(self.starts))) else []
        padding = [str(self.padding)] if any(self.dims[d] in self.padded for d in over) else []
        outside = [self.dims[d] or 0 for d in self.beyond if d in over and not self.padding]
        ends = [text for axis in outside for text in (f"{self.tensor}.shape[{axis}]", str(self.starts[axis]))]
        return pitch + ([self.offset] if self.offset else []) + padding + ends


class Views:
    """All views for the loads and stores of a kernel, by name."""

    def __init__(self, graph: Graph, inputs: tuple[str, ...], outputs: tuple[str, ...]) -> None:
        self.graph, self.inputs, self.outputs = graph, inputs, outputs
        self.of_load: dict[int, View] = {}
        parts = {t: [load for _, load in graph.loads() if load.tensor == t] for t in range(len(inputs))}
        taken = {*inputs, *outputs}
        names = dict(graph.names)
        for index, load in graph.loads():
            name = inputs[load.tensor]
            if len(parts[load.tensor]) > 1:
                part = f"_{names[index]}" if index in names else str(1 + parts[load.tensor].index(load))
                name += part
                while name in taken:
                    name += "_"
                taken.add(name)
            padding = graph.padding(load)
            starts = [None if s is None else graph.slices[s].start for s in load.slices]
            texts = [None if s is None else "0" if s.plus == -padding != 0 else s.text(inputs) for s in starts]
            padded = tuple(axis for d in graph.reduced if padding and (axis := load.dims[d]) is not None)
            beyond = [d for d, axis in enumerate(load.dims) if axis is not None and load.slices]
            outside = [
                d for d in beyond if (n := load.slices[load.dims[d] or 0]) is not None and graph.slices[n].beyond
            ]
            self.of_load[index] = View(
                name, inputs[load.tensor], load.dims, tuple(texts), padding=padding, padded=padded,
                beyond=tuple(outside),
            )  # fmt: skip
        self.of_gather: dict[int, View] = {}
        for index, gather in graph.gathers():
            again = [v for v in self.of_gather.values() if (v.tensor, v.dims) == (inputs[gather.tensor], gather.dims)]
            name = f"{inputs[gather.tensor]}Picked"
            while not again and (name in taken or any(view.name == name for view in self.of_gather.values())):
                name += "_"
            picked = View(name, inputs[gather.tensor], gather.dims, picked=gather.axis)
            self.of_gather[index] = next((view for view in again if view.picked == gather.axis), picked)
        self.by_name = {view.name: view for view in self.of_load.values()}
        self.loaded = list(self.by_name)
        self.by_name |= {view.name: view for view in self.of_gather.values()}
        self.by_name |= {
            name: View(name, name, output.dims) for name, output in zip(outputs, graph.outputs, strict=True)
        }

    @classmethod
    def nameless(cls, graph: Graph) -> Views:
        """Views with placeholder names, for questions about layouts."""
        read = [load.tensor for _, load in graph.loads()] + [gather.tensor for _, gather in graph.gathers()]
        inputs = 1 + max(read, default=-1)
        return cls(graph, tuple(f"x{i}" for i in range(inputs)), tuple(f"y{i}" for i in range(len(graph.outputs))))

    def __iter__(self) -> Iterator[View]:
        return iter(self.by_name.values())

    def run(self, over: Sequence[int]) -> tuple[int, ...]:
        """The longest suffix of ``over`` through which each view has a single stride or is broadcast."""

        def even(view: View, dims: Sequence[int]) -> bool:
            return view.contiguous(dims) or all(view.dims[d] is None for d in dims)

        return next(tuple(over[at:]) for at in range(len(over)) if all(even(view, over[at:]) for view in self))

    def width(self, length: str, over: Sequence[int]) -> str:
        """Text of the widest vector width up to ``vec`` that divides ``length`` and keeps accesses aligned."""
        quanta = dict.fromkeys(q for view in self for q in view.quanta(over))
        return f"math.gcd({', '.join([length, 'vec', *quanta])})"
