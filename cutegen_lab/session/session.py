"""``Session``: one store, one compiler, and the runs in it."""

from __future__ import annotations

import re
import secrets
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

from cutegen_lab.config import Settings
from cutegen_lab.core.errors import CutegenError, InputError
from cutegen_lab.core.kept_memory import one_arena
from cutegen_lab.core.problem import Problem
from cutegen_lab.core.protocols import Compiler, Forecast, Judge, Provider
from cutegen_lab.core.roofline import SpeedOfLight, speed_of_light, target_gpu
from cutegen_lab.core.run import RunSettings, RunStarted, RunSummary
from cutegen_lab.loop.notices import Subscriber
from cutegen_lab.loop.services import DeviceFactory, ProviderFactory, Services, WorkloadChoice
from cutegen_lab.session import factories
from cutegen_lab.session.handle import RunHandle
from cutegen_lab.session.memory import Memory
from cutegen_lab.session.shown_texts import ShownTexts
from cutegen_lab.session.versions import versions


class Session:
    """Runs in one work directory. Use :meth:`open`; close it (or leave its ``with``) to end threads and child
    processes."""

    def __init__(self, services: Services) -> None:
        self.services = services
        """Services of its runs and searches."""
        self._lock = threading.RLock()
        self.texts = ShownTexts(services.workdir / "specialised", services.compiler)
        self.memory = Memory(services.store, services.workdir / "memory.json")
        self._waking: list[threading.Thread] = []
        self._handles: dict[str, RunHandle] = {}

    @classmethod
    def open(
        cls,
        workdir: Path | str | None = None,
        *,
        settings: Settings | None = None,
        compiler: Compiler | None = None,
        judge: Judge | Callable[[], Judge] | None = None,
        device: DeviceFactory | None = None,
        provider: ProviderFactory | None = None,
        workloads: WorkloadChoice | None = None,
    ) -> Session:
        """A session over ``workdir`` (default: CUTEGEN_HOME, otherwise ``.cutegen``), which is created if necessary.

        Services that are not given are the real ones, made when first needed; ``judge`` may also be a function that
        makes one. Raises :class:`StoreError` for a store that cannot be used.
        """
        from cutegen_lab.stores.sqlite import SqliteStore  # needs pydantic: not imported with this module

        one_arena()  # before judging threads start
        settings = settings or Settings.from_environment()
        place = Path(workdir) if workdir is not None else settings.workdir

        def by_name(chosen: RunSettings) -> Provider:
            return factories.make_provider(
                chosen, settings, place, session.forecast(chosen.device), session.emulated_forecast,
                session.memory.recall,
            )  # fmt: skip

        session = cls(
            Services(
                place,
                SqliteStore(place / "lab.db"),
                compiler=(lambda: compiler) if compiler else lambda: factories.make_compiler(settings),
                judge=_factory(judge) if judge else factories.make_judge,
                device=device or factories.make_device,
                provider=provider or by_name,
                workloads=workloads or factories.judged_workloads,
                versions=versions(),
            )
        )
        return session

    def forecast(self, device: str) -> Forecast | None:
        """Predicts what the templates may propose for a run on ``device``; None on a GPU, where they are measured."""
        return None if factories.on_gpu(device) else self.emulated_forecast()

    def emulated_forecast(self) -> Forecast:
        """Predicts times on this machine's cores, whatever the device of the run."""
        from cutegen_lab.session.forecast import Forecasts  # needs NumPy: not imported with this module

        return Forecasts(self.services.compiler, self.services.judge, factories.forks)

    def check(
        self, problem: Problem, settings: RunSettings, provider: Provider | None = None
    ) -> tuple[SpeedOfLight, Provider]:  # fmt: skip
        """The bound and the provider of a run with these settings. Raises as :meth:`start`, and stores nothing."""
        sol = speed_of_light(problem, target_gpu(settings.arch, settings.gpu))
        chosen = provider or self.services.provider(settings)
        self.services.device(settings.device)
        return sol, chosen

    def start(
        self,
        problem: Problem,
        settings: RunSettings | None = None,
        *,
        provider: Provider | None = None,
        subscriber: Subscriber | None = None,
    ) -> RunHandle:
        """Starts a run on its own thread and returns immediately. ``provider`` overrides the one named in settings.

        Raises InputError (unknown provider, arch, device) or SetupError (no such device here) before anything is
        stored.
        """
        settings = settings or RunSettings()
        sol, chosen = self.check(problem, settings, provider)
        run_id = self._new_id(problem.name)
        handle = RunHandle(run_id, self.services, self.texts, chosen)
        if subscriber is not None:
            handle.subscribe(subscriber)
        with self._lock:  # so that no other thread makes a handle of the run
            handle.begin(RunStarted(run_id, problem, settings, sol, self.services.versions))
            self._handles[run_id] = handle
        return handle

    def run(
        self,
        problem: Problem,
        settings: RunSettings | None = None,
        *,
        provider: Provider | None = None,
        subscriber: Subscriber | None = None,
    ) -> RunHandle:
        """:meth:`start`, then waits until the run waits for review or is done. Ctrl-C stops the run, which can be
        resumed, and is re-raised."""
        handle = self.start(problem, settings, provider=provider, subscriber=subscriber)
        try:
            handle.wait()
        except KeyboardInterrupt:
            handle.stop()
            handle.close()
            raise
        return handle

    def attach(self, run_id: str) -> RunHandle:
        """The handle of a run, always the same object. Does not drive the run. Raises StoreError for an unknown run."""
        with self._lock:
            if run_id not in self._handles:
                self.services.store.events(run_id)
                self._handles[run_id] = RunHandle(run_id, self.services, self.texts)
            return self._handles[run_id]

    def find(self, name: str) -> RunHandle:
        """The handle of the run that an analyst names: by its id, the beginning of it, its problem's name or its title.
        Raises InputError if several runs match, StoreError if none does."""
        runs = self.runs()
        if name in {run.run_id for run in runs} or not name:
            return self.attach(name)
        named = [r.run_id for r in runs if r.run_id.startswith(name) or name in (r.name, r.title)]
        if len(named) > 1:
            raise InputError(f"{name!r} names {len(named)} runs: {', '.join(named)}", "Name one by its id.")
        return self.attach(named[0] if named else name)

    def resume(self, run_id: str) -> RunHandle:
        """Continues a run where its events end. Raises StoreError if it is unknown or another process drives it."""
        return self.attach(run_id).resume()

    def import_run(self, path: Path | str) -> RunHandle:
        """The run in a ``.cutegen`` file, which is stored to be viewed only: its verdicts were not verified here.
        Raises InputError that says what is wrong with the file."""
        from cutegen_lab.session.archives import read_run

        return self.attach(read_run(self.services.store, Path(path)))

    def runs(self) -> list[RunSummary]:
        """Every run in the store that is not in the trash, latest first."""
        return [run for run in self.services.store.runs() if run.trashed_at is None]

    def wake(self, arch: str, device: str, predicts: bool = False) -> None:
        """Starts the processes that a run needs (or, with ``predicts``, a search), and returns immediately: the
        processes import modules while a problem is read. Errors are ignored here and raised again where the process is
        needed."""
        if predicts:
            factories.forks()

        def start(part: Callable[[], object]) -> None:
            with suppress(CutegenError, OSError):
                part()

        def devices() -> None:
            if factories.on_gpu(device):  # a run may use the emulator in addition to the GPU
                factories.forks()
            self.services.device(device)

        compiler = getattr(self.services.compiler(), "wake", lambda arch: None)
        for part in (partial(compiler, arch), devices):
            self._waking.append(threading.Thread(target=start, args=(part,), name="cutegen-wake", daemon=True))
            self._waking[-1].start()

    def close(self) -> None:
        """Ends searches, stops driving every run (all resumable), ends child processes, closes the store."""
        self.texts.close()
        for thread in self._waking:
            thread.join()
        self.services.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _new_id(self, name: str) -> str:
        """``softmax-7f3a``: the problem's name and four random hex digits."""
        stem = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:24].strip("-") or "run"
        taken = {r.run_id for r in self.services.store.runs()}
        while (run_id := f"{stem}-{secrets.token_hex(2)}") in taken:
            continue
        return run_id


def _factory(judge: Judge | Callable[[], Judge]) -> Callable[[], Judge]:
    return judge if callable(judge) else lambda: judge
