"""The REST interface of a real Jupyter Server: what it tells, and whom and what it refuses."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from cutegen_lab.loop import fold
from cutegen_lab.session.archives import run_as_file
from cutegen_lab.stores.sqlite import SqliteStore
from cutegen_lab.views.listing import RunList
from cutegen_lab.views.model import RunView
from tests.loop.scripted import started
from tests.server.serving import Server, finished_run, keep, serving

QUERY = {"request_id": "", "query": "check", "candidate_id": "c1", "text": "import os"}
HOSTILE = "<img src=x onerror=alert(1)>\x1b]0;\u202eevil"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("server")
    (folder / "root").mkdir()
    with serving(folder, "/user/ana/") as found:
        yield found


@pytest.fixture
def store(server: Server, request: pytest.FixtureRequest) -> Iterator[SqliteStore]:
    """A store of this test's own, in a folder of its name; ``NAME/.cutegen`` is its name."""
    made = SqliteStore(server.root / request.node.name.partition("[")[0] / ".cutegen/lab.db")
    yield made
    made.close()


def name_of(store: SqliteStore, server: Server) -> str:
    return store.path.parent.relative_to(server.root).as_posix()


def listed(server: Server, store: SqliteStore, **query: object) -> RunList:
    """The list for the store's folder, once the server has found it."""
    folder = store.path.parents[1].relative_to(server.root).as_posix()
    for _ in range(150):
        answer = server.ask("runs", folder=folder, **query)
        assert answer.status == 200, answer
        found = RunList.model_validate(answer.body)
        if found.stores:
            return found
        time.sleep(0.1)
    raise AssertionError("the store was not found")


def test_a_run_is_listed_with_what_became_of_it(server: Server, store: SqliteStore) -> None:
    keep(store, finished_run("done-1"), at=2000.0)
    keep(store, [started("open-1")], at=1000.0)
    found = listed(server, store)
    first, second = found.rows
    assert (first.run_id, first.status, first.outcome, first.problem) == ("done-1", "done", "accepted", "Soft Max!")
    assert (first.best_id, first.best_us, first.best_kind, first.speedup, first.over) == (
        "c2", 4.0, "predicted", 2.5, "c1",
    )  # fmt: skip
    assert (second.run_id, second.status, second.step) == ("open-1", "interrupted", "generate")
    assert (found.total, found.trashed, found.problems) == (2, 0, ["Soft Max!"])
    assert [(s.name, s.folder, s.error) for s in found.stores] == [
        (name_of(store, server), store.path.parents[1].name, "")
    ]


def test_a_run_that_a_process_drives_is_running(server: Server, store: SqliteStore) -> None:
    keep(store, [started("live-1")])
    lease = store.lease("live-1")
    (row,) = listed(server, store).rows
    assert (row.status, row.driver) == ("running", str(os.getpid()))
    lease.release()
    (row,) = listed(server, store).rows
    assert (row.status, row.driver) == ("interrupted", "")


def test_search_and_filters(server: Server, store: SqliteStore) -> None:
    for number in range(6):
        keep(store, finished_run(f"soft-{number}") if number % 2 else [started(f"soft-{number}")], at=1000.0 + number)
    store.rename("soft-3", "The Fast One")

    def ids(**query: object) -> list[str]:
        return [row.run_id for row in listed(server, store, **query).rows]

    assert ids() == [f"soft-{number}" for number in (5, 4, 3, 2, 1, 0)]
    assert ids(q="fast ONE") == ["soft-3"]
    assert ids(q="h200 soft-4") == ["soft-4"]
    assert ids(q="nothing like it") == []
    assert ids(status="done") == ["soft-5", "soft-3", "soft-1"]
    assert ids(problem="Soft Max!", since=1002, until=1003) == ["soft-3", "soft-2"]
    assert ids(gpu="B300") == []
    assert ids(offset=1, limit=2) == ["soft-4", "soft-3"]
    assert listed(server, store, limit=1).total == 6


@pytest.mark.parametrize(
    ("query", "said"),
    [({"limit": 0}, "limit"), ({"limit": 9999}, "limit"), ({"status": "x"}, "status"), ({"offset": "a"}, "offset")],
)
def test_a_wrong_query_is_told(server: Server, query: dict[str, object], said: str) -> None:
    answer = server.ask("runs", **query)
    assert answer.status == 400 and answer.body["message"].startswith(f"{said}: ")


def test_a_view_is_what_the_widget_draws(server: Server, store: SqliteStore) -> None:
    keep(store, finished_run("done-1"))
    answer = server.ask("run", store=name_of(store, server), id="done-1")
    view = RunView.model_validate(answer.body)
    assert (view.status, [c.id for c in view.candidates], view.best_id) == ("done", ["c1", "c2"], "c2")
    missing = server.ask("run", store=name_of(store, server), id="none")
    assert missing.status == 409 and "no run 'none'" in missing.body["message"]


def test_rename_trash_and_undo(server: Server, store: SqliteStore) -> None:
    keep(store, finished_run("done-1"))
    at = {"store": name_of(store, server), "id": "done-1"}
    assert server.ask("run", "PATCH", {"title": " The\nFast One "}, **at).body["title"] == "The Fast One"
    assert server.ask("run", "PATCH", {"trashed": True}, **at).body["trashed"] is True
    assert (listed(server, store).rows, listed(server, store).trashed) == ([], 1)
    assert [row.run_id for row in listed(server, store, trashed=True).rows] == ["done-1"]
    assert server.ask("run", "PATCH", {"trashed": False}, **at).body["trashed"] is False
    assert [row.title for row in listed(server, store).rows] == ["The Fast One"]
    assert server.ask("run", **at).body["title"] == "The Fast One"
    assert server.ask("run", "PATCH", {"title": ""}, **at).body["title"] == "Soft Max!"
    assert server.ask("run", **at).body["title"] == ""
    assert store.events("done-1")[0].event == started("done-1")
    for body, said in (({"title": "x" * 201}, "title"), ({"delete": True}, "delete"), (["x"], "the request")):
        answer = server.ask("run", "PATCH", body, **at)
        assert answer.status == 400 and answer.body["message"].startswith(said), answer
    assert server.ask("run", "PATCH", "{", raw=True, **at).status == 400
    assert server.ask("run", "PATCH", {"title": "x"}, store=at["store"], id="none").status == 409


def test_hostile_names_are_shown_as_escapes(server: Server, store: SqliteStore) -> None:
    start = started("r1")
    keep(store, [replace(start, problem=replace(start.problem, name=HOSTILE))])
    (row,) = listed(server, store).rows
    assert row.title == row.problem == "<img src=x onerror=alert(1)>\\x1b]0;\\u202eevil"
    answer = server.ask("run", "PATCH", {"title": HOSTILE}, store=name_of(store, server), id="r1")
    assert "\x1b" not in answer.body["title"] and "\u202e" not in answer.body["title"]
    assert answer.headers["Content-Type"].startswith("application/json")
    assert server.ask("run", store=name_of(store, server), id=HOSTILE).status == 409


@pytest.mark.parametrize("path", ["runs", "run?store=.cutegen&id=x", "archive?path=x", "tutorials", "events"])
@pytest.mark.parametrize("token", ["", "wrong"])
def test_without_the_token_nothing_is_told(server: Server, path: str, token: str) -> None:
    assert server.ask(path, token=token).status == 403
    assert server.ask("run?store=.cutegen&id=x", "PATCH", {"trashed": True}, token=token).status == 403
    for asked in ("run?store=.cutegen&id=x", "archive?path=x"):
        assert server.ask(asked, "POST", QUERY, token=token).status == 403


def test_a_page_of_another_origin_with_the_cookie_is_refused(server: Server, store: SqliteStore) -> None:
    keep(store, [started("r1")])
    at = {"store": name_of(store, server), "id": "r1"}
    cookie = server.log_in()
    foreign, own = {"Origin": "https://evil.example"}, {"Origin": f"http://127.0.0.1:{server.port}"}
    assert server.ask("run", token="", headers={**cookie, **own}, **at).status == 200
    assert server.ask("run", token="", headers={**cookie, **foreign}, **at).status in (403, 404)
    without = server.ask("run", "PATCH", {"trashed": True}, token="", headers={**cookie, **own}, **at)
    assert (without.status, "_xsrf" in str(without.body)) == (403, True)
    for headers in ({**cookie, **own}, {**cookie, **foreign}):
        assert server.ask("run", "POST", QUERY, token="", headers=headers, **at).status in (403, 404)
    xsrf = {"X-XSRFToken": cookie["Cookie"].partition("_xsrf=")[2].partition(";")[0]}
    ok = server.ask("run", "PATCH", {"title": "mine"}, token="", headers={**cookie, **own, **xsrf}, **at)
    assert (ok.status, ok.body["title"]) == (200, "mine")
    checked = server.ask("run", "POST", QUERY, token="", headers={**cookie, **own, **xsrf}, **at)
    assert (checked.status, checked.body[0]["severity"]) == (200, "error")


@pytest.mark.parametrize(
    "name", [
        "..", "../out/.cutegen", "/etc", "x/../../out/.cutegen", "out-link", "link", "a\0b", "", ".", "loop", "db-link",
        "wal",
    ],
)  # fmt: skip
def test_no_store_outside_the_root_is_opened(server: Server, name: str) -> None:
    outside = server.root.parent / "out/.cutegen"
    if not outside.exists():
        made = SqliteStore(outside / "lab.db")
        keep(made, [started("secret-1")])
        made.close()
        (server.root / "out-link").symlink_to(outside.parent)
        (server.root / "link").mkdir()
        (server.root / "link/.cutegen").symlink_to(outside)
        (server.root / "loop").symlink_to("loop")
        (server.root / "db-link/.cutegen").mkdir(parents=True)
        (server.root / "db-link/.cutegen/lab.db").symlink_to(outside / "lab.db")
        SqliteStore(server.root / "wal/.cutegen/lab.db").close()
        (server.root.parent / "precious").write_text("precious")
        (server.root / "wal/.cutegen/lab.db-wal").symlink_to(server.root.parent / "precious")
    for tried in (name, f"{name}/.cutegen"):
        answer = server.ask("run", store=tried, id="secret-1")
        assert answer.status in (400, 404), answer
        assert "secret" not in str(answer.body)
        assert server.ask("run", "PATCH", {"trashed": True}, store=tried, id="secret-1").status in (400, 404)
        assert server.ask("run", "POST", QUERY, store=tried, id="secret-1").status in (400, 404)
    assert (server.root.parent / "precious").read_text() == "precious"
    assert server.ask("runs", q="secret").body["rows"] == []


def test_a_store_that_a_link_leads_out_to_is_told_of(server: Server, store: SqliteStore, tmp_path: Path) -> None:
    keep(store, [started("r1")])
    SqliteStore(tmp_path / "far/.cutegen/lab.db").close()
    (store.path.parents[1] / "below").mkdir()
    (store.path.parents[1] / "below/.cutegen").symlink_to(tmp_path / "far/.cutegen")
    errors = [each.error for each in listed(server, store).stores]
    assert errors[0] == "" and "set CUTEGEN_HOME to" in errors[1]


def test_a_store_that_cannot_be_read_does_not_hide_the_others(server: Server, store: SqliteStore) -> None:
    keep(store, [started("r1")])
    broken = store.path.parents[1] / "a/.cutegen/lab.db"
    SqliteStore(broken).close()
    connection = sqlite3.connect(broken)
    connection.execute("CREATE VIEW evil AS SELECT 1")
    connection.commit()
    connection.close()
    found = listed(server, store)
    assert [row.run_id for row in found.rows] == ["r1"]
    assert [each.error != "" for each in found.stores] == [False, True]
    assert "evil" in found.stores[1].error


def test_five_hundred_runs_are_listed_within_a_tenth_of_a_second(server: Server, store: SqliteStore) -> None:
    for number in range(500):
        keep(store, finished_run(f"run-{number}"), at=float(number))
    assert listed(server, store, limit=500).total == 500
    took = []
    for _ in range(5):
        begun = time.perf_counter()
        answer = server.ask("runs", folder="test_five_hundred_runs_are_listed_within_a_tenth_of_a_second", limit=500)
        took.append(time.perf_counter() - begun)
        assert len(answer.body["rows"]) == 500
    assert min(took) < 0.1, took


def test_an_archive_is_looked_at_and_stored_nowhere(server: Server, store: SqliteStore, tmp_path: Path) -> None:
    events = [started("r1")]
    keep(store, events)
    state = fold(events)
    file = store.path.parents[1] / "sent.cutegen"
    file.write_bytes(run_as_file(store, state, store.events("r1")))
    path = file.relative_to(server.root).as_posix()
    view = RunView.model_validate(server.ask("archive", path=path).body)
    assert (view.run_id, view.verbs) == ("r1", [])
    assert len(store.runs()) == 1
    (file.parent / "bad.cutegen").write_bytes(b"PK\x03\x04 no zip")
    (file.parent / "out.cutegen").symlink_to(tmp_path / "far.cutegen")
    (tmp_path / "far.cutegen").write_bytes(file.read_bytes())
    bad = server.ask("archive", path=path.replace("sent", "bad"))
    assert bad.status == 404 and "damaged" in bad.body["message"]
    for refused in (path.replace("sent", "out"), "../x.cutegen", "/etc/passwd", file.parent.name):
        assert server.ask("archive", path=refused).status in (400, 404)


def test_tutorials(server: Server) -> None:
    found = server.ask("tutorials").body
    assert [each["name"] for each in found][:2] == ["01_quickstart.ipynb", "02_reading_the_evidence.ipynb"]
    assert found[0]["title"] == "1 · From a PyTorch reference to an approved kernel"
    assert [each["title"].partition(" · ")[0] for each in found] == [str(n + 1) for n in range(len(found))]
    assert all(each["name"] not in each["title"] for each in found)
    assert server.ask("tutorials", name="01_quickstart.ipynb").body["nbformat"] == 4
    for name, said in (
        ("02_reading_the_evidence.ipynb", "`run.plot` has more plots (`docs/commands.md`)"),
        ("05_driving_a_model.ipynb", "All providers: `docs/commands.md`."),
    ):  # the links of the repository's notebooks lead nowhere from a reader's folder
        cells = server.ask("tutorials", name=name).body["cells"]
        text = "".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
        assert said in text and "](../" not in text
    for name in ("../pyproject.toml", "none.ipynb", "/etc/passwd"):
        assert server.ask("tutorials", name=name).status == 404


def test_the_server_imports_nothing_heavy(server: Server, store: SqliteStore) -> None:
    keep(store, finished_run("done-1"))
    at = {"store": name_of(store, server), "id": "done-1"}
    assert server.ask("run", **at).status == 200
    assert server.ask("run", "POST", QUERY, **at).status == 200
    loaded = Path(f"/proc/{server.process.pid}/maps").read_text()
    assert "pydantic_core" in loaded, "the libraries of the process are seen"
    for library in ("torch", "numpy", "cutlass", "libcuda"):
        assert f"/{library}" not in loaded


def test_other_base_urls_are_not_served(server: Server) -> None:
    server.base, kept = "/", server.base
    try:
        assert server.ask("runs").status == 404
    finally:
        server.base = kept
