"""A compiled candidate as plain data: what a judge needs, and nothing that runs on a host.

An :class:`Artifact` has one :class:`Build` a workload. A build is self-contained (cubin, PTX, launch plan; some 25 KB),
so evaluating one is a message to any device. ``to_dict``/``from_dict`` give the versioned JSON form.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from cutegen_lab.core.candidate import Config
from cutegen_lab.core.errors import InputError
from cutegen_lab.core.hashing import canonical_json, sha256
from cutegen_lab.core.problem import TensorSpec
from cutegen_lab.core.verdict import Diagnostic, Verdict

SCHEMA_VERSION = 1


@dataclass(frozen=True)
class KernelInfo:
    """Static facts about one kernel in a cubin. Sizes in bytes; ``param_sizes`` in order."""

    name: str
    registers: int
    spill_store_bytes: int
    spill_load_bytes: int
    static_smem_bytes: int
    local_bytes: int
    param_sizes: tuple[int, ...]


@dataclass(frozen=True)
class Relocation:
    """An 8-byte device address inside a parameter: ``params[param][offset:offset+8] = address(tensor) +
    tensor_offset``.

    ``tensor`` indexes the workload's inputs, then outputs, then the plan's workspace.
    """

    param: int
    offset: int
    tensor: int
    tensor_offset: int


PROGRAMMATIC = 6  # CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION: may begin before what is before it ends


@dataclass(frozen=True)
class Launch:
    """One kernel launch. ``attributes`` maps other CUDA launch attribute ids to their raw value bytes."""

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    cluster: tuple[int, int, int]
    dynamic_smem_bytes: int
    params: tuple[bytes, ...]
    relocations: tuple[Relocation, ...]
    attributes: Mapping[int, bytes] = field(default_factory=dict)


@dataclass(frozen=True)
class LaunchPlan:
    """Every launch of one call, in order on one stream, and the scratch tensors it needs."""

    launches: tuple[Launch, ...]
    workspace: tuple[TensorSpec, ...] = ()


@dataclass(frozen=True)
class SourceLine:
    """One PTX ``.loc``: from ``ptx_line`` on (1-based), code comes from ``line`` of the candidate's text."""

    ptx_line: int
    line: int


@dataclass(frozen=True)
class Build:
    """A candidate+config compiled for one workload's signature."""

    signature: str
    arch: str
    cubin: bytes
    ptx: str
    kernels: tuple[KernelInfo, ...]
    plan: LaunchPlan
    lines: tuple[SourceLine, ...] = ()
    notes: tuple[Diagnostic, ...] = ()  # lint warnings, ptxas notes
    compile_seconds: float = 0.0
    inputs: int | None = None  # how many of the plan's tensors hold data before the first launch (None: not recorded)
    prints: bool = False  # kernels call printf, for the emulator to show: no judge accepts them

    def kernel(self, name: str) -> KernelInfo:
        for info in self.kernels:
            if info.name == name:
                return info
        raise KeyError(name)

    def to_dict(self) -> dict[str, Any]:
        data = asdict(self)
        data["cubin"] = base64.b64encode(self.cubin).decode()
        for launch, out in zip(self.plan.launches, data["plan"]["launches"], strict=True):
            out["params"] = [p.hex() for p in launch.params]
            out["attributes"] = {str(k): v.hex() for k, v in launch.attributes.items()}
        data["plan"]["workspace"] = [spec.to_dict() for spec in self.plan.workspace]
        for note, out in zip(self.notes, data["notes"], strict=True):
            out["severity"] = note.severity
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Build:
        plan = LaunchPlan(
            launches=tuple(
                Launch(
                    kernel=d["kernel"],
                    grid=tuple(d["grid"]),
                    block=tuple(d["block"]),
                    cluster=tuple(d["cluster"]),
                    dynamic_smem_bytes=d["dynamic_smem_bytes"],
                    params=tuple(bytes.fromhex(p) for p in d["params"]),
                    relocations=tuple(Relocation(**r) for r in d["relocations"]),
                    attributes={int(k): bytes.fromhex(v) for k, v in d["attributes"].items()},
                )
                for d in data["plan"]["launches"]
            ),
            workspace=tuple(TensorSpec.from_dict(w) for w in data["plan"]["workspace"]),
        )
        return cls(
            signature=data["signature"],
            arch=data["arch"],
            cubin=base64.b64decode(data["cubin"]),
            ptx=data["ptx"],
            kernels=tuple(KernelInfo(**{**k, "param_sizes": tuple(k["param_sizes"])}) for k in data["kernels"]),
            plan=plan,
            lines=tuple(SourceLine(**line) for line in data["lines"]),
            notes=tuple(Diagnostic(**n) for n in data["notes"]),
            compile_seconds=data["compile_seconds"],
            inputs=data.get("inputs"),
            prints=data.get("prints", False),
        )


@dataclass(frozen=True)
class Artifact:
    """A compiled candidate+config for one arch: one build a workload, by workload name.

    ``isolation`` lists what the cage had ("user-ns", "net-ns", "mount-ns", "rlimits", …). ``unserved`` are derived
    workloads that the candidate's ``constraints`` rule out.
    """

    source_sha256: str
    config: Config
    arch: str
    dsl_version: str
    builds: Mapping[str, Build]
    isolation: tuple[str, ...] = ()
    unserved: tuple[str, ...] = ()

    @property
    def sha256(self) -> str:
        """Content hash: of what runs, not of how long it took to compile."""
        return sha256(canonical_json([[n, b.signature, sha256(b.cubin)] for n, b in sorted(self.builds.items())]))

    def to_dict(self) -> dict[str, Any]:
        return {
            "schema": "cutegen-artifact",
            "schema_version": SCHEMA_VERSION,
            "source_sha256": self.source_sha256,
            "config": dict(self.config),
            "arch": self.arch,
            "dsl_version": self.dsl_version,
            "isolation": list(self.isolation),
            "unserved": list(self.unserved),
            "builds": {name: build.to_dict() for name, build in self.builds.items()},
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Artifact:
        """Raises :class:`InputError` for another schema or a newer version."""
        if data.get("schema") != "cutegen-artifact" or data.get("schema_version") != SCHEMA_VERSION:
            seen = f"{data.get('schema')!r} version {data.get('schema_version')!r}"
            raise InputError(f"not an artifact this version reads: {seen}", "Compile the kernel again.")
        return cls(
            source_sha256=data["source_sha256"],
            config=dict(data["config"]),
            arch=data["arch"],
            dsl_version=data["dsl_version"],
            builds={name: Build.from_dict(b) for name, b in data["builds"].items()},
            isolation=tuple(data["isolation"]),
            unserved=tuple(data.get("unserved", ())),
        )


@dataclass(frozen=True)
class CompileFailure:
    """Why there is no artifact: a verdict and what the gate, lint, compiler or cage said. ``ruled_out``: the
    candidate's own ``constraints`` did."""

    verdict: Verdict
    reason: str
    diagnostics: tuple[Diagnostic, ...] = ()
    isolation: tuple[str, ...] = ()
    ruled_out: bool = False
