"""The environment, read in one place; keys never shown."""

from __future__ import annotations

import re
from pathlib import Path

from cutegen_lab.config import Settings


def test_defaults() -> None:
    settings = Settings.from_environment({})
    assert (settings.workdir, settings.editor, settings.model) == (Path(".cutegen"), "vi", "")
    assert settings.cache_dir == Path("~/.cache/cutegen-lab").expanduser()


def test_everything_can_be_set_and_the_key_stays_hidden() -> None:
    settings = Settings.from_environment({
        "OPENAI_API_KEY": "sk-secret", "OPENAI_BASE_URL": "http://localhost:1", "CUTEGEN_MODEL": "m",
        "CUTEGEN_HOME": "/somewhere", "CUTEGEN_CACHE": "~/c", "EDITOR": "ed -s",
        "CUTEGEN_PRICES": "~/prices.json", "CUTEGEN_KERNELBENCH": "/bench",
    })  # fmt: skip
    assert settings.openai_api_key == "sk-secret"
    assert settings.editor == "ed -s" and settings.prices == Path("~/prices.json").expanduser()
    assert settings.kernelbench == Path("/bench") and Settings.from_environment({}).kernelbench is None
    assert settings.cache_dir == Path("~/c").expanduser()
    assert "secret" not in repr(settings) and "secret" not in str(settings)


def test_no_other_module_reads_the_environment() -> None:
    root = Path(__file__).parents[2] / "cutegen_lab"
    allowed = {"config.py"}
    reads = re.compile(r"os\.getenv|environ\.get\(|os\.environ\[[^\]]*\](?!\s*=)")  # writing it is another matter
    for path in sorted(root.rglob("*.py")):
        if path.parent == root and path.name in allowed:
            continue
        assert not reads.search(path.read_text()), path
