"""Fuses the mma instructions of a basic block into few large products, before register allocation.

A kernel issues a grid of mma that share operands: D[i, j] = A[i]·B[j] + C[i, j], and then another for the next k. They
do not touch memory, so they may sink past instructions that do not access their registers, and run as one matmul.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import NamedTuple

from cutegen_lab.emulator.translate.cfg import Block
from cutegen_lab.emulator.translate.emit import Emit
from cutegen_lab.emulator.translate.mma_product import Form, Names, Product, registers, rows_text


class _Mma(NamedTuple):
    """An mma instruction and its operands."""

    emit: Emit
    of: Product


@dataclass
class _Grid:
    """mma of one k step: ``cells[i][j]`` multiplies A ``i`` by B ``j``."""

    cells: list[list[_Mma]]

    def all(self) -> list[_Mma]:
        return [mma for row in self.cells for mma in row]

    def sums(self) -> list[list[Names]]:
        return [[mma.of.d for mma in row] for row in self.cells]


def fuse(block: Block) -> None:
    """Reorders the block's instructions and fuses its mma. Needs ``live_out``."""
    done: list[Emit] = []
    waiting: list[_Mma] = []
    uses: set[str] = set()
    defs: set[str] = set()
    todo = block.emits
    for at, emit in enumerate(todo):
        product = emit.product if emit.ins.guard is None else None
        if waiting and _meets(emit, product, waiting[0].of.form, uses, defs):
            done += _joined(waiting, set(block.live_out).union(*map(_reads, todo[at:])))
            waiting, uses, defs = [], set(), set()
        if product is None:
            done.append(emit)
        else:
            waiting.append(_Mma(emit, product))
            uses |= _reads(emit)
            defs |= set(emit.defs)
    block.emits = done + _joined(waiting, block.live_out)


def _reads(emit: Emit) -> set[str]:
    return set(emit.uses) | ({emit.ins.guard.name} if emit.ins.guard else set())


def _meets(emit: Emit, product: Product | None, form: Form, uses: set[str], defs: set[str]) -> bool:
    """True if ``emit`` must come after the waiting mma, which have ``form``, read ``uses`` and write ``defs``.

    An mma that only adds to their accumulators may join them.
    """
    if product is None:
        return bool(_reads(emit) & defs or set(emit.defs) & (uses | defs))
    return product.form != form or bool(product.operands() & defs or set(emit.defs) & (uses - defs))


def _joined(waiting: list[_Mma], needed: set[str]) -> list[Emit]:
    """The instructions of ``waiting``; the last one of each fused product performs it. ``needed``: registers read
    later."""
    grids = [grid for layer in _layers(waiting) for grid in _grids(layer)]
    at = 0
    while at < len(grids):
        steps = [grids[at]]
        while at + len(steps) < len(grids):
            rest = grids[at + len(steps) :]
            later = needed.union(*(registers(mma.of.c) for grid in rest[1:] for mma in grid.all()))
            if (more := _continues(steps, rest[0], later)) is None:
                break
            steps.append(more)
        _write(steps)
        at += len(steps)
    return [mma.emit for grid in grids for mma in grid.all()]


def _layers(waiting: list[_Mma]) -> list[list[_Mma]]:
    """Layers of mma in dependency order: those of one layer do not use each other's results."""
    layers: list[list[_Mma]] = []
    written: dict[str, int] = defaultdict(int)  # by register: the layer after the one that last wrote it
    read: dict[str, int] = defaultdict(int)
    for mma in waiting:
        c, d = registers(mma.of.c), registers(mma.of.d)
        layer = max(*(written[name] for name in c | d), *(read[name] for name in d), 0)
        read.update({name: max(read[name], layer + 1) for name in c})
        written.update(dict.fromkeys(d, layer + 1))
        if layer == len(layers):
            layers.append([])
        layers[layer].append(mma)
    return layers


def _grids(layer: list[_Mma]) -> list[_Grid]:
    """Complete grids if the mma form them, else single mma; in the order of their first instructions."""
    rows: dict[Names, dict[Names, _Mma]] = defaultdict(dict)
    for mma in layer:
        if mma.of.b in rows[mma.of.a]:
            return [_Grid([[each]]) for each in layer]
        rows[mma.of.a][mma.of.b] = mma
    alike: dict[frozenset[Names], list[dict[Names, _Mma]]] = defaultdict(list)
    for columns in rows.values():
        alike[frozenset(columns)].append(columns)
    return [_Grid([[row[b] for b in group[0]] for row in group]) for group in alike.values()]


def _continues(steps: list[_Grid], grid: _Grid, needed: set[str]) -> _Grid | None:
    """``grid`` in the row and column order of the last step, if it only adds to that step's results; else None."""
    form, sums = grid.cells[0][0].of.form, steps[-1].sums()
    by_c = {mma.of.c: mma for mma in grid.all()}
    made = [d for row in sums for d in row]
    if form.shape[2] * (len(steps) + 1) > form.sums_longer or by_c.keys() != set(made) or len(by_c) != len(grid.all()):
        return None
    cells = [[by_c[d] for d in row] for row in sums]
    straight = all(
        mma.of.a == row[0].of.a and mma.of.b == cells[0][j].of.b for row in cells for j, mma in enumerate(row)
    )
    forgotten = all(by_c[d].of.d == d or needed.isdisjoint(registers(d)) for d in made)
    return _Grid(cells) if straight and forgotten else None


def _write(steps: list[_Grid]) -> None:
    """Makes the last instruction perform the products of ``steps``; the others only check that their warps are
    complete."""
    *others, last = [mma.emit for grid in steps for mma in grid.all()]
    for emit in others:
        del emit.lines[1:]
    if others:
        call = last.lines[1].partition("((")[0]
        a = [[row[0].of.a for row in grid.cells] for grid in steps]
        b = [[mma.of.b for mma in grid.cells[0]] for grid in steps]
        c = [[mma.of.c for mma in row] for row in steps[0].cells]
        last.joined = others
        last.lines[1] = f"{call}{rows_text(steps[-1].sums(), a, b, c)})"
