"""Which re-reads hit which cache, against an H200's counters and against sums by hand."""

from __future__ import annotations

from collections import defaultdict
from statistics import fmean

import pytest

from benchmarks.harness import RESULTS, read_table
from cutegen_lab.core.artifact import KernelInfo, Launch
from cutegen_lab.core.roofline import GPUS
from cutegen_lab.perfmodel import occupancy
from cutegen_lab.perfmodel.traffic import Traffic, traffic

H200 = GPUS["H200"]
KIB, MIB = 1 << 10, 1 << 20


def launch(blocks: int, threads: int, cluster: int = 1) -> Launch:
    return Launch("k", (blocks, 1, 1), (threads, 1, 1), (cluster, 1, 1), 0, (), ())


def moved(passes: int, once: float, at: Launch, stored: float = 0.0, spill: int = 0, **more: float) -> Traffic:
    """Of a kernel with 20 registers that reads ``once`` bytes ``passes`` times over."""
    counters = {
        "global_load_bytes": passes * once, "global_load_requests": 1.0, "dram_load_bytes": once,
        "global_store_bytes": stored, "global_store_sectors": stored / 32, "dram_store_bytes": stored,
        "load_bytes_in_flight": 8.0, **more,
    }  # fmt: skip
    kernel = KernelInfo("k", 20, spill, spill, 0, 0, ())
    return traffic(counters, at, kernel, occupancy(at, kernel, H200), H200)


# Softmax of bf16[rows, columns] in three passes on an H200, by ncu: threads and rows a block; bytes from L2 and from
# DRAM over the input's.
ROWS = [
    ("128 KB of rows a multiprocessor fit L1", 32768, 1024, 1024, 32, 1.00, 1.00),
    ("256 KB partly do", 4096, 4096, 1024, 32, 1.80, 1.08),
    ("512 KB do not, nor 66 MB L2", 32768, 1024, 64, 8, 3.00, 3.00),
    ("2 MB of each do not", 1024, 32768, 256, 32, 3.00, 3.00),
]


@pytest.mark.parametrize(("rows", "columns", "threads", "a_block", "l2", "dram"), [c[1:] for c in ROWS],
                         ids=[c[0] for c in ROWS])  # fmt: skip
def test_rereads_hit_what_keeps_the_resident_rows(
    rows: int, columns: int, threads: int, a_block: int, l2: float, dram: float
) -> None:
    once = 2.0 * rows * columns
    got = moved(3, once, launch(rows // a_block, threads))
    assert got.l2_bytes / once == pytest.approx(l2, abs=0.3)
    assert got.dram_bytes / once == pytest.approx(dram, abs=0.3)
    assert 0 <= got.far <= got.far + got.near <= 1 + 1e-9


def test_waiting_for_a_cluster_loses_what_l1_has() -> None:
    """Eight blocks per multiprocessor: hits are divided by 1 + 0.4 · 7, so that 2 − 2 / 3.8 passes more cross L2."""
    alone = moved(3, 32 * MIB, launch(4096, 256))
    clusters = moved(3, 32 * MIB, launch(4096, 256, cluster=4))
    assert alone.l2_bytes == pytest.approx(32 * MIB)
    assert clusters.l2_bytes == pytest.approx((1 + 2 - 2 / 3.8) * 32 * MIB)
    assert clusters.dram_bytes == alone.dram_bytes


def test_hot_bytes_stay_in_l1() -> None:
    """A second tensor of few bytes that every block reads again, beside one that is read once."""
    got = moved(2, 128 * MIB, launch(64, 1024), hot_load_bytes=128.0 * MIB)
    assert got.l2_bytes == got.dram_bytes == 128 * MIB
    assert (got.far, got.near) == (0.5, 0.0)


def test_cp_async_goes_past_l1() -> None:
    got = moved(4, 4 * MIB, launch(264, 128), shared_copy_requests=1.0)
    assert got.l2_bytes == 0 and got.bulk_bytes == 16 * MIB and got.dram_bytes == 4 * MIB and got.near == 0.75


@pytest.mark.parametrize(("loaded", "stored", "left"), [(4, 4, 4), (64, 64, 21), (128, 64, 14), (16, 64, 33.6)])
def test_what_crossed_last_is_still_in_l2(loaded: int, stored: int, left: float) -> None:
    """42 of 60 MiB: all that is stored, or the stores' share."""
    assert moved(1, loaded * MIB, launch(4096, 256), stored * MIB).left_bytes == pytest.approx(left * MIB)


def test_stores_that_kernels_of_ours_left_in_l2() -> None:
    """By NVIDIA's counter of bytes written to DRAM, within 8 MB of 33 to 134 MB stored, each kernel's three configs."""
    _, rows = read_table(RESULTS / "counters_on_gpu.json")
    off = defaultdict[str, list[float]](list)
    for row in rows:
        loads, stores = (row["counters"][f"dram_{kind}_bytes"] for kind in ("load", "store"))
        if stores["emulator"] > 3e7 and not row["case"].startswith("honest"):
            got = moved(1, loads["gpu"], launch(4096, 256), stores["emulator"])
            off[row["case"].rpartition("-")[0]].append(got.left_bytes - (stores["emulator"] - stores["gpu"]))
    assert len(off) == 7 and all(len(each) == 3 for each in off.values())
    assert all(abs(fmean(each)) < 8e6 for each in off.values()), off


@pytest.mark.parametrize(
    ("in_flight", "lines", "loaded", "alone"),
    [(32, 8, 1, 0.0), (96, 8, 1, (192 / 256 - 0.5) / 0.7), (192, 8, 1, 1.0), (32, 12, 1, 0.5), (32, 16, 1, 1.0),
     (32, 8, 2 / 3, 0.5), (32, 8, 0.5, 1.0)],
)  # fmt: skip
def test_parts_of_sectors_join_where_l1_has_room(in_flight: int, lines: int, loaded: float, alone: float) -> None:
    """Each sector is written twice: by 2,048 threads a multiprocessor that hold 64, 192 and 384 of 256 KB of loads, by
    instructions of 8 to 16 lines, and where up to twice as much is stored as loaded. Alone they make L2 count 2.8
    sectors for each, and joined 1.55."""
    stored = float(16 * MIB)
    got = moved(
        1, loaded * 16 * MIB, launch(4096, 256), stored, global_store_sectors=2 * stored / 32,
        load_bytes_in_flight=in_flight, global_store_lines=1.0 * lines, global_store_requests=1.0,
    )  # fmt: skip
    assert got.dram_bytes == pytest.approx((1 + loaded + 0.55 * 1.8 * alone) * 16 * MIB)
    assert got.l2_bytes == pytest.approx((1 + loaded + 1.8 * alone + 0.55 * (1 - alone)) * 16 * MIB)


def test_spills_are_written_back() -> None:
    got = moved(1, 16 * MIB, launch(1024, 256), spill=64)
    assert got.dram_bytes == 16 * MIB + 64 * 1024 * 256
    assert got.l2_bytes == 16 * MIB + 2 * 64 * 1024 * 256
    assert got.spilled_bytes == 2 * 64 * 1024 * 256


def test_what_is_spilled_beyond_a_few_registers_is_spilled_in_each_round_of_the_loop() -> None:
    few, many = (moved(1, 16 * MIB, launch(1024, 256), spill=spill, turns=64.0) for spill in (64, 512))
    assert few.spilled_bytes == 128 * 1024 * 256
    assert many.spilled_bytes == (128 + 64 * (1024 - 128)) * 1024 * 256
