"""TMA stores at the edges of a tensor, byte for byte as an H200 does them."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.emulator.bulk_stores_on_gpu import BOX_BYTES, FIRST, ILLEGAL_INSTRUCTION, MEMORY, PITCH, ROWS, Case
from cutegen_lab.core.artifact import Relocation
from cutegen_lab.core.dtypes import DType
from cutegen_lab.core.problem import TensorSpec
from cutegen_lab.core.verdict import Verdict
from cutegen_lab.emulator import Options, run_plan
from tests.emulator.ptx_kernel import build
from tests.emulator.tma.tensor_map_kernel import encode

RECORD = json.loads((Path(__file__).parents[3] / "benchmarks/results/bulk_stores_on_gpu.json").read_text())


@pytest.mark.parametrize(
    "row", RECORD["rows"], ids=lambda row: "-".join(str(row[n]) for n in Case.__dataclass_fields__)
)
def test_as_was_recorded(row: dict[str, Any]) -> None:
    case = Case(*(row[name] for name in Case.__dataclass_fields__))
    memory = np.full(MEMORY, case.fill, np.uint8)
    sizes = (case.row_bytes // case.element_bytes, ROWS)
    tmap = encode(case.dtype, sizes, (PITCH,), (BOX_BYTES // case.element_bytes, ROWS))
    made = build(case.ptx, [memory], block=(ROWS * BOX_BYTES, 1, 1))
    moved = (Relocation(0, 0, 0, FIRST), Relocation(1, 0, 0, 0))
    launch = replace(made.plan.launches[0], params=(tmap, bytes(8)), relocations=moved)
    made = replace(made, plan=replace(made.plan, launches=(launch,)))
    fault = run_plan(
        made, [TensorSpec("memory", DType.U8, (MEMORY,))], [memoryview(memory)], threading.Event(), Options()
    ).execution.fault
    if row["error"]:
        assert row["error"] == ILLEGAL_INSTRUCTION
        assert fault is not None and fault.verdict is Verdict.LAUNCH_FAILURE and "multiple of" in fault.message
    else:
        assert fault is None, fault
        assert memory.tobytes().hex() == row["memory"]
