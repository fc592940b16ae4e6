"""Prompts hold what they promise, and text from outside stays data."""

from __future__ import annotations

import os
import re
from dataclasses import replace

import pytest
from jinja2 import UndefinedError

from cutegen_lab.core.hashing import sha256
from cutegen_lab.core.trial import LineCounters
from cutegen_lab.core.verdict import Verdict
from cutegen_lab.providers import prompting
from cutegen_lab.providers.prompting import front_matter, render, render_reask
from tests.providers.requests import attempt, problem, profiled, request


def test_generate_holds_problem_contract_rules_and_example() -> None:
    prompt = render(request())
    for needed in ("torch.cumsum(x, dim=-1)", "The candidate contract", "range_constexpr", "def scan_kernel",
                   "`main`: (x: f32[1024,4096])", "prime columns", "H200", "sm_90a", "How to answer"):  # fmt: skip
        assert needed in prompt.text, needed
    assert prompt.ref.id == "generate"
    assert prompt.ref.sha256 == sha256(prompt.text)
    assert len(prompt.text) < 6000 * 4, "the prompt's budget is about 6,000 tokens"


def test_only_products_on_tensor_cores_get_their_rules() -> None:
    product = render(request(task=replace(problem("def reference(x):\n    return x @ x.T\n"), flops=10**12))).text
    assert "`tma_bar_ptr=`" in product and "## This class of work: matmul" in product
    assert len(product) < 6000 * 4
    plain = render(request()).text
    assert "`tma_bar_ptr=`" not in plain and "## This class of work: scan" in plain


def test_a_waived_determinism_is_said() -> None:
    waived = "Two runs on the same inputs may differ"
    assert waived not in render(request()).text
    assert waived in render(request(task=replace(problem(), deterministic=False))).text


def test_what_is_the_same_for_each_problem_of_a_class_comes_first() -> None:
    """So that a provider's cache of prefixes serves every later request."""
    other = problem("def reference(x):\n    return torch.cumprod(x, dim=-1)\n")
    texts = [render(request()).text, render(request(task=other)).text]
    texts += [render(request("refine", attempt())).text, render(request("fix", attempt(Verdict.WRONG_RESULT))).text]
    shared = os.path.commonprefix(texts)  # noqa: RUF071 - of texts
    assert shared.endswith("## The problem: `scan`\n\n```python\ndef reference(x):\n    return torch.cum")
    assert len(shared) > 0.85 * len(texts[0])


def test_fix_sends_the_worst_element() -> None:
    text = render(request("fix", attempt(Verdict.WRONG_RESULT))).text
    assert "Worst element out[3, 17]: got 1.25, expected 2.5" in text
    assert "`prime` with uniform inputs" in text and "wrong_result" in text


def test_fix_sends_the_compilers_code_line_and_suggestion() -> None:
    text = render(request("fix", attempt(Verdict.COMPILE_ERROR, reason="does not compile"))).text
    assert "line 4: error[UNSUP_X] no such thing (use cute.where)" in text


def test_refine_sends_evidence_and_the_analysts_reason() -> None:
    text = render(request("refine", attempt(), feedback="too many registers")).text
    assert "time (predicted): 12.5 µs" in text
    assert "too many registers" in text
    assert "Tried before" not in text, "the candidate itself was not tried before"


def test_what_was_tried_before_says_why_it_failed() -> None:
    """A promise is told beside what came of it, and a slower candidate with what limits it."""
    slower, wrong = profiled(), attempt(Verdict.WRONG_RESULT, reason="error 2e-2 on prime")
    assert slower.trial is not None and slower.trial.profile is not None
    profile = replace(slower.trial.profile, findings=("16-byte loads would halve them", "one wave", "a third finding"))
    proposal = replace(slower.candidate.proposal, title="wider tiles", predicted_effect="−20%\ntime")
    slower = replace(
        slower, candidate=replace(slower.candidate, id="c2", proposal=proposal),
        trial=replace(slower.trial, profile=profile), answer="rejected: slower",
    )  # fmt: skip
    wrong = replace(wrong, candidate=replace(wrong.candidate, id="c3"))
    asked = request("refine", attempt())
    text = render(replace(asked, history=(*asked.history, slower, wrong))).text
    lines = [line for line in text.splitlines() if line.startswith(("- c2", "- c3"))]
    assert lines == [
        "- c2 “wider tiles” (promised: −20% time): passed; 12.5 µs predicted; limited by memory bandwidth; "
        "predicted: memory 6.08, waits 0.5, launch 2 µs; 1,000 warp instructions: float 48%, integer 30%; "
        "16-byte loads would halve them; one wave; rejected: slower",
        "- c3 “first version”: wrong_result (error 2e-2 on prime)",
    ]


def test_hot_lines_are_quoted() -> None:
    start = profiled()
    assert start.trial is not None and start.trial.profile is not None
    lines = (LineCounters(4, {"moved_bytes": 4096.0}), LineCounters(99, {"moved_bytes": 4096.0}))
    hot = replace(start, trial=replace(start.trial, profile=replace(start.trial.profile, lines=lines)))
    text = render(request("refine", hot)).text
    assert "- line 4: 50% of global sectors: `def launch(x, y, stream):`" in text and "line 99" not in text
    source = hot.candidate.source.replace(
        "(x, y, stream)", f"(x, y, stream, {', '.join(f'a{n}=1' for n in range(60))})"
    )
    proposal = replace(hot.candidate.proposal, source=source)
    text = render(request("refine", replace(hot, candidate=replace(hot.candidate, proposal=proposal)))).text
    quoted = next(line for line in text.splitlines() if line.startswith("- line 4: ")).partition("`")[2]
    assert 190 < len(quoted) <= 201 and quoted.endswith("…`")


def test_refine_says_what_each_term_takes_and_what_is_attainable() -> None:
    text = render(request("refine", profiled())).text
    limiter, terms = text.index("limited by: memory bandwidth"), text.index("- predicted: memory 6.08, waits 0.5")
    assert limiter < terms and "launch 2 µs; attainable ≈ 8.08 µs\n" in text


def test_a_model_knows_that_a_search_sets_values() -> None:
    for asked in (request(), request("refine", profiled())):
        assert "A search sets the values of `TUNABLE`" in render(replace(asked, searched=True)).text
        assert "A search sets" not in render(asked).text


def test_refine_says_what_the_kernel_executes() -> None:
    text = render(request("refine", profiled())).text
    assert "- 1,000 warp instructions: float 48%, integer 30%\n" in text
    assert "- bank conflicts: 25% of the shared-memory wavefronts\n" in text


def test_a_spec_is_told_its_settings_and_no_lines_of_the_module() -> None:
    start = profiled()
    assert start.trial is not None and start.trial.profile is not None
    lines = (LineCounters(4, {"moved_bytes": 4096.0}),)
    proposal = replace(start.candidate.proposal, spec="kernel scan for sm_90a\n", config={"vec": 4, "loads": 2})
    trial = replace(start.trial, profile=replace(start.trial.profile, lines=lines))
    spec = replace(start, candidate=replace(start.candidate, proposal=proposal), trial=trial)
    text = render(replace(request("refine", spec), language="spec")).text
    assert "- settings in use, defaults included: vec=4, loads=2\n" in text and "line 4:" not in text


def test_template_syntax_in_a_reference_is_data() -> None:
    hostile = "def reference(x):\n    '''{{ 7*7 }} {% include \"x\" %} ``` ````'''\n    return x\n"
    text = render(request(task=problem(hostile))).text
    assert "{{ 7*7 }}" in text and '{% include "x" %}' in text
    assert re.search(r"^`{5}python\n", text, re.MULTILINE), "the fence must be longer than any run inside it"


def test_a_value_a_prompt_lacks_is_an_error() -> None:
    with pytest.raises(UndefinedError):
        prompting._render("refine", {"problem_name": "x"})


def test_a_reask_repeats_the_prompt_and_the_complaint() -> None:
    first = render(request())
    again = render_reask(first, "It has no module.")
    assert first.text.strip() in again.text and "It has no module." in again.text
    assert again.ref.id == "reask" and again.ref.sha256 != first.ref.sha256


@pytest.mark.parametrize("name", ["generate", "fix", "refine", "reask"])
def test_front_matter_is_complete(name: str) -> None:
    assert front_matter(name).keys() == {"id", "version", "inputs", "answer"}
    assert front_matter(name)["id"] == name
