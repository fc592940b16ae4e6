"""The kernel's text is judged again in a fresh process, and its file says what was found."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from cutegen_lab import __version__
from cutegen_lab.core.errors import InputError
from cutegen_lab.session.handle import RunHandle
from cutegen_lab.session.kernels import is_unmodified, kernel_text
from cutegen_lab.session.rejudged import judged_again

pytestmark = pytest.mark.kernel  # the run behind the fixtures


def test_the_file_says_what_a_fresh_process_found(run: RunHandle, tmp_path: Path) -> None:
    said = list[str]()
    (path,) = run.export_as(tmp_path / "kernel.py", verify=True, say=said.append)
    text = path.read_text()
    again = next(line for line in text.splitlines() if line.startswith("# judged again in a fresh process on "))
    assert f"by cutegen-lab {__version__}: passed on emulator" in again and "workloads " in again and "main" in again
    assert again.removeprefix("# ") in said and is_unmodified(text) and "# for this config only: " in text
    assert run.export(tmp_path / "plain.py").read_text().count("judged again") == 0, "nothing was, so nothing is said"


def test_a_kernel_that_does_not_pass_again_is_refused(run: RunHandle) -> None:
    state = run.state
    text = kernel_text(state, state.incumbent_id or "")
    other = replace(state.problem, source=state.problem.source.replace("softmax(x", "softmax(x * 2"))
    with pytest.raises(InputError, match=r"the kernel got the verdict wrong_result"):
        judged_again(replace(state, problem=other), text)


def test_what_cannot_be_judged_is_not_called_verified(run: RunHandle) -> None:
    state = run.state
    broken = replace(state, problem=replace(state.problem, source="def reference(:\n"))
    assert judged_again(broken, kernel_text(state, state.incumbent_id or "")).startswith("not judged again: ")
    elsewhere = replace(state, settings=replace(state.settings, device="tpu"))
    said = judged_again(elsewhere, kernel_text(state, state.incumbent_id or ""))
    assert said == "not judged again: unknown device 'tpu'", "the hint is about options of the process"
