"""Chooses the device of a run."""

from __future__ import annotations

import re

from cutegen_lab.core.errors import InputError, SetupError
from cutegen_lab.core.hints import Advice, Hint, did_you_mean
from cutegen_lab.core.protocols import Device

KINDS = ("auto", "cuda", "cuda:N", "emulator")
_KIND = re.compile(r"(auto|emulator|cuda)|cuda:(\d+)")


def select(kind: str = "auto") -> Device:
    """``cuda`` (the first visible GPU), ``cuda:N`` and ``emulator`` name a device; ``auto`` is a GPU if one is usable,
    otherwise the emulator.

    Raises :class:`SetupError` if the named GPU does not exist, :class:`InputError` for any other name.
    """
    match = _KIND.fullmatch(kind)
    if not match:
        raise InputError(
            f"unknown device {kind!r}", f"{did_you_mean(kind, KINDS)} Use one of: {', '.join(KINDS)}.".strip()
        )
    if kind != "emulator":
        try:
            return _cuda(int(match[2] or 0))
        except SetupError:
            if kind != "auto":
                raise
    from cutegen_lab.devices.emulator import EmulatorDevice

    return EmulatorDevice()


def _cuda(index: int) -> Device:
    try:
        from cutegen_lab.devices.cuda import CudaDevice
    except ImportError as error:
        raise SetupError(f"no CUDA device can be used: {error}", Hint(Advice.DOCTOR)) from None
    return CudaDevice(index)
