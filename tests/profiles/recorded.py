"""Real runs on the emulator, recorded: ``python -m tests.profiles.recorded NAME STORE RUN`` writes one anew."""

from __future__ import annotations

import gzip
import json
import sys
import threading
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from cutegen_lab.core.artifact import Artifact, Build
from cutegen_lab.core.run import Compiled, RunState
from cutegen_lab.core.timeline import Timeline
from cutegen_lab.devices.emulator import EmulatorDevice
from cutegen_lab.judge.draws.inputs import fill
from cutegen_lab.judge.execution.buffers import POISONS, Buffers
from cutegen_lab.loop import fold
from cutegen_lab.stores.codec import event_from_json, event_to_json
from cutegen_lab.stores.sqlite import SqliteStore

RUNS = Path(__file__).with_name("runs")


@dataclass(frozen=True)
class Recorded:
    """A run's state, and by candidate its build for the main workload."""

    state: RunState
    builds: dict[str, Build]


@cache
def recorded(name: str) -> Recorded:
    """``softmax``: one candidate, memory bound. ``matmul``: several, on tensor cores, fed by TMA."""
    data = json.loads(gzip.decompress(_file(name).read_bytes()))
    state = fold(event_from_json(event) for event in data["events"])
    return Recorded(state, {name: Build.from_dict(build) for name, build in data["builds"].items()})


def kept(name: str, workdir: Path) -> str:
    """Puts a recorded run into a new store in ``workdir``. Returns its id."""
    run, store = recorded(name), SqliteStore(workdir / "lab.db")
    events = [event_from_json(event) for event in json.loads(gzip.decompress(_file(name).read_bytes()))["events"]]
    for event in events:
        if isinstance(event, Compiled):
            build = run.builds[event.candidate_id]
            sha256 = store.put_artifact(Artifact("", {}, "sm_90a", "", {"main": build}))
            event = replace(event, artifact_sha256=sha256)
        store.append(run.state.run_id, event, run.state)
    store.close()
    return run.state.run_id


@cache
def _timelines(name: str, candidate: str) -> tuple[Timeline, ...]:
    run = recorded(name)
    workload = run.state.problem.workload
    tensors = Buffers(workload, run.builds[candidate], fill(workload, 7), POISONS[0])
    found = EmulatorDevice().timelines(tensors.build, tensors.tensors, tensors.views, threading.Event())
    assert not isinstance(found, str), found
    return found


def timelines_of(run: Recorded, candidate: str) -> tuple[Timeline, ...]:
    """What the warps of one block do, executed by the emulator now."""
    return _timelines(run.state.problem.name, candidate)


def _file(name: str) -> Path:
    return RUNS / f"{name}.json.gz"


def record(name: str, path: Path, run_id: str) -> None:
    """Without cubins, and what the events need not have."""
    store = SqliteStore(path)
    events = [stored.event for stored in store.events(run_id)]
    builds = {}
    for event in events:
        if isinstance(event, Compiled):
            build = store.get_artifact(event.artifact_sha256).builds["main"]
            builds[event.candidate_id] = replace(build, cubin=b"").to_dict()
    data = json.dumps({"events": [event_to_json(event) for event in events], "builds": builds})
    RUNS.mkdir(exist_ok=True)
    _file(name).write_bytes(gzip.compress(data.encode(), mtime=0))


if __name__ == "__main__":
    record(sys.argv[1], Path(sys.argv[2]), sys.argv[3])
