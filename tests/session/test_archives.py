"""A run as one file: everything of it comes back, nothing of it is run, and a hostile or damaged file is refused."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from cutegen_lab.core.errors import InputError
from cutegen_lab.core.hashing import sha256
from cutegen_lab.core.hints import Advice
from cutegen_lab.core.run import Budget, Generated, Imported, RunSettings, RunStarted, StoredEvent
from cutegen_lab.notebook.plots.catalogue import subject_of
from cutegen_lab.notebook.plots.plot_queries import plot_list
from cutegen_lab.session import Session
from cutegen_lab.session.handle import RunHandle
from cutegen_lab.stores import archive
from cutegen_lab.stores.codec import event_to_json
from tests.loop.scripted import PROBLEM, ScriptedCompiler, ScriptedDevice, ScriptedJudge, ScriptedProvider

Members = dict[str, bytes]
HOSTILE = "\x1b]0;owned\x07<img src=x onerror=alert(1)>\u202e"


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Callable[[str], Session]]:
    sessions: list[Session] = []

    def open_one(name: str, sources: Sequence[str] = ("time 10", "time 9")) -> Session:
        device = ScriptedDevice()
        sessions.append(
            Session.open(
                tmp_path / name,
                compiler=ScriptedCompiler(),  # type: ignore[arg-type]
                judge=ScriptedJudge(),  # type: ignore[arg-type]
                device=lambda kind: device,  # type: ignore[arg-type, return-value]
                provider=lambda settings: ScriptedProvider(sources),
                workloads=lambda problem, device: problem.check_workloads,
            )
        )
        return sessions[-1]

    yield open_one
    for session in sessions:
        session.close()


@pytest.fixture
def run(opened: Callable[[str], Session]) -> RunHandle:
    handle = opened("here").start(PROBLEM, RunSettings(auto=True, budget=Budget(max_steps=2)))
    assert handle.wait(10).outcome == "accepted"
    return handle


@pytest.fixture
def sent(run: RunHandle, tmp_path: Path) -> Path:
    return run.export_as(tmp_path / "softmax.cutegen")[0]


def members(path: Path) -> Members:
    with zipfile.ZipFile(path) as file:
        return {name: file.read(name) for name in file.namelist()}


def packed(files: Members, manifest: dict[str, object] | None = None) -> bytes:
    """A file of these members, its checksums right unless ``manifest`` says otherwise."""
    body = {name: data for name, data in files.items() if name != "manifest.json"}
    sums = {name: sha256(data) for name, data in body.items()}
    told = {**json.loads(files["manifest.json"]), "sha256": sums, **(manifest or {})}
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in {"manifest.json": json.dumps(told).encode(), **body}.items():
            file.writestr(name, data)
    return out.getvalue()


def with_events(files: Members, change: Callable[[StoredEvent], StoredEvent]) -> Members:
    events = [change(event) for event in archive._events(files["events.jsonl"].decode(), "x")]
    lines = [f"{json.dumps([e.seq, e.at])}\t{event_to_json(e.event)}\n" for e in events]
    return {**files, "events.jsonl": "".join(lines).encode()}


def test_a_run_comes_back_whole(opened: Callable[[str], Session], run: RunHandle, sent: Path) -> None:
    there = opened("there").import_run(sent)
    assert there.run_id == run.run_id
    mine, theirs = run.state, there.state
    assert theirs.candidates == mine.candidates
    assert theirs.trials == mine.trials and theirs.accepted == mine.accepted
    assert there._compiled("c2")[1] == run._compiled("c2")[1]
    before = [(e.seq, e.at, e.event.type) for e in run.history.events]
    *same, last = [(e.seq, e.at, e.event.type) for e in there.history.events]
    assert same == before and last[2] == "imported"


def test_the_same_run_gives_the_same_file(run: RunHandle, sent: Path, tmp_path: Path) -> None:
    assert run.export_as(tmp_path / "again.cutegen")[0].read_bytes() == sent.read_bytes()


def test_texts_to_read_are_in_it(sent: Path) -> None:
    found = members(sent)
    assert found["problem.py"].decode() == PROBLEM.source and found["kernels/c1.py"] == b"time 10"


def test_what_was_read_says_so_and_is_not_run(opened: Callable[[str], Session], sent: Path) -> None:
    there = opened("there").import_run(sent)
    view = there.view()
    assert view.verbs == [] and view.status == "done"
    assert "read from softmax.cutegen: compiled and judged elsewhere" in view.note and "`cutegen judge`" in view.note
    runs: tuple[Callable[[], object], ...] = (
        there.resume, lambda: there.branch("c1"), lambda: there.edit("time: 1"), lambda: there.profile("c1", "cuda"),
        there.search, there.timelines, there.layouts,
    )  # fmt: skip
    for attempt in runs:
        with pytest.raises(InputError, match=r"read from softmax\.cutegen") as refused:
            attempt()
        assert refused.value.hint is not None and getattr(refused.value.hint, "code", None) is Advice.JUDGE_HERE
    assert not there.driving


def test_a_plot_that_would_run_a_kernel_is_not_offered(opened: Callable[[str], Session], sent: Path) -> None:
    there = opened("there").import_run(sent)
    missing = {entry.name: entry.missing for entry in plot_list(subject_of(there, "c1")).plots}
    assert missing["timeline"] == "the run was read from softmax.cutegen, and its kernels are not executed here"
    assert missing["checks"] == ""


def test_reading_it_again_is_the_same_run(opened: Callable[[str], Session], run: RunHandle, sent: Path) -> None:
    there = opened("there")
    assert there.import_run(sent).run_id == there.import_run(sent).run_id == run.run_id
    assert len(there.runs()) == 1


def test_where_the_run_was_made_it_gets_an_id_of_its_own(opened: Callable[[str], Session], sent: Path) -> None:
    here = opened("here")
    (own,) = here.runs()
    copy = here.import_run(sent)
    assert copy.run_id.startswith(f"{own.run_id}-") and {r.run_id for r in here.runs()} == {own.run_id, copy.run_id}
    assert not here.attach(own.run_id).state.imported


def test_it_does_not_replace_what_was_compiled_here(
    opened: Callable[[str], Session], run: RunHandle, sent: Path
) -> None:
    """An artifact's hash covers its machine code alone; another launch plan under it must stay apart."""
    files = members(sent)
    name = next(name for name in files if name.startswith("artifacts/"))
    found = json.loads(files[name])
    found["source_sha256"] = "0" * 64
    sent.write_bytes(packed({**files, name: json.dumps(found).encode()}))
    other = opened("there")
    theirs = other.import_run(sent)
    mine = other.start(PROBLEM, RunSettings(auto=True, budget=Budget(max_steps=2)))
    mine.wait(10)
    key = name.removeprefix("artifacts/").removesuffix(".json")
    candidate = next(c for c, built in run.state.compiled.items() if built.artifact_sha256 == key)
    assert theirs._compiled(candidate)[1].source_sha256 == "0" * 64
    assert mine._compiled(candidate)[1].source_sha256 != "0" * 64


def test_what_was_read_is_not_sent_on(opened: Callable[[str], Session], sent: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"was read from softmax\.cutegen"):
        opened("there").import_run(sent).export_as(tmp_path / "on.cutegen")


def test_only_files_that_cutegen_wrote_are_replaced(run: RunHandle, sent: Path, tmp_path: Path) -> None:
    run.export_as(sent)
    other = tmp_path / "mine.cutegen"
    other.write_bytes(b"my own")
    with pytest.raises(InputError, match="did not write it"):
        run.export_as(other)


def bomb(files: Members) -> bytes:
    return packed({**files, "problem.py": bytes(archive.MOST_BYTES + 1)})


def many(files: Members) -> bytes:
    return packed({**files, **{f"kernels/k{i}.py": b"" for i in range(archive.MOST_MEMBERS)}})


def renamed(run_id: str) -> Callable[[Members], bytes]:
    def change(stored: StoredEvent) -> StoredEvent:
        event = stored.event
        return replace(stored, event=replace(event, run_id=run_id)) if isinstance(event, RunStarted) else stored

    return lambda files: packed(with_events(files, change))


def named_candidate(files: Members) -> bytes:
    def change(stored: StoredEvent) -> StoredEvent:
        if not isinstance(stored.event, Generated):
            return stored
        return replace(stored, event=Generated(replace(stored.event.candidate, id="../../c1", parent_id=None)))

    return packed(with_events(files, change))


def reimported(files: Members) -> bytes:
    events = list(archive._events(files["events.jsonl"].decode(), "x"))
    line = f"{json.dumps([len(events) + 1, 1.0])}\t{event_to_json(Imported('x', 'y'))}\n"
    return packed({**files, "events.jsonl": files["events.jsonl"] + line.encode()})


def out_of_order(files: Members) -> bytes:
    first, *rest = archive._events(files["events.jsonl"].decode(), "x")
    events = [first, *(replace(event, seq=seq) for seq, event in enumerate(reversed(rest), 2))]
    lines = [f"{json.dumps([e.seq, e.at])}\t{event_to_json(e.event)}\n" for e in events]
    return packed({**files, "events.jsonl": "".join(lines).encode()})


def without(start: str) -> Callable[[Members], bytes]:
    return lambda files: packed({name: data for name, data in files.items() if not name.startswith(start)})


def with_member(name: str) -> Callable[[Members], bytes]:
    return lambda files: packed({**files, name: b"x"})


def with_lzma(files: Members) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_LZMA) as file:
        for name, data in files.items():
            file.writestr(name, data)
    return out.getvalue()


def signed(signature: object) -> Callable[[Members], bytes]:
    """An artifact with another ``signature`` of a build than its hash covers."""

    def made(files: Members) -> bytes:
        name = next(name for name in files if name.startswith("artifacts/"))
        artifact = json.loads(files[name])
        next(iter(artifact["builds"].values()))["signature"] = signature
        return packed({**files, name: json.dumps(artifact).encode()})

    return made


def damaged(files: Members) -> bytes:
    return packed(files, {"sha256": {name: "0" * 64 for name in files if name != "manifest.json"}})


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda files: b"", "damaged, or no archived run"),
        (lambda files: b"not a zip", "damaged, or no archived run"),
        (lambda files: packed(files)[:-40], "damaged, or no archived run"),
        (damaged, "checksum"),
        (lambda files: packed(files, {"sha256": {}}), "not those that its manifest lists"),
        (lambda files: packed(files, {"sha256": 7}), "no checksums"),
        (lambda files: packed(files, {"version": 99}), "reads up to 1"),
        (lambda files: packed(files, {"format": "other"}), "no archived run"),
        (bomb, "unpack to more than"),
        (many, "files; a run has at most"),
        (with_member("../../etc/cron.d/x"), "contains a file that no run has"),
        (with_member("/etc/passwd"), "contains a file that no run has"),
        (with_member("kernels/../../x.py"), "contains a file that no run has"),
        (with_member(f"kernels/{HOSTILE}.py"), "contains a file that no run has"),
        (without("events"), "no events.jsonl"),
        (without("artifacts/"), "lacks the artifact"),
        (lambda files: packed({**files, "events.jsonl": b"[1, 2.0]\t{}\n"}), "event 1"),
        (lambda files: packed({**files, "events.jsonl": b"[" * 100_000}), "event 1"),
        (lambda files: packed({**files, "events.jsonl": b""}), "event 1"),
        (lambda files: packed({**files, "events.jsonl": b"[1, Infinity]\t{}\n"}), "event 1"),
        (lambda files: packed({**files, "events.jsonl": b"[1, " + b"9" * 400 + b"]\t{}\n"}), "event 1"),
        (with_lzma, "has an unsupported compression method"),
        (signed("x: f32[1]"), "its hash differs"),
        (signed(float("inf")), "is no artifact"),
        (renamed("../../run"), "names its run"),
        (renamed(HOSTILE), "names its run"),
        (named_candidate, "names a candidate"),
        (out_of_order, "is no run"),
        (reimported, "itself read from a file"),
    ],
)
def test_a_hostile_or_damaged_file_is_refused(
    opened: Callable[[str], Session], sent: Path, made: Callable[[Members], bytes], said: str
) -> None:
    sent.write_bytes(made(members(sent)))
    there = opened("there")
    with pytest.raises(InputError, match=said) as refused:
        there.import_run(sent)
    assert refused.value.action
    assert "\x1b" not in str(refused.value) and "\u202e" not in str(refused.value)
    assert there.runs() == []


def test_the_same_name_twice_is_refused(opened: Callable[[str], Session], sent: Path) -> None:
    """Which of the two is read would depend on the reader."""
    files = members(sent)
    with pytest.warns(UserWarning, match="Duplicate name"), zipfile.ZipFile(sent, "a") as file:
        file.writestr("problem.py", files["problem.py"])
    with pytest.raises(InputError, match="contains a file that no run has"):
        opened("there").import_run(sent)


def test_a_missing_file_is_named(opened: Callable[[str], Session], tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot read .*absent\.cutegen"):
        opened("there").import_run(tmp_path / "absent.cutegen")
