# SPDX-License-Identifier: GPL-2.0
"""Prints what this machine has, what it lacks, and what does not work because of that. Installs and fetches nothing.

With KDIR= or KERNEL= it also prints what can be tested in this kernel: the results of probes in its source, and its
known issues. Nothing is built.
"""

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from ..boot import guest, sandbox
from ..core.errors import NO_VERDICT, PASSED, UserError
from ..core.settings import Settings, from_environment
from ..kernel import identity, known_issues, probes, shadow, source, toolchain

GIB = 1 << 30
BUILD = 3
"""The first run for an architecture needs this many GiB of disk space for a source and a build."""


@dataclass(frozen=True)
class Finding:
    """One line of the answer.

    what:  a part of the machine, or what mmcheck does with it
    state: "has", "lacks", or "unknown"
    says:  what is there; or what is missing, what that costs, and what to do
    """

    what: str
    state: str
    says: str


def programs(what: str, needs: list[str], cost: str) -> Finding:
    """Whether the programs and files `needs` are there; `cost` is what happens without them."""
    absent = toolchain.missing(needs)
    if not absent:
        return Finding(what, "has", "ready")
    if not shutil.which("apt-get"):
        return Finding(what, "lacks", f"{', '.join(absent)}: {cost}; {toolchain.elsewhere(absent)}")
    packages = " ".join(sorted({toolchain.package(need) for need in absent}))
    root = os.geteuid() == 0 and os.environ.get("INSTALL") != "no"
    fix = f"the first run installs {packages}" if root else f"sudo apt-get install --no-install-recommends {packages}"
    return Finding(what, "lacks", f"{', '.join(absent)}: {cost}; {fix}")


def memory() -> int:
    """GiB of memory."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // GIB


def free(folder: Path) -> int:
    """The free GiB on the disk of a folder, which need not exist yet."""
    while not folder.exists():
        folder = folder.parent
    return shutil.disk_usage(folder).free // GIB


def findings(settings: Settings) -> Iterator[Finding]:
    """All findings, the most important first."""
    for arch in toolchain.ARCHITECTURES:
        needs = toolchain.requirements(arch, own_compiler=False)
        yield programs(f"suites on {arch}", needs, "the suites cannot be built or booted")
    for arch in guest.DEBIAN:
        needs = [*toolchain.requirements(arch, own_compiler=False), toolchain.libc(arch), guest.MKFS]
        yield programs(f"selftests on {arch}", needs, "the selftests cannot be built or booted")
    sources = sorted(path.name for path in (settings.cache / "src").glob("linux-*"))
    if sources:
        yield Finding("kernels", "has", ", ".join(sources))
    else:
        yield Finding("kernels", "lacks", "no kernel source was downloaded yet: the first run downloads 150 MB")
    if shutil.which("ccache"):
        yield Finding("ccache", "has", "ready")
    else:
        many = "these build many kernels: the commands bisect, mutants and patches, and the option --base"
        yield Finding("ccache", "lacks", f"{toolchain.NO_CCACHE}; {many}")
    if guest.has_kvm(toolchain.own_arch()):
        own = toolchain.own_arch()
        yield Finding("KVM", "has", f"/dev/kvm exists for {own}; if KVM does not work, QEMU emulates the machine")
    else:
        slow = "QEMU must emulate machines, so selftests take minutes and races happen less often"
        yield Finding("KVM", "lacks", slow)
    if sandbox.filters(toolchain.ARCHITECTURES["arm64"].emulator):
        yield Finding("sandbox", "has", "QEMU runs without network, and with a filter of system calls")
    else:
        weak = "QEMU is missing, or it lacks -sandbox; without -sandbox a broken kernel can do more harm"
        yield Finding("sandbox", "lacks", weak)
    if os.geteuid() == 0:
        yield Finding("user", "lacks", "QEMU would run as root: use another user after the installation")
    cpus = os.cpu_count() or 1
    yield Finding("CPUs", "has" if cpus > 1 else "lacks", f"{cpus}" + ": races need two" * (cpus < 2))
    yield Finding("memory", "has" if memory() >= 4 else "lacks", f"{memory()} GiB; a build and a boot need 4 GiB")
    for name, folder in (("O=", settings.out), ("the cache", settings.cache)):
        room = free(folder)
        yield Finding(
            f"disk of {name}",
            "has" if room >= BUILD else "lacks",
            f"{room} GiB free at {folder}; each architecture needs {BUILD} GiB",
        )


def of_tree(kernel: source.Source) -> Iterator[Finding]:
    """What can be tested in a kernel."""
    yield Finding("kernel", "has", identity.origin(kernel))
    found = probes.answers(kernel.path)
    words = {row[1]: row[2] for row in probes.table()}
    for state, answer, cost in (
        ("has", "yes", ""),
        ("lacks", "no", ": cases that need these are skipped, or expect the old behaviour"),
        ("unknown", "unknown", ": the code may have moved, so cases may expect code that this kernel lacks"),
    ):
        named = [words[name] for name, value in found.items() if value == answer]
        if named:
            yield Finding("probes", state, f"{len(named)} of {len(found)}: {', '.join(named)}{cost}")
    read = shadow.reader(kernel.path, ())
    version = known_issues.version_of(read)
    shown = {issue.number: issue.shown(version, read) for issue in known_issues.load()}
    for state, shows, what in (
        ("has", True, "their tests are skipped: KNOWN_ISSUES.md"),
        ("lacks", False, "their tests must pass"),
        ("unknown", None, "mmcheck does not find the faulty code of these issues, so their tests must pass"),
    ):
        numbers = [str(number) for number, value in shown.items() if value is shows]
        if numbers:
            yield Finding("known issues", state, f"{', '.join(numbers)}: {what}")


def run(environ: Mapping[str, str]) -> int:
    """The command; returns the exit status: NO_VERDICT if this machine cannot run a suite in its present state."""
    found = list(findings(from_environment({**environ, "KDIR": "", "PATCH": "", "PAGES": ""})))
    if environ.get("KDIR") or environ.get("KERNEL"):
        settings = from_environment({**environ, "PATCH": "", "PAGES": ""})
        source.judge(settings)
        if not (kernel := source.here(settings)):
            raise UserError(f"KERNEL={settings.kernel} is not on this machine yet: the first run fetches it")
        found += of_tree(kernel)
    if environ.get("JSON") == "1":
        print(json.dumps([asdict(finding) for finding in found], indent=1))
    else:
        width = max(len(finding.what) for finding in found)
        for finding in found:
            print(f"{finding.what:{width}}  {finding.state:5}  {finding.says}")
    can = any(finding.state == "has" for finding in found if finding.what.startswith("suites on"))
    return PASSED if can else NO_VERDICT
