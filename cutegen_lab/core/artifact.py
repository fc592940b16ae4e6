"""A compiled candidate as plain data: everything a judge needs, and no host code.

An :class:`Artifact` has one :class:`Build` for each workload. A build is self-contained (cubin, PTX, launch plan; some
25 KB), so it can be sent to any device. ``to_dict``/``from_dict`` give the versioned JSON form.
"""

from __future__ import annotations

import base64
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from cutegen_lab.core.candidate import Config
from cutegen_lab.core.errors import InputError
from cutegen_lab.core.hashing import canonical_json, sha256
from cutegen_lab.core.problem import TensorSpec
from cutegen_lab.core.verdict import Diagnostic, Verdict

SCHEMA_VERSION = 1


@dataclass(frozen=True)
class KernelInfo:
    """Static facts about one kernel of a cubin."""

    name: str
    """Name in the cubin."""
    registers: int
    """Registers per thread."""
    spill_store_bytes: int
    """Bytes of spill stores, as ptxas reports them."""
    spill_load_bytes: int
    """Bytes of spill loads, as ptxas reports them."""
    static_smem_bytes: int
    """Static shared memory per block in bytes."""
    local_bytes: int
    """Local memory per thread in bytes."""
    param_sizes: tuple[int, ...]
    """Size of each kernel parameter in bytes, in order."""


@dataclass(frozen=True)
class Relocation:
    """An 8-byte device address inside a parameter: ``params[param][offset:offset+8] = address(tensor) +
    tensor_offset``."""

    param: int
    """Index of the parameter."""
    offset: int
    """Byte offset of the address in the parameter."""
    tensor: int
    """Index of the tensor: the workload's inputs, then outputs, then the plan's workspace."""
    tensor_offset: int
    """Bytes from the tensor's first element to the address."""


PROGRAMMATIC = 6  # CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION: may start before the previous launch ends


@dataclass(frozen=True)
class Launch:
    """One kernel launch."""

    kernel: str
    """Name of the kernel in the cubin."""
    grid: tuple[int, int, int]
    """Blocks of the grid (x, y, z)."""
    block: tuple[int, int, int]
    """Threads of a block (x, y, z)."""
    cluster: tuple[int, int, int]
    """Blocks of a cluster (x, y, z); (1, 1, 1) without clusters."""
    dynamic_smem_bytes: int
    """Dynamic shared memory per block in bytes."""
    params: tuple[bytes, ...]
    """Raw bytes of each parameter; addresses in them are set by ``relocations``."""
    relocations: tuple[Relocation, ...]
    """Where device addresses go in ``params``."""
    attributes: Mapping[int, bytes] = field(default_factory=dict)
    """Other CUDA launch attributes: id to raw value bytes."""


@dataclass(frozen=True)
class LaunchPlan:
    """Everything one call does on the device."""

    launches: tuple[Launch, ...]
    """Kernel launches, in order on one stream."""
    workspace: tuple[TensorSpec, ...] = ()
    """Scratch tensors that the launches need."""

    @property
    def one_call(self) -> tuple[Launch, ...]:
        """The launches without the first one's programmatic attribute: a call must not begin before earlier work on the
        stream has ended."""
        first = [
            replace(x, attributes={k: v for k, v in x.attributes.items() if k != PROGRAMMATIC})
            for x in self.launches[:1]
        ]
        return (*first, *self.launches[1:])


@dataclass(frozen=True)
class SourceLine:
    """One PTX ``.loc``: maps PTX lines to the candidate's text."""

    ptx_line: int
    """First PTX line it holds for, from 1."""
    line: int
    """Line of the candidate's text, from 1."""


@dataclass(frozen=True)
class Build:
    """A candidate and config compiled for one workload's signature."""

    signature: str
    """Signature of the workload: dtypes and layouts."""
    arch: str
    """Target architecture ("sm_90a")."""
    cubin: bytes
    """Machine code (ELF)."""
    ptx: str
    """PTX of all kernels."""
    kernels: tuple[KernelInfo, ...]
    """Static facts about each kernel."""
    plan: LaunchPlan
    """Launches and workspace of one call."""
    lines: tuple[SourceLine, ...] = ()
    """Map from PTX lines to the candidate's lines, by PTX line."""
    notes: tuple[Diagnostic, ...] = ()
    """Lint warnings and ptxas notes."""
    compile_seconds: float = 0.0
    """Seconds that compiling took."""
    inputs: int | None = None
    """Number of the plan's tensors that hold data before the first launch; None if not recorded."""
    prints: bool = False
    """Whether kernels call printf: the emulator shows the output, but the judge accepts no such kernel."""

    def source_line(self, ptx_line: int) -> int:
        """Line of the candidate's text for a PTX line; 0 if there is none."""
        at = bisect_right(self.lines, ptx_line, key=lambda place: place.ptx_line) - 1
        return self.lines[at].line if at >= 0 else 0

    def kernel(self, name: str) -> KernelInfo:
        """Facts about the kernel ``name`` of the cubin. Raises KeyError."""
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
    """A compiled candidate and config for one arch: one build for each workload."""

    source_sha256: str
    """SHA-256 of the candidate's text."""
    config: Config
    """Values of its tunables."""
    arch: str
    """Target architecture ("sm_90a")."""
    dsl_version: str
    """Version of nvidia-cutlass-dsl."""
    builds: Mapping[str, Build]
    """Builds by workload name."""
    isolation: tuple[str, ...] = ()
    """Protections the compile cage had ("user-ns", "net-ns", "mount-ns", "rlimits", …)."""
    unserved: tuple[str, ...] = ()
    """Names of derived workloads that the candidate's ``constraints`` rule out."""

    @property
    def sha256(self) -> str:
        """Hash of the machine code and signatures; compile times do not change it."""
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
class TracedLayout:
    """A layout or a tensor in shared memory that a candidate makes, or a box of TMA, a tiled copy or a tensor-core
    instruction that it uses. Reported by the candidate's own process, so for display only."""

    line: int
    """Line of the candidate's text."""
    kind: str
    """Its type as the DSL prints it: ``!cute.layout<"(32,32):(32,1)">``."""


@dataclass(frozen=True)
class CompileFailure:
    """Why there is no artifact."""

    verdict: Verdict
    """Verdict of the candidate."""
    reason: str
    """One line for the analyst."""
    diagnostics: tuple[Diagnostic, ...] = ()
    """Messages of the gate, the lint rules, the compiler or the cage."""
    isolation: tuple[str, ...] = ()
    """Protections the compile cage had."""
    ruled_out: bool = False
    """Whether the candidate's own ``constraints`` refused the config."""
