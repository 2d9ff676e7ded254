# SPDX-License-Identifier: GPL-2.0
"""`make known-issues`: does each patch of a known issue fix the issue, and do its tests notice the fix?

The tests first run on the kernel without patches, with strict=1. At least one test of each issue must fail, and the
reproducer of the issue must print BUG. Then the command applies the patches of these issues to a private copy of the
tree. In this copy the table of known issues must no longer find the faulty code. The same tests run on the patched
kernel, with the issues declared present (pgtable_kunit.issues=, ISSUES=). The tests must pass and report that the issue
is stale, and the reproducer must print OK. BEFORE=no leaves out the kernel without patches.

Each issue is tested on a machine on which a test meets it. The table names this machine; the default is arm64 with 4K
pages. ARCH= and PAGES= choose one machine for all issues.
"""

import dataclasses
import fnmatch
import subprocess
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from ..boot import guest, results
from ..core import dry, progress
from ..core.errors import FAILED, PASSED, UserError
from ..core.settings import PROJECT, Settings, from_environment
from ..core.variables import name_list
from ..kernel import known_issues, shadow, source, toolchain
from ..kernel.known_issues import Issue
from ..mutants import catalogue
from ..run import closing, record, selftests
from ..run.launch import Launch
from ..run.request import Request, parse
from ..run.session import SelftestRun
from ..run.workspace import RunSpec, Workspace, label_of
from .proof import Proof, changed, reproducer

REPRODUCERS = PROJECT / "patches/reproducers"


def form(issue: Issue, version: tuple[int, int], read: catalogue.Read) -> tuple[str, Mapping[str, str]]:
    """The patch of an issue that fits a tree, and the changed files; an empty name if no patch fits.

    The patch for the tree's version, which has the version at the end of its name, is tried first. Another patch may
    apply too, but the result may not build.
    """
    own = f"-{version[0]}.{version[1]}.patch"
    for name in sorted(issue.patch, key=lambda name: not name.endswith(own)):
        new = catalogue.patch(PROJECT / name).files(read)
        if new:
            return name, new
    return "", {}


def fixed(issues: Sequence[Issue], read: Callable[[str], str]) -> tuple[list[Issue], dict[str, bytes]]:
    """The issues that a tree has, and the files that the patches of these issues change.

    Raises UserError if no patch of an issue fits, or if the table still finds the faulty code after the patch.
    """
    files: dict[str, str] = {}

    def patched(name: str) -> str:
        return files[name] if name in files else read(name)

    version = known_issues.version_of(read)
    found = [issue for issue in issues if issue.shown(version, read)]
    numbers = ", ".join(str(issue.number) for issue in found)
    if dry.instead("patch", f"known issues {numbers} in a private copy of the kernel"):
        return found, {issue.file: b"" for issue in found}
    for issue in found:
        name, new = form(issue, version, patched)
        files |= new
        if not new:
            raise UserError(f"known issue {issue.number}: none of its patches applies: {', '.join(issue.patch)}")
        if issue.shown(version, patched) is not False:
            raise UserError(f"known issue {issue.number}: with {name} the tree still seems to have the faulty code")
    return found, {name: text.encode() for name, text in files.items()}


def machines(issues: Sequence[Issue], settings: Settings, chosen: bool) -> dict[Settings, list[Issue]]:
    """The issues by machine: the machine of each issue, or the machine of `settings` if the user has `chosen` one."""
    found: dict[Settings, list[Issue]] = {}
    for issue in issues:
        arch, pages = (settings.arch, settings.pages) if chosen else issue.machine
        found.setdefault(dataclasses.replace(settings, arch=arch, pages=pages), []).append(issue)
    return found


@dataclasses.dataclass(frozen=True)
class Plan:
    """The tests and programs that run on each of the two kernels.

    kunit, selftests: the tests that the table of known issues names
    reproducers:      programs of patches/reproducers/, by name without suffix
    config:           additional configuration lines for the KUnit kernel
    whole:            whether all other tests run too
    """

    kunit: tuple[str, ...]
    selftests: tuple[str, ...]
    reproducers: tuple[str, ...]
    config: tuple[str, ...]
    whole: bool = False


def plan(issues: Sequence[Issue], arch: str, whole: bool = False) -> Plan:
    """The tests and programs to run for `issues`; with `whole` all other tests too."""
    fixtures = {case.partition(".")[0] for program in selftests.programs() for case in program.cases}
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
        whole,
    )


def compiled(names: Sequence[str], arch: str, folder: Path, headers: Path) -> dict[str, Path]:
    """Build reproducers in `folder`. Link them statically, and use the kernel's own `headers`."""
    folder.mkdir(parents=True, exist_ok=True)
    found = {name: folder / name for name in names}
    for name, path in found.items():
        cc: list[str | Path] = [f"{toolchain.cross_prefix(arch)}gcc", "-static", "-isystem", headers]
        if subprocess.run([*cc, "-o", path, REPRODUCERS / f"{name}.c"]).returncode:
            raise UserError(f"{REPRODUCERS / name}.c does not build: see the lines above")
    return found


class Session:
    """One of the two kernels, and the results of its tests."""

    def __init__(
        self, kernel: source.Source, settings: Settings, parameter: str, word: str, files: Mapping[str, bytes]
    ) -> None:
        """`files` replace files of `kernel`. `parameter` and `word` say how KUnit and selftests treat known issues."""
        self.kernel, self.settings, self.files = kernel, settings, files
        self.parameter, self.word = parameter, word
        self.cases: dict[str, list[results.Case]] = {}

    def space(self, request: Request) -> Workspace:
        """The workspace of a kernel for a request."""
        spec = RunSpec(self.settings, request, "fixed" if self.files else "", self.files)
        return Workspace(spec, self.kernel)

    def note(self, cases: Iterable[results.Case]) -> None:
        """Keep the cases of a boot by each of their names. All parameters or variants of a case have the same names."""
        for case in cases:
            for name in names(case):
                self.cases.setdefault(name, []).append(case)

    def states(self, without: Collection[str]) -> dict[str, str]:
        """The state of each case by its full name, without the tests `without`."""
        every = {id(case): case for cases in self.cases.values() for case in cases}.values()
        return {f"{case.suite}.{case.name}": case.state for case in every if not names(case) & set(without)}

    def run(self, todo: Plan) -> None:
        """Build the kernels, and run all of `todo`."""
        if todo.kunit or todo.whole:
            self.kunit([] if todo.whole else todo.kunit, todo.config)
        if todo.selftests or todo.reproducers or (todo.whole and self.settings.arch in guest.DEBIAN):
            self.selftests([] if todo.whole else todo.selftests, todo.reproducers, todo.whole)

    def kunit(self, tests: Sequence[str], config: Sequence[str]) -> None:
        """Build the kernel with the suites, and boot it for each of `tests`, or once for all tests if there are none.

        An architecture may lack some of `tests`.
        """
        words = [f"--arch={self.settings.arch}", *(f"--kconfig_add={line}" for line in config)]
        space = self.space(parse(["build", *words]))
        with space.hold():
            space.prepare()
            Launch(space).run()
            for glob in [[test] for test in tests] or [[]]:
                launch = Launch(space, parse(["exec", *words, "--kernel_args", self.parameter, *glob]))
                try:
                    launch.run()
                    self.note(launch.cases)
                except UserError as error:
                    progress.say(f"{' '.join(glob) or 'the suites'}: {error}")

    def selftests(self, tests: Sequence[str], reproducers: Sequence[str], whole: bool) -> None:
        """Run the reproducers, and the selftest cases `tests`; with `whole` all selftests."""
        arch = self.settings.arch
        selftests.provide(arch)
        launch = Launch(self.space(selftests.request(arch)))
        session = SelftestRun(launch, [self.word])
        globs = " ".join(f"{fixture}.*{case}" for fixture, case in (test.split(".") for test in tests))
        alone = [selftests.Program(name) for name in reproducers]
        every = [*selftests.programs(), *alone]
        wanted = selftests.chosen(selftests.programs() if whole else every, globs) if globs or whole else []
        launch.scope = " ".join(program.name for program in ([] if whole else [*wanted, *alone]))
        with session.recorded():
            launch.workspace.prepare()
            files = session.build([program.name for program in wanted]) if wanted else {}
            if not wanted:
                session.kernel()
            files |= compiled(reproducers, arch, session.folder / "reproducers", launch.build / "usr/include")
            self.note(session.run([*wanted, *alone], every, files))

    def verdict(self, issue: Issue, test: str) -> str:
        """The verdict of a test of an issue, or of its reproducer."""
        cases = self.cases.get(test, [])
        if any(case.state == "failed" for case in cases):
            return "failed"
        said = [int(match[1]) for case in cases for match in map(known_issues.STALE.search, case.text) if match]
        if issue.number in said:
            return "stale"
        if any(case.state == "passed" for case in cases):
            return "passed"
        return f"skipped: {' '.join(cases[0].text)}".rstrip(": ") if cases else "did not run"


def names(case: results.Case) -> set[str]:
    """The names of a case in the table: `suite.case` or `fixture.case`; equal for all its parameters and variants."""
    whole = case.name.partition(":")[0]
    variant = whole.split(".")
    return {f"{case.suite}.{variant[-1]}".rstrip("."), whole, f"{variant[0]}.{variant[-1]}"}


def prove(
    kernel: source.Source, issues: Sequence[Issue], settings: Settings, environ: Mapping[str, str], whole: bool
) -> Iterator[tuple[list[Proof], list[str]]]:
    """Test the `issues` of `kernel` without their patches and with them, each issue on its machine.

    Yields after each machine: a proof for each of its issues, and the faults of other tests. With `whole` the other
    tests run too, on the machine of `settings`.
    """
    both = environ.get("BEFORE") or "yes"
    if both not in ("yes", "no"):
        raise UserError(f"BEFORE={both}: use BEFORE=no to test only the kernel with the patches")
    places = machines(issues, settings, bool(environ.get("ARCH") or environ.get("PAGES")))
    needs = [need for place in places for need in toolchain.requirements(place.arch, own_compiler=False)]
    toolchain.provide([*dict.fromkeys(needs), "patch"])
    toolchain.advise()
    found, files = fixed(issues, shadow.reader(kernel.path, settings.features))
    numbers = ",".join(str(issue.number) for issue in found)
    named = [test for issue in issues for test in [*issue.tests, reproducer(issue)]]
    for place, own in places.items():
        everything = whole and place == settings
        todo = plan(own, place.arch, everything)
        before = None
        if both == "yes":
            before = Session(kernel, place, "pgtable_kunit.strict=1", "STRICT=1", {})
            before.run(todo)
        after = Session(kernel, place, f"pgtable_kunit.issues={numbers}", f"ISSUES={numbers}", files)
        after.run(todo)
        name = f"{place.arch} {place.page_size}".rstrip()
        proofs: list[Proof] = []
        bad = changed(before.states(named) if before else None, after.states(named)) if everything else []
        for issue in own:
            alone = reproducer(issue)
            tests = [*issue.tests, *([alone] if alone in todo.reproducers else [])]
            old = {test: before.verdict(issue, test) for test in tests} if before else None
            proofs.append(Proof(issue, name, old, {test: after.verdict(issue, test) for test in tests}))
        yield proofs, [f"{name}: {text}" for text in bad]


def known(kernel: source.Source, settings: Settings, environ: Mapping[str, str]) -> list[Issue]:
    """The issues of a kernel, limited to the numbers in ONLY=. Raises UserError if the kernel has none of them."""
    only = name_list(environ.get("ONLY") or "*")
    read = shadow.reader(kernel.path, settings.features)
    version = known_issues.version_of(read)
    wanted = [i for i in known_issues.load() if any(fnmatch.fnmatch(str(i.number), glob) for glob in only)]
    if not (found := [issue for issue in wanted if issue.shown(version, read)]):
        raise UserError(f"linux {kernel.label} has none of the known issues {' '.join(only)}")
    return found


def run(environ: Mapping[str, str]) -> int:
    """Run the command. Returns 1 if a patch does not fix its issue, or if no test shows the fix; otherwise 0."""
    settings = from_environment({"ARCH": "arm64", **environ})
    kernel = source.obtain(settings)
    issues = known(kernel, settings, environ)
    with record.printed(environ):
        machines_done = prove(kernel, issues, settings, environ, whole=False)
        proofs = sorted((proof for some, _ in machines_done for proof in some), key=lambda proof: proof.issue.number)
        return report(proofs, label_of(kernel, settings), settings, environ)


def report(proofs: Sequence[Proof], label: str, settings: Settings, environ: Mapping[str, str]) -> int:
    """Print the verdict of each test without the patches and with them. Returns the exit status."""
    print(f"{'':3} {'':50} {'without the patch':18} with it")
    for proof in proofs:
        number = proof.issue.number
        for test, new in proof.after.items():
            print(f"{number:3} {test:50} {(proof.before or {}).get(test, ''):18} {new}".rstrip())
        if proof.wrong:
            print(f"{number:3} NOT PROVEN: {proof.wrong}")
        elif not proof.met:
            print(f"{number:3} no test met the issue on {proof.machine}: KNOWN_ISSUES.md says what the tests need")
    bad = [proof.issue.number for proof in proofs if proof.wrong]
    absent = [proof.issue.number for proof in proofs if not (proof.wrong or proof.met)]
    count = len(proofs) - len(absent)
    verdict = "FAILED" if bad else "passed" if count else "nothing was tested"
    before = "" if environ.get("BEFORE") == "no" else f", and {label} is the kernel without them"
    for line in closing.lines(
        f"{verdict}: {count - len(bad)} of {count} patches fix their issue on linux {label}",
        [
            f"issues without proof that the patch fixes them: {', '.join(map(str, bad))}" if bad else "",
            f"issues that no test met in this run: {', '.join(map(str, absent))}" if absent else "",
        ],
        f"{settings.out} (in the paths of the console logs, {label}+fixed is the kernel with the patches{before})",
        closing.make("known-issues", environ, ONLY=str(bad[0])) if bad else "",
    ):
        print(line)
    return FAILED if bad else PASSED
