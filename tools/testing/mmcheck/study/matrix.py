# SPDX-License-Identifier: GPL-2.0
"""make matrix: kernels x architectures x page sizes x flavours, several at a time, one table.

matrix.toml says what to run. A cell is one command of this repository. If a cell fails, its command is printed. After
an interrupt the next run continues with the cells that have no verdict yet. The cells that were slowest in the last run
go first.
"""

import concurrent.futures
import dataclasses
import hashlib
import json
import os
import re
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ..boot import boot, results
from ..core import command, disk, process, progress
from ..core.errors import PASSED
from ..core.settings import PROJECT, Settings, from_environment, whole
from ..kernel import graft, identity, shadow, source, toolchain
from ..run import baseline, closing, record, selftests, skips
from ..run.cell import NAME, Cell
from ..run.request import parse
from ..run.workspace import RunSpec, Workspace
from . import selection
from .verdict import STATES, Record

GIB_PER_BUILD = 4

NO_SUITE = "this kernel has no such suite"
"""The reason if a change selects a suite that this kernel lacks."""

SHOWN = (*results.STATES, results.KNOWN)
NAMED = 10
"""At most this many failed cases of a cell are named; its results.json has all."""

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
        self.report = self.folder / "matrix.json"
        self.records: dict[str, Record] = {}
        self._lock = threading.Condition()
        self._busy: dict[Cell, Path] = {}
        self._steps: dict[Cell, str] = {}
        self._builds: dict[Cell, Path] = {}
        self._origins: dict[Cell, str] = {}

    def prepare(self) -> None:
        """Provide kernels and tools, and take the fingerprint of each cell."""
        for cell in self.cells:
            source.judge(self.settings_of(cell))
        for cell in self.cells:
            if cell.selftests:
                selftests.provide(cell.arch)
            llvm = cell.flavour == "clang"
            needs = [*toolchain.requirements(cell.arch, own_compiler=llvm), *toolchain.named(cell.arguments)]
            toolchain.provide([*needs, *(toolchain.LLVM if llvm else ())])
        self.marks = {cell: self.fingerprint(cell) for cell in self.cells}

    def settings_of(self, cell: Cell) -> Settings:
        """The settings as the cell's command sees them."""
        return from_environment({**self.environ, **cell.variables, "ARCH": cell.arch})

    def fingerprint(self, cell: Cell) -> str:
        """A digest of all that may change the verdicts; notes the build folder, too."""
        settings = self.settings_of(cell)
        kernel = source.obtain(settings)
        request = (
            selftests.request(cell.arch, configuration=cell.configuration)
            if cell.selftests
            else parse(cell.command()[1:])
        )
        patched = f", with {settings.patch.name}" if settings.patch else ""
        self._origins[cell] = identity.origin(kernel) + patched
        self._builds[cell] = Workspace(RunSpec(settings, request), kernel).build
        digest = hashlib.sha256(f"{cell} {cell.command('run')} {self.only} {self.known}".encode())
        digest.update(shadow.fingerprint(kernel, features=settings.features).encode())
        for name in graft.overlay_files():
            if name.startswith(graft.SELFTESTS):
                digest.update((PROJECT / name).read_bytes())
        return digest.hexdigest()

    def load(self) -> None:
        """Read the records of a run that did not finish."""
        try:
            whole = json.loads(self.report.read_text())
            self.before = {name: Record(**record) for name, record in whole["cells"].items()}
        except (OSError, ValueError, KeyError, TypeError):
            self.before, whole = {}, {"complete": True}
        if not whole["complete"]:
            for cell in self.cells:
                old = self.before.get(str(cell))
                if old and str(cell) in whole.get("done", ()) and old.fingerprint == self.marks[cell]:
                    self.records[str(cell)] = old

    def save(self, complete: bool) -> None:
        """Write what is known; records of other cells stay."""
        whole: dict[str, object] = {"complete": complete, "done": list(self.records)}
        whole["cells"] = {name: dataclasses.asdict(record) for name, record in {**self.before, **self.records}.items()}
        whole["commands"] = {str(cell): cell.line(self.environ) for cell in self.cells}
        whole["places"] = {str(cell): cell.place for cell in self.cells}
        disk.replace(self.report, json.dumps(whole, indent=1).encode())

    def run(self, jobs: int) -> int:
        """Run all cells that have no record; returns the exit status."""
        todo = [cell for cell in self.cells if str(cell) not in self.records]
        if len(todo) < len(self.cells):
            progress.say(f"resuming: {len(self.cells) - len(todo)}/{len(self.cells)} done")
        for cell in self.cells:
            if str(cell) in self.records:
                self.say(cell)
        todo.sort(key=lambda cell: -self.before.get(str(cell), Record("none")).seconds)
        self.save(complete=False)
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
        self.save(complete=True)
        states = {self.records[str(cell)].state for cell in self.cells}
        return next((STATES[state] for state in ("failed", "none") if state in states), PASSED)

    def work(self, todo: list[Cell]) -> None:
        """Run cells one after the other, each when no other cell uses its build folder."""
        while cell := self.take(todo):
            started = time.monotonic()
            try:
                record = self.judge(cell)
                record.seconds = round(time.monotonic() - started, 1)
                record.fingerprint = self.marks[cell]
                record.identity = identity.of(self._origins[cell], cell.arch, self.consoles(cell))
            finally:
                with self._lock:
                    del self._busy[cell]
                    self._steps.pop(cell, None)
                    self._lock.notify_all()
            if boot.stop.is_set():
                return
            with self._lock:
                self.records[str(cell)] = record
                self.save(complete=False)
                self.say(cell)

    def take(self, todo: list[Cell]) -> Cell | None:
        """The next cell, once its build folder is free; None when there are no more."""
        with self._lock:
            while todo:
                for cell in todo:
                    if self._builds[cell] not in self._busy.values():
                        todo.remove(cell)
                        self._busy[cell] = self._builds[cell]
                        return cell
                self._lock.wait()
        return None

    def judge(self, cell: Cell) -> Record:
        """Build and boot one cell."""
        cases: list[results.Case] = []
        last = ""
        with (self.folder / f"{cell.slug}.log").open("w") as log:
            for command, variables in self.commands(cell):
                began = time.time()
                status, last, pid = self.follow(cell, command, variables, log.fileno())
                one = record.of_process(self.settings.out, pid, began)
                if one is None and record.NO_TEST in last:
                    # This kernel lacks the suite. This is a skip, although kunit.py has no verdict.
                    cases.append(results.Case(command[-1], "", "skipped", text=[NO_SUITE]))
                    continue
                cases += one.cases if one else []
                if status not in (0, 1, 4) or (status == 1 and not any(case.state == "failed" for case in cases)):
                    return Record("none", why=last)
        if not cases:
            return Record("none", why=f"no test ran: {last}")
        cases = self.gated(cell, cases)
        folder = self.folder / cell.slug
        folder.mkdir(exist_ok=True)
        results.save(cases, str(cell), folder)
        number = results.counts(cases)
        failures = [f"{case.suite}.{case.name}".rstrip(".") for case in cases if case.state == "failed"]
        return Record("failed" if failures else "passed", number, failures=failures[:NAMED])

    def consoles(self, cell: Cell) -> list[Path]:
        """The consoles in which the kernel of a cell names itself."""
        folder = self._builds[cell]
        if cell.selftests:
            return sorted((self.settings.out / "kselftest" / folder.name).glob("console-*.log"))
        return [folder / "test.log"]

    def gated(self, cell: Cell, cases: Sequence[results.Case]) -> list[results.Case]:
        """The cases; a skip that skips.toml does not allow is a failure. Prints these failures, and unused lines."""
        suites = selection.expected(cell) if self.only is None else []
        verdict = skips.judge(cell, [case for case in cases if case.text != [NO_SUITE]], suites=suites)
        with self._lock:
            for case in verdict.wrong:
                progress.say(f"FAILED {cell}: {'; '.join(case.text)}")
            for line in verdict.gone:
                progress.say(f"{cell}: {line}")
        return verdict.cases + [case for case in cases if case.text == [NO_SUITE]]

    def commands(self, cell: Cell) -> Iterator[tuple[list[str], dict[str, str]]]:
        """What to run for a cell, and with which variables."""
        if self.only is None:
            yield cell.command(), {}
        elif cell.selftests:
            yield cell.command(), {"TESTS": " ".join(selection.wanted(cell, self.only))}
        else:
            for glob in selection.wanted(cell, self.only):
                yield cell.command(*([] if selection.own_glob(cell) else [glob])), {}

    def follow(self, cell: Cell, command: list[str], variables: Mapping[str, str], log: int) -> tuple[int, str, int]:
        """Run a command, keep what it says, and show how far it is.

        Returns its exit status, its last line, and the number of its process.
        """
        drop = {"MAKEFLAGS", "MFLAGS", "MAKELEVEL", "ARCH", "TESTS", "SUITE", "HOST", "STRICT", "KERNEL_ARGS"}
        drop |= {"KCONFIG_ADD", "JOBS"}
        environment = {key: value for key, value in self.environ.items() if key not in drop}
        environment |= {"O": str(self.settings.out), NAME: str(cell) * (not self.only), **cell.variables, **variables}
        if self.settings.patch:
            environment["PATCH"] = str(self.settings.patch)
        if self.known:
            environment["BASELINE"] = str(self.known.file.absolute())
        last = ""
        with subprocess.Popen(
            process.mortal(command),
            cwd=PROJECT,
            env={name: value for name, value in environment.items() if value or name == "FEATURES"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            process_group=0,
        ) as child:
            assert child.stdout
            ended = threading.Event()
            threading.Thread(target=self._guard, args=(child, ended), daemon=True).start()
            for line in child.stdout:
                os.write(log, line)
                text = line.decode(errors="replace").strip()
                last = text or last
                self.step(cell, text)
            ended.set()
            return child.wait(), last, child.pid

    @staticmethod
    def _guard(child: subprocess.Popen[bytes], ended: threading.Event) -> None:
        """End the child after an interrupt. SIGTERM comes first, so that the child can end its own children."""
        while not ended.wait(0.2):
            if boot.stop.is_set():
                child.terminate()
                if not ended.wait(15):
                    process.end(child)
                return

    def step(self, cell: Cell, text: str) -> None:
        """Note what a cell is doing."""
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
        """Update the moving line of progress."""
        self.shown.advance(len(self.records), "; ".join(f"{cell} {step}" for cell, step in self._steps.items()))

    def say(self, cell: Cell) -> None:
        """One line for a cell that has its verdict."""
        record = self.records[str(cell)]
        width = max(len(str(cell)) for cell in self.cells)
        if hasattr(self, "shown"):
            self.shown.clear()
        print(f"{cell!s:{width}}  {progress.duration(record.seconds):>7}  {record}", flush=True)
        for name in record.failures:
            print(f"{'':{width}}           FAILED {name}", flush=True)
        if record.state != "passed":
            print(f"{'':{width}}           again: {cell.line(self.environ)}", flush=True)

    def ending(self) -> list[str]:
        """The paragraph that ends the run."""
        every = {cell: self.records[str(cell)] for cell in self.cells}
        of = {state: [cell for cell, record in every.items() if record.state == state] for state in STATES}
        counts = {state: sum(record.counts.get(state, 0) for record in every.values()) for state in SHOWN}
        text = ", ".join(f"{number} {state}" for state, number in counts.items() if number or state in results.STATES)
        verdict = "FAILED" if of["failed"] else "NO VERDICT" if of["none"] else "passed"
        bad = [*of["failed"], *of["none"]]
        return closing.lines(
            f"{verdict}: {len(of['passed'])} of {len(every)} cells passed: {text}",
            [
                closing.named("cells with new failures (not known issues)", map(str, of["failed"])),
                closing.named("cells without a verdict", map(str, of["none"])),
                closing.reasons([case for cell in every for case in results.load(self.folder / cell.slug)]),
            ],
            f"{self.folder} (one folder for each cell)",
            bad[0].line(self.environ) if bad else closing.make("report", {"O": self.environ.get("O") or ""}),
        )


def run(environ: Mapping[str, str]) -> int:
    """The command; returns the exit status."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 30
    usual = max(1, min(os.cpu_count() or 1, memory // GIB_PER_BUILD))
    jobs = whole(environ, "JOBS", usual, "the number of cells that run at a time")
    cells, only = selection.chosen(environ)
    runner = Runner(cells, environ, only)
    runner.prepare()
    runner.load()
    status = runner.run(jobs)
    for text in runner.ending():
        print(text)
    return status


def main(environ: Mapping[str, str]) -> int:
    """The command."""
    return command.run("matrix", run, environ, "run it again to continue from here")
