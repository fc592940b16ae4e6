"""Strategies of a run that asks a model: what a search and the templates add to the model's kernels."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from cutegen_lab.core.errors import InputError
from cutegen_lab.core.problem import Problem
from cutegen_lab.core.run import Budget, RunSettings, RunState, Strategy
from cutegen_lab.core.syntax import with_launch_defaults
from cutegen_lab.problems import read_text
from cutegen_lab.session import Session
from cutegen_lab.templates.recognise import template_for


@pytest.fixture(scope="module")
def problem() -> Problem:
    read = read_text(
        "def reference(x):\n    return torch.relu(x) * 2 + 1\n", name="chain", inputs_text="x: f32[512,4096]"
    )
    return replace(read, check_workloads=read.check_workloads[:1])


def run(problem: Problem, folder: Path, strategy: Strategy, steps: int, *answers: str) -> RunState:
    """A run to which a model gave ``answers``, each a module or edits."""
    asked = folder / "manual"
    asked.mkdir()
    for number, text in enumerate(answers, 1):
        (asked / f"{number:04}.answer.md").write_text(f"Title: number {number}\n\n{text}")
    settings = RunSettings(
        provider=f"manual:{asked}", device="emulator", strategy=strategy, budget=Budget(max_steps=steps)
    )
    with Session.open(folder / "work") as session:
        handle = session.run(problem, settings)
        while not handle.state.finished:
            handle.approve()
            handle.wait()
        return handle.state


@pytest.mark.kernel
def test_a_search_sets_the_values_of_a_models_kernel_and_its_next_edit_keeps_them(
    problem: Problem, tmp_path: Path
) -> None:
    template = template_for(problem, "sm_90a")
    slow = with_launch_defaults(template.write(template.default_config()), {"vec": 1, "threads": 64, "loads": 1})
    edits = "```edit\n<<<<<<< SEARCH\nTUNABLE = {\n=======\n# mine\nTUNABLE = {\n>>>>>>> REPLACE\n```\n"
    state = run(problem, tmp_path, "two-stage", 3, f"```python\n{slow}```\n", edits)
    first, second, third = (state.candidates[each] for each in ("c1", "c2", "c3"))
    assert [first.provider, second.provider, third.provider] == ["manual", "search", "manual"]
    times = [state.trials[each].timing for each in ("c1", "c2")]
    assert times[0] and times[1] and times[1].time_us < 0.8 * times[0].time_us
    assert second.source != first.source
    values = {"vec": 4, "threads": 256, "loads": 1}  # the third is searched anew, since its text is another
    third_text, second_text = (with_launch_defaults(each.source, values) for each in (third, second))
    assert third_text == second_text.replace("TUNABLE = {", "# mine\nTUNABLE = {")
    last = state.trials["c3"].timing
    assert last and last.time_us < 1.02 * times[1].time_us


@pytest.mark.kernel
def test_templates_serve_first_and_the_model_is_asked_once_they_have_nothing_more(
    problem: Problem, tmp_path: Path
) -> None:
    state = run(problem, tmp_path, "auto", 1)
    assert state.candidates["c1"].provider == "templates" and state.accepted == ("c1",)
    assert not list((tmp_path / "manual").glob("*.request.md"))


def test_templates_have_no_strategy(problem: Problem, tmp_path: Path) -> None:
    with Session.open(tmp_path) as session, pytest.raises(InputError, match="choose their values by themselves"):
        session.start(problem, RunSettings(strategy="two-stage"))
