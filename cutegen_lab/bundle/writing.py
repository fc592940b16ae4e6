"""The joined text: each definition as written, with comments, renamed where necessary."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping

from cutegen_lab.bundle.edits import Edit, edited
from cutegen_lab.bundle.modules import Module, Unit, comes_along
from cutegen_lab.bundle.naming import Key
from cutegen_lab.bundle.reach import Definition, External, Facts, ModuleValue, Reach, Refused, Resolved, is_soft
from cutegen_lab.bundle.references import Function, Reference
from cutegen_lab.bundle.spelling import spelled
from cutegen_lab.core.syntax import expression

_WIDTH = 120
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class Writer:
    """Writes definitions of one module: imported names under their name in the bundle (``names``), annotations as
    strings if ``quote`` is set, stubs for functions that use forbidden modules."""

    def __init__(self, reach: Reach, names: Mapping[Key, str], quote: bool) -> None:
        self._reach, self._names, self._quote = reach, names, quote

    def text(self, unit: Unit) -> tuple[str, list[int]]:
        """Text of a unit with the comments directly above it, and the original line of each of its lines."""
        module, facts = unit.module, self._reach.facts(unit)
        begin = unit.line
        before = max((n.end_lineno or n.lineno for n in module.tree.body if n.lineno < unit.node.lineno), default=0)
        while begin > before + 1 and module.lines[begin - 2].startswith("#"):
            begin -= 1
        first, last = module.offset(begin, 0), module.span(unit.node)[1]
        rest = module.text[last:].split("\n", 1)[0]
        if rest.lstrip().startswith("#"):
            last += len(rest)
        alone = not module.lines[unit.line - 1][: unit.node.col_offset].strip()
        if not alone:  # several statements on one line
            first = module.span(unit.node)[0]
        edits = self._edits(facts)
        text, starts = edited(module.text, first, last, edits)
        return text, [module.text.count("\n", 0, start) + 1 for start in starts]

    def _edits(self, facts: Facts) -> list[Edit]:
        unit, module = facts.unit, facts.unit.module
        edits = [_stub(module, function, *why) for function, why in facts.stubs_left.items()]
        edits += _removed(module, unit.node, facts.unused)
        edits += self._renamed(unit)
        rewritten: dict[int, ast.JoinedStr] = {}
        quoted: dict[int, list[Resolved]] = {}
        for one in facts.live():
            if one.reference.quoted is not None:
                quoted.setdefault(id(one.reference.quoted), []).append(one)
            elif isinstance(one.target, Refused):
                edits += self._refused(one, module)
            elif (name := self._name(one)) is not None:
                start, end, old = self._place(one.reference, one.used, module)
                if old == name:
                    continue
                if one.reference.fstring is not None and module.text[start:end] != old:
                    _put(one, name)
                    rewritten[id(one.reference.fstring)] = one.reference.fstring
                else:
                    edits.append(Edit(start, end, name))
        for fstring in rewritten.values():  # before Python 3.12, ast gives wrong positions inside f-strings
            lines = (fstring.end_lineno or fstring.lineno) - fstring.lineno
            edits.append(Edit(*module.span(fstring), f"({ast.unparse(fstring)}{chr(10) * lines})"))
        for several in quoted.values():
            edits += self._in_quotes(several, module)
        edits += self._inner_imports(facts)

        def suite(body: list[ast.stmt]) -> str:
            start = module.offset(body[0].lineno, 0)
            return edited(module.text, start, module.span(body[-1])[1], edits)[0]

        edits += list(spelled(module, unit.node, suite))
        if self._quote and module.future_annotations:
            edits = _quoted_annotations(module, unit.node, edits)
        return edits

    def _name(self, one: Resolved) -> str | None:
        target = one.target
        if isinstance(target, External):
            return self._names.get(External(target.dotted))
        return self._names.get(target) if isinstance(target, (Definition, ModuleValue)) else None

    def _renamed(self, unit: Unit) -> Iterator[Edit]:
        """Edits that rename top-level functions and classes, and names in ``global`` statements."""
        module = unit.module
        for node in _top_definitions(unit.node):
            name = self._names.get(Definition(module, node.name), node.name)
            if name != node.name:
                start = module.offset(node.lineno, node.col_offset)
                pattern = re.compile(rf"(?:async\s+)?(?:def|class)\s+({re.escape(node.name)})\b")
                match = pattern.match(module.text, start)
                if match:
                    yield Edit(match.start(1), match.end(1), name)
        for statement, owner in self._reach.facts(unit).found.globals:
            if owner in self._reach.facts(unit).stubs:
                continue
            new = [self._names.get(Definition(module, name), name) for name in statement.names]
            if new != statement.names:
                yield Edit(*module.span(statement), f"global {', '.join(new)}")

    def _refused(self, one: Resolved, module: Module) -> Iterator[Edit]:
        reference = one.reference
        if self._reach.environment_default(one):
            assert reference.call is not None
            start, end = module.span(reference.call)
            if len(reference.call.args) == 1:
                yield Edit(start, end, "None")
            else:
                default = module.span(reference.call.args[1])
                yield Edit(start, default[0], "(")
                yield Edit(default[1], end, ")")
        elif reference.annotation is not None:
            if not is_soft(one, module):
                yield Edit(*module.span(reference.annotation), "object")
        elif reference.default_of is not None:
            yield Edit(*module.span(reference.default_of[1]), "None")
        elif reference.decorates is not None:
            for decorator in reference.decorates.decorator_list:
                if any(node is reference.chain for node in ast.walk(decorator)):
                    start, end = module.span(decorator)
                    at = module.text.rindex("@", 0, start)
                    yield Edit(at, end, f"# without @{module.text[start:end].splitlines()[0]}")

    @staticmethod
    def _place(reference: Reference, used: int, module: Module) -> tuple[int, int, str]:
        """(start, end, text) of the part of a chain that leads to its target."""
        node = reference.chain
        for _ in range(len(reference.names) - used):
            assert isinstance(node, ast.Attribute)
            node = node.value
        return *module.span(node), ".".join([reference.root, *reference.names[:used]])

    def _in_quotes(self, several: list[Resolved], module: Module) -> Iterator[Edit]:
        constant = several[0].reference.quoted
        assert constant is not None and isinstance(constant.value, str)
        new = constant.value
        for one in several:
            name = self._name(one)
            if name is not None:
                old = ".".join([one.reference.root, *one.reference.names[: one.used]])
                new = re.sub(rf"(?<![\w.]){re.escape(old)}(?!\w)", name, new)
        if new != constant.value:
            yield Edit(*module.span(constant), repr(new))

    def _inner_imports(self, facts: Facts) -> Iterator[Edit]:
        """Replaces imports inside functions with ``pass``, since the bundle imports at its top; an optional import that
        a candidate may not have becomes ``raise ImportError``."""
        module = facts.unit.module
        for node, owner in facts.found.inner_imports:
            if owner is None or owner not in facts.stubs:
                start, end = module.span(node)
                fails = owner is None and not self._reach.can_import(node, module)  # handled by the ``except`` below it
                instead = "raise ImportError" if fails else "pass"
                yield Edit(start, end, instead + "\n" * module.text.count("\n", start, end))


def imports(names: Mapping[Key, str], as_modules: set[str], loads: Iterable[str]) -> list[str]:
    """Import statements: modules first, then names grouped by module."""
    modules, of_module = set(), dict[str, list[str]]()
    for key, name in names.items():
        if not isinstance(key, External):
            continue
        parent, _, last = key.dotted.rpartition(".")
        if not parent or key.dotted in as_modules:
            modules.add(f"import {key.dotted}" + ("" if name == key.dotted else f" as {name}"))
        else:
            of_module.setdefault(parent, []).append(last if last == name else f"{last} as {name}")
    modules |= {f"import {dotted}" for dotted in loads if comes_along(dotted)}
    lines = sorted(modules)
    for parent in sorted(of_module):
        listed = ", ".join(sorted(of_module[parent]))
        one = f"from {parent} import {listed}"
        several = listed.replace(", ", ",\n    ")
        lines.append(one if len(one) <= _WIDTH else f"from {parent} import (\n    {several},\n)")
    return lines


def _removed(module: Module, node: ast.stmt, unused: set[Function]) -> Iterator[Edit]:
    """Removes methods that are never called, with the comments above them."""
    if not isinstance(node, ast.ClassDef):
        return
    body = [child for child in node.body if child not in unused]
    for child in node.body:
        if child not in unused:
            continue
        assert isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef))
        line = min([child.lineno, *(d.lineno for d in child.decorator_list)])
        before = max([node.lineno, *(n.end_lineno or n.lineno for n in node.body if n.lineno < line)])
        while line - 1 > before and module.lines[line - 2].lstrip().startswith("#"):
            line -= 1
        while line - 1 > before and not module.lines[line - 2].strip():
            line -= 1
        at, end = module.offset(line, 0), module.span(node)[1]
        if child.end_lineno != node.end_lineno:
            end = module.offset((child.end_lineno or child.lineno) + 1, 0)
        yield Edit(at, end, "" if body or child is not node.body[-1] else f"{' ' * child.col_offset}pass\n")


def _top_definitions(node: ast.stmt) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]:
    if isinstance(node, _DEFINITIONS):
        yield node
        return
    for child in ast.walk(node):
        if isinstance(child, _DEFINITIONS) and child.col_offset == node.col_offset + 4:
            yield child


def _stub(module: Module, function: Function, line: int, why: Refused) -> Edit:
    """Replaces a function's body with a ``raise``."""
    body = function.body
    start, end = module.offset(body[0].lineno, body[0].col_offset), module.span(body[-1])[1]
    message = f"{module.label}:{line} uses {why.what}, which candidates may not use"
    return Edit(start, end, f"raise NotImplementedError({message!r})")


def _put(one: Resolved, name: str) -> None:
    """Renames a node in the tree, for text that is generated from the tree."""
    node = one.reference.chain
    above: ast.Attribute | None = None
    for _ in range(len(one.reference.names) - one.used):
        assert isinstance(node, ast.Attribute)
        above, node = node, node.value
    if above is not None:
        above.value = ast.Name(name, ast.Load())
    elif isinstance(node, ast.Name):
        node.id = name
    else:  # the f-string's tree contains the chain's own node
        assert isinstance(node, ast.Attribute)
        node.__class__, node.__dict__ = ast.Name, {**ast.Name(name, ast.Load()).__dict__}  # type: ignore[assignment]


def _quoted_annotations(module: Module, node: ast.stmt, edits: list[Edit]) -> list[Edit]:
    """Quotes annotations of a file that has ``from __future__ import annotations`` if other files of the bundle do
    not."""
    spans = []
    for child in ast.walk(node):
        found = [child.annotation] if isinstance(child, (ast.arg, ast.AnnAssign)) else []
        found += [child.returns] if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)) else []
        spans += [module.span(one) for one in found if one is not None and not _is_string(one)]
    kept = [edit for edit in edits if not any(first <= edit.first and edit.last <= last for first, last in spans)]
    return kept + [Edit(*span, _as_text(edited(module.text, *span, edits)[0])) for span in spans]


def _as_text(annotation: str) -> str:
    """An annotation as a string constant; ``*Ts`` stays as it is, since it cannot be a string."""
    try:
        return repr(ast.unparse(expression(f"({annotation}\n)")))
    except SyntaxError:
        return annotation


def _is_string(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)
