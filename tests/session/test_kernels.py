"""Exported files: comments that change nothing, and a config that comes back."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from cutegen_lab.core.errors import InputError, StoreError
from cutegen_lab.core.run import Answer, Answered
from cutegen_lab.loop import fold
from cutegen_lab.session.kernels import kernel_text, read_kernel, write_atomically
from tests.loop.events import generated, passing
from tests.loop.scripted import started

SOURCE = '"""Doc\r\nstring."""\nfrom __future__ import annotations\n\n# cutegen config: not this one\nx = 1\\\n + 1\n'


def state_of(source: str = SOURCE, config: dict[str, int] | None = None):  # type: ignore[no-untyped-def]
    from dataclasses import replace

    event = generated("c1", source=source)
    proposal = replace(event.candidate.proposal, config=config or {})
    event = replace(event, candidate=replace(event.candidate, proposal=proposal))
    return fold([started(), event, *passing("c1")[1:], Answered(Answer("approve"))])


def test_the_text_is_kept_and_means_the_same() -> None:
    text = kernel_text(state_of(), "c1")
    assert text.endswith(SOURCE)
    assert ast.dump(ast.parse(text)) == ast.dump(ast.parse(SOURCE))
    compile(text, "kernel", "exec")


def test_the_config_comes_back() -> None:
    config = {"threads": 256, "fast": True, "scale": 0.5, "mode": "a"}
    text = kernel_text(state_of(config=config), "c1")
    assert read_kernel(text) == (SOURCE, config)
    touched = text.replace("x = 1", "x = 2")
    assert read_kernel(touched) == (touched, config)
    for plain in (SOURCE, "", "# a comment\n\nx = 1\n"):
        assert read_kernel(plain) == (plain, {})


@pytest.mark.parametrize("line", ["# cutegen config: {", "# cutegen config: [1]"])
def test_a_damaged_config_is_named(line: str) -> None:
    with pytest.raises(InputError, match="cutegen config"):
        read_kernel(f"{line}\nx = 1\n")


def test_files_are_written_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "k.py"
    path.write_text("old")
    write_atomically(path, kernel_text(state_of(), "c1"))
    assert [p.name for p in tmp_path.iterdir()] == ["k.py"]
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot write"):
        write_atomically(tmp_path / "file" / "k.py", kernel_text(state_of(), "c1"))
