# SPDX-License-Identifier: GPL-2.0
"""The project's own tests: the host side, the style of every file, and the suites on real kernels.

The last line is `N passed, N failed`, and if tests were skipped the number of skips. Each skip is listed with its
reason.
"""

import contextlib
import json
import os
import secrets
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

from ..boot import linear_map, results
from ..core import dry, progress
from ..core.errors import FAILED, PASSED, UserError
from ..core.settings import PROJECT, out_of
from ..kernel import graft, library, probes, toolchain
from ..run import kselftest, skips, walk
from ..run.cell import NAME, Cell, flavours, make
from ..run.prepare import prepare
from ..run.request import parse
from ..study import selection
from . import checked

HERE = Path(__file__).parents[1]
PARALLEL = ("--numprocesses=auto", "--dist=worksteal")
"""Run tests in parallel, in one process for each CPU, because most tests wait for programs that they start."""

SCRIPTS = (
    ".ci/run",
    "mmcheck",
    "tools/testing/mmcheck/hooks/pre-commit",
    "tools/testing/mmcheck/boot/vm/init",
    "tools/testing/mmcheck/boot/vm/coverage-init",
)


PROGRAMS = ("git", "shellcheck", "patch", "gpg", "gpg-agent")
"""Programs that the tests of the host side run, in addition to those that a kernel build needs."""


@dataclass(frozen=True)
class Run(Cell):
    """One boot of the suites.

    boots: additional boots of a kernel with 4K pages. Each counts how often the kernel clears the fixmap.
    """

    boots: tuple[linear_map.Way, ...] = ()


def of(kernel: str, arch: str, pages: str = "4K", flavour: str = "plain", boots: Sequence[linear_map.Way] = ()) -> Run:
    """A run with a flavour from matrix.toml."""
    made = make(kernel, arch, pages, flavour, FLAVOURS[flavour])
    return Run(**{**vars(made), "boots": tuple(boots)})


FLAVOURS = flavours()

BY_PAGES = linear_map.Way()
WITHOUT_RODATA = linear_map.Way(words="rodata=off", by_pages=False)
BY_BLOCKS = linear_map.Way(cpu=linear_map.BLOCKS_CPU, by_pages=False)

RUNS = (
    of("6.12", "um"),
    of("6.12", "x86_64"),
    of("7.3", "s390"),
    of("6.12", "arm64", boots=(BY_PAGES, WITHOUT_RODATA)),
    of("6.12", "arm64", flavour="stock"),
    of("6.12", "arm64", flavour="smp2"),
    of("6.12", "arm64", flavour="icount"),
    of("6.12", "arm64", flavour="bench"),
    of("6.12", "arm64", flavour="erratum"),
    of("6.12", "arm64", "16K"),
    of("7.3", "arm64", boots=(BY_PAGES, BY_BLOCKS)),
    of("7.3", "arm64", flavour="smp2"),
    of("7.3", "arm64", flavour="options"),
    of("7.3", "arm64", flavour="blocks"),
    of("7.3", "arm64", flavour="erratum"),
    of("7.3", "arm64", "64K"),
)


SELFTESTS = (Cell("6.12", "arm64", selftests=True),)


@dataclass
class Tally:
    """The number of passed tests, the failed tests, and the skipped tests with their reasons."""

    passed: int = 0
    failures: list[str] = field(default_factory=list)
    skips: list[str] = field(default_factory=list)

    def add(self, name: str, good: bool) -> None:
        """Count one check."""
        if good:
            self.passed += 1
        else:
            self.failures.append(name)
            progress.say(f"FAILED: {name}")

    def line(self) -> str:
        """The closing line."""
        skipped = f", {len(self.skips)} skipped" if self.skips else ""
        return f"{self.passed} passed, {len(self.failures)} failed{skipped}"

    def close(self) -> None:
        """Print the skipped and the failed tests, then the last line."""
        with contextlib.suppress(BrokenPipeError):
            for line in (*(f"skipped: {skip}" for skip in self.skips), *(f"failed: {f}" for f in self.failures)):
                print(line)
            print(self.line())


def tools(out: Path, wanted: Path = HERE / "requirements.txt", name: str = "venv") -> Path:
    """The folder of the programs that `wanted` lists. They are installed on first use."""
    library.installed(out / name, wanted, f"the checkers of {wanted.name}")
    return out / name / "bin"


def pytest(tally: Tally, programs: Path, report: Path, *words: str | Path) -> None:
    """Run pytest with `words`, and count the verdicts. Without a file in `words` all tests run.

    Writes JUnit XML to `report`.
    """
    report.parent.mkdir(parents=True, exist_ok=True)
    report.unlink(missing_ok=True)
    status = _run([programs / "pytest", f"--junit-xml={report}", *words])
    if report.exists():
        for case in ElementTree.parse(report).iter("testcase"):
            name = f"{case.get('classname')}.{case.get('name')}"
            skip = case.find("skipped")
            if skip is not None:
                tally.skips.append(f"{name}: {skip.get('message')}")
            else:
                tally.add(name, case.find("failure") is None and case.find("error") is None)
    if status and not tally.failures:
        tally.add("pytest", False)


def host(tally: Tally, out: Path) -> None:
    """Run the tests and the style checks of the host side."""
    toolchain.provide([toolchain.ENSUREPIP, *PROGRAMS, *toolchain.BUILD])
    programs = tools(out)
    pytest(tally, programs, out / "check" / "pytest.xml", *PARALLEL)
    shims = [f"tools/testing/mmcheck/bin/{name}" for name in ("make", "qemu-system-x86_64")]
    python = ["tools/testing/mmcheck", "tools/testing/kunit/kunit.py", *shims]
    tally.add("ruff check", _run([programs / "ruff", "check", "-q", *python]) == 0)
    tally.add("ruff format", _run([programs / "ruff", "format", "-q", "--check", *python]) == 0)
    tally.add("mypy", _run([programs / "mypy", "--cache-dir", out / "check" / "mypy", "--no-error-summary"]) == 0)
    tally.add("shellcheck", _run(["shellcheck", *SCRIPTS]) == 0)


def style(tally: Tally, tree: Path, label: str) -> None:
    """Run scripts/checkpatch.pl --strict of the kernel `tree` on each C file of the overlay and on each reproducer."""
    reproducers = sorted(str(path.relative_to(PROJECT)) for path in PROJECT.glob("patches/reproducers/*.c"))
    names = [name for name in (*graft.overlay_files(), *reproducers) if name.endswith((".c", ".h"))]
    command = [str(tree / "scripts/checkpatch.pl"), "--strict", "--no-summary", "--terse", "--no-tree", "-f"]

    def judged(name: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*command, PROJECT / name], capture_output=True, text=True, cwd=tree)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for name, done in zip(names, pool.map(judged, names), strict=True):
            tally.add(f"checkpatch of {label}: {name}", not done.stdout.strip() and done.returncode == 0)
            print(done.stdout, end="")


def probe(tally: Tally, tree: Path, label: str) -> None:
    """Check that the probes give the recorded answers for a known kernel."""
    for name, why in probes.flips(tree, label).items():
        if why:
            progress.say(f"probe {name} of {label} {why}")
        tally.add(f"probe of {label}: {name}", not why)


def kernel(tally: Tally, run: Run, out: Path) -> Path:
    """Run the suites on one kernel. Returns its tree."""
    what = str(run)
    progress.say(f"suites on {what}")
    verdicts = out / "check" / f"{run.slug}.json"
    verdicts.unlink(missing_ok=True)
    arguments = run.command(f"--json={verdicts}")[1:]
    environment = {**os.environ, **run.variables, "O": str(out), "KDIR": ""}
    launch = prepare(parse(arguments), environment)
    launch.cell, launch.repeat = what, run.line({})
    before = len(tally.failures)
    try:
        status = launch.run()
    except UserError as error:
        progress.say(str(error))
        status = 2
    for name, verdict in cases(json.loads(verdicts.read_text())) if verdicts.exists() else ():
        if verdict != "SKIP":
            tally.add(f"{what}: {name}", verdict == "PASS")
    gate(tally, run, launch.cases)
    if status and len(tally.failures) == before:
        tally.add(f"{what}: kunit.py", False)
    for way in run.boots if status == 0 else ():
        boot(tally, run, launch.build, way)
    return launch.tree


def gate(tally: Tally, run: Run, found: Sequence[results.Case]) -> None:
    """List the skips of a run. A skip that skips.toml does not allow is a failure. Report lines that match no skip."""
    verdict = skips.judge(run, found, suites=selection.expected(run) if found else [])
    for case in verdict.wrong:
        print(f"{run}: {'; '.join(case.text)}")
        tally.add(f"{run}: {case.full}: a skip that skips.toml does not allow", False)
    for case in verdict.cases:
        if case.state == "skipped":
            tally.skips.append(f"{run}: {case.full}: {' '.join(case.text)}")
    tell(run, verdict)


def tell(cell: Cell, verdict: skips.Verdict) -> None:
    """Report the lines of skips.toml that match no skip."""
    for line in verdict.gone:
        progress.say(f"{cell}: {line}")


def selftests(tally: Tally, cell: Cell, out: Path) -> None:
    """Run the selftests in a virtual machine."""
    what = str(cell)
    progress.say(what)
    environment = {**os.environ, **cell.variables, "ARCH": cell.arch, "O": str(out), "KDIR": ""}
    # The walk uses the same kernel, so this kernel has the auditor too.
    environment |= {"KCONFIG_ADD": " ".join([*cell.configuration, kselftest.AUDITOR]), NAME: what}
    found: list[results.Case] = []
    try:
        found = kselftest.cases_of(environment)
    except UserError as error:
        progress.say(str(error))
        tally.add(what, False)
    verdict = skips.judge(cell, found)
    tell(cell, verdict)
    for case in verdict.cases:
        name = f"{what}: {case.suite}.{case.name}"
        if case in verdict.wrong:
            print(f"{name}: {'; '.join(case.text)}")
        if case.state == "skipped":
            tally.skips.append(f"{name}: {' '.join(case.text)}")
        else:
            tally.add(name, case.state == "passed")


def walks(tally: Tally, cell: Cell, out: Path) -> None:
    """Walk with the kernel of the selftests: the same seeds each time, and one random seed.

    A failure that a second boot from the same seed does not repeat is printed, and counts as skipped.
    """
    seed = secrets.randbelow(10**9) + 1000
    what = f"{cell.place[0]} walk"
    progress.say(f"{what}: {walk.CHECKED} seconds from seed 1, and one life with the random seed {seed}")
    environment = {**os.environ, **cell.variables, "ARCH": cell.arch, "O": str(out), "KDIR": "", "AUDIT": ""}
    environment |= {"KCONFIG_ADD": " ".join(cell.configuration)}
    try:
        found, repeat = walk.checked(environment, seed)
    except UserError as error:
        progress.say(str(error))
        tally.add(what, False)
        return
    for one in found:
        if not one.passed:
            print(*one.report(), sep="\n")
            progress.say(f"next: {repeat} SEED={one.again}")
        for case in one.cases:
            name = f"{what}: {case.name or f'seed_{one.seed}'}"
            if one.once and case.state != "passed":
                tally.skips.append(f"{name}: failed, but not again with SEED={one.again}; see its steps above")
            else:
                tally.add(name, case.state == "passed")


def boot(tally: Tally, run: Run, build: Path, way: linear_map.Way) -> None:
    """Boot a kernel that is already built, and check how often it clears the fixmap."""
    want = linear_map.CLEARS_PER_GIB if way.by_pages else 0
    _, got = linear_map.changes_per_gib(build, way.cpu, way.words)
    progress.say(f"{run}, {way}: {got:g} fixmap clears per GiB of memory, expected {want}")
    tally.add(f"{run}: number of fixmap clears per GiB of memory, {way}", got == want)


def cases(group: dict[str, object], prefix: str = "") -> Iterator[tuple[str, str]]:
    """The name and the verdict of each case in the JSON of kunit.py."""
    tests, groups = group["test_cases"], group["sub_groups"]
    assert isinstance(tests, list) and isinstance(groups, list)
    for case in tests:
        yield f"{prefix}{case['name']}", str(case["status"])
    for sub in groups:
        yield from cases(sub, f"{prefix}{sub['name']}.")


def _run(command: Sequence[str | Path]) -> int:
    return subprocess.run(command, cwd=PROJECT, stdin=subprocess.DEVNULL).returncode


def run(environ: Mapping[str, str], kernels: bool = True) -> int:
    """Run the tests of the host side and, with `kernels`, the tests on kernels. Returns the exit status."""
    tally = Tally()
    out = out_of(environ)
    commit = checked.commit()
    host(tally, out)
    if kernels:
        styled: set[str] = set()
        for one in RUNS:
            with dry.part():
                tree = kernel(tally, one, out)
                if one.kernel not in styled:
                    style(tally, tree, one.kernel)
                    probe(tally, tree, one.kernel)
                    styled.add(one.kernel)
        for cell in SELFTESTS:
            selftests(tally, cell, out)
            walks(tally, cell, out)
    tally.close()
    checked.keep(out, commit, tally.passed, len(tally.failures), kernels)
    return FAILED if tally.failures else PASSED


def run_host(environ: Mapping[str, str]) -> int:
    """Run `make check-host`. Returns the exit status."""
    return run(environ, kernels=False)
