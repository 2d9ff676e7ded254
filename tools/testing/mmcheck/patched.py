# SPDX-License-Identifier: GPL-2.0
"""`make known-issues`: does each patch of a known issue fix it, and does the suite notice that it did?

All patches that fit go into one private copy of the tree, of the issues that the tree has. There the table must say
that they are gone. The tests that the table names run with the issues declared present (pgtable_kunit.issues=,
ISSUES=): they must pass, and say that the issue is stale.
"""

import fnmatch
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence

from . import catalogue, command, guest, judge, known_issues, kselftest, launcher, machine, progress, results, source
from .errors import UserError
from .known_issues import Issue
from .settings import PROJECT, Settings, from_environment


def fixed(issues: Sequence[Issue], read: Callable[[str], str]) -> tuple[list[Issue], dict[str, bytes]]:
    """The issues of `issues` that a tree has, and the files of it as their patches change them.

    Raises UserError where no patch of one fits, or the table does not see what it did.
    """
    files: dict[str, str] = {}

    def patched(name: str) -> str:
        return files[name] if name in files else read(name)

    version = known_issues.version_of(read)
    found = [issue for issue in issues if issue.shown(version, read)]
    for issue in found:
        for name in issue.patch:
            new = catalogue.patch(PROJECT / name).files(patched)
            if new:
                files |= new
                break
        else:
            raise UserError(f"known issue {issue.number}: no patch fits; there are {', '.join(issue.patch)}")
        if issue.shown(version, patched) is not False:
            raise UserError(f"known issue {issue.number}: with {name} its faulty code still seems to be there")
    return found, {name: text.encode() for name, text in files.items()}


class Session:
    """One run of the command on one kernel."""

    def __init__(self, settings: Settings, found: Sequence[Issue], files: Mapping[str, bytes]) -> None:
        """`found` are the issues that `files` fix."""
        self.settings = settings
        kernel = source.obtain(settings)
        self.label = "+".join([kernel.label, *settings.unusual, "fixed"])
        self.tree = launcher.working_copy(kernel, settings, self.label, files)
        self.bits = hex(sum(1 << issue.number for issue in found))
        self.cases: dict[str, list[results.Case]] = {}

    def note(self, cases: Iterable[results.Case]) -> None:
        """Keep the verdicts of a boot: of each parameter or variant, by `suite.case`, or by `fixture.case`."""
        for case in cases:
            whole = case.name.partition(":")[0]
            for name in {f"{case.suite}.{whole.rpartition('.')[2]}", whole}:
                self.cases.setdefault(name, []).append(case)

    def kunit(self, tests: Sequence[str], config: Sequence[str]) -> None:
        """Build the kernel with the suites, and boot it for each of `tests`; an architecture has not all of them."""
        words = [f"--arch={self.settings.arch}", *(f"--kconfig_add={line}" for line in config)]
        if self.launch("build", *words).run():
            raise UserError(f"linux {self.label} does not build for {self.settings.arch}: see the lines above")
        for test in tests:
            launch = self.launch("exec", *words, "--kernel_args", f"pgtable_kunit.issues={self.bits}", test)
            try:
                launch.run()
                with (launch.build / "test.log").open(errors="replace") as lines:
                    self.note(results.kunit(lines))
            except UserError as error:
                progress.say(f"{test}: {error}")

    def launch(self, *words: str) -> launcher.Launch:
        """How to run kunit.py on the patched tree."""
        return launcher.Launch(launcher.parse(words), self.settings, self.tree, self.label, "")

    def selftests(self, tests: Sequence[str]) -> None:
        """Run cases of selftests."""
        kselftest.provide(self.settings.arch)
        launch = launcher.Launch(kselftest.request(self.settings.arch), self.settings, self.tree, self.label, "")
        session = kselftest.Session(launch, [f"ISSUES={self.bits}"])
        every = kselftest.programs()
        globs = " ".join(f"{fixture}.*{case}" for fixture, case in (test.split(".") for test in tests))
        wanted = kselftest.chosen(every, globs)
        self.note(session.run(wanted, every, session.build([program.name for program in wanted])))

    def verdict(self, issue: Issue, test: str) -> str:
        """What became of a test of an issue: stale is what it should be."""
        cases = self.cases.get(test, [])
        if any(case.state == "failed" for case in cases):
            return "failed"
        said = [int(match[1]) for case in cases for match in map(known_issues.STALE.search, case.text) if match]
        if issue.number in said:
            return "stale"
        if any(case.state == "passed" for case in cases):
            return "passed"
        return f"skipped: {' '.join(cases[0].text)}" if cases else "did not run"


def run(environ: Mapping[str, str]) -> int:
    """The command; returns the exit status: 1 if a test failed, or passed and no test of its issue says stale."""
    settings = from_environment({"ARCH": "arm64", **environ})
    machine.provide([*machine.requirements(settings.arch, own_compiler=False), "patch"])
    kernel = source.obtain(settings)
    only = (environ.get("ONLY") or "*").split()
    issues = [i for i in known_issues.load() if any(fnmatch.fnmatch(str(i.number), glob) for glob in only)]
    found, files = fixed(issues, judge.reader(kernel.path, settings.features))
    if not found:
        raise UserError(f"linux {kernel.label} has none of the known issues {' '.join(only)}")
    session = Session(settings, found, files)
    fixtures = {case.partition(".")[0] for program in kselftest.programs() for case in program.cases}
    named = list(dict.fromkeys(test for issue in found for test in issue.tests))
    kunit = [test for test in named if test.partition(".")[0] not in fixtures]
    selftests = [test for test in named if test not in kunit]
    if kunit:
        config = [line for issue in found for line in issue.config] if settings.arch == "arm64" else []
        session.kunit(kunit, list(dict.fromkeys(config)))
    if selftests and settings.arch in guest.DEBIAN:
        session.selftests(selftests)
    bad = False
    for issue in found:
        verdicts = {test: session.verdict(issue, test) for test in issue.tests}
        for test, verdict in verdicts.items():
            print(f"{issue.number:3} {test:50} {verdict}")
        bad |= "failed" in verdicts.values()
        bad |= "passed" in verdicts.values() and "stale" not in verdicts.values()
    return int(bad)


def main(environ: Mapping[str, str]) -> int:
    """The command."""
    return command.run("known-issues", run, environ)


def start(arguments: Sequence[str]) -> int:
    """The command with its arguments."""
    return command.start("patched", __doc__, lambda _: main(os.environ), arguments)


if __name__ == "__main__":
    sys.exit(start(sys.argv[1:]))
