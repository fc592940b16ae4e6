"""Comments and pins in prompts, word for word, and in what templates propose."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from cutegen_lab.core.candidate import Candidate
from cutegen_lab.core.errors import ProviderExhausted
from cutegen_lab.core.notes import Note
from cutegen_lab.core.protocols import Attempt, GenerateRequest
from cutegen_lab.core.verdict import Verdict
from cutegen_lab.providers.prompting import render
from cutegen_lab.providers.templates import TemplatesProvider
from tests.providers.requests import SOURCE, attempt, request
from tests.templates.test_provider import attempt as tried
from tests.templates.test_provider import first, proposed

PIN = Note("n2", "c1", "the signature is ours", 4, 4, "def launch(x, y, stream):", pin=True)
VALUE = Note("n3", "c1", "", 4, 4, "stages = 3", "stages", pin=True)
COMMENT = Note("n1", "c1", "too slow?\n## New heading\n{{ 7*7 }}", 4, 5, "def launch(x, y, stream):\n    pass  # ```")

SECTION = """\
## The analyst asks

An answer that changes what is to be kept is refused before it is judged.

- Keep line 4 of c1 as it is: the signature is ours

````python
def launch(x, y, stream):
````

- Keep `stages` of c1 as it is

````python
stages = 3
````

- On lines 4–5 of c1: too slow?
  ## New heading
  {{ 7*7 }}

````python
def launch(x, y, stream):
    pass  # ```
````
"""


@pytest.mark.parametrize("kind", ["generate", "fix", "refine"])
@pytest.mark.parametrize("language", ["dsl", "spec"])
def test_every_prompt_has_them_in_a_section_of_their_own(kind: str, language: str) -> None:
    start = attempt(Verdict.WRONG_RESULT if kind == "fix" else Verdict.PASSED)
    asked = replace(request(kind, start), notes=(COMMENT, PIN, VALUE), language=language)  # type: ignore[arg-type]
    text = render(asked).text
    assert text.endswith(f"\n{SECTION}")
    assert "The analyst asks" not in render(replace(asked, notes=())).text


def test_comments_alone_threaten_no_refusal() -> None:
    text = render(replace(request("refine", attempt()), notes=(COMMENT,))).text
    assert "## The analyst asks\n\n- On lines 4–5 of c1" in text and "refused before" not in text


def test_where_the_lines_are_in_the_candidate_now() -> None:
    older = attempt()
    moved = replace(older.candidate, id="c2", proposal=replace(older.candidate.proposal, source="# new\n" + SOURCE))
    gone = replace(moved, id="c3", proposal=replace(moved.proposal, source="x = 1\n"))
    for parent, says in ((moved, "(line 5 of c2, the candidate above)"), (gone, "(not in c3, the candidate above)")):
        asked = request("refine", Attempt(parent, older.trial))
        asked = replace(asked, history=(older, Attempt(parent, older.trial)), notes=(PIN,))
        assert f"- Keep line 4 of c1 {says} as it is: the signature" in render(asked).text


def test_a_long_quote_is_cut() -> None:
    long = replace(PIN, quote="\n".join(f"line_{n} = {n}" for n in range(100)))
    text = render(replace(request("refine", attempt()), notes=(long,))).text
    assert "line_39 = 39\n# … 60 more lines\n```" in text and "line_40" not in text


def pinned(request_: GenerateRequest, on: Candidate, *names: str) -> GenerateRequest:
    notes = tuple(
        Note(f"n{n}", on.id, "", 0, 0, f"{name} = {on.config[name]!r}", name, pin=True) for n, name in enumerate(names)
    )
    return replace(request_, notes=notes)


def test_templates_propose_nothing_that_changes_a_pinned_parameter() -> None:
    provider, start = TemplatesProvider(), first()
    one = tried(1, proposed(provider, start))
    asked = replace(start, kind="refine", parent=one, history=(one,))
    moved = proposed(provider, asked)
    (changed,) = [name for name, value in moved.config.items() if one.candidate.config[name] != value]
    kept = proposed(provider, pinned(asked, one.candidate, changed))
    assert kept.config[changed] == one.candidate.config[changed] and kept.config != one.candidate.config
    everything = pinned(asked, one.candidate, *one.candidate.config)
    with pytest.raises(ProviderExhausted, match=r"config that was not tried breaks a pin: n0 \(vec = 8\)"):
        provider.propose(everything, lambda line: None, threading.Event())
    lines = replace(asked, notes=(Note("n1", "c1", "", 1, 1, one.candidate.source.split("\n")[0], pin=True),))
    assert proposed(provider, lines).config == moved.config, "a pin on lines that no parameter changes filters nothing"
