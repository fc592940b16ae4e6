"""The gate: checks a candidate's text for forbidden constructs, without running it.

It stops honest mistakes and simple attacks cheaply, with a clear message. The security boundary is the cage.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import inspect
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache, lru_cache
from threading import Lock

from cutegen_lab.compile.scopes import free_names
from cutegen_lab.core.syntax import dotted, parse
from cutegen_lab.core.verdict import Diagnostic

MAX_SOURCE_BYTES = 512 << 10
NO_LAUNCH = "G03-launch"
ALLOWED_IMPORTS = (
    "cutlass", "cuda.bindings.driver", "math", "functools", "operator", "typing", "dataclasses", "enum", "itertools",
    "collections.abc", "__future__",
)  # fmt: skip
# Names, by module, that read and change only their arguments.
HARMLESS_NAMES = {
    "inspect": {"isclass", "isfunction", "ismethod"},
    "types": {"SimpleNamespace", "MappingProxyType", "NoneType", "EllipsisType"},
    "abc": {"ABC", "ABCMeta", "abstractmethod"},
    "copy": {"copy", "deepcopy"},
    "collections": {"abc", "namedtuple", "OrderedDict", "defaultdict", "deque", "Counter"},
    "contextlib": {"contextmanager", "nullcontext", "suppress"},
}
FORBIDDEN_NAMES = {
    "eval", "exec", "compile", "open", "__import__", "globals", "locals", "vars", "breakpoint", "input", "delattr",
    "setattr", "memoryview", "exit", "quit", "help",
    "id", "hash",  # results differ between processes, so that one text could compile to different code
}  # fmt: skip
_ASKED = {"getattr", "hasattr"}  # may be called with a constant name, but not passed on
# Attributes that give access to the internals of Python or the machine.
FORBIDDEN_ATTRIBUTES = {
    "gi_frame", "cr_frame", "tb_frame", "f_back", "f_globals", "f_locals", "f_builtins", "func_globals", "mro",
    "os", "sys", "subprocess", "ctypes", "importlib", "builtins", "socket", "shutil", "pathlib", "Path", "inspect",
    "tempfile", "threading", "atexit", "gc", "eval", "exec", "system", "popen", "fromfile", "memmap", "getattribute",
    "ag_frame", "gi_code", "cr_code", "ag_code", "FunctionType", "CodeType", "start_new_thread",
    # Functions that look a name up by its text, or evaluate text.
    "attrgetter", "methodcaller", "get_type_hints", "ForwardRef", "_evaluate", "_eval_type", "singledispatch",
    "singledispatchmethod",
}  # fmt: skip
# Modules of Python's library: names in their ``__all__`` may be used, names that they import may not.
_LISTED = tuple(name for name in ALLOWED_IMPORTS if name.partition(".")[0] not in ("cutlass", "cuda"))
# Functions that may be called with a computed name: ``compile/lookups.py`` checks the name in the cage.
_LOOKUPS = {"getattr": (2, 3), "hasattr": (2, 2), "setattr": (3, 3), "vars": (1, 1)}  # arguments: at least, at most
_ARITHMETIC = (
    "add", "sub", "mul", "truediv", "floordiv", "mod", "divmod", "pow", "matmul", "and", "or", "xor", "lshift",
    "rshift",
)  # fmt: skip
# Python's double-underscore names that are allowed. Any that Python does not define are allowed too: they are the
# candidate's or the DSL's.
_ALLOWED_DUNDERS = {
    "__name__", "__doc__", "__module__", "__qualname__", "__class__", "__class_getitem__", "__slots__",
    "__annotations__",
    "__init__", "__init_subclass__", "__new__", "__post_init__", "__set_name__", "__call__", "__len__", "__getitem__",
    "__iter__", "__contains__", "__hash__", "__repr__", "__str__", "__bool__", "__int__", "__float__", "__index__",
    "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__neg__", "__pos__", "__abs__", "__invert__",
    *(f"__{side}{name}__" for side in ("", "r") for name in _ARITHMETIC),
}  # fmt: skip


@cache
def _python_dunders() -> frozenset[str]:
    """Double-underscore names of Python's own classes, functions, modules, frames …"""
    frame = inspect.currentframe()
    empty = (number for number in range(0))
    things = [
        object, type, int, float, str, bytes, tuple, list, dict, set, property, classmethod, staticmethod, super, slice,
        BaseException, _dunder, _dunder.__code__, ast, len, "".join, frame, empty,
        _dunder.__get__(""), ast.AST, memoryview, builtins,
    ]  # fmt: skip
    names = {name for thing in things for name in (*dir(thing), *dir(type(thing)))}
    more = {"__builtins__", "__path__", "__file__", "__cached__", "__import__", "__main__", "__getattr__", "__del__",
            "__wrapped__", "__set__", "__delete__", "__prepare__", "__closure__", "__mro_entries__", "__self__",
            "__func__", "__dataclass_fields__", "__weakref__", "__traceback__", "__annotate__"}  # fmt: skip
    return frozenset(name for name in names | more if name.startswith("__") and name.endswith("__"))


MOST_ERRORS = 50
_ONE_AT_A_TIME = Lock()


def check(source: str) -> list[Diagnostic]:
    """The reasons why this text may not be compiled, in line order; empty if it may. Results of the last texts are
    cached: a search checks the same text for every config, from many threads."""
    with _ONE_AT_A_TIME:
        return list(_checked(source))


@lru_cache(maxsize=16)
def _checked(source: str) -> list[Diagnostic]:
    if len(source.encode(errors="replace")) > MAX_SOURCE_BYTES:
        return [_error("G01-size", 0, f"the source is over {MAX_SOURCE_BYTES >> 10} KiB", "Write a smaller kernel.")]
    try:
        tree = parse(source)
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", 0) or 0
        what = getattr(error, "msg", None) or str(error) or type(error).__name__
        found = [_error("G02-syntax", line, f"not valid Python: {what}", "Correct the syntax.")]
    else:
        found = sorted(_errors(tree), key=lambda d: d.line)[:MOST_ERRORS]
    lines = source.splitlines()
    return [replace(d, excerpt=lines[d.line - 1].strip()[:200]) if 0 < d.line <= len(lines) else d for d in found]


def _errors(tree: ast.Module) -> Iterator[Diagnostic]:
    imported = _imported_names(tree)
    partly, listed = _partly_imported(tree), _listed_modules(tree)
    taken: set[int] = set()  # module names that are followed by an attribute
    called: set[int] = set()  # nodes that are allowed where they are; ast.walk visits parents before their children
    functions = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield from _lookup(node, imported)
            called |= _callable_here(node)
        elif isinstance(node, ast.Compare):
            called |= _asked_for_a_name(node)
        if id(node) not in called:
            yield from _check_node(node, partly)
        yield from _unlisted(node, listed)
        yield from _quoted(node)
        yield from _patches(node, imported)
        if isinstance(node, ast.Attribute):
            taken.add(id(node.value))
        elif isinstance(node, ast.Name) and node.id in partly and id(node) not in taken:
            yield _error("G05-name", node.lineno, f"the module {node.id!r} may not be passed on",
                         f"Use its names {_some(partly[node.id])}.")  # fmt: skip
    for name in free_names(tree, FORBIDDEN_NAMES):
        if id(name) in called:
            continue
        yield _error("G05-name", name.lineno, f"the name {name.id!r} is not allowed",
                     "A candidate may not access the internals of Python or the machine.")  # fmt: skip
    for name in free_names(tree, _ASKED):
        if id(name) not in functions:
            yield _error("G07-getattr", name.lineno, f"{name.id} may only be called",
                         "Write the attribute as x.name.")  # fmt: skip
    if not any(isinstance(n, ast.FunctionDef) and n.name == "launch" for n in tree.body):
        yield _error(NO_LAUNCH, 0, "the module defines no top-level function launch",
                     "Define @cute.jit def launch(inputs..., outputs..., stream, ...).")  # fmt: skip


def _check_node(node: ast.AST, partly: Mapping[str, str]) -> list[Diagnostic]:
    line = getattr(node, "lineno", 0)
    if isinstance(node, ast.Import):
        return [_import(alias.name, line) for alias in node.names
                if not _allowed(alias.name) and alias.name not in HARMLESS_NAMES]  # fmt: skip
    if isinstance(node, ast.ImportFrom):
        return _import_from(node)
    if isinstance(node, ast.Name) and _dunder(node.id):
        return [_error("G05-name", line, f"the name {node.id!r} is not allowed",
                       "A candidate may not access the internals of Python or the machine.")]  # fmt: skip
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in partly:
        module = partly[node.value.id]
        if node.attr not in HARMLESS_NAMES[module]:
            return [_error("G06-attribute", line, f"{module}.{node.attr} is not allowed",
                           f"Of {module} a candidate may use {_some(module)}.")]  # fmt: skip
    elif bad := [name for name in _attributes_read(node) if forbidden_attribute(name)]:
        return [_error("G06-attribute", line, f"the attribute .{bad[0]} is not allowed",
                       "Write the kernel without Python's internals.")]  # fmt: skip
    return []


def _callable_here(node: ast.Call) -> set[int]:
    """Ids of nodes that are allowed here: the function in ``setattr(x, name, value)``, ``vars(x)`` or
    ``object.__setattr__(x, "name", value)``."""
    function, count = node.func, len(node.args)
    if isinstance(function, ast.Name) and function.id in _LOOKUPS and not node.keywords:
        least, most = _LOOKUPS[function.id]
        plain = not any(isinstance(argument, ast.Starred) for argument in node.args)
        return {id(function)} if plain and least <= count <= most else set()
    if _is_super_setattr(function) and count == 2:  # sets an attribute of an object of the candidate's own class
        return {id(function)}
    return {id(function)} if _is_object_setattr(function) and count == 3 and _text(node.args[1]) else set()


def _asked_for_a_name(node: ast.Compare) -> set[int]:
    """Ids of nodes that are allowed here: ``x.__dict__`` in ``"name" in x.__dict__``."""
    asked = zip(node.ops, node.comparators, strict=True)
    return {
        id(right)
        for how, right in asked
        if isinstance(how, (ast.In, ast.NotIn)) and isinstance(right, ast.Attribute) and right.attr == "__dict__"
    }


def _is_object_setattr(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and dotted(node) == "object.__setattr__"


def _is_super_setattr(node: ast.expr) -> bool:
    above = node.value if isinstance(node, ast.Attribute) and node.attr == "__setattr__" else None
    return isinstance(above, ast.Call) and dotted(above.func) == "super" and not above.args


def _lookup(node: ast.Call, imported: set[str]) -> Iterator[Diagnostic]:
    """Errors in a call of ``getattr``, ``setattr``, ``vars``, …: a forbidden name, or a computed name in or a change of
    something imported."""
    function = node.func
    by_object = _is_object_setattr(function)
    what = "object.__setattr__" if by_object else function.id if isinstance(function, ast.Name) else ""
    if not node.args or not (by_object or what in _LOOKUPS):
        return
    root = dotted(node.args[0]).partition(".")[0]
    if root in imported and what in ("setattr", "object.__setattr__", "vars"):
        yield _error("G09-patch", node.lineno, f"a candidate may not change imported objects: {dotted(node.args[0])}",
                     "Define a function of your own.")  # fmt: skip
    if what == "vars":
        return
    name = _text(node.args[1]) if len(node.args) > 1 else None
    if (name is None and (root in imported or len(node.args) < 2 or by_object)) or forbidden_attribute(name or ""):
        yield _error("G07-getattr", node.lineno, f"{what} needs a constant, allowed name here",
                     "Write the attribute as x.name.")  # fmt: skip


def _text(node: ast.expr) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _import_from(node: ast.ImportFrom) -> list[Diagnostic]:
    line, module = node.lineno, node.module
    if node.level or not module:
        return [_import("." * node.level + (module or ""), line)]
    if module in _LISTED and (unlisted := [a.name for a in node.names if not _is_listed(module, a.name)]):
        return [_error("G08-imported-name", line, f"{unlisted[0]!r} may not be imported from {module}",
                       f"Import only the public names of {module} (its __all__).")]  # fmt: skip
    if _allowed(module):
        return [_error("G08-imported-name", line, f"{a.name!r} may not be imported from {module}",
                       "Import names one by one, and only those of the DSL itself.")
                for a in node.names if a.name == "*" or forbidden_attribute(a.name)]  # fmt: skip
    if module in HARMLESS_NAMES:
        return [_error("G08-imported-name", line, f"{a.name!r} may not be imported from {module}",
                       f"Of {module} a candidate may import {_some(module)}.")
                for a in node.names if a.name not in HARMLESS_NAMES[module]]  # fmt: skip
    return [_import(f"{module}.{a.name}", line) for a in node.names if not _allowed(f"{module}.{a.name}")]


def _partly_imported(tree: ast.Module) -> dict[str, str]:
    """Modules of which only some names may be used, by local name."""
    imports = [alias for n in ast.walk(tree) if isinstance(n, ast.Import) for alias in n.names]
    return {a.asname or a.name: a.name for a in imports if a.name in HARMLESS_NAMES}


def _listed_modules(tree: ast.Module) -> dict[str, str]:
    """Python's own modules by local name, including names they are assigned to."""
    imports = [alias for n in ast.walk(tree) if isinstance(n, ast.Import) for alias in n.names]
    found = {a.asname or a.name: a.name for a in imports if a.name in _LISTED}
    for node in ast.walk(tree) if found else ():
        if (
            isinstance(node, (ast.Assign, ast.NamedExpr))
            and isinstance(node.value, ast.Name)
            and node.value.id in found
        ):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {target.id: found[node.value.id] for target in targets if isinstance(target, ast.Name)}
    return found


def _unlisted(node: ast.AST, listed: Mapping[str, str]) -> Iterator[Diagnostic]:
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in listed:
        module = listed[node.value.id]
        # a local variable may hide the module: reports only names that the module has
        if hasattr(importlib.import_module(module), node.attr) and not _is_listed(module, node.attr):
            yield _error("G06-attribute", node.lineno, f"{module}.{node.attr} is not allowed",
                         f"Use the public names of {module} (its __all__).")  # fmt: skip


def _is_listed(module: str, name: str) -> bool:
    if name in _ALLOWED_DUNDERS:
        return True
    names = getattr(importlib.import_module(module), "__all__", None)
    return not name.startswith("_") if names is None else name in names


def _quoted(node: ast.AST) -> Iterator[Diagnostic]:
    """Forbidden names in string annotations, which may be evaluated."""
    annotations = [node.annotation] if isinstance(node, (ast.arg, ast.AnnAssign)) else []
    annotations += [node.returns] if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) else []
    left: list[ast.AST] = [annotation for annotation in annotations if annotation]
    while left:
        part = left.pop()
        if isinstance(part, ast.Subscript) and dotted(part.value).rpartition(".")[2] == "Literal":
            continue  # strings inside Literal are values
        left += ast.iter_child_nodes(part)
        text = _text(part) if isinstance(part, ast.expr) else None
        if text is None:
            continue
        try:
            tree = parse(text.strip())
        except (SyntaxError, ValueError):
            continue  # the text does not parse, so it cannot be evaluated
        names = list(free_names(tree, FORBIDDEN_NAMES | _ASKED))
        found = [name.id for name in names] + [
            name for inner in ast.walk(tree) for name in _attributes_read(inner) if forbidden_attribute(name)
        ]
        found += [n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and _dunder(n.id)]
        if found:
            yield _error("G05-name", getattr(part, "lineno", 0), f"{found[0]!r} is not allowed in an annotation",
                         "A candidate may not access the internals of Python or the machine.")  # fmt: skip


def _some(module: str) -> str:
    return ", ".join(sorted(HARMLESS_NAMES[module]))


def _attributes_read(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Attribute):
        return [node.attr]
    return node.kwd_attrs if isinstance(node, ast.MatchClass) else []  # case T(name=value)


def _imported_names(tree: ast.Module) -> set[str]:
    """Names that are imported, and names that these or parts of them are assigned to."""
    imports = [n for n in ast.walk(tree) if isinstance(n, (ast.Import, ast.ImportFrom))]
    found = {a.asname or a.name.split(".")[0] for node in imports for a in node.names}
    for node in ast.walk(tree):
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.NamedExpr)) and _root(node.value) in found:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {target.id for target in targets if isinstance(target, ast.Name)}
    return found


def _root(node: ast.expr | None) -> str:
    """``a`` of ``a.b.c``."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _patches(node: ast.AST, imported: set[str]) -> list[Diagnostic]:
    """The error if ``node`` assigns to an attribute of something imported, which would change the compiler for all
    builds of the process."""
    if not isinstance(node, ast.Attribute) or isinstance(node.ctx, ast.Load):
        return []
    if _root(node) not in imported:
        return []
    return [_error("G09-patch", node.lineno, f"a candidate may not change imported objects: {dotted(node)}",
                   "Define a function of your own.")]  # fmt: skip


def forbidden_attribute(name: str) -> bool:
    """Whether the attribute gives access to the internals of Python or the machine."""
    return _dunder(name) or not FORBIDDEN_ATTRIBUTES.isdisjoint(
        (name, name.strip("_"))
    )  # also with underscores: modules import os as _os


def _allowed(module: str) -> bool:
    return any(module == name or module.startswith(name + ".") for name in ALLOWED_IMPORTS)


def _dunder(name: str) -> bool:
    return name in _python_dunders() and name not in _ALLOWED_DUNDERS


def _import(module: str, line: int) -> Diagnostic:
    return _error("G04-import", line, f"import of {module!r} is not allowed",
                  f"A candidate may import {', '.join(ALLOWED_IMPORTS[:-2])}.")  # fmt: skip


def _error(code: str, line: int, message: str, suggestion: str) -> Diagnostic:
    return Diagnostic("error", code, message, line, suggestion=suggestion)
