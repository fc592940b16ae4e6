"""What views without a kernel ask: the answers of a real Jupyter Server, and the process that finds them."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest
from jupyter_server.auth import Authorizer

from cutegen_lab.core.errors import InputError, SetupError
from cutegen_lab.core.run import Budget, RunSettings
from cutegen_lab.notebook.query_worker import OpenRuns, answered
from cutegen_lab.server.query_process import COMMAND, QueryProcess
from cutegen_lab.session import Session
from cutegen_lab.stores.sqlite import SqliteStore
from cutegen_lab.views.asking import Asked, Told
from cutegen_lab.views.model import Query
from tests.loop.scripted import PROBLEM, ScriptedCompiler, ScriptedDevice, ScriptedJudge, ScriptedProvider, started
from tests.server.serving import ROOT, Server, keep, serving
from tests.server.serving import Told as Reply

NOWHERE = Path("/nowhere")


@pytest.fixture(autouse=True)
def this_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    """For the processes that tests start."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


def query(name: str, candidate_id: str = "c2", **more: object) -> dict[str, object]:
    return {"request_id": "", "query": name, "candidate_id": candidate_id, **more}


def judged(workdir: Path) -> str:
    """Id of a finished run of two candidates, with what they compiled to."""
    device = ScriptedDevice()
    with Session.open(
        workdir,
        compiler=ScriptedCompiler(),  # type: ignore[arg-type]
        judge=ScriptedJudge(),  # type: ignore[arg-type]
        device=lambda kind: device,  # type: ignore[arg-type, return-value]
        provider=lambda settings: ScriptedProvider(("time 10", "time 9")),
        workloads=lambda problem, device: problem.check_workloads,
    ) as session:
        handle = session.start(PROBLEM, RunSettings(auto=True, budget=Budget(max_steps=2)))
        assert handle.wait(10).outcome == "accepted"
        handle.export_as(workdir.parent / "sent.cutegen")
        return handle.run_id


def processes(server: Server) -> list[int]:
    """Those that answer for the server."""
    found = []
    for each in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (each / "cmdline").read_bytes().split(b"\0")
            if b"cutegen_lab.notebook.query_worker" in words and (each / "cwd").readlink() == server.root.resolve():
                found.append(int(each.name))
    return found


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("answers"), "/user/ana/") as found:
        yield found


@pytest.fixture(scope="module")
def run_id(server: Server) -> str:
    return judged(server.root / "lab/.cutegen")


def ask(server: Server, run_id: str, *asked: object, **more: object) -> Reply:
    return server.ask("run", "POST", query(*asked, **more), store="lab/.cutegen", id=run_id)  # type: ignore[arg-type]


def ask_file(server: Server, *asked: object, **more: object) -> Reply:
    return server.ask("archive", "POST", query(*asked, **more), path="lab/sent.cutegen")  # type: ignore[arg-type]


def test_a_run_is_asked_as_in_a_notebook_and_stays_as_it_is(server: Server, run_id: str) -> None:
    store = SqliteStore(server.root / "lab/.cutegen/lab.db")
    before = store.events(run_id)
    code = ask(server, run_id, "machine_code")
    assert (code.status, code.body["candidate_id"]) == (200, "c2")
    assert [line["text"] for line in code.body["ptx"]] == ["time 9"]
    assert code.headers["Content-Type"].startswith("application/json")
    plots = ask(server, run_id, "plots")
    assert (plots.status, plots.body["candidate_id"]) == (200, "c2")
    unknown = ask(server, run_id, "plots", "c9")
    assert unknown.status == 404 and "has no candidate c9" in unknown.body["message"]
    assert "Candidates: c1, c2" in unknown.body["message"]
    layouts = ask(server, run_id, "layouts")
    assert layouts.status == 404 and "c2 does not compile" in layouts.body["message"]
    assert (store.events(run_id), store.driven_by(run_id)) == (before, "")
    store.close()


def test_a_run_that_another_process_drives_is_asked_too(server: Server, run_id: str) -> None:
    store = SqliteStore(server.root / "lab/.cutegen/lab.db")
    lease = store.lease(run_id)
    assert ask(server, run_id, "machine_code").status == 200
    assert store.driven_by(run_id) == str(os.getpid())
    lease.release()
    store.close()


def test_files_are_written_beside_the_notebooks(server: Server, run_id: str) -> None:
    formats = ask(server, run_id, "export")
    assert "wheel" in [each["name"] for each in formats.body["formats"]]
    assert formats.body["paths"] == []
    written = ask(server, run_id, "export", text="run")
    assert written.body["paths"] == [f"lab/{run_id}.cutegen"]
    assert (server.root / f"lab/{run_id}.cutegen").is_file()
    mine = server.root / f"lab/{run_id}.cutegen-run.json"
    mine.write_text("mine")
    refused = ask(server, run_id, "export", text="view")
    assert refused.status == 404 and "cutegen did not write it" in refused.body["message"]
    assert mine.read_text() == "mine"


@pytest.mark.parametrize("candidate_id", ["../c2", "/etc/c2", "a\0b", "..", "best/../../c2"])
def test_no_file_is_written_elsewhere(server: Server, run_id: str, candidate_id: str) -> None:
    before = set(server.root.rglob("*")) | set(server.root.parent.glob("*"))
    for text in ("kernel", "run", "wheel"):
        answer = ask(server, run_id, "export", candidate_id, text=text)
        assert answer.status in (200, 404), answer
        assert answer.status == 404 or answer.body["paths"] == [f"lab/{run_id}.cutegen"]
    after = set(server.root.rglob("*")) | set(server.root.parent.glob("*"))
    assert {path.name for path in after - before} <= {f"{run_id}.cutegen", "lab.db-wal", "lab.db-shm"}


def test_a_store_whose_ids_are_paths_writes_nowhere(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "root/.cutegen/lab.db")
    keep(store, [started("../out")])
    store.close()
    runs = OpenRuns()
    asked = Asked(
        number=7, place=tmp_path / "root/.cutegen", run_id="../out", folder=tmp_path / "root",
        query=Query.model_validate(query("export", text="view")),
    )  # fmt: skip
    told, found = answered(runs, asked.model_dump_json().encode()).splitlines()
    runs.close()
    assert Told.model_validate_json(told).error == "'../out' is not a name of a run or candidate"
    assert found == b"null" and not list(tmp_path.glob("out*"))


def test_a_wrong_query_is_told(server: Server, run_id: str) -> None:
    for body, said in (
        (query("destroy"), "query: "), ({"query": "plots"}, "request_id: "), (["x"], "the request: "),
        (query("plots", more="x"), "more: "),
    ):  # fmt: skip
        answer = server.ask("run", "POST", body, store="lab/.cutegen", id=run_id)
        assert answer.status == 400 and answer.body["message"].startswith(said), answer
    assert ask(server, "none", "plots").status == 409
    assert ask(server, "", "plots").status == 409


def test_the_run_in_a_file_is_asked_and_nothing_of_it_is_run(server: Server, run_id: str) -> None:
    assert [line["text"] for line in ask_file(server, "machine_code").body["ptx"]] == ["time 9"]
    assert ask_file(server, "plots").body["candidate_id"] == "c2"
    for name in ("layouts", "layout"):
        refused = ask_file(server, name, text="0")
        assert refused.status == 404 and "was read from sent.cutegen, to look at only" in refused.body["message"]
    kernel = ask_file(server, "export", text="kernel")
    assert kernel.body["paths"] == [f"lab/{run_id}-c2.py"]
    assert "read from sent.cutegen" in (server.root / kernel.body["paths"][0]).read_text()
    assert ask_file(server, "export", text="wheel").status == 404
    assert ask_file(server, "export", text="run").status == 404


def test_a_hostile_file_is_refused(server: Server, run_id: str, tmp_path: Path) -> None:
    (server.root / "bad.cutegen").write_bytes(b"PK\x03\x04 no zip")
    (server.root / "out.cutegen").symlink_to(tmp_path / "far.cutegen")
    (tmp_path / "far.cutegen").write_bytes((server.root / "lab/sent.cutegen").read_bytes())
    bad = server.ask("archive", "POST", query("plots"), path="bad.cutegen")
    assert bad.status == 404 and "damaged" in bad.body["message"]
    for path in ("out.cutegen", "../x.cutegen", "/etc/passwd", "lab", "lab/.cutegen"):
        assert server.ask("archive", "POST", query("plots"), path=path).status == 404


def test_a_process_that_crashed_is_started_anew(server: Server, run_id: str) -> None:
    assert ask(server, run_id, "plots").status == 200
    (first,) = processes(server)
    os.kill(first, signal.SIGKILL)
    while Path(f"/proc/{first}").exists():
        time.sleep(0.05)
    assert ask(server, run_id, "plots").status == 200
    (second,) = processes(server)
    assert second != first


def test_the_process_ends_with_the_server(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    run_id = judged(tmp_path / "root/lab/.cutegen")
    with serving(tmp_path) as server:
        assert ask(server, run_id, "plots").status == 200
        (process,) = processes(server)
        server.process.kill()  # it cannot say goodbye
        server.process.wait()
        for _ in range(100):
            if not Path(f"/proc/{process}").exists():
                break
            time.sleep(0.1)
        else:
            raise AssertionError("it outlives the server")
    assert "Traceback" not in server.log.read_text()


class ReadOnly(Authorizer):
    """Of a server whose user may only read."""

    def is_authorized(self, handler: object, user: object, action: str, resource: str) -> bool:
        return action == "read"


def test_who_may_only_read_has_nothing_compiled_run_or_written(tmp_path: Path) -> None:
    config = tmp_path / "JUPYTER_CONFIG_DIR/jupyter_server_config.json"
    config.parent.mkdir()
    config.write_text(json.dumps({"ServerApp": {"authorizer_class": f"{__name__}.ReadOnly"}}))
    (tmp_path / "root").mkdir()
    run_id = judged(tmp_path / "root/lab/.cutegen")
    with serving(tmp_path) as server:
        assert ask(server, run_id, "machine_code").status == 200
        for name, text in (("layouts", ""), ("layout", "0"), ("export", ""), ("export", "run")):
            assert ask(server, run_id, name, text=text).status == 403
            assert ask_file(server, name, text=text).status == 403
        assert server.ask("runs").body["writable"] is False
        assert not list(server.root.glob(f"lab/{run_id}*"))


# The process alone, with others in its place.

ECHO = """
import json, os, sys, time
for line in sys.stdin:
    asked = json.loads(line)
    word, _, seconds = asked["query"]["text"].partition(" ")
    if word == "die": os.kill(os.getpid(), 9)
    if word == "leave": sys.exit(3)
    if word == "noise": print("no answer"); print("none", flush=True)
    if word == "wait": time.sleep(float(seconds))
    error = {"error": "no such thing", "action": "Look.", "wrong_input": True} if word == "wrong" else {}
    print(json.dumps({"number": asked["number"], **error})); print(json.dumps(os.getpid()), flush=True)
"""


def echo(folder: Path, **more: float) -> QueryProcess:
    return QueryProcess(folder, [sys.executable, "-c", ECHO], **more)


async def tell(answers: QueryProcess, text: str) -> Any:
    asked = Query(request_id="", query="check", candidate_id="", text=text)
    return json.loads(await answers.ask(NOWHERE, "r1", "", asked))


def play(script: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(script, 60))


@pytest.mark.parametrize(
    ("word", "said"), [("die", "signal 9"), ("leave", "exit status 3"), ("noise", "validation error")]
)
def test_a_process_that_ends_during_a_query_says_so(tmp_path: Path, word: str, said: str) -> None:
    async def script() -> None:
        answers = echo(tmp_path)
        first = await tell(answers, "")
        waiting = [asyncio.create_task(tell(answers, word)), asyncio.create_task(tell(answers, "wait 30"))]
        for failure in await asyncio.gather(*waiting, return_exceptions=True):
            assert isinstance(failure, SetupError), failure
            assert said in str(failure) and "is then started again" in str(failure)
        assert await tell(answers, "") != first

    play(script())


def test_one_process_answers_all_and_errors_keep_their_kind(tmp_path: Path) -> None:
    async def script() -> None:
        answers = echo(tmp_path)
        assert len(set(await asyncio.gather(*(tell(answers, "") for _ in range(20))))) == 1
        with pytest.raises(InputError, match=r"^no such thing\. Look\.$"):
            await tell(answers, "wrong")

    play(script())


def test_what_takes_too_long_is_given_up_with_its_process(tmp_path: Path) -> None:
    async def script() -> None:
        answers = echo(tmp_path)
        first = await tell(answers, "")
        answers.limit_seconds = 1.0
        with pytest.raises(SetupError, match="no answer within 1 seconds"):
            await tell(answers, "wait 4")
        answers.limit_seconds = 60.0
        assert await tell(answers, "") != first
        while Path(f"/proc/{first}").exists():
            await asyncio.sleep(0.05)

    play(script())


def test_it_ends_when_nobody_asks_and_not_before(tmp_path: Path) -> None:
    async def script() -> None:
        answers = echo(tmp_path, idle_seconds=0.5)
        first = await tell(answers, "")
        assert await tell(answers, "wait 1") == first
        while Path(f"/proc/{first}").exists():
            await asyncio.sleep(0.05)
        assert await tell(answers, "") != first

    play(script())


def test_a_program_that_is_missing_is_told(tmp_path: Path) -> None:
    async def script() -> None:
        with pytest.raises(SetupError, match="did not start"):
            await tell(QueryProcess(tmp_path, [str(tmp_path / "none")]), "")

    play(script())


NOISY = """
import os, subprocess, sys
from cutegen_lab.notebook import query_worker
class Handle: run_id = "r1"
query_worker.OpenRuns.of = lambda *_: Handle
def answer(handle, query, folder):
    print("printed", flush=True)
    os.write(1, b"written\\n")
    subprocess.run(["sh", "-c", "echo from a child; cat"], check=True)
    if query.text == "bug": raise RuntimeError("a bug")
    return {"nan": float("nan"), "text": "\\n\\u2028"}
query_worker.answer = answer
query_worker.main()
"""


def test_what_libraries_print_is_no_answer(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    async def script() -> None:
        answers = QueryProcess(tmp_path, [sys.executable, "-c", NOISY])
        found = await asyncio.gather(*(tell(answers, "") for _ in range(8)))
        assert found == 8 * [{"nan": None, "text": "\n\u2028"}]
        with pytest.raises(SetupError, match="internal error"):
            await tell(answers, "bug")

    play(script())
    noise = capfd.readouterr()
    assert noise.out == "" and "from a child" in noise.err and "a bug" in noise.err


def test_modules_of_the_served_folder_are_not_imported(tmp_path: Path) -> None:
    for name in ("json", "numpy", "cutegen_lab"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('hijacked')")

    async def script() -> None:
        with pytest.raises(InputError, match="is gone"):
            await tell(QueryProcess(tmp_path, COMMAND), "")

    play(script())
