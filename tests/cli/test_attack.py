"""``cutegen judge --attack``: what is caught by what, and the exit status that follows."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from cutegen_lab.attacks import catalogue
from cutegen_lab.cli import main
from cutegen_lab.session import attack as session_attack
from tests.cli.command import KERNEL

pytestmark = pytest.mark.kernel
CAUGHT = ("writes_nothing", "reads_files", "hard_codes_one")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "softmax.py").write_text("def reference(x):  # x: bf16[4, 64]\n    return x.softmax(-1)\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CUTEGEN_CACHE", str(tmp_path / "cache"))
    return tmp_path


@pytest.fixture
def only(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def choose(*names: str) -> None:
        chosen = tuple(a for a in catalogue() if a.name in names)
        monkeypatch.setattr(session_attack, "catalogue", lambda: chosen)

    return choose


def test_all_caught(place: Path, only: Callable[..., None], capfd: pytest.CaptureFixture[str]) -> None:
    only(*CAUGHT, "inputs_through_tf32")
    assert main(["judge", "softmax.py", str(KERNEL), "--attack", "--device", "emulator"]) == 0
    told = capfd.readouterr().out
    assert "the kernel itself: passed" in told
    assert "unwritten_output: outputs are poisoned" in told
    assert "not applicable inputs_through_tf32" in told and "it needs a float32 input" in told
    assert "4 attacks: 3 caught, 1 not applicable" in told


def test_one_object_and_status_3_for_what_is_not_caught(
    place: Path, only: Callable[..., None], capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    only("writes_nothing", "hard_codes_one")
    monkeypatch.setattr(session_attack, "mount", lambda attack, problem, honest: honest)  # an attack that does nothing
    assert main(["judge", "softmax.py", str(KERNEL), "--attack", "--json", "--device", "emulator"]) == 3
    told = capfd.readouterr()
    data = json.loads(told.out)
    assert (data["verdict"], data["all_caught"]) == ("passed", False)
    assert [(a["name"], a["status"]) for a in data["attacks"]] == [
        ("hard_codes_one", "NOT CAUGHT"), ("writes_nothing", "NOT CAUGHT"),
    ]  # fmt: skip
    assert data["attacks"][0]["should_be_caught_by"]
    assert "attack 1: " in told.err  # minutes of silence otherwise


def test_a_kernel_that_does_not_pass_is_not_attacked(place: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (place / "wrong.py").write_text(KERNEL.read_text().replace("value / total", "value / (total + 1.0)"))
    assert main(["judge", "softmax.py", "wrong.py", "--attack", "--device", "emulator"]) == 3
    told = capfd.readouterr().out
    assert "wrong_result" in told and "would prove nothing" in told


def test_an_artifact_cannot_be_attacked(place: Path, capfd: pytest.CaptureFixture[str]) -> None:
    empty = {"schema": "cutegen-artifact", "schema_version": 1, "source_sha256": "", "config": {}, "arch": "sm_90a",
             "dsl_version": "", "builds": {}, "isolation": []}  # fmt: skip
    (place / "artifact.json").write_text(json.dumps(empty))
    assert main(["judge", "softmax.py", "artifact.json", "--attack"]) == 2
    assert "needs the kernel's text" in capfd.readouterr().err
