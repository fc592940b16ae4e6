"""A folder with a problem in it, which commands are given in."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "softmax.py").write_text(
        "import torch\n\n\ndef reference(x):  # x: bf16[64, 1024]\n    return torch.softmax(x, dim=-1)\n"
    )
    return tmp_path
