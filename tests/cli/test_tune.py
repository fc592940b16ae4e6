"""``cutegen tune`` from outside, on the emulator."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path

import pytest

from cutegen_lab.cli import main
from cutegen_lab.cli.arguments import build_parser
from cutegen_lab.cli.tune import _next_step
from cutegen_lab.session.kernels import read_kernel
from tests.cli.command import KERNEL, cutegen, only_object, start

pytestmark = pytest.mark.kernel
PROBLEM = "def reference(x):  # x: f32[8, 512]\n    return x * 2\n"
SCALE = """
import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute

TUNABLE = {"threads": (32, 64, 128, 256), "skip": (0, 1)}


def constraints(config, workload, device):
    return config["threads"] != 256


@cute.kernel
def scale(mX: cute.Tensor, mY: cute.Tensor, threads: cutlass.Constexpr, skip: cutlass.Constexpr):
    lane, _, _ = cute.arch.thread_idx()
    row, _, _ = cute.arch.block_idx()
    columns = mX.shape[1]
    for column in range(lane, columns, threads * (1 + skip)):
        mY[row, column] = mX[row, column] * 2.0


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor, stream: cuda.CUstream, threads: cutlass.Constexpr = 32,
           skip: cutlass.Constexpr = 0):
    scale(x, y, threads, skip).launch(grid=[x.shape[0], 1, 1], block=[threads, 1, 1], stream=stream)
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "double.py").write_text(PROBLEM)
    (tmp_path / "scale.py").write_text(SCALE)
    return tmp_path


def tune(*arguments: str) -> tuple[str, ...]:
    return ("tune", "double.py", *arguments, "--device", "emulator", "--json")


def test_a_template_is_tuned_and_a_second_search_goes_on_from_the_first(place: Path) -> None:
    first = only_object(cutegen(place, *tune("--budget", "4", "--out", "best.py", "--general")))
    assert (first["verdict"], first["kind"], first["search"]["evaluated"]) == ("passed", "predicted", 4)
    assert first["timing"]["kind"] == "predicted" and first["workloads"][0]["chosen_us"] > 0
    assert first["default_us"] >= first["time_us"]
    assert first["next"] == "cutegen judge double.py best.py --device emulator"
    text = (place / "best.py").read_text()
    assert read_kernel(text)[1] == first["best"] and "predicted on H200" in text
    cache = place / "lab" / "tuning.jsonl"
    cache.write_bytes(cache.read_bytes()[:-20])  # a crash while the fourth was being written
    done = cutegen(place, *tune("--budget", "6"))
    second = only_object(done)
    assert (second["search"]["from_cache"], second["search"]["evaluated"]) == (3, 3)
    assert "1 damaged line" in done.stderr and "3 configs were evaluated before" in done.stderr
    said = cutegen(place, "tune", "double.py", "--budget", "6", "--device", "emulator").stdout.splitlines()[-3:]
    assert said[0].startswith("default: vec=") and said[0].endswith(" µs predicted") and "the default" in said[1]
    assert said[2].startswith("next: cutegen run double.py ") and ("templates:vec=" in said[2]) == ("less" in said[1])
    done = cutegen(place, *tune("--simulate"))
    third = only_object(done)
    assert done.returncode == 0 and third["configs"] == 6 == len(third["steps"]) and 1 <= third["near"] <= 6


def test_a_kernels_own_space_and_the_judges_last_word(place: Path) -> None:
    """The fastest configs skip half of the work: they are found, checked, named as wrong and never reported as best."""
    search = ("tune", "double.py", "scale.py", "--device", "emulator", "--out", "best.py")
    done = cutegen(place, *search, "--general")
    assert done.returncode == 0, done.stderr
    assert "nothing was measured" in done.stdout and "not right: " in done.stdout and "2 ruled out" in done.stdout
    assert "default: threads=32 skip=0; " in done.stdout
    source, config = read_kernel((place / "best.py").read_text())
    assert source == SCALE and config["skip"] == 0 and config["threads"] != 256
    assert cutegen(place, *search).returncode == 0
    text = (place / "best.py").read_text()
    assert "TUNABLE" not in text and f"THREADS = {config['threads']}\n" in text and "# for this config only: " in text
    assert read_kernel(text) == (text.partition("\n\n")[2], {})
    done = cutegen(place, *search[:-2])
    assert done.stdout.endswith("next: the same command with --out scale_tuned.py, which writes this kernel\n")
    done = cutegen(place, "judge", "double.py", "best.py", "--device", "emulator")
    assert done.returncode == 0, done.stdout + done.stderr
    done = cutegen(place, "tune", "double.py", "best.py", "--device", "emulator")
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert "best.py was written for one config only" in done.stderr and "Write it with --general" in done.stderr
    rejected = [json.loads(line) for line in (place / "lab" / "tuning.jsonl").read_text().splitlines()]
    assert {e["config"]["skip"] for e in rejected if e["failure"] in ("unwritten_output", "wrong_result")} == {1}


@pytest.mark.parametrize(
    ("arguments", "faster", "says"),
    [
        ([], {"vec": 4, "order": "m"}, "cutegen run p.py --provider templates:vec=4,order=m"),
        (["--inputs", "x: f32[8]", "--gpu", "H100"], None, "cutegen run p.py --inputs 'x: f32[8]' --gpu H100"),
        (["--out", "k.py"], {"vec": 4}, "cutegen judge p.py k.py"),
        (["k.py"], {"vec": 4}, "the same command with --out k_tuned.py, which writes this kernel"),
    ],
)
def test_the_next_step(arguments: list[str], faster: dict[str, int | str] | None, says: str) -> None:
    assert _next_step(build_parser().parse_args(["tune", "p.py", *arguments]), faster) == says


def test_nothing_to_search(place: Path) -> None:
    done = cutegen(place, "tune", "double.py", str(KERNEL), "--device", "emulator")
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert "has no TUNABLE" in done.stderr and 'Add TUNABLE = {"threads": (64, 128, 256)}' in done.stderr


def test_a_kernel_without_tunable_is_made_a_template_and_tuned(place: Path) -> None:
    """64 is the block's size and the loop's step; the 2 of the arithmetic and the kernel's bounds stay."""
    text = (
        SCALE[: SCALE.index("TUNABLE")]
        + """
@cute.kernel
def scale(mX: cute.Tensor, mY: cute.Tensor):
    lane, _, _ = cute.arch.thread_idx()
    row, _, _ = cute.arch.block_idx()
    for column in range(lane, mX.shape[1], 64):
        mY[row, column] = mX[row, column] * 2.0


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor, stream: cuda.CUstream):
    scale(x, y).launch(grid=[x.shape[0], 1, 1], block=[64, 1, 1], stream=stream)
"""
    )
    (place / "scale.py").write_text(text)
    done = cutegen(place, *tune("scale.py", "--refactor", "--budget", "3", "--out", "best.py", "--general"))
    found = only_object(done)
    assert done.returncode == 0, done.stderr
    (kept,) = found["refactored"]["kept"]
    assert (kept["name"], kept["domain"], kept["places"]) == ("threads", [32, 64, 128, 256], 2)
    source, config = read_kernel((place / "best.py").read_text())
    assert "mX.shape[1], threads)" in source and "block=[threads, 1, 1]" in source and config == found["best"]


@pytest.mark.parametrize(
    ("arguments", "says"), [(["scale.py"], "has a TUNABLE already"), ([], "needs a kernel to make a template of")]
)
def test_nothing_to_refactor(
    place: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], arguments: list[str], says: str
) -> None:
    monkeypatch.chdir(place)
    status = main(["tune", "double.py", *arguments, "--refactor", "--device", "emulator", "--workdir", "lab"])
    assert status == 2 and says in capfd.readouterr().err


def test_nothing_to_simulate(place: Path) -> None:
    done = cutegen(place, *tune("scale.py", "--simulate"))
    assert done.returncode == 2 and "holds no evaluation of scale.py" in done.stderr


def test_a_space_that_constraints_empty(place: Path) -> None:
    (place / "scale.py").write_text(SCALE.replace('config["threads"] != 256', "False"))
    found = only_object(done := cutegen(place, *tune("scale.py")))
    assert done.returncode == 3 and found["best"] is None and found["search"]["ruled_out"] == 8
    assert "constraints() rules out" in done.stderr


def test_ctrl_c_keeps_what_is_known(place: Path) -> None:
    longer = SCALE.replace('"skip": (0, 1)', f'"skip": {tuple(range(40))}')  # than it takes a signal to arrive
    (place / "scale.py").write_text(longer)
    running = start(place, [sys.executable, "-m", "cutegen_lab", *tune("--budget", "90", "--out", "best.py")])
    assert running.stderr is not None
    for line in running.stderr:
        if "3/90" in line:
            running.send_signal(signal.SIGINT)
            break
    told, _ = running.communicate(timeout=60)
    found = json.loads(told)
    assert running.returncode == 130 and found["interrupted"] and found["leading"]["time_us"] > 0
    assert found["best"] is None and not (place / "best.py").exists()
    assert len((place / "lab" / "tuning.jsonl").read_text().splitlines()) >= 3


def test_a_search_that_was_killed_goes_on(place: Path) -> None:
    running = start(place, [sys.executable, "-m", "cutegen_lab", *tune("--budget", "90")])
    assert running.stderr is not None
    for line in running.stderr:
        if "4/90" in line:
            running.kill()
            break
    running.communicate(timeout=20)  # whose end is that of everything it started
    assert running.returncode == -signal.SIGKILL
    known = len((place / "lab" / "tuning.jsonl").read_bytes().splitlines())
    found = only_object(cutegen(place, *tune("--budget", str(known + 1))))
    assert found["search"]["from_cache"] >= 4 and found["search"]["evaluated"] <= 2 and found["verdict"] == "passed"
