"""Random numbers on their generator's device, equal for equal generators; on a CPU, large tensors are filled on all
cores. To draw on a GPU, make it PyTorch's default device."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import torch

from cutegen_lab.problems.drawn import DRAWN_AT_ONCE

Shape = tuple[int, ...]
TILE = DRAWN_AT_ONCE
FEW_ROWS = 4  # with fewer rows, a row holds several kinds


def between(low: float, high: float, generator: torch.Generator) -> float:
    """One number, uniform over [low, high)."""
    return low + (high - low) * float(torch.rand((), generator=generator, device=generator.device))


def _filled(fill: Callable[[torch.Tensor, torch.Generator], object], shape: Shape, g: torch.Generator) -> torch.Tensor:
    """A float32 tensor filled in place by ``fill``. On a CPU a large one is filled tile by tile on all cores, each tile
    from its own seed, so that values depend only on ``g``."""
    values = torch.empty(shape, device=g.device)
    tiles = values.view(-1).split(TILE)
    if len(tiles) == 1 or g.device.type != "cpu":
        fill(values, g)
        return values
    seeds = torch.randint(1 << 62, (len(tiles),), generator=g).tolist()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda tile, seed: fill(tile, torch.Generator().manual_seed(seed)), tiles, seeds))
    return values


def rand(shape: Shape, g: torch.Generator) -> torch.Tensor:
    """Uniform over [0, 1)."""
    return _filled(lambda tile, own: tile.uniform_(generator=own), shape, g)


def randn(shape: Shape, g: torch.Generator) -> torch.Tensor:
    """Standard normal values."""
    return _filled(lambda tile, own: tile.normal_(generator=own), shape, g)


def normal(scale: float, mean: float, shape: Shape, g: torch.Generator) -> torch.Tensor:
    """Normal values with standard deviation ``scale``."""
    return randn(shape, g).mul_(scale).add_(mean)


def moderate_normal(shape: Shape, g: torch.Generator) -> torch.Tensor:
    """Normal values with a scale from 0.5 to 2 and a mean of at most half of that."""
    scale = 2 ** between(-1, 1, g)
    return normal(scale, scale * between(-0.5, 0.5, g), shape, g)


def random_position(shape: Shape, g: torch.Generator) -> int:
    """Flat index of one element; half of the time at an end of one dimension, mostly the last."""
    place = [int(torch.randint(size, (), generator=g, device=g.device)) for size in shape]
    if shape and between(0, 1, g) < 0.5:
        dim = int(torch.randint(len(shape), (), generator=g, device=g.device)) if between(0, 1, g) < 0.5 else -1
        place[dim] = 0 if between(0, 1, g) < 0.3 else shape[dim] - 1
    flat = 0
    for at, size in zip(place, shape, strict=True):
        flat = flat * size + at
    return flat


def assign_kinds(kinds: int, rows: int, columns: int, g: torch.Generator) -> torch.Tensor:
    """Kind (of ``kinds``) of each row as [rows, 1], each equally often; with few rows, of each part of a row as [rows,
    columns]."""
    parts = kinds if rows < FEW_ROWS else 1
    chosen = (torch.randperm(rows * parts, generator=g) % kinds).view(rows, parts)
    return chosen if parts == 1 else chosen.gather(1, (torch.arange(columns) * parts // columns).expand(rows, columns))
