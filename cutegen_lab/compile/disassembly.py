"""SASS of a cubin with the candidate's lines and each instruction's stall count, by ``nvdisasm``.

NVIDIA's disassembler is a package of its own (``pip install nvidia-cuda-nvdisasm``) and part of the CUDA toolkit. It
reads a file that came out of the compile cage, so it runs for a bounded time, with bounded memory and output, and
without the environment of this process.

The stall count, which the assembler writes into an instruction, is the number of cycles until the warp may issue its
next one. It is in bits 105 to 108 of the instruction's 128 (Jia et al., "Dissecting the NVIDIA Volta GPU Architecture
via Microbenchmarking", arXiv 1804.06826, section 2.1; Turing to Hopper use the same place).
"""

from __future__ import annotations

import functools
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

INSTALL = "pip install nvidia-cuda-nvdisasm"
_SECONDS = 20
# Limits: KiB of memory; blocks of 512 B of output. dash's ulimit takes one limit at a time.
_BOUNDED = f'ulimit -t {_SECONDS} && ulimit -v {4 << 20} && ulimit -f {64 << 10} && exec "$0" "$@"'
_FUNCTION = re.compile(r"^\.text\.(\S+):")
_LINE = re.compile(r'^\s*//## File "[^"]*candidate\.py", line (\d+)(?! inlined)')
_CODE = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/\s+(.*?)\s*/\* (0x[0-9a-f]{16}) \*/")
_SECOND = re.compile(r"^\s*/\* (0x[0-9a-f]{16}) \*/\s*$")
_STALL_SHIFT, _STALL_MASK = 105 - 64, 0xF


@dataclass(frozen=True)
class SassLine:
    """One line of a listing."""

    text: str
    """An instruction with its address, a label, or a kernel's name."""
    line: int = 0
    """Line of the candidate's text, from 1; 0 for none."""
    stall: int | None = None
    """Cycles until the warp may issue the next instruction; None for a line without an instruction."""


class NoDisassembler(Exception):
    """There is no listing; the message says why, and what to do."""


def disassembled(cubin: bytes) -> tuple[SassLine, ...]:
    """Listing of all kernels of ``cubin``. Raises NoDisassembler."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file, tempfile.TemporaryFile() as listing:
        file.write(cubin)
        file.flush()
        try:
            done = subprocess.run(  # noqa: S603 - NVIDIA's program, bounded, on a file of our own
                ["/bin/sh", "-c", _BOUNDED, _program(), "-c", "-g", "-hex", file.name],
                stdin=subprocess.DEVNULL, stdout=listing, stderr=subprocess.PIPE, timeout=2 * _SECONDS, env={},
                check=False,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired) as error:
            raise NoDisassembler(f"nvdisasm failed: {error}") from None
        if done.returncode != 0:
            said = done.stderr.decode(errors="replace").strip().splitlines()
            raise NoDisassembler(f"nvdisasm failed: {said[-1] if said else f'exit status {done.returncode}'}")
        listing.seek(0)
        return read_listing(listing.read().decode(errors="replace"))


def read_listing(text: str) -> tuple[SassLine, ...]:
    """The lines in ``text``, the output of ``nvdisasm -c -g -hex``."""
    found, line = list[SassLine](), 0
    for each in text.splitlines():
        if name := _FUNCTION.match(each):
            found.append(SassLine(f"{name[1]}:"))
            line = 0
        elif place := _LINE.match(each):
            line = int(place[1])
        elif code := _CODE.match(each):
            found.append(SassLine(f"{code[1]}  {code[2]}", line))
        elif (second := _SECOND.match(each)) and found:
            stall = int(second[1], 16) >> _STALL_SHIFT & _STALL_MASK
            found[-1] = SassLine(found[-1].text, found[-1].line, stall)
        elif each.startswith(".L_"):
            found.append(SassLine(each.strip()))
    return tuple(found)


def nvidia_program(name: str) -> Path | str | None:
    """Path of a CUDA tool: from NVIDIA's packages on PyPI, otherwise from ``PATH``; None if it is in neither."""
    places = [Path(place, "nvidia").glob(f"**/bin/{name}") for place in sys.path if place.endswith("site-packages")]
    return next((path for paths in places for path in paths), None) or shutil.which(name)


@functools.cache
def _program() -> str:
    """Path of ``nvdisasm``. Raises NoDisassembler."""
    found = nvidia_program("nvdisasm")
    if found is None:
        raise NoDisassembler(f"nvdisasm is not installed: {INSTALL}")
    path = Path(found)
    if not path.stat().st_mode & 0o100:  # the wheel's file comes without the executable bit
        try:
            path.chmod(0o755)
        except OSError as error:
            raise NoDisassembler(f"{path} cannot be executed: {error.strerror}") from None
    return str(path)
