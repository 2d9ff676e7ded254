# SPDX-License-Identifier: GPL-2.0
"""The table skips.toml: the skips that each cell may have, with their reasons.

A skip that is not in the table fails its cell: a test that does not run proves nothing. A line that
no longer matches a skip is reported, so that the table stays correct.
"""

import dataclasses
import fnmatch
import re
import shlex
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..boot import results
from ..core.errors import UserError
from ..core.settings import PROJECT
from . import closing
from .cell import Cell

TABLE = Path(__file__).parent / "skips.toml"
ISSUES = PROJECT / "KNOWN_ISSUES.md"
ABSENT = "the suite is not in this kernel"
"""The reason for the skip of a suite that is in the architecture's sources, but appears on no console."""

CONDITIONS = ("kernels", "arches", "pages", "flavours")
FIELDS = {"why", "says", "cases", "unskip", "selftests", "maybe", *CONDITIONS}
_ISSUE = re.compile(r"known issue (\d+)\b")


@dataclass(frozen=True)
class Line:
    """One reason for skips.

    why:       the reason
    says:      glob of the reason that the test prints
    cases:     globs of `suite.case`, or `suite.case: parameter`
    unskip:    the variables and arguments with which kunit.py runs the cases, or ""
    selftests: the line is for selftests, not for KUnit suites
    maybe:     the machine decides whether the cases are skipped
    only:      by condition (a field of Cell), the values for which the line holds; "!" in front of a value excludes it
    """

    why: str
    says: str
    cases: tuple[str, ...]
    unskip: str = ""
    selftests: bool = False
    maybe: bool = False
    only: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def holds(self, cell: Cell) -> bool:
        """Whether the line is about `cell`."""
        return self.selftests == cell.selftests and all(
            fits(values, getattr(cell, name) or "plain") for name, values in self.only
        )

    def allows(self, case: results.Case) -> bool:
        """Whether the line is about `case`, in any state. The line must hold for the cell."""
        return any(fnmatch.fnmatchcase(case.full, glob) for glob in self.cases)

    def explains(self, case: results.Case) -> bool:
        """Whether the line is about `case`, and matches the reason of its skip."""
        return fnmatch.fnmatchcase(" ".join(case.text).strip(), self.says) and self.allows(case)


def fits(values: Sequence[str], value: str) -> bool:
    """Whether `value` is one of `values`, or differs from each of `values` that begins with "!"."""
    others = [word[1:] for word in values if word.startswith("!")]
    return value in values or (bool(others) and value not in others)


def load(path: Path = TABLE) -> list[Line]:
    """Read the table. Raises UserError if an entry is wrong."""
    field = {"kernels": "kernel", "arches": "arch", "pages": "pages", "flavours": "flavour"}
    found = []
    for entry in tomllib.loads(path.read_text()).get("skip", []):
        if unknown := set(entry) - FIELDS:
            raise UserError(f"{path.name}: {entry}: there is no key {', '.join(sorted(unknown))}")
        if not entry.get("why") or not entry.get("says") or not entry.get("cases"):
            raise UserError(f"{path.name}: {entry}: needs the keys `why`, `says` and `cases`")
        only = tuple((field[key], tuple(entry[key])) for key in CONDITIONS if key in entry)
        text = (entry["why"], entry["says"], tuple(entry["cases"]), entry.get("unskip", ""))
        found.append(Line(*text, bool(entry.get("selftests")), bool(entry.get("maybe")), only))
    return found


def issues(path: Path = ISSUES) -> dict[int, tuple[str, str]]:
    """For the number of each known issue: the kernels that have the issue, and the tests that meet it."""
    pattern = r"^## (\d+)\..*?^\| kernels \| (.*?)(?:;|\. | \|$).*?^\| tests? \| (.*?) \|$"
    found = re.findall(pattern, path.read_text(), re.MULTILINE | re.DOTALL)
    return {int(number): (kernels, tests) for number, kernels, tests in found}


def known(case: results.Case, cell: Cell) -> bool:
    """Whether the skip of `case` is for a known issue that names this case and the kernel of `cell`."""
    match = _ISSUE.match(" ".join(case.text))
    kernels, tests = issues().get(int(match[1]), ("", "")) if match else ("", "")
    whole = case.name.partition(": ")[0]
    # The document names a case of a selftest `suite.case`, or `fixture.case` if the fixture has its own
    # name. The variant is left out.
    first, last = whole.partition(".")[0], whole.rpartition(".")[2]
    names = {f"`{case.suite}.{last}`", f"`{first}.{last}`"}
    return re.search(rf"\b{re.escape(cell.kernel)}\b", kernels) is not None and any(name in tests for name in names)


@dataclass
class Verdict:
    """The cases of a cell, compared with the table.

    cases:  all cases; a skip that the table does not allow is a failure
    wrong:  only the skips that became failures
    gone:   messages about cases that ran, or that had another reason, although the table expects a skip
    """

    cases: list[results.Case]
    wrong: list[results.Case]
    gone: list[str]


def judge(
    cell: Cell, cases: Sequence[results.Case], lines: Sequence[Line] | None = None, suites: Sequence[str] = ()
) -> Verdict:
    """Compare the skips of a cell with the table. The user's own tree may skip any case.

    suites: the suites that the cell should have; a suite without cases counts as skipped
    """
    if not cell.kernel:
        return Verdict(list(cases), [], [])
    own = [line for line in (load() if lines is None else lines) if line.holds(cell)]
    verdict = Verdict([], [], [])
    missing = absent(cases, suites)
    for case in [*cases, *missing]:
        if case.state == "skipped" and not known(case, cell) and not any(line.explains(case) for line in own):
            said = " ".join(case.text).strip() or "no reason given"
            text = [f"skipped: {said}", f"skips.toml allows no such skip of {case.full} on {cell}"]
            case = dataclasses.replace(case, state="failed", text=text)
            verdict.wrong.append(case)
        elif case in missing:
            continue
        verdict.cases.append(case)
    skipped = [case for case in [*cases, *missing] if case.state == "skipped"]
    for line in (line for line in own if not line.maybe):
        for glob in line.cases:
            part = dataclasses.replace(line, cases=(glob,))
            if any(part.explains(case) for case in skipped):
                continue
            if any(part.allows(case) for case in cases):
                other = any(part.allows(case) for case in skipped)
                what = (
                    "the case was skipped for another reason: correct the line"
                    if other
                    else "the case ran: remove the line"
                )
                verdict.gone.append(f"a line of skips.toml expects a skip of {glob} ({line.says}), but {what}")
    return verdict


def absent(cases: Sequence[results.Case], suites: Sequence[str]) -> list[results.Case]:
    """A skip for each of `suites` that has no case."""
    present = {case.suite for case in cases}
    return [results.Case(suite, "", "skipped", text=[ABSENT]) for suite in suites if suite not in present]


def likely(lines: Sequence[Line], version: str, arch: str, pages: str) -> list[Line]:
    """The lines that may be about a run outside of the matrix; the flavour of such a run is not known.

    version, arch: of the kernel, or "". If the table does not name the version, the lines of all versions count.
    """
    match = re.match(r"\d+\.\d+", version)
    named = {value.removeprefix("!") for line in lines for _, values in line.only for value in values}
    known = {"arch": arch, "pages": pages, "kernel": match[0] if match and match[0] in named else ""}
    return [
        line for line in lines if all(fits(values, known[field]) for field, values in line.only if known.get(field))
    ]


def command(line: Line, arch: str, environ: Mapping[str, str]) -> str:
    """The whole command for the cases of `line`, after a run of `arch` with the variables `environ` skipped them."""
    words = shlex.split(line.unskip)
    own = dict(word.split("=", 1) for word in words if re.match(r"[A-Z]+=", word))
    arguments = [word for word in words if not re.match(r"[A-Z]+=", word)]
    given = {name: value for name, value in environ.items() if name != "ARCH"}
    if "KERNEL" in own:
        # The cases need another kernel than the user's own tree, and the patch is for that tree.
        given = {name: value for name, value in given.items() if name not in ("KDIR", "PATCH", "BASELINE")}
    wanted = next((word.partition("=")[2] for word in arguments if word.startswith("--arch=")), "")
    if wanted not in ("", "arm64"):
        given.pop("PAGES", None)
    return closing.again(["run", *([] if wanted else [f"--arch={arch}"]), *arguments], {**given, **own})


NEWER = "KERNEL=7.3"
"""If the `unskip` of a line is exactly this text, a newer kernel is all that the cases of the line need."""


def summary(cases: Sequence[results.Case], lines: Sequence[Line], arch: str, environ: Mapping[str, str]) -> list[str]:
    """The reasons of skips that another command avoids, each with this command, the most frequent first."""
    skipped = [case for case in cases if case.state == "skipped"]
    found = (next((line for line in lines if line.explains(case)), None) for case in skipped)
    reasons = Counter(
        f"{'These tests need functions of 7.3.' if line.unskip == NEWER else line.why} "
        f"To run them: {command(line, arch, environ)}"
        for line in found
        if line and line.unskip
    )
    return [f"{number} skipped: {why}" for why, number in reasons.most_common()]
