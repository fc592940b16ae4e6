"""Tab completion of the magics: options, their values, verbs and runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from IPython.core.completer import CompletionContext, SimpleCompletion, SimpleMatcherResult, context_matcher

from cutegen_lab.core.roofline import GPUS
from cutegen_lab.core.run import LANGUAGES, PROVIDERS
from cutegen_lab.core.verbs import VERBS
from cutegen_lab.layouts import options as layouts

if TYPE_CHECKING:
    from argparse import Action

    from IPython.core.interactiveshell import InteractiveShell

RUN_VERBS = ("show", "resume")
"""Verbs that take a run."""
LINE_VERBS = tuple(dict.fromkeys(("runs", *RUN_VERBS, *VERBS, "export", "import", "help")))
LINE_OPTIONS = ("--run", "--debug", "--general")
VALUES: Mapping[str, Sequence[str]] = {
    "--provider": PROVIDERS,
    "--arch": tuple(dict.fromkeys(gpu.arch for gpu in GPUS.values())),
    "--gpu": tuple(GPUS),
    "--device": ("auto", "cuda", "cuda:0", "emulator"),
    "--language": LANGUAGES,
    "--budget": ("600s", "200000tok", "600s,200000tok"),
    **layouts.VALUES,
}
"""Values of the options that take one of a few, or examples."""


def words_that_fit(
    line: str, options: Mapping[str, Sequence[Action]], runs: Callable[[], Iterable[str]],
    candidates: Callable[[], Iterable[str]],
) -> list[str] | None:  # fmt: skip
    """Words that may stand at the end of ``line``, of which the last is incomplete (or empty); None if the line is no
    magic of ours, or a file may stand there.

    ``options``: those of each magic, by its name with its signs (``%%cutegen``); ``runs``, ``candidates``: ids of the
    runs in the store, and of candidates of the notebook's newest run.
    """
    head, *words = line.split(" ")
    if not words:
        return None
    *before, last = words
    before = [word for word in before if word]
    if head == "%cutegen":
        fitting = _of_the_line(before, runs, candidates)
    elif head in options:
        fitting = _of_a_cell(before, options[head], runs)
    else:
        return None
    return None if fitting is None else [word for word in fitting if word.startswith(last)]


def _of_the_line(
    before: Sequence[str], runs: Callable[[], Iterable[str]], candidates: Callable[[], Iterable[str]]
) -> Iterable[str] | None:
    if not before:
        return LINE_VERBS
    if before[-1] == "--run" or (before[-1] in RUN_VERBS and len(before) == 1):
        return runs()
    if before == ["branch"]:
        return candidates()
    if before in (["comment"], ["pin"]):
        return [f"{each}:" for each in candidates()]
    if before in (["edit"], ["export"], ["import"]):
        return None
    return [option for option in LINE_OPTIONS if option not in before]


def _of_a_cell(
    before: Sequence[str], actions: Sequence[Action], runs: Callable[[], Iterable[str]]
) -> Iterable[str] | None:
    asked = next((a for a in actions if before and before[-1] in a.option_strings and a.nargs != 0), None)
    if asked is None:
        return [name for action in actions for name in action.option_strings if name not in before]
    option = asked.option_strings[0]
    values = runs() if option == "--run" else VALUES.get(option)
    return values if asked.type is None else ()  # a number is typed


def install(shell: InteractiveShell, fitting: Callable[[str], list[str] | None]) -> None:
    """Adds the completion to a shell, in place of that of an earlier load. ``fitting``: words for a line."""

    @context_matcher(identifier="cutegen")  # type: ignore[untyped-decorator]
    def matcher(context: CompletionContext) -> SimpleMatcherResult:
        words = fitting(context.text_until_cursor)
        found = [SimpleCompletion(word, type="magic") for word in words or ()]
        return SimpleMatcherResult(completions=found, suppress=words is not None)

    completer = shell.Completer
    if completer is not None:
        others = [one for one in completer.custom_matchers if getattr(one, "matcher_identifier", "") != "cutegen"]
        completer.custom_matchers = [*others, matcher]
