# SPDX-License-Identifier: GPL-2.0
"""The steps of the series: the sources that each patch adds."""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

from ...kernel.suites import name as suite_name
from . import message
from .overlay import SUBJECTS, Overlay, is_suite

Libraries = Mapping[str, Set[str]]
"""The keys are sources of libraries that only some suites need. Each value has the Kconfig symbols of these suites."""


@dataclass(frozen=True)
class Step:
    """One patch.

    subject: its subject
    heads:   the sources whose head comments are its message
    sources: the C files that it adds
    name:    the suite or program that it adds, if any
    part:    the series that it belongs to, from 0; see Overlay.parts
    """

    subject: str
    heads: tuple[str, ...]
    sources: tuple[str, ...]
    name: str = ""
    part: int = 0


def plan(overlay: Overlay) -> list[Step]:
    """The patches in their order: in each folder the library first, then each suite with its own sources."""
    steps: list[Step] = []
    taken = set(overlay.left_out)
    libraries = _libraries(overlay)

    def add(part: int, subject: str, sources: Iterable[str], name: str = "") -> None:
        new = sorted(overlay.closure(sources) - taken)
        taken.update(new)
        steps.append(replace(_step(overlay, new, subject, name), part=part))

    for part, folder in product(range(len(overlay.parts)), SUBJECTS):
        here = [name for name in overlay.listed if str(Path(name).parent) == folder and name not in taken]
        suites = [name for name in here if is_suite(name)]
        if part == 0 and not suites and (core := [name for name in here if name not in libraries]):
            add(part, "", core)
        for suite in (suite for suite in suites if suite in overlay.parts[part]):
            wanted = overlay.listed[suite].union(*(overlay.symbols[symbol] for symbol in overlay.listed[suite]))
            for library in _missing(overlay, libraries, wanted, taken):
                add(part, "", library)
            what = suite_name(overlay.texts[suite]) or Path(suite).stem
            kind = "KUnit suite " if suite.endswith("_kunit.c") else ""
            add(part, f"add {kind}{what}", [suite, *_helpers(overlay, suite, here, taken)], what)
    return steps


def _step(overlay: Overlay, new: Sequence[str], subject: str, name: str) -> Step:
    """The patch that adds the sources `new`. An empty subject is replaced by the first head comment."""
    own = [source for source in new if is_suite(source)]
    headers = [source for source in new if source.endswith(".h")]
    rest = [source for source in new if not {source, *overlay.includes[source]} & set(headers)]
    heads = own or sorted([*headers, *rest], key=lambda head: Path(head).stem != Path(head).parent.name)
    subject = subject or f"add {message.clause(overlay.texts[heads[0]])}"
    folders = {str(Path(source).parent) for source in new}
    prefix = next(prefix for folder, prefix in SUBJECTS.items() if folder in folders)
    if len(f"{prefix}: {subject}") > message.WIDTH:
        subject = f"add {', '.join(Path(head).stem for head in heads)}"
    return Step(f"{prefix}: {subject}", tuple(heads), tuple(new), name)


def _libraries(overlay: Overlay) -> Libraries:
    tested = {str(Path(name).parent) for name in overlay.listed if is_suite(name)}
    found: dict[str, set[str]] = {}
    for makefile in overlay.makefiles.values():
        if makefile.folder not in tested:
            whole = set().union(*(c.symbols for c in makefile.chunks if c.statement.startswith("obj-")))
            found |= {name: rest for name in makefile.listed() if (rest := overlay.listed[name] - whole)}
    return found


def _missing(overlay: Overlay, libraries: Libraries, wanted: Set[str], taken: Set[str]) -> list[list[str]]:
    """The library sources to add before the suites of the symbols `wanted`: one list for each patch."""
    found: dict[str, list[str]] = {}
    for name, symbols in libraries.items():
        if name not in taken and symbols & wanted:
            new = [header for header in overlay.includes[name] if header not in taken]
            found.setdefault(min(new, default=name), []).append(name)
    return list(found.values())


def _helpers(overlay: Overlay, suite: str, here: Iterable[str], taken: Set[str]) -> Iterator[str]:
    """Other sources in the suite's folder, if the suite's symbol builds them and the suite includes their header."""
    headers = overlay.closure([suite])
    for name in here:
        if not is_suite(name) and name not in taken and overlay.listed[name] & overlay.listed[suite]:
            own = [header for header in overlay.includes[name] if Path(header).parent == Path(name).parent]
            if not own or set(own) & headers:
                yield name
