# SPDX-License-Identifier: GPL-2.0
"""Shows invalidations that are missing, short, late or misdirected, on any arm64 kernel.

The command boots a kernel in QEMU 10 with a plugin. The plugin models a TLB that forgets nothing: it keeps each
translation that a CPU may cache, until an invalidation really removes it. Without IMAGE= the command builds a kernel
with the KUnit suites, and ONLY= chooses suites by a glob. With TESTS= the kernel runs selftests in place of suites.
With COMMAND= it runs a static program of this machine, or a line for the shell. IMAGE= boots any arm64 kernel. If its
System.map is next to the image, the report has names of functions. STRESS= runs stressors of stress-ng, on the kernel
that Debian has built from KERNEL=, or on IMAGE=. COMPARE=1 boots the same kernel also without the plugin, at the same
time, and prints the cost of the plugin. The record of the run has the report. Documentation/mmcheck/tlb.rst explains
the rules.
"""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from ..boot import console as consoles
from ..core import progress
from ..core.errors import FAILED, PASSED, UserError
from ..core.lock import held
from ..core.settings import from_environment
from ..core.variables import one_glob
from ..kernel import identity, source, toolchain
from ..run import closing, kselftest, record, selftests
from ..run.launch import Launch
from ..run.prepare import prepare
from ..run.request import parse
from . import build, cost, programs, qemu, reports, stress, symbols
from .boots import Machine

KIND = "tlb"
"""The value of `kind` in the records of this command. In the folder O=, the folder of the last boot has this name."""

CHOICE = ("ONLY", "TESTS", "COMMAND", "STRESS", "SECONDS", "IMAGE", "INITRD", "APPEND", "CPUS", "KERNEL_ARGS")
"""The variables that choose which kernel to boot and which tests to run in this boot."""

KUNIT = "console=ttyAMA0 kunit.enable=1 kunit_shutdown=reboot"


@contextlib.contextmanager
def kernel(environ: Mapping[str, str], about: record.Record) -> Iterator[Path]:
    """Build the KUnit kernel that the variables name. Gives its image. No other run uses it during the block."""
    launch = prepare(parse(["build", "--arch=arm64"]), environ)
    launch.aside = True
    with launch.hold():
        launch.run()
        named(about, launch)
        yield launch.build / "arch/arm64/boot/Image"


def named(about: record.Record, launch: Launch) -> None:
    """Write facts about the kernel to `about`."""
    about.label, about.source, about.pages = launch.label, launch.origin, launch.settings.pages
    launch.identify(about, [])


def text(found: Sequence[reports.Report], counts: Mapping[str, int]) -> str:
    """The reports as text for a terminal."""
    new = [one for one in found if not one.why]
    numbers = f"{counts['table_stores']} writes of page-table entries, {counts['tlbi']} TLBIs, {counts['dsb']} DSBs"
    dropped = f"; {counts['dropped']} more were dropped" if counts["dropped"] else ""
    end = f"{len(new)} mistakes, {len(found) - len(new)} expected{dropped} ({numbers})"
    return "\n".join([*(one.text() for one in sorted(found, key=lambda one: bool(one.why))), end])


def judged(console: Path, ours: bool) -> None:
    """Raise UserError if a boot proves nothing: the kernel died, or one of our kernels did not run all its suites."""
    said = consoles.read(console)
    if said.reason:
        raise UserError(f"the kernel died: {said.reason}; see {console}")
    if ours and not said.finished:
        raise UserError(f"no suite ran to its end; see {console}, or choose other suites with ONLY=")
    if ours and not said.complete:
        raise UserError(f"only {len(said.finished)} of {said.planned} suites ran to their end; see {console}")


def only_arm64(environ: Mapping[str, str]) -> None:
    """Raise UserError if ARCH= names another architecture."""
    if environ.get("ARCH", "arm64") != "arm64":
        raise UserError(f"ARCH={environ['ARCH']}: the plugin knows only arm64")


def judge_variables(environ: Mapping[str, str]) -> None:
    """Raise UserError if a variable has an invalid value, or if two variables contradict each other."""
    cpus = environ.get("CPUS") or "1"
    if not cpus.isdigit() or not 1 <= int(cpus) <= 8:
        raise UserError(f"CPUS={cpus}: use a number from 1 to 8")
    for name in ("IMAGE", "INITRD"):
        if (path := environ.get(name)) and not Path(path).is_file():
            raise UserError(f"{name}={path}: no such file")
    if one_glob(environ) and environ.get("IMAGE"):
        raise UserError("ONLY= works only for a kernel that mmcheck builds; with IMAGE= use APPEND=")
    if environ.get("STRESS"):
        stress.judge(environ)
    if environ.get("TESTS"):
        selftests.chosen(selftests.programs(), environ["TESTS"])
    for chosen in filter(environ.get, ("TESTS", "COMMAND")):
        for name in ("IMAGE", "INITRD", "ONLY", "CPUS", "COMPARE"):
            if environ.get(name):
                raise UserError(
                    f"{name}= has no effect with {chosen}=, which runs in a separate virtual machine: leave out {name}="
                )
    if environ.get("TESTS") and environ.get("COMMAND"):
        raise UserError("use TESTS= or COMMAND=, not both")


def run_programs(environ: Mapping[str, str], recorder: record.Recorder) -> int:
    """Run the command with TESTS= or COMMAND=. Returns the exit status."""
    settings = from_environment(environ)
    selftests.provide("arm64")
    toolchain.provide(["gcc", "/usr/include/stdio.h"])
    emulator, plugin = qemu.provide(settings.cache), build.plugin(settings.out / KIND)
    launch = prepare(selftests.request("arm64", "", kselftest.configuration(environ)), environ)
    words = (environ.get("APPEND") or "").split()
    session = programs.WatchedRun(launch, emulator, plugin, words)
    with session.launch.hold():
        if line := environ.get("COMMAND"):
            found, counts, cases = session.watch_line(line)
        else:
            found, counts, cases = session.watch(selftests.chosen(selftests.programs(), environ["TESTS"]))
        named(recorder.record, launch)
        recorder.keep(session.consoles)
    failed = [case for case in cases if case.state == "failed"]
    recorder.record.cases = cases
    recorder.put({"counts": counts, "reports": [one.json() for one in found]})
    print(text(found, counts))
    for case in failed:
        progress.say(f"{case.suite}.{case.name} fails under the plugin: {(case.text or ['no message'])[0]}")
    progress.say(f"{len(cases)} cases, {len(failed)} failed; see {session.folder} and {recorder.folder}")
    return FAILED if failed or any(not one.why for one in found) else PASSED


def run(environ: Mapping[str, str]) -> int:
    """Run the command. Returns the exit status."""
    only_arm64(environ)
    judge_variables(environ)
    environ = {**environ, "ARCH": "arm64"}
    settings = from_environment(environ)
    given = environ.get("IMAGE")
    if not given and not environ.get("STRESS"):
        source.judge(settings)
    what = next((environ[name] for name in ("TESTS", "COMMAND", "STRESS", "ONLY") if environ.get(name)), "")
    about = record.facts(KIND, "arm64", what, label=Path(given).name if given else "linux", arch="arm64", pages="")
    about.source, about.emulator = f"file {given}" if given else "", "QEMU 10"
    about.command = closing.make(KIND, environ, *CHOICE)
    with held(settings.out / "lock" / KIND, f"it uses {settings.out / KIND}"), record.kept(settings.out, about) as own:
        programs_only = environ.get("TESTS") or environ.get("COMMAND")
        status = run_programs(environ, own) if programs_only else run_suites(environ, own)
        about.state = record.outcome(status)
    return status


def run_suites(environ: Mapping[str, str], recorder: record.Recorder) -> int:
    """Run the command without TESTS= and COMMAND=. Returns the exit status."""
    settings = from_environment(environ)
    toolchain.provide(["gcc", "/usr/include/stdio.h"])
    emulator, out = qemu.provide(settings.cache), settings.out / KIND
    machine = Machine(emulator, build.plugin(out), out, int(environ.get("CPUS") or "1"))
    if environ.get("STRESS"):
        plain = replace(machine, plugin=None, out=out / "stress", cpus=1)
        environ = stress.prepared(environ, plain, settings.cache, settings.kernel)
        recorder.record.label = Path(environ["IMAGE"]).parent.name
    given = environ.get("IMAGE")
    append = f"console=ttyAMA0 panic=-1 nokaslr {environ.get('APPEND', '')}" if given else KUNIT
    if only := one_glob(environ):
        append += f" kunit.filter_glob={only}"
    if not given and environ.get("APPEND"):
        append += f" {environ['APPEND']}"
    more = ["-initrd", environ["INITRD"]] if environ.get("INITRD") else []
    costs: dict[str, cost.Cost] = {}
    console = out / "console"
    with (
        contextlib.nullcontext(Path(given)) if given else kernel(environ, recorder.record) as image,
        progress.Progress(f"booting {image.name} with the plugin"),
    ):
        if environ.get("COMPARE") == "1":
            (found, counts, seconds), costs = cost.both(machine, image, append, symbols.of_kernel(image), more)
        else:
            found, counts, seconds = machine.run(image, append, symbols.of_kernel(image), more)
    recorder.record.version, recorder.record.compiler = identity.banner([console])
    recorder.keep([console])
    judged(console, ours=not given)
    result: dict[str, Any] = {"seconds": seconds, "counts": counts, "reports": [one.json() for one in found]}
    if costs:
        result["costs"] = {name: asdict(one) for name, one in costs.items()}
    failed = False
    if environ.get("STRESS"):
        cases, result["operations"] = stress.outcome(console)
        recorder.record.cases = cases
        failed = any(case.state == "failed" for case in cases) or not cases
        without = stress.outcome(out / "without/console")[1] if costs else {}
        print(stress.text(cases, result["operations"], without))
    recorder.put(result)
    print(text(found, counts))
    if costs:
        print(cost.text(costs))
    progress.say(f"{seconds} s; the console is {console}, the report is {recorder.folder / record.FILE}")
    return FAILED if failed or any(not one.why for one in found) else PASSED
