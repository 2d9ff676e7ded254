# SPDX-License-Identifier: GPL-2.0
"""make matrix: runs the tests on kernels x architectures x page sizes x flavours, and prints one line per cell.

matrix.toml lists the cells. A cell is one command of this repository. Several cells run at a time. If a cell fails, its
command is printed. After an interrupt, the next run continues with the cells that have no verdict yet. The cells that
were slowest in the last run start first. Each cell has its own record, and the whole run has one more record.
"""

import concurrent.futures
import contextlib
import hashlib
import os
import re
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ..boot import boot, results
from ..core import progress
from ..core.errors import FAILED, NO_VERDICT, PASSED, UserError
from ..core.settings import PROJECT, Settings, from_environment, whole
from ..kernel import graft, shadow, source, toolchain
from ..run import baseline, closing, record, selftests, skips
from ..run.cell import NAME, Cell
from ..run.record import Record
from ..run.request import parse
from ..run.workspace import RunSpec, Workspace
from . import child, selection

KIND = "matrix"
"""The `kind` in the record of each cell, and in the record of the whole run."""

GIB_PER_BUILD = 4

NO_SUITE = "this kernel has no such suite"
"""If FILES= or PATCH= selects a suite that this kernel lacks, the suite is skipped for this reason."""

STATES = {"failed": FAILED, "none": NO_VERDICT, "passed": PASSED}
"""The verdicts on a cell, each with its exit status, from the worst to the best. "none" means that no test has run."""

SHOWN = (*results.STATES, results.KNOWN)
NAMED = 10
"""The output names at most this many failed cases of a cell. The record of the cell names all of them."""

_STEP = re.compile(r"^mmcheck: building .*? \[(\d+/~?\d+)\]")
_SUITE = re.compile(r"=== (\w+) \(\d+ subtests?\) ===")


class Runner:
    """Runs cells, several at a time, and keeps their records."""

    def __init__(self, cells: Sequence[Cell], environ: Mapping[str, str], only: Sequence[str] | None) -> None:
        """`only`: the suites and programs to run, or None for all."""
        self.cells, self.environ, self.only = list(cells), environ, only
        self.settings = from_environment({**environ, "ARCH": "", "PAGES": ""})
        self.known = baseline.named(environ)
        self.folder = self.settings.out / "matrix"
        self.folder.mkdir(parents=True, exist_ok=True)
        self.records: dict[str, Record] = {}
        self._lock = threading.Condition()
        self._busy: dict[Cell, Path] = {}
        self._steps: dict[Cell, str] = {}
        self._spaces: dict[Cell, Workspace] = {}

    def prepare(self) -> None:
        """Provide kernels and tools, and compute the fingerprint of each cell."""
        for cell in self.cells:
            source.judge(self.settings_of(cell))
        for cell in self.cells:
            if cell.selftests:
                selftests.provide(cell.arch)
            llvm = cell.flavour == "clang"
            needs = [*toolchain.requirements(cell.arch, own_compiler=llvm), *toolchain.named(cell.arguments)]
            toolchain.provide([*needs, *(toolchain.LLVM if llvm else ())])
        toolchain.advise()
        self.marks = {cell: self.fingerprint(cell) for cell in self.cells}

    def settings_of(self, cell: Cell) -> Settings:
        """The settings of the cell's command."""
        return from_environment({**self.environ, **cell.variables, "ARCH": cell.arch})

    def fingerprint(self, cell: Cell) -> str:
        """A digest of everything that may change the verdicts. Also stores the workspace of the cell."""
        settings = self.settings_of(cell)
        kernel = source.obtain(settings)
        request = (
            selftests.request(cell.arch, configuration=cell.configuration)
            if cell.selftests
            else parse(cell.command()[1:])
        )
        self._spaces[cell] = Workspace(RunSpec(settings, request), kernel)
        digest = hashlib.sha256(f"{cell} {cell.command('run')} {self.only} {self.known}".encode())
        digest.update(shadow.fingerprint(kernel, features=settings.features).encode())
        for name in graft.overlay_files():
            if name.startswith(graft.SELFTESTS):
                digest.update((PROJECT / name).read_bytes())
        return digest.hexdigest()

    def load(self) -> None:
        """Read the records of earlier runs. If the last run did not finish, keep its verdicts on these cells."""
        every = [one for one in record.every(self.settings.out) if one.kind == KIND]
        self.before = {one.data["cell"]: one for one in every if "cell" in one.data}
        last = next((one for one in reversed(every) if "cell" not in one.data), None)
        if last and last.state == "none" and not last.data.get("complete"):
            marks = {(str(cell), self.marks[cell]) for cell in self.cells}
            done = [one for one in every if one.id in last.data.get("done", ())]
            same = [one for one in done if (one.data["cell"], one.data["fingerprint"]) in marks]
            self.records = {one.data["cell"]: one for one in same}

    def known_so_far(self, complete: bool = False) -> dict[str, object]:
        """The data of the record of the whole run: `done` has the IDs of the records of its cells."""
        return {"complete": complete, "done": [one.id for one in self.records.values()]}

    def run(self, jobs: int) -> int:
        """Run all cells that have no verdict. Returns the exit status."""
        arches = dict.fromkeys(cell.arch for cell in self.cells)
        facts = record.facts(KIND, "all", label=f"{len(self.cells)} cells", arch=", ".join(arches), pages="")
        facts.command = closing.make("matrix", self.environ, "ONLY", "FILES", "MATRIX")
        with record.kept(self.settings.out, facts) as self.recorder:
            self._run(jobs)
            states = {one.state for one in self.records.values()}
            facts.state = next(state for state in STATES if state in states)
            facts.data = self.known_so_far(complete=True)
        return STATES[facts.state]

    def _run(self, jobs: int) -> None:
        todo = [cell for cell in self.cells if str(cell) not in self.records]
        if len(todo) < len(self.cells):
            progress.say(f"resuming: {len(self.cells) - len(todo)}/{len(self.cells)} done")
        for cell in self.cells:
            if str(cell) in self.records:
                self.say(cell)
        seconds = {name: one.seconds for name, one in self.before.items()}
        todo.sort(key=lambda cell: -seconds.get(str(cell), 0))
        self.recorder.put(self.known_so_far())
        with (
            progress.Progress("matrix", len(self.cells)) as self.shown,
            concurrent.futures.ThreadPoolExecutor(jobs) as pool,
        ):
            waiting = {pool.submit(self.work, todo) for _ in range(jobs)}
            try:
                while waiting:
                    done, waiting = concurrent.futures.wait(waiting, timeout=1)
                    for future in done:
                        future.result()
                    with self._lock:
                        self.show()
            except BaseException:
                boot.stop.set()
                with self._lock:
                    todo.clear()
                    self._lock.notify_all()
                pool.shutdown(wait=True)
                raise

    def work(self, todo: list[Cell]) -> None:
        """Run cells of `todo` one after the other. A cell waits while another cell uses its build folder."""
        while cell := self.take(todo):
            try:
                one = self.judge(cell)
            finally:
                with self._lock:
                    del self._busy[cell]
                    self._steps.pop(cell, None)
                    self._lock.notify_all()
            if boot.stop.is_set():
                return
            with self._lock:
                self.records[str(cell)] = one
                self.recorder.put(self.known_so_far())
                self.say(cell)

    def take(self, todo: list[Cell]) -> Cell | None:
        """Wait for a cell with a free build folder, and return it; None if no cell is left."""
        with self._lock:
            while todo:
                for cell in todo:
                    if self._spaces[cell].build not in self._busy.values():
                        todo.remove(cell)
                        self._busy[cell] = self._spaces[cell].build
                        return cell
                self._lock.wait()
        return None

    def judge(self, cell: Cell) -> Record:
        """Build and boot one cell. Returns its record."""
        space, log = self._spaces[cell], self.folder / f"{cell.slug}.log"
        facts = record.facts(KIND, cell.slug, " ".join(self.only or ()), label=space.label, arch=cell.arch, pages="")
        facts.pages = cell.pages if cell.arch == "arm64" else ""
        facts.build, facts.command = space.build.name, cell.line(self.environ)
        facts.cell = "" if self.only else str(cell)
        facts.data = {"cell": str(cell), "place": cell.place, "fingerprint": self.marks[cell], "runs": []}
        log.unlink(missing_ok=True)  # the record of an earlier run may have a link to it
        with contextlib.suppress(UserError), record.kept(self.settings.out, facts, lambda one: one.keep([log])):
            with log.open("w") as file:
                facts.cases = self.cases_of(cell, facts, file.fileno())
            facts.cases = self.gated(cell, facts.cases)
            facts.state = "failed" if results.counts(facts.cases)["failed"] else "passed"
        return facts

    def cases_of(self, cell: Cell, facts: Record, log: int) -> list[results.Case]:
        """Run the commands of a cell. Returns all cases. Raises UserError if there is no verdict.

        Copies facts about the kernel from the records of these commands to `facts`, and adds the cases of each command.
        """
        last = ""
        for words, variables in self.commands(cell):
            began = time.time()
            status, last, pid = self.follow(cell, words, variables, log)
            one = record.of_process(self.settings.out, pid, began)
            if one is None and record.NO_TEST in last:
                # This kernel lacks the suite. kunit.py has no verdict, but here this is a skip.
                facts.cases.append(results.Case(words[-1], "", "skipped", text=[NO_SUITE]))
                continue
            if one:
                facts.data["runs"].append(one.id)
                for name in ("config", "source", "version", "compiler", "emulator", "built"):
                    setattr(facts, name, getattr(one, name))
            new = one.cases if one else []
            facts.cases += new
            if status not in (0, 1, 4) or (status == 1 and not any(case.state == "failed" for case in new)):
                raise UserError(last)
        if not facts.cases:
            raise UserError(f"no test ran: {last}")
        return facts.cases

    def gated(self, cell: Cell, cases: Sequence[results.Case]) -> list[results.Case]:
        """The cases, in which each skip that skips.toml does not allow is a failure.

        Prints these failures, and the lines of skips.toml that match no skip.
        """
        suites = selection.expected(cell) if self.only is None else []
        verdict = skips.judge(cell, [case for case in cases if case.text != [NO_SUITE]], suites=suites)
        with self._lock:
            for case in verdict.wrong:
                progress.say(f"FAILED {cell}: {'; '.join(case.text)}")
            for line in verdict.gone:
                progress.say(f"{cell}: {line}")
        return verdict.cases + [case for case in cases if case.text == [NO_SUITE]]

    def commands(self, cell: Cell) -> Iterator[tuple[list[str], dict[str, str]]]:
        """The commands of a cell, each with its variables."""
        if self.only is None:
            yield cell.command(), {}
        elif cell.selftests:
            yield cell.command(), {"TESTS": " ".join(selection.wanted(cell, self.only))}
        else:
            for glob in selection.wanted(cell, self.only):
                yield cell.command(*([] if selection.own_glob(cell) else [glob])), {}

    def follow(self, cell: Cell, command: list[str], variables: Mapping[str, str], log: int) -> tuple[int, str, int]:
        """Run a command, save its output, and show its progress.

        Returns its exit status, its last line, and its process ID.
        """
        drop = {"MAKEFLAGS", "MFLAGS", "MAKELEVEL", "ARCH", "TESTS", "SUITE", "HOST", "STRICT", "KERNEL_ARGS"}
        drop.add("KCONFIG_ADD")
        environment = {key: value for key, value in self.environ.items() if key not in drop}
        environment |= {"O": str(self.settings.out), NAME: str(cell) * (not self.only), **cell.variables, **variables}
        environment["JOBS"] = "1"  # several cells run at a time already
        if self.settings.patch:
            environment["PATCH"] = str(self.settings.patch)
        if self.known:
            environment["BASELINE"] = str(self.known.file.absolute())
        given = {name: value for name, value in environment.items() if value or name == "FEATURES"}
        return child.follow(command, given, log, lambda text: self.step(cell, text))

    def step(self, cell: Cell, text: str) -> None:
        """Note the current step of a cell."""
        with self._lock:
            if match := _STEP.match(text):
                self._steps[cell] = f"building {match[1]}"
            elif match := _SUITE.search(text):
                self._steps[cell] = f"running {match[1]}"
            elif "Starting KUnit Kernel" in text or text.startswith("KTAP version"):
                self._steps[cell] = "running"
            else:
                self._steps.setdefault(cell, "begins")

    def show(self) -> None:
        """Update the progress line."""
        self.shown.advance(len(self.records), "; ".join(f"{cell} {step}" for cell, step in self._steps.items()))

    def say(self, cell: Cell) -> None:
        """Print the verdict on a cell, and what failed in it."""
        one = self.records[str(cell)]
        width = max(len(str(cell)) for cell in self.cells)
        if hasattr(self, "shown"):
            self.shown.clear()
        text = f"no verdict: {one.why}" if one.state == "none" else results.summary(one.cases)
        verdict = f"FAILED: {text}" if one.state == "failed" else text
        print(f"{cell!s:{width}}  {progress.duration(one.seconds):>7}  {verdict}", flush=True)
        failed = [case.full for case in one.cases if case.state == "failed"]
        for name in failed[:NAMED]:
            print(f"{'':{width}}           FAILED {name}", flush=True)
        if one.state != "passed":
            print(f"{'':{width}}           again: {cell.line(self.environ)}", flush=True)

    def ending(self) -> list[str]:
        """The paragraph that ends the run."""
        every = {cell: self.records[str(cell)] for cell in self.cells}
        of = {state: [cell for cell, one in every.items() if one.state == state] for state in STATES}
        cases = [case for one in every.values() for case in one.cases]
        counts = {state: sum(case.state == state for case in cases) for state in SHOWN}
        text = ", ".join(f"{number} {state}" for state, number in counts.items() if number or state in results.STATES)
        verdict = "FAILED" if of["failed"] else "NO VERDICT" if of["none"] else "passed"
        bad = [*of["failed"], *of["none"]]
        return closing.lines(
            f"{verdict}: {len(of['passed'])} of {len(every)} cells passed: {text}",
            [
                closing.named("cells with new failures (not known issues)", map(str, of["failed"])),
                closing.named("cells without a verdict", map(str, of["none"])),
                closing.reasons(cases),
            ],
            f"{self.folder} (one file for each cell)",
            bad[0].line(self.environ) if bad else closing.make("report", {"O": self.environ.get("O") or ""}),
        )


def run(environ: Mapping[str, str]) -> int:
    """Run the command. Returns the exit status."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 30
    usual = max(1, min(os.cpu_count() or 1, memory // GIB_PER_BUILD))
    jobs = whole(environ, "JOBS", usual, "the number of cells that run at a time")
    cells, only = selection.chosen(environ)
    runner = Runner(cells, environ, only)
    with record.printed(environ):
        runner.prepare()
        runner.load()
        status = runner.run(jobs)
        for text in runner.ending():
            print(text)
    return status
