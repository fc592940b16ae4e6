"""The command line from outside: exit statuses, one JSON object, one-line errors."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cutegen_lab.cli import doctor
from cutegen_lab.cli.judge import read_given
from cutegen_lab.core.errors import InputError
from cutegen_lab.loop import fold
from cutegen_lab.stores.sqlite import SqliteStore
from tests.cli.command import KERNEL, cutegen, cutegen_process, environment, only_object, start
from tests.loop.scripted import started


def answer(folder: Path, *sources: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for number, source in enumerate(sources, start=1):
        (folder / f"{number:04}.answer.md").write_text(f"A title\n\n```python\n{source}```\n")


def test_version_and_help_import_nothing_heavy(place: Path) -> None:
    for arguments in (["--version"], ["--help"], ["run", "--help"]):
        done = cutegen(place, *arguments)
        assert done.returncode == 0 and done.stdout
    assert cutegen_process(place, "--version").stdout == cutegen(place, "--version").stdout
    heavy = "import sys; from cutegen_lab.cli import main\ntry: main(['--help'])\nexcept SystemExit: pass\n"
    check = f"{heavy}print([m for m in ('torch','cutlass','pydantic','rich','numpy') if m in sys.modules])"
    done = start(place, [sys.executable, "-c", check])
    told, _ = done.communicate(timeout=30)
    assert told.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["bogus"], "invalid choice: 'bogus'"),
        (["jugde"], "Did you mean 'judge'? See `cutegen --help`."),
        (["run", "x.py", "--nmae", "x"], "Did you mean '--name'? See `cutegen run --help`."),
        (["doctor", "--nmae", "x"], "unrecognized arguments: --nmae x. See `cutegen doctor --help`."),
        (["runs", "shwo", "x"], "Did you mean 'show'? See `cutegen runs --help`."),
        (["judge", "nowhere.py", "k.py"], "cannot read nowhere.py"),
        (["run", "nowhere.py"], "cannot read nowhere.py"),
        (["judge", "softmax.py", "nowhere.py"], "cannot read nowhere.py"),
        (["judge", "softmax.py", "bad.json"], "bad.json is not an artifact"),
        (["judge", "softmax.py", "deep.json"], "deep.json is not an artifact"),
        (["judge", "softmax.py", "softmax.py"], "softmax.py is no kernel: it has no function launch()"),
        (["judge", "softmax.py", str(KERNEL), "--config", "{"], "--config is not JSON"),
        (["judge", "softmax.py", str(KERNEL), "--config", "[" * 10_000], "--config is not JSON"),
        (["judge", "softmax.py", str(KERNEL), "--device", "tpu"], "unknown device 'tpu'"),
        (["judge", "softmax.py", str(KERNEL), "--device", "cuda:7"], "visible"),
        (["run", "softmax.py"], "review needs a terminal"),
        (["run", "softmax.py", "--auto", "--provider", "gpt"], "unknown provider 'gpt'"),
        (["run", "softmax.py", "--auto", "--provider", "openai"], "OPENAI_API_KEY"),
        (["run", "softmax.py", "--auto", "--provider", "replay"], "replay needs a file. Use --provider replay:FILE."),
        (["run", "softmax.py", "--auto", "--provider", "manual:softmax.py"], "Use --provider manual:DIR."),
        (["run", "softmax.py", "--auto", "--language", "spec"], "templates read the reference, and write no specs"),
        (["run", "softmax.py", "--auto", "--max-steps", "0"], "not a positive number"),
        (["run", "softmax.py", "--auto", "--max-steps", "x"], "'x' is not a positive number"),
        (["tune", "softmax.py", "--max-seconds", "-1"], "'-1' is not a positive number of seconds"),
        (["tune", "softmax.py", "--max-seconds", "nan"], "'nan' is not a positive number of seconds"),
        (["tune", "softmax.py", "--provider", "openai"], "Add --refactor"),
        (["run", "empty.py", "--auto"], "empty.py"),
        (["sol", "softmax.py", "--arch", "sm_70"], "no speed-of-light figures for arch 'sm_70'"),
        (["sol", "softmax.py", "--gpu", "V100"], "no speed-of-light figures for GPU 'V100'"),
        (["judge", "softmax.py", str(KERNEL), "--gpu", "A100"], "the A100 runs sm_80, not sm_90a. Use --arch sm_80"),
        (["runs", "show", "nothing"], "no run 'nothing'"),
    ],
)
def test_bad_input_is_one_line_and_status_2(place: Path, arguments: list[str], message: str) -> None:
    (place / "bad.json").write_text('{"schema": "cutegen-artifact", "schema_version": 1}')
    (place / "deep.json").write_text('{"schema": ' + "[" * 100_000)
    (place / "empty.py").write_text("")
    done = cutegen(place, *arguments, "--json")
    assert done.returncode == 2, done.stderr
    assert len(done.stderr.strip().splitlines()) == 1 and done.stderr.startswith("cutegen: ")
    if message != "empty.py":
        assert message in done.stderr
    data = only_object(done)
    assert data["verdict"] is None and data["error"] in done.stderr


def test_without_json_an_error_leaves_stdout_empty(place: Path) -> None:
    done = cutegen(place, "sol", "nowhere.py")
    assert (done.returncode, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr
    assert "Traceback" in cutegen_process(place, "sol", "nowhere.py", "--debug").stderr


@pytest.mark.kernel
def test_judge_passed_and_wrong(place: Path) -> None:
    done = cutegen(place, "judge", "softmax.py", str(KERNEL), "--json")
    data = only_object(done)
    assert (done.returncode, data["verdict"]) == (0, "passed"), done.stderr
    assert data["timing"]["kind"] == "predicted"
    assert data["error"]["norm"] <= data["error"]["limit_norm"]
    assert data["provenance"]["versions"]["nvidia-cutlass-dsl"]
    wrong = place / "wrong.py"
    wrong.write_text(KERNEL.read_text().replace("value / total", "value / (total + 1.0)"))
    done = cutegen(place, "judge", "softmax.py", str(wrong), "--json")
    data = only_object(done)
    assert (done.returncode, data["verdict"], data["timing"]) == (3, "wrong_result", None)
    assert "float64" in data["reason"]
    broken = place / "broken.py"
    broken.write_text("import os\n" + KERNEL.read_text())
    done = cutegen(place, "judge", "softmax.py", str(broken))
    assert done.returncode == 3
    assert "verdict: rejected_source" in done.stdout


@pytest.mark.kernel
@pytest.mark.parametrize(("arch", "gpu"), [("sm_80", "A100"), ("sm_89", "L40S")])
def test_judge_for_older_gpus(place: Path, arch: str, gpu: str) -> None:
    data = only_object(cutegen(place, "judge", "softmax.py", str(KERNEL), "--arch", arch, "--json"))
    assert (data["verdict"], data["sol"]["gpu"], data["provenance"]["arch"]) == ("passed", gpu, arch)


def test_what_a_reference_prints_stays_off_stdout(place: Path) -> None:
    (place / "loud.py").write_text(
        "print('hello')\nimport os\nos.system('echo from a child')\n" + (place / "softmax.py").read_text()
    )
    data = only_object(cutegen(place, "sol", "loud.py", "--json"))
    assert data["limiter"] == "memory" and data["compulsory_bytes"] == 64 * 1024 * 2 * 2


def test_a_config_names_what_the_kernel_has(place: Path) -> None:
    (place / "tunable.py").write_text(f'TUNABLE = {{"threads": (32, 64)}}\n{KERNEL.read_text()}')
    done = cutegen(place, "judge", "softmax.py", "tunable.py", "--config", '{"thraeds": 64}')
    assert done.returncode == 2 and "Did you mean 'threads'?" in done.stderr


def test_sol(place: Path) -> None:
    done = cutegen(place, "sol", "softmax.py")
    assert done.returncode == 0
    assert "262,144 B" in done.stdout and "0.0546 µs on H200, set by memory" in done.stdout
    assert "checked also at these shapes:\n  real_row " in done.stdout


def test_sol_says_that_an_answer_hardly_depends_on_an_input(place: Path) -> None:
    (place / "flat.py").write_text("def reference(x, y):  # x: f32[64,64], y: f32[64]\n    return x + y * 0\n")
    assert "flat: the answer hardly depends on y: left out of means" in cutegen(place, "sol", "flat.py").stdout
    assert only_object(cutegen(place, "sol", "flat.py", "--json"))["insensitive"] == ["y"]
    assert only_object(cutegen(place, "sol", "softmax.py", "--json"))["insensitive"] == []


@pytest.mark.kernel
def test_a_run_through_a_written_answer_to_an_exported_kernel(place: Path) -> None:
    answer(place / "talk", KERNEL.read_text())
    talk = ["run", "softmax.py", "--provider", f"manual:{place / 'talk'}", "--auto", "--max-steps", "1"]
    done = cutegen(place, *talk, "--out", "kernel.py", "--json")
    data = only_object(done)
    assert (done.returncode, data["verdict"], data["outcome"]) == (0, "passed", "accepted"), done.stderr
    assert data["kernel"] == "kernel.py" and data["accepted"] == ["c1"]
    again = cutegen(place, "judge", "softmax.py", "kernel.py")
    assert again.returncode == 0, again.stdout + again.stderr

    listed = only_object(cutegen(place, "runs", "--json"))
    assert listed == only_object(cutegen(place, "runs", "--json", "list"))
    assert [r["run_id"] for r in listed["runs"]] == [data["run_id"]]
    shown = cutegen(place, "runs", "show", data["run_id"])
    assert "passed" in shown.stdout and "predicted" in shown.stdout
    page = cutegen(place, "runs", "export", data["run_id"], "--out", "page.html")
    assert page.returncode == 0 and data["run_id"] in (place / "page.html").read_text()
    assert cutegen(place, "runs", "export", data["run_id"], "--out", "page.pdf").returncode == 2
    ended = cutegen(place, "runs", "resume", data["run_id"], "--out", "resumed.py")
    assert ended.returncode == 0 and "launch" in (place / "resumed.py").read_text()


def test_runs_are_renamed_and_put_in_the_trash(place: Path) -> None:
    store = SqliteStore(place / "lab" / "lab.db")
    for run_id in ("r1", "r2", "q3"):
        store.append(run_id, started(run_id), fold([started(run_id)]))
    store.close()
    renamed = cutegen(place, "runs", "rename", "r2", " the\nfast one\x1b ")
    assert renamed.stdout == "r2: the title is “the fast one\\x1b”\n"
    assert only_object(cutegen(place, "runs", "rename", "r2", "mine", "--json"))["title"] == "mine"
    assert " mine " in cutegen(place, "runs").stdout and " Soft Max! " in cutegen(place, "runs").stdout
    many = cutegen(place, "runs", "trash", "mine", "r")
    assert many.returncode == 2 and "'r' names 2 runs: " in many.stderr, "RUN is found as by every other command"
    assert cutegen(place, "runs", "trash", "mine", "q").stdout.startswith(
        "in the trash: r2, q3; `cutegen runs restore r2"
    )
    listed = only_object(cutegen(place, "runs", "--json"))
    assert ([run["run_id"] for run in listed["runs"]], listed["trashed"]) == (["r1"], 2)
    assert "2 runs in the trash: `cutegen runs --trash`" in cutegen(place, "runs", "list").stdout
    away = cutegen(place, "runs", "--trash").stdout
    assert away == cutegen(place, "runs", "list", "--trash").stdout and "r1" not in away and " mine " in away
    there = cutegen(place, "runs", "restore", "r2", "r1")
    assert there.returncode == 2 and "r1: not the id of a run in the trash" in there.stderr
    assert cutegen(place, "runs", "restore", "r2", "q3").returncode == 0
    assert cutegen(place, "runs", "--trash").stdout == "no run is in the trash\n"
    assert only_object(cutegen(place, "runs", "rename", "mine", "", "--json"))["title"] == ""
    long = cutegen(place, "runs", "rename", "r1", "x" * 201)
    assert long.returncode == 2 and "the title has 201 characters. A title has at most 200." in long.stderr


@pytest.mark.kernel
def test_a_run_without_a_correct_kernel_is_status_1(place: Path) -> None:
    answer(place / "talk", KERNEL.read_text().replace("value / total", "value"))
    done = cutegen(place, "run", "softmax.py", "--provider", f"manual:{place / 'talk'}", "--auto", "--max-steps", "1")
    assert done.returncode == 1
    assert "wrong result" in done.stderr
    assert "no kernel accepted" in done.stdout


def test_ctrl_c_is_130_and_the_run_can_be_resumed(place: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "cutegen_lab",
        "run",
        "softmax.py",
        "--auto",
        "--provider",
        f"manual:{place / 'talk'}",
    ]
    process = start(place, command)
    deadline = time.monotonic() + 60
    while not (place / "talk" / "0001.request.md").exists():
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.05)
    sent = time.monotonic()
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=30)
    assert process.returncode == 130, errors
    assert time.monotonic() - sent < 5
    assert "Traceback" not in errors and "cutegen runs resume softmax-" in errors
    assert out == ""
    (run,) = only_object(cutegen(place, "runs", "list", "--json"))["runs"]
    assert run["step"] == "done" and run["outcome"] == "stopped"


@pytest.mark.kernel
def test_review_at_a_terminal(place: Path, request: pytest.FixtureRequest) -> None:
    answer(place / "talk", KERNEL.read_text())
    editor = place / "editor.py"
    editor.write_text("import sys\np = sys.argv[1]\nt = open(p).read()\nopen(p, 'w').write(t + '# edited\\n')\n")
    command = [sys.executable, "-m", "cutegen_lab", "run", "softmax.py", "--provider", f"manual:{place / 'talk'}",
               "--max-steps", "2", "--out", "kernel.py"]  # fmt: skip
    ours, theirs = pty.openpty()
    env = environment(place, EDITOR=f"{sys.executable} {editor}", TERM="dumb")
    process = subprocess.Popen(  # noqa: S603
        command, cwd=place, env=env, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    )
    os.close(theirs)
    request.addfinalizer(process.kill)
    seen = Terminal(ours)
    seen.until("[a] approve", 60)
    assert "passed" in seen.text and "import cutlass" not in seen.text
    seen.send("v")
    seen.until(" import cutlass")
    seen.send("x")
    seen.until("please answer with one of")
    seen.send("e")
    seen.until("edited by the analyst", 60)
    seen.until("[a] approve", 60)
    assert "+ # edited" in seen.text
    seen.send("a")
    seen.rest()
    assert process.wait(30) == 0, seen.text
    assert (place / "kernel.py").read_text().endswith("# edited\n")


class Terminal:
    """The other side of a pseudo-terminal."""

    def __init__(self, fd: int) -> None:
        self.fd, self.text, self.read_to = fd, "", 0

    def until(self, words: str, seconds: float = 10) -> None:
        deadline = time.monotonic() + seconds
        while words not in self.text[self.read_to :]:
            assert time.monotonic() < deadline, self.text
            try:
                self.text += os.read(self.fd, 65536).decode(errors="replace")
            except OSError:
                raise AssertionError(self.text) from None
        self.read_to = self.text.index(words, self.read_to) + len(words)

    def send(self, words: str) -> None:
        os.write(self.fd, f"{words}\n".encode())

    def rest(self) -> None:
        try:
            while data := os.read(self.fd, 65536):
                self.text += data.decode(errors="replace")
        except OSError:
            os.close(self.fd)


@pytest.mark.kernel
def test_doctor(place: Path) -> None:
    done = cutegen(place, "doctor", "--json")
    data = only_object(done)
    assert (done.returncode, data["verdict"]) == (0, "ok"), data
    found = {f["name"]: f for f in data["findings"]}
    assert found["torch"]["ok"] and "isolation" in found["compile cage"]["detail"]
    assert not found["model key"]["ok"] and not found["model key"]["needed"]


@pytest.mark.kernel
def test_doctor_never_prints_a_key_and_names_what_is_missing(place: Path) -> None:
    done = cutegen_process(place, "doctor", OPENAI_API_KEY="sk-secret", PATH="/nonexistent")
    assert done.returncode == 1
    assert "sk-secret" not in done.stdout + done.stderr
    assert "MISSING" in done.stdout and "Install gcc or clang." in done.stdout


def test_doctor_names_a_torch_without_bytecode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "slow_module").mkdir()
    (tmp_path / "slow_module" / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    found = doctor._bytecode("slow_module")
    assert not found.ok and not found.needed and found.action.endswith(f"-m compileall -q {tmp_path}")
    subprocess.run(found.action.split(), check=True)  # noqa: S603 - our own words
    assert doctor._bytecode("slow_module").ok


SPEC = """\
kernel scale
in x: bf16[M, N]
out y: bf16[M, N] = gelu(x * 0.5)
size M=64, N=1024
size M=5, N=77
with vec=8
"""


@pytest.mark.kernel
def test_a_spec_is_checked_compiled_and_proven(place: Path) -> None:
    (place / "scale.cutespec").write_text(SPEC)
    checked = cutegen(place, "spec", "check", "scale.cutespec", "--json")
    assert checked.returncode == 0, checked.stderr
    facts = json.loads(checked.stdout)
    assert facts["config"]["vec"] == 8 and "vec" not in facts["chosen"] and facts["template"] == "elementwise chain"
    compiled = cutegen(place, "spec", "compile", "-", "--out", "k.py", input=SPEC)
    assert compiled.returncode == 0, compiled.stderr
    assert "registers" in compiled.stdout and "cutegen judge k_problem.py k.py" in compiled.stdout
    judged = cutegen(place, "judge", "k_problem.py", "k.py", "--device", "emulator")
    assert judged.returncode == 0, judged.stdout + judged.stderr


def test_a_bad_spec_is_one_line_with_its_place(place: Path) -> None:
    bad = cutegen(place, "spec", "check", "-", input=SPEC.replace("vec=8", "vec=7"))
    assert bad.returncode == 2 and bad.stdout == ""
    assert bad.stderr.strip() == "cutegen: line 6, column 6: vec is 7; it may be 1, 2, 4, 8, 16. The nearest is 8."
    assert cutegen(place, "spec", "check", "missing.cutespec").stderr.startswith("cutegen: cannot read missing")
    assert cutegen(place, "spec").returncode == 2


def test_a_config_that_the_kernel_does_not_have_is_named(tmp_path: Path) -> None:
    kernel = tmp_path / "kernel.py"
    kernel.write_text('TUNABLE = {"threads": (64, 128), "order": ("m", "n")}\n\n\n'
                      'def launch(x, out, stream, threads=64, order="m"):\n    pass\n')  # fmt: skip
    assert read_given(kernel, '{"threads": 128, "order": "n"}').config == {"threads": 128, "order": "n"}
    with pytest.raises(InputError, match=r"threads to 100; the kernel's TUNABLE has 64, 128[.] The nearest is 128"):
        read_given(kernel, '{"threads": 100}')
    with pytest.raises(InputError, match=r"sets order to k; the kernel's TUNABLE has m, n[.] Choose one of them"):
        read_given(kernel, '{"order": "k"}')


def test_a_cap_in_dollars_needs_a_price(place: Path) -> None:
    done = cutegen(place, "run", "softmax.py", "--auto", "--max-cost", "2")
    assert done.returncode == 2 and "a cap of $2.00 needs a price. Give --price 1.25/10" in done.stderr
    done = cutegen(place, "run", "softmax.py", "--auto", "--max-cost", "2", "--price", "cheap")
    assert done.returncode == 2 and "cannot read the price 'cheap'" in done.stderr
    (place / "prices.json").write_text('{"gpt-5": {"input_cost_per_token": 1e-6, "output_cost_per_token": 1e-5}}')
    done = cutegen(place, "run", "softmax.py", "--auto", "--model", "gpt-6", "--price", "prices.json")
    assert done.returncode == 2 and "prices.json has no model 'gpt-6'. Did you mean 'gpt-5'?" in done.stderr
