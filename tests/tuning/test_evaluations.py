"""The cache of evaluations: what survives crashes, damage, other places and other processes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from cutegen_lab.core.errors import StoreError
from cutegen_lab.core.hashing import sha256
from cutegen_lab.core.problem import Problem
from cutegen_lab.tuning import Evaluation, Evaluations, Place
from cutegen_lab.tuning.evaluations import source_key

PLACE = Place("a" * 64, "sm_90a", "NVIDIA H200", "580.1", "measured")
SHAPE = "bf16[64,1024];bf16[64,1024]"


def evaluation(vec: int, time_us: float | None = 10.0, **more: object) -> Evaluation:
    failed = {} if time_us else {"failure": "hang"}
    return Evaluation({"vec": vec}, SHAPE, time_us, **{**failed, **more})  # type: ignore[arg-type]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "lab" / "tuning.jsonl"


def test_what_was_added_comes_back(path: Path) -> None:
    first = Evaluations(path, PLACE)
    first.add(evaluation(1))
    first.add(evaluation(2, None, reason="no answer"))
    first.add(evaluation(1, 9.5, samples=12))
    again = Evaluations(path, PLACE)
    assert again.get({"vec": 1}, SHAPE).time_us == 9.5  # type: ignore[union-attr]
    assert again.get({"vec": 2}, SHAPE).failure == "hang"  # type: ignore[union-attr]
    assert again.get({"vec": 3}, SHAPE) is None and again.get({"vec": 1}, "f32[1]") is None
    assert len(list(again)) == 2 and again.damaged == 0
    assert path.read_text().count("\n") == 3


@pytest.mark.parametrize(
    "other",
    [
        {"source_sha256": "b" * 64}, {"arch": "sm_80"}, {"device": "A100"}, {"driver": "570"}, {"kind": "predicted"},
    ],
)  # fmt: skip
def test_another_place_is_another_evaluation(path: Path, other: dict[str, str]) -> None:
    Evaluations(path, PLACE).add(evaluation(1))
    assert Evaluations(path, replace(PLACE, **other)).get({"vec": 1}, SHAPE) is None  # type: ignore[arg-type]


def test_what_failed_at_full_precision_may_pass_in_tf32() -> None:
    problem = Problem("p", "", "reference", ())
    assert source_key("a kernel", problem) == sha256("a kernel")
    assert source_key("a kernel", replace(problem, tf32=True)) != sha256("a kernel")


def test_a_line_that_was_cut_short_is_left_out_and_the_next_begins_anew(path: Path) -> None:
    first = Evaluations(path, PLACE)
    first.add(evaluation(1))
    first.add(evaluation(2))
    data = path.read_bytes()
    path.write_bytes(data[:-40])
    again = Evaluations(path, PLACE)
    assert again.damaged == 1 and again.get({"vec": 1}, SHAPE) and not again.get({"vec": 2}, SHAPE)
    again.add(evaluation(4))
    last = Evaluations(path, PLACE)
    assert last.damaged == 1 and last.get({"vec": 4}, SHAPE) and last.get({"vec": 1}, SHAPE)


@pytest.mark.parametrize(
    "change",
    [
        {"time_us": 0.001}, {"time_us": -1.0}, {"time_us": None}, {"time_us": "fast"},
        {"schema": "cutegen-evaluation-9"}, {"config": {"vec": 8}}, {"config": None}, {"key": "0"},
    ],
)  # fmt: skip
def test_lines_that_say_something_else_are_left_out(path: Path, change: dict[str, object]) -> None:
    Evaluations(path, PLACE).add(evaluation(1))
    line = {**json.loads(path.read_text()), **change}
    sound = evaluation(2)
    path.write_text(json.dumps(line) + "\n[]\nnull\n\x00\xff\n\n")
    again = Evaluations(path, PLACE)
    again.add(sound)
    if "time_us" in change and change["time_us"] == 0.001:  # a number that could be: nothing tells it from the true one
        assert again.damaged == 3
        return
    assert again.damaged == 4 and list(again) == [sound]


def test_two_writers_share_one_file(path: Path) -> None:
    one, other = Evaluations(path, PLACE), Evaluations(path, replace(PLACE, device="A100"))
    for vec in (1, 2, 4):
        one.add(evaluation(vec))
        other.add(evaluation(vec, 20.0))
    assert len(list(Evaluations(path, PLACE))) == 3 and Evaluations(path, PLACE).damaged == 0


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot use"):
        Evaluations(tmp_path / "file" / "tuning.jsonl", PLACE)


@pytest.mark.parametrize(("time_us", "failure"), [(None, ""), (1.0, "hang"), (float("inf"), ""), (0.0, "")])
def test_impossible_evaluations(time_us: float | None, failure: str) -> None:
    with pytest.raises(ValueError, match="time"):
        Evaluation({}, SHAPE, time_us, failure=failure)
