# SPDX-License-Identifier: GPL-2.0
"""Reads the reports of the plugin, and turns them into text and JSON.

suppressions.toml lists the expected reports, each with its reason. `rule` is the name of a rule. `store` and `event`
are globs of functions: a function in the backtrace of the store must match `store`, and a function in the backtrace of
the event must match `event`. The event is what makes the store a mistake.
"""

import fnmatch
import json
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..core.errors import UserError
from .symbols import Symbols

TABLE = Path(__file__).with_name("suppressions.toml")


@dataclass(frozen=True)
class Suppression:
    """An expected report, and the reason why it is expected."""

    rule: str
    why: str
    store: str = "*"
    event: str = "*"

    def about(self, one: "Report") -> bool:
        """Whether the suppression matches this report."""
        places = ((self.store, one.store), (self.event, one.event))
        return self.rule == one.rule and all(any(_is(name, glob) for name in names) for glob, names in places)


@dataclass
class Report:
    """A mistake. `store` and `event` are backtraces; the innermost function comes first.

    store: the code that changed the entry
    event: the code that made the change a mistake
    """

    rule: str
    what: str
    count: int
    raw: dict[str, Any]
    store: list[str]
    event: list[str]
    why: str = field(default="")

    def text(self) -> str:
        """The report as lines for a terminal."""
        raw = self.raw
        whose = "global" if raw["asid"] < 0 else f"ASID {raw['asid']}"
        place = f"address {raw['va']:#x}, {whose}, level {raw['level']}, CPU {raw['cpu']}"
        lines = [
            f"{self.rule}: {self.what}, {self.count} times",
            f"  {place}: entry {raw['old']:016x}, now {raw['new']:016x}",
            f"  changed by   {' < '.join(self.store)}",
            f"  noticed at   {' < '.join(self.event)}",
        ]
        if missed := raw.get("missed"):
            lines.append(f"  nearest TLBI {missed['where']}, operand {missed['operand']:016x}: {missed['why']}")
        return "\n".join([*lines, *([f"  expected: {self.why}"] if self.why else [])])

    def json(self) -> dict[str, Any]:
        """The report as part of a JSON file."""
        return {**self.raw, "store": self.store, "event": self.event, "expected": self.why}


def _is(name: str, glob: str) -> bool:
    return fnmatch.fnmatchcase(name.partition("+")[0], glob)


def suppressions(table: Path = TABLE) -> list[Suppression]:
    """The suppressions of a table. Raises UserError for a suppression without a reason."""
    found = [Suppression(**entry) for entry in tomllib.loads(table.read_text()).get("suppression", [])]
    for one in found:
        if not one.why:
            raise UserError(f"{table.name}: {one.rule}: a suppression needs a reason")
    return found


def read(file: Path, symbols: Symbols, known: Sequence[Suppression] = ()) -> tuple[list[Report], dict[str, int]]:
    """The reports in the plugin's file, and the counts of the plugin. Raises UserError if the plugin wrote no file."""
    try:
        *lines, last = [json.loads(line) for line in file.read_text().splitlines()]
    except (OSError, ValueError):
        raise UserError(f"{file}: the plugin wrote no result; see the console in the same folder") from None
    found = []
    for raw in lines:
        if missed := raw.get("missed"):
            missed["where"] = symbols.name(missed["pc"])
        store, event = ([symbols.name(address) for address in raw[name]] for name in ("store", "event"))
        one = Report(raw["rule"], raw["what"], raw["count"], raw, store, event)
        one.why = next((suppression.why for suppression in known if suppression.about(one)), "")
        found.append(one)
    return found, last


def unexpected(file: Path, symbols: Symbols) -> bool:
    """Whether the plugin's file has a report that no suppression matches; False while the plugin writes the file."""
    try:
        found, _ = read(file, symbols, suppressions())
    except (UserError, KeyError, TypeError):
        return False
    return any(not one.why for one in found)
