"""A kernel as a wheel (PyPA binary distribution format 1.0): the operator, its CuTe text and its tests.

The wheel is reproducible: members have a fixed date and order.
"""

from __future__ import annotations

import base64
import hashlib
import io
import zipfile
from pathlib import Path

from cutegen_lab import __version__
from cutegen_lab.exports.header import under
from cutegen_lab.exports.subject import Subject
from cutegen_lab.exports.torch_op import operator_text

GENERATOR = "cutegen-lab"
_EPOCH = (1980, 1, 1, 0, 0, 0)
_MODE = 0o100644 << 16


def wheel(subject: Subject) -> dict[str, bytes]:
    """The wheel, under the file name that pip requires. Its version is the cutegen-lab version with the artifact's hash
    as local part, so that two kernels of one problem are two versions."""
    package, version = f"{subject.name}_kernel", f"{__version__}+{subject.key}"
    info = f"{package}-{version}.dist-info"
    members = {
        f"{package}/__init__.py": under(subject.claims, operator_text(subject)),
        f"{package}/kernel.py": under(subject.claims, subject.source),
        f"{package}/test_operator.py": _test(subject, package),
        f"{info}/METADATA": _metadata(subject, package, version),
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: {GENERATOR} {__version__}\nRoot-Is-Purelib: true\n"
        "Tag: py3-none-any\n",
        f"{info}/licenses/LICENSE": _license(subject),
    }
    record = [f"{name},{_digest(text.encode())},{len(text.encode())}" for name, text in members.items()]
    members[f"{info}/RECORD"] = "\n".join([*record, f"{info}/RECORD,,", ""])
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, text in members.items():
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.external_attr = _MODE
            archive.writestr(entry, text.encode(), zipfile.ZIP_DEFLATED)
    return {f"{package}-{version}-py3-none-any.whl": file.getvalue()}


def _digest(data: bytes) -> str:
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def _metadata(subject: Subject, package: str, version: str) -> str:
    claims = "\n".join(f"- {line}" for line in subject.claims)
    shown = f"from {package} import {subject.name}\n\nout = {subject.name}({', '.join(subject.arguments)})"
    return "\n".join(
        [
            "Metadata-Version: 2.4",
            f"Name: {package.replace('_', '-')}",
            f"Version: {version}",
            f"Summary: A CUDA kernel for {subject.artifact.arch} as an operator of torch.library, by cutegen-lab",
            f"License-Expression: Apache-2.0{'' if subject.of_template else ' AND LicenseRef-kernel-author'}",
            "License-File: LICENSE",
            "Requires-Python: >=3.10",
            "Requires-Dist: torch>=2.9",
            "Description-Content-Type: text/markdown",
            "",
            f"```python\n{shown}\n```\n\nWhat was judged:\n\n{claims}\n",
        ]
    )


def _test(subject: Subject, package: str) -> str:
    """Text of a module with a test that needs no GPU, and one that does."""
    return f'''"""Run with ``python -m unittest {package}.test_operator``."""

import unittest

import torch

from {package} import _OPERATOR, {subject.name}


def inputs(build, device):
    return [
        torch.empty_strided(spec["shape"], spec["strides"], dtype=getattr(torch, spec["dtype"]), device=device).zero_()
        for spec in build["inputs"]
    ]


class TestOperator(unittest.TestCase):
    def test_shapes_without_a_gpu(self):
        for build in _OPERATOR.builds:
            found = {subject.name}(*inputs(build, "meta"))
            found = [found] if isinstance(found, torch.Tensor) else found
            self.assertEqual([list(each.shape) for each in found], [spec["shape"] for spec in build["outputs"]])

    @unittest.skipUnless(torch.cuda.is_available(), "no GPU")
    def test_twice_the_same_on_a_gpu(self):
        for build in _OPERATOR.builds:
            given = inputs(build, "cuda")
            first, second = (_OPERATOR.call(*given) for _ in range(2))
            for one, other in zip(first, second, strict=True):
                self.assertTrue(torch.equal(one.view(torch.uint8), other.view(torch.uint8)))


if __name__ == "__main__":
    unittest.main()
'''


def _license(subject: Subject) -> str:
    """The licence of cutegen-lab's parts; a kernel by another author has no licence from cutegen-lab."""
    package = Path(__file__).parents[1]
    places = (package / "LICENSE", package.parent / "LICENSE")  # if installed, and in a checkout
    text = next(place for place in places if place.exists()).read_text(encoding="utf-8")
    if subject.of_template:
        return text
    note = (
        "The launcher in __init__.py and the tests are from cutegen-lab, under the licence below. The kernel\n"
        "(kernel.py and its machine code) is not under it: only the kernel's author can license it.\n"
    )
    return f"{note}\n{text}"
