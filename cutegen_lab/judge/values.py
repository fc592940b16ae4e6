"""Numbers drawn at random where their generator is, the same for the same generator; on all cores of a CPU where they
are many. Whoever draws on a GPU makes it PyTorch's default device."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import torch

Shape = tuple[int, ...]
TILE = 1 << 22
FEW_ROWS = 4  # fewer hold several kinds one after another


def between(low: float, high: float, generator: torch.Generator) -> float:
    """One number, uniform over [low, high)."""
    return low + (high - low) * float(torch.rand((), generator=generator, device=generator.device))


def _filled(fill: Callable[[torch.Tensor, torch.Generator], object], shape: Shape, g: torch.Generator) -> torch.Tensor:
    """A float32 tensor filled in place by ``fill``; on a CPU a large one tile by tile on all cores, each tile from a
    seed of its own, so that values depend on ``g`` alone."""
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
    return _filled(lambda tile, own: tile.normal_(generator=own), shape, g)


def normal(scale: float, mean: float, shape: Shape, g: torch.Generator) -> torch.Tensor:
    return randn(shape, g).mul_(scale).add_(mean)


def standard(shape: Shape, g: torch.Generator) -> torch.Tensor:
    scale = 2 ** between(-1, 1, g)
    return normal(scale, scale * between(-0.5, 0.5, g), shape, g)


def place_of_one(shape: Shape, g: torch.Generator) -> int:
    """Where one element lies (flat), half of the time at an end of one of its dimensions, mostly the last."""
    place = [int(torch.randint(size, (), generator=g, device=g.device)) for size in shape]
    if shape and between(0, 1, g) < 0.5:
        dim = int(torch.randint(len(shape), (), generator=g, device=g.device)) if between(0, 1, g) < 0.5 else -1
        place[dim] = 0 if between(0, 1, g) < 0.3 else shape[dim] - 1
    flat = 0
    for at, size in zip(place, shape, strict=True):
        flat = flat * size + at
    return flat


def dealt(kinds: int, rows: int, columns: int, g: torch.Generator) -> torch.Tensor:
    """Which of ``kinds`` each row is of [rows, 1], every one as often; where rows are few, each of their places [rows,
    columns], in parts."""
    parts = kinds if rows < FEW_ROWS else 1
    chosen = (torch.randperm(rows * parts, generator=g) % kinds).view(rows, parts)
    return chosen if parts == 1 else chosen.gather(1, (torch.arange(columns) * parts // columns).expand(rows, columns))
