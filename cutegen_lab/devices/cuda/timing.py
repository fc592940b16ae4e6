"""How a plan is timed on a GPU: CUDA events around one call, L2 flushed before each, median of many."""

from __future__ import annotations

from collections.abc import Callable

import torch

from cutegen_lab.devices.cuda.terms import LAUNCHES, WARM_UP


def measure_us(enqueue: Callable[[int], None]) -> list[float]:
    """Microseconds of each of ``LAUNCHES`` calls of ``enqueue(stream)``; twice L2 is written before each call."""
    stream = torch.cuda.current_stream()
    l2_bytes = torch.cuda.get_device_properties(stream.device).L2_cache_size
    flush = torch.empty(max(2 * l2_bytes, 1 << 28), dtype=torch.uint8, device="cuda")
    samples = []
    for index in range(WARM_UP + LAUNCHES):
        flush.zero_()
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record(stream)
        enqueue(stream.cuda_stream)
        end.record(stream)
        end.synchronize()
        if index >= WARM_UP:
            samples.append(start.elapsed_time(end) * 1e3)
    return samples


def copy_time_us(total_bytes: int) -> float:
    """Median microseconds of a device-to-device copy that reads and writes ``total_bytes`` altogether."""
    half = max(total_bytes // 2, 1)
    source = torch.empty(half, dtype=torch.uint8, device="cuda").fill_(1)
    target = torch.empty_like(source)
    samples = sorted(measure_us(lambda _stream: target.copy_(source)))
    return samples[len(samples) // 2]
