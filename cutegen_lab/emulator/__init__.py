"""A PTX emulator on NumPy: executes launch plans on the CPU, checks every access, counts memory traffic.

Reading order: ``ptx`` (text to instructions) → ``translate`` and ``isa`` (instructions to Python, one function for each
opcode) → ``program`` (a compiled kernel) → ``machine`` (CTAs in lockstep, their warps' schedule, barriers, deadlocks) →
``run`` (a launch plan). ``memory`` is global, shared and local memory; ``tma`` and ``mma`` are bulk copies and tensor
cores; ``races`` finds unordered accesses by vector clocks; ``counters`` counts traffic; ``analysis`` is static.

To add an opcode, write one function in the file of its section in ``isa``.
"""

from cutegen_lab.emulator.execution_order import Order
from cutegen_lab.emulator.faults import Trap, Unsupported
from cutegen_lab.emulator.options import Options
from cutegen_lab.emulator.run import Result, run_plan

__all__ = ["Options", "Order", "Result", "Trap", "Unsupported", "run_plan"]
