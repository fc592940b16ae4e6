"""``Session``: one store, one compiler, and the runs in it."""

from __future__ import annotations

import re
import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from cutegen_lab.config import Settings
from cutegen_lab.core.errors import CutegenError
from cutegen_lab.core.kept_memory import one_arena
from cutegen_lab.core.problem import Problem, Workload
from cutegen_lab.core.protocols import Compiler, Device, Judge, Provider
from cutegen_lab.core.roofline import speed_of_light, target_gpu
from cutegen_lab.core.run import RunSettings, RunStarted, RunState, RunSummary
from cutegen_lab.loop.driver import ThreadedDriver
from cutegen_lab.loop.machine import fold
from cutegen_lab.loop.notices import Subscriber
from cutegen_lab.loop.steps import Services
from cutegen_lab.session import factories
from cutegen_lab.session.handle import RunHandle
from cutegen_lab.session.kernels import write_kernel
from cutegen_lab.session.shown_texts import ShownTexts
from cutegen_lab.session.versions import versions

if TYPE_CHECKING:
    from cutegen_lab.stores.lease import Lease
    from cutegen_lab.stores.sqlite import SqliteStore

DeviceFactory = Callable[[str], Device]
ProviderFactory = Callable[[RunSettings], Provider]
WorkloadChoice = Callable[[Problem, Device], Sequence[Workload]]


class Session:
    """Runs in one work directory. Use :meth:`open`; close it (or leave its ``with``) to end threads and child
    processes."""

    def __init__(
        self,
        workdir: Path,
        store: SqliteStore,
        compiler: Callable[[], Compiler],
        judge: Callable[[], Judge],
        device: DeviceFactory,
        provider: ProviderFactory,
        workloads: WorkloadChoice,
    ) -> None:
        self.workdir = workdir
        self.store = store
        self._make_compiler, self._make_judge = compiler, judge
        self._make_device, self._make_provider = device, provider
        self._workloads = workloads
        self._lock = threading.RLock()
        self._compiler: Compiler | None = None
        self.texts = ShownTexts(workdir / "specialised", self.compiler)
        self._judge: Judge | None = None
        self._devices: dict[str, Device] = {}
        self._devices_lock = threading.Lock()  # held while one starts
        self._waking: list[threading.Thread] = []
        self._leases: dict[str, Lease] = {}
        self._handles: dict[str, RunHandle] = {}
        self._providers: dict[str, Provider] = {}
        self._at_close: list[Callable[[], None]] = []

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
        from cutegen_lab.stores.sqlite import SqliteStore  # pydantic: not at import

        one_arena()  # before there are threads that judge
        settings = settings or Settings.from_environment()
        place = Path(workdir) if workdir is not None else settings.workdir

        def by_name(chosen: RunSettings) -> Provider:
            return factories.make_provider(chosen, settings, place)

        return cls(
            place,
            SqliteStore(place / "lab.db"),
            compiler=(lambda: compiler) if compiler else lambda: factories.make_compiler(settings),
            judge=_factory(judge) if judge else factories.make_judge,
            device=device or factories.make_device,
            provider=provider or by_name,
            workloads=workloads or factories.judged_workloads,
        )

    def start(
        self,
        problem: Problem,
        settings: RunSettings | None = None,
        *,
        provider: Provider | None = None,
        subscriber: Subscriber | None = None,
    ) -> RunHandle:
        """Starts a run on its own thread and returns at once. ``provider`` overrides the one named in settings.

        Raises InputError (unknown provider, arch, device) or SetupError (no such device here) before anything is
        stored.
        """
        settings = settings or RunSettings()
        sol = speed_of_light(problem, target_gpu(settings.arch, settings.gpu))
        chosen = provider or self._make_provider(settings)
        self.device(settings.device)
        run_id = self._new_id(problem.name)
        event = RunStarted(run_id, problem, settings, sol, versions())
        with self._lock:
            self._providers[run_id] = chosen
            self._leases[run_id] = self.store.lease(run_id)
        try:
            self.store.append(run_id, event, fold([event]))
        except CutegenError:
            self.release(run_id)
            raise
        handle = self.attach(run_id)
        if subscriber is not None:
            handle.subscribe(subscriber)
        handle.drive()
        return handle

    def run(
        self,
        problem: Problem,
        settings: RunSettings | None = None,
        *,
        provider: Provider | None = None,
        subscriber: Subscriber | None = None,
    ) -> RunHandle:
        """:meth:`start`, then waits until the run rests or is done. Ctrl-C stops the run, which can be resumed, and is
        re-raised."""
        handle = self.start(problem, settings, provider=provider, subscriber=subscriber)
        try:
            handle.wait()
        except KeyboardInterrupt:
            handle.stop()
            handle.close()
            raise
        return handle

    def attach(self, run_id: str) -> RunHandle:
        """The handle of a run, always the same object. Drives nothing by itself. Raises StoreError for an unknown
        run."""
        with self._lock:
            if run_id not in self._handles:
                self.store.events(run_id)
                self._handles[run_id] = RunHandle(self, run_id)
            return self._handles[run_id]

    def resume(self, run_id: str) -> RunHandle:
        """Continues a run where its events end. Raises StoreError if it is unknown or driven elsewhere."""
        return self.attach(run_id).resume()

    def runs(self) -> list[RunSummary]:
        """Every run in the store, latest first."""
        return self.store.runs()

    def compiler(self) -> Compiler:
        with self._lock:
            self._compiler = self._compiler or self._make_compiler()
            return self._compiler

    def wake(self, arch: str, device: str, predicts: bool = False) -> None:
        """Starts the processes that a run needs (or, with ``predicts``, a search), and returns at once: they import
        while a problem is read. Errors are ignored here and raised again where the process is needed."""
        if predicts:
            factories.forks()

        def start(part: Callable[[], object]) -> None:
            with suppress(CutegenError, OSError):
                part()

        def devices() -> None:
            if factories.on_gpu(device):  # where the emulator looks too
                factories.forks()
            self.device(device)

        compiler = getattr(self.compiler(), "wake", lambda arch: None)
        for part in (partial(compiler, arch), devices):
            self._waking.append(threading.Thread(target=start, args=(part,), name="cutegen-wake", daemon=True))
            self._waking[-1].start()

    def judge(self) -> Judge:
        with self._lock:
            self._judge = self._judge or self._make_judge()
            return self._judge

    def device(self, kind: str) -> Device:
        """The session's device of this kind, one for each kind. Raises SetupError, InputError."""
        with self._devices_lock:
            if kind not in self._devices:
                self._devices[kind] = self._make_device(kind)
            return self._devices[kind]

    def workloads(self, problem: Problem, device: Device) -> Sequence[Workload]:
        """Workloads that the judge will run on ``device``."""
        return self._workloads(problem, device)

    def driver(self, run_id: str, ended: Callable[[ThreadedDriver], None]) -> ThreadedDriver:
        """A driver that holds the lease of ``run_id``; ``ended`` is called when it releases the finished run. Raises
        StoreError if another process has the lease."""
        with self._lock:
            if run_id not in self._leases:
                self._leases[run_id] = self.store.lease(run_id)
        try:
            state = fold(e.event for e in self.store.events(run_id))
            return ThreadedDriver(run_id, self._services(run_id, state), ended)
        except CutegenError:
            self.release(run_id)
            raise

    def release(self, run_id: str) -> None:
        """Releases the lease, so that another process can drive the run."""
        with self._lock:
            lease = self._leases.pop(run_id, None)
        if lease is not None:
            lease.release()

    def keep_accepted(self, state: RunState) -> None:
        """Writes each accepted kernel to ``kernels/<run>-<candidate>.py``, unless the file exists."""
        for candidate_id in state.accepted:
            path = self.kernel_path(state.run_id, candidate_id)
            if not path.exists():
                write_kernel(state, candidate_id, path)

    def kernel_path(self, run_id: str, candidate_id: str) -> Path:
        return self.workdir / "kernels" / f"{run_id}-{candidate_id}.py"

    def at_close(self, end: Callable[[], None]) -> None:
        """Has ``end`` called at :meth:`close`, before compiler, devices and store are closed."""
        self._at_close.append(end)

    def close(self) -> None:
        """Ends searches, stops driving every run (all resumable), ends child processes, closes the store."""
        for end in self._at_close:
            end()
        self.texts.close()
        for handle in list(self._handles.values()):
            handle.close()
        for thread in self._waking:
            thread.join()
        for part in (self._compiler, *self._devices.values()):
            close = getattr(part, "close", None)
            if close is not None:
                close()
        self.store.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _services(self, run_id: str, state: RunState) -> Services:
        settings = state.settings
        with self._lock:
            provider = self._providers.get(run_id) or self._make_provider(settings)
            self._providers[run_id] = provider
        found: Mapping[str, str] = versions()
        return Services(
            provider=provider,
            compiler=self.compiler(),
            judge=self.judge(),
            device=self.device(settings.device),
            store=self.store,
            gpu=target_gpu(settings.arch, settings.gpu),
            workloads=self._workloads,
            versions=found,
        )

    def _new_id(self, name: str) -> str:
        """``softmax-7f3a``: the problem's name and four random hex digits."""
        stem = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:24].strip("-") or "run"
        taken = {r.run_id for r in self.store.runs()}
        while (run_id := f"{stem}-{secrets.token_hex(2)}") in taken:
            continue
        return run_id


def _factory(judge: Judge | Callable[[], Judge]) -> Callable[[], Judge]:
    return judge if callable(judge) else lambda: judge
