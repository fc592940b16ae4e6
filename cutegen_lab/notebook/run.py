"""The result of ``%%cutegen``: a run with the widget's verbs as methods, shown as text, HTML or the live widget."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cutegen_lab.core.errors import InputError, StoreError
from cutegen_lab.core.run import Step
from cutegen_lab.core.verbs import Verb
from cutegen_lab.notebook.checked_arguments import verb
from cutegen_lab.notebook.failures import kept_on_interrupt
from cutegen_lab.notebook.profile import RunProfile
from cutegen_lab.session import RunHandle
from cutegen_lab.session.handle import unknown_candidate
from cutegen_lab.session.verbs import with_verbs
from cutegen_lab.views.hints import NOTEBOOK

if TYPE_CHECKING:
    from cutegen_lab.notebook.candidate_layouts import CandidateLayouts
    from cutegen_lab.notebook.plots import Plot
    from cutegen_lab.notebook.search import NotebookSearch
    from cutegen_lab.views.model import RunView


@with_verbs(checked=verb, wait=True)
class NotebookRun:
    """A run. Every verb waits until the run next waits for review or is done (``wait=False`` returns immediately), and
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
        """Text of the current candidate. Raises InputError if there is none yet."""
        current = self.handle.state.current
        if current is None:
            raise InputError(f"run {self.run_id} has no candidate yet", "Call wait() first.")
        return current.source

    @property
    def best(self) -> str:
        """Text of the accepted kernel. Raises InputError if no kernel was accepted."""
        state = self.handle.state
        if state.incumbent_id is None:
            raise InputError(f"run {self.run_id} has no accepted kernel", "Approve one first.")
        return state.candidates[state.incumbent_id].source

    @verb
    def wait(self, timeout: float | None = None) -> NotebookRun:
        """Waits until the run waits for review or is done, or ``timeout`` seconds have passed."""
        with self.going_on():
            self.handle.wait(timeout)
        return self

    def going_on(self) -> AbstractContextManager[None]:
        """A block in which an interrupt reports that the run continues, and how to wait for it or end it."""
        again = f"wait() waits for it again, `%cutegen stop --run {self.run_id}` ends it"
        return kept_on_interrupt(f"run {self.run_id} goes on; {again}")

    def perform(self, verb: Verb, argument: str = "", note: str = "", wait: bool = True) -> NotebookRun:
        """Performs a verb of :data:`~cutegen_lab.core.verbs.VERBS`, each of which is a method too. A comment or pin
        takes effect immediately, while the run continues."""
        self.handle.perform(verb, argument, note)
        return self.wait() if wait and verb not in ("comment", "pin") else self

    @verb
    def stop(self) -> NotebookRun:
        """Ends the run at its current step; ``resume`` continues from there."""
        self.handle.stop()
        return self

    @verb
    def resume(self) -> NotebookRun:
        """Continues the run, driven by this Jupyter kernel."""
        self.handle.resume()
        return self

    @verb
    def attend(self) -> NotebookRun:
        """Attaches a run that waits for a review to this kernel, as after a restart, without starting anything. A run
        that another process drives is left alone."""
        if self.handle.state.step is Step.REVIEW and not self.handle.driving:
            with suppress(StoreError):
                self.handle.resume()
        return self

    def view(self) -> RunView:
        """The view of the run that all displays use."""
        return self.handle.view(NOTEBOOK)

    @verb
    def export(
        self, format: str | Path, path: str | Path = "", candidate_id: str | None = None, *, general: bool = False,
        verify: bool = True,
    ) -> Path:  # fmt: skip
        """Writes the accepted kernel, or the run, as a file: ``export("wheel", "softmax.whl")``, or in the format that
        the suffix names, ``export("softmax.py")``. ``general``: the text with all its parameters, not specialised for
        its config. ``verify``: a kernel's text is judged again in a fresh process before it is written. ``cutegen
        export --list`` lists the formats."""
        name, file = (str(format), path) if str(path) else ("", format)
        return self.handle.export_as(Path(file), name, candidate_id, general=general, verify=verify, say=print)[0]

    @verb
    def evidence(self, candidate_id: str | None = None, *, general: bool = False) -> str:
        """Evidence card of a candidate as text (default: the one under review, else the accepted one). Line numbers are
        those of the text specialised for its config; ``general``: of the text with all its parameters. Raises
        InputError if there is no such candidate."""
        from cutegen_lab.views.text import evidence_table

        state = self.handle.state
        if candidate_id is not None and candidate_id not in state.candidates:
            raise unknown_candidate(state, repr(candidate_id))
        if not general:
            self.handle.specialise()
        return evidence_table(self.view(), candidate_id, general)

    @verb
    def kernel(self, candidate_id: str | None = None, *, general: bool = False) -> str:
        """The text of a candidate (default: as for :meth:`evidence`), specialised for its config; ``general``: with all
        its parameters. Raises InputError if there is no such candidate."""
        from cutegen_lab.views.specialised import shown

        if not general:
            self.handle.specialise()
        chosen = self.handle.selected_candidate(candidate_id)
        found = next((candidate for candidate in self.view().candidates if candidate.id == chosen), None)
        if found is None:
            raise InputError(f"run {self.run_id} has no candidate {chosen or ''}", "Call wait() first.")
        return shown(found, general).source

    @property
    def profile(self) -> RunProfile:
        """Every number of the run as a table: ``run.profile.df``. ``run.profile("c1", "cuda")`` collects the counters
        of one candidate on one device."""
        return RunProfile(self.handle)

    @verb
    def compare(self, before_id: str, after_id: str, *, general: bool = False, ptx: bool = False) -> str:
        """What changes from one candidate to another, as text: numbers, parameters, and the texts specialised for their
        configs (``general``: with all their parameters). ``ptx``: also the PTX. Raises InputError if there is no such
        candidate."""
        from cutegen_lab.views.compare import comparison_text

        return comparison_text(self.handle.compare(before_id, after_id, general=general), ptx)

    @verb
    def plot(self, name: str = "roofline", candidate_id: str | None = None, device: str = "emulator") -> Plot:
        """One of the plots roofline, time, memory, occupancy, mix, checks, times, stalls and timeline, of a candidate
        (default: as in :meth:`evidence`). ``.table`` and ``.df`` have its numbers; ``.save`` writes the figure or the
        table. ``device``: where a timeline is recorded, in the order of execution ("emulator") or measured ("cuda").
        Raises InputError, SetupError."""
        from cutegen_lab.notebook.plots import draw, subject_of

        return draw(name, subject_of(self.handle, candidate_id, device))

    @verb
    def plot_profile(self, candidate_id: str | None = None, devices: Sequence[str] = ("emulator",)) -> Plot:
        """Profiles of one candidate on each of ``devices`` ("emulator", "cuda") in one figure, with a table as in
        :meth:`plot`. Raises InputError, SetupError."""
        from cutegen_lab.notebook.plots import Plot
        from cutegen_lab.notebook.profile_figure import profile_figure, profile_records

        state, chosen = self.handle.state, self.handle.selected_candidate(candidate_id)
        profiles = [self.handle.profile(chosen, device) for device in devices]
        assert chosen is not None  # otherwise there would be no profile
        figure = profile_figure(profiles, state.candidates[chosen].source, f"{state.problem.name} {chosen}")
        return Plot("profile", figure, profile_records(profiles))

    @verb
    def layouts(self, candidate_id: str | None = None) -> CandidateLayouts:
        """The layouts that a candidate makes (default: as in :meth:`evidence`), as a table with line numbers in its
        general text, before specialisation; ``run.layouts()[0]`` draws the first. Raises InputError."""
        from cutegen_lab.notebook.candidate_layouts import CandidateLayouts

        chosen = self.handle.selected_candidate(candidate_id)
        made = self.handle.layouts(candidate_id)
        return CandidateLayouts(made, self.handle.state.candidates[chosen].source if chosen else "")

    @verb
    def tune(self, candidate_id: str | None = None, budget: int = 40, refactor: bool = False) -> NotebookSearch:
        """Starts a background search among up to ``budget`` configs of a candidate (default: as in :meth:`evidence`).
        With ``refactor``, a candidate without TUNABLE is made tunable first. Raises InputError if there is nothing to
        search."""
        from cutegen_lab.notebook.search import NotebookSearch
        from cutegen_lab.tuning.protocols import Limits

        return NotebookSearch(self.handle.search(candidate_id, Limits(budget), refactor).start())

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        return static_bundle(self.view())


def static_bundle(view: RunView) -> dict[str, Any]:
    """MIME bundle of a run that can be shown without a kernel: text, HTML without scripts, and JSON for the MIME
    renderer."""
    from cutegen_lab.views.html import fragment
    from cutegen_lab.views.model import MIME_TYPE
    from cutegen_lab.views.text import summary

    return {"text/plain": summary(view), "text/html": fragment(view), MIME_TYPE: view.model_dump(mode="json")}
