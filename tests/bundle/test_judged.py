"""A kernel of several files, as NVIDIA's and quack's are written: bundled, accepted by the gate and judged."""

from __future__ import annotations

from pathlib import Path

from cutegen_lab.compile import gate
from cutegen_lab.core.verdict import Verdict
from tests.bundle.folders import bundled
from tests.harness.checking import Compiler, answered, problem_of

EXPRESSION = "x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * weight"
FILES = {
    "norms/launch.py": """
        import cuda.bindings.driver as cuda
        import cutlass.cute as cute
        from norms.rms import RMSNorm


        @cute.jit
        def launch(x: cute.Tensor, weight: cute.Tensor, out: cute.Tensor, stream: cuda.CUstream):
            RMSNorm(x.shape[1], eps=1e-6)(x, weight, out, stream)
        """,
    "norms/__init__.py": "import torch\n\n__version__ = '1.0'\n",
    "norms/rms.py": """
        # Copyright of nobody.
        import math
        from typing import Optional, Type

        import cuda.bindings.driver as cuda
        import cutlass
        import cutlass.cute as cute
        import torch
        from cutlass import Float32, const_expr

        from norms import utils
        from norms.base import ReductionBase


        class RMSNorm(ReductionBase):
            def __init__(self, n: int, eps: float):
                super().__init__(n)
                self.eps = eps

            @cute.jit
            def __call__(self, mX: cute.Tensor, mW: Optional[cute.Tensor], mY: cute.Tensor, stream: cuda.CUstream):
                params = utils.Params(mX, mY, scale=1)
                self.kernel(params, mW).launch(grid=[mX.shape[0], 1, 1], block=[self.threads, 1, 1], stream=stream)

            @cute.kernel
            def kernel(self, params: utils.Params, mW: Optional[cute.Tensor]):
                tidx, _, _ = cute.arch.thread_idx()
                row, _, _ = cute.arch.block_idx()
                mX, mY = params.mX, params.mY
                total = Float32(0.0)
                for c in range(tidx, self.n, self.threads):
                    total += utils.square(mX[row, c])
                total = self.row_sum(total)
                # one multiplication a value
                scale = utils.rsqrt(total / Float32(self.n) + self.eps)
                for c in range(tidx, self.n, self.threads):
                    y = mX[row, c] * scale
                    if const_expr(mW is not None) and c < self.n:
                        y *= mW[c]
                    mY[row, c] = y


        def reference(x: torch.Tensor) -> torch.Tensor:
            return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True))
        """,
    "norms/base.py": '''
        import operator

        import cutlass
        import cutlass.cute as cute

        from .utils import round_up


        class ReductionBase:
            """A warp a row."""

            def __init__(self, n: int):
                self.n = n
                self.threads = round_up(1, 32)

            def row_sum(self, value: cutlass.Float32) -> cutlass.Float32:
                return cute.arch.warp_reduction(value, operator.add)

            def tune(self):
                import torch

                return torch.cuda.get_device_properties(0)
        ''',
    "norms/utils.py": '''
        import os
        from dataclasses import dataclass, fields

        import cutlass
        import cutlass.cute as cute

        FAST = os.environ.get("NORMS_FAST", "1") == "1"


        @dataclass
        class ParamsBase:
            """Passed to kernels: what the DSL knows as values, field by field."""

            def __extract_mlir_values__(self):
                values, self._lengths = [], []
                for field in fields(self):
                    found = cutlass.extract_mlir_values(getattr(self, field.name)) if field.name != "scale" else []
                    values += found
                    self._lengths.append(len(found))
                return values

            def __new_from_mlir_values__(self, values):
                made = {}
                for field, count in zip(fields(self), self._lengths, strict=True):
                    own = getattr(self, field.name)
                    made[field.name] = cutlass.new_from_mlir_values(own, values[:count]) if count else own
                    values = values[count:]
                return self.__class__(**made)


        @dataclass
        class Params(ParamsBase):
            mX: cute.Tensor
            mY: cute.Tensor
            scale: int


        def square(x):
            return x * x


        def rsqrt(x):
            return cute.math.rsqrt(x, fastmath=FAST)


        def round_up(a: int, b: int) -> int:
            return (a + b - 1) // b * b
        ''',
}


def test_a_kernel_of_several_files_is_right(compiler: Compiler, tmp_path: Path) -> None:
    made = bundled(tmp_path, FILES)
    assert gate.check(made.text) == []
    assert "torch" not in made.text and "# one multiplication a value" in made.text
    problem = problem_of(EXPRESSION, "x: f32[24,200], weight: f32[200]")
    outcome, artifact = answered(compiler, problem, made.text)
    assert outcome.verdict is Verdict.PASSED, outcome.reason
    assert artifact is not None


def test_a_fault_is_reported_at_the_line_of_its_file(compiler: Compiler, tmp_path: Path) -> None:
    beyond = FILES["norms/rms.py"].replace("mY[row, c] = y", "mY[row, c + 1] = y")
    made = bundled(tmp_path, {**FILES, "norms/rms.py": beyond})
    problem = problem_of(
        "x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * weight", "x: f32[2,64], weight: f32[64]"
    )
    outcome, _ = answered(compiler, problem, made.text)
    assert outcome.verdict is Verdict.OUT_OF_BOUNDS, outcome.reason
    number = next(i for i, line in enumerate(made.text.split("\n"), 1) if "mY[row, c + 1] = y" in line)
    assert f"line {number}" in outcome.reason
    wanted = next(i for i, line in enumerate((tmp_path / "norms/rms.py").read_text().split("\n"), 1) if "c + 1" in line)
    assert made.origin(number) == f"norms/rms.py:{wanted}"
