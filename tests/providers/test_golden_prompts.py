"""Every prompt as it is sent: ``pytest tests/providers/test_golden_prompts.py --accept`` writes the texts anew."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from cutegen_lab.core.idea_results import IdeaResult
from cutegen_lab.core.ideas import Change, Idea
from cutegen_lab.core.protocols import GenerateRequest
from cutegen_lab.core.verdict import Verdict
from cutegen_lab.providers.prompting import RenderedPrompt, prompts_dir, render, render_reask, render_refactor
from tests.harness.accepted import GOLDEN, check_accepted, check_no_other
from tests.providers.requests import attempt, profiled, request

SPEC = "kernel scan for sm_90a\nin  x: f32[1024,4096]\nout y: f32 = cumsum(x, 1)\n"


def in_spec(asked: GenerateRequest) -> GenerateRequest:
    parent = asked.parent
    if parent is not None:
        candidate = replace(parent.candidate, proposal=replace(parent.candidate.proposal, spec=SPEC))
        parent = replace(parent, candidate=candidate)
    return replace(asked, language="spec", parent=parent)


IDEAS = (
    IdeaResult("i2", Idea("two rows a warp", Change("time", -0.2), "large"), "gpt", "open"),
    IdeaResult("i1", Idea("keep the row in registers"), "analyst", "open", ("c2",)),
)
WRONG = attempt(Verdict.WRONG_RESULT)
PROMPTS: dict[str, Callable[[], RenderedPrompt]] = {
    "generate": lambda: render(request()),
    "refine": lambda: render(request("refine", profiled(), feedback="too many registers")),
    "refine_with_ideas": lambda: render(replace(request("refine", profiled()), ideas=IDEAS, trust=0.4)),
    "fix": lambda: render(request("fix", WRONG)),
    "generate_spec": lambda: render(in_spec(request())),
    "refine_spec": lambda: render(in_spec(request("refine", profiled()))),
    "fix_spec": lambda: render(in_spec(request("fix", WRONG))),
    "reask": lambda: render_reask(render(request()), "It has no module."),
    "refactor": lambda: render_refactor("def launch(x, y, stream):\n    threads = 256\n", ["threads = 256"]),
}


@pytest.mark.parametrize("name", PROMPTS)
def test_a_prompt_is_as_accepted(name: str, request: pytest.FixtureRequest) -> None:
    check_accepted(GOLDEN / "prompts" / f"{name}.md", PROMPTS[name]().text, request.config)


def test_every_prompt_is_looked_at(request: pytest.FixtureRequest) -> None:
    written = {path.stem for path in prompts_dir().glob("[a-z]*.md")}
    assert written == set(PROMPTS) - {"refine_with_ideas"}
    check_no_other("prompts/*.md", set(PROMPTS), request.config)
