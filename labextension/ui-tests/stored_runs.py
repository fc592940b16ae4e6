"""Writes a store of runs for ``npm run ui:runs``: ``python stored_runs.py FOLDER``."""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from pathlib import Path

from cutegen_lab.core.run import Checked, Event, GenerateFailed, RunStarted, Timed
from cutegen_lab.core.trial import Timing
from cutegen_lab.loop import fold
from cutegen_lab.session.archives import run_as_file
from cutegen_lab.stores.sqlite import SqliteStore
from tests.loop.events import passing
from tests.loop.scripted import started
from tests.packaging import make_samples
from tests.server.serving import finished_run, keep

HOSTILE = '<img src=x onerror="globalThis.pwned=1">\u202egnp'


def called(event: Event, name: str) -> Event:
    return replace(event, problem=replace(event.problem, name=name)) if isinstance(event, RunStarted) else event


def named(script: make_samples.Script, run_id: str) -> list[Event]:
    events = [stored.event for stored in script.stored]
    return [replace(event, run_id=run_id) if isinstance(event, RunStarted) else event for event in events]


def on_gpu(event: Event) -> Event:
    """As on a GPU beside baselines, where it was predicted on the emulator."""
    device = "cuda:0 NVIDIA H200"
    if isinstance(event, Checked):
        return replace(event, device=device)
    if isinstance(event, Timed) and event.timing is not None:
        method = "CUDA events, cold L2, 30 launches"
        baselines = {"eager": 96.4, "compile": 41.2, "copy": 31.0}
        timing = Timing("measured", event.timing.time_us * 0.95, method, device, 30, 0.4, baselines, "compile", 0.2)
        return replace(event, timing=timing)
    return event


def comparable() -> dict[str, list[Event]]:
    """Three runs of one problem, by title."""
    searched = make_samples.upto_review()
    searched.answer("approve", "c5")
    searched.say(GenerateFailed("no further change is predicted to help", exhausted=True), 0.2)
    return {
        "scores from templates": named(searched, "scores-0a01"),
        "scores from a model": named(make_samples.model(), "scores-0a02"),
        "scores on a GPU": [on_gpu(event) for event in named(searched, "scores-0a03")],
    }


def main(folder: Path) -> None:
    store = SqliteStore(folder / ".cutegen/lab.db")
    now = time.time()
    for number, name in enumerate(
        ["softmax", "rms_norm", "layer_norm_backward_with_a_long_name", "gelu_linear", HOSTILE]
    ):
        run_id = f"{name.split('<')[0] or 'evil'}-{number:04x}".replace("_", "-")
        events = [started(run_id), *passing("c1", time_us=35.1)] if number % 2 else finished_run(run_id)
        keep(store, [called(event, name) for event in events], at=now - 4000.0 * (number + 1) ** 2)
    for number, (title, events) in enumerate(comparable().items()):
        keep(store, [called(event, title) for event in events], at=now - 4e5 - number)
    first = [started("softmax-0f0f")]
    (folder / "sent.cutegen").write_bytes(run_as_file(store, fold(first), store.events("softmax-0000")[:1]))
    (folder / "broken.cutegen").write_bytes(b"PK\x03\x04")
    (folder / "problem.py").write_text("import torch\n\n\ndef reference(x):  # x: f32[64, 256]\n    return x.relu()\n")
    store.close()


main(Path(sys.argv[1]))
