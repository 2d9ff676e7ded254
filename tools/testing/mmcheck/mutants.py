# SPDX-License-Identifier: GPL-2.0
"""make mutants: does any test fail if the kernel is wrong?

All mutants that change only bodies of functions go into one kernel (schemata.py), which is built once
and booted once for each of them, several at a time. A boot ends at the first failure, and begins with
the suites that are likely to notice: those that noticed last time, or that the catalogue names.
"""

import concurrent.futures
import dataclasses
import fnmatch
import hashlib
import json
import os
import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from . import boot, catalogue, command, graft, kselftest, launcher, machine, progress, schemata, shadow, source
from .catalogue import Mutant
from .errors import FAILED, NO_VERDICT, PASSED, UserError
from .lock import held
from .make import LOG
from .settings import PROJECT, Settings, from_environment

SWITCH_FILE = "lib/mmcheck_mutant.c"
TIMEOUT = 240
"""Seconds for one boot with all suites; each case has a limit of its own, and a hang is noticed by it."""

CONFIG = ["CONFIG_DEBUG_KERNEL=y", "CONFIG_DEBUG_ATOMIC_SLEEP=y"]
CONFIG_OF = {"arm64": ["CONFIG_EFI=y"]}
"""What some cases need, of all kernels that cases run on, and costs little."""

KILLED = ("failed", "splat", "hang", "none")
STATES = {
    "failed": "noticed by a test",
    "splat": "the kernel warned or died",
    "hang": "the kernel hung",
    "none": "the kernel did not come to the tests",
    "survived": "not noticed",
    "equivalent": "no different, as the catalogue argues",
    "false alarm": "no different, and noticed all the same",
    "does not build": "does not build",
    "does not fit": "not in this kernel",
    "alone": "changes more than bodies of functions: not run",
}


@dataclass(frozen=True)
class Result:
    """What became of a mutant: a key of STATES, the suite and case that noticed, and the seconds it took."""

    name: str
    state: str
    where: str = ""
    seconds: float = 0.0
    harm: str = ""
    argument: str = ""


@dataclass
class Kernel:
    """A kernel that holds mutants: who has which number, and the files that differ from the usual tree."""

    number: dict[str, int]
    files: dict[str, bytes]


def reader(tree: Path, features: Sequence[str]) -> Callable[[str], str]:
    """Reads files as the usual working copy has them."""
    ours = set(graft.overlay_files())
    edited = graft.edited(tree, features)

    def read(name: str) -> str:
        if name in edited:
            return edited[name]
        return ((PROJECT if name in ours else tree) / name).read_text()

    return read


def combine(
    mutants: Sequence[tuple[Mutant, Mapping[str, str]]], read: Callable[[str], str], without: Sequence[str] = ()
) -> Kernel:
    """One kernel with all of `mutants` that can be switched, but those that `without` names.

    The others keep their numbers: objects that hold none of those are the same without them.
    """
    variants: dict[str, dict[tuple[str, int], list[tuple[int, str]]]] = {}
    number: dict[str, int] = {}
    for place, (mutant, files) in enumerate(mutants, 1):
        bodies = {name: schemata.changed(read(name), text) for name, text in files.items()}
        if mutant.name in without or any(not found for found in bodies.values()):
            continue
        number[mutant.name] = place
        for name, found in bodies.items():
            for function, body in (found or {}).items():
                variants.setdefault(name, {}).setdefault(function, []).append((number[mutant.name], body))
    merged = {name: schemata.merge(read(name), found).encode() for name, found in variants.items()}
    makefile = read("lib/Makefile") + "\nobj-y += mmcheck_mutant.o\n"
    switch = (catalogue.FOLDER / "mmcheck_mutant.c").read_bytes()
    return Kernel(number, {**merged, "lib/Makefile": makefile.encode(), SWITCH_FILE: switch})


def culprits(log: str, kernel: Kernel) -> set[str]:
    """The mutants whose text the compiler complains about in the log of a build."""
    names = {number: name for name, number in kernel.number.items()}
    found = set()
    for file, line in re.findall(r"^(\S+?):(\d+):(?:\d+:)? error:", log, re.MULTILINE):
        for name, text in kernel.files.items():
            if f"/{file}".endswith(f"/{name}"):
                number = schemata.at_line(text.decode(), int(line))
                found |= {names[number]} if number else set()
    return found


class Session:
    """One run of the command on one kernel, by the KUnit suites."""

    kind = "mutants"

    def __init__(self, settings: Settings, jobs: int) -> None:
        self.settings, self.jobs = settings, jobs
        source.judge(settings)
        machine.provide([*machine.requirements(settings.arch, own_compiler=False), "patch"])
        self.source = source.obtain(settings)
        self.label = "+".join([self.source.label, *settings.unusual, self.kind])
        self.read = reader(self.source.path, settings.features)
        pages = f"-{settings.pages}" if settings.arch == "arm64" else ""
        self.folder = settings.out / "mutants" / f"{self.label}-{settings.arch}{pages}"
        self.report = self.folder / "mutants.json"
        self.build = Path()

    def alone(self) -> AbstractContextManager[None]:
        """Wait until no other run uses this kernel, and keep others waiting: from the working copy to the last verdict.

        Another choice of mutants has other numbers: with its tree and its image our boots would judge its mutants.
        """
        return held(self.settings.out / "lock" / f"{self.label}.mutants", f"it judges mutants of linux {self.label}")

    def request(self) -> launcher.Request:
        """What to ask kunit.py for."""
        config = [f"--kconfig_add={line}" for line in CONFIG + CONFIG_OF.get(self.settings.arch, [])]
        return launcher.parse(["build", f"--arch={self.settings.arch}", *config])

    def built(self, launch: launcher.Launch) -> None:
        """The kernel is there."""
        self.build = launch.build

    def make(self, mutants: list[tuple[Mutant, Mapping[str, str]]]) -> tuple[Kernel, list[str]]:
        """Build the kernel; returns it and the names of the mutants that do not build."""
        broken: list[str] = []
        while True:
            kernel = combine(mutants, self.read, broken)
            tree = launcher.working_copy(self.source, self.settings, self.label, kernel.files)
            launch = launcher.Launch(self.request(), self.settings, tree, self.label, "")
            try:
                if launch.run() == 0:
                    self.built(launch)
                    return kernel, broken
            except UserError:
                pass
            wrong = culprits((launch.build / LOG).read_text(errors="replace"), kernel)
            if not wrong:
                raise UserError(f"linux {self.label} does not build: see {launch.build / LOG}")
            progress.say(f"does not build, left out: {', '.join(sorted(wrong))}")
            broken += sorted(wrong)

    def boot(self, mutant: Mutant, number: int, glob: str) -> boot.Verdict:
        """Boot with one mutant switched on, with the suites that `glob` matches."""
        log = self.folder / f"{mutant.name}.log"
        arguments = switch(number, mutant.early) + ([f"kunit.filter_glob={glob}"] if glob else [])
        command = boot.command(self.settings.arch, self.build, arguments)
        # All suites run on the usual machine: what a few need is no good for the others.
        more = mutant.machine.split() if glob and self.settings.arch != "um" else []
        return boot.follow([*command, *more], log, TIMEOUT)

    def judge(self, mutant: Mutant, number: int, likely: Sequence[str]) -> Result:
        """Boot with the likely suites first, and with all if those notice nothing."""
        seconds = 0.0
        for glob in [*dict.fromkeys(likely), ""]:
            verdict = self.boot(mutant, number, glob)
            seconds += verdict.seconds
            if verdict.state in KILLED:
                if verdict.state == "none" and glob:
                    continue  # no suite of that name
                state = "false alarm" if mutant.equivalent else verdict.state
                return Result(mutant.name, state, verdict.where, seconds, mutant.harm)
        state = "equivalent" if mutant.equivalent else "survived"
        return Result(mutant.name, state, "", seconds, mutant.harm, mutant.equivalent or mutant.survives)

    def likely(self, mutant: Mutant, before: str) -> list[str]:
        """The suites to begin with; `before` noticed it last time."""
        return [suite for suite in (before, mutant.suite) if suite]

    def known(self) -> dict[str, str]:
        """The suite that noticed each mutant last time."""
        try:
            results = json.loads(self.report.read_text())["mutants"]
        except (OSError, ValueError, KeyError):
            return {}
        return {r["name"]: r["where"].partition(".")[0] for r in results if r.get("where")}

    def run(self, every: Sequence[Mutant]) -> list[Result]:
        """All of it; results in the order of the catalogue."""
        mutants, absent = catalogue.fitting(every, self.read, self.settings.arch)
        self.folder.mkdir(parents=True, exist_ok=True)
        if not mutants:
            return [Result(name, "does not fit") for name in absent]
        kernel, broken = self.make(mutants)
        self.check_unchanged(kernel)
        results = [Result(name, "does not fit") for name in absent]
        results += [Result(name, "does not build") for name in broken]
        alone = [m for m, _ in mutants if m.name not in kernel.number and m.name not in broken]
        results += [Result(m.name, "alone", harm=m.harm) for m in alone]
        results += self.judge_all([m for m, _ in mutants if m.name in kernel.number], kernel)
        order = {mutant.name: place for place, (mutant, _) in enumerate(mutants)}
        return sorted(results, key=lambda result: order.get(result.name, len(order)))

    def judge_all(self, mutants: Sequence[Mutant], kernel: Kernel) -> list[Result]:
        """Boot once for each, several at a time; after an interrupt, for those that have no verdict yet."""
        before = self.known()
        mark = self.fingerprint(kernel)
        results = [result for result in self.unfinished(mark) if result.name in kernel.number]
        done = {result.name for result in results}
        if done:
            progress.say(f"going on: {len(done)} of {len(mutants)} have their verdict")
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

    def check_unchanged(self, kernel: Kernel) -> None:
        """With nothing switched on all must pass, or no verdict means anything."""
        verdict = self.boot(Mutant("unchanged", "", (), lambda _: {}), 0, "")
        if verdict.state != "passed":
            log = self.folder / "unchanged.log"
            raise UserError(f"linux {self.label} without a mutant: {verdict.state} in {verdict.where}; see {log}")
        progress.say(f"{len(kernel.number)} mutants in one kernel; without one, all suites pass")

    def fingerprint(self, kernel: Kernel) -> str:
        """Changes with the kernel, the tests, and what is broken."""
        digest = hashlib.sha256(shadow.fingerprint(self.source, features=self.settings.features).encode())
        for name, content in sorted(kernel.files.items()):
            digest.update(f"{name}\n".encode() + content)
        return digest.hexdigest()

    def unfinished(self, mark: str) -> list[Result]:
        """The verdicts of a run on this very kernel that did not come to its end."""
        try:
            whole = json.loads(self.report.read_text())
            names = whole["names"] if whole["unfinished"] == mark else []
            return [Result(**result) for result in whole["mutants"] if result["name"] in names]
        except (OSError, ValueError, KeyError, TypeError):
            return []

    def save(self, results: Sequence[Result], unfinished: str = "", forget: Set[str] = frozenset()) -> None:
        """Write what is known so far, keeping the verdicts on mutants that are not part of this run.

        unfinished: the fingerprint of the kernel, while there is more to come
        forget:     mutants whose verdicts of earlier runs are not to be kept
        """
        names = [result.name for result in results]
        try:
            kept = [r for r in json.loads(self.report.read_text())["mutants"] if r["name"] not in {*names, *forget}]
        except (OSError, ValueError, KeyError):
            kept = []
        whole = {"kernel": self.label, "arch": self.settings.arch, "pages": self.settings.pages}
        mutants = [*kept, *(dataclasses.asdict(result) for result in results)]
        state = {"unfinished": unfinished, "names": names}
        graft.replace(self.report, json.dumps({**whole, **state, "mutants": mutants}, indent=1).encode())


class GuestSession(Session):
    """One run of the command on one kernel, by the selftests."""

    kind = "mutants+selftests"

    def __init__(self, settings: Settings, jobs: int) -> None:
        source.judge(settings)
        kselftest.provide(settings.arch)
        super().__init__(settings, jobs)
        self.every = kselftest.programs()

    def request(self) -> launcher.Request:
        """What to ask kunit.py for."""
        return kselftest.request(self.settings.arch)

    def built(self, launch: launcher.Launch) -> None:
        """The kernel is there; now the programs."""
        super().built(launch)
        self.launch = launch
        self.files = kselftest.Session(launch).build([program.name for program in self.every])

    def boot(self, mutant: Mutant, number: int, glob: str) -> boot.Verdict:
        """Boot with one mutant switched on, with the one program `glob`, or with all of the usual machine."""
        started = time.monotonic()
        by_name = {program.name: program for program in self.every}
        alone = [program for program in self.every if program.name not in kselftest.MACHINES]
        wanted = [by_name[glob]] if glob else alone
        needs = kselftest.machine_of(glob)
        one = kselftest.Boot(self.launch, self.folder / f"{mutant.name}.log", needs, switch(number, mutant.early))
        cases = 0
        for case in one.run([kselftest.line(program, by_name) for program in wanted], self.files):
            cases += 1
            if case.state == "failed":
                state = "splat" if case.splat else "failed"
                return boot.Verdict(state, f"{case.suite}.{case.name}", time.monotonic() - started)
        return boot.Verdict("passed" if cases else "none", "", time.monotonic() - started)

    def likely(self, mutant: Mutant, before: str) -> list[str]:
        """The program that the catalogue names; it alone says whether the mutant survives."""
        return [mutant.program]


def switch(number: int, early: bool) -> list[str]:
    """What the command line of a kernel with mutants says to switch one on."""
    return [f"{schemata.SWITCH}{'_early' if early else ''}={number}"] if number else []


def table(results: Sequence[Result]) -> str:
    """The results as lines for a terminal, and a summary."""
    width = max((len(result.name) for result in results), default=0)
    lines = []
    for result in results:
        what = result.where or result.argument or (result.harm if result.state != "does not fit" else "")
        lines.append(f"{result.name:{width}}  {result.state:14} {result.seconds:5.1f}s  {what}".rstrip())
    counts = {state: sum(r.state == state for r in results) for state in STATES}
    lines += [f"{count:4} {STATES[state]}" for state, count in counts.items() if count]
    return "\n".join(lines)


def excused(result: Result, mutants: Sequence[Mutant], session: Session) -> Result:
    """`result`, with the reason where a mutant is not meant to fit this kernel."""
    if result.state != "does not fit":
        return result
    arches = sorted({m.arch for m in mutants if m.name == result.name})
    if all(arches) and not any(session.settings.arch in arch.split() for arch in arches):
        return dataclasses.replace(result, argument=f"for {', '.join(arches)}")
    if result.name in catalogue.misfits(session.source.path):
        return dataclasses.replace(result, argument="for another kernel")
    return result


NOTHING = ("does not fit", "does not build", "alone")
"""States without a verdict on the tests."""


def status(results: Sequence[Result]) -> int:
    """FAILED if a mutant survived without a reason that is known, or a test saw what is not there.

    Otherwise NO_VERDICT if one was not judged and the catalogue does not say why.
    """
    if any(r.state == "false alarm" or (r.state == "survived" and not r.argument) for r in results):
        return FAILED
    return NO_VERDICT if any(r.state in NOTHING and not r.argument for r in results) else PASSED


def run(environ: Mapping[str, str]) -> int:
    """The command; returns the exit status."""
    jobs = environ.get("JOBS") or str(os.cpu_count() or 1)
    if not jobs.isdigit() or jobs == "0":
        raise UserError(f"JOBS={jobs}: use a number of boots at a time")
    folder = Path(environ["MUTANTS"]) if environ.get("MUTANTS") else catalogue.FOLDER
    settings = from_environment({"ARCH": "arm64", **environ})
    only = environ.get("ONLY") or "*"
    mutants = [mutant for mutant in catalogue.load(folder) if fnmatch.fnmatch(mutant.name, only)]
    if not mutants:
        raise UserError(f"ONLY={only}: no mutant in {folder} has such a name")
    found: list[Result] = []
    for kind, own in (
        (Session, [m for m in mutants if not m.program]),
        (GuestSession, [m for m in mutants if m.program]),
    ):
        if own:
            session = kind(settings, int(jobs))
            with session.alone():
                results = [excused(result, own, session) for result in session.run(own)]
                session.save([result for result in results if result.state != "does not fit"])
            progress.say(f"consoles and mutants.json in {session.folder}")
            found += results
    print(table(found))
    return status(found)


def main(environ: Mapping[str, str]) -> int:
    """The command."""
    return command.run("mutants", run, environ, "what was found so far is kept")


def start(arguments: Sequence[str]) -> int:
    """The command with its arguments."""
    return command.start("mutants", __doc__, lambda _: main(os.environ), arguments)


if __name__ == "__main__":
    sys.exit(start(sys.argv[1:]))
