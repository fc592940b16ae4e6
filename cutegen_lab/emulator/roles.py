"""Protocols that lower packages of the emulator use for objects of higher ones: lanes, blocks and generated code. A
package that needs more defines a protocol that extends one of these."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from cutegen_lab.emulator.ptx.syntax import Instruction
from cutegen_lab.emulator.ptx.types import Array


class HasLanes(Protocol):
    """Some threads that access memory."""

    gid: Array  # thread numbers: block in the CTA batch · padded threads + thread

    @property
    def hardware(self) -> bool: ...  # whether the access is by a bulk copy that the threads issued

    @property
    def until(self) -> tuple[int, int] | None: ...  # when the read is complete: (column of an mbarrier, phases)

    @property
    def copies(self) -> bool: ...  # whether the access is by a cp.async


class Group(HasLanes, Protocol):
    """Lanes that execute together, in ascending order of ``gid``."""

    n: int  # number of lanes
    pc: int  # the basic block that they execute

    @property
    def block(self) -> Array: ...  # by lane: its block in the CTA batch

    @property
    def lane(self) -> Array: ...  # by lane: its number in its warp

    def whole(self) -> bool: ...  # True if they form complete warps

    def warps(self) -> int: ...  # number of warps with a lane in the group

    def warp_numbers(self) -> Array: ...  # numbers of these warps in the CTA batch


class GeneratedCode(Protocol):
    """The part of a translated kernel that identifies accesses."""

    @property
    def name(self) -> str: ...  # name of the kernel

    @property
    def file_name(self) -> str: ...  # file name in frames of generated code

    @property
    def source_map(self) -> Mapping[int, Instruction]: ...  # line of generated code -> instruction

    @property
    def access_unit(self) -> int: ...  # bytes of the narrowest access

    @property
    def fences_global_proxy(self) -> bool: ...  # whether some fence orders global writes of threads before bulk copies

    @property
    def guesses(self) -> frozenset[Instruction]: ...  # loads of values that a compare-and-swap expects


class Blocks(Protocol):
    """A CTA batch: the blocks that run together."""

    count: int  # number of blocks
    cluster_size: int  # blocks per cluster
    padded_threads: int  # threads per block, rounded up to whole warps

    @property
    def program(self) -> GeneratedCode: ...  # the program that they execute

    @property
    def numbers(self) -> Array: ...  # numbers of the blocks in the grid, cluster by cluster

    @property
    def exited(self) -> Array: ...  # whether each thread has exited

    def instruction(self) -> Instruction | None: ...  # the instruction being executed

    # (block, thread) coordinates of thread ``gid``
    def place(self, gid: int) -> tuple[tuple[int, int, int], tuple[int, int, int]]: ...

    def coordinates(self, number: int) -> tuple[int, int, int]: ...  # coordinates of any block of the grid
