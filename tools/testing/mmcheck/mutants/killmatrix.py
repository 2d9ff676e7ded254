# SPDX-License-Identifier: GPL-2.0
"""The kill matrix: the cases that notice each mutant, and findings about the tests."""

import fnmatch
import json
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..core import disk
from ..run import closing
from . import catalogue, sample
from .catalogue import Mutant

FOLDER = catalogue.FOLDER / "matrix"
REASONS = FOLDER / "unproven.toml"
"""The reasons why some cases notice no mutant: `"suite.case" = "reason"`. The name may be a glob."""

KINDS = ("failed", "splat", "hang")


@dataclass
class Row:
    """The cases that notice a mutant.

    cases:   each case that notices the mutant, with one of KINDS
    spared:  slow cases that did not run, because enough quicker cases notice the mutant; their verdicts are unknown
    reached: the number of cases that run a function that the mutant changes
    cut:     whether the kernel died so often that some of these cases did not run
    seconds: the time of all boots
    """

    cases: dict[str, str] = field(default_factory=dict)
    reached: int = 0
    cut: bool = False
    seconds: float = 0.0
    spared: list[str] = field(default_factory=list)


@dataclass
class Matrix:
    """The rows of one kernel and architecture, and all cases that ran there. Skipped cases are left out."""

    kernel: str = ""
    cases: list[str] = field(default_factory=list)
    rows: dict[str, Row] = field(default_factory=dict)

    def save(self, path: Path) -> None:
        """Write the matrix as small JSON, with one line per mutant, so that diffs are readable."""
        path.parent.mkdir(parents=True, exist_ok=True)
        every = sorted({*self.cases, *(case for row in self.rows.values() for case in (*row.cases, *row.spared))})
        place = {case: number for number, case in enumerate(every)}
        rows = {}
        for name, row in sorted(self.rows.items()):
            found: dict[str, object] = {"reached": row.reached}
            for kind in KINDS:
                if own := [place[case] for case, how in row.cases.items() if how == kind]:
                    found[kind] = ranges(own)
            if row.spared:
                found["spared"] = ranges(place[case] for case in row.spared)
            rows[name] = {**found, "cut": True} if row.cut else found
        suites: dict[str, list[str]] = {}
        for case in every:
            suites.setdefault(case.partition(".")[0], []).append(case.partition(".")[2])
        lines = [f'"kernel": {json.dumps(self.kernel)}']
        for title, content in (
            ("cases", {suite: " ".join(names) for suite, names in suites.items()}),
            ("mutants", rows),
        ):
            inner = ",\n".join(
                f"{json.dumps(name)}: {json.dumps(value, sort_keys=True)}" for name, value in content.items()
            )
            lines.append(f'"{title}": {{\n{inner}\n}}')
        disk.replace(path, ("{\n" + ",\n".join(lines) + "\n}\n").encode())

    @classmethod
    def load(cls, path: Path) -> "Matrix":
        """Read the file that save() wrote. Returns an empty matrix if there is no file."""
        try:
            whole = json.loads(path.read_text())
        except FileNotFoundError:
            return cls()
        cases = [f"{suite}.{case}" for suite, names in whole["cases"].items() for case in names.split(" ")]
        rows = {}
        for name, found in whole["mutants"].items():
            noticed = {cases[place]: kind for kind in KINDS for place in places(found.get(kind, ""))}
            spared = [cases[place] for place in places(found.get("spared", ""))]
            rows[name] = Row(noticed, found["reached"], bool(found.get("cut")), spared=spared)
        return cls(whole["kernel"], cases, rows)


def ranges(numbers: Iterable[int]) -> str:
    """Numbers as text: "1 3-5"."""
    parts: list[list[int]] = []
    for number in sorted(numbers):
        if parts and parts[-1][1] == number - 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return " ".join(str(first) if first == last else f"{first}-{last}" for first, last in parts)


def places(text: str) -> list[int]:
    """The inverse of ranges()."""
    result: list[int] = []
    for part in text.split():
        first, _, last = part.partition("-")
        result += range(int(first), int(last or first) + 1)
    return result


def file_of(kernel: str, arch: str, pages: str, kind: str = "") -> Path:
    """The file for a kernel. Its name contains the first two numbers of the version."""
    version = ".".join(re.split(r"[.+-]", kernel)[:2])
    size = f"-{pages}" if arch == "arm64" and pages != "4K" else ""
    return FOLDER / f"{version}-{arch}{size}{kind}.json"


def hints() -> dict[tuple[str, str], list[str]]:
    """For each function (file and name), the suites and selftests that notice its mutants; the best comes first.

    The data come from the catalogue and the results on all kernels. For generated mutants the file is "", because their
    names contain no file.
    """
    counted: dict[tuple[str, str], Counter[str]] = {}
    matrices = [Matrix.load(path) for path in sorted(FOLDER.glob("*.json"))]
    for place, name, suite in catalogue.hints(catalogue.FOLDER):
        count = counted.setdefault(place, Counter())
        for matrix in matrices:
            count.update({case.partition(".")[0] for case in matrix.rows.get(name, Row()).cases})
        if suite:
            count[suite] += 1
    for function, suite in sample.noticed():
        counted.setdefault(("", function), Counter())[suite] += 1
    return {place: [suite for suite, _ in count.most_common()] for place, count in counted.items()}


def reasons() -> dict[str, str]:
    """The reasons why some cases notice no mutant, by globs of their names."""
    try:
        return {str(glob): str(why) for glob, why in tomllib.loads(REASONS.read_text()).items()}
    except FileNotFoundError:
        return {}


@dataclass
class Findings:
    """The findings of the matrix about the tests.

    unproven:  cases that notice no mutant, with the given reason, or ""
    fragile:   mutants that only one case notices, with this case
    unnoticed: mutants that no case notices
    idle:      suites that notice only mutants that other suites notice too
    """

    unproven: dict[str, str]
    fragile: dict[str, str]
    unnoticed: list[str]
    idle: list[str]


def findings(matrix: Matrix, catalogued: Sequence[Mutant], why: Mapping[str, str]) -> Findings:
    """Read the matrix. Equivalent mutants do not count, even if a case notices them."""
    same = {mutant.name for mutant in catalogued if mutant.equivalent}
    rows = {name: row for name, row in matrix.rows.items() if name not in same}
    useful = {case for row in rows.values() for case in row.cases}
    unproven = {}
    for case in matrix.cases:
        if case not in useful:
            unproven[case] = next((text for glob, text in why.items() if fnmatch.fnmatch(case, glob)), "")
    alone: set[str] = set()
    for row in rows.values():
        noticing = {case.partition(".")[0] for case in row.cases}
        # A spared case might notice the mutant too.
        alone |= noticing if len(noticing | {case.partition(".")[0] for case in row.spared}) == 1 else set()
    every = {case.partition(".")[0] for case in matrix.cases}
    return Findings(
        unproven,
        {name: next(iter(row.cases)) for name, row in sorted(rows.items()) if len(row.cases) == 1 and not row.spared},
        sorted(name for name, row in rows.items() if not row.cases),
        sorted(every - alone),
    )


def summary(matrix: Matrix, catalogued: Sequence[Mutant]) -> str:
    """The findings as text for a terminal."""
    found = findings(matrix, catalogued, reasons())
    count = len(matrix.cases) or 1
    open_ones = [case for case, why in found.unproven.items() if not why]
    lines = [f"{len(matrix.rows)} mutants, {len(matrix.cases)} cases"]
    share = 100 * len(found.unproven) / count
    lines.append(
        f"{len(found.unproven)} cases ({share:.1f} %) notice no mutant; {len(open_ones)} of these cases have "
        f"no reason in {REASONS.name}:"
    )
    lines += [f"  {case}  {why}".rstrip() for case, why in found.unproven.items()]
    lines.append(f"{len(found.fragile)} mutants are noticed by only one case:")
    lines += [f"  {name}  {case}" for name, case in found.fragile.items()]
    lines.append(f"{len(found.unnoticed)} mutants are not noticed: {' '.join(found.unnoticed)}")
    lines.append(f"{len(found.idle)} suites notice only mutants that other suites notice too: {' '.join(found.idle)}")
    if cut := [name for name, row in matrix.rows.items() if row.cut]:
        lines.append(f"{len(cut)} mutants crash the kernel so often that not all cases ran: {' '.join(sorted(cut))}")
    return "\n".join(lines)


def ending(found: Findings, matrix: Matrix, path: Path, environ: Mapping[str, str]) -> list[str]:
    """The last paragraph of the run's output."""
    bare = [case for case, why in found.unproven.items() if not why]
    share = 100 * len(found.unproven) / (len(matrix.cases) or 1)
    return closing.lines(
        f"kill matrix of linux {matrix.kernel}: {len(found.unproven)} of {len(matrix.cases)} cases ({share:.1f} %)"
        f" notice none of {len(matrix.rows)} mutants",
        [
            closing.named(f"cases that notice no mutant, and for which there is no reason in {REASONS.name}", bare),
            closing.named("mutants that no case notices", found.unnoticed),
        ],
        path,
        closing.make("report", environ),
    )
