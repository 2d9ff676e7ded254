# SPDX-License-Identifier: GPL-2.0
"""A fake kernel tree, fake tools, and a user who starts the launcher."""

import json
import os
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from mmcheck.core.settings import PROJECT
from mmcheck.kernel.toolchain import BOXED

KUNIT_PY = '''#!/usr/bin/env python3
"""Stands for the kernel's kunit.py: notes how it was called, calls make, writes a console."""
import json, os, subprocess, sys
from pathlib import Path

verb, *rest = sys.argv[1:]
root = Path(__file__).resolve().parents[3]
with open(os.environ["FAKE_CALLS"], "a") as calls:
    call = {"verb": verb, "arguments": rest, "root": str(root), "kernel": os.environ.get("KERNEL")}
    call["spread"] = os.environ.get("MMCHECK_SPREAD")
    call["shares"] = os.environ.get("CCACHE_NOHASHDIR")
    calls.write(json.dumps(call) + "\\n")
os.chdir(root)
options = dict(a.split("=", 1) for a in rest if a.startswith("--") and "=" in a)
if verb == "parse" or "--help" in rest:
    print("the kernel's own output")
    sys.exit(0)
build = Path(options["--build_dir"])
build.mkdir(exist_ok=True)
if verb in ("run", "build"):
    (build / ".config").write_text("CONFIG_KUNIT=y\\n")
    if subprocess.run(["make", "all", "ARCH=arm64", f"O={build}", "--jobs=2"]).returncode:
        sys.exit(1)
if "--list_tests" in rest:
    (build / "test.log").write_text("KTAP version 1\\n1..3\\none.a\\ntwo.a\\ntwo.b\\nthree.a\\n")
    print("[12:04:36] Configuring ...\\none.a\\ntwo.a\\ntwo.b\\nthree.a\\n[12:04:36] Elapsed time: 0.3s")
    sys.exit(0)
if verb in ("run", "exec"):
    plain = [a for b, a in zip(["", *rest], rest) if not a.startswith("--") and b != "--jobs"]
    glob = plain[0] if plain else "all"
    consoles = json.loads(os.environ.get("FAKE_CONSOLES", "{}"))
    default = "KTAP version 1\\n1..1\\n    # Subtest: one\\n    ok 1 a\\nok 1 one\\n"
    (build / "test.log").write_text(consoles.get(glob, default))
    if "--json" in options:
        group = {"name": glob, "sub_groups": [], "test_cases": [{"name": "a", "status": "PASS"}]}
        Path(options["--json"]).write_text(json.dumps({"sub_groups": [group], "test_cases": []}))
    if "--junit" in options:
        suite = f"<testsuite name='{glob}' tests='1'><testcase name='a'/></testsuite>"
        Path(options["--junit"]).write_text(f"<testsuite tests='1'>{suite}</testsuite>")
    sys.exit(int(os.environ.get("FAKE_STATUS", "0")) if glob == "all" or "1..0" in consoles.get(glob, "") else 0)
'''

MAKE = """#!/bin/sh
# Stands for the real make: builds nothing, fails where it is told to.
for a; do case $a in O=*) out=${a#O=};; esac; done
echo "$@" >> "$FAKE_CALLS.make"
echo "  CC      mm/memory.o"
[ -n "$FAKE_MAKE_HANGS" ] && { echo $$ > "$FAKE_CALLS.pid"; exec sleep 1000; }
[ -n "$FAKE_MAKE_FAILS" ] && { echo "mm/memory.c:1:1: error: oh dear" >&2; exit 2; }
echo image > "$out/vmlinux"
"""

# nohup and scripts that run pytest in the background ignore these signals. Child processes would ignore them too.
for _number in (signal.SIGINT, signal.SIGHUP):
    if signal.getsignal(_number) == signal.SIG_IGN:
        signal.signal(_number, signal.SIG_DFL)

# In a container, messages name other commands. A test of these messages sets the variable.
os.environ.pop(BOXED, None)

TOOLS = ("gcc", "flex", "bison", "bc", "perl", "aarch64-linux-gnu-gcc", "qemu-system-aarch64")


FAULT_C = """\
#include <asm/acpi.h>
#include <asm/bug.h>

\tfault = handle_mm_fault(vma, addr, mm_flags | FAULT_FLAG_VMA_LOCK, regs);
\tfault = handle_mm_fault(vma, addr, mm_flags, regs);
"""


def fake_tree(root: Path) -> Path:
    """Make the smallest kernel tree that the launcher and the graft accept."""
    files = {
        "Makefile": "VERSION = 6\n",
        "Kconfig": 'mainmenu "Linux"\n\nsource "lib/Kconfig.debug"\n\nsource "Documentation/Kconfig"\n',
        "lib/Makefile": "obj-y += ctype.o\n\nobj-$(CONFIG_FIRMWARE_TABLE) += fw_table.o\n\nsubdir-y += x\n",
        "lib/ctype.c": "int ctype;\n",
        "mm/Makefile": "obj-y += memory.o\nobj-$(CONFIG_SHRINKER_DEBUG) += shrinker_debug.o\nobj-y += last.o\n",
        "mm/memory.c": "int memory;\n",
        "arch/arm64/mm/Makefile": "obj-y\t\t\t\t:= fault.o\nobj-$(CONFIG_ARM64_CONTPTE)\t+= contpte.o\n",
        "arch/riscv/mm/Makefile": "obj-y += init.o\n\nobj-$(CONFIG_HUGETLB_PAGE) += hugetlbpage.o\n",
        "tools/testing/selftests/mm/Makefile": "TEST_GEN_FILES += cow\nTEST_GEN_FILES += droppable\n",
        "arch/arm64/mm/contpte.c": "int contpte;\n",
        "arch/arm64/Kconfig": 'config X\n\nendmenu # "ARMv8.1 architectural features"\n\nmenu\n',
        "arch/arm64/mm/fault.c": FAULT_C,
        "drivers/net/dummy.c": "int dummy;\n",
        "tools/testing/kunit/kunit.py": KUNIT_PY,
        ".gitignore": ".*\n*.o\n!.gitignore\n/vmlinux\n/include/config/\n",
    }
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    (root / "mm/Makefile").chmod(0o640)
    return root


def files(suffix: str) -> list[Path]:
    """The files of the suites whose names end in `suffix`."""
    return [path for folder in ("mm", "arch/*/mm", "lib/*") for path in PROJECT.glob(f"{folder}/tests/*{suffix}")]


def fake_project(root: Path) -> Path:
    """An overlay of four files."""
    for name in ("Kconfig.kunit", "lib/pgtable_kunit/Makefile", "mm/tests/Makefile", "arch/arm64/mm/tests/a_kunit.c"):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# {name}\n")
    return root


def state(root: Path, links: bool = True) -> dict[str, tuple[object, ...]]:
    """The state of all files below `root` that a write would change: contents, modes, time stamps, link counts."""
    result: dict[str, tuple[object, ...]] = {}
    for path in sorted(root.rglob("*")):
        stat = path.lstat()
        times = (stat.st_mtime_ns, stat.st_ctime_ns, stat.st_nlink) if links else ()
        result[str(path.relative_to(root))] = (path.read_bytes() if path.is_file() else b"", stat.st_mode, *times)
    return result


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return fake_tree(tmp_path / "linux")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return fake_project(tmp_path / "project")


@dataclass
class User:
    """A user with a shell in an empty folder, and with fake tools in PATH."""

    home: Path
    environment: dict[str, str] = field(default_factory=dict)

    def kunit(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run ./tools/testing/kunit/kunit.py."""
        return subprocess.run(
            [PROJECT / "tools/testing/kunit/kunit.py", *arguments],
            env={**self.environment, **variables},
            cwd=self.home,
            capture_output=True,
            text=True,
            timeout=60,
        )

    def calls(self) -> list[dict[str, object]]:
        """The calls of the kernel's kunit.py so far."""
        path = Path(self.environment["FAKE_CALLS"])
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def makes(self) -> int:
        """The number of calls of the fake make so far."""
        path = Path(self.environment["FAKE_CALLS"] + ".make")
        return len(path.read_text().splitlines()) if path.exists() else 0


@pytest.fixture
def user(tmp_path: Path, tree: Path) -> User:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in TOOLS:
        (programs / name).write_text("#!/bin/sh\n")
        (programs / name).chmod(0o755)
    (programs / "make").write_text(MAKE)
    (programs / "make").chmod(0o755)
    home = tmp_path / "home"
    home.mkdir()
    environment: Mapping[str, str] = {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "HOME": str(home),
        "KDIR": str(tree),
        "O": str(tmp_path / "out"),
        "FAKE_CALLS": str(tmp_path / "calls"),
    }
    return User(home, dict(environment))
