"""What the lower floors of the emulator ask of objects that are made above them, as protocols: lanes, blocks, and the
code that these execute. A floor that asks for more says so where it does, in a protocol that extends one of these."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from cutegen_lab.emulator.ptx.syntax import Instruction
from cutegen_lab.emulator.ptx.types import Array


class HasLanes(Protocol):
    """A group, or part of one: what naming a thread needs."""

    gid: Array  # numbers of the threads: block of the chunk · padded threads + thread

    @property
    def hardware(self) -> bool: ...  # a bulk copy does it for the threads …

    @property
    def until(self) -> tuple[int, int] | None: ...  # … until an mbarrier (column of the clocks) has had so many phases

    @property
    def copies(self) -> bool: ...  # cp.async does it


class Group(HasLanes, Protocol):
    """Lanes that execute together, in ascending order of ``gid``."""

    n: int  # how many
    pc: int  # the basic block that they execute

    @property
    def block(self) -> Array: ...  # by lane: its block of the chunk

    @property
    def lane(self) -> Array: ...  # by lane: its number in its warp

    def whole(self) -> bool: ...  # do they form complete warps?

    def warps(self) -> int: ...  # how many warps have a lane here

    def warp_numbers(self) -> Array: ...  # which these are, counted over the chunk


class GeneratedCode(Protocol):
    """A translated kernel, as its accesses are told apart and named."""

    @property
    def name(self) -> str: ...  # of the kernel

    @property
    def file_name(self) -> str: ...  # which frames of generated code have

    @property
    def source_map(self) -> Mapping[int, Instruction]: ...  # line of generated code -> instruction

    @property
    def access_unit(self) -> int: ...  # bytes of the narrowest access

    @property
    def fences_global_proxy(self) -> bool: ...  # some fence lets bulk copies see what threads wrote to global memory

    @property
    def guesses(self) -> frozenset[Instruction]: ...  # loads for a compare-and-swap to compare with


class Blocks(Protocol):
    """A chunk: the blocks that run together."""

    count: int  # how many
    cluster_size: int  # blocks of a cluster
    padded_threads: int  # of a block, in whole warps

    @property
    def program(self) -> GeneratedCode: ...  # what they execute

    @property
    def numbers(self) -> Array: ...  # of the blocks in the grid, cluster by cluster

    @property
    def exited(self) -> Array: ...  # by thread: has it ended?

    def instruction(self) -> Instruction | None: ...  # the one that is being executed

    def place(self, gid: int) -> tuple[tuple[int, int, int], tuple[int, int, int]]: ...  # (block, thread) coordinates

    def coordinates(self, number: int) -> tuple[int, int, int]: ...  # of any block of the grid
