"""Every error's next action in the words of the front end: the options it names are there, and no lower layer names
any."""

from __future__ import annotations

import argparse
import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import cutegen_lab
from cutegen_lab.cli.arguments import build_parser
from cutegen_lab.core.errors import CutegenError, NotCovered
from cutegen_lab.core.hints import Advice, Hint
from cutegen_lab.core.run import GenerateFailed, Step, StepFailed
from cutegen_lab.notebook.magics import CutegenMagics
from cutegen_lab.notebook.tune_magic import TuneMagic
from cutegen_lab.views.hints import COMMAND_LINE, NOTEBOOK, Spelling, advised, spelled
from tests.views.run_script import Script

OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
ROOT = Path(cutegen_lab.__file__).parent
FRONT = (
    "cli",
    "notebook",
    "bench",
    "__main__.py",
    "attacks/texts",
    "templates/kernels",
    "layouts",
)  # whose options are one table for both front ends
OTHER_PROGRAMS = (
    "devices/cuda/ncu.py",
    "devices/cuda/sanitizer.py",
    "compile/dsl.py",
    "session/rejudged.py",
    "views/hints.py",
)
ARCHS = ("sm_80", "sm_89")


def options(parser: argparse.ArgumentParser) -> Iterator[str]:
    for action in parser._actions:
        yield from action.option_strings
        if isinstance(action, argparse._SubParsersAction):
            for sub in action.choices.values():
                yield from options(sub)


def options_of(front: Spelling) -> set[str]:
    if front is COMMAND_LINE:
        return {*options(build_parser())}
    return {*options(CutegenMagics.cutegen_cell.parser), *options(TuneMagic.cutegen_tune.parser)}


@pytest.mark.parametrize("front", [COMMAND_LINE, NOTEBOOK], ids=["command line", "notebook"])
@pytest.mark.parametrize("code", Advice)
def test_every_code_has_a_sentence_of_options_that_there_are(code: Advice, front: Spelling) -> None:
    said = spelled(Hint(code, ARCHS), front)
    assert said.endswith(".") and len(said) > 10 and not re.search(r"\{\w*\}", said)
    named = {*OPTION.findall(said)} - ({"--entry"} if front is NOTEBOOK else set())  # bundling has no magic
    assert named <= options_of(front), named - options_of(front)
    if code in (Advice.KNOWN_ARCH, Advice.KNOWN_GPU, Advice.OTHER_ARCH):
        assert "sm_80" in said
    assert not OPTION.search(str(Hint(code, ARCHS)))


def test_the_fronts_differ_where_their_options_do() -> None:
    differ = {code for code in Advice if len({spelled(Hint(code), front) for front in (COMMAND_LINE, NOTEBOOK)}) == 2}
    assert {Advice.MORE_TOKENS, Advice.SEARCH_FIRST, Advice.LIST_RUNS, Advice.DOCTOR} <= differ


def test_an_error_is_advised_in_place() -> None:
    error = NotCovered("the templates do not cover x")
    assert str(error) == "the templates do not cover x. Use another provider."
    assert str(advised(error, COMMAND_LINE)).startswith("the templates do not cover x. Try --provider openai (a model")
    assert error.action.startswith("Try --provider openai")
    assert str(advised(CutegenError("no", "Say yes."), NOTEBOOK)) == "no. Say yes."


@pytest.mark.parametrize(
    ("front", "says"), [(COMMAND_LINE, "Raise --max-tokens, or"), (NOTEBOOK, "Raise --budget, or")]
)
def test_a_runs_note_is_spelled_where_it_is_shown(front: Spelling, says: str) -> None:
    from cutegen_lab.views.build import build_view

    hint = Hint(Advice.MORE_TOKENS)
    for event in (GenerateFailed("cap reached", hint=hint), StepFailed(Step.GENERATE, "cap reached", hint)):
        script = Script().start(Step.GENERATE).add(event)
        view = build_view(script.state(), script.events, front=front)
        assert view.note.startswith(f"cap reached. {says}")
        assert view.timeline[0].detail == view.note
        stopped = script.answer("stop", script.state().problem_note)  # as auto does
        assert build_view(stopped.state(), stopped.events, front=front).note == view.note


def test_no_lower_layer_names_an_option() -> None:
    found = []
    for path in ROOT.rglob("*.py"):
        name = str(path.relative_to(ROOT))
        if name.startswith(FRONT) or name in OTHER_PROGRAMS:
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        found += [
            f"{name}:{node.lineno}"
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
            and id(node) not in docs and OPTION.search(node.value)
        ]  # fmt: skip
    assert not found
