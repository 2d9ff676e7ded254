# SPDX-License-Identifier: GPL-2.0
"""Judges mutants: builds a kernel with them, boots it for each, and sees whether a KUnit suite notices.

All mutants that change only function bodies go into one kernel (schemata.py). It is built once. Then
it is booted for each mutant, several at a time. The first boot for a mutant runs the suites that are
likely to notice it: those that noticed it last time, or that the catalogue names. A boot ends at the
first failure.
"""

import concurrent.futures
import contextlib
import dataclasses
import fnmatch
import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from ..boot import boot
from ..core import disk, progress
from ..core.errors import UserError
from ..core.lock import held
from ..core.settings import Settings
from ..kernel import shadow, source, toolchain
from ..kernel.make import LOG
from ..run import selftests, workspace
from ..run.launch import Launch
from ..run.request import Request, parse
from . import catalogue, reach, schemata
from .catalogue import Mutant

SWITCH_FILE = "lib/mmcheck_mutant.c"
TIMEOUT = 240
"""Seconds for one boot with all suites. Each case has a time limit of its own, which notices a hang."""

CONFIG = ["CONFIG_DEBUG_KERNEL=y", "CONFIG_DEBUG_ATOMIC_SLEEP=y"]
CONFIG_OF = {
    "arm64": [
        "CONFIG_EFI=y",
        "CONFIG_HUGETLBFS=y",
        "CONFIG_MEMORY_HOTPLUG=y",
        "CONFIG_MEMORY_HOTREMOVE=y",
        "CONFIG_DEBUG_PAGEALLOC=y",
        "CONFIG_KFENCE=y",
        "CONFIG_KFENCE_SAMPLE_INTERVAL=0",
    ]
}
"""Options that some cases need and that cost little: all kernels get them."""

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
    """What became of a mutant: a key of STATES, the suite and case that noticed, and the seconds it took."""

    name: str
    state: str
    where: str = ""
    seconds: float = 0.0
    harm: str = ""
    argument: str = ""


@dataclass
class Kernel:
    """A kernel that holds mutants.

    number:    the number of each mutant
    files:     the files that differ from the usual tree
    functions: the functions that each mutant changes
    noted:     the number that each function notes when it runs
    """

    number: dict[str, int]
    files: dict[str, bytes]
    functions: dict[str, list[catalogue.Function]] = dataclasses.field(default_factory=dict)
    noted: dict[catalogue.Function, int] = dataclasses.field(default_factory=dict)


def combine(
    mutants: Sequence[tuple[Mutant, Mapping[str, str]]], read: Callable[[str], str], without: Sequence[str] = ()
) -> Kernel:
    """One kernel with all of `mutants` that can be switched, except those in `without`.

    The mutants that stay keep their numbers, so an object without an excluded mutant does not change.
    """
    variants: dict[str, dict[tuple[str, int], list[tuple[int, str]]]] = {}
    number: dict[str, int] = {}
    functions: dict[str, list[catalogue.Function]] = {}
    for place, (mutant, files) in enumerate(mutants, 1):
        bodies = {name: schemata.changed(read(name), text) for name, text in files.items()}
        if any(not found for found in bodies.values()):
            continue
        functions[mutant.name] = [(name, function) for name, found in bodies.items() for function in found or {}]
        if mutant.name in without:
            continue
        number[mutant.name] = place
        for name, found in bodies.items():
            for function, body in (found or {}).items():
                variants.setdefault(name, {}).setdefault(function, []).append((number[mutant.name], body))
    # Functions of excluded mutants get numbers too, so that all other objects stay the same.
    noted = reach.numbers(functions)
    merged = {}
    for name, bodies_of in variants.items():
        own = {function: place for (file, function), place in noted.items() if file == name}
        merged[name] = schemata.merge(read(name), bodies_of, own).encode()
    with contextlib.suppress(OSError):
        merged[reach.KUNIT] = reach.hooked(merged.get(reach.KUNIT, b"").decode() or read(reach.KUNIT)).encode()
    makefile = read("lib/Makefile") + "\nobj-y += mmcheck_mutant.o\n"
    switch = (catalogue.FOLDER / "mmcheck_mutant.c").read_bytes()
    differ = {**merged, "lib/Makefile": makefile.encode(), SWITCH_FILE: switch}
    return Kernel(number, differ, {name: functions[name] for name in number}, noted)


def own_kernel(mutant: Mutant, files: Mapping[str, str], usual: Kernel) -> Kernel:
    """The kernel of one mutant that cannot be switched. Cases have the same numbers as in `usual`."""
    own = {name: usual.files[name] for name in ("lib/Makefile", SWITCH_FILE, reach.KUNIT) if name in usual.files}
    changed = {name: text.encode() for name, text in files.items()}
    if "lib/Makefile" in files:
        changed["lib/Makefile"] += b"\nobj-y += mmcheck_mutant.o\n"
    return Kernel({mutant.name: 0}, {**own, **changed})


def culprits(log: str, kernel: Kernel, build: Path | None = None) -> set[str]:
    """The mutants whose text the compiler complains about in the log of a build.

    build: the build folder; in it tests compile copies of some functions, with the same marks
    """
    names = {number: name for name, number in kernel.number.items()}
    errors = re.findall(r"^(\S+?):(\d+):(?:\d+:)? error:", log, re.MULTILINE)
    # If the error is in a macro or an inline function, the mutant is in the code that uses it.
    around = re.findall(r"(?:inlined from .* at |^)(\S+?):(\d+):(?:\d+:?)?", log, re.MULTILINE) if errors else []
    for lines in (errors, around):
        found = set()
        for file, line in lines:
            for text in _texts(file, kernel, build):
                number = schemata.at_line(text, int(line))
                found |= {names[number]} if number in names else set()
        if found:
            return found
    return set()


def _texts(file: str, kernel: Kernel, build: Path | None) -> list[str]:
    """The text of a file that a message names: one that we changed, or a copy that the build made."""
    ours = [text.decode() for name, text in kernel.files.items() if f"/{file}".endswith(f"/{name}")]
    copy = build / file if build else None
    if not ours and copy and copy.is_file():
        return [copy.read_text(errors="replace")]
    return ours


def switch(number: int, early: bool) -> list[str]:
    """The words of the kernel's command line that switch on the mutant `number`; 0 is none."""
    return [f"{schemata.SWITCH}{'_early' if early else ''}={number}"] if number else []


class Session:
    """One run of the command on one kernel, by the KUnit suites."""

    kind = "mutants"
    name = ""
    hints: Mapping[tuple[str, str], Sequence[str]] = {}
    """By file and function, the suites and selftests that noticed its mutants before, best first; "" is any file."""
    kernel: Kernel | None = None

    def __init__(self, settings: Settings, jobs: int, name: str = "") -> None:
        """`name` keeps the results apart from others of the same kernel."""
        self.settings, self.jobs = settings, jobs
        source.judge(settings)
        toolchain.provide([*toolchain.requirements(settings.arch, own_compiler=False), "patch"])
        self.source = source.obtain(settings)
        self.label = "+".join([self.source.label, *settings.unusual, self.kind])
        self.read = shadow.reader(self.source.path, settings.features)
        pages = f"-{settings.pages}" if settings.arch == "arm64" else ""
        self.folder = settings.out / "mutants" / f"{self.label}{name}-{settings.arch}{pages}"
        self.report = self.folder / "mutants.json"
        self.name = name
        self.build = Path()
        self.reach = reach.Reach()
        self.noted: dict[str, list[int]] = {}

    def alone(self) -> AbstractContextManager[None]:
        """Hold a lock on this kernel, from the working copy to the last verdict.

        Another run may give the same numbers to other mutants. Without the lock our boots would judge its mutants.
        """
        return held(self.settings.out / "lock" / f"{self.label}.mutants", f"it judges mutants of linux {self.label}")

    def request(self) -> Request:
        """What to ask kunit.py for."""
        config = [f"--kconfig_add={line}" for line in CONFIG + CONFIG_OF.get(self.settings.arch, [])]
        return parse(["build", f"--arch={self.settings.arch}", *config])

    def built(self, launch: Launch) -> None:
        """Note the folder of a kernel that was built."""
        self.build = launch.build

    def attempt(self, kernel: Kernel) -> bool:
        """Build one kernel; returns whether it was built."""
        tree = workspace.working_copy(self.source, self.settings, self.label, kernel.files)
        request = self.request()
        # With -k one build names all mutants that do not compile.
        request = dataclasses.replace(request, arguments=[*request.arguments, "--make_options=-k"])
        launch = Launch(request, self.settings, tree, self.label, "")
        self.build = launch.build
        (launch.build / LOG).unlink(missing_ok=True)
        with contextlib.suppress(UserError):
            if launch.run() == 0:
                self.built(launch)
                return True
        return False

    def log(self) -> str:
        """What the last build said."""
        try:
            return (self.build / LOG).read_text(errors="replace")
        except FileNotFoundError:
            return ""

    def make(self, mutants: list[tuple[Mutant, Mapping[str, str]]]) -> tuple[Kernel, list[str]]:
        """Build the kernel; returns it and the names of the mutants that do not build."""
        broken: list[str] = []
        while True:
            kernel = combine(mutants, self.read, broken)
            if self.attempt(kernel):
                return kernel, broken
            log = self.log()
            wrong = culprits(log, kernel, self.build) or {self.culprit(mutants, kernel, broken, log)}
            progress.say(f"these mutants do not build and are left out: {', '.join(sorted(wrong))}")
            broken += sorted(wrong)

    def culprit(
        self, mutants: list[tuple[Mutant, Mapping[str, str]]], kernel: Kernel, broken: Sequence[str], log: str
    ) -> str:
        """Find by bisection a mutant that does not build, if no message of the compiler names one."""

        def builds(names: Sequence[str]) -> bool:
            return self.attempt(
                combine(mutants, self.read, [name for name in kernel.number if name not in names] + [*broken])
            )

        every = list(kernel.number)
        files = {file for file, _ in re.findall(r"^(\S+?):(\d+):(?:\d+:)? error:", log, re.MULTILINE)}
        near = [
            name
            for name in every
            if any(f"/{file}".endswith(f"/{own}") for own, _ in kernel.functions[name] for file in files)
        ]
        good, suspects = [name for name in every if name not in near], near
        if not near or not builds(good):
            good, suspects = [], every
            if not builds([]):
                raise UserError(f"linux {self.label} does not build: see {self.build / LOG}")
        progress.say(f"the build fails, and no message names a mutant: bisecting {len(suspects)} mutants")
        first, last = 0, len(suspects)  # the first `first` suspects build, the first `last` do not
        while last - first > 1:
            middle = (first + last) // 2
            if builds(good + suspects[:middle]):
                first = middle
            else:
                last = middle
        return suspects[first]

    def boot(self, mutant: Mutant, number: int, glob: str) -> boot.Verdict:
        """Boot with one mutant switched on, and run the suites of `glob`, or all that may notice if `glob` is ""."""
        log = self.folder / f"{mutant.name}.log"
        arguments = switch(number, mutant.early) + ([f"kunit.filter_glob={glob}"] if glob else [])
        suites = None
        if not glob and number and not mutant.early and self.reach.known:
            places = self.reach.reaching(self.noted.get(mutant.name, []))
            if not places:
                return boot.Verdict("passed", "", 0.0)
            arguments.append(reach.selection(places))
            suites = len({self.reach.cases[place].partition(".")[0] for place in places})
        # All suites together run on the usual machine: an option that a few need would break others.
        arguments += mutant.kernel_args.split() if glob else []
        command = boot.command(self.settings.arch, self.build, arguments)
        more = mutant.machine.split() if glob and self.settings.arch != "um" else []
        return boot.follow([*command, *more], log, TIMEOUT, suites=suites)

    def has(self, glob: str) -> bool:
        """Whether the kernel has a suite that `glob` matches. True for "", and while its suites are not known yet."""
        suites = {case.partition(".")[0] for case in self.reach.cases}
        return not (glob and suites) or bool(fnmatch.filter(suites, glob.partition(".")[0]))

    def judge(self, mutant: Mutant, number: int, likely: Sequence[str]) -> Result:
        """Boot with the likely suites first, and then with all if the likely ones notice nothing."""
        seconds = 0.0
        for glob in [*dict.fromkeys(likely), ""]:
            if not self.has(glob):
                progress.say(f"{mutant.name}: this kernel has no suite {glob}")
                continue
            verdict = self.boot(mutant, number, glob)
            seconds += verdict.seconds
            if verdict.state in KILLED:
                state = "false alarm" if mutant.equivalent else verdict.state
                return Result(mutant.name, state, verdict.where, seconds, mutant.harm)
        state = "equivalent" if mutant.equivalent else "survived"
        return Result(mutant.name, state, "", seconds, mutant.harm, mutant.equivalent or mutant.survives)

    def foreign(self, case: str) -> bool:
        """Whether a case belongs to another kind of session."""
        return case.partition(".")[0] in {program.name for program in selftests.programs()}

    def likely(self, mutant: Mutant, before: str) -> list[str]:
        """The suites to begin with: `before`, which noticed the mutant last time, and the one that the catalogue names.

        Without both, the suite that noticed most mutants of the same functions.
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

    def known(self) -> dict[str, str]:
        """The suite that noticed each mutant last time."""
        try:
            results = json.loads(self.report.read_text())["mutants"]
        except (OSError, ValueError, KeyError):
            return {}
        return {r["name"]: r["where"].partition(".")[0] for r in results if r.get("where")}

    def run(self, every: Sequence[Mutant]) -> list[Result]:
        """Build the kernel, and judge all mutants; returns the results in the order of the catalogue."""
        mutants, absent = catalogue.fitting(every, self.read, self.settings.arch)
        toolchain.provide(toolchain.named([mutant.machine for mutant, _ in mutants]))
        self.folder.mkdir(parents=True, exist_ok=True)
        if not mutants:
            return [Result(name, "does not fit") for name in absent]
        kernel, broken = self.make(mutants)
        self.check_unchanged(kernel)
        results = [Result(name, "does not fit") for name in absent]
        results += [Result(name, "does not build") for name in broken]
        results += self.judge_all([m for m, _ in mutants if m.name in kernel.number], kernel)
        alone = [(m, files) for m, files in mutants if m.name not in kernel.number and m.name not in broken]
        results += self.judge_alone(alone, kernel)
        order = {mutant.name: place for place, (mutant, _) in enumerate(mutants)}
        return sorted(results, key=lambda result: order.get(result.name, len(order)))

    def judge_all(self, mutants: Sequence[Mutant], kernel: Kernel) -> list[Result]:
        """Judge the mutants of one kernel, several at a time. After an interrupt, judge those without a verdict."""
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
        """Judge mutants that change more than function bodies. Each gets a kernel of its own, in the same folder."""
        results = []
        for mutant, files in mutants:
            if not any(text != self.read(name) for name, text in files.items()):
                results.append(Result(mutant.name, "survived", argument="changes nothing"))
                continue
            progress.say(f"{mutant.name} changes more than bodies of functions, so it gets a kernel of its own")
            if not self.attempt(own_kernel(mutant, files, usual)):
                results.append(Result(mutant.name, "does not build", harm=mutant.harm))
                continue
            results.append(self.judge(mutant, 0, self.likely(mutant, "")))
            self.save(results)
        return results

    def check_unchanged(self, kernel: Kernel) -> None:
        """Check that all suites pass without a mutant; otherwise no verdict means anything.

        Also notes which cases reach which mutant.
        """
        self.kernel = kernel
        self.noted = {name: [kernel.noted[function] for function in found] for name, found in kernel.functions.items()}
        log, kept, mark = self.folder / "unchanged.log", self.folder / "reach.json", self.fingerprint(kernel)
        before = reach.Reach.load(kept, mark)
        if before is None:
            command = boot.command(self.settings.arch, self.build, ["mmcheck_reach", "printk.time=1"])
            verdict = boot.follow(command, log, TIMEOUT)
            if verdict.state != "passed":
                raise UserError(
                    f"linux {self.label} fails its tests with no mutant switched on: "
                    f"{verdict.state} in {verdict.where}; see {log}"
                )
            with log.open(errors="replace") as console:
                before = reach.read(console)
            before.save(kept, mark)
        self.reach = before
        progress.say(f"{len(kernel.number)} mutants in one kernel; with none switched on, all suites pass")

    def fingerprint(self, kernel: Kernel) -> str:
        """A digest that changes with the kernel, the tests, and the mutants."""
        digest = hashlib.sha256(shadow.fingerprint(self.source, features=self.settings.features).encode())
        for name, content in sorted(kernel.files.items()):
            digest.update(f"{name}\n".encode() + content)
        return digest.hexdigest()

    def unfinished(self, mark: str) -> list[Result]:
        """The verdicts that an unfinished run on this same kernel has left."""
        try:
            whole = json.loads(self.report.read_text())
            names = whole["names"] if whole["unfinished"] == mark else []
            return [Result(**result) for result in whole["mutants"] if result["name"] in names]
        except (OSError, ValueError, KeyError, TypeError):
            return []

    def save(self, results: Sequence[Result], unfinished: str = "", forget: Set[str] = frozenset()) -> None:
        """Write what is known so far, keeping the verdicts on mutants that are not part of this run.

        unfinished: the fingerprint of the kernel, while mutants still wait for a verdict
        forget:     mutants whose verdicts of earlier runs are dropped
        """
        names = [result.name for result in results]
        try:
            kept = [r for r in json.loads(self.report.read_text())["mutants"] if r["name"] not in {*names, *forget}]
        except (OSError, ValueError, KeyError):
            kept = []
        whole = {"kernel": self.label + self.name, "arch": self.settings.arch, "pages": self.settings.pages}
        mutants = [*kept, *(dataclasses.asdict(result) for result in results)]
        state = {"unfinished": unfinished, "names": names}
        disk.replace(self.report, json.dumps({**whole, **state, "mutants": mutants}, indent=1).encode())
