"""Full names of the DSL's objects that a candidate uses."""

from __future__ import annotations

import ast


def dotted_names(tree: ast.Module) -> dict[str, int]:
    """``cutlass.…`` names in full, resolved through the module's imports, with the line of first use."""
    roots = _imports(tree)
    used: dict[str, int] = {}
    inner = {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Attribute)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute) or id(node) in inner:
            continue
        parts: list[str] = []
        base: ast.expr = node
        while isinstance(base, ast.Attribute):
            parts.append(base.attr)
            base = base.value
        if isinstance(base, ast.Name) and base.id in roots:
            full = ".".join([roots[base.id], *reversed(parts)])
            used[full] = min(node.lineno, used.get(full, node.lineno))
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("cutlass"):
            for alias in node.names:
                if alias.name != "*":
                    used.setdefault(f"{node.module}.{alias.name}", node.lineno)
    return used


def _imports(tree: ast.Module) -> dict[str, str]:
    """Local name to dotted name, for imports from ``cutlass``. Names bound again elsewhere are left out."""
    roots: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "cutlass":
                    roots[alias.asname or "cutlass"] = alias.name if alias.asname else "cutlass"
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "cutlass":
            for alias in node.names:
                roots[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    rebound = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    rebound |= {a.arg for a in ast.walk(tree) if isinstance(a, ast.arg)}
    return {name: full for name, full in roots.items() if name not in rebound}
