"""The wheel: pip installs it into a fresh environment, where it imports and its own tests pass without a GPU."""

from __future__ import annotations

import site
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from cutegen_lab.core.errors import InputError
from cutegen_lab.exports import Subject
from cutegen_lab.exports.wheel import wheel
from cutegen_lab.session.handle import RunHandle

pytestmark = pytest.mark.kernel  # the run behind the fixtures


def call(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, env={"PATH": "/usr/bin:/bin"}, timeout=250)  # noqa: S603
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_it_installs_and_passes_its_own_tests(model: RunHandle, tmp_path: Path) -> None:
    (path,) = model.export_as(tmp_path / "mine.whl", "wheel")
    assert path.name.startswith("scaled_kernel-") and path.parent == tmp_path
    assert model.export_as(tmp_path / "mine.whl") == (path,), "the same bytes: its own file may be written again"
    call(sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "venv"))
    python = str(tmp_path / "venv/bin/python")
    (packages,) = (tmp_path / "venv").glob("lib/python*/site-packages")
    installed = [Path(each) for each in site.getsitepackages()]
    (packages / "torch.pth").write_text("".join(f"{each}\n" for each in installed))  # torch, which it requires
    call(sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", "--no-index", str(path))
    assert "No broken requirements" in call(sys.executable, "-m", "pip", "--python", python, "check")
    told = call(python, "-W", "ignore", "-m", "unittest", "scaled_kernel.test_operator")
    assert "Ran 2 tests" in told and "skipped=1" in told
    told = call(python, "-c", "import importlib.metadata as m; print(m.metadata('scaled-kernel'))")
    assert "Requires-Dist: torch" in told and "verdict: passed on emulator" in told
    call(sys.executable, "-m", "pip", "--python", python, "uninstall", "--yes", "scaled-kernel")
    assert not (packages / "scaled_kernel").exists(), "its list of files is whole"


def test_the_same_kernel_gives_the_same_bytes(subject: Subject) -> None:
    assert wheel(subject) == wheel(subject)
    (name,) = wheel(subject)
    (other,) = wheel(replace(subject, artifact=replace(subject.artifact, builds={
        "main": replace(subject.artifact.builds["main"], cubin=b"\x7fELF other")
    })))  # fmt: skip
    assert name != other, "another kernel is another version"


def test_its_licence_is_not_claimed_for_a_kernel_of_somebody_else(subject: Subject, tmp_path: Path) -> None:
    for of_template, licence in ((True, "Apache-2.0\n"), (False, "Apache-2.0 AND LicenseRef-kernel-author\n")):
        ((name, contents),) = wheel(replace(subject, of_template=of_template)).items()
        (tmp_path / name).write_bytes(contents)
        with zipfile.ZipFile(tmp_path / name) as file:
            info = next(n for n in file.namelist() if n.endswith("METADATA"))
            assert f"License-Expression: {licence}" in file.read(info).decode()
            text = file.read(info.replace("METADATA", "licenses/LICENSE")).decode()
            assert "Apache License" in text and ("only the kernel's author" in text) != of_template


def test_no_machine_code_of_a_run_that_somebody_sent(model: RunHandle, tmp_path: Path) -> None:
    from cutegen_lab.session import Session

    (sent,) = model.export_as(tmp_path / "sent.cutegen")
    with Session.open(tmp_path / "there") as there:
        got = there.import_run(sent)
        for format in ("torch-op", "wheel", "object"):
            with pytest.raises(InputError, match="was not compiled here, so it is not exported"):
                got.export_as(tmp_path / {"wheel": "x.whl", "object": "x.o"}.get(format, "x.py"), format)
        (kernel,) = got.export_as(tmp_path / "kernel.py")
        assert "are claims of whoever wrote that file" in kernel.read_text()
