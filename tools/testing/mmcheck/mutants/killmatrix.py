# SPDX-License-Identifier: GPL-2.0
"""make mutants MATRIX=1: every case that notices a mutant, not just the first.

With a mutant switched on, only the cases that reach it run: a case cannot notice code that it does not run. If the
kernel dies in a case, the case has noticed, and the next boot continues with the case after it. A slow case does not
run with the mutants that several quicker cases notice. If it notices no other mutant, it then runs with these too,
until it notices one. The result is in mutants/matrix/KERNEL-ARCH.json, with one line for each mutant. A run with ONLY=,
or a run after an interrupt, changes only the lines of its own mutants. A mutant that changes a macro or data cannot be
switched. It has a kernel of its own, in which all cases run.
"""

import concurrent.futures
import dataclasses
import fnmatch
import json
import re
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from ..boot import boot, outcome
from ..core import disk, progress
from ..run import closing
from . import catalogue, generated, reach
from .catalogue import Mutant
from .judge import Kernel, Session, own_kernel, switch

FOLDER = catalogue.FOLDER / "matrix"
REASONS = FOLDER / "unproven.toml"
"""Why some cases notice no mutant: `"suite.case" = "reason"`, by globs."""

BOOTS = 6
"""A mutant that kills the kernel this many times is given up. Whether the remaining cases notice it stays unknown."""

SILENCE = 15
"""A kernel counts as hung if it prints no line for this many seconds plus four times what the running case takes."""

FLOOD = 3000
"""After this many lines without a verdict, the running case counts as one that kills the kernel."""

SLOW, ENOUGH = 2.0, 2
"""A case that takes more than SLOW seconds does not run with a mutant that ENOUGH quicker cases notice."""

KINDS = ("failed", "splat", "hang")
_ENDED = re.compile(r"reboot: |^Power down|halted")


@dataclass
class Row:
    """What notices a mutant.

    cases:   each case that notices, with one of KINDS
    spared:  the slow cases that did not run, because enough quicker cases notice: their verdicts are unknown
    reached: how many cases run a function that the mutant changes
    cut:     whether the kernel died so often that some of these cases did not run
    seconds: of all boots
    """

    cases: dict[str, str] = field(default_factory=dict)
    reached: int = 0
    cut: bool = False
    seconds: float = 0.0
    spared: list[str] = field(default_factory=list)


@dataclass
class Matrix:
    """The rows of one kernel and architecture, and all cases that ran there; skipped cases are left out."""

    kernel: str = ""
    cases: list[str] = field(default_factory=list)
    rows: dict[str, Row] = field(default_factory=dict)

    def save(self, path: Path) -> None:
        """Write the matrix, in a small form that diff(1) shows well."""
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
        """Read what save() wrote; returns an empty matrix if there is no file."""
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
    """The file for a kernel. Its name has the first two numbers of the version."""
    version = ".".join(re.split(r"[.+-]", kernel)[:2])
    size = f"-{pages}" if arch == "arm64" and pages != "4K" else ""
    return FOLDER / f"{version}-{arch}{size}{kind}.json"


@dataclass
class Seen:
    """What one boot prints, line by line: cases with a verdict, cases that notice, and whether the boot ended."""

    done: list[str] = field(default_factory=list)
    noticed: dict[str, str] = field(default_factory=dict)
    ended: bool = False
    hang: bool = False
    tests: bool = False
    _suite: str = ""
    _splat: bool = False
    _reported: int = 0

    def feed(self, raw: str) -> None:
        """Take one line of the console."""
        line = outcome.plain(raw)
        if outcome.PLAN.match(line):
            self.tests = True
        elif match := outcome.SUITE.match(line):
            self._suite, self._reported = match[1], len(self.done)
        elif match := re.match(r"^    (not )?ok \d+ (\S+)", line):
            if not line.rstrip().endswith(" # SKIP"):  # a skip without a reason: the case was not chosen
                self._verdict(f"{self._suite}.{match[2]}", bool(match[1]))
        elif (match := outcome.SUITE_RESULT.match(line)) and self._suite:
            # If a suite fails or warns outside of its cases, its last case counts.
            own, failed = self.done[self._reported :], line.startswith("not ok")
            if (failed or self._splat) and own and not set(own) & self.noticed.keys():
                self.noticed[own[-1]] = "failed" if failed else "splat"
            self._suite, self._splat = "", False
        elif boot.HANG.search(line):
            self.hang = True
        elif boot.DEAD.search(line) or boot.SPLAT.match(line):
            self._splat = True
        elif _ENDED.search(line):
            self.ended = True

    def _verdict(self, case: str, failed: bool) -> None:
        self.done.append(case)
        if failed or self._splat:
            self.noticed[case] = "failed" if failed else "splat"
        self._splat = False


def read(console: Iterable[str]) -> Seen:
    """Read the console of one boot, as far as it goes."""
    result = Seen()
    for line in console:
        result.feed(line)
    return result


class Judge:
    """Finds the rows of the mutants of a session that has built and booted its kernel."""

    def __init__(self, session: Session, kernel: Kernel) -> None:
        self.session, self.kernel, self.reach = session, kernel, session.reach
        self.place = {case: number for number, case in enumerate(self.reach.cases)}

    def row(self, mutant: Mutant) -> Row:
        """The row of one mutant."""
        every = list(range(len(self.reach.cases)))
        noted = self.session.noted.get(mutant.name)
        # A mutant that changes more than function bodies has no function that notes that it runs.
        reaching = every if mutant.early or noted is None else self.reach.reaching(noted)
        row = Row(reached=len(reaching))
        started = time.monotonic()
        slow = [place for place in reaching if self.reach.seconds[place] > SLOW]
        self._boots(mutant, [place for place in reaching if place not in slow], False, row)
        if len(row.cases) < ENOUGH:
            self._boots(mutant, slow, False, row)
        else:
            row.spared = [self.reach.cases[place] for place in slow]
        if (mutant.machine or mutant.kernel_args) and self.session.settings.arch != "um":
            suites = [
                place for place in every if fnmatch.fnmatch(self.reach.cases[place].partition(".")[0], mutant.suite)
            ]
            self._boots(mutant, suites, True, row)
        row.seconds = time.monotonic() - started
        return row

    def finish(self, rows: Mapping[str, Row], every: Sequence[Mutant]) -> None:
        """Run each slow case that has noticed nothing with the mutants that row() left out, until it notices one."""
        by_name = {mutant.name: mutant for mutant in every if not mutant.equivalent}
        useful = {case for name, row in rows.items() if name in by_name for case in row.cases}
        for case in sorted({case for row in rows.values() for case in row.spared} - useful):
            for name in [name for name, row in rows.items() if name in by_name and case in row.spared]:
                progress.say(f"{case} has noticed no mutant yet: running it with {name}")
                self._boots(by_name[name], [self.place[case]], False, rows[name])
                if boot.stop.is_set():
                    return
                rows[name].spared.remove(case)
                if case in rows[name].cases:
                    break

    def _boots(self, mutant: Mutant, todo: list[int], own: bool, row: Row) -> None:
        """Run the cases `todo`, in as many boots as it takes; if `own`, on the machine that the mutant asks for."""
        boots = 0
        while todo and not boot.stop.is_set():
            if boots == BOOTS:
                row.cut = True
                return
            boots += 1
            seen = self._boot(mutant, todo, own)
            done = {self.place[case] for case in seen.done if case in self.place}
            row.cases = {**seen.noticed, **row.cases}
            if seen.ended and not seen.hang:
                return
            # The kernel died. The case after the last verdict was running; if there is none, the last suite was ending.
            left = [place for place in todo if place > max(done, default=-1)]
            culprit = left[0] if left else todo[-1]
            if not boot.stop.is_set():
                row.cases.setdefault(self.reach.cases[culprit], "hang" if seen.hang else "splat")
            if not seen.tests:
                row.cut = True
                return
            todo = [place for place in todo if place > culprit]

    def _boot(self, mutant: Mutant, todo: Sequence[int], own: bool) -> Seen:
        session = self.session
        words = switch(self.kernel.number[mutant.name], mutant.early) + (mutant.kernel_args.split() if own else [])
        command = boot.command(session.settings.arch, session.build, [*words, reach.selection(todo)])
        log = session.folder / f"{mutant.name}.log"
        limit = 60 + 6 * self.reach.cost(todo)
        seen, since, started = Seen(), 0, time.monotonic()

        def silence() -> float:
            """How many seconds the running case may print nothing."""
            last = self.place.get(seen.done[-1], -1) if seen.done else -1
            now = next((place for place in todo if place > last), todo[-1])
            return SILENCE + 4 * self.reach.seconds[now] + (0 if seen.tests else self.reach.start)

        heard = started
        machine = mutant.machine.split() if own else []
        for line in boot.lines([*command, *machine], log, limit, silence):
            heard, before = time.monotonic(), len(seen.done)
            seen.feed(line)
            since = since + 1 if len(seen.done) == before else 0
            if seen.hang or "Kernel panic - not syncing" in line or since > FLOOD:
                break
        now = time.monotonic()
        seen.hang = seen.hang or (not seen.ended and (now - heard >= silence() - 1 or now - started >= limit - 1))
        return seen


class Rule(Protocol):
    """Finds the rows of mutants in a kernel that is built."""

    def row(self, mutant: Mutant) -> Row:
        """The row of one mutant."""
        ...

    def finish(self, rows: Mapping[str, Row], every: Sequence[Mutant]) -> None:
        """When all rows are there, run the cases that row() left out and that still matter."""
        ...


MakeRule = Callable[[Session, Kernel], Rule]


@dataclass
class Kept:
    """The rows of one kernel, kept for a later run on the same kernel."""

    path: Path
    mark: str

    @classmethod
    def of(cls, session: Session, kernel: Kernel, name: str = "matrix") -> "Kept":
        """The place for the rows of a kernel of this session."""
        mark = f"{session.fingerprint(kernel)} {SLOW} {ENOUGH} {FLOOD} {SILENCE} {BOOTS}"
        return cls(session.folder / f"{name}.json", mark)

    def load(self) -> dict[str, Row]:
        """Read what save() wrote, if it is for the same kernel."""
        try:
            whole = json.loads(self.path.read_text())
            return {name: Row(**row) for name, row in whole["rows"].items()} if whole["mark"] == self.mark else {}
        except (OSError, ValueError, KeyError, TypeError):
            return {}

    def save(self, rows: Mapping[str, Row]) -> None:
        """Write the rows."""
        content = {"mark": self.mark, "rows": {name: dataclasses.asdict(row) for name, row in rows.items()}}
        disk.replace(self.path, json.dumps(content).encode())


def run(session: Session, every: Sequence[Mutant], kernel: Kernel, rule: MakeRule = Judge) -> dict[str, Row]:
    """Find the rows of `every`, with several boots at a time. Rows that were found before an interrupt are kept."""
    kept = Kept.of(session, kernel)
    rows = {name: row for name, row in kept.load().items() if name in kernel.number}
    todo = [mutant for mutant in every if mutant.name in kernel.number and mutant.name not in rows]
    if rows:
        progress.say(f"resuming: {len(rows)}/{len(rows) + len(todo)} mutants done")
    finder = rule(session, kernel)
    with (
        progress.Progress(f"kill matrix of linux {session.label}", len(todo)) as shown,
        concurrent.futures.ThreadPoolExecutor(session.jobs) as pool,
    ):
        waiting = {pool.submit(finder.row, mutant): mutant for mutant in todo}
        try:
            for count, future in enumerate(concurrent.futures.as_completed(waiting), 1):
                name = waiting[future].name
                rows[name] = future.result()
                shown.advance(count, f"{name}: {len(rows[name].cases)} of {rows[name].reached} cases notice")
                kept.save(rows)
        except BaseException:
            boot.stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    finder.finish(rows, every)
    kept.save(rows)
    return rows


def run_alone(session: Session, mutants: Sequence[tuple[Mutant, Mapping[str, str]]], usual: Kernel) -> dict[str, Row]:
    """Find the rows of mutants that change more than function bodies, each in a kernel of its own; all cases run.

    Mutants of one file follow each other, so that fewer objects differ from one kernel to the next.
    """
    rows: dict[str, Row] = {}
    for mutant, files in sorted(mutants, key=lambda found: found[0].paths, reverse=True):
        kernel = own_kernel(mutant, files, usual)
        kept = Kept.of(session, kernel, f"matrix-{mutant.name}")
        if found := kept.load():
            rows |= found
            continue
        progress.say(f"{mutant.name} changes more than bodies of functions, so it gets a kernel of its own")
        if not session.attempt(kernel):
            progress.say(f"{mutant.name} does not build and is left out")
            continue
        row = Judge(session, kernel).row(mutant)
        progress.say(f"{mutant.name}: {len(row.cases)} of {row.reached} cases notice")
        rows[mutant.name] = row
        kept.save({mutant.name: row})
    return rows


def whole(session: Session, every: Sequence[Mutant], environ: Mapping[str, str], rule: MakeRule = Judge) -> str:
    """Find every case that notices each mutant; returns the findings and the paragraph that ends the run."""
    mutants, _ = catalogue.fitting(every, session.read, session.settings.arch)
    session.folder.mkdir(parents=True, exist_ok=True)
    kernel, broken = session.make(mutants)
    session.check_unchanged(kernel)
    rows = run(session, [mutant for mutant, _ in mutants], kernel, rule)
    path = merge(session, rows)
    if rule is Judge:
        alone = [(mutant, files) for mutant, files in mutants if mutant.name not in {*kernel.number, *broken}]
        rows |= run_alone(session, alone, kernel)
        merge(session, rows)
    took = sum(row.seconds for row in rows.values()) / (len(rows) or 1)
    progress.say(f"{took:.1f} s per mutant")
    matrix = Matrix.load(path)
    return "\n".join([summary(matrix, every), *ending(findings(matrix, every, reasons()), matrix, path, environ)])


def merge(session: Session, rows: Mapping[str, Row]) -> Path:
    """Put the rows into the file that is checked in; returns its path. Rows of mutants that were not judged stay."""
    settings = session.settings
    path = file_of(session.source.label, settings.arch, settings.pages)
    old = Matrix.load(path)
    own = {case.partition(".")[0] for case in session.reach.cases}
    kept = {case for case in old.cases if case.partition(".")[0] not in own and session.foreign(case)}
    merged = dict(old.rows)
    for name, row in rows.items():
        before = old.rows.get(name, Row())
        others = {case: how for case, how in before.cases.items() if case in kept}
        merged[name] = dataclasses.replace(row, cases={**others, **row.cases})
    Matrix(session.source.label, sorted({*session.reach.ran, *kept}), merged).save(path)
    return path


def hints() -> dict[tuple[str, str], list[str]]:
    """For each function (file and name), the suites and selftests that notice its mutants; the best comes first.

    The data is the catalogue and the results of all kernels. Generated mutants have no file in their names: it is "".
    """
    counted: dict[tuple[str, str], Counter[str]] = {}
    matrices = [Matrix.load(path) for path in sorted(FOLDER.glob("*.json"))]
    for place, name, suite in catalogue.hints(catalogue.FOLDER):
        count = counted.setdefault(place, Counter())
        for matrix in matrices:
            count.update({case.partition(".")[0] for case in matrix.rows.get(name, Row()).cases})
        if suite:
            count[suite] += 1
    for function, suite in generated.noticed():
        counted.setdefault(("", function), Counter())[suite] += 1
    return {place: [suite for suite, _ in count.most_common()] for place, count in counted.items()}


def reasons() -> dict[str, str]:
    """Why some cases notice nothing, by globs of their names."""
    try:
        return {str(glob): str(why) for glob, why in tomllib.loads(REASONS.read_text()).items()}
    except FileNotFoundError:
        return {}


@dataclass
class Findings:
    """What the matrix says about the tests.

    unproven:  cases that notice nothing, with the reason that is given, or ""
    fragile:   mutants that one case alone notices, with the case
    unnoticed: mutants that nothing notices
    idle:      suites that are never the only one to notice a mutant
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
        # A case that was spared might notice, too.
        alone |= noticing if len(noticing | {case.partition(".")[0] for case in row.spared}) == 1 else set()
    every = {case.partition(".")[0] for case in matrix.cases}
    return Findings(
        unproven,
        {name: next(iter(row.cases)) for name, row in sorted(rows.items()) if len(row.cases) == 1 and not row.spared},
        sorted(name for name, row in rows.items() if not row.cases),
        sorted(every - alone),
    )


def summary(matrix: Matrix, catalogued: Sequence[Mutant]) -> str:
    """The findings for a terminal."""
    found = findings(matrix, catalogued, reasons())
    count = len(matrix.cases) or 1
    open_ones = [case for case, why in found.unproven.items() if not why]
    lines = [f"{len(matrix.rows)} mutants, {len(matrix.cases)} cases"]
    share = 100 * len(found.unproven) / count
    lines.append(
        f"{len(found.unproven)} cases ({share:.1f} %) notice no mutant; {REASONS.name} gives no reason for "
        f"{len(open_ones)} of them:"
    )
    lines += [f"  {case}  {why}".rstrip() for case, why in found.unproven.items()]
    lines.append(f"{len(found.fragile)} mutants are noticed by one case alone:")
    lines += [f"  {name}  {case}" for name, case in found.fragile.items()]
    lines.append(f"{len(found.unnoticed)} mutants are not noticed: {' '.join(found.unnoticed)}")
    lines.append(f"{len(found.idle)} suites notice no mutant that all other suites miss: {' '.join(found.idle)}")
    if cut := [name for name, row in matrix.rows.items() if row.cut]:
        lines.append(f"{len(cut)} mutants end the kernel so often that some cases did not run: {' '.join(sorted(cut))}")
    return "\n".join(lines)


def ending(found: Findings, matrix: Matrix, path: Path, environ: Mapping[str, str]) -> list[str]:
    """The paragraph that ends the run."""
    bare = [case for case, why in found.unproven.items() if not why]
    share = 100 * len(found.unproven) / (len(matrix.cases) or 1)
    return closing.lines(
        f"kill matrix of linux {matrix.kernel}: {len(found.unproven)} of {len(matrix.cases)} cases ({share:.1f} %)"
        f" notice none of {len(matrix.rows)} mutants",
        [
            closing.named(f"cases that notice no mutant, with no reason in {REASONS.name}", bare),
            closing.named("mutants that no case notices", found.unnoticed),
        ],
        path,
        closing.make("report", environ),
    )
