# SPDX-License-Identifier: GPL-2.0
"""Does the plugin report a kernel that forgets an invalidation?

mutants/flushes.toml has mistakes in the form of the mutants catalogue: invalidations that are dropped, shortened,
misdirected or late. One kernel contains all mistakes. Each boot enables one mistake, and runs the suites that its entry
names. The boot passes if the plugin reports something new. A boot without a mistake must report nothing new.

IMAGE= names the image of a kernel with the KUnit suites. Then no kernel is built, and the mistakes come from
mutants/instructions.toml. Each of them replaces instructions in a copy of the image.
"""

import fnmatch
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from ..core import command, progress
from ..core.errors import FAILED, NO_VERDICT, PASSED, UserError
from ..core.settings import from_environment, out_of
from ..mutants import catalogue
from ..mutants.mutated import Builder, switch
from . import binary, build, main, qemu, symbols
from .boots import Machine

FOLDER = Path(__file__).parent / "mutants"


@dataclass(frozen=True)
class Verdict:
    """What became of a mutant: reported, survived, unknown, or does not fit. `rules` are those that reported it."""

    name: str
    state: str
    rules: list[str]
    seconds: float = 0.0
    why: str = ""

    def text(self) -> str:
        """One line for a reader."""
        return f"{self.name:44} {self.state:13} {self.seconds:6.1f}s  {', '.join(self.rules) or self.why}"


class Observed(Builder):
    """Builds a kernel with the mutants of this layer."""

    kind = "tlb"


def wanted(only: str) -> list[catalogue.Mutant]:
    """The mutants that ONLY= chooses. Raises UserError if there is none."""
    globs = only.split()
    found = [one for one in catalogue.load(FOLDER) if any(fnmatch.fnmatch(one.name, glob) for glob in globs)]
    if not found:
        raise UserError(f"ONLY={only}: no mutant in {FOLDER} has such a name")
    return found


def judge(one: catalogue.Mutant, number: int, machine: Machine, image: Path) -> Verdict:
    """Boot with a mutant, or without one if the number is 0."""
    more = " ".join(filter(None, [one.kernel_args, *switch(number, one.early)]))
    return boot_one(one.name, one.suite, one.survives, machine, image, symbols.of_kernel(image), more)


def binary_mistakes(image: Path, only: str, machine: Machine) -> Iterator[Verdict]:
    """The verdict on each mistake of instructions.toml. The first boot has none, and must report nothing new."""
    known = symbols.of_kernel(image)
    mistakes = [one for one in binary.load() if any(fnmatch.fnmatch(one.name, glob) for glob in only.split())]
    if not mistakes or not known.text:
        raise UserError(f"ONLY={only}: no such mistake" if known.text else f"{image}: no System.map is beside it")
    for suite in sorted({one.suite for one in mistakes}):
        verdict = boot_one("none", suite, "", machine, image, known)
        progress.say(f"without a mistake, suites {suite}: {verdict.state}, {verdict.seconds} s")
        if verdict.state != "survived":
            raise UserError(f"suites {suite} without a mistake: {', '.join(verdict.rules) or verdict.why}")
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
        found, _, seconds = machine.run(image, words, known)
        rules = sorted({report.rule for report in found if not report.why})
        if not rules:
            main.judged(machine.out / "console", ours=True)
    except UserError as error:
        return Verdict(name, "unknown", [], 0.0, str(error))
    return Verdict(name, "reported" if rules else "survived", rules, seconds, "" if rules else survives)


def run(environ: Mapping[str, str]) -> int:
    """The command; returns the exit status."""
    main.only_arm64(environ)
    if given := environ.get("IMAGE"):
        settings = from_environment(environ, "arm64")
        if not Path(given).is_file():
            raise UserError(f"IMAGE={given}: no such file")
        out = out_of(environ) / "tlb"
        machine = Machine(qemu.provide(settings.cache), build.plugin(out), out / "mutants")
        machine.out.mkdir(parents=True, exist_ok=True)
        found = []
        for verdict in binary_mistakes(Path(given), environ.get("ONLY") or "*", machine):
            found.append(verdict)
            print(verdict.text(), flush=True)
        return summary(found, out)
    settings = from_environment({**environ, "ARCH": "arm64"})
    mutants = wanted(environ.get("ONLY") or "*")
    builder = Observed(settings)
    emulator = qemu.provide(settings.cache)
    out = out_of(environ) / "tlb"
    machine = Machine(emulator, build.plugin(out), out / "mutants")
    fits: dict[str, tuple[catalogue.Mutant, Mapping[str, str]]] = {}
    for one in mutants:
        if one.name not in fits and (files := one.files(builder.read)):
            fits[one.name] = (one, files)
    verdicts = [Verdict(name, "does not fit", []) for name in {one.name for one in mutants} - fits.keys()]
    with builder.alone():
        kernel, broken = builder.make(list(fits.values()))
        image = builder.build / "arch/arm64/boot/Image"
        verdicts += [Verdict(name, "does not build", []) for name in broken]
        clean = {one.suite: one for one, _ in fits.values()}
        for suite, one in clean.items():
            verdict = judge(one, 0, machine, image)
            progress.say(f"without a mistake, suites {suite}: {verdict.state}")
            if verdict.state != "survived":
                raise UserError(f"the plugin reports {', '.join(verdict.rules)} without a mistake; see {machine.out}")
        for name, number in kernel.number.items():
            verdicts.append(judge(fits[name][0], number, machine, image))
            print(verdicts[-1].text(), flush=True)
    return summary(verdicts, out)


def summary(verdicts: Sequence[Verdict], out: Path) -> int:
    """Write and print the verdicts; returns the exit status."""
    (out / "mutants.json").write_text(json.dumps([asdict(one) for one in verdicts], indent=1) + "\n")
    states = [one.state for one in verdicts]
    print(", ".join(f"{states.count(state)} {state}" for state in sorted(set(states))))
    if any(one.state == "survived" and not one.why for one in verdicts):
        return FAILED
    return PASSED if set(states) <= {"reported", "survived", "does not fit"} else NO_VERDICT


def main_judge(environ: Mapping[str, str]) -> int:
    """The command."""
    return command.run("tlb-mutants", run, environ)
