# SPDX-License-Identifier: GPL-2.0
"""make report: one HTML page of what is known: failures, matrix, skips, known issues, mutants, coverage, benchmarks.

Reads what the other commands have left below O= and runs nothing. The page needs no server and no other file. Each
report adds a line to O/report/history.jsonl, which the page draws.
"""

import datetime
import html
import json
import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import catalogue, collect, command, graft, killmatrix, known_issues, progress, results
from .cell import slug
from .errors import UserError
from .judge import KILLED
from .settings import out_of

STYLE = Path(__file__).with_suffix(".css")
HISTORY = 60
"""So many reports are drawn at most."""
OFTEN = 8
"""So many reasons for skips are listed at once."""

JSON = dict[str, Any]


@dataclass(frozen=True)
class Failure:
    """One case that failed: on which run, its name, what was said, and how to run it again, where that is known."""

    run: str
    case: str
    text: str
    command: str = ""


class Input:
    """All that was found below one O=.

    runs:     name of a run, and its cases
    matrix:   records of cells by name
    commands: how to run each cell alone
    places:   row and column of each cell
    mutants:  the files of make mutants
    coverage: the files of make coverage
    bench:    the files of make bench
    """

    def __init__(self, out: Path) -> None:
        whole = _load(out / "matrix/matrix.json") or {}
        self.commands: dict[str, str] = whole.get("commands", {})
        order = {name: place for place, name in enumerate(self.commands)}
        cells: dict[str, JSON] = whole.get("cells", {})
        # They are kept as they ended, and shown as they stand in the table of cells.
        self.matrix = {name: cells[name] for name in sorted(cells, key=lambda name: order.get(name, len(order)))}
        self.places: dict[str, tuple[str, str]] = whole.get("places", {})
        self.mutants = [content for file in sorted(out.glob("mutants/*/mutants.json")) if (content := _load(file))]
        self.coverage = [content for file in sorted(out.glob("coverage/*/coverage.json")) if (content := _load(file))]
        self.bench = [content for file in sorted(out.glob("bench/*.json")) if (content := _load(file))]
        self.runs: list[tuple[str, list[results.Case]]] = []
        for name in self.matrix:
            cell = _load(out / "matrix" / slug(name) / "results.json")
            if cell:
                self.runs.append((name, [results.Case(**case) for case in cell["cases"]]))
        if not self.runs:
            self.runs = list(collect.runs(out))
        if not (self.runs or self.matrix or self.mutants or self.coverage or self.bench):
            raise UserError(f"no results in {out}: run make matrix, mutants, coverage or bench first, or set O=")

    def failures(self) -> list[Failure]:
        """What failed, with the command that runs it again."""
        found = []
        for run, cases in self.runs:
            for case in cases:
                if case.state == "failed":
                    name = f"{case.suite}.{case.name}" if case.name else case.suite
                    found.append(Failure(run, name, "\n".join(case.text), self._again(run, case)))
        for name, record in self.matrix.items():
            if record["state"] == "none":
                found.append(Failure(name, "no verdict", str(record.get("why", "")), self.commands.get(name, "")))
        return found

    def _again(self, run: str, case: results.Case) -> str:
        command = self.commands.get(run, "")
        if not command:
            return ""
        if "kselftest" in command:
            return f"{command} TESTS='{case.suite}.{case.name}'" if case.name else f"{command} TESTS={case.suite}"
        return f"{command} '{case.suite}.{case.name.partition(':')[0]}'"


def _load(path: Path) -> JSON | None:
    try:
        content: JSON = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return content


def text(value: object) -> str:
    """As text of HTML."""
    return html.escape(str(value))


def marked(value: str) -> str:
    """Words of Markdown as HTML: `code` and *emphasis*."""
    return re.sub(r"\*(\w+)\*", r"<em>\1</em>", re.sub(r"`([^`]+)`", r"<code>\1</code>", text(value)))


def grid(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; cells are HTML. Columns after the first whose head begins with # hold numbers."""
    number = [" class=number" if name.startswith("#") else "" for name in head]
    lines = ["<div class=wide><table><tr>"]
    lines += [f"<th{kind}>{text(name.lstrip('#'))}</th>" for name, kind in zip(head, number, strict=True)]
    for row in rows:
        lines.append("<tr>" + "".join(f"<td{kind}>{cell}</td>" for cell, kind in zip(row, number, strict=True)))
    return "".join([*lines, "</table></div>"])


def section(name: str, title: str, body: str) -> str:
    """A part of the page, or nothing where there is nothing to say."""
    return f"<h2 id={name}>{text(title)}</h2>{body}" if body else ""


def failures(found: Sequence[Failure]) -> str:
    """Failures, each with what was said and the command that shows it again."""
    parts = []
    for failure in found:
        again = f"<pre>{text(failure.command)}</pre>" if failure.command else ""
        said = f"<pre>{text(failure.text)}</pre>" if failure.text else ""
        parts.append(f"<details open><summary class=bad>{text(failure.run)}: {text(failure.case)}</summary>")
        parts.append(f"{again}{said}</details>")
    return "".join(parts) or "<p class=good>Nothing failed.</p>"


def matrix(data: Input) -> str:
    """Kernels, architectures and page sizes in rows, flavours in columns."""
    rows: dict[str, dict[str, str]] = {}
    for name, record in data.matrix.items():
        row, flavour = data.places.get(name, (name, ""))
        counts = record.get("counts")
        state = str(record["state"])
        said = (
            "no verdict"
            if state == "none"
            else ", ".join(f"{number} {what}" for what, number in counts.items() if number or what == "passed")
            if isinstance(counts, dict)
            else state
        )
        kind = {"passed": "good", "failed": "bad"}.get(state, "none")
        rows.setdefault(row, {})[flavour or "plain"] = f"<span class={kind}>{text(said)}</span>"
    if not rows:
        width = [(name, results.counts(cases)) for name, cases in data.runs]
        return grid(
            ["run", "#passed", "#failed", "#skipped"],
            [[text(name), *(str(number[state]) for state in results.STATES)] for name, number in width],
        )
    flavours = list(dict.fromkeys(name for row in rows.values() for name in row))
    return grid(["", *flavours], [[text(row), *(cells.get(f, "") for f in flavours)] for row, cells in rows.items()])


def skips(runs: Sequence[tuple[str, list[results.Case]]]) -> str:
    """Reasons for skips, the most frequent first, with the cases."""
    reasons: dict[str, list[str]] = {}
    for run, cases in runs:
        for case in cases:
            if case.state == "skipped":
                reasons.setdefault(" ".join(case.text) or "no reason", []).append(f"{run}: {case.suite}.{case.name}")
    parts = []
    for why, names in sorted(reasons.items(), key=lambda item: (-len(item[1]), item[0])):
        listed = "<pre>" + text("\n".join(names)) + "</pre>"
        parts.append(f"<details><summary>{len(names)} &times; {text(why)}</summary>{listed}</details>")
    often, seldom = parts[:OFTEN], parts[OFTEN:]
    more = f"<details><summary>{len(seldom)} more reasons</summary>{''.join(seldom)}</details>" if seldom else ""
    return "".join(often) + more


def issues(runs: Sequence[tuple[str, Sequence[results.Case]]]) -> str:
    """The table of known issues, and which cases met them, or were where they are predicted and passed."""
    rows = []
    for issue in known_issues.load():
        met, stale = (
            [f"{name}: {case.suite}.{case.name}" for name, case in cases_of(runs, pattern, issue.number)]
            for pattern in (known_issues.MET, known_issues.STALE)
        )
        seen = "".join(
            f"<details><summary>{len(names)} {word}</summary><pre>{text(chr(10).join(names))}</pre></details>"
            for word, names in (("met it", met), ("stale", stale))
            if names
        )
        rows.append([marked(f"{issue.number}. {issue.title}"), marked(issue.effect), marked(issue.upstream), seen])
    return grid(["issue", "effect", "upstream", "here"], rows)


def cases_of(
    runs: Sequence[tuple[str, Sequence[results.Case]]], pattern: re.Pattern[str], number: int
) -> list[tuple[str, results.Case]]:
    """The cases, with the name of their run, that say `pattern` of the issue `number`."""
    return [
        (name, case)
        for name, cases in runs
        for case in cases
        if case.state != "failed" and any(int(m[1]) == number for m in map(pattern.search, case.text) if m)
    ]


def score(mutants: Sequence[JSON]) -> tuple[int, int]:
    """How many of the mutants were noticed, and how many could have been."""
    states = [str(mutant["state"]) for mutant in mutants]
    return sum(state in KILLED for state in states), sum(state in (*KILLED, "survived") for state in states)


def mutation(files: Sequence[JSON]) -> str:
    """The score on each kernel, and the survivors with their arguments."""
    rows, parts = [], []
    for content in files:
        every = content["mutants"]
        killed, could = score(every)
        name = f"{content['kernel']} {content['arch']} {content['pages']}"
        states = [str(m["state"]) for m in every]
        share = f"{100 * killed / could:.1f}%" if could else "-"
        counted = [str(states.count(state)) for state in (*KILLED, "survived", "equivalent")]
        rows.append([text(name), share, *counted])
        for mutant in every:
            if mutant["state"] == "survived":
                why = mutant.get("argument") or "no reason given"
                parts.append(f"<li><code>{text(mutant['name'])}</code> ({text(name)}): {text(why)}")
    if not rows:
        return ""
    head = ["kernel", "#noticed", "#by a test", "#splat", "#hang", "#no test ran", "#survived", "#equivalent"]
    survivors = f"<details><summary>{len(parts)} survivors, and why</summary><ul>{''.join(parts)}</ul></details>"
    return grid(head, rows) + (survivors if parts else "")


def kills() -> str:
    """What the kill matrices that are checked in say of the cases."""
    rows, parts = [], []
    catalogued = catalogue.load(catalogue.FOLDER)
    for path in sorted(killmatrix.FOLDER.glob("*.json")):
        whole = killmatrix.Matrix.load(path)
        found = killmatrix.findings(whole, catalogued, killmatrix.reasons())
        share = f"{100 * len(found.unproven) / len(whole.cases):.1f}%" if whole.cases else "-"
        counts = (len(whole.rows), len(whole.cases), len(found.unproven), share, len(found.fragile), len(found.idle))
        rows.append([text(path.stem), *(str(count) for count in counts)])
        items = "".join(
            f"<li><code>{text(c)}</code>: {text(w or 'no reason given')}" for c, w in found.unproven.items()
        )
        parts.append(
            f"<details><summary>{text(path.stem)}: cases that notice nothing</summary><ul>{items}</ul></details>"
        )
    head = ["kernel", "#mutants", "#cases", "#notice nothing", "#share", "#mutants noticed by one case", "#idle suites"]
    return grid(head, rows) + "".join(parts) if rows else ""


def covered(files: Sequence[JSON]) -> str:
    """Lines and branches of each file under test."""
    rows = []
    for content in files:
        every = content["functions"]
        for file in dict.fromkeys(str(function["file"]) for function in every):
            own = [function for function in every if function["file"] == file]
            cells = []
            for kind in ("lines", "branches"):
                hit, whole = (sum(function[kind][i] for function in own) for i in (0, 1))
                cells.append(f"{100 * hit / whole:.1f}% of {whole}" if whole else "-")
            rows.append([f"<code>{text(file)}</code>", text(f"{content['kernel']} {content['arch']}"), *cells])
    return grid(["file", "kernel", "#lines", "#branches"], rows) if rows else ""


def benchmarks(files: Sequence[JSON]) -> str:
    """The tables of make bench, and its plots."""
    parts = []
    for content in files:
        for table in content["tables"]:
            head, rows = table["head"], table["rows"]
            parts.append(f"<h3>{text(table['title'])}</h3>")
            parts.append(grid([str(name) for name in head], [[text(cell) for cell in row] for row in rows]))
            parts.append(str(table.get("svg", "")))
    return "".join(parts)


def history(lines: Sequence[JSON]) -> str:
    """Passed and failed cases of the last reports, as bars."""
    shown = lines[-HISTORY:]
    if len(shown) < 2:
        return ""
    most = max(line["passed"] + line["failed"] for line in shown) or 1
    bars = []
    for place, line in enumerate(shown):
        good, bad = (round(100 * line[state] / most, 1) for state in ("passed", "failed"))
        title = f"<title>{text(line['when'])}: {line['passed']} passed, {line['failed']} failed</title>"
        bars.append(f"<g>{title}<rect class=bar x={place * 12} y={105 - good} width=10 height={good} />")
        if line["failed"]:
            bars.append(
                f"<rect class=fail x={place * 12} y={105 - good - max(bad, 2)} width=10 height={max(bad, 2)} />"
            )
        bars.append("</g>")
    return f'<svg viewBox="0 0 {12 * HISTORY} 110" role=img aria-label="cases over reports">{"".join(bars)}</svg>'


def page(data: Input, lines: Sequence[JSON], when: str) -> str:
    """The whole page."""
    every = [case for _, cases in data.runs for case in cases]
    number = results.counts(every)
    failed = data.failures()
    tiles: list[tuple[object, str]] = [
        (number["passed"], "passed"),
        (len(failed), "failed"),
        (number["skipped"], "skipped"),
    ]
    if data.matrix:
        good = sum(record["state"] == "passed" for record in data.matrix.values())
        tiles.append((f"{good}/{len(data.matrix)}", "cells"))
    for content in data.mutants:
        killed, could = score(content["mutants"])
        if could:
            version, _, kind = str(content["kernel"]).partition("+mutants")
            label = f"mutants noticed, {version.partition('-')[0]}{kind.replace('+', ' by ')}"
            tiles.append((f"{100 * killed / could:.0f}%", label))
    tiles.append((len(known_issues.load()), "known issues"))
    drawn = "".join(
        f"<div class=tile><b{' class=bad' if label == 'failed' and value else ''}>{text(value)}</b>{text(label)}</div>"
        for value, label in tiles
    )
    parts = [
        ("failures", "Failures", failures(failed)),
        ("matrix", "Matrix", matrix(data)),
        ("skips", "Skips", skips(data.runs)),
        ("issues", "Known issues of kernels", issues(data.runs)),
        ("mutants", "Mutants: which mistakes are noticed", mutation(data.mutants)),
        ("kills", "Kill matrix: which cases notice them", kills()),
        ("coverage", "Coverage of the code under test", covered(data.coverage)),
        ("bench", "Benchmarks", benchmarks(data.bench)),
        ("history", "History", history(lines)),
    ]
    links = "".join(f"<a href=#{name}>{text(title.partition(':')[0])}</a>" for name, title, body in parts if body)
    body = "".join(section(*part) for part in parts)
    return (
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
        f"<title>mmcheck</title><style>{STYLE.read_text()}</style>"
        f"<h1>mmcheck</h1><p class=soft>{text(when)}</p><div class=tiles>{drawn}</div><nav>{links}</nav>{body}</html>\n"
    )


def run(out: Path) -> int:
    """The command; returns the exit status."""
    data = Input(out)
    folder = out / "report"
    folder.mkdir(parents=True, exist_ok=True)
    when = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")
    number = results.counts(case for _, cases in data.runs for case in cases)
    file = folder / "history.jsonl"
    before = file.read_text().splitlines() if file.exists() else []
    lines = [*before, json.dumps({"when": when, **number})]
    graft.replace(file, ("\n".join(lines) + "\n").encode())
    graft.replace(folder / "index.html", page(data, [json.loads(line) for line in lines], when).encode())
    progress.say(f"{folder / 'index.html'}")
    return 0


def main(environ: Mapping[str, str]) -> int:
    """The command."""
    return command.run("report", lambda given: run(out_of(given)), environ)


def start(arguments: Sequence[str]) -> int:
    """The command with its arguments."""
    return command.start("report", __doc__, lambda _: main(os.environ), arguments)


if __name__ == "__main__":
    sys.exit(start(sys.argv[1:]))
