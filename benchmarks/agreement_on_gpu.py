"""Does a GPU leave what the emulator left, for what ``benchmarks.agreement`` recorded? Needs torch and a driver alone.

    python -m benchmarks.agreement_on_gpu FOLDER OUT.json

Prints a table and writes it. Outputs of integers, and outputs that are whole numbers for inputs of zeros and ones, must
be the same bit for bit: their sums are exact in any order. Of others the distance must be explained by rounding: two
units in the last place of the output's type, relative to the norm of the output; 32 of float32, whose sums the
tensor cores truncate and whose special functions differ in their last bits. Any NaN counts as any other.
"""

from __future__ import annotations

import json
import sys
import threading
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.machine import about
from cutegen_lab.core.artifact import Build
from cutegen_lab.core.problem import TensorSpec, Workload
from cutegen_lab.devices.cuda import CudaDevice
from cutegen_lab.judge.buffers import Buffers
from cutegen_lab.problems.tensors import laid_out

POISON = 0xFF
ULPS = {torch.float32: 32.0}
_USUAL_ULPS = 2.0
_WORDS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def compare(mine: torch.Tensor, theirs: torch.Tensor, draw: str) -> dict[str, Any]:
    """One output of the emulator beside the GPU's."""
    if not mine.is_floating_point():
        same = bool((mine == theirs).all())
        return {"must": "equal", "verdict": "equal" if same else "differs", "unequal": int((mine != theirs).sum())}
    a, b = mine.double(), theirs.double()
    same = bool(((a == b) | (a.isnan() & b.isnan())).all())
    finite = a[a.isfinite()]
    whole = draw == "bits" and bool(len(finite)) and bool((finite == finite.round()).all())
    eps, norm = torch.finfo(mine.dtype).eps, float(b[b.isfinite()].norm())
    off = float((a - b)[a.isfinite() & b.isfinite()].norm()) / (norm or 1.0) / eps
    near = off <= ULPS.get(mine.dtype, _USUAL_ULPS) and bool((a.isfinite() == b.isfinite()).all())
    return {
        "must": "equal" if whole else "near", "max_ulp": _ulps(mine, theirs), "norm_ulps": round(off, 4),
        "verdict": "equal" if same else "near" if near and not whole else "differs",
    }  # fmt: skip


def _ulps(mine: torch.Tensor, theirs: torch.Tensor) -> int:
    """The most representable numbers that lie between two elements."""
    word = _WORDS[mine.element_size()]
    a, b = (_ordered(t.contiguous().view(word).long(), 8 * t.element_size()) for t in (mine, theirs))
    known = ~(mine.double().isnan() | theirs.double().isnan())
    return int((a - b).abs()[known].max()) if bool(known.any()) else 0


def _ordered(bits: torch.Tensor, width: int) -> torch.Tensor:
    """The bits of a float as integers in the order of their values."""
    return torch.where(bits < 0, -(1 << width - 1) - bits, bits)


def run(device: CudaDevice, path: Path) -> dict[str, Any]:
    case = np.load(path)
    said = json.loads(str(case["text"]))
    inputs, outputs = (tuple(TensorSpec.from_dict(t) for t in said[key]) for key in ("inputs", "outputs"))
    build, workload = Build.from_dict(said["build"]), Workload("main", inputs, outputs)
    given = [laid_out(torch.from_numpy(case[f"before{i}"]), spec) for i, spec in enumerate(inputs)]
    row = {key: said[key] for key in ("name", "draw", "deterministic", "emulator_seconds")}
    buffers = Buffers(workload, build, given, POISON)
    done = device.execute(buffers.build, buffers.tensors, buffers.views, threading.Event())
    if done.fault is not None:
        return row | {"outputs": [{"verdict": f"fault: {done.fault.verdict.value}", "must": "run"}]}
    emulated = [laid_out(torch.from_numpy(case[f"after{i}"]), spec) for i, spec in enumerate(outputs)]
    pairs = zip(outputs, emulated, buffers.outputs, strict=True)
    found = [{"output": str(spec), **compare(mine, theirs, said["draw"])} for spec, mine, theirs in pairs]
    return row | {"outputs": found}


def main(folder: Path, out: Path) -> None:
    device, rows = CudaDevice(), []
    for path in sorted(folder.glob("*.npz")):
        try:
            rows.append(run(device, path))
        except Exception as error:
            rows.append(
                {"name": path.stem, "draw": "", "outputs": [{"verdict": f"{type(error).__name__}: {error}"[:200]}]}
            )
    device.close()
    kernels = defaultdict(list)
    for row in rows:
        kernels[row["name"]] += [output | {"draw": row["draw"]} for output in row["outputs"]]
    print(f"{'kernel':58} {'draw':7} {'output':28} {'must':6} {'max ulp':>8} {'of norm':>8} verdict")
    for name, outputs in sorted(kernels.items()):
        for o in outputs:
            print(f"{name:58} {o['draw']:7} {o.get('output', ''):28} {o.get('must', ''):6} {o.get('max_ulp', ''):>8} "
                  f"{o.get('norm_ulps', ''):>8} {o['verdict']}")  # fmt: skip
    worst = {name: _worst([o["verdict"] for o in outputs]) for name, outputs in kernels.items()}
    summary = dict(Counter(worst.values()))
    out.write_text(
        json.dumps(about(torch.cuda.get_device_name()) | {"kernels": summary, "rows": rows}, indent=1) + "\n"
    )
    print(f"{len(worst)} kernels: {summary}")


def _worst(verdicts: list[str]) -> str:
    return "equal" if set(verdicts) == {"equal"} else "near" if set(verdicts) <= {"equal", "near"} else "differs"


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
