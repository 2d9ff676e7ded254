# SPDX-License-Identifier: GPL-2.0
"""Judges mutants: boots a kernel for each mutant, and checks whether a KUnit suite notices the mutant.

All mutants that change only function bodies go into one kernel (schemata.py). This kernel is built once, and booted for
each mutant, with several boots at a time. The first boot for a mutant runs the suites that are likely to notice it:
suites that noticed it last time, or that the catalogue names. A boot ends at the first failure. If the kernel dies or
hangs, more boots run a few other suites, because a failed case is a better verdict.
"""

import concurrent.futures
import contextlib
import dataclasses
import fnmatch
import hashlib
from collections.abc import Container, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from ..boot import boot, console
from ..boot.boot import Verdict
from ..core import dry, progress
from ..core.errors import UserError
from ..core.settings import Settings
from ..kernel import identity, shadow, toolchain
from ..run import record, selftests
from . import catalogue, reach
from .catalogue import Mutant
from .mutated import Builder, Kernel, own_kernel, switch

TIMEOUT = 240
"""Seconds for one boot with a mutant. Each case has its own time limit, which detects a hang."""

UNCHANGED = 900
"""Seconds for the boot without a mutant. It runs all cases, which takes minutes on a busy machine."""

SECOND = 3
"""If the kernel crashed or hung with a mutant, at most this many other suites and selftests run with the mutant. They
may fail without a crash.
"""

AGAIN = 2
"""If a kernel crashes before a suite begins, mmcheck boots it again, at most this many times."""

KILLED = ("failed", "splat", "hang", "none")
STATES = {
    "failed": "noticed by a test",
    "splat": "the kernel warned or died",
    "hang": "the kernel hung",
    "none": "the kernel ended before the tests",
    "survived": "not noticed",
    "equivalent": "equivalent, as the catalogue says",
    "false alarm": "called equivalent, but noticed",
    "does not build": "does not build",
    "does not fit": "not in this kernel",
}


@dataclass(frozen=True)
class Result:
    """The verdict on a mutant: a key of STATES, the suite and case that noticed it, and the seconds of its boots."""

    name: str
    state: str
    where: str = ""
    seconds: float = 0.0
    harm: str = ""
    argument: str = ""


class Session(Builder):
    """One run of the command on one kernel, in which the KUnit suites judge the mutants."""

    name = ""
    hints: Mapping[tuple[str, str], Sequence[str]] = {}
    """For each file and function, the tests that noticed mutants earlier, best first. The file "" means any file."""
    kernel: Kernel | None = None

    def __init__(self, settings: Settings, jobs: int, name: str = "") -> None:
        """`name` separates the results from other results of the same kernel."""
        super().__init__(settings)
        parts = filter(None, [self.label + name, settings.arch, settings.page_size])
        self.folder = settings.out / "mutants" / "-".join(parts)
        self.recorder: record.Recorder | None = None
        self.jobs, self.name = jobs, name
        self.reach = reach.Reach()
        self.noted: dict[str, list[int]] = {}

    def boot(self, mutant: Mutant, number: int, glob: str, without: Container[str] = ()) -> Verdict:
        """Boot with one mutant enabled, and run the suites of `glob`. If `glob` is "", run all cases that may notice.

        without: cases to leave out if `glob` is ""
        """
        log = self.folder / f"{mutant.name}.log"
        arguments = switch(number, mutant.early) + ([f"kunit.filter_glob={glob}"] if glob else [])
        suites = None
        if not glob and number and not mutant.early and self.reach.known:
            places = self.reach.reaching(self.noted.get(mutant.name, []))
            places = [place for place in places if self.reach.cases[place] not in without]
            if not places:
                return Verdict("passed", "", 0.0)
            arguments.append(reach.selection(places))
            suites = len({self.reach.cases[place].partition(".")[0] for place in places})
        # All suites together run on the usual machine: an option that a few suites need would break other suites.
        arguments += mutant.kernel_args.split() if glob else []
        command = boot.command(self.settings.arch, self.build, arguments)
        more = mutant.machine.split() if glob and self.settings.arch != "um" else []
        verdict = boot.follow([*command, *more], log, TIMEOUT, suites=suites)
        if number and not mutant.early:
            for _ in range(AGAIN):
                if verdict.where or verdict.state not in KILLED:
                    break
                # The mutant is enabled just before the tests, so it cannot end the kernel earlier. Boot again: the
                # machine may be busy.
                verdict = boot.follow([*command, *more], log, TIMEOUT, suites=suites)
        return verdict

    def has(self, glob: str) -> bool:
        """Whether `glob` matches a suite of the kernel. True if `glob` is "", or if the suites are not known yet."""
        suites = {case.partition(".")[0] for case in self.reach.cases}
        return not (glob and suites) or bool(fnmatch.filter(suites, glob.partition(".")[0]))

    def judge(self, mutant: Mutant, number: int, likely: Sequence[str]) -> Result:
        """Boot with the likely suites first. If they notice nothing, boot with all suites."""
        seconds = 0.0
        for glob in [*dict.fromkeys(likely), ""]:
            if not self.has(glob):
                progress.say(f"{mutant.name}: this kernel has no suite {glob}")
                continue
            verdict = self.boot(mutant, number, glob)
            seconds += verdict.seconds
            if verdict.state in KILLED:
                verdict = self.second(mutant, number, verdict, likely)
                seconds += verdict.seconds
                state = "false alarm" if mutant.equivalent else verdict.state
                return Result(mutant.name, state, verdict.where, seconds, mutant.harm)
        state = "equivalent" if mutant.equivalent else "survived"
        return Result(mutant.name, state, "", seconds, mutant.harm, mutant.equivalent or mutant.survives)

    def second(self, mutant: Mutant, number: int, first: Verdict, tried: Sequence[str]) -> Verdict:
        """The final verdict on a mutant with the verdict `first`.

        If the kernel died or hung, another test may still fail without a death. Run a few suites and selftests that
        noticed mutants of the same functions. Then run all cases that reach the mutant, except cases that died.
        """
        if first.state == "failed":
            return Verdict(first.state, first.where, 0.0)
        running, seconds = first.where.partition(".")[0], 0.0
        others = [glob for glob in self.near(mutant) if glob not in {*tried, running} and self.has(glob)]
        for glob in others[:SECOND]:
            verdict = self.boot(mutant, number, glob)
            seconds += verdict.seconds
            if verdict.state == "failed":
                return Verdict("failed", verdict.where, seconds)
        dead = {first.where}
        while len(dead) <= SECOND and number and not mutant.early and self.reach.known:
            verdict = self.boot(mutant, number, "", dead)
            seconds += verdict.seconds
            if verdict.state == "failed":
                return Verdict("failed", verdict.where, seconds)
            if verdict.state not in KILLED or verdict.where in dead:
                break
            dead.add(verdict.where)
        return Verdict(first.state, first.where, seconds)

    def foreign(self, case: str) -> bool:
        """Whether a case belongs to a selftest, not to a KUnit suite."""
        return case.partition(".")[0] in {program.name for program in selftests.programs()}

    def likely(self, mutant: Mutant, before: str) -> list[str]:
        """The suites that run first: `before`, which noticed the mutant last time, and the suite in the catalogue.

        If both are missing, the suite that noticed most mutants of the same functions runs first.
        """
        given = [suite for suite in (before, mutant.suite) if suite]
        if given:
            return given
        return [suite for suite in self.near(mutant) if not self.foreign(suite)][:1]

    def near(self, mutant: Mutant) -> list[str]:
        """The suites and selftests that noticed mutants of the same functions before."""
        changes = self.kernel.functions.get(mutant.name, []) if self.kernel else []
        places = [place for file, name in changes for place in ((file, name[0]), ("", name[0]))]
        return list(dict.fromkeys(suite for place in places for suite in self.hints.get(place, [])))

    @contextlib.contextmanager
    def recorded(self, repeat: str = "", kind: str = "mutants") -> Iterator[None]:
        """Record the verdicts of the block. No other run uses the kernel until the end of the block.

        The data of the record also keeps the verdicts of earlier runs on mutants that are not part of this run.
        repeat: the command that repeats the run
        kind:   the kind of the record: "mutants" or "kill-matrix"
        """
        facts = record.facts(
            kind,
            self.folder.name,
            label=self.label,
            arch=self.settings.arch,
            pages=self.settings.page_size,
            source=identity.origin(self.source),
            emulator=identity.program(self.settings.arch),
            command=repeat,
        )
        with self.alone(), record.kept(self.settings.out, facts) as self.recorder:
            yield

    def last(self, kind: str = "mutants") -> dict[str, Any]:
        """The data of this run. If it has none, the data of the last run that has data."""
        return record.data(self.settings.out, kind).get(f"{kind} {self.folder.name}", {})

    def known(self) -> dict[str, str]:
        """The suite that noticed each mutant last time."""
        return {r["name"]: r["where"].partition(".")[0] for r in self.last().get("mutants", []) if r.get("where")}

    def run(self, every: Sequence[Mutant], only: Container[str] | None = None) -> list[Result]:
        """Build the kernel, and judge its mutants. Returns the results in the order of the catalogue.

        only: the names of the mutants to judge; None means all. The kernel always has all mutants, so the next run can
              judge other mutants without a build.
        """
        mutants, absent = catalogue.fitting(every, self.read, self.settings.arch)
        toolchain.provide(toolchain.named([mutant.machine for mutant, _ in mutants]))
        count = sum(only is None or mutant.name in only for mutant, _ in mutants)
        dry.instead(
            "judge",
            f"{count} mutants in one kernel, with at least one boot for each mutant; "
            f"{len(absent)} other mutants do not fit this kernel",
        )
        self.folder.mkdir(parents=True, exist_ok=True)
        if not mutants:
            return [Result(name, "does not fit") for name in absent]
        kernel, broken = self.make(mutants)
        self.check_unchanged(kernel)
        wanted = [(m, files) for m, files in mutants if only is None or m.name in only]
        results = [Result(name, "does not fit") for name in absent]
        results += [Result(name, "does not build") for name in broken if only is None or name in only]
        results += self.judge_all([m for m, _ in wanted if m.name in kernel.number], kernel)
        alone = [(m, files) for m, files in wanted if m.name not in kernel.number and m.name not in broken]
        results += self.judge_alone(alone, kernel)
        order = {mutant.name: place for place, (mutant, _) in enumerate(mutants)}
        return sorted(results, key=lambda result: order.get(result.name, len(order)))

    def judge_all(self, mutants: Sequence[Mutant], kernel: Kernel) -> list[Result]:
        """Judge the mutants of one kernel, several at a time. After an interrupt, skip mutants that have a verdict."""
        before = self.known()
        mark = self.fingerprint(kernel)
        results = [result for result in self.unfinished(mark) if result.name in kernel.number]
        done = {result.name for result in results}
        if done:
            progress.say(f"resuming: {len(done)}/{len(mutants)} done")
        self.save(results, mark, {mutant.name for mutant in mutants})
        with (
            progress.Progress(f"mutants of linux {self.label}", len(mutants)) as shown,
            concurrent.futures.ThreadPoolExecutor(self.jobs) as pool,
        ):
            waiting = [
                pool.submit(self.judge, m, kernel.number[m.name], self.likely(m, before.get(m.name, "")))
                for m in mutants
                if m.name not in done
            ]
            try:
                for future in concurrent.futures.as_completed(waiting):
                    results.append(future.result())
                    shown.advance(len(results), f"{results[-1].name}: {results[-1].state} {results[-1].where}")
                    self.save(results, mark)
            except BaseException:
                boot.stop.set()
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        return results

    def judge_alone(self, mutants: Sequence[tuple[Mutant, Mapping[str, str]]], usual: Kernel) -> list[Result]:
        """Judge mutants that change more than function bodies. Each gets its own kernel in the same build folder."""
        results = []
        for mutant, files in mutants:
            if not any(text != self.read(name) for name, text in files.items()):
                results.append(Result(mutant.name, "survived", argument="changes nothing"))
                continue
            progress.say(f"{mutant.name} changes code outside of function bodies, so mmcheck builds a separate kernel")
            if not self.attempt(own_kernel(mutant, files, usual)):
                results.append(Result(mutant.name, "does not build", harm=mutant.harm))
                continue
            results.append(self.judge(mutant, 0, self.likely(mutant, "")))
            self.save(results)
        return results

    def check_unchanged(self, kernel: Kernel) -> None:
        """Check that all suites pass without a mutant. If a suite fails, no verdict on a mutant is valid.

        Also note which cases reach which mutant.
        """
        self.kernel = kernel
        self.noted = {name: [kernel.noted[function] for function in found] for name, found in kernel.functions.items()}
        log, kept, mark = self.folder / "unchanged.log", self.folder / "reach.json", self.fingerprint(kernel)
        before = reach.Reach.load(kept, mark)
        if before is None:
            command = boot.command(self.settings.arch, self.build, ["mmcheck_reach", "printk.time=1"])
            verdict = boot.follow(command, log, UNCHANGED)
            if verdict.state != "passed":
                raise UserError(
                    f"linux {self.label} fails its tests although no mutant is enabled: "
                    f"{verdict.state} in {verdict.where}; see {log}"
                )
            before = reach.read(console.lines(log.read_bytes()))
            before.save(kept, mark)
        self.reach = before
        progress.say(f"{len(kernel.number)} mutants in one kernel; while all are disabled, all suites pass")

    def fingerprint(self, kernel: Kernel) -> str:
        """A digest that changes with the kernel, the tests, and the mutants."""
        digest = hashlib.sha256(shadow.fingerprint(self.source, features=self.settings.features).encode())
        for name, content in sorted(kernel.files.items()):
            digest.update(f"{name}\n".encode() + content)
        return digest.hexdigest()

    def unfinished(self, mark: str) -> list[Result]:
        """The verdicts of an unfinished run on the same kernel."""
        try:
            whole = self.last()
            names = whole["names"] if whole["unfinished"] == mark else []
            return [Result(**result) for result in whole["mutants"] if result["name"] in names]
        except (KeyError, TypeError):
            return []

    def end(self, results: Sequence[Result], status: int) -> None:
        """Record all verdicts; `status` is the exit status of the command."""
        self.save(results)
        if self.recorder:
            self.recorder.record.state = record.outcome(status)

    def save(self, results: Sequence[Result], unfinished: str = "", forget: Set[str] = frozenset()) -> None:
        """Record the verdicts so far. Keep the earlier verdicts on mutants that are not part of this run.

        unfinished: the fingerprint of the kernel as long as mutants wait for a verdict
        forget:     mutants whose verdicts of earlier runs are removed
        """
        names = [result.name for result in results]
        if not self.recorder:
            return
        before = self.recorder.record.data or self.last()
        kept = [r for r in before.get("mutants", []) if r["name"] not in {*names, *forget}]
        whole = {"kernel": self.label + self.name, "arch": self.settings.arch, "pages": self.settings.pages}
        mutants = [*kept, *(dataclasses.asdict(result) for result in results)]
        state = {"unfinished": unfinished, "names": names}
        self.recorder.put({**whole, **state, "mutants": mutants})
