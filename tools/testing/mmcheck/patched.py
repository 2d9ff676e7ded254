# SPDX-License-Identifier: GPL-2.0
"""`make known-issues`: does each patch of a known issue fix it, and does the suite notice that it did?

Before: the kernel as it is, with strict=1: at least one test of each issue must fail, and its reproducer prints BUG.
After: all patches that fit go into one private copy of the tree. There the table must say that the issues are gone.
The same tests run with the issues declared present (pgtable_kunit.issues=, ISSUES=): they must pass, and say that the
issue is stale. The reproducer prints OK. BEFORE=no leaves the first half out.
"""

import dataclasses
import fnmatch
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from . import (
    catalogue,
    closing,
    command,
    guest,
    judge,
    known_issues,
    kselftest,
    launcher,
    machine,
    progress,
    results,
    source,
)
from .errors import FAILED, PASSED, UserError
from .known_issues import Issue
from .settings import PROJECT, Settings, from_environment

REPRODUCERS = PROJECT / "patches/reproducers"


def fixed(issues: Sequence[Issue], read: Callable[[str], str]) -> tuple[list[Issue], dict[str, bytes]]:
    """The issues of `issues` that a tree has, and the files of it as their patches change them.

    Raises UserError where no patch of one fits, or the table still finds the faulty code.
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


@dataclasses.dataclass(frozen=True)
class Plan:
    """What runs on each of the two kernels.

    kunit, selftests: the tests that the table names
    reproducers:      programs of patches/reproducers/, by name without ending
    config:           lines that the KUnit kernel needs besides
    """

    kunit: tuple[str, ...]
    selftests: tuple[str, ...]
    reproducers: tuple[str, ...]
    config: tuple[str, ...]


def plan(issues: Sequence[Issue], arch: str) -> Plan:
    """What to run for `issues`."""
    fixtures = {case.partition(".")[0] for program in kselftest.programs() for case in program.cases}
    named = list(dict.fromkeys(test for issue in issues for test in issue.tests))
    kunit = [test for test in named if test.partition(".")[0] not in fixtures]
    user = arch in guest.DEBIAN
    config = [line for issue in issues for line in issue.config] if arch == "arm64" else []
    return Plan(
        tuple(kunit),
        tuple(test for test in named if test not in kunit) if user else (),
        tuple(
            reproducer(issue)
            for issue in issues
            if user and (REPRODUCERS / f"{reproducer(issue)}.c").exists() and not issue.file.startswith("arch/um/")
        ),
        tuple(dict.fromkeys(config)),
    )


def reproducer(issue: Issue) -> str:
    """The name that the reproducer of an issue has, if there is one."""
    return f"known-issue-{issue.number}"


def compiled(names: Sequence[str], arch: str, folder: Path, headers: Path) -> dict[str, Path]:
    """Reproducers as programs in `folder`, built as a user would, but static, with the kernel's own `headers`."""
    folder.mkdir(parents=True, exist_ok=True)
    found = {name: folder / name for name in names}
    for name, path in found.items():
        cc: list[str | Path] = [f"{machine.cross_prefix(arch)}gcc", "-static", "-isystem", headers]
        if subprocess.run([*cc, "-o", path, REPRODUCERS / f"{name}.c"]).returncode:
            raise UserError(f"{REPRODUCERS / name}.c does not build: see the lines above")
    return found


class Session:
    """One of the two kernels, and what its tests say."""

    def __init__(self, settings: Settings, label: str, tree: Path, parameter: str, word: str) -> None:
        """`tree` is the working copy `label`; `parameter` and `word` make KUnit and selftests judge known issues."""
        self.settings, self.label, self.tree = settings, label, tree
        self.parameter, self.word = parameter, word
        self.cases: dict[str, list[results.Case]] = {}

    def note(self, cases: Iterable[results.Case]) -> None:
        """Keep the verdicts of a boot: of each parameter or variant, by `suite.case`, or by `fixture.case`."""
        for case in cases:
            whole = case.name.partition(":")[0]
            for name in {f"{case.suite}.{whole.rpartition('.')[2]}".rstrip("."), whole}:
                self.cases.setdefault(name, []).append(case)

    def run(self, todo: Plan) -> None:
        """Build the kernels, and run all of `todo`."""
        if todo.kunit:
            self.kunit(todo.kunit, todo.config)
        if todo.selftests or todo.reproducers:
            self.selftests(todo.selftests, todo.reproducers)

    def kunit(self, tests: Sequence[str], config: Sequence[str]) -> None:
        """Build the kernel with the suites, and boot it for each of `tests`; an architecture has not all of them."""
        words = [f"--arch={self.settings.arch}", *(f"--kconfig_add={line}" for line in config)]
        if self.launch("build", *words).run():
            raise UserError(f"linux {self.label} does not build for {self.settings.arch}: see the lines above")
        for test in tests:
            launch = self.launch("exec", *words, "--kernel_args", self.parameter, test)
            try:
                launch.run()
                with (launch.build / "test.log").open(errors="replace") as lines:
                    self.note(results.kunit(lines))
            except UserError as error:
                progress.say(f"{test}: {error}")

    def launch(self, *words: str) -> launcher.Launch:
        """How to run kunit.py on the tree."""
        return launcher.Launch(launcher.parse(words), self.settings, self.tree, self.label, "")

    def selftests(self, tests: Sequence[str], reproducers: Sequence[str]) -> None:
        """Run cases of selftests, and reproducers."""
        arch = self.settings.arch
        kselftest.provide(arch)
        launch = launcher.Launch(kselftest.request(arch), self.settings, self.tree, self.label, "")
        session = kselftest.Session(launch, [self.word])
        globs = " ".join(f"{fixture}.*{case}" for fixture, case in (test.split(".") for test in tests))
        alone = [kselftest.Program(name) for name in reproducers]
        every = [*kselftest.programs(), *alone]
        wanted = kselftest.chosen(every, globs) if globs else []
        files = session.build([program.name for program in wanted]) if wanted else {}
        if not wanted:
            session.kernel()
        files |= compiled(reproducers, arch, session.folder / "reproducers", launch.build / "usr/include")
        self.note(session.run([*wanted, *alone], every, files))

    def verdict(self, issue: Issue, test: str) -> str:
        """What became of a test of an issue, or of its reproducer."""
        cases = self.cases.get(test, [])
        if any(case.state == "failed" for case in cases):
            return "failed"
        said = [int(match[1]) for case in cases for match in map(known_issues.STALE.search, case.text) if match]
        if issue.number in said:
            return "stale"
        if any(case.state == "passed" for case in cases):
            return "passed"
        return f"skipped: {' '.join(cases[0].text)}".rstrip(": ") if cases else "did not run"


def met(before: Mapping[str, str] | None, after: Mapping[str, str]) -> bool:
    """Whether any test, or the reproducer, meets an issue on this architecture, with these pages."""
    return "failed" in (before or {}).values() or "stale" in after.values()


def wrong(before: Mapping[str, str] | None, after: Mapping[str, str], alone: str) -> str:
    """What is wrong with an issue, by the verdicts of its tests and of its reproducer `alone`; nothing if it holds."""
    tests = {test: verdict for test, verdict in after.items() if test != alone}
    if "failed" in after.values():
        return "a test fails with the patch"
    if not met(before, after):
        return ""
    if "passed" in tests.values() and "stale" not in tests.values():
        return "no test says that it is stale"
    if before is None:
        return ""
    if "failed" not in [verdict for test, verdict in before.items() if test != alone]:
        return "no test fails without the patch"
    if before.get(alone) == "passed":
        return "its reproducer prints OK without the patch"
    return ""


def run(environ: Mapping[str, str]) -> int:
    """The command; returns the exit status: 1 if a patch does not fix its issue, or no test shows that it does."""
    settings = from_environment({"ARCH": "arm64", **environ})
    both = environ.get("BEFORE") or "yes"
    if both not in ("yes", "no"):
        raise UserError(f"BEFORE={both}: use no, to leave out the kernel without the patches")
    machine.provide([*machine.requirements(settings.arch, own_compiler=False), "patch"])
    kernel = source.obtain(settings)
    only = (environ.get("ONLY") or "*").split()
    issues = [i for i in known_issues.load() if any(fnmatch.fnmatch(str(i.number), glob) for glob in only)]
    found, files = fixed(issues, judge.reader(kernel.path, settings.features))
    if not found:
        raise UserError(f"linux {kernel.label} has none of the known issues {' '.join(only)}")
    label, todo = launcher.label_of(kernel, settings), plan(found, settings.arch)
    before = None
    if both == "yes":
        tree = launcher.working_copy(kernel, settings, label, {})
        before = Session(settings, label, tree, "pgtable_kunit.strict=1", "STRICT=1")
        before.run(todo)
    bits = hex(sum(1 << issue.number for issue in found))
    tree = launcher.working_copy(kernel, settings, f"{label}+fixed", files)
    after = Session(settings, f"{label}+fixed", tree, f"pgtable_kunit.issues={bits}", f"ISSUES={bits}")
    after.run(todo)
    return report(found, before, after, todo, environ)


def report(
    issues: Sequence[Issue], before: Session | None, after: Session, todo: Plan, environ: Mapping[str, str]
) -> int:
    """Print what became of each test, without the patches and with them; returns the exit status."""
    bad: list[int] = []
    absent: list[int] = []
    print(f"{'':3} {'':50} {'without the patch':18} with it")
    for issue in issues:
        alone = reproducer(issue)
        tests = [*issue.tests, *([alone] if alone in todo.reproducers else [])]
        old = {test: before.verdict(issue, test) for test in tests} if before else None
        new = {test: after.verdict(issue, test) for test in tests}
        for test in tests:
            print(f"{issue.number:3} {test:50} {(old or {}).get(test, ''):18} {new[test]}".rstrip())
        if why := wrong(old, new, alone):
            print(f"{issue.number:3} DOES NOT HOLD: {why}")
            bad.append(issue.number)
        elif not met(old, new):
            print(f"{issue.number:3} no test met it on this machine: KNOWN_ISSUES.md says what it needs")
            absent.append(issue.number)
    count, label = len(issues) - len(absent), after.label.removesuffix("+fixed")
    verdict = "FAILED" if bad else "passed" if count else "nothing was tested"
    for line in closing.lines(
        f"{verdict}: {count - len(bad)} of {count} patches fix their issue on linux {label}",
        [
            f"does not hold: issue {', '.join(map(str, bad))}" if bad else "",
            f"no test meets issue {', '.join(map(str, absent))} on this machine" if absent else "",
        ],
        f"{after.settings.out} (the consoles of the kernels {after.label}{f' and {before.label}' if before else ''})",
        closing.make("known-issues", environ, ONLY=str(bad[0])) if bad else "",
    ):
        print(line)
    return FAILED if bad else PASSED


def main(environ: Mapping[str, str]) -> int:
    """The command."""
    return command.run("known-issues", run, environ)
