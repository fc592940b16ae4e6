"""The magics in a Jupyter kernel of their own, by its messages: what a front end gets, in which order."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from jupyter_client import BlockingKernelClient, KernelManager
from jupyter_client.manager import start_new_kernel
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

from cutegen_lab.notebook.widget import WIDGET_MIME
from cutegen_lab.views.model import MIME_TYPE

pytestmark = [pytest.mark.kernel, pytest.mark.filterwarnings("default")]

CELL = "def reference(x):  # x: f32[8,64]\n    return torch.softmax(x, dim=-1)\n"
_SECONDS = 120
_ROOT = str(Path(__file__).parents[2])
Message = dict[str, Any]


class Kernel:
    """A kernel with the extension loaded."""

    def __init__(self, manager: KernelManager, client: BlockingKernelClient) -> None:
        self.manager, self.client = manager, client

    def run(self, code: str, at: Callable[[Message], None] = lambda message: None) -> list[Message]:
        """Output messages of a cell; ``at`` sees each as it arrives."""
        outputs: list[Message] = []

        def hook(message: Message) -> None:
            if message["msg_type"] in ("stream", "display_data", "update_display_data", "error", "clear_output"):
                outputs.append(message)
                at(message)

        self.client.execute_interactive(code, output_hook=hook, timeout=_SECONDS)
        return outputs

    def printed(self, expression: str) -> str:
        """What ``print(expression)`` writes, to stdout or stderr."""
        streams = (m["content"] for m in self.run(f"print({expression})") if m["msg_type"] == "stream")
        return "".join(stream["text"] for stream in streams).strip()


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    folder = tmp_path_factory.mktemp("kernel")
    manager, client = start_new_kernel(cwd=str(folder), env={**os.environ, "PYTHONPATH": _ROOT})
    started = Kernel(manager, client)
    started.run("%load_ext cutegen_lab")
    yield started
    client.stop_channels()
    manager.shutdown_kernel()


def status(message: Message) -> str:
    """Status of the run that a message shows; empty for other messages."""
    return str(message["content"].get("data", {}).get(MIME_TYPE, {}).get("status", ""))


def test_a_waiting_cell_shows_the_live_run_before_it_waits(kernel: Kernel) -> None:
    seen = kernel.run(f"%%cutegen --name first --wait --device emulator\n{CELL}")
    shown, *_, last = seen
    assert WIDGET_MIME in shown["content"]["data"] and status(shown) == "running"
    assert last["msg_type"] == "update_display_data" and status(last) == "review", "what a saved notebook shows"
    assert [m["msg_type"] for m in kernel.run("%cutegen show")] == ["display_data"]


def test_an_interrupt_leaves_the_widget_and_the_run(kernel: Kernel) -> None:
    def interrupt(message: Message) -> None:
        if status(message) == "running":
            kernel.manager.interrupt_kernel()

    seen = kernel.run(f"%%cutegen --name second --wait --device emulator\n{CELL}", interrupt)
    (error,) = (m["content"] for m in seen if m["msg_type"] == "error")
    assert error["ename"] == "Interrupted" and len(error["traceback"]) == 1
    assert "run second-" in error["traceback"][0] and "goes on; wait() waits for it again" in error["traceback"][0]
    shown = next(at for at, message in enumerate(seen) if status(message))
    assert not any(m["msg_type"] == "clear_output" for m in seen[shown:]), "the widget stays"
    assert kernel.printed("run.wait().status") == "review"


def test_an_interrupted_search_goes_on(kernel: Kernel) -> None:
    def interrupt(message: Message) -> None:
        if message["content"].get("transient", {}).get("display_id", "").startswith("cutegen-figure"):
            kernel.manager.interrupt_kernel()

    seen = kernel.run(f"%%cutegen_tune --wait --budget 3 --device emulator\n{CELL}", interrupt)
    (error,) = (m["content"] for m in seen if m["msg_type"] == "error")
    assert error["traceback"] == [
        "cutegen: interrupted; the search goes on; wait() waits for it again, cancel() ends it"
    ]
    assert kernel.printed("search.wait().status") == "done"


@pytest.mark.parametrize(
    ("cell", "says"),
    [
        ("%cutegen show nothing-0000", "cutegen: no run 'nothing-0000'"),
        (f"%%cutegen --inputs 'x: bf17[8]'\n{CELL}", "cutegen: "),
        ("%%cutespec\nkernel k\nout y: f32 = nothing", "cutegen: line "),
        (f"%%cutegen_tune --budget 0\n{CELL}", "cutegen: --budget 0 allows no config"),
    ],
)
def test_a_notebook_that_runs_by_itself_stops_at_a_failed_magic(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cell: str, says: str
) -> None:
    monkeypatch.setenv("PYTHONPATH", _ROOT)
    cells = [nbformat.v4.new_code_cell(text) for text in ("%load_ext cutegen_lab", cell, "print('reached')")]
    notebook = nbformat.v4.new_notebook(cells=cells)
    with pytest.raises(CellExecutionError):
        NotebookClient(notebook, resources={"metadata": {"path": str(tmp_path)}}, timeout=_SECONDS).execute()
    (error,) = (output for output in cells[1].outputs if output.output_type == "error")
    assert len(error.traceback) == 1 and error.traceback[0].startswith(says) and "\n" not in error.traceback[0]
    assert cells[2].execution_count is None
