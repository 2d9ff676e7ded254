# SPDX-License-Identifier: GPL-2.0
"""./mmcheck radar SERIES: how a patch series changes the tests, and whether the tests pass with it.

SERIES is a patch, an mbox from b4, or a range A..B of the git tree KDIR=. The command applies it to a private copy of
the kernel. The command first compares the sources without the series and with it, and prints what changes:
- probes that give another answer, so that cases expect another result or are skipped
- mutants that no longer fit, because their code is gone or different
- known issues that the series fixes or brings back
Then it runs the suites on both kernels. The verdict is the difference, and the last lines are text for a mail.

If the catalogue of mutants names one suite for the files that the series changes, only this suite runs. Otherwise all
suites run. ONLY= chooses the tests: a glob of suites and cases, in the form that kunit.py accepts. With BOOT=no the
command only reads the sources.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..core import dry, git
from ..core.errors import PASSED, UserError
from ..core.settings import Settings, from_environment
from ..core.variables import one_glob
from ..kernel import identity, known_issues, patch, probes, shadow, source
from ..mutants import catalogue
from ..run import closing, compare, launcher, workspace
from ..run.launch import Launch
from ..run.prepare import prepare
from ..run.request import parse
from . import selection

Read = Callable[[str], str]


@dataclass(frozen=True)
class Change:
    """The changes that a series makes to the tests.

    probes: probes with another answer, each as a line of text
    gone:   mutants that fit without the series, but not with it
    here:   mutants of the changed files that still fit the code
    fixed:  known issues whose faulty code is gone with the series
    back:   known issues whose faulty code exists only with the series
    """

    probes: tuple[str, ...]
    gone: tuple[str, ...]
    here: tuple[str, ...]
    fixed: tuple[str, ...]
    back: tuple[str, ...]

    def lines(self) -> list[str]:
        """The change in words. If nothing changes, one line says so."""
        found = [
            *(f"probe {line}" for line in self.probes),
            f"mutants that no longer fit: {', '.join(self.gone)}" if self.gone else "",
            f"known issues whose faulty code is gone: {', '.join(self.fixed)}" if self.fixed else "",
            f"known issues whose faulty code is back: {', '.join(self.back)}" if self.back else "",
        ]
        kept = [line for line in found if line] or ["the series changes no probe, no mutant and no known issue"]
        return [*kept, f"mutants of these files that still fit the code: {len(self.here)}"]


def changed_probes(before: Path, after: Path) -> list[str]:
    """The probes that give different answers for two trees."""
    old, new = probes.answers(before), probes.answers(after)
    words = {row[1]: f"{row[2]} in {row[3]}" for row in probes.table()}
    return [
        f"{name}: {old[name]} before, {value} now ({words[name]})" for name, value in new.items() if value != old[name]
    ]


def changed_issues(before: Read, after: Read) -> tuple[list[str], list[str]]:
    """The numbers of the known issues that are gone, and the numbers of the known issues that are new."""
    gone, new = [], []
    for issue in known_issues.load():
        states = [issue.shown(known_issues.version_of(read), read) for read in (before, after)]
        if states[0] and not states[1]:
            gone.append(str(issue.number))
        elif states[1] and not states[0]:
            new.append(str(issue.number))
    return gone, new


def changed_mutants(files: Sequence[str], arch: str, before: Read, after: Read) -> tuple[list[str], list[str]]:
    """The names of the mutants in `files` that no longer fit, and the names of the mutants that still fit."""
    own = [mutant for mutant in catalogue.load(catalogue.FOLDER) if set(mutant.paths) & set(files)]
    old = [mutant.name for mutant, _ in catalogue.fitting(own, before, arch)[0]]
    new = {mutant.name for mutant, _ in catalogue.fitting(own, after, arch)[0]}
    return [name for name in old if name not in new], [name for name in old if name in new]


def change(kernel: source.Source, settings: Settings, tree: Path) -> Change:
    """The changes that the series makes to the tests. `tree` is the working copy with the series."""
    assert settings.patch
    before = shadow.reader(kernel.path, settings.features)
    after = shadow.reader(tree, ())
    gone, here = changed_mutants(patch.read(settings.patch)[1], settings.arch, before, after)
    fixed, back = changed_issues(before, after)
    found = changed_probes(kernel.path, tree)
    return Change(*map(tuple, (found, gone, here, fixed, back)))


def suites(files: Sequence[str]) -> list[str]:
    """The suite to run for a change of `files`; an empty list means all suites."""
    try:
        names = selection.suites(files, catalogue.load(catalogue.FOLDER))
    except UserError:
        return []
    return names if names and len(names) == 1 else []


def mail(found: compare.Difference, launch: Launch, kernel: str) -> list[str]:
    """Text for a mail about the series."""
    settings = launch.settings
    where = f"{settings.arch} {settings.page_size}".rstrip()
    ran = sum(case.state != "skipped" for case in launch.cases)
    verdict, *details = found.lines()
    lines = [
        f"mmcheck {identity.revision()}, linux {kernel}, {where}, {identity.emulator(settings.arch)}:",
        f"{ran} cases ran with the series. {verdict}.",
        *details,
    ]
    try:
        name, address = git.author()
    except UserError:
        name = address = ""
    return [*lines, *([f"Tested-by: {name} <{address}>"] if name and not found.status else [])]


def run(environ: Mapping[str, str]) -> int:
    """Run the command. Returns the exit status."""
    given = environ.get("SERIES", "")
    if not given:
        raise UserError("give a series: ./mmcheck radar fix.mbox")
    if not Path(given).exists() and ".." not in given:
        raise UserError(f"{given}: neither a file nor a range A..B of commits; see ./mmcheck radar --help")
    only = one_glob(environ)
    environ = {"ARCH": "arm64", **environ, "PATCH": launcher.patch_of(given, environ)}
    settings = from_environment(environ)
    source.judge(settings)
    assert settings.patch
    files = patch.read(settings.patch)[1]
    request = parse(["run", f"--arch={settings.arch}", *([only] if only else suites(files))])
    space = workspace.Workspace(workspace.RunSpec(settings, request))
    space.prepare()
    print(f"{given} changes {', '.join(files)}")
    with dry.part():
        for line in change(space.kernel, settings, space.tree).lines():
            print(line)
    if environ.get("BOOT") == "no":
        return PASSED

    def prepared(variables: Mapping[str, str]) -> Launch:
        launch = prepare(request, variables)
        launch.aside = True
        return launch

    found, launch = compare.both(compare.UNPATCHED, environ, prepared)
    verdict, *details = found.lines()
    then = closing.make("radar", {**environ, "PATCH": ""}, SERIES=given) if found.status else ""
    for line in closing.lines(verdict, details, launch.log, then):
        print(line)
    print("\ntext for a mail:")
    for line in mail(found, launch, identity.origin(space.kernel)):
        print(f"  {line}")
    return found.status
