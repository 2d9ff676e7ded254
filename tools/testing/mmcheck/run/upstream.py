# SPDX-License-Identifier: GPL-2.0
"""`make kselftest TARGETS=mm SUITE=upstream`: the kernel's own mm selftests, in the same virtual machine.

Upstream runs these tests with run_vmtests.sh, by category. Each category is one program here.
"""

import re
from pathlib import Path

from ..boot import guest, results
from . import selftests
from .selftests import Program
from .session import SILENCE, SelftestRun

SCRIPT = "run_vmtests.sh"
SECONDS = 900
MEMORY = 6144
"""The memory of the machine, in MiB. It must be large, since mremap_test has mappings of 2 GiB."""

WRAPPER = """\
#!/bin/bash
# BusyBox has no pgrep, and its killall does not wait.
pgrep() {{ pidof "${{!#}}"; }}
killall() {{
	kill -INT $(pidof "${{!#}}")
	while pidof "${{!#}}" >/dev/null; do sleep 0.1; done
}}
export -f pgrep killall
swapon /dev/ram0 2>/dev/null
# Each line becomes a record of the kernel's log. A record has no room for more than 1024 bytes.
set -o pipefail
./{script} -t {category} 2>&1 | while IFS= read -r line; do printf '%s\\n' "${{line:0:1000}}"; done
"""
LEFT_OUT = {
    "vmalloc": "needs the module test_vmalloc",
    "hmm": "needs the module test_hmm",
    "page_frag": "needs the module page_frag_test",
}
"""For each category of upstream tests that mmcheck does not run, the reason."""

KNOWN = {
    "vmtests_hugevm.virtual_address_range": "older versions of the test reject each address above HIGH_ADDR_MARK",
    "vmtests_ksm_numa.ksm_tests -N -m 1": "the test expects that KSM merges within two scans, as with smart_scan=0",
    "vmtests_pkey.protection_keys_*": "the test is linked with a C library that the machine does not have",
    "vmtests_thp.khugepaged all:file *": "without mkfs.xfs the test's files are in memory, and are not collapsed",
    "vmtests_thp.khugepaged*": "khugepaged.c of 6.12 does not compile, because KSFT_SKIP is undefined",
}
"""Globs of cases that fail although the kernel is right. Each glob has the cause of the failure."""

LIBRARIES = ("libcap-dev", "libnuma-dev")
"""Packages that some programs are linked with."""

PREFIX = "vmtests_"


def categories(script: str) -> list[str]:
    """The categories of run_vmtests.sh, in the order in which it runs them."""
    return list(dict.fromkeys(re.findall(r'^\s*CATEGORY="([\w-]+)"', script, re.MULTILINE)))


def build(session: SelftestRun) -> dict[str, Path]:
    """Build the programs of upstream that can be built; returns all files that the script needs, by name."""
    session.kernel()
    target = session.folder / "upstream"
    target.mkdir(exist_ok=True)
    libraries = guest.packages(session.settings.arch, LIBRARIES, session.settings.cache)
    include = " ".join(f"-I{libraries / name / 'usr/include'}" for name in LIBRARIES)
    folders = sorted({str(file.parent) for name in LIBRARIES for file in (libraries / name).rglob("*.a")})
    link = " ".join(["-static", *(f"-L{folder}" for folder in folders)])
    session.programs(target, ["-k", "-i", f"USERCFLAGS={include}", f"USERLDFLAGS={link}", "all"])
    source = session.launch.tree / selftests.FOLDER
    files = {path.name: path for path in target.iterdir() if path.is_file() and path.stat().st_mode & 0o100}
    return files | {path.name: path for path in source.glob("*.sh")}


def programs(session: SelftestRun) -> tuple[list[Program], dict[str, Path]]:
    """One program for each category, and its file."""
    script = (session.launch.tree / selftests.FOLDER / SCRIPT).read_text()
    found, files = [], {}
    for category in categories(script):
        if category not in LEFT_OUT:
            name = PREFIX + category
            files[name] = session.folder / "upstream" / name
            files[name].write_text(WRAPPER.format(script=SCRIPT, category=category))
            found.append(Program(name, seconds=SECONDS))
    return found, files


def run(session: SelftestRun, globs: str) -> list[results.Case]:
    """Build and run the tests, or those that `globs` names; returns the verdicts."""
    files = build(session)
    session.memory = MEMORY
    every, wrappers = programs(session)
    wanted = selftests.chosen(every, globs)
    left_out = [results.Case(PREFIX + name, "", "skipped", text=[why]) for name, why in LEFT_OUT.items()]
    found = session.run(wanted, every, files | wrappers, SECONDS + SILENCE)
    return [*found, *left_out]
