"""Answers in the compact language: prompts that hold it, texts that become kernels, and what is told of the others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from cutegen_lab.core.candidate import Proposal
from cutegen_lab.core.errors import InputError
from cutegen_lab.core.problem import Problem
from cutegen_lab.core.protocols import GenerateRequest
from cutegen_lab.core.roofline import GPUS
from cutegen_lab.core.run import Budget, RunSettings
from cutegen_lab.core.verdict import Verdict
from cutegen_lab.cutespec import GRAMMAR
from cutegen_lab.problems import read_text
from cutegen_lab.providers.cutespec_replies import answer_grammar, written_out
from cutegen_lab.providers.prompting import render
from cutegen_lab.providers.replies import MalformedAnswer, done, parse
from cutegen_lab.session import Session
from tests.cutespec.engines import ENGINES, engine
from tests.providers.requests import attempt, request

SPEC = """\
kernel gate for sm_90a
in a: f32[M, N]
in b: f32[N]
out y: f32 = silu(a) * b
size M=12, N=40
with vec=2
"""
MODULE = "import cutlass\n\n\ndef launch(x, stream):\n    return None\n"


@pytest.fixture(scope="module")
def problem() -> Problem:
    source = "def reference(x, g):\n    return F.silu(x) * g\n"
    read = read_text(source, name="gate", inputs_text="x: f32[12,40], g: f32[40]")
    return replace(read, check_workloads=read.check_workloads[:1])


def asked(problem: Problem) -> GenerateRequest:
    return GenerateRequest("generate", problem, GPUS["H200"], "sm_90a", language="spec")


def test_a_spec_is_an_answer_only_where_it_is_asked_for() -> None:
    text = f"Title: narrow\n\n```cutespec\n{SPEC}```\n"
    answer = parse(text, specs=True)
    assert (answer.source, answer.title, answer.is_spec) == (SPEC, "narrow", True)
    with pytest.raises(MalformedAnswer, match="no code block defines launch"):
        parse(text)
    assert not parse(f"```python\n{MODULE}```", specs=True).is_spec
    with pytest.raises(MalformedAnswer, match="2 different cutespec blocks"):
        parse(f"{text}```cutespec\n{SPEC}# more\n```", specs=True)
    with pytest.raises(MalformedAnswer, match="no code block is marked cutespec"):
        parse(f"```\n{SPEC}```", specs=True)


HEAD = "Title: narrow\nReason: two at a time\nPredicted effect: 5% less time\n\n"


@pytest.mark.parametrize("name", ENGINES)
def test_an_answer_under_the_grammar_is_one_that_is_read(name: str) -> None:
    accepts = engine(name, answer_grammar)
    for spec in (SPEC, f"# a comment\n\n{SPEC}# another\n\n", SPEC.replace("* b", "* b  # why")):
        text = f"{HEAD}```cutespec\n{spec}```\n"
        assert accepts(text) and accepts(text.replace("\n\n```", "\n```").rstrip())
        answer = parse(text, specs=True)
        assert answer.is_spec and answer.source == spec.strip("\n") + "\n"
        assert (answer.title, answer.reason, answer.predicted_effect) == ("narrow", "two at a time", "5% less time")
    whole = f"{HEAD}```cutespec\n{SPEC}```\n"
    more = "Expect: time -12%\nImplements: i2\n\nIdea: two rows | time -8% | small\nIdea: no barrier\n\n"
    longer = f"{HEAD.strip()}\n{more}```cutespec\n{SPEC}```\n"
    assert accepts(longer) and len(parse(longer, specs=True).ideas) == 2
    assert accepts("Done: it is at the floor\n") and done("Done: it is at the floor\n")
    for broken in (
        whole.replace("Title: narrow\n", ""), whole.replace("Reason: two at a time", "Reason: "), whole.rstrip("`\n"),
        whole.replace("cutespec", "python"), whole.replace(SPEC, MODULE), f"Sure!\n{whole}", f"{whole}More.",
        whole.replace("* b", "* (b"), whole.replace("with vec=2\n", "with vec=2"), f"<think>narrow{whole}",
    ):  # fmt: skip
        assert not accepts(broken), broken
    thought = "<think>\nx << 2 is less than </x> of 3 < 4\n</think>\n\n"
    assert accepts(thought + whole) is (name != "llguidance"), "a tool's input has no reasoning"


def test_the_prompt_holds_the_grammar_the_functions_and_the_templates() -> None:
    prompt = render(replace(request(), language="spec"))
    assert prompt.ref.id == "generate_spec"
    for needed in (
        GRAMMAR.read_text().rstrip(),
        "gelu (approximate=)",
        "- row reduction: vec (1, 2",
        "marked `cutespec`",
    ):
        assert needed in prompt.text, needed
    assert "range_constexpr" not in prompt.text and len(prompt.text) < 3000 * 4


def test_the_candidate_is_shown_as_it_was_written() -> None:
    parent = attempt()
    spec = replace(parent.candidate.proposal, spec=SPEC)
    written = replace(parent, candidate=replace(parent.candidate, proposal=spec))
    text = render(replace(request("refine", written), language="spec")).text
    assert f"```cutespec\n{SPEC}```" in text
    assert f"```python\n{parent.candidate.source.rstrip()}\n```" in render(
        replace(request("fix", parent), language="spec")
    ).text  # fmt: skip


def test_it_becomes_the_module_that_the_templates_write(problem: Problem) -> None:
    proposal = written_out(Proposal(SPEC, "narrow"), asked(problem))
    assert "def launch(" in proposal.source and proposal.spec == SPEC and not proposal.refused
    assert proposal.config["vec"] == 2


@pytest.mark.parametrize(
    ("old", "new", "line", "says"),
    [
        ("silu", "sliu", 4, "column 14: there is no function 'sliu'"),
        ("with vec=2", "with vec=3", 6, "column 6: vec is 3; it may be"),
        ("in b: f32[N]", "in b: bf16[N]", 3, "`in` 2 is b: bf16[40], but the problem has g: f32[40]"),
        ("in b: f32[N]\n", "in b: f32[N]\nin c: f32[N]\n", 4, "the spec has 3 `in`, but the problem has 2"),
        ("out y: f32", "out y: bf16", 4, "`out` 1 is out: bf16[12,40], but the problem has out: f32[12,40]"),
        ("sm_90a", "sm_80", 1, "the spec is for sm_80, not for sm_90a"),
    ],
)
def test_what_is_wrong_comes_back_with_its_line_and_column(
    problem: Problem, old: str, new: str, line: int, says: str
) -> None:
    proposal = written_out(Proposal(SPEC.replace(old, new), "wrong"), asked(problem))
    (diagnostic,) = proposal.refused
    assert (diagnostic.line, diagnostic.code) == (line, "spec") and says in diagnostic.message
    assert proposal.source == proposal.spec
    marked = diagnostic.excerpt.splitlines()
    assert any(row.strip() == "^" for row in marked) and any(row.startswith(f"{line:4} ") for row in marked)


@pytest.mark.kernel
def test_a_run_takes_a_refused_spec_as_a_compile_error_and_the_next_as_a_kernel(
    problem: Problem, tmp_path: Path
) -> None:
    folder = tmp_path / "manual"
    folder.mkdir()
    for number, text in enumerate((SPEC.replace("silu", "sliu"), SPEC), 1):
        (folder / f"{number:04}.answer.md").write_text(f"Title: number {number}\n\n```cutespec\n{text}```\n")
    settings = RunSettings(
        provider=f"manual:{folder}", device="emulator", auto=True, language="spec", budget=Budget(max_steps=2)
    )
    with Session.open(tmp_path / "work") as session:
        run = session.run(problem, settings)
        state = run.state
        with pytest.raises(InputError, match=r"c1 is a spec that no kernel could be made of\. Kernels: c2"):
            run.export(tmp_path / "k.py", "c1")
    first, second = state.trials["c1"], state.trials["c2"]
    assert first.verdict is Verdict.COMPILE_ERROR and first.diagnostics[0].line == 4
    assert "Did you mean 'silu'?" in (folder / "0002.request.md").read_text()
    assert second.verdict is Verdict.PASSED and state.accepted == ("c2",)
    assert state.candidates["c2"].proposal.spec == SPEC


def test_templates_write_no_specs(problem: Problem, tmp_path: Path) -> None:
    with Session.open(tmp_path) as session, pytest.raises(InputError, match="templates read the reference"):
        session.start(problem, RunSettings(language="spec"))
