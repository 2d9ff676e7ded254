# SPDX-License-Identifier: GPL-2.0
"""The known kernel bugs: their table, the files that are generated from it, and the check that finds these bugs in
a tree.

The table is known_issues.toml. A failure is accepted only in a tree that has the faulty code and is older than the fix.
The script known_issues.sh checks this when kernel and selftests are built; this module writes the script. The fields of
an issue:

    number    as in KNOWN_ISSUES.md and in the tests
    harm      one of HARMS, in which the worst comes first
    tests     the cases that meet the issue
    patch     files that fix the issue; each kernel that has the issue needs one of them
    upstream  what upstream did about the issue
    fixes     the commit that introduced the issue
    fixed_in  the first version without the issue, if there is one; a newer tree with the faulty code has a regression
    file      the file with the faulty code; two names, separated by a blank, if the file differs between kernels
    name      a text that the file must have; if the text is missing, the answer is unknown
    config    options that KUnit needs to meet the issue, in addition to the usual options of the suites
    where     the machine on which a test meets the issue, if not `arm64 4K`: an architecture, and for arm64 a page size
    faulty    texts of the faulty code; one match is enough, and a blank matches any white space
"""

import contextlib
import re
import shlex
import sys
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..core.settings import PROJECT

STALE = re.compile(r"known issue (\d+) is stale")
"""A test prints this text if it passed although the tree has the faulty code of the known issue."""

MET = re.compile(r"known issue (\d+): ")
"""If a test meets a known issue, the test is skipped. The reason of this skip begins with this text."""

HARMS = {
    "memory": "data is lost, or a process accesses memory that it must not access",
    "state": "the kernel reports or stores wrong information",
    "speed": "memory or time is wasted",
    "latent": "no code of this kernel triggers the bug, or the bug has no effect on today's CPUs",
}

TABLE = Path(__file__).parent / "known_issues.toml"
SCRIPT = "lib/pgtable_kunit/known_issues.sh"
DOCUMENT = "KNOWN_ISSUES.md"

TEMPLATE = Path(__file__).with_suffix(".sh")
"""The template of the script. The issues replace its line `# ISSUES`."""


@dataclass(frozen=True)
class Issue:
    """One entry of the table; see the head of this file."""

    number: int
    title: str
    kernels: str
    needs: str
    tests: tuple[str, ...]
    effect: str
    patch: tuple[str, ...]
    upstream: str
    fixes: str
    file: str
    name: str
    faulty: tuple[str, ...]
    harm: str = "latent"
    fixed_in: str = ""
    config: tuple[str, ...] = ()
    where: str = "arm64 4K"

    @property
    def machine(self) -> tuple[str, str]:
        """The architecture and the page size of the machine on which a test meets the issue."""
        arch, _, pages = self.where.partition(" ")
        return arch, pages or "4K"

    def shown(self, version: tuple[int, int], read: Callable[[str], str]) -> bool | None:
        """Whether a tree of this version has the issue; None if this is unknown. `read` returns the text of a file."""
        if self.fixed_in and version >= parsed(self.fixed_in):
            return False
        text = ""
        for file in self.file.split():
            with contextlib.suppress(OSError):
                text += " ".join(read(file).split()) + " "
        return any(faulty in text for faulty in self.faulty) if self.name in text else None


def load(path: Path = TABLE) -> list[Issue]:
    """The table."""
    entries: list[dict[str, Any]] = tomllib.loads(path.read_text())["issue"]
    fields: list[dict[str, Any]] = [
        {key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()} for entry in entries
    ]
    return [Issue(**field) for field in fields]


def parsed(version: str) -> tuple[int, int]:
    """Major and minor number of a version."""
    major, minor = version.split(".")[:2]
    return int(major), int(minor)


def version_of(read: Callable[[str], str]) -> tuple[int, int]:
    """The version of a kernel tree, by its Makefile."""
    found = re.findall(r"^(?:VERSION|PATCHLEVEL) = (\d+)", read("Makefile"), re.MULTILINE)
    return int(found[0]), int(found[1])


def script(issues: Sequence[Issue]) -> str:
    """The text of the script that checks a tree."""
    lines = []
    for issue in issues:
        first = f"issue {issue.number} {issue.fixed_in or repr('')} {shlex.quote(issue.file)} {shlex.quote(issue.name)}"
        lines.append(" \\\n\t".join([first, *(shlex.quote(text) for text in issue.faulty)]))
    return TEMPLATE.read_text().replace("# ISSUES", "\n".join(lines))


def rows(issue: Issue) -> str:
    """The table that KNOWN_ISSUES.md has below the title of an issue."""
    files = ", ".join(f"`{name}`" for name in issue.patch)
    program = f"patches/reproducers/known-issue-{issue.number}.c"
    named = {
        "kernels": issue.kernels,
        "needs": issue.needs,
        "test": ", ".join(f"`{test}`" for test in issue.tests),
        "effect": issue.effect,
        "upstream": issue.upstream,
        "since": issue.fixes,
        "patch": files,
        "reproducer": f"`{program}`" if (PROJECT / program).exists() else "",
        "seen in a tree by": f"the faulty code in `{issue.file.replace(' ', '` or `')}`"
        + (f", in versions before {issue.fixed_in}" if issue.fixed_in else ""),
    }
    body = "\n".join(f"| {name} | {text} |" for name, text in named.items() if text)
    return f"| | |\n|---|---|\n{body}\n"


def summary(issues: Sequence[Issue]) -> str:
    """The table at the head of KNOWN_ISSUES.md: the worst issues first."""
    lines = ["| harm | issue | kernels |", "|---|---|---|"]
    for harm, meaning in HARMS.items():
        for issue in issues:
            if issue.harm == harm:
                kernels = ", ".join(re.findall(r"\d+\.\d+\.\d+", issue.kernels.partition(";")[0]))
                lines.append(f"| {meaning} | {issue.number}. {issue.title} | {kernels} |")
                meaning = ""
    return "\n".join(lines) + "\n"


def document(text: str, issues: Sequence[Issue]) -> str:
    """KNOWN_ISSUES.md with its titles and tables made from `issues`; the text below the tables stays."""
    text = re.sub(r"^\| harm \|.*\n(?:\|.*\n)+", summary(issues).replace("\\", r"\\"), text, flags=re.MULTILINE)
    for issue in issues:
        pattern = rf"^## {issue.number}\. .*\n\n(?:\|.*\n)+"
        new = f"## {issue.number}. {issue.title}\n\n{rows(issue)}"
        text = re.sub(pattern, new.replace("\\", r"\\"), text, flags=re.MULTILINE)
    return text


def main() -> int:
    """Write the script and the document from the table."""
    issues = load()
    (PROJECT / SCRIPT).write_text(script(issues))
    (PROJECT / SCRIPT).chmod(0o755)
    path = PROJECT / DOCUMENT
    path.write_text(document(path.read_text(), issues))
    return 0


if __name__ == "__main__":
    sys.exit(main())
