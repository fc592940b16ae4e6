"""The operator: launches what was judged, refuses other shapes, and is what torch expects of an operator."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from cutegen_lab.exports import Subject
from cutegen_lab.exports.torch_op import torch_op
from cutegen_lab.session.handle import RunHandle
from cutegen_lab.session.kernels import is_unmodified
from tests.exports.launched import FakeCuda, planned

pytestmark = pytest.mark.kernel  # the run behind the fixtures


def written(subject: Subject, folder: Path) -> Path:
    path = folder / "op.py"
    path.write_bytes(torch_op(subject)[".py"])
    return path


def python(script: str, folder: Path) -> str:
    """Runs a script where cutegen-lab cannot be imported."""
    text = f"import sys; sys.modules['cutegen_lab'] = None; sys.path.insert(0, {str(folder)!r})\n{script}"
    command = [sys.executable, "-W", "ignore", "-c", text]
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "PYTHONNOUSERSITE": "1"}
    done = subprocess.run(  # noqa: S603
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=250
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("which", ["subject", "clustered"])
def test_it_launches_what_the_plan_says(
    which: str, request: pytest.FixtureRequest, fake_cuda: FakeCuda, tmp_path: Path
) -> None:
    subject: Subject = request.getfixturevalue(which)
    build = subject.artifact.builds["main"]
    written(subject, tmp_path)
    script = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import op; op._OPERATOR.launch(0, 0, [4096, 8192], 7)"
    launches = fake_cuda.run([sys.executable, "-c", script], build)
    assert launches == planned(build, [4096, 8192], 7)
    assert len(launches) == len(build.plan.launches)


def test_its_machine_code_is_what_was_judged(subject: Subject, tmp_path: Path) -> None:
    import base64
    import json
    import zlib

    text = torch_op(subject)[".py"].decode()
    packed = text.split("Operator(\n")[-1].split("\n)\n")[0]
    (build,) = json.loads(zlib.decompress(base64.b85decode("".join(map(eval, packed.split("\n"))))))
    assert base64.b64decode(build["cubin"]) == subject.artifact.builds["main"].cubin
    assert torch_op(subject) == torch_op(subject), "the same kernel gives the same bytes"


def test_it_is_an_operator_as_torch_expects(subject: Subject, tmp_path: Path) -> None:
    """With the reference in place of the launch: opcheck compares the schema, the fake kernel and what is traced."""
    written(subject, tmp_path)
    script = """
    import torch, op
    f = op.soft_max
    f.register_kernel("cpu")(lambda x: torch.softmax(x, -1))
    x = torch.randn(16, 256).bfloat16()
    torch.library.opcheck(f, (x,), test_utils=("test_schema", "test_faketensor", "test_aot_dispatch_static"))
    assert f(torch.empty(16, 256, dtype=torch.bfloat16, device="meta")).shape == (16, 256)
    compiled = torch.compile(lambda x: f(x) * 2, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(x), torch.softmax(x, -1) * 2)
    try:
        f(x.float().bfloat16().requires_grad_()).sum().backward()
    except RuntimeError as error:
        print(error)
    """
    assert "autograd" in python(textwrap.dedent(script), tmp_path)


def test_a_dynamic_size_becomes_one_that_is_served(subject: Subject, tmp_path: Path) -> None:
    """Two served shapes, with the reference in place of the launch: torch.compile traces each once, refuses a third
    with its size as a number, and torch.export keeps the size of its example."""
    written(subject, tmp_path)
    script = """
    import copy, torch, op
    from torch.export import Dim, export
    f, (build,) = op.soft_max, op._OPERATOR.builds
    f.register_kernel("cpu")(lambda x: torch.softmax(x, -1))
    op._OPERATOR.builds.append(other := copy.deepcopy(build))
    for spec in (*other["inputs"], *other["outputs"]):
        spec["shape"][0] = 32
    a, b, c = (torch.randn(n, 256).bfloat16() for n in (16, 32, 48))
    torch.library.opcheck(f, (b,))
    traced = []
    def counting(graph, example):
        traced.append(graph)
        return graph.forward
    compiled = torch.compile(lambda x: f(x * 2), backend=counting, fullgraph=True, dynamic=True)
    for x in (a, b, a, b):
        torch.testing.assert_close(compiled(x), torch.softmax(x * 2, -1))
    assert len(traced) == 2, traced
    try:
        compiled(c)
    except RuntimeError as error:
        assert "no kernel for (torch.bfloat16[48, 256] with strides [256, 1])" in str(error), error
    else:
        raise SystemExit("48 rows were accepted")
    class Module(torch.nn.Module):
        def forward(self, x):
            return f(x)
    kept = export(Module(), (b,), dynamic_shapes={"x": {0: Dim.AUTO}})
    torch.testing.assert_close(kept.module()(b), torch.softmax(b, -1))
    try:
        export(Module(), (a,), dynamic_shapes={"x": {0: Dim("rows")}})
    except Exception as error:
        assert "rows = 16" in str(error), error
    else:
        raise SystemExit("any number of rows was accepted")
    """
    python(textwrap.dedent(script), tmp_path)


@pytest.mark.parametrize(
    "tensor",
    ["empty(16, 255, dtype=torch.bfloat16", "empty(16, 256, dtype=torch.float32", "empty(256, dtype=torch.bfloat16"],
)
def test_other_inputs_are_refused(subject: Subject, tmp_path: Path, tensor: str) -> None:
    written(subject, tmp_path)
    script = f"""
    import torch, op
    for x in (torch.{tensor}, device="meta"), torch.empty(256, 16, dtype=torch.bfloat16, device="meta").T):
        try:
            op.soft_max(x)
        except ValueError as error:
            assert "there are: (x: bf16[16,256]) -> (out: bf16[16,256])" in str(error), error
        else:
            raise SystemExit("accepted")
    """
    python(textwrap.dedent(script), tmp_path)


def test_a_gpu_that_cannot_run_it_is_refused(subject: Subject, tmp_path: Path) -> None:
    written(subject, tmp_path)
    script = """
    import op
    for arch, fits, others in [("sm_90a", [(9, 0)], [(8, 0), (10, 0)]), ("sm_80", [(8, 0), (8, 9)], [(9, 0), (7, 5)]),
                               ("sm_100a", [(10, 0)], [(10, 3), (12, 0)])]:
        for capability in fits:
            op._check_gpu(arch, capability)
        for capability in others:
            try:
                op._check_gpu(arch, capability)
            except ValueError as error:
                assert arch in str(error)
            else:
                raise SystemExit(f"{arch} on {capability}")
    """
    python(textwrap.dedent(script), tmp_path)


def test_an_operator_with_parameters_of_a_module(model: RunHandle, tmp_path: Path) -> None:
    (path,) = model.export_as(tmp_path / "op.py", "torch-op")
    text = path.read_text()
    assert is_unmodified(text) and "# verdict: passed on emulator" in text and "# checked: " in text
    script = """
    import torch, op
    x, w = torch.empty(32, 128, device="meta"), torch.empty(128, device="meta")
    assert op.scaled(x, w).shape == (32, 128)
    """
    python(textwrap.dedent(script), tmp_path)
    assert model.export_as(path, "torch-op") == (path,), "the same again"
