"""The object file and its header: they compile as C and as C++, hold what was judged, and launch what the plan says."""

from __future__ import annotations

import io
import platform
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from cutegen_lab.exports import Subject
from cutegen_lab.exports.c_object import c_object
from cutegen_lab.exports.elf import MACHINES, data_object
from tests.exports.launched import FakeCuda, planned

pytestmark = pytest.mark.kernel  # the run behind the fixtures
INCLUDE = Path(__file__).with_name("include")


def program(subject: Subject, folder: Path, fake_cuda: FakeCuda, compiler: str = "gcc") -> Path:
    for suffix, contents in c_object(subject).items():
        (folder / f"kernel{suffix}").write_bytes(contents)
    name = f"{subject.name}_{subject.key}"
    (folder / f"main.{'c' if compiler == 'gcc' else 'cc'}").write_text(f"""
#include "kernel.h"
int main(void)
{{
    {name}_kernel kernel;
    if ({name}_load(&kernel)) return 1;
    if ({name}_launch(&kernel, (CUstream)7, (const void *)4096, (void *)8192)) return 2;
    return {name}_unload(&kernel) ? 3 : 0;
}}
""")
    standard = "-std=c11" if compiler == "gcc" else "-std=c++17"
    source = folder / f"main.{'c' if compiler == 'gcc' else 'cc'}"
    command = [
        compiler, standard, "-Wall", "-Wextra", "-Werror", f"-I{INCLUDE}", str(source), str(folder / "kernel.o"),
        f"-L{fake_cuda.folder}", "-lcuda", "-o", str(folder / "main"),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True)  # noqa: S603
    assert done.returncode == 0, done.stderr
    return folder / "main"


@pytest.mark.parametrize("compiler", ["gcc", "g++"])
@pytest.mark.parametrize("which", ["subject", "clustered"])
def test_it_launches_what_the_plan_says(
    which: str, compiler: str, request: pytest.FixtureRequest, fake_cuda: FakeCuda, tmp_path: Path
) -> None:
    subject: Subject = request.getfixturevalue(which)
    build = subject.artifact.builds["main"]
    made = fake_cuda.run([str(program(subject, tmp_path, fake_cuda, compiler))], build)
    assert made == planned(build, [4096, 8192], 7)
    assert len(made) == len(build.plan.launches)


def test_its_machine_code_is_what_was_judged(subject: Subject) -> None:
    made = c_object(subject)
    assert made == c_object(subject), "the same kernel gives the same bytes"
    file = ELFFile(io.BytesIO(made[".o"]))
    data = file.get_section_by_name(".rodata").data()
    (symbol,) = file.get_section_by_name(".symtab").get_symbol_by_name(f"soft_max_{subject.key}_cubin")
    start = symbol["st_value"]
    assert data[start : start + symbol["st_size"]] == subject.artifact.builds["main"].cubin


def test_what_is_said_cannot_end_the_comment(subject: Subject, fake_cuda: FakeCuda, tmp_path: Path) -> None:
    odd = replace(subject, claims=('*/ #error "out" /*', "??/", "ends in \\", "é\u202e"))
    program(odd, tmp_path, fake_cuda)


@pytest.mark.parametrize("machine", MACHINES)
def test_objects_of_data(machine: str, tmp_path: Path) -> None:
    data = {"one": b"x" * 65, "empty": b"", "two": bytes(range(256))}
    made = data_object(data, machine)
    file = ELFFile(io.BytesIO(made))
    rodata = file.get_section_by_name(".rodata")
    for symbol in list(file.get_section_by_name(".symtab").iter_symbols())[1:]:
        assert symbol["st_value"] % 64 == 0 and symbol["st_info"]["bind"] == "STB_GLOBAL"
        found = rodata.data()[symbol["st_value"] : symbol["st_value"] + symbol["st_size"]]
        assert found == data[symbol.name]
    if machine == platform.machine():
        (tmp_path / "data.o").write_bytes(made)
        command = ["ld", "-r", "--fatal-warnings", "-o", str(tmp_path / "all.o"), str(tmp_path / "data.o")]
        subprocess.run(command, check=True)  # noqa: S603
