"""Does a GPU leave what the emulator left, for what ``agreement`` recorded? Needs torch and a driver alone.

    python -m benchmarks.emulator.agreement_on_gpu FOLDER OUT.json

Prints a table, and writes it as OUT.json and, shorter, as OUT.md. Outputs of integers, and outputs that are whole
numbers for inputs of zeros and ones, must be the same bit for bit: their sums are exact in any order. Of others the
distance must be explained by rounding: two units in the last place of the output's type, relative to the norm of the
output; 32 of float32, whose sums the tensor cores truncate and whose special functions differ in their last bits. Any
NaN counts as any other.
"""

from __future__ import annotations

import json
import threading
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.harness import command_line, conditions, write_table
from cutegen_lab.core.artifact import Build
from cutegen_lab.core.problem import TensorSpec, Workload
from cutegen_lab.devices.cuda import CudaDevice
from cutegen_lab.judge.execution.buffers import Buffers
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
    row = {key: said[key] for key in ("name", "ref", "draw", "deterministic", "emulator_seconds")}
    row["inputs"] = list(map(str, inputs))
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
    kernels: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        kernels[row["name"]] += [output | {"draw": row["draw"]} for output in row["outputs"]]
    print(f"{'kernel':58} {'draw':7} {'output':28} {'must':6} {'max ulp':>8} {'of norm':>8} verdict")
    for name, outputs in sorted(kernels.items()):
        for o in outputs:
            print(f"{name:58} {o['draw']:7} {o.get('output', ''):28} {o.get('must', ''):6} {o.get('max_ulp', ''):>8} "
                  f"{o.get('norm_ulps', ''):>8} {o['verdict']}")  # fmt: skip
    worst = {name: _worst([o["verdict"] for o in outputs]) for name, outputs in kernels.items()}
    summary = dict(Counter(worst.values()))
    by_output = [{**row, **output} for row in rows for output in row["outputs"]]
    for row in by_output:
        del row["outputs"]
    write_table(out, conditions() | {"kernels": summary}, by_output)
    out.with_suffix(".md").write_text(table(rows, worst))
    print(f"{len(worst)} kernels: {summary}")


_AGREES = {"equal": "bit for bit", "near": "within rounding", "differs": "**no**"}


def table(rows: list[dict[str, Any]], worst: dict[str, str]) -> str:
    """The figures as people read them: one line a kernel."""
    counts = Counter(worst.values())
    lines = [
        f"# {len(worst)} kernels, on the emulator and on an {torch.cuda.get_device_name()}\n",
        "Every output of each, on normal values and on zeros and ones, written by `agreement_on_gpu.py`: "
        f"{counts['equal']} agree bit for bit, {counts['near']} within rounding, {counts['differs']} do not. *Apart* "
        "is the largest distance between two outputs, over the output's norm, in units of its type's last place.\n",
        "| kernel | inputs | outputs | agrees | apart | from |",
        "|---|---|---|---|---|---|",
    ]
    by_kernel = defaultdict(list)
    for row in rows:
        by_kernel[row["name"]].append(row)
    for name, found in sorted(by_kernel.items()):
        outputs = [o for row in found for o in row["outputs"]]
        apart = max((o.get("norm_ulps", 0.0) for o in outputs), default=0.0)
        shown = dict.fromkeys(o.get("output", "") for o in outputs)
        cells = (name, _code(found[0].get("inputs", ())), _code(shown), _AGREES[worst[name]], f"{apart:.3g}",
                 found[0].get("ref", ""))  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _code(specs: Iterable[str]) -> str:
    return ", ".join(f"`{spec}`" for spec in specs)


def _worst(verdicts: list[str]) -> str:
    return "equal" if set(verdicts) == {"equal"} else "near" if set(verdicts) <= {"equal", "near"} else "differs"


if __name__ == "__main__":
    command_line(main)
