"""A kernel as an object file with its machine code and parameters, and a C header that launches it."""

from __future__ import annotations

import struct
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined

from cutegen_lab.core.artifact import Build, Launch
from cutegen_lab.core.problem import Workload
from cutegen_lab.exports.elf import data_object
from cutegen_lab.exports.shapes import plain_ascii
from cutegen_lab.exports.subject import Subject, identifier

_CLUSTER_DIMENSION = 4  # CUlaunchAttributeID
_PARAM_ALIGNMENT = 64  # bytes, of a tensor map


def c_object(subject: Subject) -> dict[str, bytes]:
    """An object file for this machine's processor, and a header, which needs ``cuda.h`` and has functions for each of
    the analyst's workloads."""
    prefix = f"{subject.name}_{subject.key}"
    data, functions = dict[str, bytes](), list[dict[str, object]]()
    for workload, build in subject.builds:
        name = prefix if len(subject.builds) == 1 else f"{prefix}_{identifier(workload.name)}"
        data[f"{name}_cubin"] = build.cubin
        data |= {f"{name}_params_{n}": _parameters(launch)[0] for n, launch in enumerate(build.plan.launches)}
        functions.append(_function(name, workload, build))
    header = _environment().get_template("kernel.h.jinja").render(
        claims=[plain_ascii(line) for line in subject.claims], arch=subject.artifact.arch, guard=prefix.upper(),
        functions=functions,
    )  # fmt: skip
    return {".o": data_object(data), ".h": header.encode()}


def _function(name: str, workload: Workload, build: Build) -> dict[str, object]:
    return {
        "name": name,
        "cubin_bytes": len(build.cubin),
        "tensors": [
            *(("const void *", plain_ascii(str(spec)), "input") for spec in workload.inputs),
            *(("void *", plain_ascii(str(spec)), "output") for spec in workload.outputs),
            *(("void *", f"{spec.storage_bytes} bytes", "workspace") for spec in build.plan.workspace),
        ],
        "launches": [_launch(number, launch) for number, launch in enumerate(build.plan.one_call)],
    }


def _launch(number: int, launch: Launch) -> dict[str, object]:
    blob, offsets = _parameters(launch)
    raw = dict(launch.attributes)
    blocks = launch.cluster[0] * launch.cluster[1] * launch.cluster[2]
    if blocks > 1:
        raw[_CLUSTER_DIMENSION] = struct.pack("<III", *launch.cluster)
    return {
        "number": number, "kernel": launch.kernel, "grid": launch.grid, "block": launch.block,
        "smem": launch.dynamic_smem_bytes, "blocks": blocks, "bytes": len(blob), "offsets": offsets,
        "relocations": [(offsets[r.param] + r.offset, r.tensor, r.tensor_offset) for r in launch.relocations],
        "attributes": [(key, ", ".join(map(str, value))) for key, value in raw.items()],
    }  # fmt: skip


def _parameters(launch: Launch) -> tuple[bytes, list[int]]:
    """(all parameters in one block, each aligned as a tensor map must be; their offsets)."""
    blob, offsets = bytearray(), []
    for value in launch.params:
        blob.extend(bytes(-len(blob) % _PARAM_ALIGNMENT))
        offsets.append(len(blob))
        blob += value
    return bytes(blob), offsets


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("cutegen_lab.exports", "texts"), undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True, keep_trailing_newline=True, autoescape=False,  # noqa: S701 - C, not HTML
    )  # fmt: skip
