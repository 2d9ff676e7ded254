# SPDX-License-Identifier: GPL-2.0
"""Searches a kernel for code patterns that were bugs before, and prints each candidate with its verdict.

KERNEL= or KDIR= names the tree. OTHER= names a second tree, by its version or folder. With OTHER= the command also
searches for the patterns `gap` and `guard`: functions that check more in the second tree. To find functions that check
more in the first tree, swap the trees. verdicts.toml has the patterns and the verdicts on candidates: shown, refuted,
or open. ONLY=new prints the candidates without a verdict.
"""

import fnmatch
import re
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..core.errors import PASSED, UserError
from ..core.settings import from_environment
from ..kernel import source
from .searches import SEARCHES, Candidate, gaps, guards, search, tree

TABLE = Path(__file__).with_name("verdicts.toml")
VERDICTS = ("shown", "open", "refuted")
NEW = "new"
"""The state of a candidate that a pattern has found and that has no verdict yet."""


@dataclass(frozen=True)
class Verdict:
    """The verdict on candidates, and its reason. `functions` and `file` are globs."""

    pattern: str
    functions: tuple[str, ...]
    verdict: str
    why: str
    file: str = "*"

    def about(self, one: Candidate) -> bool:
        """Whether the verdict is about this candidate."""
        named = any(fnmatch.fnmatchcase(one.function, glob) for glob in self.functions)
        return named and self.pattern == one.pattern and fnmatch.fnmatchcase(one.file, self.file)


def load(table: Path = TABLE) -> list[Verdict]:
    """The verdicts of a table. Raises UserError for an unknown pattern or verdict, or a missing reason."""
    found = []
    for entry in tomllib.loads(table.read_text())["verdict"]:
        one = Verdict(**{**entry, "functions": tuple(entry["functions"])})
        if one.verdict not in VERDICTS or one.pattern not in (*SEARCHES, "gap", "guard", "reading") or not one.why:
            what = f"{one.pattern}, {', '.join(one.functions)}"
            raise UserError(f"{table.name}: {what}: the pattern or the verdict is unknown, or `why` is empty")
        found.append(one)
    return found


def judged(candidates: Sequence[Candidate], verdicts: Sequence[Verdict]) -> list[tuple[Candidate, str, str]]:
    """Each candidate with its verdict and the reason. If several verdicts match a candidate, the first one counts."""
    none = (NEW, "")
    found = []
    for one in candidates:
        found.append((one, *next(((v.verdict, v.why) for v in verdicts if v.about(one)), none)))
    return found


def run(environ: Mapping[str, str]) -> int:
    """Run the command. Returns the exit status."""
    only = environ.get("ONLY") or ""
    if only and only not in (*VERDICTS, NEW):
        raise UserError(f"ONLY={only}: use one of {', '.join((*VERDICTS, NEW))}")
    verdicts = load()
    functions = tree(source.obtain(from_environment(environ)).path)
    candidates = search(functions)
    if other := environ.get("OTHER"):
        # OTHER= is a version if it has the form of a version, for example 6.12; otherwise it is a folder.
        name = "KERNEL" if re.fullmatch(r"\d+\.\d+[\w.+~-]*", other) else "KDIR"
        settings = from_environment({**environ, "KERNEL": "", "KDIR": "", name: other})
        others = tree(source.obtain(settings).path)
        candidates += gaps(functions, others) + guards(functions, others)
    for verdict in (v for v in verdicts if v.pattern == "reading"):
        read = (Candidate("reading", f.file, f.line, f.name, "found by reading") for f in functions)
        candidates += filter(verdict.about, read)
    found = judged(candidates, verdicts)
    for one, what, why in found:
        if not only or what == only:
            print(f"{what:8}{one.pattern:8}{one.file}:{one.line} {one.function}: {one.what}")
            if why:
                print(f"        {why}")
    count = Counter(what for _, what, _ in found)
    print(", ".join(f"{count[name]} {name}" for name in (*VERDICTS, NEW)))
    return PASSED
