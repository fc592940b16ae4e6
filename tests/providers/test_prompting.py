"""Prompts hold what they promise, and text from outside stays data."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from jinja2 import UndefinedError

from cutegen_lab.core.hashing import sha256
from cutegen_lab.core.trial import Profile
from cutegen_lab.core.verdict import Verdict
from cutegen_lab.providers import prompting
from cutegen_lab.providers.prompting import front_matter, render, render_reask
from tests.providers.requests import attempt, problem, request


def test_generate_holds_problem_contract_rules_and_example() -> None:
    prompt = render(request())
    for needed in ("torch.cumsum(x, dim=-1)", "The candidate contract", "range_constexpr", "def softmax_kernel",
                   "`main`: (x: f32[1024,4096])", "prime columns", "H200", "sm_90a", "How to answer"):  # fmt: skip
        assert needed in prompt.text, needed
    assert prompt.ref.id == "generate"
    assert prompt.ref.sha256 == sha256(prompt.text)
    assert len(prompt.text) < 6000 * 4, "the prompt's budget is about 6,000 tokens"


def test_only_matrix_products_get_their_rules() -> None:
    product = render(request(task=problem("def reference(x):\n    return x @ x.T\n"))).text
    assert "`tma_bar_ptr=`" in product and "Matrix products: tile" in product
    assert len(product) < 6000 * 4
    plain = render(request()).text
    assert "`tma_bar_ptr=`" not in plain and "A scan: give each thread" in plain


def test_a_waived_determinism_is_not_asked_for() -> None:
    assert "bit for bit" in render(request()).text
    assert "bit for bit" not in render(request(task=replace(problem(), deterministic=False))).text


def test_strided_inputs_are_explained_where_there_are_some() -> None:
    assert "Every tensor is contiguous, row-major" in render(request()).text
    assert "with strides after their" not in render(request()).text
    scan = problem()
    columns = replace(scan.workload, inputs=(replace(scan.workload.inputs[0], strides=(1, 1024)),))
    text = render(request(task=replace(scan, workloads=(columns,)))).text
    assert "with strides after their" in text and "`main`: (x: f32[1024,4096]:(1,1024))" in text
    assert "Tensors of any rank are contiguous" not in text


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
    assert "c1 “first version”: passed, 12.5 µs predicted" in text


def test_refine_says_what_each_term_takes_and_what_is_attainable() -> None:
    start = attempt()
    assert start.trial is not None
    counters = {"predicted_memory_us": 6.08, "predicted_waits_us": 0.5, "predicted_launch_us": 2.0}
    counters["predicted_copy_us"] = 6.08
    profiled = replace(start, trial=replace(start.trial, profile=Profile("emulator", "memory bandwidth", counters)))
    text = render(request("refine", profiled)).text
    limiter, terms = text.index("limited by: memory bandwidth"), text.index("- predicted: memory 6.08, waits 0.5")
    assert limiter < terms and "launch 2 µs; attainable ≈ 8.08 µs\n" in text


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
