"""Compiles the next candidate while a GPU judges the current one. The first candidate is usually approved and most
refinements are rejected, so the next proposal can usually be predicted."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

from cutegen_lab.core.candidate import Proposal
from cutegen_lab.core.errors import Cancelled, CutegenError
from cutegen_lab.core.protocols import Cancel, Provider
from cutegen_lab.core.run import Answer, RunState, Step
from cutegen_lab.loop.answers import answered, ask
from cutegen_lab.loop.requests import generate_request

_POLL_SECONDS = 0.05


@dataclass
class _Build:
    proposal: Proposal
    cancel: threading.Event
    thread: threading.Thread


class SpeculativeBuild:
    """One build at a time. Its result goes only to the compiler's cache; its errors are ignored, since the step that
    compiles the candidate raises them again."""

    def __init__(self, provider: Provider, compiled: Callable[[Proposal, RunState, Cancel], object]) -> None:
        """``compiled``: the compile step's own call, which caches its result."""
        self._provider, self._compiled = provider, compiled
        self._build: _Build | None = None

    def begin(self, state: RunState) -> None:
        """Gets the proposal that follows if the first candidate is approved, or a refinement rejected, and compiles it
        on a thread."""
        self.close()
        if (proposal := self._likely_proposal(state)) is None:
            return
        cancel = threading.Event()

        def work() -> None:
            with suppress(Exception):  # the compile step raises it again
                self._compiled(proposal, state, cancel)

        thread = threading.Thread(target=work, name="ahead", daemon=True)
        self._build = _Build(proposal, cancel, thread)
        thread.start()

    def wait(self, proposal: Proposal, cancel: Cancel) -> None:
        """Waits for the build if it is that of ``proposal``, otherwise cancels it. Raises Cancelled."""
        build, self._build = self._build, None
        if build is None:
            return
        if (build.proposal.source, build.proposal.config) != (proposal.source, proposal.config):
            build.cancel.set()
        while build.thread.is_alive() and not build.cancel.is_set():
            if cancel.is_set():
                build.cancel.set()
                raise Cancelled()
            build.thread.join(_POLL_SECONDS)

    def close(self) -> None:
        """Cancels the build."""
        build, self._build = self._build, None
        if build is not None:
            build.cancel.set()

    def _likely_proposal(self, state: RunState) -> Proposal | None:
        """The proposal after the likely answer; None if it cannot be predicted or there is none."""
        current = state.current_id
        if not state.settings.auto or current is None or not getattr(self._provider, "foreseeable", False):
            return None
        with suppress(CutegenError):
            if state.incumbent_id is None:
                after = ask(replace(state, incumbent_id=current, base_id=current), "refine", current)
            else:
                after = answered(replace(state, step=Step.REVIEW), Answer("reject", current, by="auto"))
            if after.step is Step.GENERATE:
                return self._provider.propose(generate_request(after), lambda line: None, threading.Event())
        return None
