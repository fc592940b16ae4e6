"""A cubin and its PTX say the same, or the build is refused."""

from __future__ import annotations

import io

import pytest
from elftools.elf.elffile import ELFFile

from cutegen_lab.compile import CageCompiler, dsl
from cutegen_lab.compile.limits import Limits
from cutegen_lab.compile.outcome import read_assembly
from cutegen_lab.compile.reassemble import MAX_PTX_BYTES, batches, differences, objection
from cutegen_lab.compile.reply import Failed, read_cubins
from cutegen_lab.compile.watch import Ending
from cutegen_lab.core.verdict import Verdict
from tests.compile.conftest import compile_one, fail_one
from tests.compile.sources import COLUMN_SUM, SCALE

# What a hostile module may do to the compiler it shares a process with: hand out one kernel's PTX and another's cubin.
TWO_FACED = (
    SCALE.replace("2.0", "FACTOR[0]")
    + """

FACTOR = [3.0]
(face,) = (cute,)  # the gate follows plain names only
compile_once = face.compile

def workspace(workload, config):
    face.compile = compile_twice
    return []

def compile_twice(launch, *tensors, **options):
    face.compile = compile_once  # before anyone looks
    spoilt = compile_once(launch, *tensors, **options).artifacts.CUBIN
    FACTOR[0] = 2.0
    shown = compile_once(launch, *tensors, **options)
    shown.artifacts.CUBIN = spoilt
    return shown
"""
)


def flipped(cubin: bytes, section: str) -> bytes:
    """``cubin`` with one bit of a section turned over."""
    found = ELFFile(io.BytesIO(cubin)).get_section_by_name(section)
    at = found["sh_offset"] + found["sh_size"] // 2
    return cubin[:at] + bytes([cubin[at] ^ 1]) + cubin[at + 1 :]


def sections(cubin: bytes) -> list[str]:
    return [s.name for s in ELFFile(io.BytesIO(cubin)).iter_sections() if s["sh_size"] and s["sh_type"] != "SHT_NOBITS"]


def test_one_changed_bit_is_found_everywhere_but_in_debug_information(compiler: CageCompiler) -> None:
    build = compile_one(compiler, SCALE).builds["main"]
    names = sections(build.cubin)
    assert any(name.startswith(".text.") for name in names) and ".debug_line" in names
    for name in names:
        if name in ("", ".shstrtab", ".strtab", ".symtab"):
            continue
        found = differences(flipped(build.cubin, name), build.cubin)
        assert found == ([] if name.lstrip(".").startswith(("debug", "nv_debug", "rela", "note")) else [name])


def test_the_cubin_of_another_kernel_is_refused(compiler: CageCompiler) -> None:
    failure = fail_one(compiler, TWO_FACED)
    assert failure.verdict is Verdict.COMPILE_CRASH
    assert "not what its PTX assembles to: .text." in failure.reason


def test_several_kernels_and_workspace_are_no_obstacle(compiler: CageCompiler) -> None:
    from tests.compile.conftest import workload

    artifact = compile_one(compiler, COLUMN_SUM, workload("x: f32[64,64]", "y: f32[64]"))
    assert len(artifact.builds["main"].kernels) == 2


def test_what_is_no_cubin_is_nonsense() -> None:
    assert "cannot be read" in objection(b"no elf", b"no elf")


@pytest.mark.parametrize("text", ["", "garbage", ".version 8.8\n", "// only\n.target sm_90a\n.address_size 64\n"])
def test_ptx_without_its_head_is_not_assembled(text: str) -> None:
    with pytest.raises(ValueError, match="does not begin with"):
        dsl.assemble(text, "sm_90a")


def test_batches_keep_the_order_and_fit_into_messages() -> None:
    texts = [str(i) * (MAX_PTX_BYTES // 3) for i in range(5)]
    parts = batches(texts, range(5))
    assert [at for part in parts for at in part] == [*range(5)] and len(parts) == 3
    assert batches(texts, [4, 2]) == [[4, 2]] and batches(texts, []) == []
    with pytest.raises(ValueError, match="MiB of PTX"):
        batches(["\0" * (MAX_PTX_BYTES // 3)], [0])  # quoted, each takes six bytes


def test_an_assemblers_answer_is_checked() -> None:
    assert read_cubins({}, [b"ab"], 1) == [b"ab"]
    for answer, parts in (({}, []), ({}, [b"ab", b"cd"]), ({"failed": 3}, [b"ab"]), ({"failed": {}}, [b"ab"])):
        with pytest.raises(ValueError):
            read_cubins(answer, parts, 1)


def test_a_failure_to_assemble_is_a_verdict_that_says_so() -> None:
    said = {"verdict": "compile_error", "reason": "ptxas fatal: no", "diagnostics": []}
    failed = read_assembly(Ending(reply={"failed": said}), 1, Limits())
    assert isinstance(failed, Failed) and failed.verdict is Verdict.COMPILE_CRASH
    assert "ptxas fatal" in failed.reason
    late = read_assembly(Ending(stopped="time: over 60 s"), 1, Limits())
    assert isinstance(late, Failed) and late.verdict is Verdict.COMPILE_TIMEOUT and "again" in late.reason
