"""Derives a launch plan from several recordings of a launcher.

Bytes that are a tensor's address in all recordings become relocations; bytes that no kernel can see (padding, the
second half of a TMA descriptor) become zero; any other difference makes the plan unstable. Runs in the parent on data
from the cage: everything is checked before use.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from cutegen_lab.compile.ptx import Entry, Param
from cutegen_lab.core.artifact import Launch, LaunchPlan, Relocation
from cutegen_lab.core.problem import TensorSpec
from cutegen_lab.core.verdict import Verdict

MAX_LAUNCHES = 4096
CLUSTER_DIMENSION = 4
# cudaLaunchAttributeID (driver_types.h) -> number of meaningful bytes of its value; all zero is the default
_VALUE_BYTES = {2: 4, CLUSTER_DIMENSION: 12, 5: 4, 6: 4, 8: 4, 9: 8, 10: 4, 11: 12, 14: 4}
_SLACK = 1 << 28  # an address at most this many bytes outside a tensor still belongs to it
_TENSOR_MAP_BYTES, _MAP_SLACK = 128, 1 << 44  # the same in a tensor map, whose copies add large coordinates


class PlanError(Exception):
    """The recordings give no plan: a verdict and a reason."""

    def __init__(self, verdict: Verdict, reason: str) -> None:
        super().__init__(reason)
        self.verdict, self.reason = verdict, reason


@dataclass(frozen=True)
class Recording:
    """One run of the launcher on the stand-in runtime."""

    bases: tuple[int, ...]
    """Base address of each tensor."""
    error: int
    """Error code that the launcher returned."""
    log: str
    """The stand-in's log of runtime calls."""


@dataclass(frozen=True)
class _Call:
    kernel: str
    shape: tuple[int, ...]  # grid, block, dynamic shared memory
    attributes: dict[int, bytes]
    params: tuple[bytes, ...]


def build_plan(
    recordings: Sequence[Recording],
    entries: Sequence[Entry],
    tensors: Sequence[TensorSpec],
    workspace: tuple[TensorSpec, ...],
) -> LaunchPlan:
    """The plan common to two or more ``recordings``. ``tensors``: inputs, outputs, workspace. Raises PlanError."""
    if any(len(r.bases) != len(tensors) for r in recordings):
        raise PlanError(Verdict.COMPILE_CRASH, f"a recording does not have {len(tensors)} tensors")
    (first, *others), (base, *bases) = map(_parse, recordings), [r.bases for r in recordings]
    pairs = zip(others, bases, strict=True)
    found, *again = (_plan_of_two(first, other, (base, at), entries, tensors, workspace) for other, at in pairs)
    if any(plan != found for plan in again):
        raise PlanError(
            Verdict.UNSTABLE_PLAN,
            "recordings at different addresses ask for different launches; a launch may depend on shapes, dtypes and "
            "config, and on addresses only as pointers into its tensors",
        )
    return found


def _plan_of_two(
    first: Sequence[_Call],
    second: Sequence[_Call],
    bases: tuple[tuple[int, ...], tuple[int, ...]],
    entries: Sequence[Entry],
    tensors: Sequence[TensorSpec],
    workspace: tuple[TensorSpec, ...],
) -> LaunchPlan:
    if [c.kernel for c in first] != [c.kernel for c in second]:
        raise PlanError(Verdict.UNSTABLE_PLAN, "two recordings launch different kernels; launch() must be a function "
                        "of shapes, dtypes and config alone")  # fmt: skip
    if not first:
        raise PlanError(Verdict.CONTRACT, "launch() launched no kernel")
    by_name = {e.name: e for e in entries}
    launches = []
    for index, (a, b) in enumerate(zip(first, second, strict=True)):
        entry = by_name.get(a.kernel)
        if entry is None or len(entry.params) != len(a.params) or len(a.params) != len(b.params):
            raise PlanError(Verdict.COMPILE_CRASH, f"launch {index} of {a.kernel!r} does not match any compiled kernel")
        launches.append(_launch(index, a, b, entry, bases, tensors))
    return LaunchPlan(tuple(launches), workspace)


def _launch(
    index: int,
    a: _Call,
    b: _Call,
    entry: Entry,
    bases: tuple[tuple[int, ...], tuple[int, ...]],
    tensors: Sequence[TensorSpec],
) -> Launch:
    where = f"launch {index} ({a.kernel})"
    if a.shape != b.shape or a.attributes != b.attributes:
        raise PlanError(
            Verdict.UNSTABLE_PLAN,
            f"{where}: two recordings ask for different launches: {_describe(a)} and {_describe(b)}",
        )
    grid, block = a.shape[0:3], a.shape[3:6]
    if 0 in grid or 0 in block:
        raise PlanError(
            Verdict.INVALID_PLAN, f"{where}: grid {grid}, block {block}: every dimension must be at least 1"
        )
    params, relocations = [], []
    for number, (left, right, param) in enumerate(zip(a.params, b.params, entry.params, strict=True)):
        blob, moved = _param(f"{where}, parameter {number}", number, left, right, param, bases, tensors)
        params.append(blob)
        relocations += moved
    attributes = dict(a.attributes)
    cluster_bytes = attributes.pop(CLUSTER_DIMENSION, b"")
    cluster = struct.unpack_from("<III", cluster_bytes) if cluster_bytes else (1, 1, 1)
    return Launch(
        kernel=a.kernel,
        grid=(grid[0], grid[1], grid[2]),
        block=(block[0], block[1], block[2]),
        cluster=(cluster[0], cluster[1], cluster[2]),
        dynamic_smem_bytes=a.shape[6],
        params=tuple(params),
        relocations=tuple(relocations),
        attributes=attributes,
    )


def _param(
    where: str,
    number: int,
    left: bytes,
    right: bytes,
    param: Param,
    bases: tuple[tuple[int, ...], tuple[int, ...]],
    tensors: Sequence[TensorSpec],
) -> tuple[bytes, list[Relocation]]:
    """One parameter's canonical bytes (zero in addresses and in bytes that the kernel cannot see) and its
    relocations."""
    if not len(left) == len(right) == param.size:
        raise PlanError(Verdict.COMPILE_CRASH, f"{where}: {len(left)} bytes recorded, {param.size} declared")
    blob = bytearray(x if seen else 0 for x, seen in zip(left, param.live, strict=True))
    other = bytes(x if seen else 0 for x, seen in zip(right, param.live, strict=True))
    relocations = []
    offset = 0
    while offset + 8 <= len(blob):
        found = _address(blob, other, offset, bases, tensors, _MAP_SLACK if param.size == _TENSOR_MAP_BYTES else _SLACK)
        if found is None:
            offset += 4
            continue
        tensor, tensor_offset = found
        relocations.append(Relocation(number, offset, tensor, tensor_offset))
        blob[offset : offset + 8] = bytes(8)
        other = other[:offset] + bytes(8) + other[offset + 8 :]
        offset += 8
    if bytes(blob) != other:
        at = next(i for i, (x, y) in enumerate(zip(blob, other, strict=True)) if x != y)
        raise PlanError(
            Verdict.UNSTABLE_PLAN,
            f"{where}: byte {at} is {blob[at]:#04x} in one recording and {other[at]:#04x} in another; a launch may "
            "depend on shapes, dtypes and config, and on addresses only as pointers into its tensors",
        )
    return bytes(blob), relocations


def _address(
    left: bytes | bytearray,
    right: bytes,
    offset: int,
    bases: tuple[tuple[int, ...], tuple[int, ...]],
    tensors: Sequence[TensorSpec],
    slack: int,
) -> tuple[int, int] | None:
    """(tensor, offset) if eight bytes address the same place of the same tensor in both recordings; otherwise None."""
    a = struct.unpack_from("<Q", left, offset)[0]
    b = struct.unpack_from("<Q", right, offset)[0]
    for index, tensor in enumerate(tensors):
        delta = a - bases[0][index]
        if -slack <= delta <= tensor.storage_bytes + slack and delta == b - bases[1][index]:
            return index, delta
    return None


def _parse(recording: Recording) -> list[_Call]:
    """Launches in a stand-in's log. Raises PlanError."""
    calls: list[_Call] = []
    for line in recording.log.splitlines():
        kind, _, rest = line.partition(" ")
        try:
            if kind == "launch":
                name, *numbers = rest.split(" ")
                shape = tuple(map(int, numbers))
                if len(shape) != 7 or min(shape) < 0 or len(calls) >= MAX_LAUNCHES:
                    raise ValueError
                calls.append(_Call(name, shape, {}, ()))
            elif kind == "attribute":
                number, _, value = rest.partition(" ")
                _add_attribute(calls[-1].attributes, int(number), bytes.fromhex(value))
            elif kind == "param":
                last = calls[-1]
                calls[-1] = _Call(last.kernel, last.shape, last.attributes, (*last.params, bytes.fromhex(rest)))
            elif kind == "astray":
                raise PlanError(
                    Verdict.CONTRACT,
                    f"launch {len(calls) - 1} ({calls[-1].kernel}) is not on launch()'s stream, so that nothing orders "
                    "it after what its caller did there: write .launch(..., stream=stream)",
                )
            elif kind == "refused":
                raise PlanError(
                    Verdict.CONTRACT,
                    f"launch() makes the host call {rest[:64]}; it may only launch kernels: take scratch memory from "
                    "workspace() and clear it in a kernel",
                )
            elif kind == "invalid":
                symbol, _, what = rest.partition(" ")
                raise PlanError(Verdict.CONTRACT, f"launch() calls {symbol[:64]} with {what[:200]}")
            else:
                raise ValueError
        except (ValueError, IndexError):
            raise PlanError(Verdict.COMPILE_CRASH, f"an invalid line in a recording: {line[:120]!r}") from None
    if recording.error:
        raise PlanError(Verdict.CONTRACT, f"the compiled launcher returned CUDA error {recording.error}")
    return calls


def _add_attribute(attributes: dict[int, bytes], number: int, value: bytes) -> None:
    """Stores the meaningful bytes of a launch attribute, unless it has its default value."""
    value = value[: _VALUE_BYTES.get(number, 64)]
    if any(value):
        attributes[number] = value


def _describe(call: _Call) -> str:
    grid, block, smem = call.shape[0:3], call.shape[3:6], call.shape[6]
    return f"grid {grid} block {block} shared {smem} attributes { {k: v.hex() for k, v in call.attributes.items()} }"
