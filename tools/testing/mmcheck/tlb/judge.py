# SPDX-License-Identifier: GPL-2.0
"""Does the plugin report a kernel that forgets an invalidation?

mutants/ has mistakes in the form of the mutants catalogue: invalidations that are dropped, shortened, misdirected or
late. One kernel contains all mistakes. Each boot enables one mistake, and runs the suites or the selftest that its
entry names. The boot passes if the plugin reports something new. In a boot that enables no mistake, the plugin must
report nothing new. The same holds for an entry with `equivalent`: such an entry changes code, but makes no mistake.

PLUGIN=no boots without the plugin, and runs only the selftest tlb_stale. So it tells which mistakes this selftest
notices without the plugin.

IMAGE= names the image of a kernel with the KUnit suites. Then the command builds no kernel, and the mistakes come from
mutants/instructions.toml. Each mistake replaces instructions in a copy of the image.
"""

import fnmatch
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from ..core import progress
from ..core.errors import FAILED, NO_VERDICT, PASSED, UserError
from ..core.lock import held
from ..core.settings import Settings, from_environment
from ..core.variables import name_list
from ..kernel import identity
from ..mutants import catalogue
from ..mutants.guest_judge import both
from ..mutants.mutated import Builder, switch
from ..run import closing, record, selftests
from ..run.launch import Launch
from ..run.request import Request, parse
from ..run.session import Boot, SelftestRun
from . import binary, build, main, programs, qemu, symbols
from .boots import Machine

FOLDER = Path(__file__).parent / "mutants"


@dataclass(frozen=True)
class Verdict:
    """The verdict on a mutant: reported, noticed, survived, silent, unknown, or does not fit.

    rules: the rules that report it, or the case that notices it
    """

    name: str
    state: str
    rules: list[str]
    seconds: float = 0.0
    why: str = ""

    def text(self) -> str:
        """The verdict as a line for a terminal."""
        return f"{self.name:44} {self.state:13} {self.seconds:6.1f}s  {', '.join(self.rules) or self.why}"


STALE = "tlb_stale"
"""The selftest that looks for old translations without the plugin."""

CONFIG = ("CONFIG_ZONE_DEVICE=y", "CONFIG_DEVICE_PRIVATE=y")
"""Additional Kconfig options, needed by the code that moves pages to a device."""


class Observed(Builder):
    """Builds a kernel with the mutants of this layer, and the selftests."""

    kind = "tlb"

    def __init__(self, settings: Settings, machine: Machine, guest: bool) -> None:
        """`machine` boots the suites. `guest` says whether selftests run too; selftests need a larger kernel."""
        super().__init__(settings)
        self.guest = guest
        self.machine = machine
        self.every = {program.name: program for program in selftests.programs()}
        self.files: Mapping[str, Path] = {}

    def request(self) -> Request:
        """The request to kunit.py, with the options for the suites and for the selftests."""
        if self.guest:
            return both(self.settings.arch, CONFIG)
        asked = super().request()
        return parse(["build", *asked.arguments, *(f"--kconfig_add={line}" for line in CONFIG)])

    def built(self, launch: Launch) -> None:
        """Build the selftests after the kernel."""
        self.launch = launch
        if self.guest:
            self.files = SelftestRun(launch).build(list(self.every))

    def judge(self, one: catalogue.Mutant, number: int) -> Verdict:
        """Boot with a mutant, or without one if the number is 0."""
        words = [*one.kernel_args.split(), *switch(number, one.early)]
        if not self.machine.plugin:
            return self.without_plugin(one.name, [*words, "kunit.enable=0"])
        if not one.program:
            machine = replace(self.machine, more=one.machine.split())
            image = self.build / "arch/arm64/boot/Image"
            return boot_one(
                one.name, one.suite, one.survives, machine, image, symbols.of_kernel(image), " ".join(words)
            )
        boot = programs.WatchedBoot(
            self.launch, self.machine.out / "console", selftests.machine_of(one.program), [*words, "kunit.enable=0"]
        )
        boot.emulator, boot.plugin = self.machine.qemu, self.machine.plugin
        started = time.monotonic()
        try:
            cases = list(boot.run([selftests.line(self.every[one.program], self.every)], self.files))
        except UserError as error:
            return Verdict(one.name, "unknown", [], 0.0, str(error))
        rules = sorted({report.rule for report in boot.found if not report.why})
        seconds = round(time.monotonic() - started, 1)
        if not rules and all(case.state == "skipped" for case in cases):
            return Verdict(one.name, "unknown", [], seconds, f"no case of {one.program} ran")
        return Verdict(one.name, "reported" if rules else "survived", rules, seconds, "" if rules else one.survives)

    def without_plugin(self, name: str, words: Sequence[str]) -> Verdict:
        """Boot without the plugin, with more `words` on the command line, and run STALE up to its first failure."""
        boot = Boot(self.launch, self.machine.out / "console", selftests.machine_of(STALE), words)
        started = time.monotonic()
        ran = 0
        for case in boot.run([selftests.line(self.every[STALE], self.every)], self.files):
            seconds = round(time.monotonic() - started, 1)
            if case.state == "failed":
                return Verdict(name, "noticed", [f"{case.suite}.{case.name}"], seconds)
            ran += case.state == "passed"
        return Verdict(name, "survived" if ran else "unknown", [], round(time.monotonic() - started, 1))

    def tests(self, one: catalogue.Mutant) -> str:
        """The suites or the selftest that a boot with this mutant runs."""
        return (one.program or one.suite) if self.machine.plugin else STALE


def wanted(only: str) -> list[catalogue.Mutant]:
    """The mutants that ONLY= chooses. Raises UserError if it chooses none."""
    globs = name_list(only)
    found = [one for one in catalogue.load(FOLDER) if any(fnmatch.fnmatch(one.name, glob) for glob in globs)]
    if not found:
        raise UserError(f"ONLY={only}: no mutant in {FOLDER} has such a name")
    return found


def binary_mistakes(image: Path, only: str, machine: Machine) -> Iterator[Verdict]:
    """The verdict on each mistake of instructions.toml. The first boots have none, and must report nothing new."""
    known = symbols.of_kernel(image)
    mistakes = [one for one in binary.load() if any(fnmatch.fnmatch(one.name, glob) for glob in name_list(only))]
    if not mistakes or not known.text:
        raise UserError(f"ONLY={only}: no such mistake" if known.text else f"{image}: its folder has no System.map")
    for suite in sorted({one.suite for one in mistakes}):
        verdict = boot_one("none", suite, "", machine, image, known)
        progress.say(f"boot of the unmodified kernel, suites {suite}: {verdict.state}, {verdict.seconds} s")
        if verdict.state != "survived":
            why = ", ".join(verdict.rules) or verdict.why
            raise UserError(f"the unmodified kernel must run the suites {suite} without a new report, but: {why}")
    for one in mistakes:
        changed = machine.out / "Image"
        if one.apply(image, known, changed):
            yield boot_one(one.name, one.suite, one.survives, machine, changed, known)
        else:
            yield Verdict(one.name, "does not fit", [])


def boot_one(
    name: str, suite: str, survives: str, machine: Machine, image: Path, known: symbols.Symbols, more: str = ""
) -> Verdict:
    """Boot a kernel with a mistake."""
    words = f"{main.KUNIT} kunit.filter_glob={suite} {more}".strip()
    try:
        found, _, seconds = machine.run(image, words, known, first=True)
        rules = sorted({report.rule for report in found if not report.why})
        if not rules:
            main.judged(machine.out / "console", ours=True)
    except UserError as error:
        return Verdict(name, "unknown", [], 0.0, str(error))
    return Verdict(name, "reported" if rules else "survived", rules, seconds, "" if rules else survives)


KIND = "tlb-mutants"


def run(environ: Mapping[str, str]) -> int:
    """Run the command. Returns the exit status."""
    main.only_arm64(environ)
    environ = {**environ, "ARCH": "arm64"}
    settings, given = from_environment(environ), environ.get("IMAGE")
    if given and environ.get("PLUGIN") == "no":
        raise UserError("PLUGIN=no: the selftest runs in a kernel that this command builds, so leave out IMAGE=")
    if given and not Path(given).is_file():
        raise UserError(f"IMAGE={given}: no such file")
    if not given:
        wanted(environ.get("ONLY") or "*")
    label = Path(given).name if given else "linux"
    about = record.facts(KIND, "arm64", environ.get("ONLY") or "", label=label, arch="arm64", pages="")
    about.command, about.emulator = closing.make(KIND, environ, "ONLY", "IMAGE", "PLUGIN"), "QEMU 10"
    about.source = f"file {given}" if given else ""
    out = settings.out / "tlb"
    with held(settings.out / "lock" / "tlb", f"it uses {out}"), record.kept(settings.out, about) as recorder:
        plugin = None if environ.get("PLUGIN") == "no" else build.plugin(out)
        machine = Machine(qemu.provide(settings.cache), plugin, out / "mutants")
        machine.out.mkdir(parents=True, exist_ok=True)
        found = []
        every = binary_mistakes(Path(given), environ.get("ONLY") or "*", machine) if given else None
        for verdict in every or sources(environ, machine, about):
            found.append(verdict)
            print(verdict.text(), flush=True)
            recorder.put({"mutants": [asdict(one) for one in found]})
        status = summary(found) if machine.plugin else counted(found)
        about.state = record.outcome(status)
    return status


def sources(environ: Mapping[str, str], machine: Machine, about: record.Record) -> Iterator[Verdict]:
    """The verdict on each mistake in the source. Also writes facts about the kernel to `about`."""
    mutants = wanted(environ.get("ONLY") or "*")
    guest = any(one.program for one in mutants) or not machine.plugin
    if guest:
        selftests.provide("arm64")
    builder = Observed(from_environment(environ), machine, guest)
    about.label, about.source, about.pages = builder.label, identity.origin(builder.source), builder.settings.pages
    fits, others = catalogue.fitting(mutants, builder.read, "arm64")
    by_name = {one.name: one for one, _ in fits}
    yield from (Verdict(name, "does not fit", []) for name in others)
    with builder.alone():
        kernel, broken = builder.make(fits)
        yield from (Verdict(name, "does not build", []) for name in broken)
        for one in {(builder.tests(one), one.machine): one for one in by_name.values()}.values():
            verdict = builder.judge(one, 0)
            tests = builder.tests(one)
            progress.say(f"boot with no mistake enabled, {tests}: {verdict.state}, {verdict.seconds} s")
            if verdict.state != "survived":
                why = ", ".join(verdict.rules) or verdict.why
                what = f"with no mistake enabled, the kernel must run {tests} without a new report, but"
                raise UserError(f"{what}: {why}; see {machine.out}")
        for name, number in kernel.number.items():
            one = by_name[name]
            verdict = builder.judge(one, number)
            if one.equivalent:
                state = "silent" if verdict.state == "survived" else "wrongly " + verdict.state
                verdict = replace(verdict, state=state, why=one.equivalent)
            yield verdict


def counted(verdicts: Sequence[Verdict]) -> int:
    """Print the number of verdicts of each kind. Returns the exit status if any number is fine."""
    states = [one.state for one in verdicts]
    print(", ".join(f"{states.count(state)} {state}" for state in sorted(set(states))))
    return PASSED if set(states) <= {"reported", "noticed", "survived", "silent", "does not fit"} else NO_VERDICT


def summary(verdicts: Sequence[Verdict]) -> int:
    """Print the number of verdicts of each kind. Returns the exit status."""
    status = counted(verdicts)
    if any((one.state == "survived" and not one.why) or one.state == "wrongly reported" for one in verdicts):
        return FAILED
    return status
