"""A third clock: CUPTI's own records of when every kernel began and ended, through PyTorch's profiler (Kineto).

No event and no host is in them, so they also say what the other two clocks add.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile, supported_activities

MARK = "spin_kernel"  # what torch.cuda._sleep launches


def available() -> bool:
    """Whether this PyTorch was built with CUPTI, and finds it."""
    return ProfilerActivity.CUDA in supported_activities()


def spans(act: Callable[[int], object], count: int) -> list[float]:
    """Microseconds from the beginning of the first kernel of each of ``count`` calls to the end of its last.

    ``act`` (given the call's number) enqueues whatever must come before, :func:`mark`, the call, and :func:`mark`.
    Raises RuntimeError where the records cannot be told apart.
    """
    with profile(activities=[ProfilerActivity.CUDA]) as recorded:
        for number in range(count):
            act(number)
            torch.cuda.synchronize()
    results = recorded.profiler.kineto_results if recorded.profiler else None
    if results is None:
        raise RuntimeError("PyTorch's profiler kept no records")
    kernels = [e for e in results.events() if e.device_type() == DeviceType.CUDA]
    return between_marks([(e.name(), e.start_ns(), e.start_ns() + e.duration_ns()) for e in kernels], count)


def mark(cycles: int = 1) -> None:
    torch.cuda._sleep(cycles)


def between_marks(records: Sequence[tuple[str, int, int]], count: int) -> list[float]:
    """Of ``records`` (name, begin and end in nanoseconds): the microseconds from first to last between each pair of
    marks. Raises RuntimeError."""
    found: list[float] = []
    inside: list[tuple[int, int]] | None = None
    for name, begin, end in sorted(records, key=lambda record: record[1]):
        if MARK in name:
            if inside is None:
                inside = []
            else:
                found += [(max(e for _, e in inside) - inside[0][0]) / 1e3] if inside else []
                inside = None
        elif inside is not None:
            inside.append((begin, end))
    if len(found) != count:
        raise RuntimeError(f"the records hold {len(found)} calls, not {count}")
    return found
