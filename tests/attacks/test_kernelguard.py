"""Every rule that KernelGuard publishes has an answer, and what an answer refers to exists."""

from __future__ import annotations

import ast
import tomllib
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from tests.cheats import corpus

ROOT = Path(__file__).parents[2]
RULES = tomllib.loads((ROOT / "cutegen_lab/attacks/kernelguard.toml").read_text(encoding="utf-8"))
ANSWERS = ("impossible", "caught", "not_applicable")
CHEATS = {name.partition("@")[0]: corpus.open_reason(name) for name in corpus.names()}


@cache
def decorators_of_tests(file: str) -> dict[str, str]:
    """The test functions of a file, and what decorates each."""
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    functions = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name.startswith("test_")]
    return {f.name: " ".join(map(ast.unparse, f.decorator_list)) for f in functions}


def caught_today(shown_by: str) -> bool:
    """Raises KeyError or FileNotFoundError where there is no such cheat or test."""
    file, _, function = shown_by.partition("::")
    if not function:
        return not CHEATS[shown_by]
    decorators = decorators_of_tests(file)[function]
    return not any(mark in decorators for mark in ("mark.xfail", "mark.skip("))


def counts() -> str:
    kinds = Counter(kind for rule in RULES.values() for kind in ANSWERS if kind in rule)
    harder = sum("not_caught_yet" in rule for rule in RULES.values())
    return (
        f"of {len(RULES)} published rules, {kinds['impossible']} cannot exist here, {kinds['caught']} are caught"
        f"{f' ({harder} of them not in every form yet)' * bool(harder)}, {kinds['not_applicable']} do not apply"
    )


@pytest.mark.parametrize("name", RULES)
def test_a_rule_has_one_answer_that_holds(name: str) -> None:
    rule = RULES[name]
    assert set(rule) <= {"cheat", *ANSWERS, "not_caught_yet"}
    assert rule["cheat"] and len([kind for kind in ANSWERS if rule.get(kind)]) == 1
    assert all(caught_today(shown_by) for shown_by in rule.get("caught", ()))
    assert not any(caught_today(shown_by) for shown_by in rule.get("not_caught_yet", ()))
    assert "caught" in rule or "not_caught_yet" not in rule


@pytest.mark.parametrize(
    "missing", ["no_such_attack", "tests/attacks/test_kernelguard.py::test_no_such", "tests/no.py::f"]
)
def test_what_does_not_exist_shows_nothing(missing: str) -> None:
    with pytest.raises((KeyError, FileNotFoundError)):
        caught_today(missing)


def test_the_measured_page_says_how_many() -> None:
    text = (ROOT / "docs/measured.md").read_text(encoding="utf-8")
    assert counts() in " ".join(text.split())
