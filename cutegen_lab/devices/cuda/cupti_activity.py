"""A third clock: CUPTI activity records of when each kernel began and ended, read through PyTorch's profiler (Kineto).

They involve neither events nor the host, so they also show the overhead of the other two clocks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile, supported_activities

MARK = "spin_kernel"  # name of the kernel that torch.cuda._sleep launches


def available() -> bool:
    """Whether this PyTorch was built with CUPTI and finds it."""
    return ProfilerActivity.CUDA in supported_activities()


def spans(act: Callable[[int], object], count: int) -> list[float]:
    """Microseconds from the start of the first kernel to the end of the last, for each of ``count`` calls.

    ``act(number)`` enqueues any preparation, :func:`mark`, the call, and :func:`mark`. Raises RuntimeError if the
    records cannot be assigned to calls.
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
    """Launches a kernel of a known name, which marks the beginning or end of a call in the records."""
    torch.cuda._sleep(cycles)


def between_marks(records: Sequence[tuple[str, int, int]], count: int) -> list[float]:
    """For each pair of marks: microseconds from the begin of the first kernel between them to the end of the last.
    ``records``: (name, begin, end) in nanoseconds. Raises RuntimeError if there are not ``count`` such pairs."""
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
