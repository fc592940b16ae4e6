"""The shipped conversation with a language model, replayed through a real session: caged compiles, emulator, judge."""

from __future__ import annotations

from pathlib import Path

import pytest

import cutegen_lab
from cutegen_lab.core.run import Budget, RunSettings, Step
from cutegen_lab.core.verdict import Verdict
from cutegen_lab.problems import read_file
from cutegen_lab.providers.replay import load
from cutegen_lab.session import Session

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
