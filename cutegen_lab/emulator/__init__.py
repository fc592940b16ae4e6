"""A PTX machine on NumPy: executes launch plans on the CPU, checks every access, counts what moves.

Reading order: ``ptx`` (text to instructions) → ``emit`` and ``isa`` (opcodes to Python) → ``cfg`` (blocks, liveness,
rows) → ``program`` (a compiled kernel) → ``chunk``, ``group``, ``schedule`` (lanes in lockstep) → ``run`` (a plan).
Asynchronous hardware: ``tensormap``, ``tiles`` and ``bulk`` (TMA), ``matrix_descriptor``, ``wgmma`` and
``registers_in_flight``, ``async_races`` (what it does unordered with the threads); ``stuck`` explains a deadlock.
Beside it: ``order`` (of blocks), ``clocks`` and ``lane_clocks`` (of warps, and of lanes apart), ``races`` and
``block_races`` (what nothing orders; in small runs, and in a few clusters of large ones), ``copies``,
``reads_in_flight``, ``stores_in_flight`` and ``bulk_groups`` (copies that nobody has waited for), ``overlap`` (of
launches).
To add an opcode, write one function in the file of its section in ``isa``.
"""

from cutegen_lab.emulator.execution_order import Order
from cutegen_lab.emulator.faults import Trap, Unsupported
from cutegen_lab.emulator.options import Options
from cutegen_lab.emulator.run import Result, run_plan

__all__ = ["Options", "Order", "Result", "Trap", "Unsupported", "run_plan"]
