"""Mounting: honest text in, hostile text out, and the honest lines stay where they are."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from cutegen_lab.attacks import Attack, NotApplicable, catalogue, mount
from cutegen_lab.compile import gate
from cutegen_lab.core.problem import Problem
from cutegen_lab.problems import read_text

HONEST = Path(__file__).parents[1] / "honest"
KERNELS = sorted(path.stem for path in (HONEST / "kernels").glob("*.py"))


def attack(name: str) -> Attack:
    return next(a for a in catalogue() if a.name == name)


def honest(name: str) -> tuple[Problem, str]:
    problem = read_text((HONEST / "problems" / f"{name}.py").read_text(), name=name)
    return problem, (HONEST / "kernels" / f"{name}.py").read_text()


@pytest.mark.parametrize("name", KERNELS)
def test_an_attack_with_scratch_fits_every_honest_kernel(name: str) -> None:
    problem, source = honest(name)
    hostile = mount(attack("writes_half"), problem, source)
    assert gate.check(hostile) == []
    changed = [
        (old, new)
        for old, new in zip(source.rstrip().split("\n"), hostile.split("\n"), strict=False)
        if old != new
    ]  # fmt: skip
    assert all("def honest_" in new for _, new in changed) and 1 <= len(changed) <= 2


def test_scratch_comes_after_the_kernels_own_workspace() -> None:
    problem, source = honest("column_sum_workspace")
    tree = ast.parse(mount(attack("writes_half"), problem, source))
    launch = [n for n in tree.body if isinstance(n, ast.FunctionDef)][-1]
    names = [a.arg for a in launch.args.args]
    assert names == ["x", "y", "part", "attack_scratch_0", "stream", "slices", "threads"]
    assert len(launch.args.defaults) == 2
    assert "list(honest_workspace(workload, config)) + [" in mount(attack("writes_half"), problem, source)


def test_a_name_that_the_kernel_has_already_is_left_to_it() -> None:
    problem, source = honest("grid_stride_add")
    hostile = mount(attack("hard_codes_zero"), problem, source + "\n\ndef flat(tensor):\n    return 1 / 0\n")
    assert "def attack_flat(tensor)" in hostile
    assert hostile.count("def flat(") == 1


@pytest.mark.parametrize(
    ("name", "source", "said"),
    [
        ("writes_half", "x = 1\n", "no launch"),
        ("writes_half", "def launch(x, stream): pass\n", "takes 1 tensors; the problem has 3"),
        ("writes_half", "def launch(:\n", "not valid Python"),
        ("output_with_eight_bits", "def launch(x, y, z, stream): pass\n", "it needs a 16-bit floating-point output"),
    ],
)
def test_what_does_not_fit_says_why(name: str, source: str, said: str) -> None:
    problem, _ = honest("grid_stride_add")
    with pytest.raises(NotApplicable, match=said):
        mount(attack(name), problem, source)
