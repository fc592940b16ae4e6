"""A block that exits while bulk copies may still read its shared memory, and its twin that waits for them."""

from __future__ import annotations

import numpy as np
import pytest

from cutegen_lab.core.verdict import Fault, Verdict
from tests.emulator.tma.tensor_map_kernel import EXPECT, IN, MAP, WAIT, run

TENSOR = "  @%p1 cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd1, {0, 0}], [%r2];\n"
PLAIN = "  @%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd3], [%r2], 256;\n"
REDUCES = "  @%p1 cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd3], [%r2], 256;\n"
COMMIT, READ = "  cp.async.bulk.commit_group;\n", "  cp.async.bulk.wait_group.read 0;\n"
DONE, ONE_LEFT = "  cp.async.bulk.wait_group 0;\n", "  cp.async.bulk.wait_group.read 1;\n"
OTHER_WARP = "  setp.ge.s32 %p7, %r1, 32; @!%p7 bra END;\n"  # the first warp, which stores, does not wait
WAITS = {
    "the read": TENSOR + COMMIT + READ,
    "all of it": PLAIN + COMMIT + DONE,
    "two groups": PLAIN + COMMIT + TENSOR + COMMIT + READ,
    "two copies of a group": REDUCES + TENSOR + COMMIT + READ,
}
DOES_NOT = {
    "no wait": TENSOR + COMMIT,
    "no group": TENSOR + READ,
    "a plain copy": PLAIN + COMMIT,
    "a reduction": REDUCES + COMMIT,
    "one group too few": PLAIN + COMMIT + TENSOR + COMMIT + ONE_LEFT,
    "committed after the wait": PLAIN + READ + COMMIT,
    "another warp waits": TENSOR + COMMIT + OTHER_WARP + READ,
}


def fault_in(body: str, cluster: int = 1) -> Fault | None:
    tensors = [np.arange(256, dtype=np.uint32), np.zeros(256, np.uint32)]
    return run(IN + body + "END:\n  ret;\n", MAP, tensors, 1, cluster, threads=64, inputs=None).execution.fault


@pytest.mark.parametrize("name", WAITS)
def test_a_block_may_end_that_has_waited(name: str) -> None:
    assert fault_in(WAITS[name]) is None


@pytest.mark.parametrize("name", DOES_NOT)
def test_one_that_has_not_is_found(name: str) -> None:
    fault = fault_in(DOES_NOT[name])
    assert fault is not None and fault.verdict is Verdict.NON_DETERMINISTIC, fault
    assert "a block ends while a bulk copy may still read its shared memory" in fault.message
    assert "bulk_group" in fault.instruction and "wait_group" not in fault.instruction


TO_THE_OTHER = (
    EXPECT.replace("BYTES", "512")
    + """
  barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned; xor.b32 %r10, %r4, 1;
  mapa.shared::cluster.u32 %r11, %r2, %r10; mapa.shared::cluster.u32 %r12, %r3, %r10;
  @%p1 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r11+1024], [%r2], 512, [%r12];
"""
    + WAIT
)
MET = "  barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n"


def test_a_copy_to_another_block_is_over_once_that_block_says_so() -> None:
    assert fault_in(TO_THE_OTHER + MET, cluster=2) is None
    fault = fault_in(TO_THE_OTHER, cluster=2)
    assert fault is not None and fault.verdict is Verdict.NON_DETERMINISTIC
    assert fault.message.startswith("a block ends while") and "shared::cluster.shared::cta" in fault.instruction


TO_A_PEER = """{first}  xor.b32 %r10, %r4, 1; mapa.shared::cluster.u32 %r11, %r2, %r10;
  {access}
"""
STORE = "st.shared::cluster.b32 [%r11+2048], %r4;"
ADD = "mov.b32 %r5, 0; atom.shared::cluster.add.u32 %r5, [%r11+2048], 1;"


@pytest.mark.parametrize("access", [STORE, ADD])
@pytest.mark.parametrize("relaxed", ["", ".relaxed"])
def test_a_block_reaches_for_another_once_it_knows_that_it_has_begun(access: str, relaxed: str) -> None:
    """CUDA C++ guide, "Distributed Shared Memory": all blocks must have started executing."""
    met = MET.replace("arrive", "arrive" + relaxed)
    assert fault_in(TO_A_PEER.format(first=met, access=STORE) + MET, cluster=2) is None
    fault = fault_in(TO_A_PEER.format(first="", access=access) + MET, cluster=2)
    assert fault is not None and fault.verdict is Verdict.NON_DETERMINISTIC, fault
    assert "of its cluster, which may not have started" in fault.message
