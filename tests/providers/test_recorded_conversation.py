"""The shipped conversations with language models, replayed through a real session: caged compiles, emulator, judge."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median
from typing import Any

import pytest

import cutegen_lab
from cutegen_lab.core.errors import ProviderError
from cutegen_lab.core.run import Budget, RunSettings, Step
from cutegen_lab.core.verdict import Verdict
from cutegen_lab.problems import read_file
from cutegen_lab.providers.replay import load
from cutegen_lab.session import Session
from cutegen_lab.templates.recognise import template_for

pytestmark = pytest.mark.kernel

REPLAYS = Path(cutegen_lab.__file__).parent / "replays"


def test_the_source_of_the_recording_is_stated() -> None:
    source, exchanges = load(REPLAYS / "decode_linear.jsonl")
    assert "language model" in source and "manual:DIR" in source
    assert [e.prompt.id for e in exchanges] == ["generate", "refine"]


def test_what_was_promised_and_did_not_come_is_not_accepted(tmp_path: Path) -> None:
    problem = read_file(REPLAYS / "decode_linear.py")
    recording = f"replay:{REPLAYS / 'decode_linear.jsonl'}"
    settings = RunSettings(provider=recording, device="emulator", auto=True, budget=Budget(max_steps=8))
    with Session.open(tmp_path) as session:
        state = session.run(problem, settings).state
        assert state.step is Step.DONE and state.outcome == "accepted", state.problem_note
        assert state.accepted == ("c1",), "c2 was promised to take less than 11 µs, and is predicted to gain nothing"
        for trial in state.trials.values():
            assert trial.verdict is Verdict.PASSED, trial.reason
            assert trial.check is not None and trial.timing is not None and trial.timing.kind == "predicted"
            worst = trial.check.worst()
            assert worst is not None and 0 < worst.norm < 3 * worst.torch_norm
            assert trial.profile is not None and "memory latency" in trial.profile.limiter
        first, last = (state.trials[c].timing for c in ("c1", "c2"))
        assert first is not None and last is not None and 0.98 < last.time_us / first.time_us < 1.04
        assert [state.candidates[c].proposal.prompts[0].id for c in ("c1", "c2")] == ["generate", "refine"]
        assert state.candidates["c2"].proposal.model == "a language model (replayed)"
        assert "cp_async_wait_group" in state.candidates["c2"].source


SOLVED: dict[str, Any] = {
    each["problem"]: each for each in json.loads((REPLAYS / "verdicts.json").read_text())["conversations"]
}


def test_every_conversation_states_its_source_and_has_its_verdicts() -> None:
    recorded = {path.stem for path in REPLAYS.glob("*.jsonl")}
    assert recorded - {"decode_linear"} == set(SOLVED) and len(SOLVED) >= 12
    for name, found in SOLVED.items():
        source, exchanges = load(REPLAYS / f"{name}.jsonl")
        assert "language model" in source and "manual:DIR" in source
        assert len(exchanges) == found["answers"]
    correct = [found["turns_to_first_correct"] for found in SOLVED.values() if found["turns_to_first_correct"]]
    assert len(correct) >= 11 and median(correct) <= 2


@pytest.mark.parametrize("name", SOLVED)
def test_a_recorded_model_solves_its_problem_in_as_many_turns_as_recorded(name: str, tmp_path: Path) -> None:
    found, problem = SOLVED[name], read_file(REPLAYS / f"{name}.py")
    turns = found["turns_to_first_correct"] or len(found["candidates"])
    settings = RunSettings(
        provider=f"replay:{REPLAYS / name}.jsonl", device="emulator", auto=True, budget=Budget(max_steps=turns)
    )
    with Session.open(tmp_path) as session:
        state = session.run(problem, settings).state
    verdicts = [state.trials[each].verdict.value for each in state.candidates]
    assert verdicts == [each["verdict"] for each in found["candidates"]][:turns]
    with pytest.raises(ProviderError):  # no template serves it
        template_for(problem, "sm_90a")
