"""What a program asks of the CUDA driver, by a fake libcuda that records launches; and what a plan says it must ask."""

from __future__ import annotations

import json
import os
import struct
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cutegen_lab.core.artifact import Build

_CLUSTER_DIMENSION = "4"


@dataclass(frozen=True)
class FakeCuda:
    """A folder with a ``libcuda.so.1`` that has no GPU behind it."""

    folder: Path

    @classmethod
    def built(cls, folder: Path) -> FakeCuda:
        source = Path(__file__).with_name("fake_cuda.c")
        command = ["gcc", "-shared", "-fPIC", "-w", "-o", str(folder / "libcuda.so.1"), str(source)]
        subprocess.run(command, check=True)  # noqa: S603
        (folder / "libcuda.so").symlink_to("libcuda.so.1")
        return cls(folder)

    def run(self, command: Sequence[str], build: Build, **more: str) -> list[dict[str, Any]]:
        """The launches that a program made."""
        log = self.folder / "launches"
        log.unlink(missing_ok=True)
        sizes = ";".join(f"{k.name}={','.join(map(str, k.param_sizes))}" for k in build.kernels)
        environment = {
            **os.environ, "LD_LIBRARY_PATH": str(self.folder), "FAKE_CUDA_LOG": str(log), "FAKE_CUDA_PARAMS": sizes,
            **more,
        }  # fmt: skip
        done = subprocess.run(  # noqa: S603
            command, env=environment, capture_output=True, text=True, timeout=240
        )
        assert done.returncode == 0, done.stdout + done.stderr
        lines = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
        return [line for line in lines if "kernel" in line]


def planned(build: Build, addresses: Sequence[int], stream: int) -> list[dict[str, Any]]:
    """The launches that the plan says, with tensors at ``addresses``."""
    found = []
    for launch in build.plan.one_call:
        params = [bytearray(each) for each in launch.params]
        for r in launch.relocations:
            struct.pack_into("<Q", params[r.param], r.offset, addresses[r.tensor] + r.tensor_offset)
        attributes = {str(key): value.ljust(64, b"\0").hex() for key, value in launch.attributes.items()}
        blocks = launch.cluster[0] * launch.cluster[1] * launch.cluster[2]
        if blocks > 1:
            attributes[_CLUSTER_DIMENSION] = struct.pack("<III", *launch.cluster).ljust(64, b"\0").hex()
        found.append(
            {
                "kernel": launch.kernel, "grid": list(launch.grid), "block": list(launch.block),
                "shared": launch.dynamic_smem_bytes, "stream": stream, "non_portable": int(blocks > 8),
                "attributes": attributes, "params": [bytes(each).hex() for each in params],
            }
        )  # fmt: skip
    return found
