"""A conversation through files, its record, and the record played again."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from cutegen_lab.core.candidate import Candidate
from cutegen_lab.core.errors import Cancelled, InputError, ProviderError, ProviderExhausted
from cutegen_lab.core.hints import Advice, Hint
from cutegen_lab.core.ideas import Change, Idea
from cutegen_lab.core.protocols import Attempt
from cutegen_lab.providers.manual import ManualProvider
from cutegen_lab.providers.prompting import render
from cutegen_lab.providers.replay import ReplayProvider
from cutegen_lab.providers.replies import done
from tests.providers.requests import SOURCE, attempt, request
from tests.providers.test_replies import MODULE

ANSWER = f"Title: by hand\nReason: shown\nPredicted effect: none\n\n```python\n{MODULE}```\n"


def quiet(line: str) -> None:
    pass


def answering(provider: ManualProvider, *answers: str) -> threading.Thread:
    """Someone who answers each request as it appears."""

    def work() -> None:
        for number, text in enumerate(answers, 1):
            deadline = time.monotonic() + 10
            while not (provider.directory / f"{number:04}.request.md").exists() and time.monotonic() < deadline:
                time.sleep(0.01)
            provider.submit(text)

    thread = threading.Thread(target=work)
    thread.start()
    return thread


def test_request_and_answer_are_files_and_the_prompt_is_recorded(tmp_path: Path) -> None:
    provider = ManualProvider(tmp_path / "talk")
    thread = answering(provider, ANSWER)
    proposal = provider.propose(request(), quiet, threading.Event())
    thread.join()
    assert proposal.source == MODULE and proposal.title == "by hand"
    sent = (tmp_path / "talk" / "0001.request.md").read_text()
    assert "torch.cumsum" in sent
    assert proposal.prompts[0].id == "generate"


def test_an_answer_that_cannot_be_used_is_asked_for_once_more(tmp_path: Path) -> None:
    provider = ManualProvider(tmp_path)
    thread = answering(provider, "no code here", ANSWER)
    proposal = provider.propose(request(), quiet, threading.Event())
    thread.join()
    assert [p.id for p in proposal.prompts] == ["generate", "reask"]
    assert "no fenced code block" in (tmp_path / "0002.request.md").read_text()


def test_two_bad_answers_are_an_error(tmp_path: Path) -> None:
    provider = ManualProvider(tmp_path)
    thread = answering(provider, "nothing", "still nothing")
    with pytest.raises(ProviderError, match="twice"):
        provider.propose(request(), quiet, threading.Event())
    thread.join()


def test_cancel_ends_the_wait(tmp_path: Path) -> None:
    cancel = threading.Event()
    threading.Timer(0.2, cancel.set).start()
    started = time.monotonic()
    with pytest.raises(Cancelled):
        ManualProvider(tmp_path).propose(request(), quiet, cancel)
    assert time.monotonic() - started < 1.2


def test_numbers_go_on_after_a_restart(tmp_path: Path) -> None:
    (tmp_path / "0007.request.md").write_text("earlier")
    (tmp_path / "0007.answer.md").write_text("earlier")
    cancel = threading.Event()
    threading.Timer(0.3, cancel.set).start()
    with pytest.raises(Cancelled):
        ManualProvider(tmp_path).propose(request(), quiet, cancel)
    assert (tmp_path / "0008.request.md").exists()


def test_submit_without_a_request_says_so(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no request is waiting"):
        ManualProvider(tmp_path).submit("x")


def test_a_recorded_conversation_replays_the_same(tmp_path: Path) -> None:
    provider = ManualProvider(tmp_path, model="someone")
    thread = answering(provider, ANSWER, ANSWER.replace("by hand", "refined"))
    first = provider.propose(request(), quiet, threading.Event())
    second = provider.propose(request("refine", attempt()), quiet, threading.Event())
    thread.join()
    replay = ReplayProvider(tmp_path / "conversation.jsonl")
    assert replay.source == "manual"
    again = replay.propose(request(), quiet, threading.Event())
    assert (again.source, again.prompts, again.model) == (first.source, first.prompts, "someone (replayed)")
    assert replay.propose(request("refine", attempt()), quiet, threading.Event()).title == second.title
    with pytest.raises(ProviderExhausted, match="ends after 2 answers"):
        replay.propose(request(), quiet, threading.Event())


def test_a_replay_goes_on_where_a_resumed_run_stood(tmp_path: Path) -> None:
    provider = ManualProvider(tmp_path)
    thread = answering(provider, "no code", ANSWER, ANSWER.replace("by hand", "refined"))
    provider.propose(request(), quiet, threading.Event())
    provider.propose(request("refine", attempt()), quiet, threading.Event())
    thread.join()
    path = tmp_path / "conversation.jsonl"
    first = ReplayProvider(path).propose(request(), quiet, threading.Event())
    assert [p.id for p in first.prompts] == ["generate", "reask"]
    earlier = attempt()
    earlier = Attempt(Candidate("c1", None, "replay", first), earlier.trial)
    resumed = ReplayProvider(path)
    assert resumed.propose(request("refine", earlier), quiet, threading.Event()).title == "refined"


def test_a_recording_states_its_source(tmp_path: Path) -> None:
    provider = ManualProvider(tmp_path, source="two students at a whiteboard")
    thread = answering(provider, ANSWER)
    provider.propose(request(), quiet, threading.Event())
    thread.join()
    assert ReplayProvider(tmp_path / "conversation.jsonl").source == "two students at a whiteboard"


def test_a_run_that_asks_for_something_else_is_told(tmp_path: Path) -> None:
    provider = ManualProvider(tmp_path)
    thread = answering(provider, ANSWER)
    provider.propose(request(), quiet, threading.Event())
    thread.join()
    replay = ReplayProvider(tmp_path / "conversation.jsonl")
    with pytest.raises(ProviderError, match="recorded for a 'generate' prompt, not 'refine'"):
        replay.propose(request("refine", attempt()), quiet, threading.Event())
    said: list[str] = []
    replay.propose(request(feedback="other words"), said.append, threading.Event())
    assert "a prompt that read differently" in said[0]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "not a conversation"),
        ("{]", "not a conversation file"),
        (json.dumps({"schema": "other", "schema_version": 1, "source": "x"}), "file that this version can read"),
        (json.dumps({"schema": "cutegen-conversation", "schema_version": 1, "source": "x"}) + "\n{}", "line 2"),
    ],
)
def test_files_that_are_no_conversation(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "c.jsonl"
    path.write_text(text)
    with pytest.raises(InputError, match=says):
        ReplayProvider(path)


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"cannot make the folder .*file: File exists") as caught:
        ManualProvider(tmp_path / "file")
    assert caught.value.hint == Hint(Advice.MANUAL_FOLDER)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read the conversation"):
        ReplayProvider(tmp_path / "gone.jsonl")


def test_a_refinement_may_be_edits_of_the_candidates_lines(tmp_path: Path) -> None:
    block = "<<<<<<< SEARCH\n    pass\n=======\n    return\n>>>>>>> REPLACE\n"
    edits = f"Title: vec\nReason: r\nPredicted effect: e\n\n```edit\n{block}```\n"
    provider = ManualProvider(tmp_path)
    thread = answering(provider, edits.replace("    pass", "    gone"), edits)
    proposal = provider.propose(request("refine", attempt()), quiet, threading.Event())
    thread.join()
    assert proposal.source == SOURCE.replace("    pass", "    return") and proposal.title == "vec"
    asked = (tmp_path / "0002.request.md").read_text()
    assert "Edit 1: the candidate has no line `gone`. Answer again" in asked


def test_a_model_may_say_that_it_is_done(tmp_path: Path) -> None:
    provider = ManualProvider(tmp_path, "gpt")
    thread = answering(provider, "Done: the memory term is the floor\n")
    with pytest.raises(ProviderExhausted, match="gpt is done: the memory term is the floor"):
        provider.propose(request("refine", attempt()), quiet, threading.Event())
    thread.join()


def test_only_a_refinement_can_be_declined(tmp_path: Path) -> None:
    provider = ManualProvider(tmp_path)
    thread = answering(provider, "Done: too hard", ANSWER)
    assert provider.propose(request(), quiet, threading.Event()).source == MODULE
    thread.join()


def test_an_answer_may_have_an_expectation_and_ideas(tmp_path: Path) -> None:
    head = "Expect: time -12%\nImplements: i7\nIdea: two rows | time -8% | large\nIdea: no barrier\n"
    provider = ManualProvider(tmp_path)
    thread = answering(provider, ANSWER.replace("\n\n```", f"\n{head}\n```", 1))
    proposal = provider.propose(request(), quiet, threading.Event())
    thread.join()
    assert proposal.expects == Change("time", -0.12)
    assert proposal.ideas == (Idea("two rows", Change("time", -0.08), "large"), Idea("no barrier"))
    assert proposal.implements == ""  # the run has no idea of that id


@pytest.mark.parametrize(
    "answer",
    [
        "```python\n# Done: loads\nx = 1\n",
        "*** Begin Patch\n-    # Done: rows\n",
        "The tail:\nDone: it is gone\n",
        "# Done: x",
    ],
)
def test_done_is_the_whole_answer(answer: str) -> None:
    assert done(answer) == ""
    assert done("**Done:** it is at the floor") == "it is at the floor"


def test_an_analyst_who_asks_is_not_told_that_a_model_is_done(tmp_path: Path) -> None:
    provider = ManualProvider(tmp_path)
    thread = answering(provider, "Done: nothing to gain", ANSWER)
    asked = replace(request("refine", attempt()), wanted=True)
    assert "`Done:`" not in render(asked).text
    assert provider.propose(asked, quiet, threading.Event()).source == MODULE
    thread.join()
