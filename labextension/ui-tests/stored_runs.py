"""Writes a store of runs for ``npm run ui:runs``: ``python stored_runs.py FOLDER``."""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from pathlib import Path

from cutegen_lab.core.run import Event, RunStarted
from cutegen_lab.loop import fold
from cutegen_lab.session.archives import run_as_file
from cutegen_lab.stores.sqlite import SqliteStore
from tests.loop.events import passing
from tests.loop.scripted import started
from tests.server.serving import finished_run, keep

HOSTILE = '<img src=x onerror="globalThis.pwned=1">\u202egnp'


def called(event: Event, name: str) -> Event:
    return replace(event, problem=replace(event.problem, name=name)) if isinstance(event, RunStarted) else event


def main(folder: Path) -> None:
    store = SqliteStore(folder / ".cutegen/lab.db")
    now = time.time()
    for number, name in enumerate(
        ["softmax", "rms_norm", "layer_norm_backward_with_a_long_name", "gelu_linear", HOSTILE]
    ):
        run_id = f"{name.split('<')[0] or 'evil'}-{number:04x}".replace("_", "-")
        events = [started(run_id), *passing("c1", time_us=35.1)] if number % 2 else finished_run(run_id)
        keep(store, [called(event, name) for event in events], at=now - 4000.0 * (number + 1) ** 2)
    first = [started("softmax-0f0f")]
    (folder / "sent.cutegen").write_bytes(run_as_file(store, fold(first), store.events("softmax-0000")[:1]))
    (folder / "broken.cutegen").write_bytes(b"PK\x03\x04")
    (folder / "problem.py").write_text("import torch\n\n\ndef reference(x):  # x: f32[64, 256]\n    return x.relu()\n")
    store.close()


main(Path(sys.argv[1]))
