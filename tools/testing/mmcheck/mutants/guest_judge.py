# SPDX-License-Identifier: GPL-2.0
"""Judges mutants by the selftests alone, or first by the KUnit suites and then by the selftests in the same kernel."""

import time
from collections.abc import Container, Sequence

from ..boot.boot import Verdict
from ..core import progress
from ..core.errors import UserError
from ..core.settings import PROJECT, Settings
from ..kernel import source, toolchain
from ..run import selftests
from ..run.launch import Launch
from ..run.request import Request, parse
from ..run.session import Boot, SelftestRun
from . import reach
from .catalogue import Mutant
from .judge import KILLED, Result, Session
from .mutated import CONFIG, CONFIG_OF, Kernel, switch


def settings_of(config: str) -> dict[str, str]:
    """The lines of a configuration that set an option, by the name of the option."""
    lines = [line.strip() for line in config.splitlines()]
    found = {line.partition("=")[0]: line for line in lines if line.startswith("CONFIG_")}
    return found | {
        line.split()[1]: line for line in lines if line.startswith("# CONFIG_") and line.endswith(" is not set")
    }


def both(arch: str, more: Sequence[str] = ()) -> Request:
    """The request to kunit.py, with the options for the selftests, the options for the suites, and `more`."""
    guest = [selftests.CONFIG / f"{name}.config" for name in ("kernel", arch)]
    suites = [PROJECT / folder / ".kunitconfig" for folder in toolchain.suites(arch)]
    given = {name for path in guest for name in settings_of(path.read_text())}
    found: dict[str, str] = {}
    for path in suites:
        if path.exists():
            found |= {n: line for n, line in settings_of(path.read_text()).items() if line.endswith("=y")}
    wanted = [line for name, line in found.items() if name not in given]
    wanted += ["CONFIG_PANIC_TIMEOUT=-1", *CONFIG, *CONFIG_OF.get(arch, []), *more]
    config = [f"--kconfig_add={line}" for line in wanted if line.partition("=")[0] not in given]
    return parse(["build", f"--arch={arch}", *(f"--kunitconfig={path}" for path in guest), *config])


class GuestSession(Session):
    """One run of the command on one kernel, by the selftests."""

    kind = "mutants+selftests"

    def __init__(self, settings: Settings, jobs: int, name: str = "") -> None:
        source.judge(settings)
        selftests.provide(settings.arch)
        super().__init__(settings, jobs, name)
        self.every = selftests.programs()

    def request(self) -> Request:
        """The request to kunit.py for the kernel."""
        return selftests.request(self.settings.arch)

    def built(self, launch: Launch) -> None:
        """Build the selftests after the kernel."""
        self.launch = launch
        self.files = SelftestRun(launch).build([program.name for program in self.every])

    def check_unchanged(self, kernel: Kernel) -> None:
        """Check that all programs pass without a mutant. If a program fails, no verdict on a mutant is valid."""
        usual = [program.name for program in self.every if program.name not in selftests.MACHINES]
        self.check_programs([usual])
        progress.say(f"{len(kernel.number)} mutants in one kernel; while all are disabled, all programs pass")

    def check_programs(self, boots: Sequence[Sequence[str]]) -> None:
        """Boot without a mutant, once for each of `boots`. Raises UserError if a program fails."""
        for names in boots:
            verdict = self.programs(Mutant("unchanged", "", (), lambda _: {}), 0, names)
            if verdict.state != "passed":
                log = self.folder / "unchanged.log"
                raise UserError(
                    f"linux {self.label} fails its tests although no mutant is enabled: "
                    f"{verdict.state} in {verdict.where}; see {log}"
                )

    def boot(self, mutant: Mutant, number: int, glob: str, without: Container[str] = ()) -> Verdict:
        """Boot with one mutant enabled, and run the program `glob`. If `glob` is "", run all of the usual machine."""
        usual = [program.name for program in self.every if program.name not in selftests.MACHINES]
        return self.programs(mutant, number, [glob] if glob else usual)

    def programs(self, mutant: Mutant, number: int, names: Sequence[str]) -> Verdict:
        """Boot with one mutant enabled, and run programs that need the same machine, up to the first failure."""
        started = time.monotonic()
        by_name = {program.name: program for program in self.every}
        needs = selftests.machine_of(names[0])
        words = [*switch(number, mutant.early), "kunit.enable=0"]
        one = Boot(self.launch, self.folder / f"{mutant.name}.log", needs, words)
        cases = 0
        for case in one.run([selftests.line(by_name[name], by_name) for name in names], self.files):
            cases += 1
            if case.state == "failed":
                # A warning of the kernel fails the case. If the kernel died, the state is splat.
                state = "splat" if case.splat and one.reader.closed else "failed"
                return Verdict(state, f"{case.suite}.{case.name}", time.monotonic() - started)
        return Verdict("passed" if cases else "none", "", time.monotonic() - started)

    def boots(self) -> list[list[str]]:
        """Lists of programs. The programs of one list need the same machine."""
        found: dict[selftests.Machine, list[str]] = {}
        for program in self.every:
            found.setdefault(selftests.machine_of(program.name), []).append(program.name)
        return list(found.values())

    def likely(self, mutant: Mutant, before: str) -> list[str]:
        """The program that the catalogue names. It alone decides whether the mutant survives."""
        return [mutant.program]

    def foreign(self, case: str) -> bool:
        """Whether a case belongs to a KUnit suite, not to a selftest."""
        return not super().foreign(case)


class BothSession(GuestSession):
    """One kernel with suites and selftests. The selftests judge the mutants that no suite notices."""

    kind = "mutants+both"

    def request(self) -> Request:
        """The request to kunit.py for the kernel."""
        return both(self.settings.arch)

    def foreign(self, case: str) -> bool:
        """No case is foreign: this kernel runs suites and selftests."""
        return False

    def likely(self, mutant: Mutant, before: str) -> list[str]:
        """The tests that run first: the test that noticed the mutant last time, and the suite in the catalogue.

        If both are missing, the suite or selftest that noticed most mutants of the same functions runs first.
        """
        return Session.likely(self, mutant, before)

    def check_unchanged(self, kernel: Kernel) -> None:
        """Check that all suites and all programs pass without a mutant."""
        Session.check_unchanged(self, kernel)
        self.trace = reach.Programs()
        for names in self.boots():
            self.check_programs([names])
            self.trace.add(self.folder / "unchanged.log")

    def boot(self, mutant: Mutant, number: int, glob: str, without: Container[str] = ()) -> Verdict:
        """Boot with one mutant enabled, and run the program or the suites that `glob` names."""
        if glob in {program.name for program in self.every}:
            return GuestSession.boot(self, mutant, number, glob)
        return Session.boot(self, mutant, number, glob, without)

    def has(self, glob: str) -> bool:
        """Whether `glob` matches a program or a suite."""
        return glob in {program.name for program in self.every} or super().has(glob)

    def judge(self, mutant: Mutant, number: int, likely: Sequence[str]) -> Result:
        """Run the likely suites, all suites, and the selftests that reach the mutant, until a test notices it."""
        result = super().judge(mutant, number, likely)
        if result.state != "survived":
            return result
        seconds = result.seconds
        # Without notes of functions that ran, all selftests run. A kernel with a single mutant makes no notes, and an
        # early mutant runs before the tests.
        known = number and not mutant.early
        reaching = self.trace.reaching(self.noted[mutant.name], self.near(mutant)) if known else None
        for names in self.boots():
            todo = names if reaching is None else [name for name in reaching if name in names]
            if not todo:
                continue
            verdict = self.programs(mutant, number, todo)
            seconds += verdict.seconds
            if verdict.state in KILLED:
                verdict = self.second(mutant, number, verdict, likely)
                seconds += verdict.seconds
                return Result(mutant.name, verdict.state, verdict.where, seconds, mutant.harm)
        return Result(mutant.name, "survived", "", seconds, mutant.harm, result.argument)
