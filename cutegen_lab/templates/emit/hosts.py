"""Inlines the functions that launch a kernel, such as ``reduce_rows``, into ``launch``."""

from __future__ import annotations

import libcst as cst

from cutegen_lab.templates.emit.expand import Body, Names, arguments, body_of, inlined_call
from cutegen_lab.templates.emit.names import dotted, functions, loads, only_part


def with_launchers_written_out(module: cst.Module) -> cst.Module:
    """Inlines undecorated (host) functions whose last statement launches a kernel: the kernel's arguments then stand
    next to the code that makes them. Returns ``module`` itself if there are none."""
    bodies = {name: body_of(function) for name, function in functions(module).items() if not function.decorators}
    known = {name: body for name, body in bodies.items() if body is not None and _launches(body)}
    if not known:
        return module
    body = []
    for statement in module.body:
        if isinstance(statement, cst.FunctionDef) and statement.name.value not in known:
            statement = _written_out(statement, module, known)
        body.append(statement)
    read = loads(module.with_changes(body=body))
    gone = {name for name in known if not read[name]}
    return module.with_changes(
        body=[each for each in body if not (isinstance(each, cst.FunctionDef) and each.name.value in gone)]
    )


def _launches(body: Body) -> bool:
    call = _call(body.statements[-1]) if body.statements and body.returned is None else None
    return call is not None and isinstance(call.func, cst.Attribute) and call.func.attr.value == "launch"


def _written_out(function: cst.FunctionDef, module: cst.Module, known: dict[str, Body]) -> cst.FunctionDef:
    names, statements = Names(function, module), list[cst.BaseStatement]()
    for statement in function.body.body:
        call = _call(statement)
        body = known.get(dotted(call.func)) if call is not None else None
        given = arguments(body.function, call) if body is not None and call is not None else None
        found = inlined_call(body, given, None, names) if body is not None and given is not None else None
        statements += [statement] if found is None else found[0]  # type: ignore[list-item]
    return function.with_changes(body=function.body.with_changes(body=statements))


def _call(statement: cst.CSTNode) -> cst.Call | None:
    """The call that is the whole statement, else None."""
    only = only_part(statement)
    return only.value if isinstance(only, cst.Expr) and isinstance(only.value, cst.Call) else None
