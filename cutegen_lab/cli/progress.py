"""Progress of a run: one line for each event; on a terminal also a spinner with the current work. Progress of a suite:
one line for each problem that has ended, and the current work of those that run."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Self

from cutegen_lab.core.plain_text import continued
from cutegen_lab.core.predicted import AT_THE_FLOOR
from cutegen_lab.core.run import (
    Answered,
    Checked,
    Compiled,
    CompileFailed,
    Event,
    Generated,
    GenerateFailed,
    Noted,
    NoteLifted,
    Profiled,
    RunState,
    Step,
    StepFailed,
    StepStarted,
    Stopped,
    Timed,
)
from cutegen_lab.core.verbs import in_words
from cutegen_lab.views.hints import COMMAND_LINE, with_hint

if TYPE_CHECKING:
    from rich.status import Status

    from cutegen_lab.loop.notices import Notice

QUIET_SECONDS = 30.0
_DOING = {
    Step.GENERATE: "generating",
    Step.COMPILE: "compiling",
    Step.CHECK: "checking",
    Step.TIME: "timing",
    Step.PROFILE: "profiling",
}


class Progress:
    """A subscriber that prints progress to stderr. Without a terminal, lines are plain and the current work is printed
    after each ``QUIET_SECONDS`` without a line. Use as a context manager."""

    def __init__(self, title: str, now: Callable[[], float] = time.monotonic) -> None:
        from rich.console import Console

        self._console = Console(stderr=True, highlight=False, soft_wrap=True)
        self._title, self._clock, self._last = title, now, now()
        self._status: Status | None = None
        self._doing = ""

    def __enter__(self) -> Self:
        self.spin()
        return self

    def __exit__(self, *_: object) -> None:
        self.pause()

    def spin(self) -> None:
        """Shows the spinner, on a terminal."""
        if self._console.is_terminal and self._status is None:
            self._status = self._console.status(self._title)
            self._status.start()

    def pause(self) -> None:
        """Hides the spinner, so that others can use the terminal."""
        if self._status is not None:
            self._status.stop()
            self._status = None

    def __call__(self, notice: Notice) -> None:
        if notice.event is None:
            if not notice.line:
                return  # the notice is only for views
            self._show(f"{self._title}: {self._doing} · {notice.line}" if self._doing else notice.line, notice.line)
            return
        event = notice.event.event
        if isinstance(event, StepStarted):
            self._doing = _work(event)
            self._now(_shown(f"{self._title}: {self._doing}"))
        elif text := in_a_line(event, notice.state):
            self.print(f"{self._title}: {text}")

    def print(self, text: str) -> None:
        """Prints a line."""
        self._console.print(_shown(text))
        self._last = self._clock()

    def _show(self, said: str, line: str) -> None:
        """Shows the current work, to which a run has added ``line``."""
        self._now(_shown(said))
        if self._status is None and line.startswith("waiting for"):
            self.print(line)  # a line that asks for an action is printed without a terminal too
        elif self._status is None and self._clock() - self._last >= QUIET_SECONDS:
            self.print(said)

    def _now(self, text: str) -> None:
        if self._status is not None:
            self._status.update(text)


class SuiteProgress(Progress):
    """Progress of ``total`` problems, of which several may run at a time; their notices may come from several
    threads."""

    def __init__(self, title: str, total: int, now: Callable[[], float] = time.monotonic) -> None:
        super().__init__(title, now)
        self._total, self._ended = total, 0
        self._works: dict[str, str] = {}  # current work of each problem that runs
        self._lock = threading.RLock()

    def begun(self, name: str) -> None:
        """A problem begins."""
        self._work_of(name, "reading")

    def ended(self, name: str, result: str) -> None:
        """A problem has ended."""
        with self._lock:
            self._ended += 1
            self._works.pop(name, None)
            self.print(f"{self._ended}/{self._total} {name}: {result}")
            self._now("")

    def of(self, name: str) -> Callable[[Notice], None]:
        """The subscriber for the run of a problem."""

        def told(notice: Notice) -> None:
            if notice.event is None:
                self._work_of(name, notice.line, notice.line)
            elif isinstance(notice.event.event, StepStarted):
                self._work_of(name, _work(notice.event.event))

        return told

    def _work_of(self, name: str, work: str, line: str = "") -> None:
        if not work:
            return
        with self._lock:
            self._works[name] = work
            self._show("; ".join(self._lines()), line)

    def _now(self, text: str) -> None:
        """On a terminal, shows a line for each problem that runs, below the number of those that have ended."""
        width = max(self._console.width - 4, 20)  # beside the spinner
        super()._now("\n".join(_shown(line[:width]) for line in self._lines()))

    def _lines(self) -> list[str]:
        works = (f"{name}: {work}" for name, work in self._works.items())
        return [f"{self._ended} of {self._total} ended", *works]


def _work(event: StepStarted) -> str:
    return f"{_DOING.get(event.step, event.step.value)} {event.candidate_id or ''}".strip()


def _shown(text: str) -> str:
    """Text for rich: no markup, no control characters, and a single line that cannot imitate another event."""
    from rich.markup import escape

    return escape(continued(text))


def in_a_line(event: Event, state: RunState) -> str:
    """``event`` as one line; "" if it is not shown."""
    match event:
        case Generated(candidate):
            return f"{candidate.id} generated: {candidate.proposal.title}"
        case Compiled():
            used = event.resources
            spilled = f", {used.spill_bytes} B spilled" if used.spill_bytes else ""
            return f"{event.candidate_id} compiled in {event.seconds:.1f} s: {used.registers} registers{spilled}"
        case CompileFailed():
            return f"{event.candidate_id} {_words(event.verdict.value)}: {event.reason}"
        case Checked():
            reason = f": {event.result.reason}" if event.result.reason else ""
            return f"{event.candidate_id} {_words(event.result.verdict.value)} on {event.device}{reason}"
        case Timed():
            trial = state.trials[event.candidate_id]
            if event.timing is None or trial.sol_gap is None:
                return f"{event.candidate_id} has no time: {event.fault or 'not given'}"
            time = f"{event.timing.time_us:.1f} µs {event.timing.kind}"
            return f"{event.candidate_id} {time}, {trial.sol_gap:.2f}× the speed of light"
        case Profiled(candidate_id, profile):
            is_at = "is" if profile and profile.limiter.startswith(AT_THE_FLOOR) else "is bound by"
            return f"{candidate_id} {is_at} {profile.limiter}" if profile else ""
        case Answered(answer):
            reason = f" ({answer.text})" if answer.text and answer.kind in ("approve", "stop") else ""
            return f"{answer.candidate_id or state.current_id or 'run'} {in_words(answer)}{reason}"
        case GenerateFailed():
            return f"no candidate: {with_hint(event.reason, event.hint, COMMAND_LINE)}"
        case StepFailed():
            return f"{event.step.value} failed: {with_hint(event.reason, event.hint, COMMAND_LINE)}"
        case Stopped():
            return event.reason
        case Noted(note):
            words = f": {note.text}" if note.text else ""
            return f"{'pin' if note.pin else 'comment'} {note.id} on {note.what}{words}"
        case NoteLifted(note_id):
            return f"{note_id} lifted"
    return ""


def _words(name: str) -> str:
    return name.replace("_", " ")
