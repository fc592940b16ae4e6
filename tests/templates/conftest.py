"""One compiler a test file, with a cache of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cutegen_lab.compile import CageCompiler


@pytest.fixture(scope="module")
def compiler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CageCompiler]:
    with CageCompiler(tmp_path_factory.mktemp("cache")) as made:
        yield made
