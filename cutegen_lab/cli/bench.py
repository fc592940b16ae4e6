"""``cutegen bench GPU``: compares templates with PyTorch, torch.compile, quack and a copy. Exit status 0: all were
timed."""

from __future__ import annotations

import argparse
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from cutegen_lab.bench.case import Case
from cutegen_lab.bench.record import Record, Row, about, read
from cutegen_lab.bench.report import HEAD, line, summary
from cutegen_lab.cli.output import Output, note
from cutegen_lab.core.errors import InputError, SetupError

if TYPE_CHECKING:
    from cutegen_lab.devices.cuda import CudaDevice

NOT_ALL = 3
_ELSEWHERE = "Use --prepare FOLDER to compile here, and --prepared FOLDER on a machine with a GPU."


def execute(arguments: argparse.Namespace, output: Output) -> int:
    from cutegen_lab.bench.suite import CASES

    if arguments.prepare and arguments.prepared:
        raise InputError("--prepare compiles only, and --prepared times only", "Give one of them, then the other.")
    if arguments.resume and not arguments.out:
        raise InputError("--resume continues the file given by --out, and --out is missing", "Add --out FILE.json.")
    if arguments.out and Path(arguments.out).exists() and not arguments.resume:
        raise InputError(f"{arguments.out} exists", "Name another file, or continue this one with --resume.")
    if arguments.show:
        rows = [row for row in read(Path(arguments.show)) if any(part in row.name for part in arguments.only)]
        return _report(rows, Record({}, None, rows).facts(), output)
    cases = [case for case in CASES if any(part in case.name for part in arguments.only)]
    if not cases:
        works = ", ".join(dict.fromkeys(case.work for case in CASES))
        asked = " or ".join(arguments.only)
        raise InputError(f"no case has {asked} in its name", f"There are cases of {works}; --list shows all.")
    if arguments.list:
        for case in cases:
            output.line(f"{case.name:44} {case.expression}   {case.inputs}")
        output.result({"reason": "listed", "cases": [case.name for case in cases]})
        return 0
    with ExitStack() as stack:
        folder = Path(arguments.prepared or stack.enter_context(tempfile.TemporaryDirectory()))
        if arguments.prepare or not arguments.prepared:
            folder = Path(arguments.prepare or folder)
            _prepare(cases, folder, arguments)
        if arguments.prepare:
            output.line(f"{len(cases)} cases in {folder}; time them with --prepared {folder}")
            output.result({"reason": "prepared", "folder": str(folder), "cases": [case.name for case in cases]})
            return 0
        return _measure(cases, folder, arguments, output)


def _prepare(cases: Sequence[Case], folder: Path, arguments: argparse.Namespace) -> None:
    from cutegen_lab.bench.prepare import prepare
    from cutegen_lab.config import Settings
    from cutegen_lab.core.roofline import GPUS
    from cutegen_lab.session.factories import make_compiler

    if not arguments.prepare:
        _device(arguments.index).close()  # fails now, not after minutes of compilation, if there is no such GPU
    arch = GPUS[arguments.gpu].arch
    with make_compiler(Settings.from_environment()) as compiler:
        prepare(cases, folder, compiler, arch, arguments.configs, note)


def _measure(cases: Sequence[Case], folder: Path, arguments: argparse.Namespace, output: Output) -> int:
    from cutegen_lab.bench.measure import measure
    from cutegen_lab.bench.prepared import Prepared

    lacking = [case.name for case in cases if not (folder / f"{case.name}.json").exists()]
    if lacking:
        raise InputError(
            f"{folder} lacks {len(lacking)} of {len(cases)} cases, for example {lacking[0]}",
            f"Run `cutegen bench {arguments.gpu} --prepare {folder}` first, on a machine with the DSL.",
        )
    out = Path(arguments.out) if arguments.out else None
    with closing(_device(arguments.index)) as device:
        record = Record(about(device.name), out, read(out) if arguments.resume and out and out.exists() else ())
        left = [case for case in cases if case.name not in record]
        started = monotonic()
        for number, case in enumerate(left, 1):
            row = measure(device, case, Prepared.load(folder, case), threading.Event())
            record.add(row)
            note(f"{number}/{len(left)}, {monotonic() - started:.0f} s: {line(row)}")
    return _report(record.rows, record.facts(), output)


def _report(rows: Sequence[Row], facts: Mapping[str, Any], output: Output) -> int:
    for text in (HEAD, *map(line, rows), "", *summary(rows)):
        output.line(text)
    untimed = [row.name for row in rows if "c0" not in row.times_us]
    output.result({"reason": f"{len(untimed)} not timed" if untimed else "timed", **facts})
    return NOT_ALL if untimed else 0


def _device(index: int) -> CudaDevice:
    """The GPU. Raises SetupError if there is none: a benchmark has no predicted times."""
    try:
        from cutegen_lab.devices.cuda import CudaDevice, gpu_count
    except ImportError as error:
        raise SetupError(f"no GPU can be used here: {error}", _ELSEWHERE) from None
    if not gpu_count():
        raise SetupError("no CUDA device is visible, and only measured times are reported", _ELSEWHERE)
    return CudaDevice(index)
