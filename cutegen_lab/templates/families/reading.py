"""Loads of what is read while as much is written: see ``kernels/device/lasting_loads.py``."""

from cutegen_lab.templates.emit.bundle import kernel_file

READ = "\n\n\n".join(kernel_file("device.lasting_loads").definitions.values())


def lasting(piece: str) -> str:
    """A device function whose loads are ``load_lasting``'s."""
    return piece.replace("LOAD = cute.autovec_copy", "LOAD = load_lasting").replace(
        "cute.autovec_copy(gX", "load_lasting(gX"
    )
