"""Makes a picture from the options of :mod:`cutegen_lab.layouts.options`."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from typing import Any

from cutegen_lab.core.dtypes import DType, dtypes_for
from cutegen_lab.core.errors import InputError
from cutegen_lab.core.hints import Advice, Hint, did_you_mean
from cutegen_lab.layouts import algebra, shared
from cutegen_lab.layouts.access import BANK_BYTES, Access, access, indices, places_of
from cutegen_lab.layouts.fragments import ITEMSIZE, SM90, Fragment, Instruction, fragment, tiled_copy
from cutegen_lab.layouts.layout import AnyLayout, Layout, Swizzled, plain_part
from cutegen_lab.layouts.notation import read_layout, read_swizzle, read_tiler
from cutegen_lab.layouts.panels import (
    Grid,
    Window,
    coordinates_panel,
    fragment_panel,
    left_out,
    memory_panel,
    tile_numbers,
    values_panel,
    wavefronts_panel,
)
from cutegen_lab.layouts.picture import Picture

MOST_ELEMENTS = 1 << 18
_LISTED = 1 << 14  # maximum number of indices in the facts
_PIECE = 16  # bytes that a swizzle moves together
_REGISTER_CELLS = 512  # maximum number of cells in a panel of registers
_OPERANDS = ("A", "B", "C", "A-registers")


@dataclass(frozen=True)
class Request:
    """What to draw, as the texts of the options."""

    layout: str = ""
    swizzle: str = ""
    dtype: str = ""
    banks: bool = False
    access: str = ""
    threads: str = ""
    divide: str = ""
    compose: str = ""
    mma: tuple[str, ...] = ()
    major: str = "k"
    tma: tuple[str, ...] = ()
    copy: tuple[str, ...] = ()
    rows: str = ""
    columns: str = ""

    @classmethod
    def of(cls, arguments: object) -> Request:
        """The request of parsed arguments, which have the names of the options."""
        given = {field.name: getattr(arguments, field.name) for field in fields(cls)}
        return cls(**{name: _unquoted(name, value) for name, value in given.items()})

    def picture(self) -> Picture:
        """The picture. Raises InputError for what cannot be read or does not exist."""
        chosen = [name for name in ("layout", "mma", "tma", "copy") if getattr(self, name)]
        if len(chosen) != 1:
            message = (
                "there is nothing to draw" if not chosen else f"{' and '.join(chosen)} cannot be drawn in one picture"
            )
            raise InputError(message, Hint(Advice.DRAW_ONE))
        if self.mma:
            return self._mma()
        if self.copy:
            threads, values = (_plain(read_layout(text)) for text in self.copy)
            return self.fragment_picture(tiled_copy(threads, values))
        if self.tma:
            return self._tma()
        return self._layout()

    def _layout(self) -> Picture:
        itemsize = itemsize_of(self.dtype or "f32")
        layout = read_layout(self.layout)
        if self.swizzle:
            if isinstance(layout, Swizzled):
                raise InputError(f"{layout} has a swizzle already", Hint(Advice.LEAVE_OUT, ("swizzle",)))
            swizzle = read_swizzle(self.swizzle, itemsize)
            layout = layout if swizzle is None else Swizzled(swizzle, 0, layout)
        return self._memory(str(layout), layout, itemsize, self.banks, BANK_BYTES)

    def _tma(self) -> Picture:
        if len(self.tma) not in (2, 3):
            raise InputError(f"tma takes a box, a dtype and a swizzle, not {' '.join(self.tma)!r}", _TMA_EXAMPLE)
        extents, dtype = _extents(self.tma[0], "tma", _TMA_EXAMPLE), self.tma[1]
        mode = self.tma[2] if len(self.tma) == 3 else "none"
        itemsize = itemsize_of(dtype)
        layout = shared.box(extents, itemsize, mode)
        title = f"TMA box {self.tma[0]} of {dtype}, swizzle {mode}: {layout}"
        return self._memory(title, layout, itemsize, True, _PIECE)

    def _mma(self) -> Picture:
        if len(self.mma) != 4:
            message = f"mma takes an architecture, a shape, a dtype and an operand, not {' '.join(self.mma)!r}"
            raise InputError(message, _MMA_EXAMPLE)
        arch, shape, dtype, operand = self.mma
        extents = _extents(shape, "mma", _MMA_EXAMPLE)
        if len(extents) != 3:
            raise InputError(f"{shape!r} is no shape of an instruction", _MMA_EXAMPLE)
        instruction = Instruction(arch.replace("sm_", "sm").removesuffix("a"), extents[:3], _short(dtype))
        known = {name.lower(): name for name in _OPERANDS} | {"d": "C"}
        if operand.lower() not in known:
            hint = f"{did_you_mean(operand, _OPERANDS)} Use {', '.join(_OPERANDS)}.".strip()
            raise InputError(f"there is no operand {operand!r}", hint)
        name = known[operand.lower()]
        if instruction.arch != SM90 or name in ("C", "A-registers"):
            return self.fragment_picture(fragment(instruction, name[0]))
        mode = self.swizzle or "128B"
        layout = shared.operand_tile(instruction, name, mode, self.major == "k")
        title = (
            f"{name} of wgmma {instruction} {instruction.dtype} in shared memory, {self.major}-major, swizzle {mode}"
        )
        return self._memory(f"{title}: {layout}", layout, instruction.itemsize, True, _PIECE)

    def fragment_picture(self, found: Fragment) -> Picture:
        """Elements and registers of a thread-value layout. Raises InputError for options of layouts in memory."""
        self._refuse("banks", "access", "divide", "compose", "swizzle", why="registers have no addresses")
        window, shape = self._window(), (found.rows, found.columns)
        panel, cut = fragment_panel(found, window), left_out(*window.within(*shape), shape)
        further = [values_panel(found, window)] if len(panel.cells) <= _REGISTER_CELLS else []
        threads, values = (mode.size for mode in found.layout.modes)
        holders = found.owners()
        times = threads * values // len(holders)
        notes = (
            f"{threads} threads, {values} values each: {found.layout} is (thread, value) → row + {found.rows} · column",
            *([f"Each element is held {times} times; its first holder is drawn"] if times > 1 else []),
            *cut,
        )
        owners = [[row, column, *owner] for (row, column), owner in sorted(holders.items())]
        facts = {
            "title": found.title, "layout": str(found.layout), "rows": found.rows, "columns": found.columns,
            "threads": threads, "values": values, "owners": owners,
        }  # fmt: skip
        return Picture(found.title, (panel, *further), notes, facts, cut)

    def _memory(self, title: str, layout: AnyLayout, itemsize: int, banks: bool, piece: int) -> Picture:
        """A layout of elements in memory. ``piece``: bytes per cell if ``banks``."""
        if layout.size > MOST_ELEMENTS:
            message = f"{layout} has {layout.size:,} coordinates, over the {MOST_ELEMENTS:,} of a picture"
            raise InputError(message, Hint(Advice.DRAW_PART))
        notes, tiles = [], None
        facts: dict[str, Any] = {}
        if self.compose:
            title = f"{layout} o {self.compose}"
            layout = algebra.swizzle_kept(layout, lambda plain: algebra.composition(plain, read_tiler(self.compose)))
            notes.append(f"Composition: {layout}")
        if self.divide:
            tiler = read_tiler(self.divide)
            divided = algebra.swizzle_kept(layout, lambda plain: algebra.zipped_divide(plain, tiler))
            tiles = _tiles(layout, tiler)
            notes.append(f"zipped_divide by {algebra.tiler_text(tiler)}: {divided}")
            facts["divided"] = str(divided)
        reading = self._access(layout, itemsize)
        banks = banks or reading is not None
        grid = Grid.of(layout, max(1, (reading.width if reading else piece) // itemsize) if banks and not tiles else 1)
        window = self._window()
        panels = [coordinates_panel(grid, window, itemsize, reading, tiles, banks and tiles is None)]
        if reading:
            panels.append(wavefronts_panel(reading))
            notes += _summary_notes(reading)
            facts["access"] = _facts(reading)
        elif tiles is None and (further := memory_panel(grid, window, itemsize, banks)):
            panels.append(further)
        if banks and tiles is None:
            notes.append(f"Elements of {itemsize} bytes; colours: banks, a hue for each 16 bytes of a 128-byte line")
        if isinstance(layout, Swizzled) and itemsize > 1 and banks:
            at, lower = layout.swizzle, itemsize.bit_length() - 1
            addresses = f"Sw<{at.bits},{at.base + lower},{at.shift}>"
            notes.append(f"{at} acts on element indices, as in a composed layout; on byte addresses it is {addresses}")
        cut = left_out(*window.within(*grid.shape), grid.shape)
        plain = plain_part(layout)
        facts |= {
            "title": title, "layout": str(layout), "shape": plain.shape, "stride": plain.stride, "size": layout.size,
            "cosize": layout.cosize, "itemsize": itemsize,
            "indices": indices(layout) if layout.size <= _LISTED else None,
        }  # fmt: skip
        return Picture(title, tuple(panels), (*notes, *cut), facts, cut)

    def _access(self, layout: AnyLayout, itemsize: int) -> Access | None:
        if not self.access:
            if self.threads:
                raise InputError("threads say where an access goes, and no access is given", Hint(Advice.GIVE_ACCESS))
            return None
        self._refuse("divide", why="an access colours by banks")
        found = re.fullmatch(r"(\d{1,3})\s*[bB]?", self.access.strip())
        if found is None:
            raise InputError(f"cannot read the access {self.access!r}", "Write the bytes per thread: 4B, 8B or 16B.")
        threads = read_layout(self.threads or "32")
        if isinstance(threads, Swizzled):
            raise InputError("a layout of threads takes no swizzle", "Write it as 32, (1,32) or (8,4):(4,1).")
        return access(layout, itemsize, int(found[1]), places_of(threads))

    def _window(self) -> Window:
        return Window(_range(self.rows, "rows"), _range(self.columns, "columns"))

    def _refuse(self, *names: str, why: str) -> None:
        for name in names:
            if getattr(self, name):
                raise InputError(f"{name!r} does not apply: {why}", Hint(Advice.LEAVE_OUT, (name,)))


def _unquoted(name: str, value: Any) -> Any:
    """A word or words, without quotes from a notebook."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        return value.strip("\"'")
    words = [word.strip("\"'") for word in value or ()]
    return " ".join(words) if name == "layout" else tuple(words)


_TMA_EXAMPLE = Hint(Advice.WRITE_AS, ("tma 64x64 bf16 128B",))
_MMA_EXAMPLE = Hint(Advice.WRITE_AS, ("mma sm90 64x128x16 f16 C",))


def _tiles(layout: AnyLayout, tiler: algebra.Tiler) -> list[int]:
    plain = plain_part(layout)
    if not isinstance(tiler, tuple):  # a tiler of all coordinates
        whole = algebra.logical_divide(Layout.dense(plain.size), tiler)
        return tile_numbers(Layout.dense(plain.size), [whole])
    dense = [Layout.dense(mode.size) for mode in plain.modes]
    return tile_numbers(plain, [algebra.logical_divide(mode, part) for mode, part in zip(dense, tiler, strict=False)])


def _summary_notes(reading: Access) -> list[str]:
    count = f"{len(reading.wavefronts)} wavefront{'s' * (len(reading.wavefronts) != 1)}"
    conflicts = f"{reading.conflicts or 'no'} conflict{'s' * (reading.conflicts != 1)}"
    return [
        f"{len(reading.lanes)} threads read {reading.width} bytes each: {count}, {reading.ideal} at best, {conflicts}"
    ]


def _facts(reading: Access) -> dict[str, Any]:
    return {
        "bytes": reading.width, "threads": len(reading.lanes), "wavefronts": len(reading.wavefronts),
        "ideal": reading.ideal, "conflicts": reading.conflicts,
        "banks": [{str(bank): lanes for bank, lanes in one.banks.items()} for one in reading.wavefronts],
    }  # fmt: skip


def _plain(layout: AnyLayout) -> Layout:
    if isinstance(layout, Swizzled):
        raise InputError(f"{layout} has a swizzle", "Give layouts of threads and of values without one.")
    return layout


def itemsize_of(dtype: str) -> int:
    """Bytes per element of type ``dtype``. Raises InputError for an unknown dtype."""
    short = _short(dtype)
    return ITEMSIZE[short] if short in ITEMSIZE else DType(short).itemsize


def _short(dtype: str) -> str:
    """The short name of a dtype. Raises InputError for an unknown one."""
    if dtype in ITEMSIZE:
        return dtype
    try:
        return DType.parse(dtype).value
    except ValueError:
        raise InputError(f"unknown dtype {dtype!r}", f"{dtypes_for(dtype)}.") from None


def _extents(text: str, name: str, example: Hint) -> tuple[int, ...]:
    if not re.fullmatch(r"\d{1,6}(x\d{1,6})*", text):
        raise InputError(f"{name}: cannot read {text!r}", example)
    return tuple(map(int, text.split("x")))


def _range(text: str, name: str) -> tuple[int, int] | None:
    if not text:
        return None
    found = re.fullmatch(r"(\d{0,9}):(\d{1,9})", text)
    if found is None or int(found[2]) <= int(found[1] or 0):
        raise InputError(f"cannot read {name} {text!r}", Hint(Advice.WRITE_AS, (f"{name} 0:64",)))
    return int(found[1] or 0), min(int(found[2]), int(found[1] or 0) + 256)
