"""The magics in a real shell, from cell to accepted kernel."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from IPython.core.interactiveshell import InteractiveShell

from cutegen_lab.core.errors import CutegenError, InputError, SetupError, SpecError
from cutegen_lab.core.run import Budget
from cutegen_lab.core.verbs import VERBS
from cutegen_lab.notebook.magics import parse_budget
from cutegen_lab.notebook.run import NotebookRun
from cutegen_lab.problems import read_text
from cutegen_lab.views.model import MIME_TYPE

pytestmark = pytest.mark.kernel

CELL = "def reference(x):  # x: f32[8,64]\n    return torch.softmax(x, dim=-1)\n"


@pytest.fixture(scope="module")
def run(shell: InteractiveShell) -> NotebookRun:
    """At its first review, or further on where a test gave it an answer."""
    return started(shell)


def started(shell: InteractiveShell) -> NotebookRun:
    shell.run_cell_magic("cutegen", "--name tiny --wait --max-steps 3 --device emulator", CELL)
    run = shell.user_ns["run"]
    assert isinstance(run, NotebookRun)
    return run


def test_loading_returns_at_once_and_imports_torch_alone_in_the_background() -> None:
    code = (
        "import sys, threading, IPython; from IPython.core.interactiveshell import InteractiveShell;"
        "InteractiveShell.instance().run_line_magic('load_ext', 'cutegen_lab');"
        "others = {t.name: t for t in threading.enumerate()};"
        "print(sorted({'cutlass', 'pydantic', 'openai'} & set(sys.modules)));"
        "others['cutegen-import'].join();"
        "print('torch' in sys.modules)"
    )
    seen = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603
    assert seen.stdout.split() == ["[]", "True"]


def test_a_profile_and_its_plot(run: NotebookRun) -> None:
    profile = run.profile()
    assert profile.source == "emulator" and profile.lines
    recorded = run.handle.state.trials["c1"].profile
    assert recorded is profile and run.profile("c1", "emulator") is recorded, "counted once"
    drawn = run.plot_profile("c1")
    shown = next(t for t in drawn.figure.data if t.type == "scatter")
    counted = dict(zip(shown.y, shown.x, strict=True))
    assert counted["global load sectors"] == profile.counters["global_load_sectors"] > 0
    rows = {row["counter"]: row["value"] for row in drawn.table if row["record"] == "Counted"}
    assert rows["global_load_sectors"] == profile.counters["global_load_sectors"]
    assert any(row["record"] == "LineShare" for row in drawn.table) and "<plot profile: " in repr(drawn)
    with pytest.raises(InputError, match=r"c9 of run .* is not compiled"):
        run.profile("c9")
    if not torch.cuda.is_available():
        with pytest.raises(SetupError, match="no CUDA device"):
            run.profile(device="cuda")


def test_from_review_to_an_accepted_kernel(
    shell: InteractiveShell, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = started(shell)
    assert run.status == "review" and "approve" in run.view().verbs
    evidence = run.evidence()
    assert "passed" in evidence and "(predicted)" in evidence and "PyTorch f32" in evidence
    assert "def launch(" in run.source
    with pytest.raises(InputError, match="no accepted kernel"):
        _ = run.best
    run.reject("use fewer threads")
    assert run.status == "review"
    second = run.source
    compared = run.compare("c1", "c2", ptx=True)
    assert re.search(r"^Time +\S+ µs predicted +\S+ µs predicted +(=|[+−]\d)", compared, re.M), compared
    assert re.search(r"^config: \w+: \S+ → \S+$", compared, re.M) and re.search(r"^PTX: \+[1-9]", compared, re.M)
    assert "\n+ " in compared and ".loc" not in compared
    shell.run_line_magic("cutegen", "approve")
    run.wait()
    assert run.best == second
    kernel = tmp_path / "kernel.py"
    shell.run_line_magic("cutegen", f"export {kernel}")
    said = capsys.readouterr().out
    assert "judged again in a fresh process on" in said and "wrote" in said
    assert "TUNABLE" not in kernel.read_text() and "def launch(x: cute.Tensor, out: cute.Tensor" in kernel.read_text()
    shell.run_line_magic("cutegen", f"export {kernel} --general --no-verify")
    assert second.strip() in kernel.read_text()
    assert run.export(tmp_path / "run.html").read_text().startswith("<!")
    text = run.source + "\n# the analyst was here\n"
    run.edit(text)
    candidates = run.handle.state.candidates
    assert candidates[max(candidates)].source == text, "exactly what was edited runs next"


def test_comments_and_pins_from_a_line(run: NotebookRun, shell: InteractiveShell) -> None:
    shell.run_line_magic("cutegen", f"comment c1:1-2 what is this for? --run {run.run_id}")
    shell.run_line_magic("cutegen", f"pin c1:vec keep it --run {run.run_id}")
    notes = run.handle.state.notes
    assert [(n.what, n.text, n.pin) for n in notes.values()] == [
        ("lines 1–2 of c1", "what is this for?", False), ("`vec` of c1", "keep it", True),
    ]  # fmt: skip
    for name in list(notes):
        shell.run_line_magic("cutegen", f"lift {name} --run {run.run_id}")
    assert not run.handle.state.notes


def test_a_run_shows_as_text_html_and_json(run: NotebookRun) -> None:
    bundle = run._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "text/html", MIME_TYPE}
    assert "<script" not in bundle["text/html"]
    assert repr(run) == f"<cutegen run {run.run_id}>"


def test_runs_are_listed(run: NotebookRun, shell: InteractiveShell, capsys: pytest.CaptureFixture[str]) -> None:
    shell.run_line_magic("cutegen", "runs")
    assert run.run_id in capsys.readouterr().out


@pytest.mark.usefixtures("without_displays")
@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("bogus", "cutegen: unknown verb 'bogus'"),
        ("branch", "Write %cutegen branch CANDIDATE"),
        ("lift", "Write %cutegen lift NOTE"),
        ("lift n9", "there is no comment or pin 'n9'"),
        ("pin", "no place is named. Write c2:10-14"),
        ("pin no_such_name keep it", "has no parameter, function or top-level name 'no_such_name'"),
        ("comment 1", "the comment is empty"),
        ("edit gone.py", "cannot read gone.py"),
        ("edit binary.py", "binary.py is not UTF-8 text"),
        ('edit "half quoted', "Write %cutegen edit FILE"),
        ("show nothing-0000", "nothing-0000"),
        ("export kernel.txt", "Let the file name end in .py (the kernel), .whl (the kernel as a package"),
        ("import gone.cutegen", "cannot read gone.cutegen"),
        ("import binary.py", "binary.py is damaged, or no archived run"),
        ("import", "Write %cutegen import FILE"),
        ("reject it isn't fast --run nothing-0000", "nothing-0000"),
    ],
)
def test_what_goes_wrong_is_one_line(
    run: NotebookRun, shell: InteractiveShell, capsys: pytest.CaptureFixture[str], line: str, says: str
) -> None:
    Path("binary.py").write_bytes(b"\xff\xfe\x00")  # in the shell's folder
    run.wait()  # an edit of another test may still be checked
    capsys.readouterr()  # what the magic printed when it made the run
    assert not shell.run_cell(f"%cutegen {line}").success
    error = capsys.readouterr().out
    assert says in error and error.count("\n") == 1


def test_an_error_of_ours_is_one_line_and_a_traceback_under_debug(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cutegen_lab.problems.read_text", lambda *_, **__: 1 // 0)
    with pytest.raises(CutegenError, match=r"^internal error: ZeroDivisionError: .* Add --debug for the traceback"):
        shell.run_cell_magic("cutegen", "", CELL)
    with pytest.raises(CutegenError):
        shell.run_cell_magic("cutegen", "--debug", CELL)
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.usefixtures("without_displays")
@pytest.mark.parametrize(
    ("call", "says"),
    [
        ("tune(budgte=3)", "Did you mean 'budget'? Write tune(candidate_id=None, budget=40, refactor=False)."),
        ("tune(budget='many')", "cutegen: tune: budget is 'many', not a whole number. Write tune("),
        ("tune(budget=0)", "cutegen: a budget of 0 allows no config. Use 1 or more."),
        ("tune('c9')", "has no candidate c9. Candidates: c1"),
        ("edit()", "cutegen: edit: missing a required argument: 'text'. Write edit(text, wait=True)."),
        ("plot_profile(devices='emulator')", "devices is 'emulator', not a list whose every item is text"),
        ("evidence('c9')", "c9"),
        ("compare('c1', 'c9')", "has no candidate 'c9'. Candidates: c1"),
    ],
)
def test_a_verb_with_wrong_arguments_shows_one_line(
    run: NotebookRun, shell: InteractiveShell, capsys: pytest.CaptureFixture[str], call: str, says: str
) -> None:
    shell.user_ns["wrongly"] = run
    capsys.readouterr()  # what the magic printed when it made the run
    assert not shell.run_cell(f"wrongly.{call}").success  # a cell that fails ends a notebook that runs by itself
    said = capsys.readouterr().out
    assert says in said and said.count("\n") == 1


@pytest.mark.usefixtures("without_displays")
def test_a_bad_cell_is_one_line(shell: InteractiveShell, capsys: pytest.CaptureFixture[str]) -> None:
    assert not shell.run_cell("%%cutegen --name broken\ndef reference(x:\n").success
    error = capsys.readouterr().out
    assert "syntax error at line 2:" in error and error.count("\n") == 1, "the magic is line 1, as the notebook counts"
    assert not shell.run_cell("%%cutegen\ndef reference(x):  # x: f32[8]\n    raise ValueError('boom')\n").success
    assert "ValueError at line 3: boom" in capsys.readouterr().out


@pytest.mark.parametrize("magic", ["cutegen", "cutegen_tune"])
def test_a_syntax_error_is_told_without_pytorch(magic: str, tmp_path: Path) -> None:
    cell = f"%%{magic} --workdir {tmp_path}\ndef reference(x:\n"
    script = (
        "import sys; sys.modules['torch'] = None\n"  # importing it raises ImportError
        "from IPython.core.interactiveshell import InteractiveShell\n"
        "shell = InteractiveShell.instance(); shell.run_line_magic('load_ext', 'cutegen_lab')\n"
        f"shell.run_cell({cell!r})\n"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)  # noqa: S603
    assert "syntax error at line 2" in ended.stdout


HELP = {
    "cutegen": ("--inputs", "--provider", "--language", "--max-steps", "--budget", "--replay", "--review"),
    "cutespec": ("--run", "--check", "--auto"),
    "cutegen_tune": ("--kernel", "--refactor", "--seed"),
}


@pytest.mark.parametrize("name", HELP)
def test_help_has_the_name_every_option_and_an_example_that_works(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    shell.run_cell(f"%%{name}?")
    asked = capsys.readouterr().out
    shell.run_cell(f"%%{name} --help\nx")
    helped = capsys.readouterr().out
    for text in (asked, helped):
        assert f"  %%{name} [" in text and "cutegen_cell" not in text and "%%%" not in text
        assert all(option in text for option in (*HELP[name], "--out", "--wait", "--debug"))
    magic, _, body = helped.partition("example:\n")[2].partition("\n")
    assert magic.startswith(f"%%{name} --")
    if name == "cutespec":
        assert shell.run_cell(f"{magic}\n{body}").success
    else:
        assert read_text(body, name="example", inputs_text="").name == "example"


@pytest.mark.parametrize("line", ["", "help", "--help", "-h"])
def test_the_line_magic_lists_its_verbs(shell: InteractiveShell, capsys: pytest.CaptureFixture[str], line: str) -> None:
    assert shell.run_cell(f"%cutegen {line}").success
    said = capsys.readouterr().out
    assert all(f"\n  {verb} " in said for verb in VERBS)


@pytest.mark.parametrize(
    ("cell", "says"),
    [
        (f"%%cutegen --nmae x\n{CELL}", "unrecognized arguments: --nmae x. Did you mean '--name'? `%%cutegen?` "),
        (f"%%cutegen --zzz=1\n{CELL}", "unrecognized arguments: --zzz=1. `%%cutegen?` "),
        (f"%%cutegen_tune --bugdet=3\n{CELL}", "Did you mean '--budget'? `%%cutegen_tune?` "),
        ("%cutegen aprove", "unknown verb 'aprove'. Did you mean 'approve'? "),
        (f"%%cutegen --provider opnai\n{CELL}", "Did you mean 'openai'? Use one of: templates, openai, manual, "),
        (f"%%cutegen --arch sm90a\n{CELL}", "Did you mean 'sm_90a'? Use --arch with one of: sm_80, sm_89, sm_90a."),
        (f"%%cutegen --gpu H20\n{CELL}", "Did you mean 'H200'? Use --gpu with one of: "),
        (f"%%cutegen --device emulatr\n{CELL}", "Did you mean 'emulator'? Use one of: "),
        (f"%%cutegen --budget 2usd\n{CELL}", "a cap of $2.00 needs a price. Give --price 1.25/10 (dollars "),
        (f"%%cutegen --price 2\n{CELL}", "cannot read the price '2'. Write dollars for a million tokens "),
        (f"%%cutegen --language spce\n{CELL}", "Did you mean 'spec'? "),
    ],
)
def test_a_misspelt_word_is_answered_with_the_word_that_was_meant(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str], cell: str, says: str
) -> None:
    assert not shell.run_cell(cell).success
    *_, said = capsys.readouterr().out.splitlines()  # below what other runs show meanwhile
    assert said.startswith("cutegen: ") and says in said


def test_budgets() -> None:
    assert parse_budget("", 8) == Budget(max_steps=8)
    assert parse_budget('"600s, 2000tok"', 3) == Budget(max_steps=3, max_seconds=600.0, max_tokens=2000)
    assert parse_budget("2.50usd", 3) == Budget(max_steps=3, max_usd=2.5)
    for wrong in ("10m", "s", "tok", "x", "9stok", "2toks", "²s", "0s", "1" * 400 + "s"):
        with pytest.raises(InputError, match="cannot read the budget"):
            parse_budget(wrong, 8)
    with pytest.raises(InputError, match="allows no candidate"):
        parse_budget("", 0)


SPEC = "kernel doubled\nin x: f32[8, 64]\nout y: f32 = softmax(x * 2, dim=-1)\nwith threads_per_row=16\n"


def test_a_spec_cell_starts_a_run_with_its_config(shell: InteractiveShell, capsys: pytest.CaptureFixture[str]) -> None:
    shell.run_cell_magic("cutespec", "--check", SPEC)
    assert "doubled: row reduction" in (said := capsys.readouterr().out) and "threads_per_row=16," in said
    shell.run_cell_magic("cutespec", "--wait --device emulator --out specified", SPEC)
    specified = shell.user_ns["specified"]
    assert specified.status == "review" and "passed" in specified.evidence()
    assert specified.handle.state.current.config["threads_per_row"] == 16
    with pytest.raises(SpecError, match=r"^line 4, column 14: there is no function 'softmux'"):
        shell.run_cell_magic("cutespec", "", SPEC.replace("softmax", "softmux"))


def test_a_spec_can_be_the_next_candidate_of_a_run(run: NotebookRun, shell: InteractiveShell) -> None:
    shell.run_cell_magic("cutespec", f"--run {run.run_id} --wait", SPEC.replace(" * 2", ""))
    current = run.handle.state.current
    assert current is not None and current.provider == "analyst" and "passed" in run.evidence(current.id)
