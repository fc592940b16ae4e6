"""The DSL in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

SCRIPT = Path(__file__).with_name("dsl_answers.py")


def dsl_answers(cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """An answer a case; ``refused`` has the DSL's message."""
    done = subprocess.run(  # noqa: S603 - our own script
        [sys.executable, "-I", str(SCRIPT)], input=json.dumps(cases), capture_output=True, text=True, timeout=250,
        env={**os.environ, "CUTE_DSL_ARCH": "sm_90a", "CUTE_DSL_NO_CACHE": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    answers: list[dict[str, Any]] = json.loads(done.stdout)
    assert len(answers) == len(cases)
    return answers
