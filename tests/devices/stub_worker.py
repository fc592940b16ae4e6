"""A worker that needs no GPU and does as it is told: answers, hangs, dies, or loses its context."""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any


def answer(request: dict[str, Any]) -> dict[str, Any]:
    match request["verb"]:
        case "open":
            return {"ok": True, "dram_bytes_per_s": 1e12, "l2_bytes": 1 << 20}
        case "add":
            return {"ok": True, "calls": 3, "notes": ["a note"]}
        case "sample":
            return act(request["name"])
        case "outputs":
            with open(request["memory"], "r+b") as file:  # noqa: PTH123
                file.write(bytes(range(request["sizes"][0])))
            return {"ok": True}
        case verb:
            return act(verb)


def act(word: str) -> dict[str, Any]:
    if word == "hang":
        time.sleep(60)
    if word == "die":
        print("Xid 79: the GPU has fallen off the bus", file=sys.stderr, flush=True)
        os._exit(3)
    if word in ("sticky", "refuse"):
        message = "cuCtxSynchronize failed: an illegal memory access was encountered (CUDA error 700)"
        return {"ok": False, "verdict": "out_of_bounds", "message": message, "sticky": word == "sticky"}
    return {"ok": True, "times_us": [5.0], "readings": {"power_w": 1.0}, "seconds": 0.0}


if __name__ == "__main__":
    hello = {"ok": True, "name": "Stub", "torch": "2", "cuda": "13.0", "arch": "sm_90", "records": True, "driver": "1",
             "cuda_driver": "13.0"}  # fmt: skip
    print(json.dumps(hello), flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)
