"""The pictures of ``docs/layouts.md`` are what its commands draw; ``--accept`` draws them anew."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from cutegen_lab.cli import main

DOCS = Path(__file__).parents[2] / "docs"
COMMANDS = re.findall(r"^cutegen (layout .*)$", (DOCS / "layouts.md").read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_picture_is_what_its_command_draws(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    *words, file = shlex.split(command)
    (tmp_path / file).parent.mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert main([*words, file]) == 0
    drawn = (tmp_path / file).read_text(encoding="utf-8")
    if request.config.getoption("--accept"):
        (DOCS / file).write_text(drawn, encoding="utf-8")
    assert (DOCS / file).read_text(encoding="utf-8") == drawn


def test_every_picture_is_drawn_and_shown() -> None:
    files = {f"images/layouts/{path.name}" for path in (DOCS / "images/layouts").iterdir()}
    shown = re.findall(r"\]\((images/layouts/.*?)\)", (DOCS / "layouts.md").read_text(encoding="utf-8"))
    assert files == set(shown) == {shlex.split(command)[-1] for command in COMMANDS}
