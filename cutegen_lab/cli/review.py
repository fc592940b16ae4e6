"""Review at a terminal: the diff, the evidence, one question."""

from __future__ import annotations

import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from cutegen_lab.cli.output import note
from cutegen_lab.config import Settings
from cutegen_lab.core.errors import CutegenError, InputError
from cutegen_lab.core.plain_text import plain
from cutegen_lab.core.run import Step
from cutegen_lab.core.verbs import NOTE_VERBS, VERBS, Verb
from cutegen_lab.views.hints import COMMAND_LINE, advised

if TYPE_CHECKING:
    from cutegen_lab.session import RunHandle
    from cutegen_lab.views.model import RunView


_VIEW = "v"  # not the letter of any verb


def review(handle: RunHandle) -> None:
    """Shows the candidate under review and takes one answer. Raises EOFError if the terminal was closed."""
    note(shown(handle.view()))
    while True:
        allowed = handle.view().verbs
        letters = {spec.key: verb for verb, spec in VERBS.items() if spec.key and verb in allowed}
        choices = {key: VERBS[verb].choice for key, verb in letters.items()}
        if current := handle.state.current:
            choices[_VIEW] = "view its text"
        note("  ".join(f"[{key}] {choice}" for key, choice in choices.items()))
        said, _, argument = ask("> ").strip().partition(" ")
        if said.lower()[:1] == _VIEW and current:
            note(numbered(current.source))
            continue
        verb = letters.get(said.lower()[:1])
        if verb is None:
            note(f"please answer with one of: {', '.join(choices)}")
            continue
        try:
            give(handle, verb, argument)
        except CutegenError as error:
            note(str(advised(error, COMMAND_LINE)))
            continue
        if handle.state.step is not Step.REVIEW or verb not in NOTE_VERBS:
            return


def give(handle: RunHandle, verb: Verb, scope: str = "") -> None:
    """Asks for the arguments of ``verb``, then performs it. ``scope``: what was typed after its letter."""
    state = handle.state
    match VERBS[verb].takes:
        case "scope":
            can = handle.view().approvable
            named = ", ".join(can)
            if state.current_id not in can and not scope.startswith("c"):
                scope = f"{ask(f'which of {named}? ').strip()} {scope}"
            handle.perform(verb, scope)
        case "reason":
            handle.perform(verb, ask("why? "))
        case "source":
            current = state.current
            if current is None:
                raise InputError("there is no candidate to edit yet", "Retry, or stop.")
            text = edited(current.source)
            if text == current.source:
                raise InputError("nothing was changed", "Answer again.")
            handle.perform(verb, text)
        case "candidate":
            target = ask(f"from which of {', '.join(handle.view().branch_points)}? ").strip()
            handle.perform(verb, target, ask("what should be different? "))
        case "place":
            place = ask("where? (c2:10-14, c2:epilogue, c2:stages; without c2: the candidate under review) ").strip()
            handle.perform(verb, place, ask("what is it? "))
        case "note":
            handle.perform(verb, ask(f"which of {', '.join(state.notes)}? ").strip())
        case "nothing":
            handle.perform(verb)


def shown(view: RunView) -> str:
    """Text of a review: why the run waits, the diff to the parent, the evidence. A first candidate has no diff; its
    text, which is long, is shown on request."""
    from cutegen_lab.views.text import diff_text, evidence_table, pick, standing
    from cutegen_lab.views.units import plural

    parts = [f"{view.problem.name}: {standing(view)}"]
    candidate = pick(view, view.current_id)
    if candidate is not None:
        lines = plural(len(candidate.source.splitlines()), "line")
        text = diff_text(candidate.diff) if candidate.parent_id else f"{lines} of text; [{_VIEW}] shows them"
        parts += ["", f"{candidate.id}: {candidate.title}", candidate.reason, text, ""]
        parts += [evidence_table(view, candidate.id, general=True)]
    return "\n".join(parts)


def numbered(text: str) -> str:
    """``text`` with line numbers, to which evidence refers."""
    return plain("\n".join(f"{at:4} {line}".rstrip() for at, line in enumerate(text.splitlines(), 1)))


def edited(text: str) -> str:
    """``text`` after editing in the analyst's editor (VISUAL, EDITOR or vi). Raises InputError if that fails."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "candidate.py"
        path.write_text(text, encoding="utf-8", newline="")
        command = [*shlex.split(Settings.from_environment().editor), str(path)]
        try:
            subprocess.run(command, check=True)  # noqa: S603 - the analyst's own editor
        except (OSError, subprocess.CalledProcessError) as error:
            raise InputError(f"the editor {command[0]!r} failed: {error}", "Set EDITOR.") from None
        with path.open(encoding="utf-8", newline="") as file:
            return file.read()


def ask(prompt: str) -> str:
    note(prompt, end="")
    line = sys.stdin.readline()
    if not line:
        raise EOFError
    return line.rstrip("\n")
