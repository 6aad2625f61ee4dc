"""Stubs, public names and examples in docstrings are what the package has.

For: keeping `_native.pyi`, `__all__` and documentation honest. Must never know: what they do.
"""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import pytest

import cachewright
from cachewright import _native

PACKAGE = Path(cachewright.__file__).parent
MODULES = [
    module.name
    for module in pkgutil.walk_packages([str(PACKAGE)], "cachewright.")
    if not module.name.endswith(("_native", "__main__"))
]


def _stub() -> ast.Module:
    return ast.parse((PACKAGE / "_native.pyi").read_text(encoding="utf-8"))


def _parameters(node: ast.FunctionDef) -> list[tuple[str, bool]]:
    plain = [(a.arg, False) for a in node.args.args if a.arg not in ("self", "cls")]
    return plain + [(a.arg, True) for a in node.args.kwonlyargs]


def _runtime(function: object) -> list[tuple[str, bool]]:
    signature = inspect.signature(function)  # type: ignore[arg-type]
    return [
        (name, parameter.kind is inspect.Parameter.KEYWORD_ONLY)
        for name, parameter in signature.parameters.items()
        if name != "self"
    ]


def test_the_stub_names_what_the_module_exports() -> None:
    nodes = [n for n in _stub().body if isinstance(n, ast.FunctionDef | ast.ClassDef)]
    values = [n.target for n in _stub().body if isinstance(n, ast.AnnAssign)]
    names = {node.name for node in nodes} | {ast.unparse(value) for value in values}
    exported = {name for name in dir(_native) if not name.startswith("_")}
    assert {name for name in names if not name.startswith("_")} == exported
    assigned = [n for n in _stub().body if isinstance(n, ast.Assign)]
    listed = [ast.literal_eval(n.value) for n in assigned]
    assert [sorted(names) for names in listed] == [sorted(_native.__all__)]


def test_the_stub_has_the_module_s_signatures() -> None:
    for node in _stub().body:
        if isinstance(node, ast.FunctionDef):
            assert _parameters(node) == _runtime(getattr(_native, node.name)), node.name
        if isinstance(node, ast.ClassDef) and not node.bases:
            kind = getattr(_native, node.name)
            methods = {n.name: n for n in node.body if isinstance(n, ast.FunctionDef)}
            made = methods.pop("__new__", None)
            if made is None:
                with pytest.raises(TypeError, match=r"cannot create|No constructor"):
                    kind()
            else:
                assert _parameters(made) == _runtime(kind), node.name
            values = {ast.unparse(n.target) for n in node.body if isinstance(n, ast.AnnAssign)}
            public = {name for name in dir(kind) if not name.startswith("_")}
            assert set(methods) | values == public
            for name, method in methods.items():
                if callable(getattr(kind, name)):
                    assert _parameters(method) == _runtime(getattr(kind, name)), name
                else:
                    assert [ast.unparse(d) for d in method.decorator_list] == ["property"], name


def test_every_public_name_is_there_and_documented() -> None:
    for name in cachewright.__all__:
        value = getattr(cachewright, name)
        assert name == "__version__" or inspect.getdoc(value)
    assert set(cachewright.__all__) <= set(dir(cachewright))
    with pytest.raises(AttributeError):
        _ = cachewright.nothing


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_hold(name: str) -> None:
    module = importlib.import_module(name)
    assert doctest.testmod(module).failed == 0


@pytest.mark.parametrize("name", ["cachewright.examples.verdicts"])
def test_indented_examples_run(traces: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    module = importlib.import_module(name)
    lines = re.findall(r"^    (.*)$", module.__doc__ or "", flags=re.M)
    assert lines
    code = "\n".join(lines).replace("trace.csv.zst", "a.csv")
    exec(code, {"cachewright": cachewright, **vars(module)})
    assert 0.0 < float(capsys.readouterr().out) <= 1.0
