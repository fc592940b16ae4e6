"""What ``%%cutegen`` gives: a run with the widget's verbs as methods, shown as text, HTML or the live widget."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cutegen_lab.core.errors import InputError, StoreError
from cutegen_lab.core.run import Step
from cutegen_lab.notebook.verbs import verb
from cutegen_lab.session import RunHandle

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from cutegen_lab.core.trial import Profile
    from cutegen_lab.notebook.search import NotebookSearch
    from cutegen_lab.views.model import RunView


class NotebookRun:
    """A run in the analyst's hand. Every verb waits until the run rests again (``wait=False`` returns at once), and
    raises InputError for wrong arguments."""

    def __init__(self, handle: RunHandle) -> None:
        self.handle = handle

    def __repr__(self) -> str:
        return f"<cutegen run {self.run_id}>"

    @property
    def run_id(self) -> str:
        return self.handle.run_id

    @property
    def status(self) -> str:
        """``running``, ``review``, ``done`` or ``interrupted``."""
        return self.view().status

    @property
    def source(self) -> str:
        """The text of the candidate being worked on or reviewed. Raises InputError before there is one."""
        current = self.handle.state.current
        if current is None:
            raise InputError(f"run {self.run_id} has no candidate yet", "Call wait() first.")
        return current.source

    @property
    def best(self) -> str:
        """The text of the accepted kernel the run stands at. Raises InputError where nothing was accepted."""
        state = self.handle.state
        if state.incumbent_id is None:
            raise InputError(f"run {self.run_id} has no accepted kernel", "Approve one first.")
        return state.candidates[state.incumbent_id].source

    @verb
    def wait(self, timeout: float | None = None) -> NotebookRun:
        """Until the run rests at review or is done, or ``timeout`` seconds have passed."""
        self.handle.wait(timeout)
        return self

    @verb
    def approve(self, wait: bool = True) -> NotebookRun:
        """Accept the candidate under review; needs its compile and check evidence."""
        self.handle.approve()
        return self._rested(wait)

    @verb
    def approve_unproven(self, wait: bool = True) -> NotebookRun:
        """Accept the candidate under review without proof. Recorded and shown as such."""
        self.handle.approve_unproven()
        return self._rested(wait)

    @verb
    def reject(self, reason: str = "", wait: bool = True) -> NotebookRun:
        """Refuse the candidate; the reason goes to the provider."""
        self.handle.reject(reason)
        return self._rested(wait)

    @verb
    def edit(self, text: str, wait: bool = True) -> NotebookRun:
        """``text``, exactly as it stands, is the next candidate."""
        self.handle.edit(text)
        return self._rested(wait)

    @verb
    def retry(self, wait: bool = True) -> NotebookRun:
        """Ask again from the same parent."""
        self.handle.retry()
        return self._rested(wait)

    @verb
    def branch(self, candidate_id: str, wait: bool = True) -> NotebookRun:
        """Grow the next candidate from an earlier one."""
        self.handle.branch(candidate_id)
        return self._rested(wait)

    @verb
    def stop(self) -> NotebookRun:
        """End the run where it is; ``resume`` goes on from there."""
        self.handle.stop()
        return self

    @verb
    def resume(self) -> NotebookRun:
        """Take the run up in this kernel."""
        self.handle.resume()
        return self

    @verb
    def attend(self) -> NotebookRun:
        """Takes a run that waits at review up in this kernel, as after a restart: nothing starts, and every verb is
        there again. Another process that drives it keeps it."""
        if self.handle.state.step is Step.REVIEW and not self.handle.driving:
            with suppress(StoreError):
                self.handle.resume()
        return self

    def view(self) -> RunView:
        """The run as everything that shows it sees it."""
        return self.handle.view()

    @verb
    def export(self, path: str | Path, *, general: bool = False) -> Path:
        """Writes the accepted kernel (``.py``; ``general``: with all its parameters, not for its config alone) or the
        run as a page (``.html``)."""
        target = Path(path)
        if target.suffix == ".html":
            return self.handle.export_page(target, general=general)
        return self.handle.export(target, general=general, say=print)

    @verb
    def evidence(self, candidate_id: str | None = None, *, general: bool = False) -> str:
        """The evidence card of a candidate as text (default: the one being reviewed, else the accepted one). Lines are
        those of the text for its config alone; ``general``: of the text with all its parameters. Raises InputError
        where there is no such candidate."""
        from cutegen_lab.views.text import evidence_table

        view = self.view()
        known = [candidate.id for candidate in view.candidates]
        if candidate_id is not None and candidate_id not in known:
            has = ", ".join(known) or "none"
            raise InputError(f"run {self.run_id} has no candidate {candidate_id!r}", f"Candidates: {has}.")
        return evidence_table(view, candidate_id, general)

    @verb
    def kernel(self, candidate_id: str | None = None, *, general: bool = False) -> str:
        """The text of a candidate (default: as for :meth:`evidence`) for its config alone; ``general``: with all its
        parameters. Raises InputError where there is no such candidate."""
        from cutegen_lab.views.specialised import shown

        if not general:
            self.handle.specialise()
        chosen = self.handle.meant(candidate_id)
        found = next((candidate for candidate in self.view().candidates if candidate.id == chosen), None)
        if found is None:
            raise InputError(f"run {self.run_id} has no candidate {chosen or ''}", "Call wait() first.")
        return shown(found, general).source

    @verb
    def profile(self, candidate_id: str | None = None, device: str = "emulator") -> Profile:
        """What the emulator or a GPU (``device="cuda"``) counts of a candidate. Raises InputError, SetupError."""
        return self.handle.profile(candidate_id, device)

    @verb
    def plot_profile(self, candidate_id: str | None = None, devices: Sequence[str] = ("emulator",)) -> Figure:
        """Profiles of one candidate on each of ``devices`` ("emulator", "cuda") in one plotly figure.

        Raises InputError, SetupError.
        """
        from cutegen_lab.notebook.figures import profile_figure

        state, chosen = self.handle.state, self.handle.meant(candidate_id)
        profiles = [self.handle.profile(chosen, device) for device in devices]
        assert chosen is not None  # or there would be no profile
        return profile_figure(profiles, state.candidates[chosen].source, f"{state.problem.name} {chosen}")

    @verb
    def tune(self, candidate_id: str | None = None, budget: int = 40, refactor: bool = False) -> NotebookSearch:
        """A search among up to ``budget`` configs of a candidate's tunables (default: as for :meth:`evidence`), begun
        in the background; with ``refactor`` a candidate without TUNABLE is made a template first. Raises InputError
        where there is nothing to search."""
        from cutegen_lab.notebook.search import NotebookSearch
        from cutegen_lab.tuning.protocols import Limits

        return NotebookSearch(self.handle.search(candidate_id, Limits(budget), refactor).start())

    def _rested(self, wait: bool) -> NotebookRun:
        if wait:
            self.handle.wait()
            self.handle.specialise()
        return self

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        return static_bundle(self.view())


def static_bundle(view: RunView) -> dict[str, Any]:
    """A run that needs no kernel to be shown: text, HTML without scripts, and the JSON our MIME renderer takes."""
    from cutegen_lab.views.html import fragment
    from cutegen_lab.views.model import MIME_TYPE
    from cutegen_lab.views.text import summary

    return {"text/plain": summary(view), "text/html": fragment(view), MIME_TYPE: view.model_dump(mode="json")}
