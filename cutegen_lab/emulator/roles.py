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
    def hardware(self) -> bool: ...  # a bulk copy on behalf of the threads …

    @property
    def until(self) -> tuple[int, int] | None: ...  # … until (column of an mbarrier, completed phases)

    @property
    def copies(self) -> bool: ...  # a cp.async


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
    def name(self) -> str: ...  # of the kernel

    @property
    def file_name(self) -> str: ...  # of frames of generated code

    @property
    def source_map(self) -> Mapping[int, Instruction]: ...  # line of generated code -> instruction

    @property
    def access_unit(self) -> int: ...  # bytes of the narrowest access

    @property
    def fences_global_proxy(self) -> bool: ...  # some fence orders global writes of threads before bulk copies

    @property
    def guesses(self) -> frozenset[Instruction]: ...  # loads for a compare-and-swap to compare with


class Blocks(Protocol):
    """A CTA batch: the blocks that run together."""

    count: int  # number of blocks
    cluster_size: int  # blocks of a cluster
    padded_threads: int  # of a block, in whole warps

    @property
    def program(self) -> GeneratedCode: ...  # what they execute

    @property
    def numbers(self) -> Array: ...  # of the blocks in the grid, cluster by cluster

    @property
    def exited(self) -> Array: ...  # by thread

    def instruction(self) -> Instruction | None: ...  # that is being executed

    def place(self, gid: int) -> tuple[tuple[int, int, int], tuple[int, int, int]]: ...  # (block, thread) coordinates

    def coordinates(self, number: int) -> tuple[int, int, int]: ...  # of any block of the grid
