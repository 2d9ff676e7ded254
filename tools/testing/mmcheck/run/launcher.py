# SPDX-License-Identifier: GPL-2.0
"""kunit.py: gets a kernel, grafts the overlay, and runs that kernel's own kunit.py."""

import argparse
import contextlib
import hashlib
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from ..boot import outcome, results
from ..core import command, disk, progress, variables
from ..core.errors import INTERRUPTED, NO_VERDICT, UserError
from ..core.lock import held
from ..core.settings import PROJECT, VARIABLES, Settings, from_environment
from ..kernel import graft, identity, patch, probes, shadow, source, toolchain
from ..kernel.make import LOG, PACE, Message
from . import closing, record, skips
from .cell import NAME

HELP = f"""\
usage: kunit.py run|config|build|exec|parse [--arch=ARCH] [argument of the kernel's kunit.py ...]

Builds and boots a kernel with the mmcheck suites and prints their verdicts.
All verbs and arguments are those of the kernel's own kunit.py: see kunit.py run --help.
Relative paths start in the current folder.

from the environment:
{variables.listed("KERNEL", "KDIR", "PATCH", "PAGES", "FEATURES", "O", "INSTALL")}
--no-install is the same as INSTALL=no.

{variables.STATUSES}
"""

PATH_OPTIONS = ("--build_dir", "--json", "--junit", "--qemu_config", "--kunitconfig")
"""Options of kunit.py that take a path. kunit.py changes its folder before it uses the path."""

VALUE_OPTIONS = (
    *("--build_dir", "--kunitconfig", "--qemu_config", "--make_options", "--kconfig_add", "--arch"),
    *("--cross_compile", "--qemu_args", "--jobs", "--timeout", "--filter", "--filter_action"),
    *("--kernel_args", "--run_isolated"),
)
TIMEOUT = 900
"""Seconds for a whole run: three times kunit.py's own limit, since here each case has a limit too."""

NO_INSTALL = "--no-install"
"""Our own argument; it means the same as the variable INSTALL=no."""

VERBS = ("run", "config", "build", "exec", "parse")

LIST_OPTIONS = ("--list_tests", "--list_tests_attr", "--list_suites")


@dataclass(frozen=True)
class Request:
    """What the command line asks for, as far as it concerns us.

    verb:      run, config, build, exec or parse
    arguments: all arguments after the verb, with absolute paths
    known:     the options that matter to us, as argparse gives them
    """

    verb: str
    arguments: list[str]
    known: argparse.Namespace

    @property
    def boots(self) -> bool:
        """Whether tests are run and their verdicts printed."""
        lists = any(vars(self.known)[option[2:]] for option in LIST_OPTIONS)
        return self.verb in ("run", "exec") and not lists and not self.known.help


def parse(arguments: Sequence[str]) -> Request:
    """Read the command line. The kernel's kunit.py checks it later."""
    verb, *rest = arguments
    rest = absolute(rest)
    if verb == "parse":
        rest = [str(Path(a).absolute()) if Path(a).is_file() else a for a in rest]
    parser = argparse.ArgumentParser(add_help=False, exit_on_error=False)
    for option in VALUE_OPTIONS:
        parser.add_argument(option, action="append")
    parser.add_argument("-h", "--help", action="store_true")
    for option in LIST_OPTIONS:
        parser.add_argument(option, action="store_true")
    for option in ("--raw_output", "--json", "--junit"):
        parser.add_argument(option, nargs="?")
    parser.add_argument("glob", nargs="?")
    # Like kunit.py: a bare --json takes no value, and the word after it is the glob.
    bare = {"--raw_output": "kunit", "--json": "stdout", "--junit": "stdout"}
    try:
        known, _ = parser.parse_known_args([f"{a}={bare[a]}" if a in bare else a for a in rest])
    except argparse.ArgumentError as error:
        raise UserError(str(error)) from None
    return Request(verb, rest, known)


def absolute(arguments: Sequence[str]) -> list[str]:
    """`arguments` with relative paths made absolute.

    A --kunitconfig that does not exist in the current folder stays as it is: it may be relative to the kernel's root.
    """
    result: list[str] = []
    for position, argument in enumerate(arguments):
        option, equals, value = argument.partition("=")
        before = arguments[position - 1] if position else ""
        if equals and option in PATH_OPTIONS and value and value != "stdout":
            argument = f"{option}={_from_here(option, value)}"
        elif before in PATH_OPTIONS and before not in ("--json", "--junit"):
            argument = _from_here(before, argument)
        result.append(argument)
    return result


def _from_here(option: str, value: str) -> str:
    path = Path(value).expanduser()
    return value if option == "--kunitconfig" and not path.exists() else str(path.absolute())


class Launch:
    """One run of the kernel's kunit.py in one build folder."""

    def __init__(self, request: Request, settings: Settings, tree: Path, label: str, stamp: str) -> None:
        self.request, self.settings, self.tree, self.label, self.stamp = request, settings, tree, label, stamp
        self.build_failed = False
        self.origin = self.cell = self.repeat = ""
        self.cases: list[results.Case] = []
        self.aside = False
        """Whether the output of kunit.py goes to standard error, because our caller prints to standard output."""
        given = request.known.build_dir
        self.build = Path(given[-1]) if given else settings.out / "build" / self._name()

    def _name(self) -> str:
        """The name of the build folder. Each configuration has one, since a change of configuration rebuilds all."""
        known = self.request.known
        parts = [self.label, self.settings.arch]
        if self.settings.arch == "arm64":
            parts.append(self.settings.pages)
        config = [*(known.kunitconfig or []), *(known.kconfig_add or [])]
        if config:
            parts.append(hashlib.sha256("\n".join(config).encode()).hexdigest()[:8])
        return "-".join(parts)

    def run(self) -> int:
        """Run what was asked for; returns the exit status. Raises UserError if there is no verdict."""
        if self.request.verb == "parse" or self.request.known.help:
            return self.judged(self.call(self.request.verb, self.request.arguments).returncode)
        self.build.parent.mkdir(parents=True, exist_ok=True)
        with held(self.settings.out / "lock" / f"{self.build.name}.build", f"it uses {self.build}"):
            if not self.request.boots:
                return self.verdict(self.call(self.request.verb, self.request.arguments).returncode)
            self.log.unlink(missing_ok=True)
            with self.recorded() as recorder:
                status = self.verdict(self.call(self.request.verb, self.request.arguments).returncode)
                self.cases = self.read()
                recorder.record.cases = self.cases
            self.say_stale()
            return status

    @contextlib.contextmanager
    def recorded(self) -> Iterator[record.Recorder]:
        """Record the boots of the block."""
        recorder = record.Recorder(self.settings.out, self.facts("kunit"))
        why = ""
        try:
            yield recorder
        except BaseException as error:
            why = str(error) or "interrupted"
            raise
        finally:
            self.identify(recorder.record, [self.log])
            recorder.keep([self.log, *([self.build / LOG] if self.build_failed else [])])
            recorder.end("none" if why else record.state(recorder.record.cases), why)

    def facts(self, kind: str) -> record.Record:
        """What is known of a run before it begins."""
        settings = self.settings
        return record.Record(
            id="-".join([time.strftime("%Y%m%dT%H%M%S"), kind, self.build.name]),
            name=self.cell or f"{kind} {self.build.name}",
            kind=kind,
            label=self.label,
            arch=settings.arch,
            pages=settings.pages if settings.arch == "arm64" else "",
            build=self.build.name,
            cell=self.cell,
            source=self.origin or identity.labelled(self.label),
            emulator=identity.emulator(settings.arch),
            command=self.repeat,
        )

    def identify(self, about: record.Record, consoles: Sequence[Path]) -> None:
        """Note what only a build and a boot tell: the configuration, and the names of kernel and compiler."""
        about.built = not self.build_failed
        about.version, about.compiler = identity.banner(consoles)
        with contextlib.suppress(OSError):
            about.config = disk.digest((self.build / ".config").read_bytes())

    @property
    def log(self) -> Path:
        """The console of the last boot."""
        return self.build / "test.log"

    def read(self) -> list[results.Case]:
        """The cases of the last boot; none if there was no boot."""
        if not self.log.exists():
            return []
        return results.kunit(self.log.read_text(errors="replace").splitlines())

    def defaults(self) -> list[str]:
        """Arguments that our suites need and that the user did not give, for the kernel's kunit.py."""
        known, settings = self.request.known, self.settings
        result = [f"--arch={settings.arch}", f"--build_dir={self.build}"]
        prefix = toolchain.cross_prefix(settings.arch)
        if prefix and not known.cross_compile:
            result.append(f"--cross_compile={prefix}")
        if not known.kunitconfig:
            folders = ("mm/tests", f"arch/{settings.arch}/mm/tests")
            files = [self.tree / folder / ".kunitconfig" for folder in folders]
            result += [f"--kunitconfig={file}" for file in files if file.exists()]
        if not known.timeout and self.request.boots:
            result.append(f"--timeout={TIMEOUT}")
        if settings.arch == "arm64" and self.request.boots and not known.qemu_config:
            # A -cpu among the user's --qemu_args comes later and wins.
            result.append(f"--qemu_args=-cpu {toolchain.ARM64_CPU}")
        if settings.pages != "4K":
            result.append(f"--kconfig_add=CONFIG_ARM64_{settings.pages}_PAGES=y")
        return result

    def call(self, verb: str, arguments: Sequence[str], capture: bool = False) -> subprocess.CompletedProcess[str]:
        """Run the kernel's kunit.py. Its output goes to our standard output; with `capture` it is returned instead."""
        ours = [] if verb == "parse" else self.defaults()
        command = [sys.executable, str(self.tree / "tools/testing/kunit/kunit.py"), verb, *ours, *arguments]
        with (
            self._listening() as channel,
            _plain_output(not capture) as output,
            subprocess.Popen(
                command,
                env=self._environment(channel),
                stdin=None if verb == "parse" else subprocess.DEVNULL,
                stdout=subprocess.PIPE if capture else sys.stderr if self.aside else output,
                text=True,
                process_group=0,
            ) as child,
        ):
            try:
                said, _ = child.communicate()
            except KeyboardInterrupt:
                # kunit.py does not end on SIGINT while make or a kernel runs, so signal the whole process group.
                for number in (signal.SIGINT, signal.SIGKILL):
                    with contextlib.suppress(ProcessLookupError, subprocess.TimeoutExpired):
                        os.killpg(child.pid, number)
                        child.wait(timeout=10)
                raise
            return subprocess.CompletedProcess(command, child.returncode, said)

    def _environment(self, channel: Path) -> dict[str, str]:
        ours = PROJECT / "tools/testing/mmcheck/bin"
        drop = {*VARIABLES, "MAKEFLAGS", "MFLAGS", "MAKELEVEL", "KBUILD_OUTPUT", "INSTALL"}
        environment = {name: value for name, value in os.environ.items() if name not in drop}
        return {
            # With a base folder ccache recognizes the same file in another checkout.
            "CCACHE_BASEDIR": str(self.settings.out),
            "CCACHE_NOHASHDIR": "1",
            **environment,
            "PATH": f"{ours}:{environment.get('PATH', os.defpath)}",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONUNBUFFERED": "1",  # so that kunit.py's lines and ours keep their order
            "MMCHECK_MAKE": shutil.which("make") or "make",
            "MMCHECK_STAMP": self.stamp,
            "MMCHECK_CHANNEL": str(channel),
        }

    @contextlib.contextmanager
    def _listening(self) -> Iterator[Path]:
        """A FIFO through which our `make` reports its progress, which is then shown."""
        with tempfile.TemporaryDirectory(prefix="mmcheck-") as folder:
            path = Path(folder) / "channel"
            os.mkfifo(path)
            # Open for writing too, so that the end of one make is not the end of the stream.
            descriptor = os.open(path, os.O_RDWR)
            thread = threading.Thread(target=self._show, args=(descriptor,), daemon=True)
            thread.start()
            try:
                yield path
            finally:
                os.write(descriptor, b"\n")
                thread.join()
                os.close(descriptor)

    def _show(self, descriptor: int) -> None:
        shown: progress.Progress | None = None
        with os.fdopen(os.dup(descriptor)) as lines:
            for line in lines:
                if not line.strip():
                    break
                message = Message(**json.loads(line))
                if message.failed:
                    self.build_failed = True
                    continue
                if shown is None:
                    title = f"building linux {self.label}"
                    shown = progress.Progress(title, message.total, exact=False, pace=PACE)
                shown.advance(message.done, message.detail)
                if message.detail.startswith(("LD      vmlinux", "LINK linux", "LINK    linux")):
                    shown.clear()
        if shown:
            shown.clear()

    def judged(self, status: int) -> int:
        """The exit status to return for the `status` of the kernel's kunit.py, without a look at a console."""
        about_tests = self.request.boots or self.request.verb == "parse"
        if status == 0 or (status == 1 and about_tests):
            return status
        if status in (INTERRUPTED, -signal.SIGINT):
            raise KeyboardInterrupt
        raise UserError(f"the kernel's kunit.py {self.request.verb} ended with status {status}: see the lines above")

    def console(self) -> outcome.Outcome:
        """What the console of the last boot says about its suites."""
        try:
            with (self.log).open(errors="replace") as log:
                return outcome.read(log)
        except FileNotFoundError:
            return outcome.Outcome()

    def skipped(self) -> list[str]:
        """Lines about the cases that the last boot skipped and that another command would run: how many, and how."""
        return skips.summary(self.cases, skips.load())

    def closing(self, environ: Mapping[str, str]) -> list[str]:
        """The paragraph that ends the run."""
        words = [self.request.verb, *self._without_glob()]
        names = {closing.name(case) for case in self.cases}
        again = {name: closing.command(words, name, environ) for name in names}
        return closing.paragraph(self.cases, self.log, again)

    def say_stale(self) -> None:
        """Print the cases that passed although a known issue predicts a failure; kunit.py does not show their text."""
        for case in self.cases:
            if case.state == "passed" and case.text:
                progress.say(f"{case.suite}.{case.name}: {case.text[0]}")

    def resume(self, boot: outcome.Outcome) -> None:
        """After a boot that ended early: boot again for each suite that has not begun."""
        dead = boot.running or "a suite"
        where = f"after case {boot.last}" if boot.last else "in its first case"
        why = boot.reason or "the kernel printed nothing more until the time limit"
        listed = self.call("exec", [*self._without_glob(), "--list_tests", *self._glob()], capture=True)
        suites = list(dict.fromkeys(re.findall(r"^(\w+)\.\w+$", listed.stdout, re.MULTILINE)))
        missing = [suite for suite in suites if suite not in boot.finished and suite != boot.running]
        again = f"; booting again for {', '.join(missing)}" if missing else ""
        progress.say(f"suite {dead} ended the kernel {where}: {why}{again}")
        cases = self._glob()[0].partition(".")[2] if self._glob() else ""
        said = self.log.read_bytes()
        for suite in missing:
            part = self.build / "resumed.json"
            xml = self.build / "resumed.xml"
            files = [f"--json={part}"] if self._file("json") else []
            files += [f"--junit={xml}"] if self._file("junit") else []
            self.call("exec", [*self._without_glob(), *files, f"{suite}.{cases}" if cases else suite])
            if self._file("json"):
                merge(self._file("json"), part, suite)
            if self._file("junit"):
                merge_junit(self._file("junit"), xml, suite)
            # Each boot overwrites the log.
            said += self.log.read_bytes() if self.log.exists() else b""
            self.log.write_bytes(said)

    def _file(self, option: str) -> str:
        """The file that --json or --junit names, or ""."""
        file: str | None = vars(self.request.known)[option]
        return file if file and file != "stdout" else ""

    def _glob(self) -> list[str]:
        return [self.request.known.glob] if self.request.known.glob else []

    def _without_glob(self) -> list[str]:
        """The arguments that kunit.py exec takes, without the glob."""
        glob = self.request.known.glob
        kept = [a for a in self.request.arguments if a != glob and not a.startswith(("--json", "--junit"))]
        if "--jobs" in kept:
            del kept[kept.index("--jobs") : kept.index("--jobs") + 2]
        return [a for a in kept if not a.startswith("--jobs=")]

    def verdict(self, status: int) -> int:
        """The exit status to return after the kernel's kunit.py returned `status`.

        Boots again for suites that did not run because of a panic or a hang. Raises UserError if there is no verdict.
        """
        if self.build_failed:
            raise UserError(f"linux {self.label} does not build for {self.settings.arch}: see {self.build / LOG}")
        if not self.request.boots or self.request.known.run_isolated:
            return self.judged(status)
        if status != 1:
            return self.judged(status)
        boot = self.console()
        if not (self.log).exists():
            raise UserError(f"linux {self.label} could not be configured as asked: see the lines above")
        if boot.planned == 0:
            raise UserError(f"linux {self.label} has no test that matches {' '.join(self._glob()) or 'the options'}")
        if boot.planned is None or not (boot.finished or boot.running):
            why = f" ({boot.reason})" if boot.reason else ""
            raise UserError(f"linux {self.label} ended before the first test{why}: see {self.build / 'test.log'}")
        if not boot.complete and boot.running:
            self.resume(boot)
        return status


def merge(file: str, part: Path, suite: str) -> None:
    """Replace the verdicts on `suite` in the JSON file `file` by those in the file `part`."""
    whole, new = json.loads(Path(file).read_text()), json.loads(part.read_text())
    groups = [group for group in whole["sub_groups"] if group["name"] != suite]
    whole["sub_groups"] = groups + new["sub_groups"]
    Path(file).write_text(json.dumps(whole, indent=4))


def merge_junit(results: str, part: Path, suite: str) -> None:
    """Replace the verdicts on `suite` in the JUnit file `results` by the test suites in the file `part`."""
    whole, new = ElementTree.parse(results), ElementTree.parse(part)
    root, other = whole.getroot(), new.getroot()
    for element in root.findall("testsuite"):
        if element.get("name") == suite:
            root.remove(element)
    root.extend(other.findall("testsuite"))
    for count in ("tests", "failures", "errors", "skipped"):
        if root.get(count) is not None:
            root.set(count, str(sum(int(element.get(count, "0")) for element in root.findall("testsuite"))))
    whole.write(results, encoding="utf-8", xml_declaration=True)


@contextlib.contextmanager
def _plain_output(wanted: bool) -> Iterator[int | None]:
    """Standard output for the kernel's kunit.py. With NO_COLOR it goes through cat, so kunit.py sees no terminal."""
    if not (wanted and os.environ.get("NO_COLOR") and sys.stdout.isatty()):
        yield None
        return
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as cat:
        assert cat.stdin
        yield cat.stdin.fileno()


def prepare(request: Request, environ: Mapping[str, str]) -> Launch:
    """Provide tools, kernel source and working copy; returns how to run this kernel's kunit.py."""
    known = request.known
    # Use --arch, as the kernel's kunit.py does, and not ARCH, which kernel developers export for make.
    settings = from_environment(environ, known.arch[-1] if known.arch else "um")
    source.judge(settings)
    if request.verb != "parse" and not known.help:
        llvm = any("LLVM=" in o for o in known.make_options or [])
        needs = toolchain.requirements(settings.arch, bool(known.cross_compile) or llvm)
        toolchain.provide([*needs, *(toolchain.LLVM if llvm else ()), *toolchain.named(known.qemu_args or [])])
    kernel = source.obtain(settings)
    label = label_of(kernel, settings)
    # Take the stamp before the working copy is made. An edit in between then causes an extra make, never a missing one.
    stamp = f"{shadow.fingerprint(kernel, features=settings.features)} {_compiler(settings.arch)}"
    tree = working_copy(kernel, settings, label)
    if request.boots and (unknown := [name for name, value in probes.answers(tree).items() if value == "unknown"]):
        progress.say(probes.warning(unknown))
    launch = Launch(request, settings, tree, label, stamp)
    launch.origin = identity.origin(kernel) + (f", with {settings.patch.name}" if settings.patch else "")
    return launch


def patched(kernel: source.Source, settings: Settings) -> dict[str, bytes | None]:
    """The files that PATCH= changes in the private copy, with our own edits of these files."""
    if not settings.patch:
        return {}
    files = patch.apply(settings.patch, lambda name: (kernel.path / name).read_bytes())
    for edit in graft.edits(settings.features):
        content = files.get(edit.path)
        if content is not None:
            text = edit.apply(content.decode())
            if text is None:
                raise UserError(
                    f"PATCH={settings.patch}: with the patch, mmcheck cannot add the line {edit.line!r} "
                    f"to {edit.path}; change the patch"
                )
            files[edit.path] = text.encode()
    said = ", ".join(files)
    progress.say(f"PATCH={settings.patch} is applied to a private copy of linux {kernel.label}: {said}")
    return files


def working_copy(
    kernel: source.Source, settings: Settings, label: str, others: Mapping[str, bytes] | None = None
) -> Path:
    """Make or update the tree named `label`, under a lock; returns its path.

    others: files whose content differs from kernel and overlay
    """
    if others is not None and settings.patch:
        raise UserError(f"PATCH={settings.patch}: only kunit.py, kselftest, bundle and matrix apply a patch")
    tree = settings.out / "tree" / label
    files = others if others is not None else patched(kernel, settings)
    with held(settings.out / "lock" / f"{label}.tree", "it prepares the working copy"):
        shadow.make(kernel, tree, features=settings.features, others=files)
    return tree


def label_of(kernel: source.Source, settings: Settings) -> str:
    """The name of a working copy: its kernel, and the features in which it differs from the usual copy."""
    return "+".join([kernel.label, *settings.unusual])


def run(arguments: Sequence[str], environ: Mapping[str, str]) -> int:
    """Do what the command line says; returns the exit status."""
    if NO_INSTALL in arguments:
        os.environ["INSTALL"] = "no"
        arguments = [argument for argument in arguments if argument != NO_INSTALL]
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(HELP, end="")
        return 0 if arguments else NO_VERDICT
    if arguments[0] not in VERBS:
        raise UserError(f"{arguments[0]}: no such verb; use {', '.join(VERBS)}, or --help")
    request = parse(arguments)
    if request.known.help:
        settings = from_environment(environ, "um")
        source.judge(settings)
        if not source.here(settings):
            print(HELP, end="")
            print(f"\nThe arguments of the kernel's own kunit.py are shown once linux {settings.kernel} is downloaded.")
            return 0
    launch = prepare(request, environ)
    launch.cell = environ.get(NAME, "")
    launch.repeat = closing.again(arguments, environ)
    status = launch.run()
    for line in [*launch.skipped(), *launch.closing(environ)]:
        progress.say(line)
    return status


def _compiler(arch: str) -> str:
    """The compilers by path, size and time stamp. If one of these changes, the kernel is built again."""
    found = []
    for name in (f"{toolchain.cross_prefix(arch)}gcc", "clang"):
        if path := shutil.which(name):
            state = Path(path).stat()
            found.append(f"{path} {state.st_size} {state.st_mtime_ns}")
    return " ".join(found) or f"none on {platform.machine()}"


def main(arguments: Sequence[str]) -> int:
    """The command."""
    kept = "run it again to continue from here"
    return command.run("kunit.py", lambda environ: run(arguments, environ), os.environ, kept)
