"""The handle of one run: verbs, views, exports and evidence, for scripts, notebooks and tests alike."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

from cutegen_lab.core.artifact import Artifact, CompileFailure
from cutegen_lab.core.errors import InputError, SetupError
from cutegen_lab.core.hints import Advice, Hint
from cutegen_lab.core.protocols import Provider, Say
from cutegen_lab.core.run import RunState
from cutegen_lab.core.trial import Profile
from cutegen_lab.core.verdict import Diagnostic
from cutegen_lab.loop.notices import Notice
from cutegen_lab.loop.services import Services
from cutegen_lab.session.driven_run import DrivenRun, refuse_imported
from cutegen_lab.session.kernels import accepted_path, claims, kernel_text
from cutegen_lab.session.same_lines import ptx_lines
from cutegen_lab.session.shown_texts import FROM_TEMPLATES, ShownTexts, wait_for
from cutegen_lab.session.specialised import Written
from cutegen_lab.views.hints import COMMAND_LINE, Spelling
from cutegen_lab.views.units import plural

if TYPE_CHECKING:
    from cutegen_lab.core.timeline import Timeline
    from cutegen_lab.exports import Format
    from cutegen_lab.layouts.conflicts import ConflictingAccess
    from cutegen_lab.layouts.traced import MadeLayout
    from cutegen_lab.profiles.row import Row
    from cutegen_lab.session.searching import Searching
    from cutegen_lab.tuning.protocols import Limits
    from cutegen_lab.views.html import RunPage
    from cutegen_lab.views.layouts import LayoutPicture, LayoutsView
    from cutegen_lab.views.model import ComparisonView, MachineCodeView, RunView

_SOURCES = {"emulator": "emulator", "cuda": "hardware"}  # by kind of device: source of the counters


class RunHandle(DrivenRun):
    """A run with its views, exports and evidence."""

    def __init__(self, run_id: str, services: Services, texts: ShownTexts, provider: Provider | None = None) -> None:
        """``provider`` overrides the one that the run's settings name."""
        super().__init__(run_id, services, provider)
        self._texts = texts
        # Profiles by candidate, in addition to those that the run recorded.
        self._counted: dict[str, list[Profile]] = {}
        self._layouts: dict[str, tuple[MadeLayout, ...]] = {}  # layouts by candidate

    def view(self, front: Spelling = COMMAND_LINE) -> RunView:
        """The run as shown by the widget, the report and the command line; ``front`` says how options are spelled."""
        from cutegen_lab.views.run_view import build_view

        history, driving = self.history, self.driving
        elsewhere = "" if driving or history.state.finished else self._services.store.driven_by(self.run_id)
        texts = self._texts.known(history.state)
        streamed = getattr(self._provider, "streamed", 0) if driving else 0
        return build_view(history.state, history.events, self.log, driving, elsewhere, front, texts, streamed)

    def specialise(self, wait: bool = True, say: Say = lambda _: None) -> None:
        """Specialises the candidates' texts for their configs; views show the specialised texts once they exist.
        Without ``wait`` in the background. ``say`` gets a line if there are texts to specialise, which takes seconds
        each."""
        futures = self._texts.begin(self.state, lambda: self._subscribers.tell(Notice(self.state, None)))
        if futures:
            say(f"specialising {plural(len(futures), 'text')} of {self.run_id} for their configs")
        if wait:
            wait_for(futures)

    def export(
        self, path: Path | str, candidate_id: str | None = None, *, general: bool = False, verify: bool = False,
        say: Say = lambda _: None,
    ) -> Path:  # fmt: skip
        """Writes a kernel as a ``.py`` file: ``candidate_id``, otherwise the accepted one the run ended with.

        The text is specialised for the kernel's config, or with ``general`` keeps its parameters, so that ``cutegen
        tune`` can search it. The general text is also written, and the reason passed to ``say``, if the specialised one
        is not proven to compile to the same PTX. ``verify``: a kernel that passed is judged again in a fresh process,
        and the file says so. Raises :class:`InputError` if there is no such kernel, it is a spec that could not be
        compiled, it does not pass again, or ``path`` is a file that cutegen did not write.
        """
        from cutegen_lab.session.outputs import may_write, write_out

        state, chosen = self.state, self._kernel(candidate_id)
        may_write(Path(path))
        written = self._written(chosen, general, say)
        text, trial = kernel_text(state, chosen, written), state.trials.get(chosen)
        if verify and not state.imported and trial is not None and trial.verdict.passed:
            from cutegen_lab.session.rejudged import judged_again

            again = judged_again(state, text)
            say(again)
            text = kernel_text(state, chosen, written, (again,))
        write_out(Path(path), text)
        return Path(path)

    def export_as(
        self, path: Path | str, format: str = "", candidate_id: str | None = None, *, general: bool = False,
        verify: bool = False, say: Say = lambda _: None,
    ) -> tuple[Path, ...]:  # fmt: skip
        """Writes the run, or a kernel of it (default as in :meth:`export`), in a ``format`` of
        :data:`~cutegen_lab.exports.FORMATS`; without one the suffix of ``path`` decides. ``verify`` as in
        :meth:`export`, for the kernel's text. Returns the files written. Raises InputError for an unknown format or
        name, and as :meth:`export`."""
        from cutegen_lab.exports import format_of

        path = Path(path)
        chosen = format_of(format, path.name)
        match chosen.name:
            case "kernel":
                return (self.export(path, candidate_id, general=general, verify=verify, say=say),)
            case "page":
                return (self.export_page(path, general=general),)
            case "view":
                return (self.export_view(path),)
            case "run":
                return (self.export_archive(path),)
        return self._export_made(path, chosen, candidate_id, general, say)

    def _export_made(
        self, path: Path, format: Format, candidate_id: str | None, general: bool, say: Say
    ) -> tuple[Path, ...]:  # fmt: skip
        from cutegen_lab.exports import Subject
        from cutegen_lab.session.outputs import write_out

        state, chosen = self.state, self._kernel(candidate_id)
        if format.machine_code and state.imported:
            raise InputError(
                f"the machine code in {state.imported} was not compiled here, so it is not exported",
                Hint(Advice.JUDGE_HERE),
            )
        _, artifact = self._compiled(chosen)
        written = self._written(chosen, general, say)
        candidate = state.candidates[chosen]
        made = format.make(
            Subject(
                state.problem, self.run_id, chosen, written.source, candidate.source, written.config,
                claims(state, chosen), artifact, candidate.provider == FROM_TEMPLATES, state.sol.gpu,
            )
        )  # fmt: skip
        stem = path.name.removesuffix(format.suffix)
        files = {path.with_name(stem + k if k.startswith(".") else k): contents for k, contents in made.items()}
        for each, contents in files.items():
            write_out(each, contents)
        return tuple(files)

    def _kernel(self, candidate_id: str | None) -> str:
        """Id of a kernel, the accepted one by default and for ``best``. Raises InputError if there is none."""
        state = self.state
        chosen = state.incumbent_id if candidate_id in (None, "", "best") else candidate_id
        if chosen is None or chosen not in state.candidates:
            seen = f"no candidate {candidate_id!r}" if candidate_id else "no accepted kernel"
            known = tuple(state.candidates)
            raise InputError(
                f"run {self.run_id} has {seen}",
                Hint(Advice.NAME_CANDIDATE, known) if known else "It has no candidate yet.",
            )
        if state.candidates[chosen].proposal.refused:
            kernels = ", ".join(c.id for c in state.candidates.values() if not c.proposal.refused) or "none"
            raise InputError(f"{chosen} is a spec that no kernel could be made of", f"Kernels: {kernels}.")
        return chosen

    def _written(self, candidate_id: str, general: bool, say: Say) -> Written:
        """The text of a candidate to write; for a run read from a file, the text with parameters, since nothing of such
        a run is compiled here."""
        state = self.state
        candidate = state.candidates[candidate_id]
        return self._texts.written(
            state.problem, candidate.source, candidate.config, state.settings.arch,
            general=general or bool(state.imported), say=say,
        )  # fmt: skip

    def export_archive(self, path: Path | str) -> Path:
        """Writes the whole run, artifacts included, as one file that :meth:`Session.import_run` reads. Raises
        InputError if ``path`` is a file cutegen did not write, or the run was itself read from a file."""
        from cutegen_lab.session.archives import run_as_file
        from cutegen_lab.session.outputs import write_out

        history = self.history
        write_out(Path(path), run_as_file(self._services.store, history.state, history.events))
        return Path(path)

    def export_view(self, path: Path) -> Path:
        """Writes the run as JSON, which JupyterLab shows as it shows a saved run. Raises InputError if ``path`` is a
        file cutegen did not write."""
        from cutegen_lab.session.outputs import write_out

        self.specialise()
        write_out(path, self.view().model_dump_json(indent=1) + "\n")
        return path

    def export_page(self, path: Path | str, *, general: bool = False) -> Path:
        """Writes the run as one self-contained HTML page; ``general``: with the texts that have parameters. Raises
        InputError if ``path`` is a file cutegen did not write."""
        from cutegen_lab.session.outputs import write_out
        from cutegen_lab.views.html import report

        if not general:
            self.specialise()
        write_out(Path(path), report([self.on_page()], title=f"cutegen run {self.run_id}", general=general))
        return Path(path)

    def on_page(self) -> RunPage:
        """The run as an exported page shows it."""
        from cutegen_lab.views.again import command
        from cutegen_lab.views.html import RunPage

        return RunPage(self.view(), self.profile_rows(), command(self.state))

    def selected_candidate(self, candidate_id: str | None = None) -> str | None:
        """``candidate_id``, otherwise the current candidate, otherwise the accepted one; None without any."""
        state = self.state
        return candidate_id or (state.current.id if state.current else None) or state.incumbent_id

    def profile(self, candidate_id: str | None = None, device: str = "emulator") -> Profile:
        """Counters of a compiled candidate (default: the current one, otherwise the accepted one) from the emulator
        (``device="emulator"``) or a GPU's profiler (``"cuda"``), under the same names. Counters that the run recorded
        are returned without counting again.

        Raises InputError if nothing is compiled, SetupError if there is no such device or it has no profiler.
        """
        state, (chosen, artifact) = self.state, self._compiled(candidate_id)
        recorded = state.trials[chosen].profile if chosen in state.trials else None
        if recorded is not None and recorded.source == _SOURCES.get(device):
            return recorded
        refuse_imported(state)
        found = self._services.judge().profile(
            state.problem, artifact, self._services.device(device), self._log.append, threading.Event()
        )
        if isinstance(found, str):
            raise SetupError(f"no profile from {device}: {found}", Hint(Advice.DOCTOR))
        self._counted.setdefault(chosen, []).append(found)
        return found

    def timelines(self, candidate_id: str | None = None, device: str = "emulator") -> tuple[Timeline, ...]:
        """What the warps of one block of each launch do, for a compiled candidate (default as for :meth:`profile`): on
        "emulator" in its order of execution, on "cuda" by the GPU's clock. Raises InputError if nothing is compiled,
        SetupError if there is no such device or it cannot record."""
        state, (_, artifact) = self.state, self._compiled(candidate_id)
        refuse_imported(state)
        recorder, judge = self._services.device(device), self._services.judge()
        found = judge.timelines(state.problem, artifact, recorder, self._log.append, threading.Event())
        if isinstance(found, str):
            raise SetupError(f"no timeline: {found}", Hint(Advice.DOCTOR))
        return found

    def profile_rows(self) -> tuple[Row, ...]:
        """Every number of the run in one table: times, counters, errors, resources. Profiles that :meth:`profile`
        counted in this process are among them."""
        from cutegen_lab.profiles.rows import rows

        state, store = self.state, self._services.store
        artifacts = {name: store.get_artifact(built.artifact_sha256) for name, built in state.compiled.items()}
        builds = {name: artifact.builds[state.problem.workload.name] for name, artifact in artifacts.items()}
        return rows(state, builds, self._counted)

    def machine_code(self, candidate_id: str | None = None, *, general: bool = False) -> MachineCodeView:
        """PTX and SASS of a compiled candidate (default as for :meth:`profile`) for its main workload, with line
        numbers of the text that is shown; ``general``: of the text with parameters. Raises InputError if nothing is
        compiled."""
        from cutegen_lab.session.machine_code import machine_code

        state, (chosen, artifact) = self.state, self._compiled(candidate_id)
        workload = state.problem.workload.name
        text = None if general else self._texts.known(state).get(chosen)
        return machine_code(chosen, workload, artifact.builds[workload], text.lines if text else None)

    def layouts(self, candidate_id: str | None = None) -> tuple[MadeLayout | ConflictingAccess, ...]:
        """The accesses with bank conflicts of a compiled candidate (default as for :meth:`profile`), if it was
        profiled, then the layouts that it makes and uses; for its main workload, with line numbers of the text with
        parameters. The candidate is compiled again for this, once. Raises InputError if nothing is compiled, the
        candidate no longer compiles, or the run was read from a file."""
        from cutegen_lab.layouts.conflicts import conflicting
        from cutegen_lab.layouts.traced import made_layouts

        state, (chosen, _) = self.state, self._compiled(candidate_id)
        refuse_imported(state)
        if chosen not in self._layouts:
            candidate = state.candidates[chosen]
            traced = self._services.compiler().layouts(
                candidate.source, candidate.config, state.problem.workload, state.settings.arch, threading.Event()
            )
            if isinstance(traced, CompileFailure):
                raise InputError(f"{chosen} does not compile: {traced.reason}", "Choose another candidate.")
            self._layouts[chosen] = made_layouts(traced)
        trial = state.trials.get(chosen)
        profile = trial.profile if trial else None
        return (*conflicting(profile.accesses if profile else ()), *self._layouts[chosen])

    def layouts_view(self, candidate_id: str, *, general: bool = False) -> LayoutsView:
        """:meth:`layouts` with line numbers of the text that is shown; ``general``: of the text with parameters."""
        from cutegen_lab.views.layouts import layouts_view

        made, state = self.layouts(candidate_id), self.state
        text = None if general else self._texts.known(state).get(candidate_id)
        source = text.source if text else state.candidates[candidate_id].source
        return layouts_view(candidate_id, made, source, text.lines if text else None)

    def layout_picture(self, candidate_id: str, number: int) -> LayoutPicture:
        """The picture of item ``number`` of :meth:`layouts`, from 0. Raises InputError if there is none."""
        from cutegen_lab.views.layouts import layout_picture

        made = self.layouts(candidate_id)
        if not 0 <= number < len(made):
            raise InputError(f"there is no layout {number}", f"There are {len(made)}, counted from 0.")
        return layout_picture(candidate_id, number, made[number])

    def compare(self, before_id: str, after_id: str, *, general: bool = False) -> ComparisonView:
        """What changes from one candidate to another: numbers, parameters, text, PTX. Raises InputError for a
        candidate that the run does not have."""
        from cutegen_lab.views.compare import comparison

        state = self.state
        if unknown := [each for each in (before_id, after_id) if each not in state.candidates]:
            raise unknown_candidate(state, repr(unknown[0]))
        if not general:
            self.specialise()
        ptx, note = None, ""
        if missing := [each for each in (before_id, after_id) if each not in state.compiled]:
            note = f"{' and '.join(missing)} did not compile"
        else:
            before, after = (self._ptx(each) for each in (before_id, after_id))
            ptx = before, after
        return comparison(self.view(), before_id, after_id, general=general, ptx=ptx, ptx_note=note)

    def _ptx(self, candidate_id: str) -> str:
        """PTX of a compiled candidate for its main workload, without debug information."""
        _, artifact = self._compiled(candidate_id)
        return "\n".join(text for text, _ in ptx_lines(artifact.builds[self.state.problem.workload.name]))

    def check(self, source: str) -> tuple[Diagnostic, ...]:
        """Findings of the gate and the lint rules on a draft, without compiling it."""
        from cutegen_lab.compile.gate import check
        from cutegen_lab.compile.lint import lint

        return (*check(source), *lint(source))

    def _compiled(self, candidate_id: str | None) -> tuple[str, Artifact]:
        """A compiled candidate and its artifact. Raises InputError if nothing is compiled."""
        state, chosen = self.state, self.selected_candidate(candidate_id)
        built = state.compiled.get(chosen) if chosen else None
        if chosen is None or built is None:
            seen = ", ".join(state.compiled) or "none"
            raise InputError(f"candidate {chosen or ''} of run {self.run_id} is not compiled", f"Compiled: {seen}.")
        return chosen, self._services.store.get_artifact(built.artifact_sha256)

    def search(
        self, candidate_id: str | None = None, limits: Limits | None = None, refactor: bool = False
    ) -> Searching:  # fmt: skip
        """A search, not yet started, for the fastest config of a candidate (default: the current one, otherwise the
        accepted one), for the run's arch and device. ``refactor``: first make a template of a candidate without
        TUNABLE. Raises InputError if there is no such candidate or nothing to search."""
        from cutegen_lab.session.searching import Searching
        from cutegen_lab.session.tune import TuneSettings, from_text
        from cutegen_lab.session.tuned import PlainKernel, Tunable
        from cutegen_lab.tuning.protocols import Limits

        state, chosen = self.state, self.selected_candidate(candidate_id)
        refuse_imported(state)
        if chosen is None or chosen not in state.candidates:
            raise unknown_candidate(state, chosen or "")
        candidate, of = state.candidates[chosen], state.settings
        what = f"{self.run_id} {chosen}"
        tunable: Tunable | PlainKernel = (
            PlainKernel(what, candidate.source) if refactor else from_text(candidate.source, candidate.config, what)
        )
        settings = TuneSettings(limits or Limits(), of.arch, of.gpu, of.device)
        return Searching(self._services, state.problem, tunable, settings)

    def kernel_path(self, candidate_id: str) -> Path:
        """Path of an accepted kernel in the work directory."""
        return accepted_path(self._services.workdir, self.run_id, candidate_id)


def unknown_candidate(state: RunState, spelled: str) -> InputError:
    """The error for a candidate that the run does not have."""
    known = ", ".join(state.candidates) or "none"
    return InputError(f"run {state.run_id} has no candidate {spelled}", f"Candidates: {known}.")
