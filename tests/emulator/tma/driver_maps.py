"""Tensor maps that an H200's driver encoded (tensor_maps.txt): name; arguments; bytes."""

from __future__ import annotations

from pathlib import Path

LINES = Path(__file__).with_name("tensor_maps.txt").read_text().splitlines()[1:]
