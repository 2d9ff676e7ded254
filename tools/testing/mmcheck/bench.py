# SPDX-License-Identifier: GPL-2.0
"""make bench: what batches, contiguous blocks, tracking of owners, extents and forced write faults are worth.

Runs the benchmark suites on kernels that differ in one thing, and sets their numbers beside each other. On arm64 time
is a number of instructions, from which the emulator derives it: like page faults, copies and TLB invalidations it is
the same on each run. Clearing is measured in nanoseconds, by this machine's own processor where it can run the kernel.

make bench-compare A=... B=... sets two results beside each other.
"""

import dataclasses
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from . import command, graft, guest, launcher, linear_map, progress, source
from .cell import Cell
from .errors import UserError
from .settings import from_environment

KERNELS = ("6.12", "7.3")
COUNTED = "-icount shift=0 -m 3072"
"""Time is a number of instructions; memory for 1 GiB and its copies."""

LINEAR_MAPS = (
    ("6.12", "pages", linear_map.CPU),
    ("7.3", "pages", linear_map.CPU),
    ("7.3", "blocks", linear_map.BLOCKS_CPU),
)
"""Kernels, what they map memory by, and the CPU with which they do."""

_NUMBER = re.compile(r"# .*\bnumber (.+)$")
_FIELD = re.compile(r"(\w+)=(\d+)")
NOISY = ("ns_median",)
"""Fields that a spread belongs to; all others are exact."""


@dataclass(frozen=True)
class Number:
    """One line of a suite: on which kernel, of what, and its fields."""

    run: str
    what: str
    fields: Mapping[str, int]


@dataclass(frozen=True)
class Part:
    """One suite on some kernels.

    name:  of the suite
    cells: kernels; the first is what the others are compared with
    words: for the kernel's command line
    """

    name: str
    cells: tuple[Cell, ...]
    words: tuple[str, ...]


def parts(mib: int, repeats: int) -> list[Part]:
    """All of it: `mib` MiB of memory to work on, `repeats` runs for what is measured in time."""
    without = ("--kconfig_add=CONFIG_ARM64_CONTPTE=n",)
    counted = (f"--qemu_args={COUNTED}",)
    blocks = [Cell(k, "arm64", "4K", "no contpte" * bool(w), (*w, *counted)) for k in KERNELS for w in (without, ())]
    atomics = [
        Cell(k, "arm64", "4K", "stock" if f == "" else "", counted, features=f) for k in KERNELS for f in ("", None)
    ]
    clearing = [Cell(k, "x86_64") for k in KERNELS]
    return [
        Part("folio_bench", tuple(blocks), (f"folio_bench.mib={mib}",)),
        Part("atomic_rmw_bench", tuple(atomics), (f"atomic_rmw_bench.mib={min(mib, 64)}",)),
        Part("clear_pages", tuple(clearing), (f"clear_pages.bench={repeats}",)),
    ]


def numbers(run: str, console: Iterable[str]) -> list[Number]:
    """The lines for machines on a console."""
    found = []
    for line in console:
        if match := _NUMBER.search(line):
            fields = {name: int(value) for name, value in _FIELD.findall(match[1])}
            what = " ".join(word for word in match[1].split() if "=" not in word)
            found.append(Number(run, what, fields))
    return found


def run_part(part: Part, environ: Mapping[str, str], out: Path) -> list[Number]:
    """Boot the kernels of a part one after the other. Raises UserError where one has no numbers."""
    found: list[Number] = []
    for cell in part.cells:
        progress.say(f"{part.name} on {cell}")
        words = [f"--kernel_args={word}" for word in (*part.words, "pgtable_kunit.timeout=600")]
        launch = launcher.prepare(
            launcher.parse(cell.command(*words, part.name)[1:]), {**environ, **cell.variables, "O": str(out)}
        )
        launch.aside = True
        log = launch.build / "test.log"
        if launch.run():
            raise UserError(f"{part.name} on {cell} failed: see {log}")
        with log.open(errors="replace") as console:
            own = numbers(str(cell), console)
        if not own:
            raise UserError(f"{part.name} on {cell} gave no numbers: see {log}")
        found += own
    return found


def run_linear_map(environ: Mapping[str, str], out: Path) -> list[Number]:
    """How often booting takes a page table out of the fixmap, for each GiB of memory."""
    found = []
    for kernel, by, cpu in LINEAR_MAPS:
        cell = Cell(kernel, "arm64")
        launch = launcher.prepare(
            launcher.parse(["build", "--arch=arm64"]), {**environ, **cell.variables, "O": str(out)}
        )
        launch.aside = True
        if launch.run():
            raise UserError(f"linux {launch.label} does not build: see the lines above")
        clears = round(linear_map.clears_per_gib(launch.build, cpu))
        found.append(Number(str(cell), f"linear map by {by}", {"clears_per_gib": clears}))
    return found


@dataclass
class Table:
    """Rows for people, and a plot."""

    title: str
    head: list[str]
    rows: list[list[str]] = field(default_factory=list)
    svg: str = ""


def grouped(title: str, found: Sequence[Number], shown: Sequence[str], bar: Callable[[Number], float]) -> Table:
    """A table of numbers: for each operation a row a kernel, with the ratio to its first row; and bars of it."""
    table = Table(title, ["what", "kernel", *(f"#{name}" for name in shown), "#ratio"])
    bars: list[tuple[str, float]] = []
    for what in dict.fromkeys(number.what for number in found):
        own = [number for number in found if number.what == what]
        for number in own:
            ratio = bar(number) / bar(own[0]) if bar(own[0]) else 0.0
            cells = [str(number.fields.get(name, "")) for name in shown]
            table.rows.append([what, number.run, *cells, f"{ratio:.3f}"])
            bars.append((f"{what}, {number.run}", ratio))
    table.svg = plot(bars)
    return table


def plot(bars: Sequence[tuple[str, float]]) -> str:
    """Horizontal bars, in relation to 1."""
    most = max([1.0, *(value for _, value in bars)])
    lines = [f'<svg viewBox="0 0 640 {18 * len(bars) + 4}" role="img">']
    for place, (name, value) in enumerate(bars):
        y, width = 18 * place + 2, round(320 * value / most, 1)
        lines.append(f'<rect class="bar" x="260" y="{y}" width="{width}" height="12" />')
        lines.append(f'<text x="255" y="{y + 10}" text-anchor="end">{escape(name)}</text>')
        lines.append(f'<text x="{265 + width}" y="{y + 10}">{value:.2f}</text>')
    return "".join([*lines, "</svg>"])


def tables(found: Mapping[str, Sequence[Number]]) -> list[Table]:
    """What is shown of each part."""

    def rate(number: Number) -> float:
        size = number.what.split()[-1]
        scale = 1024 if size[-1] == "M" else 1
        return int(size[:-1]) * scale * 1024 / max(1, number.fields["ns_median"])

    result = []
    if own := found.get("folio_bench"):
        shown = ("ns", "faults", "copies", "invalidations")
        result.append(grouped("System calls on memory", own, shown, lambda n: n.fields["ns"]))
    if own := found.get("atomic_rmw_bench"):
        result.append(grouped("Memory filled by instructions", own, ("ns", "faults"), lambda n: n.fields["ns"]))
    if own := found.get("clear_pages"):
        rates = [n for n in own if "ns_median" in n.fields]
        result.append(grouped("Clearing", rates, ("ns_median", "spread"), rate))
    if own := found.get("linear_map"):
        result.append(grouped("Linear map", own, ("clears_per_gib",), lambda n: n.fields["clears_per_gib"]))
    return result


def text(table: Table) -> str:
    """A table for a terminal."""
    lines = [[name.lstrip("#") for name in table.head], *table.rows]
    width = [max(len(line[i]) for line in lines) for i in range(len(table.head))]
    number = [name.startswith("#") for name in table.head]
    return "\n".join(
        [table.title]
        + [
            "  ".join(
                cell.rjust(w) if right else cell.ljust(w) for cell, w, right in zip(line, width, number, strict=True)
            ).rstrip()
            for line in lines
        ]
    )


def ktap(found: Mapping[str, Sequence[Number]]) -> str:
    """The numbers as KTAP: a suite a part, a case a line, its fields as diagnostics."""
    lines = ["KTAP version 1", f"1..{len(found)}"]
    for place, (name, own) in enumerate(found.items(), 1):
        lines += ["    KTAP version 1", f"    # Subtest: {name}", f"    1..{len(own)}"]
        for case, number in enumerate(own, 1):
            fields = " ".join(f"{key}={value}" for key, value in number.fields.items())
            lines += [f"    # number {number.what} {fields}", f"    ok {case} {number.what} on {number.run}"]
        lines.append(f"ok {place} {name}")
    return "\n".join(lines)


def run(environ: Mapping[str, str]) -> int:
    """The command; returns the exit status."""
    settings = from_environment({**environ, "ARCH": "", "PAGES": ""})
    if settings.kdir:
        raise UserError("KDIR: benchmarks compare the packaged kernels; use kunit.py with folio_bench.mib= on your own")
    mib, repeats = (_whole(environ, name, default) for name, default in (("MIB", 1024), ("REPEATS", 25)))
    only = environ.get("ONLY", "")
    (settings.out / "bench").mkdir(parents=True, exist_ok=True)
    for kernel in KERNELS:
        source.obtain(dataclasses.replace(settings, kernel=kernel))
    found: dict[str, list[Number]] = {}
    for part in parts(mib, repeats):
        if only in ("", part.name):
            if part.name == "clear_pages" and not guest.has_kvm("x86_64"):
                progress.say(
                    "clear_pages: this machine does not run x86_64 kernels by itself; times are the emulator's"
                )
            found[part.name] = run_part(part, {**environ, "KDIR": ""}, settings.out)
    if only in ("", "linear_map"):
        found["linear_map"] = run_linear_map(environ, settings.out)
    if not found:
        raise UserError(f"ONLY={only}: use {', '.join(p.name for p in parts(mib, repeats))} or linear_map")
    shown = tables(found)
    content = {
        "numbers": {name: [dataclasses.asdict(number) for number in own] for name, own in found.items()},
        "tables": [dataclasses.asdict(table) for table in shown],
    }
    graft.replace(settings.out / "bench/bench.json", json.dumps(content, indent=1).encode())
    for table in shown:
        file = settings.out / "bench" / f"{table.title.lower().replace(' ', '-')}.svg"
        graft.replace(file, table.svg.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ').encode())
    print(ktap(found))
    for table in shown:
        print("\n".join(f"# {line}" for line in text(table).splitlines()))
    progress.say(f"bench.json and plots in {settings.out / 'bench'}")
    return 0


def _whole(environ: Mapping[str, str], name: str, default: int) -> int:
    value = environ.get(name) or str(default)
    if not value.isdigit() or value == "0":
        raise UserError(f"{name}={value}: use a number")
    return int(value)


def load(path: str) -> dict[tuple[str, str, str], dict[str, int]]:
    """The numbers of one result, by part, operation and kernel."""
    file = Path(path)
    file = file / "bench/bench.json" if file.is_dir() else file
    try:
        content: dict[str, Any] = json.loads(file.read_text())
        return {
            (name, number["what"], number["run"]): number["fields"]
            for name, own in content["numbers"].items()
            for number in own
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise UserError(f"{path}: no result of make bench (an O= folder, or its bench/bench.json)") from None


def verdict(name: str, a: Mapping[str, int], b: Mapping[str, int]) -> str:
    """What to say of two values of one field: nothing where they are the same, or apart by no more than they spread."""
    if name not in NOISY:
        return "" if a[name] == b[name] else "differs"
    apart, spread = abs(a[name] - b[name]), max(a.get("spread", 0), b.get("spread", 0))
    if apart <= 3 * spread or apart * 20 < max(a[name], b[name]):
        return ""
    return "faster" if b[name] < a[name] else "slower"


def compare(a: str, b: str) -> str:
    """Two results beside each other, as a table of what is different."""
    one, two = load(a), load(b)
    both = [key for key in one if key in two]
    if not both:
        raise UserError(f"{a} and {b} have no number in common")
    table = Table("", ["what", "kernel", "of", "#A", "#B", "#B/A", "verdict"])
    same = 0
    for key in both:
        for name in one[key]:
            if name not in two[key] or name in ("spread", "ns_min", "ns_max", "runs", "mib"):
                continue
            said = verdict(name, one[key], two[key])
            same += not said
            if said:
                x, y = one[key][name], two[key][name]
                table.rows.append([key[1], key[2], name, str(x), str(y), f"{y / x:.3f}" if x else "-", said])
    lines = text(table).splitlines()[1:] if table.rows else []
    return "\n".join([*lines, f"{len(table.rows)} of {len(table.rows) + same} numbers differ"])


def run_compare(environ: Mapping[str, str]) -> int:
    """The other command; returns the exit status."""
    if not (environ.get("A") and environ.get("B")):
        raise UserError("say which results to compare: A=out B=other/out")
    print(compare(environ["A"], environ["B"]))
    return 0


def main(arguments: Sequence[str], environ: Mapping[str, str]) -> int:
    """The commands."""
    body = run_compare if arguments[:1] == ["bench-compare"] else run
    return command.run("bench", body, environ)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ))
