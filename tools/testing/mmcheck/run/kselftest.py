# SPDX-License-Identifier: GPL-2.0
"""`make kselftest TARGETS=mm`: builds and boots a kernel, builds and runs the selftests, and prints verdicts.

KTAP goes to standard output. Consoles, results.json and results.xml are below O=. If the kernel dies, the case that was
running fails, and the remaining cases run in another boot.
"""

import fnmatch
import itertools
import shlex
from collections.abc import Mapping, Sequence

from ..boot import results
from ..core import progress
from ..core.errors import UserError
from ..core.settings import VARIABLES, from_environment
from ..kernel import source, toolchain
from . import baseline, closing, selftests, upstream
from .cell import NAME
from .prepare import prepare
from .selftests import Program
from .session import SelftestRun

COMMAND = "make kselftest TARGETS=mm"

AUDITOR = "CONFIG_MM_AUDIT=y"
"""The option that AUDIT=1 needs."""

AUDIT = "audit"
"""The audit after each program is reported as a test case with this name."""


def given(environ: Mapping[str, str], *more: str) -> list[str]:
    """The variables of `environ` that choose the kernel and the machine, and `more`, as words of a command."""
    names = dict.fromkeys((*more, "ARCH", "SUITE", "HOST", "AUDIT", "KERNEL_ARGS", "KCONFIG_ADD", *VARIABLES))
    return [f"{name}={shlex.quote(environ[name])}" for name in names if name != "O" and environ.get(name)]


def again(case: results.Case, every: Sequence[Program], environ: Mapping[str, str]) -> str:
    """The command that runs only this case again."""
    names = [name for program in every if program.name == case.suite for name in program.cases]
    test = next((name for name in names if case.name and name.removeprefix(f"{case.suite}.") == case.name), case.suite)
    return " ".join([COMMAND, *given(environ), f"TESTS={test}"])


def configuration(environ: Mapping[str, str]) -> list[str]:
    """The configuration lines in KCONFIG_ADD=, and with AUDIT=1 also the auditor's line."""
    return [*(environ.get("KCONFIG_ADD") or "").split(), *([AUDITOR] if environ.get("AUDIT") == "1" else [])]


def session_of(environ: Mapping[str, str], repeat: str, suite: str = "") -> SelftestRun:
    """The run of selftests that the variables ask for, ready to build; `repeat`: the line that repeats it."""
    source.judge(from_environment(environ))
    selftests.provide(environ["ARCH"])
    words = ["STRICT=1"] * (environ.get("STRICT") == "1") + ["AUDIT=1"] * (environ.get("AUDIT") == "1")
    words += (environ.get("KERNEL_ARGS") or "").split()
    request = selftests.request(environ["ARCH"], suite, configuration(environ))
    session = SelftestRun(prepare(request, environ), words)
    session.launch.cell, session.launch.repeat = environ.get(NAME, ""), repeat
    return session


def audits(found: Sequence[results.Case]) -> str:
    """How many audits there were, and how long they took; "" if there were none."""
    own = [case for case in found if case.name == AUDIT]
    if not own:
        return ""
    failed = sum(case.state == "failed" for case in own)
    seconds = sum(case.seconds for case in own)
    whole = sum(case.seconds for case in found)
    return f"{len(own)} audits took {seconds:.1f}s of {whole:.0f}s; {failed} audits found violations"


def cases_of(environ: Mapping[str, str]) -> list[results.Case]:
    """Run all programs of this repository on the kernel that `environ` names."""
    every = selftests.programs()
    session = session_of(environ, " ".join([COMMAND, *given(environ)]))
    with session.recorded():
        return session.run(every, every, session.build([program.name for program in every]))


def run(environ: Mapping[str, str]) -> int:
    """The command; returns the exit status."""
    targets = environ.get("TARGETS") or "mm"
    if targets != "mm":
        raise UserError(f"TARGETS={targets}: use TARGETS=mm; this repository has no other selftests")
    environ = {**environ, "ARCH": environ.get("ARCH") or toolchain.own_arch()}
    suite = environ.get("SUITE") or ""
    if suite not in ("", "upstream"):
        raise UserError(f"SUITE={suite}: use SUITE=upstream, or no SUITE= for the tests of this repository")
    every = selftests.programs()
    wanted = [] if suite else selftests.chosen(every, environ.get("TESTS") or "")
    known = baseline.named(environ)
    session = session_of(environ, " ".join([COMMAND, *given(environ, "TESTS")]), suite)
    session.launch.baseline = known
    session.launch.scope = environ.get("TESTS") or suite
    host = environ.get("HOST") == "1"
    with session.recorded(host):
        if host:
            found = session.run_here(wanted, every)
        elif suite:
            found = upstream.run(session, environ.get("TESTS") or "")
        else:
            found = session.run(wanted, every, session.build([program.name for program in every]))
    found = session.launch.known(found)
    return report(found, session, every, environ, upstream.KNOWN if suite else {})


def report(
    found: Sequence[results.Case],
    session: SelftestRun,
    every: Sequence[Program],
    environ: Mapping[str, str],
    known: Mapping[str, str],
) -> int:
    """Print the paragraph that ends the run; returns the exit status.

    known: the reasons of expected failures, by globs of cases
    """
    why: dict[str, str] = {}
    for case in found:
        name = f"{case.suite}.{case.name}"
        if case.state == "failed":
            reasons = (text for glob, text in known.items() if fnmatch.fnmatch(name, glob))
            why |= {closing.name(case): reason for reason in itertools.islice(reasons, 1)}
        for line in case.remarks:
            progress.say(f"{name}: {line}")
    if text := audits(found):
        progress.say(text)
    rerun = {closing.name(case): again(case, every, environ) for case in found if case.state == "failed"}
    log = f"{session.folder} (consoles, results.json, results.xml)"
    for text in closing.paragraph(found, log, rerun, why):
        progress.say(text)
    return results.status(found)
