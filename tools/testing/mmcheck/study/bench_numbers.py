# SPDX-License-Identifier: GPL-2.0
"""Reads the numbers of benchmarks from a console, and shows them as tables, plots and KTAP."""

import dataclasses
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from . import plot

_NUMBER = re.compile(r"# .*\bnumber (.+)$")
_FIELD = re.compile(r"(\w+)=(\d+)")


@dataclass(frozen=True)
class Number:
    """One line of numbers from a suite: the kernel, the operation, and the fields."""

    run: str
    what: str
    fields: Mapping[str, int]


def numbers(run: str, console: Iterable[str]) -> list[Number]:
    """The lines of numbers on a console."""
    found = []
    for line in console:
        if match := _NUMBER.search(line):
            fields = {name: int(value) for name, value in _FIELD.findall(match[1])}
            what = " ".join(word for word in match[1].split() if "=" not in word)
            found.append(Number(run, what, fields))
    return found


def merged(found: Sequence[Number], more: Sequence[Number]) -> list[Number]:
    """The numbers `found` and `more`. Fields of the same kernel and operation are joined. `found` comes first."""
    fields = {(number.run, number.what): number.fields for number in more}
    own = [
        dataclasses.replace(number, fields={**number.fields, **fields.pop((number.run, number.what), {})})
        for number in found
    ]
    return own + [Number(run, what, fields[run, what]) for run, what in fields]


@dataclass
class Table:
    """A table to print, and its plot."""

    title: str
    head: list[str]
    rows: list[list[str]] = field(default_factory=list)
    svg: str = ""


def grouped(
    title: str, of: str, found: Sequence[Number], shown: Sequence[str], bar: Callable[[Number], float]
) -> Table:
    """A table with a row for each operation and kernel, and a plot of the ratios.

    The ratio of a row compares its kernel with the first kernel of the same operation.
    of:  the name of the quantity that the ratio compares
    bar: returns this quantity
    """
    table = Table(title, ["what", "kernel", *(f"#{name}" for name in shown), "#ratio"])
    bars: dict[str, list[tuple[str, float]]] = {}
    for what in dict.fromkeys(number.what for number in found):
        own = [number for number in found if number.what == what]
        for number in own:
            ratio = bar(number) / bar(own[0]) if bar(own[0]) else 0.0
            cells = [str(number.fields.get(name, "")) for name in shown]
            table.rows.append([what, number.run, *cells, f"{ratio:.3f}"])
            bars.setdefault(what, []).append((number.run, ratio))
    table.svg = plot.ratios(title, f"{of}, relative to the first kernel of each group", bars)
    return table


def tables(found: Mapping[str, Sequence[Number]]) -> list[Table]:
    """The tables of the parts that ran."""

    def rate(number: Number) -> float:
        size = number.what.split()[-1]
        scale = 1024 if size[-1] == "M" else 1
        return int(size[:-1]) * scale * 1024 / max(1, number.fields["ns_median"])

    result = []
    if own := found.get("folio_bench"):
        shown = ("ns", "faults", "copies", "invalidations", "writes")
        result.append(grouped("System calls on memory", "time", own, shown, lambda n: n.fields["ns"]))
    if own := found.get("atomic_rmw_bench"):
        result.append(grouped("Memory filled by instructions", "time", own, ("ns", "faults"), lambda n: n.fields["ns"]))
    if own := found.get("folio_zero_order"):
        result.append(grouped("Folios cleared", "calls", own, ("pages", "clears"), lambda n: n.fields["clears"]))
    if own := found.get("clear_pages"):
        rates = [n for n in own if "ns_median" in n.fields]
        result.append(grouped("Clearing", "bytes a nanosecond", rates, ("ns_median", "spread"), rate))
    if own := found.get("linear_map"):
        costs = ("sets_per_gib", "clears_per_gib", "instructions_per_gib")
        result.append(grouped("Linear map", "instructions", own, costs, lambda n: n.fields["instructions_per_gib"]))
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
    """The numbers as KTAP: one suite per part, and one case per number, with the fields as diagnostics."""
    lines = ["KTAP version 1", f"1..{len(found)}"]
    for place, (name, own) in enumerate(found.items(), 1):
        lines += ["    KTAP version 1", f"    # Subtest: {name}", f"    1..{len(own)}"]
        for case, number in enumerate(own, 1):
            fields = " ".join(f"{key}={value}" for key, value in number.fields.items())
            lines += [f"    # number {number.what} {fields}", f"    ok {case} {number.what} on {number.run}"]
        lines.append(f"ok {place} {name}")
    return "\n".join(lines)
