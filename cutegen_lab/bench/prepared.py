"""A case's kernels as plain data, which is copied to the machine with the GPU."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cutegen_lab.bench.case import Case
from cutegen_lab.core.artifact import Build
from cutegen_lab.core.candidate import Config


@dataclass
class Prepared:
    """Builds of a case: ``builds`` of the family, the default config first, and that of the ``peer``. ``why_not`` says
    why the family has none."""

    name: str
    family: str = ""
    configs: list[Config] = field(default_factory=list)
    builds: list[Build] = field(default_factory=list)
    peer: Build | None = None
    why_not: str = ""

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name, "family": self.family, "configs": self.configs, "why_not": self.why_not,
            "builds": [_lean(build) for build in self.builds], "peer": self.peer and _lean(self.peer),
        }  # fmt: skip

    @classmethod
    def load(cls, folder: Path, case: Case) -> Prepared:
        """Reads a prepared case. Raises FileNotFoundError if it was not prepared."""
        data = json.loads((folder / f"{case.name}.json").read_text())
        builds = [Build.from_dict(build) for build in data.pop("builds")]
        peer = data.pop("peer")
        return cls(**data, builds=builds, peer=Build.from_dict(peer) if peer else None)


def _lean(build: Build) -> dict[str, Any]:
    return build.to_dict() | {"ptx": ""}
