"""Answers with patches in the format of ``apply_patch``, as text and as calls of OpenAI's tool."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import pytest

from cutegen_lab.core.candidate import Proposal
from cutegen_lab.core.errors import ProviderError
from cutegen_lab.core.protocols import GenerateRequest
from cutegen_lab.providers.openai.caps import Caps
from cutegen_lab.providers.openai.token_count import most_tokens
from cutegen_lab.providers.replies import MalformedAnswer, parse
from tests.providers.requests import attempt, request
from tests.providers.server import PATHS, Script, serving
from tests.providers.test_line_edits import BEFORE
from tests.providers.test_line_edits import answer as edited
from tests.providers.test_manual_and_replay import quiet
from tests.providers.test_openai import provider

HEAD = "Title: wider\nReason: because\nPredicted effect: 5% less time\n\n"
WIDER = "@@\n-WIDTH = 4\n+WIDTH = 8\n"
CHAT, RESPONSES = PATHS["chat"], PATHS["responses"]


def patch(diff: str, path: str = "kernel.py", kind: str = "Update") -> str:
    return f"*** Begin Patch\n*** {kind} File: {path}\n{diff}*** End Patch\n"


@pytest.mark.parametrize(("fence", "end"), [("", ""), ("```\n", "```"), ("```diff\n", "```"), ("````x\n", "````")])
def test_a_patch_in_a_block_or_not(fence: str, end: str) -> None:
    found = parse(f"{HEAD}{fence}{patch(WIDER)}{end}\nDone.", before=BEFORE)
    assert found.source == BEFORE.replace("= 4", "= 8")
    assert (found.title, found.reason, found.predicted_effect) == ("wider", "because", "5% less time")


@pytest.mark.parametrize(
    ("diff", "old", "new"),
    [
        (" WIDTH = 4\n+VEC = 2\n", "WIDTH = 4\n", "WIDTH = 4\nVEC = 2\n"),
        ("@@ def kernel(x):\n     a = x + 1\n-    b = x + 2\n     return a\n", "    b = x + 2\n", ""),
        ("@@ -3,1 +3,1 @@\n-WIDTH = 4\n+WIDTH = 8\n", "= 4", "= 8"),
        ("@@ def kernel(x):\n@@     a = x + 1\n-    b = x + 2\n+    b = x + 3\n", "x + 2", "x + 3"),
        (f"{WIDER}\n@@ def launch\n     kernel(x)\n-    return None\n+    return\n*** End of File\n", "", ""),
        ("-    b = x + 2\n+    b = x + 3\n\n\n", "x + 2", "x + 3"),
        ("*** Move to: other.py\n@@\n-WIDTH = 4\n+WIDTH = 8\n", "= 4", "= 8"),
        ("@@\n-\n-\n-def kernel(x):\n+\n+def kernel(x):\n", "4\n\n\ndef kernel", "4\n\ndef kernel"),
    ],
)  # fmt: skip
def test_a_patch_changes_its_lines_and_no_others(diff: str, old: str, new: str) -> None:
    expected = BEFORE.replace(old, new) if old else BEFORE.replace("= 4", "= 8").replace("return None", "return")
    assert parse(HEAD + patch(diff), before=BEFORE).source == expected


def test_a_line_above_says_which_of_equal_lines_is_meant() -> None:
    before = BEFORE.replace("    kernel(x)\n", "    a = x + 1\n    kernel(x)\n")
    diff = "-    a = x + 1\n+    a = x + 9\n"
    with pytest.raises(MalformedAnswer, match="edit 1: its lines stand 2 times in the candidate"):
        parse(HEAD + patch(diff), before=before)
    changed = parse(HEAD + patch(f"@@ def launch(x, stream\n{diff}"), before=before).source
    assert changed == before.replace("a = x + 1\n    kernel", "a = x + 9\n    kernel")
    first = parse(HEAD + patch(f"@@ def kernel(x):\n{diff}"), before=before).source
    assert first == before.replace("a = x + 1\n    b", "a = x + 9\n    b")


def test_lines_above_count_one_after_another() -> None:
    both = "    a = x + 1\n    b = x + 2\n"
    before = BEFORE.replace("    kernel(x)\n", f"{both}    kernel(x)\n")
    diff = "@@ def launch(x\n@@ a = x + 1\n-    b = x + 2\n+    b = x + 9\n"
    assert parse(HEAD + patch(diff), before=before).source == BEFORE.replace(
        "    kernel(x)\n", f"{both.replace('x + 2', 'x + 9')}    kernel(x)\n"
    )


def test_a_patch_may_add_the_whole_module() -> None:
    module = BEFORE.replace("= 4", "= 8")
    added = "".join(f"+{line}\n" for line in module.splitlines())
    assert parse(HEAD + patch(added, kind="Add"), before=BEFORE).source == module
    with pytest.raises(MalformedAnswer, match=r"does not define launch\(\)"):
        parse(HEAD + patch("+x = 1\n", kind="Add"), before=BEFORE)
    with pytest.raises(MalformedAnswer, match=r"begins with `[+]`, not `x = 2`"):
        parse(HEAD + patch("+x = 1\nx = 2\n", kind="Add"), before=BEFORE)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (patch("@@\n-WIDTH = 5\n+WIDTH = 8\n"), "edit 1: the candidate has no line `WIDTH = 5`; it has `WIDTH = 4`"),
        (patch(" a = x + 1\n-    b = x + 2\n"), "edit 1: the candidate has `a = x [+] 1` with another indentation"),
        (patch("@@ def kernle(x):\n-    return a\n"), "no line `def kernle.x.:`; it has `def kernel.x.:`"),
        (patch("@@ def launch\n-    a = x + 1\n"), "edit 1: its lines do not stand one after another"),
        (patch("+VEC = 2\n"), "no line to search for"),
        (patch(WIDER + WIDER), "edits 1 and 2 are of the same lines"),
        (patch(" WIDTH = 4\n"), "the edits change nothing"),
        (patch(WIDER.replace("8", "(")), "syntax error"),
        (patch("@@\n-def launch(x, stream, *, vec=WIDTH):\n+def lunch(x, stream):\n"), r"does not define launch\(\)"),
        (patch("@@\nWIDTH = 4\n"), "begins with a space, `-`, `[+]` or `@@`, not `WIDTH = 4`"),
        (patch(WIDER)[: -len("*** End Patch\n")], "it was cut off"),
        ("*** Begin Patch\n*** End Patch\n", "has no `[*]{3} Update File: NAME`"),
        (f"*** Begin Patch\n{WIDER}*** End Patch\n", "a patch begins with `[*]{3} Update File: NAME`, not `@@`"),
        (patch(WIDER) + patch(WIDER, "other.py"), "of 2 files .kernel.py, other.py., but the candidate is one module"),
        (patch("", kind="Delete"), "must either have `.*Update File: NAME` or add one whole module"),
        (patch(WIDER) + patch("+x = 1\n", kind="Add"), "must either have"),
        (patch(WIDER) + f"```python\n{BEFORE}```\n", "edits and a whole module"),
        (patch(WIDER) + edited(("import cutlass\n", "import cutlass as c\n")), "edits and a patch"),
        (patch("@@\n-a\n" * 60_000), "60,000 edits, more than 1000; give the whole module"),
    ],
)
def test_what_does_not_fit_is_said(text: str, says: str) -> None:
    with pytest.raises(MalformedAnswer, match=says):
        parse(HEAD + text, before=BEFORE)


@pytest.mark.parametrize("path", ["../../../etc/passwd", "/etc/passwd", "~/.ssh/id", "C:\\x", "", "a\x1b[31m"])
def test_a_path_names_no_file(path: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert parse(HEAD + patch(WIDER, path), before=BEFORE).source == BEFORE.replace("= 4", "= 8")
    with pytest.raises(MalformedAnswer, match="of 2 files") as raised:
        parse(HEAD + patch(WIDER, path) + patch(WIDER, "x" * 500), before=BEFORE)
    assert "\x1b" not in str(raised.value) and len(str(raised.value)) < 250
    assert list(tmp_path.iterdir()) == []


def test_a_patch_needs_a_candidate() -> None:
    with pytest.raises(MalformedAnswer, match="no fenced code block"):
        parse(HEAD + patch(WIDER))


def refining() -> GenerateRequest:
    return request("refine", attempt(source=BEFORE))


def call(kind: str, path: str = "kernel.py", **fields: str) -> dict[str, Any]:
    operation = {"type": kind, "path": path, **fields}
    return {"type": "apply_patch_call", "id": "a", "call_id": "c", "status": "completed", "operation": operation}


def stream(*items: dict[str, Any], text: str = HEAD) -> list[dict[str, Any]]:
    added: list[dict[str, Any]] = [{"type": "response.output_text.delta", "delta": text}] if text else []
    for item in items:
        added += [
            {"type": "response.output_item.added", "item": {**item, "status": "in_progress"}},
            {"type": "response.apply_patch_call_operation_diff.delta", "item_id": "a", "delta": "@@"},
            {"type": "response.output_item.done", "item": item},
        ]
    usage = {"input_tokens": 3000, "output_tokens": 90}
    return [*added, {"type": "response.completed", "response": {"output": list(items), "usage": usage}}]


def proposed(events: list[Any], wanted: GenerateRequest | None = None) -> tuple[Proposal, Script]:
    script = Script(apis=("responses",), events=events)
    with serving(script) as url:
        return provider(url).propose(wanted or refining(), quiet, threading.Event()), script


@pytest.mark.parametrize("text", [HEAD, ""])
def test_calls_of_the_tool_are_edits(text: str) -> None:
    other = "@@ def launch(x, stream, *, vec=WIDTH):\n-    kernel(x)\n+    kernel(x + 0)"
    proposal, script = proposed(
        stream(call("update_file", diff=WIDER), call("update_file", diff=other), text=text)
    )  # fmt: skip
    assert proposal.source == BEFORE.replace("= 4", "= 8").replace("    kernel(x)", "    kernel(x + 0)")
    assert proposal.title == ("wider" if text else "untitled version") and proposal.usage.total == 3090
    assert script.requests[0]["tools"] == [{"type": "apply_patch"}] and "tool_choice" not in script.requests[0]


def test_the_tool_may_create_the_module_anew() -> None:
    module = BEFORE.replace("= 4", "= 8")
    diff = "\n".join(f"+{line}" for line in module.splitlines())
    assert proposed(stream(call("create_file", diff=diff)))[0].source == module


@pytest.mark.parametrize(
    ("items", "says"),
    [
        ([call("delete_file")], "must either have"),
        ([call("update_file", diff=WIDER), call("update_file", "b.py", diff=WIDER)], "of 2 files"),
        ([call("update_file", diff="@@\n-WIDTH = 5\n+WIDTH = 8")], "it has `WIDTH = 4`"),
        ([{**call("update_file"), "operation": 7}], "must either have"),
        ([{**call("update_file"), "operation": {"type": [], "path": 7, "diff": None}}], "must either have"),
        ([call("update_file", "a\n*** Delete File: b", diff=WIDER), call("update_file", diff=WIDER)], "of 2 files"),
        ([call("run", diff="*** End Patch\n")], "must either have"),
    ],
)
def test_a_call_that_does_not_fit_is_asked_again(items: list[Any], says: str) -> None:
    with pytest.raises(ProviderError, match=f"{says}.*twice"):
        proposed(stream(*items))


def test_the_tool_is_offered_where_the_prompt_shows_a_module_only() -> None:
    spec = attempt(source=BEFORE)
    spec = replace(
        spec, candidate=replace(spec.candidate, proposal=replace(spec.candidate.proposal, spec="kernel k\n"))
    )
    sent = []
    for wanted in (request(), refining(), request("fix", spec)):
        script = Script(f"{HEAD}```python\n{BEFORE.replace('= 4', '= 8')}```\n", apis=("responses",))
        with serving(script) as url:
            provider(url).propose(wanted, quiet, threading.Event())
        sent.append(script.requests[0].get("tools"))
    assert sent == [None, [{"type": "apply_patch"}], [{"type": "apply_patch"}]], "fix shows the spec's module"


@pytest.mark.parametrize(
    "message",
    [
        "Invalid value: 'apply_patch'. Supported values are: 'function', 'custom'.",
        '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
    ],
)
def test_an_endpoint_without_the_tool_is_asked_without_it(message: str) -> None:
    script = Script(HEAD + patch(WIDER), apis=("chat", "responses"), refused={"tools": message})
    with serving(script) as url:
        asking = provider(url, caps=Caps(max_tokens=60_000))
        for _ in range(2):
            changed = asking.propose(refining(), quiet, threading.Event())
            assert changed.source == BEFORE.replace("= 4", "= 8")
    assert script.paths == [RESPONSES, RESPONSES, RESPONSES]
    with_tool, without, again = script.requests
    assert "tools" in with_tool and "tools" not in without and "tools" not in again
    counted = [60_000 - each["max_output_tokens"] - most_tokens(each["input"], "m") for each in (without, again)]
    assert counted[0] > 4000 and counted[1] == 150, "what is offered counts until it is refused"


def test_chat_completions_are_asked_as_before() -> None:
    script = Script(HEAD + patch(WIDER))
    with serving(script) as url:
        asking = provider(url)
        for _ in range(2):
            asking.propose(refining(), quiet, threading.Event())
    assert script.paths == [RESPONSES, CHAT, CHAT] and "tools" not in script.requests[0]


def test_the_tool_does_not_change_which_api_is_asked() -> None:
    script = Script(f"{HEAD}```python\n{BEFORE}```\n")
    with serving(script) as url:
        asking = provider(url)
        asking.propose(request(), quiet, threading.Event())
        script.answer, script.apis = HEAD + patch(WIDER), ("chat", "responses")
        asking.propose(refining(), quiet, threading.Event())
        provider(url).propose(refining(), quiet, threading.Event())
    assert script.paths == [RESPONSES, CHAT, CHAT, CHAT]
