# SPDX-License-Identifier: GPL-2.0
"""The packages of the host side import in one direction, without cycles, as mmcheck/__init__.py lists them."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import mmcheck
from mmcheck.core.settings import PROJECT

ROOT = PROJECT / "tools/testing/mmcheck"
LINES = 350
"""The largest number of lines of a module."""

MODULES = sorted(path for path in ROOT.rglob("*.py") if path.parent != ROOT / "tests")


def layers(text: str) -> list[str]:
    """The names at the beginning of the lines of a list in a docstring, in order."""
    return re.findall(r"^(\w+) +\S", text.partition("\n\n")[2], re.MULTILINE)


def imported(path: Path) -> Iterator[str]:
    """The modules of this package that a module imports anywhere, as dotted names without the name of the package."""
    here = path.relative_to(ROOT).parent.parts
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.ImportFrom) or not (node.level or (node.module or "").startswith("mmcheck")):
            continue
        base = [*here[: len(here) - node.level + 1]] if node.level else []
        module = [*base, *(node.module or "").removeprefix("mmcheck").strip(".").split(".")]
        where = ROOT.joinpath(*filter(None, module))
        for alias in node.names:
            whole = where / alias.name
            known = whole.with_suffix(".py").exists() or (whole / "__init__.py").exists()
            yield ".".join((whole if known else where).relative_to(ROOT).parts)


def test_the_list_of_packages_is_complete() -> None:
    packages = {path.parent.name for path in ROOT.glob("*/__init__.py")} - {"tests"}
    assert set(layers(mmcheck.__doc__ or "")) == packages | {"verb", "container", "verbs", "completion"}


@pytest.mark.parametrize("package", sorted(path.parent for path in ROOT.glob("*/**/__init__.py")), ids=lambda p: p.name)
def test_a_package_lists_its_modules(package: Path) -> None:
    text = ast.get_docstring(ast.parse((package / "__init__.py").read_text())) or ""
    modules = {path.stem for path in package.glob("*.py")} - {"__init__"}
    modules |= {path.parent.name for path in package.glob("*/__init__.py")}
    if package.name not in ("tests", "report", "patterns"):  # the docstrings of these packages list no modules
        assert set(layers(text)) == modules


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_go_down(path: Path) -> None:
    order = layers(mmcheck.__doc__ or "")
    own = path.relative_to(ROOT).parts[0].removesuffix(".py")
    if own in ("__main__", "__init__"):
        return
    below = set(order[: order.index(own) + 1])
    assert {name.split(".")[0] for name in imported(path)} <= below


def test_there_is_no_cycle() -> None:
    graph = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): set(imported(path))
        for path in MODULES
    }
    done: set[str] = set()

    def visit(name: str, above: tuple[str, ...]) -> None:
        assert name not in above, " -> ".join([*above, name])
        if name not in done:
            for other in graph.get(name, ()):
                visit(other, (*above, name))
            done.add(name)

    for name in graph:
        visit(name, ())


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_modules_are_short(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= LINES
