# SPDX-License-Identifier: GPL-2.0
"""Runs stressors of stress-ng on a kernel that Debian has built, with the plugin.

The kernel, stress-ng and its libraries come from packages. The packages have no System.map, so a first boot without the
plugin prints the symbols of the kernel. With nokaslr, each boot has the same addresses.
"""

import base64
import gzip
import os
import re
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..boot import guest, results
from ..core import progress, variables
from ..core.errors import UserError
from ..kernel import packaged
from .boots import Machine
from .symbols import Symbols

INIT = Path(__file__).with_suffix(".init")
USUAL = 5
"""The usual time of a stressor, in seconds."""

BEGIN, END = "mmcheck: symbols", "mmcheck: end"
"""The lines of the console before and after the symbols."""

_RUN = re.compile(r"^mmcheck: (run|end) (\S+)(?: (\d+))?$", re.ASCII)
_OPERATIONS = re.compile(r"^stress-ng: \w+: +\[\d+\] (\S+) +(\d+) +[\d.]+ +[\d.]+ +[\d.]+ ", re.ASCII)

SKIPPED = {3: "not enough resources", 4: "not implemented"}
"""The exit statuses of stress-ng that mean that a stressor could not run."""


def judge(environ: Mapping[str, str]) -> None:
    """Raise UserError if a variable contradicts STRESS=, or has an invalid value."""
    for name in ("TESTS", "COMMAND", "ONLY", "INITRD", "KDIR", "PATCH"):
        if environ.get(name):
            raise UserError(
                f"{name}= has no effect with STRESS=, which boots a kernel that Debian has built: leave it out"
            )
    names = variables.name_list(environ["STRESS"])
    wrong = [name for name in names if not re.fullmatch(r"[a-z0-9][a-z0-9-]*", name)]
    if wrong or not names:
        raise UserError(f"STRESS={environ['STRESS']}: give names of stressors, such as 'vm mremap fork'")
    seconds = environ.get("SECONDS") or str(USUAL)
    if not seconds.isdigit() or int(seconds) < 1:
        raise UserError(f"SECONDS={seconds}: use a number of seconds, at least 1")


def prepared(environ: Mapping[str, str], machine: Machine, cache: Path, wanted: str) -> dict[str, str]:
    """The variables, with IMAGE= and INITRD= for the stressors. Packages that the cache lacks are fetched.

    machine: boots the kernel to learn its symbols, if necessary
    wanted:  the version of the packaged kernel
    """
    judge(environ)
    image = Path(environ["IMAGE"]) if environ.get("IMAGE") else packaged.kernel(wanted, cache) / packaged.IMAGE_FILE
    shell = guest.packages("arm64", ["busybox-static"], cache) / "busybox-static"
    merged = shell / "usr/bin/busybox"
    busybox = merged if merged.exists() else shell / "bin/busybox"
    files = {"init": INIT, "bin/busybox": busybox}
    for path in sorted(packaged.program("stress-ng", "usr/bin/stress-ng", cache).iterdir()):
        files[f"{'lib' if '.so' in path.name else 'bin'}/{path.name}"] = path
    if (driver := image.with_name(packaged.DRIVER)).exists():
        files[driver.name] = driver
    seconds = environ.get("SECONDS") or str(USUAL)
    names = variables.name_list(environ["STRESS"])
    machine.out.mkdir(parents=True, exist_ok=True)
    listed, initrd = machine.out / "list", machine.out / "initrd"
    listed.write_text("".join(f"{seconds} {name}\n" for name in names))
    initrd.write_bytes(gzip.compress(packed({**files, "list": listed}), 1, mtime=0))
    if not environ.get("IMAGE") and not (table := image.with_name(packaged.MAP)).exists():
        new = table.with_suffix(".new")
        new.write_text(learned(machine, image, initrd))
        new.rename(table)
    return {**environ, "IMAGE": str(image), "INITRD": str(initrd)}


def learned(machine: Machine, image: Path, initrd: Path) -> str:
    """The symbols of a kernel, as in a System.map. A boot without the plugin prints them."""
    append = "console=ttyAMA0 panic=-1 nokaslr SYMBOLS=1"
    with progress.Progress("booting without the plugin, to learn the symbols of the kernel"):
        machine.run(image, append, Symbols(), ["-initrd", str(initrd)], until=END)
    return table((machine.out / "console").read_text(errors="replace"))


def table(said: str) -> str:
    """The symbols that a console has, without the symbols of modules."""
    text = said.replace("\r", "").partition(f"{BEGIN}\n")[2].partition(END)[0]
    try:
        lines = gzip.decompress(base64.b64decode(text)).decode().splitlines(keepends=True)
    except (ValueError, OSError, EOFError):
        lines = []
    kept = [line for line in lines if "\t" not in line and not line.startswith("0" * 16)]
    if not kept:
        raise UserError("the kernel printed no symbols; choose another kernel with KERNEL=")
    return "".join(kept)


def packed(files: Mapping[str, Path]) -> bytes:
    """An initramfs in the format newc, with these files and the folders that init needs."""
    folders = ("bin", "dev", "lib", "proc", "sys", "tmp")
    entries = [_entry(name, stat.S_IFDIR | 0o755, b"") for name in folders]
    entries.append(_entry("dev/console", stat.S_IFCHR | 0o600, b"", (5, 1)))
    entries += [_entry(name, stat.S_IFREG | 0o755, path.read_bytes()) for name, path in files.items()]
    return b"".join([*entries, _entry("TRAILER!!!", 0, b"")])


def _entry(name: str, mode: int, data: bytes, device: tuple[int, int] = (0, 0)) -> bytes:
    numbers = (0, mode, 0, 0, 1, 0, len(data), 0, 0, *device, len(name) + 1, 0)
    head = b"070701" + b"".join(b"%08X" % number for number in numbers) + os.fsencode(name) + b"\0"
    return b"".join(part + bytes(-len(part) % 4) for part in (head, data))


def outcome(console: Path) -> tuple[list[results.Case], dict[str, int]]:
    """The stressors that a console names, each as a case, and the number of operations of each stressor."""
    lines = console.read_text(errors="replace").splitlines() if console.exists() else []
    found: dict[str, results.Case] = {}
    operations: dict[str, int] = {}
    said: list[str] = []
    for line in lines:
        if match := _OPERATIONS.match(line):
            operations.setdefault(match[1], int(match[2]))
        if not (match := _RUN.match(line)):
            said.append(line)
        elif match[1] == "run":
            said = []
            found[match[2]] = results.Case("stress-ng", match[2], "failed", text=["it did not end"])
        else:
            status = int(match[3])
            state = "skipped" if status in SKIPPED else "failed" if status else "passed"
            text = [SKIPPED[status]] if status in SKIPPED else [f"exit status {status}", *said] if status else []
            found[match[2]] = results.Case("stress-ng", match[2], state, text=text)
    return [*found.values()], operations


def text(cases: Sequence[results.Case], operations: Mapping[str, int], without: Mapping[str, int]) -> str:
    """The outcome of all stressors as text for a terminal.

    without: the operations without the plugin, if they are known
    """
    did = [
        f"{one.name} {operations.get(one.name, 0)}" + (f" ({without[one.name]})" if one.name in without else "")
        for one in cases
        if one.state == "passed"
    ]
    others = [f"{one.name} {one.state}: {one.text[0]}" for one in cases if one.state != "passed"]
    about = "operations (without the plugin)" if without else "operations"
    return "\n".join([*others, f"{about} of {len(did)} stressors: {', '.join(did)}"])
