# SPDX-License-Identifier: GPL-2.0
"""Stand-ins for a kernel tree, its kunit.py and the emulators, which would take minutes. They build and boot no kernel.

A stand-in fails, as the real program does, for an option, a file, a suite or a parameter that does not exist. It runs
the same tests as a kernel: the suites that the tree has for the architecture, and the programs in the initrd.
"""

import argparse
import fnmatch
import itertools
import json
import os
import re
import socket
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

from mmcheck.run import selftests

VALUES = ("arch", "build_dir", "cross_compile", "filter", "filter_action", "jobs", "qemu_config", "timeout")
LISTS = ("kconfig_add", "kernel_args", "kunitconfig", "make_options", "qemu_args")
BARE = ("list_tests", "list_tests_attr")
"""Options that kunit.py has in 6.12 and in 7.3."""

PROGRAM = """\
#!{python}
import sys
sys.path.insert(0, "{package}")
from mmcheck.tests import stand_ins
sys.exit(stand_ins.{function}(sys.argv[1:]))
"""

MAKEFILE = """\
VERSION = 6
PATCHLEVEL = 12
all:
	@mkdir -p $(O)/arch/arm64/boot $(O)/arch/x86/boot $(O)/usr
	@for image in vmlinux arch/arm64/boot/Image arch/x86/boot/bzImage; do echo $(CURDIR) > $(O)/$$image; done
	@printf 'ffff T __set_fixmap\\nfffe T paging_init\\n' > $(O)/System.map
	@printf '#!/bin/sh\\ncat "$$1"\\n' > $(O)/usr/gen_init_cpio && chmod +x $(O)/usr/gen_init_cpio
headers:
"""

SELFTESTS = "TEST_GEN_FILES += droppable\n$(OUTPUT)/%: %.c\n\t@cp $< $@\n"
"""The build of a program only copies its source. The source shows which cases the program has."""

GUEST = ("busybox-static", "bash-static", "libcap-dev", "libnuma-dev")
"""Packages of the archive with programs and libraries for the virtual machine."""

MINCORE = "\nint mincore(void)\n{\n\treturn 1;\n}\n"
PATCH = """\
--- a/mm/mincore.c
+++ b/mm/mincore.c
@@ -2,4 +2,4 @@
 int mincore(void)
 {
-\treturn 1;
+\treturn 0;
 }
"""

LCOV = '#!/bin/sh\nwhile [ $# -gt 0 ]; do case $1 in -o|--output-file) : > "$2";; esac; shift; done\n'

NUMBER = "number fork 64K ns=9 faults=1 copies=1 invalidations=1 ns_median=9 spread=1 pages=1 clears=1"
"""The line that each benchmark prints."""


def install(file: Path, text: str) -> None:
    """Write a program."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    file.chmod(0o755)


def program(file: Path, function: str, package: Path) -> None:
    """Make `file` a program that calls a function of the copy of this module below `package`."""
    install(file, PROGRAM.format(python=sys.executable, package=package, function=function))


def mutated(package: Path) -> dict[str, str]:
    """For each file, the code that the mutants of the catalogue below `package` change."""
    found: dict[str, str] = {}
    for path in sorted((package / "mmcheck/mutants").rglob("*.toml")):
        for entry in tomllib.loads(path.read_text()).get("mutant", []):
            text = f"\nstatic int {entry.get('in', 'anything')}(void)\n{{\n\t{entry['old']}\n}}\n"
            found[entry["file"]] = found.get(entry["file"], "") + text
    return found


def suites(root: Path, arch: str) -> dict[str, list[str]]:
    """The cases of each suite that a grafted tree has for an architecture."""
    found = {}
    for folder in ("mm", "lib/*", f"arch/{arch}/mm"):
        for file in sorted(root.glob(f"{folder}/tests/*_kunit.c")):
            text = file.read_text()
            if name := re.search(r'^\t\.name = "(\w+)"', text, re.MULTILINE):
                found[name[1]] = re.findall(r"KUNIT_CASE\w*\((\w+)", text)
    return found


def chosen(root: Path, arch: str, glob: str) -> dict[str, list[str]]:
    """The suites and cases that a filter selects."""
    suite, _, case = glob.partition(".")
    found = {
        name: [one for one in cases if fnmatch.fnmatch(one, case or "*")]
        for name, cases in suites(root, arch).items()
        if fnmatch.fnmatch(name, suite or "*")
    }
    return {name: cases for name, cases in found.items() if cases}


def console(chosen: dict[str, list[str]], bad: bool = False) -> Iterator[str]:
    """The console of a boot. With `bad`, the first case fails."""
    yield from ("KTAP version 1", f"1..{len(chosen)}")
    for place, (suite, cases) in enumerate(chosen.items(), 1):
        yield from ("    KTAP version 1", f"    # Subtest: {suite}", f"    1..{len(cases)}")
        if "bench" in suite or suite in ("clear_pages", "folio_zero_order"):
            yield f"    # {cases[0]}: {NUMBER}"
        for number, case in enumerate(cases, 1):
            yield f"    {'not ok' if bad else 'ok'} {number} {case}"
            bad = False
        yield f"ok {place} {suite}"


def has_parameter(root: Path, word: str) -> bool:
    """Whether the tree has the parameter of a word of the form module.parameter=value. True for other words."""
    match = re.fullmatch(r"(\w+)\.(\w+)=(\S+)", word)
    if not match or match[1] in ("kunit", "printk"):
        return "." not in word.partition("=")[0] or bool(match)
    for file in (path for folder in ("mm", "lib", "arch") for path in root.rglob(f"{folder}/**/*.c")):
        text = file.read_text()
        if f'\nearly_param("{match[1]}.{match[2]}",' in text:
            return True
        if re.search(rf"^module_param(_named)?\({match[2]},", text, re.MULTILINE):
            objects = re.sub(r"\\\n", " ", (file.parent / "Makefile").read_text())
            composite = re.search(rf"^{match[1]}-\S+ [+:]?= .*\b{file.stem}\.o", objects, re.MULTILINE)
            if (file.stem == match[1] or composite) and match[3].isdigit():
                return True
    return False


def kunit(words: Sequence[str]) -> int:
    """The stand-in for the kernel's kunit.py."""
    root = Path(sys.argv[0]).resolve().parents[3]
    parser = argparse.ArgumentParser(allow_abbrev=False)
    for name in VALUES:
        parser.add_argument(f"--{name}")
    for name in LISTS:
        parser.add_argument(f"--{name}", action="append", default=[])
    for name in BARE:
        parser.add_argument(f"--{name}", action="store_true")
    for name in ("json", "raw_output"):
        parser.add_argument(f"--{name}", nargs="?", const="stdout")
    parser.add_argument("glob", nargs="?", default="*")
    verb, *rest = words
    options = parser.parse_args(rest)
    os.chdir(root)
    for config in map(Path, options.kunitconfig):
        if not (config / ".kunitconfig" if config.is_dir() else config).is_file():
            sys.exit(f"{config}: no such configuration")
    if wrong := [word for word in options.kernel_args if not has_parameter(root, word)]:
        sys.exit(f"{wrong}: no such parameter")
    build = Path(options.build_dir or ".kunit")
    build.mkdir(exist_ok=True)
    (build / ".config").write_text("CONFIG_KUNIT=y\n")
    if verb in ("run", "build"):
        subprocess.run(["make", "all", f"ARCH={options.arch}", f"O={build}", "--jobs=2"], check=True)
    if verb not in ("run", "exec"):
        return 0
    found = chosen(root, options.arch, options.glob)
    if options.list_tests:
        (build / "test.log").write_text("KTAP version 1\n")
        print("\n".join(f"{suite}.{case}" for suite, cases in found.items() for case in cases))
        return 0
    text = "".join(f"{line}\n" for line in console(found))
    (build / "test.log").write_text(text)
    if options.json:
        Path(options.json).write_text(json.dumps({"sub_groups": [], "test_cases": []}))
    print(text)
    return 0 if found else 1


RETURN = 0xFFFF800080002000


def packet(text: str) -> bytes:
    """A packet of GDB's remote protocol, after the acknowledgement of the last packet."""
    return f"+${text}#{sum(text.encode()) & 0xFF:02x}".encode()


class Stub:
    """Answers GDB as QEMU does. It executes 500 instructions up to the first stop, and 1234 more up to the second."""

    def __init__(self, connection: socket.socket, counts: bool = True) -> None:
        self.connection, self.counts = connection, counts
        self.stops: list[int] = []

    def run(self) -> None:
        """Answer until the other end closes."""
        rest = b""
        while part := self.connection.recv(100):
            rest += part.replace(b"+", b"")
            while b"#" in rest[:-2]:
                text, _, rest = rest.partition(b"#")
                rest = rest[2:]
                for answer in self.answers(text[1:].decode()):
                    # Send each packet in pieces: one read need not return exactly one packet.
                    for piece in (packet(answer)[:3], packet(answer)[3:]):
                        self.connection.sendall(piece)

    def answers(self, text: str) -> list[str]:
        """The packets that answer a packet."""
        if text.startswith("qRcmd,"):
            assert bytes.fromhex(text[6:]) == b"info replay"
            executed = 500 if len(self.stops) == 1 else 1734
            said = f"Recording execution 'x': instruction count = {executed}\r\n" if self.counts else "unknown"
            return [*(f"O{said[i : i + 20].encode().hex()}" for i in range(0, len(said), 20)), "OK"]
        if text.startswith("Z0,"):
            self.stops.append(int(text.split(",")[1], 16))
        if text == "g":
            return [bytes(30 * 8).hex() + RETURN.to_bytes(8, "little").hex() + bytes(16).hex()]
        return ["T05thread:01;" if text == "c" else "OK"]


def noticed(tree: Path, number: int) -> bool:
    """Whether a test notices mutant `number`. NOTICE=1 means all mutants, FILE:TEXT means mutants with TEXT in FILE."""
    file, _, text = os.environ.get("NOTICE", "").partition(":")
    if not text or not number:
        return bool(file) and bool(number)
    mark = f"/* mutant {number} %s */"
    content = (tree / file).read_text()
    return text in content.partition(mark % "begins")[2].partition(mark % "ends")[0]


def emulator(words: Sequence[str]) -> int:
    """The stand-in for QEMU. It boots an image that MAKEFILE has made; such an image contains the path of the tree.

    A boot takes $SLOW seconds. With $FAILS the first case fails.
    """
    if "-version" in words:
        return 0
    values = dict(itertools.pairwise(words))
    if "-S" in words and "-chardev" not in values:  # QEMU would wait for a debugger, but gdb is a stand-in too
        return 0
    if "-gdb" in values:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(values["-chardev"].rpartition("path=")[2])
            Stub(connection).run()
        return 0
    if "-D" in values:
        Path(values["-D"]).touch()
        return 0
    line = dict(word.partition("=")[::2] for word in values["-append"].split())
    image = Path(values["-kernel"])
    time.sleep(float(os.environ.get("SLOW", 0)))
    tree = Path(image.read_text().strip())
    bad = "FAILS" in os.environ or any(
        noticed(tree, int(line.get(f"mmcheck_mutant{kind}", 0))) for kind in ("", "_early")
    )
    if line.get("kunit.enable") == "1":
        arch = "x86_64" if image.name == "bzImage" else "arm64"
        text: Iterator[str] = console(chosen(tree, arch, line.get("kunit.filter_glob", "*")), bad)
    else:
        text = programs(Path(values["-initrd"]).read_text(), bad)
    print("\n".join(text), flush=True)
    return 0


def programs(listing: str, bad: bool) -> Iterator[str]:
    """The console of a machine with these files, as the selftests' init prints it. With `bad`, the first case fails."""
    files = dict(re.findall(r"^file /tests/(\S+) (\S+)", listing, re.MULTILINE))
    yield "[    0.802382] Run /init as init process"
    for place, line in enumerate(Path(files["list"]).read_text().splitlines(), 1):
        _, name, *cases = line.split()
        every = list(selftests.cases(Path(files[name]).read_text()))
        if "--machine" in cases:  # the only case of folio_walk is named after the seed
            every = [f"seed_{cases[cases.index('--seed') + 1]}"]
            cases = []
        yield f"[    1.0] # selftests: mm: {name}"
        for number, case in enumerate([case for case in cases if case != "-r"] or every, 1):
            assert case in every, case
            if bad:
                yield f"[    1.1] # {name}.c:1:{case.rpartition('.')[2]}:Expected 1 (1) == 2 (2)"
            yield f"[    1.1] {'not ok' if bad else 'ok'} {number} {case}"
            bad = False
        yield f"[    1.2] ok {place} selftests: mm: {name}"
