"""Scans along rows and down columns, from either end, with and without what stands at a position itself."""

from __future__ import annotations

import pytest

from cutegen_lab.core.errors import ProviderError
from cutegen_lab.templates.frontend.reader import read
from cutegen_lab.templates.registry import family_for
from tests.harness.checking import Compiler, judged, load_width, problem_of

SHIFTED = "torch.cat((torch.zeros_like(x.select({0}, 0).unsqueeze({0})), x), dim={0})[:-1]"
ROWS, COLUMNS = "row scan", "column scan"
SCANS = [
    ("torch.cumsum(x, -1)", "x: f32[6,400]", ROWS, {}),
    ("torch.cumsum(x, -1) - x", "x: bf16[3,2,1000]", ROWS, {"threads_per_row": 32, "loads": 4, "rows_per_block": 2}),
    ("torch.cumprod(x.flip(1), 1).flip(1)", "x: f16[5,257]", ROWS, {"threads_per_row": 64, "loads": 1}),
    ("torch.cumsum(x * m, dim=1)", "x: f32[5,404], m: bool[5,404]", ROWS, {}),
    (f"torch.cumsum({SHIFTED.format(1)}, dim=1)", "x: f32[6,300]", ROWS, {}),
    ("torch.cumsum(x, 0)", "x: f32[150,40]", COLUMNS, {}),
    ("torch.cumprod((x * b[:, None]).flip(1), 1).flip(1)", "x: bf16[2,50,24], b: bf16[50]", COLUMNS,
     {"slices": 2, "loads": 2}),
    (f"torch.cumsum({SHIFTED.format(0)}, dim=0)", "x: f32[90,64]", COLUMNS, {}),
]  # fmt: skip


@pytest.mark.parametrize(("expression", "inputs", "family", "config"), SCANS, ids=[case[0] for case in SCANS])
def test_a_scan_reads_and_writes_everything_once(
    compiler: Compiler, expression: str, inputs: str, family: str, config: dict[str, int]
) -> None:
    seen, artifact = judged(compiler, problem_of(expression, inputs, checks=("prime",)), **config)
    assert seen == family and len(artifact.builds["main"].kernels) == 1


def test_vectors_stay_wide_where_zeros_stand_above_columns(compiler: Compiler) -> None:
    problem = problem_of(f"torch.cumsum({SHIFTED.format(0)}, dim=0)", "x: f32[40,64]", checks=())
    assert load_width(problem, judged(compiler, problem)[1]) > 256


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        ("torch.cumsum(x, 1) / x.sum(1, keepdim=True)", "no template family|scan"),
        ("x.flip(1) + x", "flip other than before and after a scan"),
        ("torch.cumsum(torch.cat((x, x), 1), 1)", "concatenation"),
    ],
)
def test_what_no_scan_serves_is_named(expression: str, says: str) -> None:
    with pytest.raises(ProviderError, match=says):
        family_for(read(problem_of(expression, "x: f32[8,40]")))
