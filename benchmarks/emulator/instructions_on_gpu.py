"""The emulator's instruction tests on a real GPU: does the same PTX leave the same bits there?

    python -m benchmarks.emulator.instructions_on_gpu record FOLDER [TEST ...]         (needs pytest; no GPU)
    python -m benchmarks.emulator.instructions_on_gpu compare FOLDER OUT.json [KEEP]   (needs torch and a GPU)

``record`` runs the tests and keeps every program that ends well, with its data. What differs goes to the folder KEEP.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import command_line, conditions, write_json

TESTS = (
    "mma/test_mma_sync", "isa/test_matrix_move", "isa/test_fp8_conversion", "isa/test_integer",
    "isa/test_floating_point", "isa/test_tensormap_replace",
)  # fmt: skip
_AROUND = ("ld.", "st.", "mul.wide", "mad.lo.s32", "mov.", "add.s64", "selp.b32", "ret")
_BODY = re.compile(r"^ *((?:mma|cvt|ldmatrix|stmatrix|movmatrix|@?[a-z][a-z0-9]*)[.a-z0-9_:]*) ", re.M)


class Recorder:
    """Stands before ``tests.emulator.ptx_kernel.run`` and keeps what passes through it, once for each text and data."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._seen = folder, set[str]()
        folder.mkdir(parents=True, exist_ok=True)

    def pytest_configure(self) -> None:
        from tests.emulator import ptx_kernel  # patched before the tests import it

        real = ptx_kernel.run

        def run(ptx: str, tensors: Sequence[Any], **options: Any) -> Any:
            before = [t.copy() for t in tensors]
            result = real(ptx, tensors, **options)
            if result.execution.fault is None:
                self._keep(ptx, before, list(tensors), options)
            return result

        ptx_kernel.run = run

    def _keep(self, ptx: str, before: list[Any], after: list[Any], options: dict[str, Any]) -> None:
        key = hashlib.sha256(ptx.encode() + b"".join(t.tobytes() for t in before)).hexdigest()[:16]
        if key in self._seen:
            return
        self._seen.add(key)
        launch = {name: options.get(name, default) for name, default in (("grid", (1, 1, 1)), ("block", None))}
        raw = {f"before{i}": t.reshape(-1).view(np.uint8) for i, t in enumerate(before)}
        raw |= {f"after{i}": t.reshape(-1).view(np.uint8) for i, t in enumerate(after)}
        text = json.dumps({"ptx": ptx, **launch, "smem": options.get("smem", 0)})
        np.savez_compressed(self._folder / f"{key}.npz", text=np.array(text), **raw)


def record(folder: Path, *tests: str) -> int:
    import pytest

    files = [f"tests/emulator/{name}.py" for name in tests or TESTS]
    return int(pytest.main(["-q", "-p", "no:cacheprovider", "--show-capture=no", *files], plugins=[Recorder(folder)]))


def compare(folder: Path, out: Path, keep: Path | None = None) -> None:
    import torch

    from cutegen_lab.devices.cuda.driver import Driver

    torch.zeros(1, device="cuda")
    driver, alike, unlike = Driver(), 0, defaultdict[str, list[dict[str, Any]]](list)
    for path in sorted(folder.glob("*.npz")):
        case = np.load(path)
        made = json.loads(str(case["text"]))
        count = sum(name.startswith("before") for name in case.files)
        tensors = [torch.from_numpy(case[f"before{i}"]).cuda() for i in range(count)]
        try:
            launch(driver, made, [t.data_ptr() for t in tensors])
            torch.cuda.synchronize()
        except Exception as error:
            unlike[instruction(made["ptx"])].append({"case": path.stem, "error": str(error)})
            continue
        pairs = [(case[f"after{i}"], t.cpu().numpy()) for i, t in enumerate(tensors)]
        if all((mine == theirs).all() for mine, theirs in pairs):
            alike += 1
        else:
            unlike[instruction(made["ptx"])].append({"case": path.stem, **distance(pairs)})
            if keep is not None:
                np.savez_compressed(keep / path.name, **{f"gpu{i}": theirs for i, (_, theirs) in enumerate(pairs)})
    write_json(out, conditions(), bit_for_bit=alike, unlike=unlike)
    print(f"{alike} programs agree bit for bit, {sum(map(len, unlike.values()))} do not")
    for name, cases in sorted(unlike.items()):
        print(f"  {name}: {len(cases)}, for example {cases[0]}")


def launch(driver: Any, made: dict[str, Any], addresses: list[int]) -> None:
    """The PTX's kernel ``k`` with one pointer a tensor, on the default stream."""
    import ctypes

    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    driver.call("cuModuleLoadData", ctypes.byref(module), made["ptx"].encode() + b"\0")
    driver.call("cuModuleGetFunction", ctypes.byref(function), module, b"k")
    values = [ctypes.c_uint64(a) for a in addresses]
    parameters = (ctypes.c_void_p * len(values))(*(ctypes.addressof(v) for v in values))
    driver.call("cuLaunchKernel", function, *made["grid"], *made["block"], made["smem"], None, parameters, None)


def instruction(ptx: str) -> str:
    """The longest instruction that is not a load, a store or address arithmetic: what the program is about."""
    names = [m for m in _BODY.findall(ptx.replace(";", ";\n")) if not m.startswith(_AROUND)]
    return max(names, key=len, default="?")


def distance(pairs: list[tuple[Any, Any]]) -> dict[str, float]:
    """Words that differ by more than a NaN's payload, and how far they are apart as numbers of each kind."""
    found = {"words": 0, "float32": 0.0, "float16": 0.0, "integer": 0}
    for mine, theirs in ((m, t) for m, t in pairs if len(m) % 4 == 0 and (m != t).any()):
        for kind in (np.float32, np.float16):
            with np.errstate(all="ignore"):
                a, b = (x.view(kind).astype(np.float64) for x in (mine, theirs))
                apart = np.abs(a - b)[np.isfinite(a) & np.isfinite(b)]
            found[kind.__name__] = max(found[kind.__name__], float(apart.max(initial=0)))
        i, j = (x.view(np.int32).astype(np.int64) for x in (mine, theirs))
        nan = np.isnan(mine.view(np.float32)) & np.isnan(theirs.view(np.float32))
        found["words"] += int(((i != j) & ~nan).sum())
        found["integer"] = max(found["integer"], int(np.abs(i - j).max()))
    return found


if __name__ == "__main__":
    command_line(record, compare)
