"""Tab completion of the magics: options, their values, verbs and runs, and the words of a spec."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from IPython.core.completer import CompletionContext, SimpleCompletion, SimpleMatcherResult, context_matcher

from cutegen_lab.core.roofline import GPUS
from cutegen_lab.core.run import LANGUAGES, PROFILINGS, PROVIDERS, STRATEGIES
from cutegen_lab.core.verbs import VERBS
from cutegen_lab.devices.select import KINDS
from cutegen_lab.exports import FORMATS
from cutegen_lab.layouts import options as layouts

if TYPE_CHECKING:
    from argparse import Action

    from IPython.core.interactiveshell import InteractiveShell

RUN_VERBS = ("show", "resume")
"""Verbs that take a run."""
LINE_VERBS = tuple(dict.fromkeys(("runs", *RUN_VERBS, *VERBS, "export", "import", "help")))
LINE_OPTIONS: Mapping[str, Sequence[str]] = {"export": ("--general", "--no-verify", "--debug")}
"""Options of verbs that take more than --run and --debug."""
SCOPES = ("3 steps", "within 5%", "until slower")
"""Examples of the scope of an approval."""
SPEC_MAGIC = re.compile(r"\s*%%cutespec\s")
VALUES: Mapping[str, Sequence[str]] = {
    "--provider": PROVIDERS,
    "--arch": tuple(dict.fromkeys(gpu.arch for gpu in GPUS.values())),
    "--gpu": tuple(GPUS),
    "--device": tuple(kind.replace("N", "0") for kind in KINDS),
    "--language": LANGUAGES,
    "--strategy": STRATEGIES,
    "--profiling": PROFILINGS,
    "--budget": ("600s", "200000tok", "600s,200000tok"),
    **layouts.VALUES,
}
"""Values of options: all of them where there are few, otherwise examples."""


class Known(NamedTuple):
    """What completion asks a notebook for; each function is called only when needed."""

    runs: Callable[[], Iterable[str]]
    """Ids of the runs in the store."""
    candidates: Callable[[str], Iterable[str]]
    """Ids of the candidates of the run with that id; of the notebook's newest run for ""."""
    notes: Callable[[str], Iterable[str]]
    """Ids of the comments and pins of the run with that id; of the notebook's newest run for ""."""


class Fitting(NamedTuple):
    """Words that may stand at the cursor."""

    words: list[str]
    or_file: bool = False
    """Whether a file name may stand there too."""


def words_that_fit(text: str, options: Mapping[str, Sequence[Action]], known: Known) -> Fitting | None:
    """Words that may stand at the end of ``text``, a cell up to the cursor, whose last word is incomplete (or empty);
    None if the cell is not a cutegen magic, or only a file name may stand there.

    ``options``: those of each magic, by its name with its signs (``%%cutegen``).
    """
    if SPEC_MAGIC.match(text) and "\n" in text.lstrip():
        from cutegen_lab.cutespec.words import words_in_spec  # needs lark: imported only here

        return Fitting(words_in_spec(text.lstrip().partition("\n")[2]))
    head, *words = text.rpartition("\n")[2].split(" ")
    if not words:
        return None
    *before, last = words
    before = [word for word in before if word]
    if head == "%cutegen":
        fitting = _of_the_line(before, known)
    elif head in options:
        values = _of_a_cell(before, options[head], known.runs)
        fitting = None if values is None else Fitting(list(values))
    else:
        return None
    return fitting and fitting._replace(words=[word for word in fitting.words if word.startswith(last)])


def _of_the_line(before: Sequence[str], known: Known) -> Fitting | None:
    if not before:
        return Fitting(list(LINE_VERBS))
    verb, *rest = before
    if rest[-1:] == ["--run"]:
        return Fitting(list(known.runs()))
    run = ""
    if "--run" in rest:
        at = rest.index("--run")
        run = rest[at + 1]
        del rest[at : at + 2]
    options = [*(["--run"] if not run else []), *(o for o in LINE_OPTIONS.get(verb, ("--debug",)) if o not in rest)]
    said = [word for word in rest if not word.startswith("--")]
    takes = VERBS[verb].takes if verb in VERBS else "nothing"  # type: ignore[index]
    if verb == "export":
        return None if said else Fitting([*FORMATS, *options], or_file=True)
    if verb == "import" or takes == "source":
        return None
    if said or verb in ("runs", "help"):
        return Fitting([] if takes in ("reason", "place") else options)
    if verb in RUN_VERBS and not run:
        return Fitting(list(known.runs()))
    match takes:
        case "candidate":
            return Fitting([*known.candidates(run), *options])
        case "place":
            return Fitting([f"{each}:" for each in known.candidates(run)])
        case "note":
            return Fitting([*known.notes(run), *options])
        case "scope":
            return Fitting([*SCOPES, *options])
    return Fitting(options)


def _of_a_cell(
    before: Sequence[str], actions: Sequence[Action], runs: Callable[[], Iterable[str]]
) -> Iterable[str] | None:
    asked = next((a for a in actions if before and before[-1] in a.option_strings and a.nargs != 0), None)
    if asked is None:
        return [name for action in actions for name in action.option_strings if name not in before]
    option = asked.option_strings[0]
    values = runs() if option == "--run" else VALUES.get(option)
    return values if asked.type is None else ()  # a number has no completion


def install(shell: InteractiveShell, fitting: Callable[[str], Fitting | None]) -> None:
    """Adds the completion to a shell, replacing that of an earlier ``%load_ext``. ``fitting``: words for a cell up to
    the cursor."""

    @context_matcher(identifier="cutegen")  # type: ignore[untyped-decorator]
    def matcher(context: CompletionContext) -> SimpleMatcherResult:
        above = context.full_text.split("\n")[: context.cursor_line]
        words, or_file = fitting("\n".join([*above, context.text_until_cursor])) or ((), True)
        return SimpleMatcherResult(
            completions=[SimpleCompletion(word, type="magic") for word in words],
            suppress=bool(words),
            do_not_suppress={"IPCompleter.file_matcher"} if or_file else set(),
        )

    completer = shell.Completer
    if completer is not None:
        others = [one for one in completer.custom_matchers if getattr(one, "matcher_identifier", "") != "cutegen"]
        completer.custom_matchers = [*others, matcher]
