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
from cutegen_lab.notebook.layout_magic import LayoutMagic
from cutegen_lab.notebook.magics import CutegenMagics
from cutegen_lab.notebook.tune_magic import TuneMagic
from cutegen_lab.views.hints import COMMAND_LINE, NOTEBOOK, Spelling, advised, spelled
from tests.views.run_script import Script

OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
ROOT = Path(cutegen_lab.__file__).parent
COMMAND = re.compile(r"`[%!]*cutegen |%%?cutegen|%cute_")
SPELLS = (
    "cli/", "notebook/", "server/",  # front ends
    "views/hints.py",  # the table of what they say
    "views/again.py",  # writes the command that starts a run again, for pages that are read outside both
    "layouts/options.py",  # arguments of `cutegen layout` and %cute_layout: one table for two front ends
)  # fmt: skip
OF_OTHERS = (
    "devices/cuda/ncu.py", "devices/cuda/sanitizer.py", "compile/dsl.py",  # arguments of programs that they start
    "session/rejudged.py",  # starts cutegen as the receiver of a kernel would
    "layouts/drawing.py",  # variables of CSS
)  # fmt: skip
ARCHS = ("sm_80", "sm_89")
VALUES = {
    Advice.LEAVE_OUT: ("swizzle",), Advice.WRITE_AS: ("tma 64x64 bf16 128B",), Advice.CHOOSE_PART: ("rows",),
}  # fmt: skip
"""What a hint is about, where that is the option itself."""


def options(parser: argparse.ArgumentParser) -> Iterator[str]:
    for action in parser._actions:
        yield from action.option_strings
        if isinstance(action, argparse._SubParsersAction):
            for sub in action.choices.values():
                yield from options(sub)


def options_of(front: Spelling) -> set[str]:
    if front is COMMAND_LINE:
        return {*options(build_parser())}
    magics = (CutegenMagics.cutegen_cell, TuneMagic.cutegen_tune, LayoutMagic.cute_layout)
    return {option for magic in magics for option in options(magic.parser)}


@pytest.mark.parametrize("front", [COMMAND_LINE, NOTEBOOK], ids=["command line", "notebook"])
@pytest.mark.parametrize("code", Advice)
def test_every_code_has_a_sentence_of_options_that_there_are(code: Advice, front: Spelling) -> None:
    hint = Hint(code, VALUES.get(code, ARCHS))
    said = spelled(hint, front)
    assert said.endswith(".") and len(said) > 10 and not re.search(r"\{\w*\}", said)
    named = {*OPTION.findall(said)} - ({"--entry"} if front is NOTEBOOK else set())  # bundling has no magic
    assert named <= options_of(front), named - options_of(front)
    if code in (Advice.KNOWN_ARCH, Advice.KNOWN_GPU, Advice.OTHER_ARCH):
        assert "sm_80" in said
    assert not OPTION.search(str(hint)) and not COMMAND.search(str(hint))


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
    from cutegen_lab.views.run_view import build_view

    hint = Hint(Advice.MORE_TOKENS)
    for event in (GenerateFailed("cap reached", hint=hint), StepFailed(Step.GENERATE, "cap reached", hint)):
        script = Script().start(Step.GENERATE).add(event)
        view = build_view(script.state(), script.events, front=front)
        assert view.note.startswith(f"cap reached. {says}")
        assert view.timeline[0].detail == view.note
        stopped = script.answer("stop", script.state().problem_note)  # as auto does
        assert build_view(stopped.state(), stopped.events, front=front).note == view.note


@pytest.mark.parametrize(
    ("hint", "command_line", "notebook"),
    [
        (Hint(Advice.LEAVE_OUT, ("swizzle",)), "Leave out --swizzle.", None),
        (Hint(Advice.WRITE_AS, ("rows 0:64",)), "Write it as --rows 0:64.", None),
        (Hint(Advice.MANUAL_FOLDER), "Use --provider manual:DIR.", None),
        (Hint(Advice.REPLAY_FILE), "Use --provider replay:FILE.", None),
        (
            Hint(Advice.BENCH_RECORD),
            "`cutegen bench GPU --out FILE.json` writes such a file.",
            "`!cutegen bench GPU --out FILE.json` writes such a file.",
        ),
    ],
)  # fmt: skip
def test_what_a_hint_says(hint: Hint, command_line: str, notebook: str | None) -> None:
    assert spelled(hint, COMMAND_LINE) == command_line
    assert spelled(hint, NOTEBOOK) == (notebook or command_line)


def literals(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """(line, text) of every string but docstrings. What an f-string inserts is a word: ``f"--{name}"`` counts as
    ``--word``."""
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = [part.value if isinstance(part, ast.Constant) else "word" for part in node.values]
            yield node.lineno, "".join(map(str, parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield node.lineno, node.value


def names_an_option(source: str) -> list[int]:
    """Lines of the strings that name an option or a command."""
    return [line for line, text in literals(ast.parse(source)) if OPTION.search(text) or COMMAND.search(text)]


def test_no_lower_layer_names_an_option() -> None:
    found = [
        f"{name}:{line}"
        for path in ROOT.rglob("*.py")
        if not (name := path.relative_to(ROOT).as_posix()).startswith(SPELLS) and name not in OF_OTHERS
        for line in names_an_option(path.read_text(encoding="utf-8"))
    ]
    assert not found


def test_every_exception_is_needed() -> None:
    for name in OF_OTHERS:
        assert names_an_option((ROOT / name).read_text(encoding="utf-8")), name


@pytest.mark.parametrize(
    "source",
    [
        'x = "Leave out --swizzle."',
        'f"Leave out --{name}."',
        '"`cutegen bench` writes one" + y',
        'f"{x}: see %%cutegen"',
    ],
)
def test_an_option_is_found_in_any_string(source: str) -> None:
    assert names_an_option(source)
    assert not names_an_option(f"""def f():\n    {'"' * 3}{source.replace(chr(34), "")}{'"' * 3}""")
