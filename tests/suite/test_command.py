"""``cutegen suite`` from outside, on the emulator."""

from __future__ import annotations

import json
import signal
import sys
import time
from pathlib import Path

import pytest

from tests.cli.command import cutegen, only_object, start

PROBLEMS = {
    "level1/1_relu.py": "import torch\n\n\ndef reference(x):  # x: f32[16, 64]\n    return torch.relu(x)\n",
    "level1/2_sum.py": (
        "import torch\nimport torch.nn as nn\n\n\nclass Model(nn.Module):\n    def forward(self, x):\n"
        "        return x.sum(dim=-1)\n\n\ndef get_inputs():\n    return [torch.rand(16, 64)]\n\n\n"
        "def get_init_inputs():\n    return []\n"
    ),
    "level1/3_broken.py": "def reference(x:\n",
    "level2/1_sort.py": "import torch\n\n\ndef reference(x):  # x: f32[16, 64]\n    return torch.sort(x).values\n",
}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    for name, text in PROBLEMS.items():
        (tmp_path / "set" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "set" / name).write_text(text)
    return tmp_path


@pytest.mark.kernel
def test_a_suite_is_one_table_and_is_not_run_twice(place: Path) -> None:
    command = ("suite", "set", "--max-steps", "1", "--device", "emulator", "--out", "out", "--jobs", "2")
    done = cutegen(place, *command, "--json")
    assert done.returncode == 1, done.stderr
    found = only_object(done)
    outcomes = {row["name"]: (row["outcome"], row["family"], row["level"]) for row in found["rows"]}
    assert outcomes == {
        "level1/1_relu": ("correct", "elementwise chain", 1), "level1/2_sum": ("correct", "row reduction", 1),
        "level1/3_broken": ("not read", "", 1), "level2/1_sort": ("nothing accepted", "", 2),
    }  # fmt: skip
    assert {row["kind"] for row in found["rows"] if row["time_us"]} == {"predicted"}
    assert found["summary"]["fast_eager"] is None and found["summary"]["correct"] == 2
    said = [line.split(":")[0].split() for line in done.stderr.splitlines()]
    assert [number for number, _ in said] == ["1/4", "2/4", "3/4", "4/4"]  # as they end
    assert sorted(name for _, name in said) == list(outcomes)
    runs = only_object(cutegen(place, "runs", "list", "--json"))["runs"]
    again = cutegen(place, *command)
    assert again.returncode == 1 and "fast_p: not computed" in again.stdout and "4 problems: 3 read" in again.stdout
    assert only_object(cutegen(place, "runs", "list", "--json"))["runs"] == runs and len(runs) == 3
    assert json.loads((place / "out" / "suite.json").read_text())["rows"] == found["rows"]
    assert "<script" not in (place / "out" / "suite.html").read_text()
    compared = cutegen(place, "suite", "compare", "out/suite.json", "out/suite.json")
    assert compared.returncode == 0 and "only out/suite.json solved: none" in compared.stdout
    policies = only_object(cutegen(place, "suite", "policies", "out/suite.json", "--json"))
    assert policies["problems"] == 3 and {"recorded", "2 without a gain"} <= {p["policy"] for p in policies["policies"]}
    assert policies["policies"][0]["candidates"] == 2 and policies["policies"][0]["speed_kept"] == 1.0


def test_ctrl_c_prints_the_table_so_far(place: Path) -> None:
    (place / "set" / "level1" / "0_bad.py").write_text("def reference(:\n")
    command = [sys.executable, "-m", "cutegen_lab", "suite", "set", "--device", "emulator"]
    process = start(place, [*command, "--provider", f"manual:{place / 'talk'}"])
    deadline = time.monotonic() + 60
    while not (place / "talk" / "0001.request.md").exists():
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=30)
    assert process.returncode == 130 and "Traceback" not in errors, errors
    assert "level1/0_bad" in out and "not ended: 4 of 5 problems" in out
    assert "the same command continues" in errors
    (run,) = only_object(cutegen(place, "runs", "list", "--json"))["runs"]
    assert run["step"] == "generate" and len(list((place / "lab" / "suites").glob("set-????/suite.html"))) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["suite", "nowhere"], "nowhere does not exist"),
        (["suite", "set", "--level", "one"], "'one' is not a list of levels"),
        (["suite", "set", "--level", "4"], "Levels there: 1, 2"),
        (["suite", "set", "--gpu", "V100"], "no speed-of-light figures for GPU 'V100'"),
        (["suite", "set", "--provider", "gpt"], "unknown provider 'gpt'"),
        (["suite", "set", "--max-cost", "1"], "a cap of"),
        (["suite", "compare", "a.json"], "compare takes two files, not 1"),
        (["suite", "policies"], "policies takes one file, not 0"),
        (["suite", "set", "--suite-cost", "1"], "a cap of"),
        (["suite", "set", "--jobs", "0"], "'0' is not a positive number"),
        (["suite", "kernelbench"], "no KernelBench in"),
        (["suite", "compare", "set/level1/1_relu.py", "b.json"], "is no record of a suite"),
    ],
)
def test_bad_input_is_one_line_and_status_2(place: Path, arguments: list[str], message: str) -> None:
    done = cutegen(place, *arguments)
    assert done.returncode == 2 and message in done.stderr, done
    assert len(done.stderr.strip().splitlines()) == 1 and not done.stdout


def test_a_foreign_file_is_not_replaced(place: Path) -> None:
    (place / "out").mkdir()
    (place / "out" / "suite.json").write_text("{}")
    done = cutegen(place, "suite", "set", "--out", "out")
    assert done.returncode == 2 and "suite.json exists, and cutegen did not write it" in done.stderr
