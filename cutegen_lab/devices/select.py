"""Which device a run is judged on."""

from __future__ import annotations

from cutegen_lab.core.errors import InputError, SetupError
from cutegen_lab.core.protocols import Device

KINDS = ("auto", "cuda", "emulator")


def select(kind: str = "auto") -> Device:
    """``cuda`` and ``emulator`` are taken at their word; ``auto`` is a GPU where one is usable, else the emulator.

    Raises :class:`SetupError` where ``cuda`` is asked for and there is none, :class:`InputError` for another word.
    """
    if kind not in KINDS:
        raise InputError(f"unknown device {kind!r}", f"Use one of: {', '.join(KINDS)}.")
    if kind != "emulator":
        usable, why_not = _cuda()
        if usable is not None:
            return usable
        if kind == "cuda":
            raise SetupError(
                f"no CUDA device can be used: {why_not}", "Use --device emulator, or see `cutegen doctor`."
            )
    from cutegen_lab.devices.emulator import EmulatorDevice

    return EmulatorDevice()


def _cuda() -> tuple[Device | None, str]:
    try:
        from cutegen_lab.devices.cuda import CudaDevice
    except ImportError as error:
        return None, str(error)
    try:
        return CudaDevice(), ""
    except SetupError as error:
        return None, error.message
