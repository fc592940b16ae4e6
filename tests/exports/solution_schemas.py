"""The published schemas of a solution, in our words: of flashinfer-bench 0.1.2 (its data model) and of SOL-ExecBench
8d2237d2 (``docs/solution.md`` and its data model). Fields that they do not know are refused here."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

Text = Annotated[str, Field(min_length=1)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _Source(_Strict):
    path: Text
    content: Text

    @model_validator(mode="after")
    def stays_in_its_folder(self) -> _Source:
        path = PurePosixPath(self.path)
        if path.is_absolute() or ".." in path.parts:
            raise ValueError(f"{self.path} leaves the folder")
        return self


class _Spec(_Strict):
    entry_point: Annotated[str, Field(pattern=r"^[^:]+::[^:]+$")]
    destination_passing_style: bool = True
    dependencies: list[Text] = []


class _Solution(_Strict):
    name: Text
    definition: Text
    author: Text
    description: str | None = None
    spec: _Spec
    sources: Annotated[list[_Source], Field(min_length=1)]

    @model_validator(mode="after")
    def has_its_entry(self) -> _Solution:
        paths = [source.path for source in self.sources]
        if len({*paths}) < len(paths) or self.spec.entry_point.partition("::")[0] not in paths:
            raise ValueError("each path is there once, the entry point's among them")
        return self


class _FlashinferSpec(_Spec):
    language: Literal["python", "triton", "cpp", "cuda", "tilelang"]
    target_hardware: Annotated[list[str], Field(min_length=1)]
    binding: Literal["tvm-ffi", "torch"] | None = None


class FlashinferBench(_Solution):
    """A solution of flashinfer-bench."""

    spec: _FlashinferSpec


class _SolSpec(_Spec):
    languages: Annotated[
        list[Literal["pytorch", "triton", "cute_dsl", "cutile", "cudnn_frontend"]],  # those of a .py file
        Field(min_length=1),
    ]
    target_hardware: Annotated[list[Literal["B200", "LOCAL"]], Field(min_length=1)]
    entry_point: Annotated[str, Field(pattern=r"^[^:]+\.py::[^:]+$")]


class SolExecbench(_Solution):
    """A solution of SOL-ExecBench in Python."""

    spec: _SolSpec
