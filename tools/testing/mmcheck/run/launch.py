# SPDX-License-Identifier: GPL-2.0
"""One run of the kernel's own kunit.py in one build folder."""

import contextlib
import os
import re
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TextIO

from ..boot import console, results, spread
from ..core import disk, lock, progress
from ..core.errors import FAILED, INTERRUPTED, UserError
from ..core.settings import PROJECT, VARIABLES
from ..kernel import identity, toolchain
from ..kernel.make import LOG
from . import baseline, channel, closing, record, skips
from .merge import merge, merge_junit
from .request import Request
from .workspace import Workspace

TIMEOUT = 900
"""The limit of a whole run in seconds: three times kunit.py's own limit. If a case hangs, the kernel stops earlier."""

UNSEEN = results.Case("kunit_py", "", "failed", text=["kunit.py reported a failure, but its last console shows none"])
"""With --run_isolated, each boot overwrites the console. If a boot before the last one had a failure, this case is
reported.
"""


class Launch:
    """One run of the kernel's kunit.py in one build folder."""

    def __init__(self, workspace: Workspace, request: Request | None = None) -> None:
        """`request`: the request to kunit.py; None for the request of the workspace."""
        self.workspace, self.request = workspace, request or workspace.spec.request
        self.settings, self.tree = workspace.settings, workspace.tree
        self.label, self.build = workspace.label, workspace.build
        self.build_failed = False
        self.origin = self.cell = self.repeat = ""
        self.scope = self.request.known.glob or ""
        self.cases: list[results.Case] = []
        self.baseline: baseline.Baseline | None = None
        self.globs: list[str] = []
        self.jobs = 1
        self.aside = False
        """Whether kunit.py's output goes to standard error. mmcheck prints its own output to standard output."""

    def hold(self) -> AbstractContextManager[None]:
        """Keep other runs away from the kernel during the block."""
        return self.workspace.hold()

    def run(self) -> int:
        """Run what was asked for; returns the exit status. Raises UserError if there is no verdict."""
        if self.request.verb == "parse":
            return self.judged(self.call(self.request.verb, self.request.arguments).returncode)
        self.build.parent.mkdir(parents=True, exist_ok=True)
        with self.hold():
            if not self.request.boots:
                return self.verdict(self.call(self.request.verb, self.request.arguments).returncode)
            self.log.unlink(missing_ok=True)
            self.globs = self.spread()
            with record.kept(self.settings.out, self.facts("kunit"), self.complete) as recorder:
                status = self.verdict(self.call(self.request.verb, self.request.arguments).returncode)
                self.cases = self.known(self.read())
                if status == FAILED and not any(case.state in ("failed", results.KNOWN) for case in self.cases):
                    self.cases.append(UNSEEN)
                recorder.record.cases = self.cases
            self.say_stale()
            return baseline.status(status, self.cases)

    def spread(self) -> list[str]:
        """Globs that divide the suites among several boots at a time; [] for one boot.

        If `jobs` is above 1, a run of all suites is divided by the times of the last such run. The run stays in one
        boot if its arguments choose tests, or give the machine several processors.
        """
        known = self.request.known
        words = " ".join([*(known.qemu_args or []), *(known.kernel_args or []), *(known.qemu_config or [])])
        one = known.glob or known.filter or known.run_isolated or re.search(r"-smp|-gdb|-s\b|kunit\.", words)
        if one or self.jobs < 2 or self.settings.arch == "um":
            return []
        name = self.facts("kunit").name
        every = record.every(self.settings.out, f"*{self.build.name}*")
        own = [one.cases for one in every if one.name == name and one.state in ("passed", "failed")]
        return spread.globs(spread.weights(own[-1]), self.jobs) if own else []

    def complete(self, recorder: record.Recorder) -> None:
        """Add the console to a record, and the facts about the kernel that the console shows."""
        self.identify(recorder.record, [self.log])
        recorder.keep([self.log, *([self.build / LOG] if self.build_failed else [])])

    def facts(self, kind: str) -> record.Record:
        """What is known of a run before it begins."""
        settings = self.settings
        found = record.facts(
            kind,
            self.build.name,
            self.scope,
            label=self.label,
            arch=settings.arch,
            pages=settings.page_size,
            cell=self.cell,
            source=self.origin or identity.labelled(self.label),
            emulator=identity.emulator(settings.arch),
            command=self.repeat,
            baseline=str(self.baseline.file) if self.baseline else "",
        )
        found.name = self.cell or found.name
        return found

    def identify(self, about: record.Record, consoles: Sequence[Path]) -> None:
        """Note what is known only after a build and a boot: the configuration, and the names of kernel and compiler."""
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
        return results.kunit(console.lines(self.log.read_bytes()))

    def known(self, cases: Sequence[results.Case]) -> list[results.Case]:
        """The cases of a run, as the baseline judges them."""
        own = self.settings
        return self.baseline.judge(cases, own.arch, own.pages) if self.baseline else list(cases)

    def defaults(self) -> list[str]:
        """Arguments that our suites need and that the user did not give, for the kernel's kunit.py."""
        known, settings = self.request.known, self.settings
        result = [f"--arch={settings.arch}", f"--build_dir={self.build}"]
        prefix = toolchain.cross_prefix(settings.arch)
        if prefix and not known.cross_compile:
            result.append(f"--cross_compile={prefix}")
        if not known.kunitconfig:
            own = [f"{folder}/.kunitconfig" for folder in toolchain.suites(settings.arch)]
            result += [f"--kunitconfig={self.tree / name}" for name in own if (PROJECT / name).exists()]
        if not known.timeout and self.request.boots:
            result.append(f"--timeout={TIMEOUT}")
        if settings.arch == "arm64" and self.request.boots and not known.qemu_config:
            # A -cpu among the user's --qemu_args comes later and wins.
            result.append(f"--qemu_args=-cpu {toolchain.ARM64_CPU}")
        if self.request.boots:
            # The record takes the times of cases from the stamps. A user's --kernel_args come later and win.
            result.append("--kernel_args=printk.time=1")
        if settings.pages != "4K":
            result.append(f"--kconfig_add=CONFIG_ARM64_{settings.pages}_PAGES=y")
        return result

    def call(self, verb: str, arguments: Sequence[str], capture: bool = False) -> subprocess.CompletedProcess[str]:
        """Run the kernel's kunit.py. Its output goes to our standard output; with `capture` it is returned instead."""
        ours = [] if verb == "parse" else self.defaults()
        command = [sys.executable, str(self.tree / "tools/testing/kunit/kunit.py"), verb, *ours, *arguments]
        with (
            channel.listening(self.label, self.fail) as path,
            _plain_output(not capture) as output,
            subprocess.Popen(
                command,
                env=self._environment(path),
                stdin=None if verb == "parse" else subprocess.DEVNULL,
                stdout=subprocess.PIPE if capture else sys.stderr if self.aside else output,
                text=True,
                process_group=0,
                pass_fds=lock.files(),
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
        # A debugger takes the folder of the sources from the objects, so they must come from this checkout.
        debugged = any("CONFIG_DEBUG_INFO" in line for line in self.request.known.kconfig_add or [])
        return {
            # With a base folder ccache recognizes the same file in another checkout.
            "CCACHE_BASEDIR": str(self.settings.out),
            **({} if debugged else {"CCACHE_NOHASHDIR": "1"}),
            **environment,
            "PATH": f"{ours}:{environment.get('PATH', os.defpath)}",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONUNBUFFERED": "1",  # so that kunit.py's lines and ours keep their order
            "MMCHECK_MAKE": shutil.which("make") or "make",
            "MMCHECK_STAMP": self.workspace.stamp,
            "MMCHECK_CHANNEL": str(channel),
            **spread.encoded(self.globs),
        }

    def fail(self) -> None:
        """Note that a build failed."""
        self.build_failed = True

    def judged(self, status: int) -> int:
        """The exit status to return for the `status` of the kernel's kunit.py, if no console is read."""
        about_tests = self.request.boots or self.request.verb == "parse"
        if status == 0 or (status == 1 and about_tests):
            return status
        if status in (INTERRUPTED, -signal.SIGINT):
            raise KeyboardInterrupt
        raise UserError(f"the kernel's kunit.py {self.request.verb} ended with status {status}: see the lines above")

    def skipped(self, environ: Mapping[str, str]) -> list[str]:
        """Lines about skipped cases of the last boot that another command can run: their number, and this command."""
        version, _ = identity.banner([self.log])
        lines = skips.likely(skips.load(), version, self.settings.arch, self.settings.pages)
        return skips.summary(self.cases, lines, self.settings.arch, environ)

    def closing(self, environ: Mapping[str, str]) -> list[str]:
        """The paragraph that ends the run."""
        words = [self.request.verb, *self._without_glob()]
        again: dict[str, str] = {}
        for case in self.cases:
            if case.state == "failed":
                new = [value for value in closing.seed(case) if value not in " ".join(words)]
                seed = [word for value in new for word in ("--kernel_args", value)]
                alone = closing.command([*words, *seed], closing.name(case), environ)
                again.setdefault(closing.name(case), self.repeat if case is UNSEEN else alone)
        for name, line in again.items():
            if line == self.repeat:
                again[name] = closing.compare([self.request.verb, *self.request.arguments], environ)
        return closing.paragraph(self.cases, self.log, again)

    def say_stale(self) -> None:
        """Print the cases that passed although a known issue predicts a failure; kunit.py does not show their text."""
        for case in self.cases:
            for line in case.remarks:
                progress.say(f"{case.full}: {line}")

    def resume(self, boot: console.Console) -> None:
        """After a boot that ended early: boot again for each suite that has not begun."""
        dead = boot.suite or "(unknown)"
        where = f"after case {boot.last}" if boot.last else "in its first case"
        why = boot.reason or "the kernel printed nothing more until the time limit"
        self.globs = []
        said = self.log.read_bytes()  # each of the next boots overwrites the log
        listed = self.call("exec", [*self._without_glob(), "--list_tests", *self._glob()], capture=True)
        self.log.write_bytes(said)
        suites = list(dict.fromkeys(re.findall(r"^(\w+)\.\w+$", listed.stdout, re.MULTILINE)))
        missing = [suite for suite in suites if suite not in boot.finished and suite != boot.suite]
        again = f"; booting again for {', '.join(missing)}" if missing else ""
        progress.say(f"the kernel ended early in suite {dead}, {where}: {why}{again}")
        cases = self._glob()[0].partition(".")[2] if self._glob() else ""
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
        if _closed(sys.__stdout__):
            # kunit.py then ends with 1, as after a failed test, and the kernel ends too.
            raise UserError(
                f"linux {self.label}: the program that reads this output through a pipe exited before the tests ended; "
                "write the output to a file"
            )
        boot = console.read(self.log)
        if not self.log.exists():
            raise UserError(f"linux {self.label} could not be configured as requested: see the lines above")
        if boot.planned == 0:
            what = " ".join(self._glob()) or "the options"
            raise record.NothingRanError(f"linux {self.label} {record.NO_TEST} {what}: --list_tests prints all tests")
        if boot.planned is None or not (boot.finished or boot.suite):
            why = f" ({boot.reason})" if boot.reason else ""
            raise UserError(f"linux {self.label} ended before the first test{why}: see {self.log}")
        if not boot.complete:
            self.resume(boot)
        return status


def _closed(stream: TextIO | None) -> bool:
    """Whether a stream is a pipe without a reader."""
    waiting = select.poll()
    if stream:
        waiting.register(stream, 0)
    return any(event & select.POLLERR for _, event in waiting.poll(0))


@contextlib.contextmanager
def _plain_output(wanted: bool) -> Iterator[int | None]:
    """Standard output for the kernel's kunit.py. With NO_COLOR it goes through cat, so kunit.py sees no terminal."""
    if not (wanted and os.environ.get("NO_COLOR") and sys.stdout.isatty()):
        yield None
        return
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as cat:
        assert cat.stdin
        yield cat.stdin.fileno()
