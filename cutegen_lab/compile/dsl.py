"""All uses of the DSL's internals; runs only in the cage (``tests/compile/test_dsl.py`` fails if they change).

Written for nvidia-cutlass-dsl 4.8.1. Beyond the documented API, this module relies on: the compiled function's
``_get_cuda_init_and_load`` (the launcher's two set-up entry points), ``capi_func`` (its C entry: an array of pointers
to each argument's memory, then the returned error), ``artifacts.PTX``/``.CUBIN``, ``total_added_arguments``, and on a
fake tensor with a static layout being passed as a struct of one pointer. :func:`assemble` relies on the pass
``gpu-module-to-binary`` and on a module's own assembly reaching the assembler unchanged. :func:`cache_source_positions`
relies on ``_mlir_helpers.op._fast_frameinfo`` and ``._is_framework_module`` depending only on their arguments.
:func:`compile_hosts_unoptimised` relies on ``base_dsl.compiler.Compiler.jit`` making host code executable,
:func:`collect_layouts` on ``Compiler.compile`` being given the traced module, and on how the DSL prints types and
locations.
"""

from __future__ import annotations

import ctypes
import importlib
import re
from collections.abc import Mapping, Sequence
from functools import cache
from types import CodeType, FrameType, ModuleType
from typing import Any

from cutegen_lab.core.candidate import Scalar
from cutegen_lab.core.dtypes import DType
from cutegen_lab.core.problem import TensorSpec

DISTRIBUTION = "nvidia-cutlass-dsl"
# Environment of the DSL's process: target, the stand-in runtime, and no cache of its own.
ARCH_VARIABLE = "CUTE_DSL_ARCH"
RUNTIME_VARIABLE = "CUTE_DSL_LIBS"
ENVIRONMENT = {"CUTE_DSL_DISABLE_FILE_CACHING": "1", "CUTE_DSL_NO_CACHE": "1", "CUTE_DSL_LINEINFO": "1"}
ALIGNMENT_BYTES = 16
_PTX_HEAD = re.compile(
    r"(?:\s*//[^\n]*\n)*\s*\.version (\d+)\.(\d+)\s*\n\s*\.target [\w, ]+\n\s*\.address_size 64[ \t]*\n"
)
_CANDIDATE_LINE = re.compile(r'"[^"\n]*candidate\.py":(\d+):\d+')
_LAYOUT = re.compile(r'!cute\.(?:(?:composed_)?layout<"[^"]*">|memref<[^"<>]*, smem, [^"]*"[^"]*">)')
_TILED = re.compile(
    r"!cute_nvgpu\.sm(?:80|90)\.mma<[^<>]*>"
    r'|!cute_nvgpu\.atom\.tma_(?:load|store)<[^"<>]*(?:<"[^"]*">[^"<>]*)*>'
    r'|layout_copy_tv = <"[^"]*">, tiler_mn = <"[^"]*">'
)  # searched in the types of operands too: these objects are often made in host code, where the kernel is launched
_MOST_LAYOUTS = 1000

_NUMERIC = {
    DType.F64: "Float64", DType.F32: "Float32", DType.F16: "Float16", DType.BF16: "BFloat16", DType.I64: "Int64",
    DType.I32: "Int32", DType.I16: "Int16", DType.I8: "Int8", DType.U8: "Uint8", DType.BOOL: "Boolean",
    DType.F8E4M3: "Float8E4M3FN", DType.F8E5M2: "Float8E5M2",
}  # fmt: skip


def known_archs() -> list[str]:
    """GPU architectures that the installed DSL can target."""
    enums = importlib.import_module("cutlass.base_dsl.enums")
    return sorted(enums.Arch.__members__)


def warm_up() -> None:
    """Imports everything that builds need, before the first fork."""
    for name in ("cutlass", "cutlass.cute", "cutlass.cute.runtime", "cutlass.pipeline", "cutlass.utils",
                 "cutlass.utils.hopper_helpers", "cuda.bindings.driver", "numpy"):  # fmt: skip
        importlib.import_module(name)
    cache_source_positions()
    compile_hosts_unoptimised()


def compile_hosts_unoptimised() -> None:
    """Turns off LLVM optimisation (``opt_level`` 0) of host code, which is only run to be recorded: saves an eighth of
    a build's time. GPU code is compiled by other passes and does not change."""
    compiler: Any = importlib.import_module("cutlass.base_dsl.compiler").Compiler
    made = compiler.jit

    def jit(self: Any, module: Any, opt_level: int = 0, shared_libs: Sequence[str] = ()) -> Any:
        return made(self, module, 0, shared_libs)

    compiler.jit = jit


def collect_layouts(found: dict[tuple[int, str], None]) -> None:
    """Makes later compilations add to ``found`` what they trace in the candidate: layouts, tensors in shared memory,
    TMA boxes, tiled copies and tensor-core instructions, as (line, type as the DSL prints it), in the order of the
    trace."""
    compiler: Any = importlib.import_module("cutlass.base_dsl.compiler").Compiler
    compiled = compiler.compile

    def compile(self: Any, module: Any, *arguments: Any, **named: Any) -> Any:
        # Reads the module's text, not its operations: iterating over them from Python corrupts the memory of 4.8.1's
        # bindings.
        text = module.operation.get_asm(enable_debug_info=True, use_local_scope=True)
        for operation in map(str.strip, text.splitlines()):
            place = _CANDIDATE_LINE.search(operation)
            if place and operation.startswith("%") and len(found) < _MOST_LAYOUTS:
                types = operation[: place.start()]
                kinds = _LAYOUT.findall(types.rpartition(" -> ")[2]) + _TILED.findall(types)
                found.update(((int(place[1]), kind), None) for kind in kinds)
        return compiled(self, module, *arguments, **named)

    compiler.compile = compile


def cache_source_positions() -> None:
    """Caches source positions by code object and instruction offset: otherwise the DSL scans a function's whole line
    table for each traced operation, which takes a quarter of the compile time of a kernel with unrolled loops."""
    op: Any = importlib.import_module("cutlass._mlir_helpers.op")
    found: dict[tuple[CodeType, int], Any] = {}
    look = op._fast_frameinfo

    def frame_info(frame: FrameType) -> Any:
        place = frame.f_code, frame.f_lasti
        if place not in found:
            found[place] = look(frame)
        return found[place]

    op._fast_frameinfo = frame_info
    op._is_framework_module = cache(op._is_framework_module)


def compile_launch(
    module: ModuleType, tensors: Sequence[TensorSpec], config: Mapping[str, Scalar], arch: str, dump_dir: str
) -> Any:
    """``cute.compile`` of the candidate's ``launch`` for static layouts. Raises whatever the DSL raises."""
    cutlass = importlib.import_module("cutlass")
    cute = importlib.import_module("cutlass.cute")
    runtime = importlib.import_module("cutlass.cute.runtime")
    fakes = [
        runtime.make_fake_tensor(getattr(cutlass, _NUMERIC[t.dtype]), t.shape, t.stride, assumed_align=ALIGNMENT_BYTES)
        for t in tensors
    ]
    options = f"remarks{{ptx}} --keep-ptx --keep-cubin --generate-line-info --gpu-arch {arch} --dump-dir {dump_dir}"
    return cute.compile(module.launch, *fakes, runtime.make_fake_stream(), **config, options=options)


def ptx_and_cubin(compiled: Any) -> tuple[str, bytes]:
    """PTX and cubin of a compiled launcher. Raises ValueError if it launches no kernel of its own."""
    ptx, cubin = compiled.artifacts.PTX, compiled.artifacts.CUBIN
    if not isinstance(ptx, str) or not isinstance(cubin, bytes):
        raise ValueError("launch() compiled to no kernel; it must launch at least one @cute.kernel")
    return ptx, cubin


def assemble(ptx: str, arch: str) -> bytes:
    """The cubin of ``ptx`` from the DSL's assembler, which has no direct interface: the text is passed as the assembly
    of an otherwise empty GPU module. Raises ValueError with the assembler's message."""
    head = _PTX_HEAD.match(ptx)
    if head is None:
        raise ValueError("the PTX does not begin with .version, .target and .address_size")
    ir = importlib.import_module("cutlass._mlir.ir")
    passes = importlib.import_module("cutlass._mlir.passmanager")
    objects = importlib.import_module("cutlass._mlir.dialects.gpu")
    target = f'#nvvm.target<O = 3, chip = "{arch}", features = "+ptx{head[1]}{head[2]}">'
    with ir.Context() as context, ir.Location.unknown():
        context.load_all_available_dialects()
        module = ir.Module.parse(f"module attributes {{gpu.container_module}} {{ gpu.module @m [{target}] {{}} }}")
        text = ir.ArrayAttr.get([ir.StringAttr.get(ptx[head.end() :])])
        module.body.operations[0].attributes["llvm.module_asm"] = text
        try:
            passes.PassManager.parse("builtin.module(gpu-module-to-binary{format=bin})").run(module.operation)
        except Exception as error:  # whatever the bindings raise, the PTX did not assemble
            raise ValueError(str(error)[:500]) from None
        binary = ir.ArrayAttr(module.body.operations[0].attributes["objects"])[0]
        return bytes(objects.ObjectAttr(binary).object)


def load(compiled: Any) -> None:
    """Runs the launcher's set-up entry points on the stand-in runtime. Raises RuntimeError."""
    if compiled.total_added_arguments:
        raise RuntimeError("the DSL asks for hidden workspace arguments, which a launch plan cannot hold")
    initialise, load_to_device = compiled._get_cuda_init_and_load()
    library = ctypes.pointer(ctypes.pointer(ctypes.c_void_p()))
    device, error = ctypes.pointer(ctypes.c_int32(0)), ctypes.pointer(ctypes.c_int32(0))
    initialise(_pack(library, error))
    load_to_device(_pack(library, device, error))
    if error.contents.value:
        raise RuntimeError(f"the launcher's set-up returned error {error.contents.value}")


def call(compiled: Any, addresses: Sequence[int], stream: int) -> int:
    """Runs the host launcher once with tensors at ``addresses``; returns its error code."""
    data = [ctypes.pointer(ctypes.c_void_p(address)) for address in addresses]
    handle, error = ctypes.pointer(ctypes.c_void_p(stream)), ctypes.pointer(ctypes.c_int32(0))
    compiled.capi_func(_pack(*data, handle, error))
    return int(error.contents.value)


def _pack(*pointers: Any) -> Any:
    return (ctypes.c_void_p * len(pointers))(*(ctypes.cast(p, ctypes.c_void_p) for p in pointers))


def missing_names(names: Sequence[str]) -> dict[str, list[str]]:
    """Those of ``names`` under ``cutlass`` that do not exist, each with the public names of its longest prefix that
    exists."""
    missing: dict[str, list[str]] = {}
    for dotted in names:
        parts = dotted.split(".")
        if parts[:2] in (["cutlass", "torch"], ["cutlass", "jax"]):
            continue  # importing these would load their frameworks into the server
        if parts[0] != "cutlass" or any(p.startswith("_") for p in parts):
            continue
        found: Any = importlib.import_module("cutlass")
        for part in parts[1:]:
            try:
                found = getattr(found, part)
            except AttributeError:
                try:
                    found = importlib.import_module(f"{found.__name__}.{part}")
                except Exception:  # whatever an optional part of the DSL raises, the name does not exist
                    missing[dotted] = [n for n in dir(found) if not n.startswith("_")]
                    break
            except Exception:  # exists only during a compilation (Float32.mlir_type)
                break
    return missing
