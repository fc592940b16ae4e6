"""``Services``: the store, compiler, judge and devices that the runs and searches of a session share."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from cutegen_lab.core.problem import Problem, Workload
from cutegen_lab.core.protocols import Compiler, Device, Judge, Provider, Store
from cutegen_lab.core.run import RunSettings

DeviceFactory = Callable[[str], Device]
ProviderFactory = Callable[[RunSettings], Provider]
WorkloadChoice = Callable[[Problem, Device], Sequence[Workload]]


class Services:
    """Store, compiler, judge and devices; each but the store is made once, at the first request. Thread-safe."""

    def __init__(
        self,
        workdir: Path,
        store: Store,
        compiler: Callable[[], Compiler],
        judge: Callable[[], Judge],
        device: DeviceFactory,
        provider: ProviderFactory,
        workloads: WorkloadChoice,
        versions: Mapping[str, str],
    ) -> None:
        """``compiler``, ``judge``, ``device`` (for a kind) and ``provider`` (for a run's settings) are factories."""
        self.workdir = workdir
        """Folder of the store, accepted kernels and the searches' evaluations."""
        self.store = store
        """Keeps events and artifacts."""
        self.provider = provider
        """Makes the provider that a run's settings name. Raises InputError."""
        self.workloads = workloads
        """Chooses the workloads that the judge will run on a device; the main one is always compiled."""
        self.versions = versions
        """Versions of packages, for provenance."""
        self.spent: Callable[[], str] = lambda: ""
        """Why none of the runs may request a further candidate, as "budget: …"; "" while they may. A run then stops,
        and can be resumed."""
        self._make_compiler, self._make_judge, self._make_device = compiler, judge, device
        self._lock = threading.RLock()
        self._devices_lock = threading.Lock()  # held while a device starts
        self._compiler: Compiler | None = None
        self._judge: Judge | None = None
        self._devices: dict[str, Device] = {}
        self._at_close: list[Callable[[], None]] = []

    def compiler(self) -> Compiler:
        """Raises SetupError."""
        with self._lock:
            self._compiler = self._compiler or self._make_compiler()
            return self._compiler

    def judge(self) -> Judge:
        with self._lock:
            self._judge = self._judge or self._make_judge()
            return self._judge

    def device(self, kind: str) -> Device:
        """The device of this kind, always the same one. Raises SetupError, InputError."""
        with self._devices_lock:
            if kind not in self._devices:
                self._devices[kind] = self._make_device(kind)
            return self._devices[kind]

    def at_close(self, end: Callable[[], None]) -> None:
        """Registers ``end``, which :meth:`close` calls before compiler, devices and store are closed."""
        self._at_close.append(end)

    def close(self) -> None:
        """Calls the functions given to :meth:`at_close`, closes compiler and devices, then the store."""
        for end in self._at_close:
            end()
        for part in (self._compiler, *self._devices.values()):
            close = getattr(part, "close", None)
            if close is not None:
                close()
        self.store.close()
