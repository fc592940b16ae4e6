"""Lower bound on the input bytes that a correct kernel must read, estimated by perturbing random 32-byte pieces of each
input and running the reference.

A kernel that loads fewer bytes did not compute its answer from the inputs. For gathers, masks and unused inputs the
bound is low or unknown, and nothing is required.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import torch

from cutegen_lab.core.counters import SECTOR_BYTES
from cutegen_lab.core.problem import TensorSpec, Workload
from cutegen_lab.core.verdict import Fault, Verdict
from cutegen_lab.judge.draws.inputs import draw
from cutegen_lab.judge.reference_device import ReferenceDevice
from cutegen_lab.problems import Reference
from cutegen_lab.problems.tensors import alike, moved, storage

PIECE_BYTES = SECTOR_BYTES  # one sector: the smallest transfer
PIECES = 48  # pieces of each input that are perturbed
ERROR_PROBABILITY = 1e-7  # probability that the lower bound is too high
AFFORDABLE_BYTES = 4 << 20  # largest workload whose reference is run on the CPU (some 50 times for each input)
# Fraction of the bound that a sample of blocks must load: its blocks may load less than the average.
SAMPLED_FRACTION = 0.8
_VALUES = ("normal", "large")  # distributions of a piece's new values: only large ones can change a maximum

Fractions = Mapping[str, float]
Tensors = Sequence[torch.Tensor]


def required_fraction(
    reference: Reference, workload: Workload, inputs: Tensors, seed: int, place: ReferenceDevice
) -> Fractions:
    """Fraction of each input's bytes, by name, on which the answer to ``inputs`` depends: a lower bound that is too
    high with probability at most ``ERROR_PROBABILITY``. Inputs without a bound are left out.

    If each of n random pieces changes the answer, the bound is ``ERROR_PROBABILITY`` ** (1/n): with a lower fraction,
    the probability that all n change it is below ``ERROR_PROBABILITY``.
    """
    if place.on_cpu and workload.nbytes > AFFORDABLE_BYTES:
        return {}
    generator = torch.Generator().manual_seed(seed)
    trials = [_choose_pieces(spec, seed, generator) for spec in workload.inputs]
    matter = place.run(partial(_all_pieces_matter, reference, workload, inputs, trials))
    return {
        spec.name: 1.0 if trial.whole else ERROR_PROBABILITY ** (1 / len(trial.chosen))
        for spec, trial, every in zip(workload.inputs, trials, matter, strict=True)
        if every
    }


class _Pieces(NamedTuple):
    """Pieces of one input (all of them if ``whole``) and, for each kind of values, the new values of each piece."""

    chosen: list[int]
    values: list[Tensors]
    whole: bool


def _choose_pieces(spec: TensorSpec, seed: int, generator: torch.Generator) -> _Pieces:
    pieces = -(-spec.storage_bytes // PIECE_BYTES)
    chosen = torch.randperm(pieces, generator=generator)[:PIECES].tolist()
    size = PIECE_BYTES // spec.dtype.itemsize
    flat = replace(spec, shape=(size * len(chosen),), strides=())
    values: list[Tensors] = [draw(Workload("pieces", (flat,), ()), name, seed)[0].split(size) for name in _VALUES]
    return _Pieces(chosen, values, len(chosen) == pieces)


def _all_pieces_matter(
    reference: Reference, workload: Workload, inputs: Tensors, trials: Sequence[_Pieces], where: str
) -> list[bool]:
    """For each input: whether it has pieces and every chosen one changes the answer."""
    there = [moved(t, spec, where) for t, spec in zip(inputs, workload.inputs, strict=True)]
    before = reference.run(there)
    memories = [storage(t, spec) for t, spec in zip(there, workload.inputs, strict=True)]
    return [
        bool(trial.chosen)
        and all(
            any(_changes_answer(reference, there, memory, piece, own[turn], before) for own in trial.values)
            for turn, piece in enumerate(trial.chosen)
        )
        for memory, trial in zip(memories, trials, strict=True)
    ]


def _changes_answer(
    reference: Reference, inputs: Tensors, memory: torch.Tensor, piece: int, values: torch.Tensor, before: Tensors
) -> bool:
    """Whether the answer changes when ``values`` replace ``piece`` of one input's ``memory``."""
    place = memory[piece * len(values) : (piece + 1) * len(values)]
    kept = place.clone()
    try:
        place.copy_(values[: len(place)])
        after = reference.run(inputs)
    except (IndexError, RuntimeError, ValueError, AssertionError, ZeroDivisionError):
        return False  # not a valid value for this input (an index, a divisor)
    finally:
        place.copy_(kept)
    return not all(alike(a, b) for a, b in zip(before, after, strict=True))


def check_inputs_read(
    workload: Workload, required: Fractions, counters: Mapping[str, float], sampled: bool = False
) -> Fault | None:
    """Fault for the first input of which fewer bytes were loaded than required, by a device's ``loaded_bytes:<input>``
    counters; None if there is none.

    ``sampled``: the counters are extrapolated from a sample of the blocks.
    """
    for spec in workload.inputs:
        loaded = counters.get(f"loaded_bytes:{spec.name}")
        share = required.get(spec.name, 0.0)
        if loaded is not None and loaded < share * (SAMPLED_FRACTION if sampled else 1.0) * spec.nbytes:
            return Fault(
                Verdict.UNREAD_INPUT,
                f"the answer depends on at least {share:.0%} of the {spec.nbytes:,} bytes of {spec.name!r}, and the "
                f"kernels load {loaded:,.0f} of them",
            )
    return None
