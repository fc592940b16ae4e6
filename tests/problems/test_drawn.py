"""Fewest rows that the judge's indices choose, compared with its own draws."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import cutegen_lab
from cutegen_lab.core.problem import Problem, TensorSpec
from cutegen_lab.core.roofline import GPUS, speed_of_light
from cutegen_lab.judge.draws.inputs import fill
from cutegen_lab.judge.draws.values import TILE
from cutegen_lab.problems import read_file, read_text
from cutegen_lab.problems.drawn import DRAWN_AT_ONCE, surely_different


def problem(expression: str, inputs: str) -> Problem:
    names = ", ".join(each.split(":")[0].strip() for each in inputs.split(", "))
    return read_text(f"def reference({names}):\n    return {expression}\n", inputs_text=inputs)


def read_of(given: Problem, name: str) -> int:
    return next(spec.compulsory_bytes for spec in given.workload.inputs if spec.name == name)


@pytest.mark.parametrize(
    ("draws", "cells"), [(1, 5), (20, 30), (16, 1000), (64, 64), (160, 10), (300, 40), (4096, 4096)]
)
def test_nearly_all_draws_reach_the_least_and_it_is_not_far_below_the_mean(draws: int, cells: int) -> None:
    g = torch.Generator().manual_seed(3)
    found = [len(torch.randint(cells, (draws,), generator=g).unique()) for _ in range(400)]
    least = surely_different(draws, cells)
    assert sum(n < least for n in found) <= 3
    assert least >= 0.65 * sum(found) / len(found)


def test_a_page_table_without_a_rule_repeats_pages() -> None:
    """89 of 128 indices are surely within the range of 256 (others may be negative): 75.2 ± 2.95 different pages."""
    paged = read_file(Path(cutegen_lab.__file__).parent / "replays" / "paged_decode.py")
    page = 2 * 16 * 8 * 128
    assert read_of(paged, "keys") == read_of(paged, "values") == 66 * page
    small = 2 * (2 * 8 * 8 * 128) + 8 * 128  # q, the result, and the table
    assert paged.workload.compulsory_bytes == 2 * 66 * page + small == 4_359_168
    assert paged.workload.nbytes == 2 * 256 * page + small == 16_811_008
    assert speed_of_light(paged, GPUS["H200"]).time_us == pytest.approx(4_359_168 / 4.8e6, rel=1e-6)
    for seed in range(30):
        *_, pages = fill(paged.workload, seed)
        assert len((pages % 256).unique()) >= 66, "no timed call reads fewer"


def test_a_table_with_a_rule_names_every_page_once() -> None:
    paged = problem("kv[pages].float().sum(1)", "kv: f16[256,64], pages: i64[8,16] distinct below kv[0]")
    assert read_of(paged, "kv") == 2 * 128 * 64


def test_a_problem_without_parts_carries_nothing() -> None:
    plain = problem("x @ w", "x: f32[64,32], w: f32[32,16]")
    assert all(spec.least_bytes is None for spec in plain.workload.tensors)
    assert plain.workload.compulsory_bytes == plain.workload.nbytes
    whole = problem("F.embedding(i, w)".replace("F.", "torch.nn.functional."), "i: i64[160] below 10, w: bf16[10,64]")
    assert all(spec.least_bytes is None for spec in whole.workload.tensors), "all ten rows are chosen"


def test_every_workload_has_its_own_least() -> None:
    sliced = problem("x[:, :8] * 2", "x: f32[64,16]; x: f32[4,16]")
    assert [w.inputs[0].least_bytes for w in sliced.workloads] == [4 * 64 * 8, 4 * 4 * 8]
    assert all(w.inputs[0].least_bytes is None for w in sliced.check_workloads), "only timed workloads have one"


def test_an_input_that_is_not_read_costs_nothing() -> None:
    unread = problem("x * 2", "x: f32[64], y: f32[1000]")
    assert read_of(unread, "y") == 0 and unread.workload.compulsory_bytes == 2 * 4 * 64


def test_the_least_is_no_part_of_a_problems_key_and_survives_json() -> None:
    given = problem("x[:, :8] * 2", "x: f32[64,16]")
    (x,) = given.workload.inputs
    assert TensorSpec.from_dict(x.to_dict()) == x
    old = {key: value for key, value in x.to_dict().items() if key != "least_bytes"}
    assert TensorSpec.from_dict(old).compulsory_bytes == x.nbytes, "a run stored before"
    before = given.with_workloads((type(given.workload)("main", (TensorSpec.from_dict(old),), given.workload.outputs),))
    assert before.key == given.key


def test_the_judge_draws_as_many_numbers_at_once() -> None:
    assert DRAWN_AT_ONCE == TILE
