"""All settings from environment variables, read only here (except NO_COLOR, which rich reads)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cutegen_lab.core.secrets import without_credentials

DEFAULT_WORKDIR = Path(".cutegen")
DEFAULT_MODEL = "gpt-5"
"""Model that the provider ``openai`` asks if none is named."""
ALLOW_WEAK_CAGE = "CUTEGEN_ALLOW_WEAK_CAGE"


@dataclass(frozen=True)
class Settings:
    """Settings from the environment. Keys are used only by the provider and never printed."""

    openai_api_key: str
    openai_base_url: str
    model: str
    workdir: Path
    cache_dir: Path
    editor: str
    allow_weak_cage: bool = False
    prices: Path | None = None
    """File of prices of models; None if there is none."""
    plain_requests: bool = False
    """Whether requests to models have no grammars and tools."""
    kernelbench: Path | None = None
    """Folder of a checkout of KernelBench; None if none is named."""

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] | None = None) -> Settings:
        """Reads OPENAI_API_KEY, OPENAI_BASE_URL, CUTEGEN_MODEL, CUTEGEN_HOME (the work directory), CUTEGEN_CACHE,
        CUTEGEN_PRICES, CUTEGEN_KERNELBENCH, VISUAL or EDITOR, CUTEGEN_ALLOW_WEAK_CAGE, and CUTEGEN_PLAIN_REQUESTS."""
        env = os.environ if environ is None else environ
        return cls(
            openai_api_key=env.get("OPENAI_API_KEY", ""),
            openai_base_url=env.get("OPENAI_BASE_URL", ""),
            model=env.get("CUTEGEN_MODEL", ""),
            workdir=Path(env.get("CUTEGEN_HOME") or DEFAULT_WORKDIR),
            cache_dir=Path(env.get("CUTEGEN_CACHE") or Path("~/.cache/cutegen-lab")).expanduser(),
            editor=env.get("VISUAL") or env.get("EDITOR") or "vi",
            allow_weak_cage=_on(env.get(ALLOW_WEAK_CAGE, "")),
            prices=_path(env.get("CUTEGEN_PRICES")),
            kernelbench=_path(env.get("CUTEGEN_KERNELBENCH")),
            plain_requests=_on(env.get("CUTEGEN_PLAIN_REQUESTS", "")),
        )

    def __repr__(self) -> str:
        key = "set" if self.openai_api_key else "missing"
        url = without_credentials(self.openai_base_url)
        return f"Settings(key {key}, base_url={url!r}, model={self.model!r}, workdir={self.workdir})"


def _on(value: str) -> bool:
    return value not in ("", "0")


def _path(text: str | None) -> Path | None:
    return Path(text).expanduser() if text else None
