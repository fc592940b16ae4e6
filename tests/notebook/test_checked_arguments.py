"""What a verb takes, and how it refuses the rest."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cutegen_lab.core.errors import InputError
from cutegen_lab.core.verbs import VERBS, VerbSpec
from cutegen_lab.notebook.checked_arguments import verb
from cutegen_lab.notebook.run import NotebookRun
from cutegen_lab.session import RunHandle
from cutegen_lab.session.verbs import with_verbs


class Bench:
    @verb
    def measure(
        self,
        budget: int,
        seconds: float | None = None,
        names: Sequence[str] = (),
        path: str | Path = "",
        fast: bool = True,
    ) -> NotImportedHere:  # type: ignore[name-defined]  # noqa: F821 - as those imported for type checkers alone
        """Measures."""
        return budget, seconds


def test_what_fits_is_passed_on() -> None:
    bench = Bench()
    assert bench.measure(3) == (3, None)
    assert bench.measure(np.int64(3), seconds=2, names=["a"], path=Path("b"), fast=False) == (3, 2)
    assert Bench.measure.__doc__ == "Measures."


@pytest.mark.parametrize(
    ("given", "named", "says"),
    [
        ((), {}, "measure: missing a required argument: 'budget'"),
        ((1, 2, (), "", True, 5), {}, "measure: too many positional arguments"),
        ((1,), {"second": 2}, "Did you mean 'seconds'?"),
        ((1,), {"bogus": 2}, r"'bogus'\. Write measure\(budget, seconds=None, names=\(\), path='', fast=True\)"),
        (("40",), {}, "budget is '40', not a whole number"),
        ((4.0,), {}, r"budget is 4\.0, not a whole number"),
        ((True,), {}, "budget is True, not a whole number"),
        ((1, "x" * 90), {}, "seconds is 'x{38}…, not a number or None"),
        ((1, 2.0, "abc"), {}, "names is 'abc', not a list whose every item is text"),
        ((1, 2.0, [1]), {}, r"names is \[1\], not a list"),
        ((1, 2.0, [], None), {}, "path is None, not text or a path"),
        ((1,), {"fast": 1}, "fast is 1, not True or False"),
    ],
)
def test_what_does_not_fit_is_an_input_error(given: tuple[object, ...], named: dict[str, object], says: str) -> None:
    with pytest.raises(InputError, match=says):
        Bench().measure(*given, **named)  # type: ignore[arg-type]


def test_every_verb_of_the_table_is_a_method_with_its_arguments() -> None:
    taken = {verb: tuple(inspect.signature(getattr(RunHandle, verb)).parameters)[1:] for verb in VERBS}
    arguments = {
        "nothing": (), "scope": ("scope",), "reason": ("reason",), "source": ("text",),
        "candidate": ("candidate_id", "feedback"), "place": ("candidate_id", "lines", "text", "name"),
        "note": ("note_id",),
    }  # fmt: skip
    assert taken == {verb: arguments[spec.takes] for verb, spec in VERBS.items()}
    for name in VERBS.keys() - {"stop", "resume"}:
        method = getattr(NotebookRun, name)
        assert tuple(inspect.signature(method).parameters)[1:] == (*taken[name], "wait")
        assert method.__doc__.lower() == f"{VERBS[name].help}.".lower()


@pytest.mark.parametrize(
    ("call", "performed"),
    [
        (lambda run: run.reject("slow", wait=False), ("reject", "slow", "", False)),
        (lambda run: run.branch("c1"), ("branch", "c1", "", True)),
        (lambda run: run.approve(), ("approve", "", "", True)),
        (lambda run: run.approve("3 steps"), ("approve", "3 steps", "", True)),
        (lambda run: run.later("x"), ("later", "x", "", True)),
        (lambda run: run.pin("c2", (10, 14), "keep"), ("pin", "c2:10-14", "keep", True)),
        (lambda run: run.comment("c2", name="epilogue", text="why?"), ("comment", "c2:epilogue", "why?", True)),
        (lambda run: run.lift("n1"), ("lift", "n1", "", True)),
    ],
)
def test_a_new_entry_of_the_table_is_a_method(
    monkeypatch: pytest.MonkeyPatch, call: Callable[[Any], Any], performed: tuple[object, ...]
) -> None:
    monkeypatch.setitem(VERBS, "later", VerbSpec("l", "later", "Later", "put off", "put it off", "reason"))

    @with_verbs(checked=verb, wait=True)
    class Run:
        def perform(self, verb: str, argument: str = "", note: str = "", wait: bool = True) -> object:
            return verb, argument, note, wait

    assert call(Run()) == performed


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda run: run.reject(3), r"reject: reason is 3, not text\. Write reject\(reason='', wait=True\)"),
        (lambda run: run.edit(), "edit: missing a required argument: 'text'"),
        (lambda run: run.pin("c1"), "a note is on either lines or a name"),
        (lambda run: run.pin("c1", lines=3), "pin: lines is 3, not a list whose every item is a whole number"),
        (lambda run: run.branch("c1", wait="no"), "branch: wait is 'no', not True or False"),
    ],
)
def test_wrong_arguments_of_a_verb_are_input_errors(call: Callable[[Any], Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        call(NotebookRun(None))  # type: ignore[arg-type]
