# SPDX-License-Identifier: GPL-2.0
"""The bugs of kernels that the suites know: their table, what derives from it, and which of them a tree has.

The table is known_issues.toml. A failure is accepted only in a tree that shows the faulty code and is older than the
fix, so a tree is asked when kernel and selftests are built, by a script that this module writes:

    number    as in KNOWN_ISSUES.md and in the tests
    harm      one of HARMS, the worst first
    tests     the cases that meet it
    patch     files that fix it; each kernel that has the issue takes one of them
    upstream  what became of it there, fixes: the commit that brought it in
    fixed_in  the first version without it, if there is one: a newer tree with that code has a regression
    file      where the faulty code is, name: a text that the file must have; without it the answer is unknown
    config    what KUnit needs to meet it, besides what the suites need anyway
    where     the machine on which a test meets it, if not `arm64 4K`: an architecture, with the pages of arm64
    faulty    the faulty code, all blanks and line ends as one blank; one of several is enough
"""

import re
import shlex
import sys
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .settings import PROJECT

STALE = re.compile(r"known issue (\d+) is stale")
"""What a test prints if it passed where a known issue predicts a failure."""

MET = re.compile(r"known issue (\d+): ")
"""How the reason of a skip begins, in a test that met a known issue."""

HARMS = {
    "memory": "data is lost, or a process reaches memory that it must not",
    "state": "the kernel reports or remembers something wrong",
    "speed": "memory or time is wasted",
    "latent": "no code of this kernel triggers it, or today's CPUs ignore it",
}

TABLE = Path(__file__).parent / "known_issues.toml"
SCRIPT = "lib/pgtable_kunit/known_issues.sh"
DOCUMENT = "KNOWN_ISSUES.md"

HEAD = """\
#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Which known issues of the page-table tests a kernel tree has: prints a number
# with bit N for issue N. An issue is there if its faulty code is, in a version
# older than the fix. Says on standard error if it cannot tell.
#
# usage: known_issues.sh TREE [HEADER]
#
# With HEADER the number goes there, as FOLIO_KNOWN_ISSUES, if it has changed.
#
# Written by known_issues.py from known_issues.toml: change these.

LC_ALL=C
export LC_ALL
tree=$1
mask=0
version=$(sed -n 's/^VERSION = //p' "$tree/Makefile")
level=$(sed -n 's/^PATCHLEVEL = //p' "$tree/Makefile")

# older MAJOR.MINOR: whether the tree is
older()
{
	[ "$version" -lt "${1%.*}" ] ||
	{ [ "$version" -eq "${1%.*}" ] && [ "$level" -lt "${1#*.}" ]; }
}

# issue NUMBER FIXED_IN FILE NAME FAULTY...
issue()
{
	number=$1 fixed_in=$2 file=$3 name=$4
	shift 4
	if [ -n "$fixed_in" ] && ! older "$fixed_in"; then
		return
	fi
	text=$(cat "$tree/$file" 2>/dev/null | tr -s '[:space:]' ' ')
	case $text in
	*"$name"*) ;;
	*)
		echo "known issue $number: unknown, no $name in $file" >&2
		return
		;;
	esac
	for faulty; do
		case $text in
		*"$faulty"*)
			mask=$((mask | 1 << number))
			;;
		esac
	done
}

"""

TAIL = """
if [ -z "$2" ]; then
	printf '0x%x\\n' "$mask"
	exit
fi
line=$(printf '#define FOLIO_KNOWN_ISSUES 0x%x' "$mask")
if [ "$line" != "$(cat "$2" 2>/dev/null)" ]; then
	mkdir -p "$(dirname "$2")" && echo "$line" >"$2"
fi
"""


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
        """Architecture and pages of the machine on which a test meets it."""
        arch, _, pages = self.where.partition(" ")
        return arch, pages or "4K"

    def shown(self, version: tuple[int, int], read: Callable[[str], str]) -> bool | None:
        """Whether a tree of that version has it; None where that is unknown. `read` gives the text of a file."""
        if self.fixed_in and version >= parsed(self.fixed_in):
            return False
        try:
            text = " ".join(read(self.file).split())
        except OSError:
            return None
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
    """The script that asks a tree."""
    lines = []
    for issue in issues:
        first = f"issue {issue.number} {issue.fixed_in or repr('')} {issue.file} {shlex.quote(issue.name)}"
        lines.append(" \\\n\t".join([first, *(shlex.quote(text) for text in issue.faulty)]))
    return HEAD + "\n".join(lines) + "\n" + TAIL


def rows(issue: Issue) -> str:
    """What KNOWN_ISSUES.md has of an entry below its title."""
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
        "seen in a tree by": f"the faulty code in `{issue.file}`"
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
    """KNOWN_ISSUES.md with titles and tables as `issues` have them; what is below the tables stays."""
    text = re.sub(r"^\| harm \|.*\n(?:\|.*\n)+", summary(issues).replace("\\", r"\\"), text, flags=re.MULTILINE)
    for issue in issues:
        pattern = rf"^## {issue.number}\. .*\n\n(?:\|.*\n)+"
        new = f"## {issue.number}. {issue.title}\n\n{rows(issue)}"
        text = re.sub(pattern, new.replace("\\", r"\\"), text, flags=re.MULTILINE)
    return text


def main() -> int:
    """Write what derives from the table."""
    issues = load()
    (PROJECT / SCRIPT).write_text(script(issues))
    (PROJECT / SCRIPT).chmod(0o755)
    path = PROJECT / DOCUMENT
    path.write_text(document(path.read_text(), issues))
    return 0


if __name__ == "__main__":
    sys.exit(main())
