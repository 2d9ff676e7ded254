# SPDX-License-Identifier: GPL-2.0
"""`./mmcheck audit -- PROGRAM ARGS`: runs a program in a virtual machine, and audits page tables and folios after it.

PROGRAM is a file of this machine, linked with -static. If there is no such file, the shell of the virtual
machine runs the whole line. The audit is a separate case.
"""

import re
import shlex
import struct
from collections.abc import Mapping
from pathlib import Path

from ..core import progress
from ..core.errors import UserError
from ..kernel import toolchain
from . import kselftest
from .selftests import Program

MACHINE = {"x86_64": 62, "arm64": 183}
"""The number that identifies each architecture in the header of a program."""

INTERPRETER = 3
"""The type of the program header that names a dynamic linker."""


def judge(path: Path, arch: str) -> None:
    """Raise UserError if the program at `path` cannot run in the virtual machine."""
    data = path.read_bytes()
    if data[:4] != b"\x7fELF":
        return
    machine = struct.unpack_from("<H", data, 18)[0]
    if machine != MACHINE[arch]:
        raise UserError(f"{path} is not a program for {arch}; set ARCH=, or build the program for {arch}")
    start, size, number = struct.unpack_from("<Q", data, 32)[0], *struct.unpack_from("<HH", data, 54)
    kinds = [struct.unpack_from("<I", data, start + place * size)[0] for place in range(number)]
    if INTERPRETER in kinds:
        raise UserError(f"{path} is not static: link it with -static; the virtual machine has no shared libraries")


def script(line: str, arch: str) -> tuple[str, str, dict[str, Path]]:
    """A program that runs `line` in the virtual machine: its name, its shell script, and the files that it needs."""
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise UserError(f"{line}: {error}") from None
    if not words:
        raise UserError("no program: use ./mmcheck audit -- PROGRAM ARGS")
    path = Path(words[0])
    name = re.sub(r"[^\w-]", "_", path.name) or "shell"
    if not path.is_file():
        return name, f"#!/bin/sh\n{line}\n", {}
    if not path.stat().st_mode & 0o100:
        raise UserError(f"{path} is not executable: chmod +x {path}")
    judge(path, arch)
    words[0] = f"./{name}.program"
    return name, f"#!/bin/sh\nexec {shlex.join(words)}\n", {f"{name}.program": path}


def run(environ: Mapping[str, str]) -> int:
    """The command; returns the exit status."""
    environ = {**environ, "ARCH": environ.get("ARCH") or toolchain.own_arch(), "AUDIT": "1"}
    if environ["ARCH"] not in MACHINE:
        raise UserError(f"ARCH={environ['ARCH']}: this command boots only {', '.join(MACHINE)}")
    name, text, files = script(environ.get("COMMAND") or "", environ["ARCH"])
    session = kselftest.session_of(environ, " ".join(["./mmcheck audit", "--", environ["COMMAND"]]))
    with session.recorded():
        session.kernel()
        wrapper = session.folder / "audited"
        wrapper.write_text(text)
        program = Program(name)
        found = session.run([program], [program], {name: wrapper, **files})
    for case in found:
        if case.state == "failed":
            for line in case.text:
                progress.say(f"{case.suite}.{case.name}: {line}")
    return kselftest.report(found, session, [], environ, {})
