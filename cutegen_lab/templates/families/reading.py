"""Loads of what is read while as much is written: see ``kernels/device/lasting_loads.py``."""

from cutegen_lab.templates.emit.bundle import kernel_file

READ = "\n\n\n".join(kernel_file("device.lasting_loads").definitions.values())
