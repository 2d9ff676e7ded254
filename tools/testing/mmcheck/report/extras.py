# SPDX-License-Identifier: GPL-2.0
"""The parts of the page other than the verdicts on cases: mutants, coverage, benchmarks."""

import html
import re
from collections.abc import Iterable, Sequence

from ..mutants import catalogue, killmatrix
from ..mutants.judge import KILLED
from .model import plural
from .records import JSON


def text(value: object) -> str:
    """A value as HTML text."""
    return html.escape(str(value))


def marked(value: str) -> str:
    """Words of Markdown as HTML: `code` and *emphasis*."""
    return re.sub(r"\*(\w+)\*", r"<em>\1</em>", re.sub(r"`([^`]+)`", r"<code>\1</code>", text(value)))


def grid(title: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table with a title for screen readers. The cells are HTML. A `#` before the name of a column means numbers."""
    number = [" class=number" if name.startswith("#") else "" for name in head]
    lines = [f'<div class=wide tabindex=0 role=region aria-label="{text(title)}"><table><thead><tr>']
    lines += [f"<th scope=col{kind}>{text(name.lstrip('#'))}</th>" for name, kind in zip(head, number, strict=True)]
    lines.append("</thead><tbody>")
    for row in rows:
        lines.append("<tr>" + "".join(f"<td{kind}>{cell}</td>" for cell, kind in zip(row, number, strict=True)))
    return "".join([*lines, "</tbody></table></div>"])


def score(mutants: Sequence[JSON]) -> tuple[int, int]:
    """The number of mutants that tests noticed, and the number of mutants that tests could notice."""
    states = [str(mutant["state"]) for mutant in mutants]
    return sum(state in KILLED for state in states), sum(state in (*KILLED, "survived") for state in states)


def mutation(files: Sequence[JSON]) -> str:
    """The score on each kernel, and the mutants that survived, each with its argument."""
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
    survivors = (
        f"<details><summary>{plural(len(parts), 'survivor')}, and why</summary><ul>{''.join(parts)}</ul></details>"
    )
    return grid("Mutants by kernel", head, rows) + (survivors if parts else "")


def kills() -> str:
    """What the kill matrices in this repository say about the cases."""
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
        by_case: dict[str, list[str]] = {}
        for mutant, case in found.fragile.items():
            by_case.setdefault(case, []).append(f"<code>{text(mutant)}</code>")
        alone = "".join(f"<li><code>{text(case)}</code> alone: {', '.join(own)}" for case, own in by_case.items())
        none = "".join(f"<li><code>{text(m)}</code>" for m in found.unnoticed)
        for title, inner in (
            ("cases that notice no mutant, and why", items),
            ("fragile mutants: only one case notices each of them", alone),
            ("mutants that no case notices", none),
        ):
            if inner:
                parts.append(f"<details><summary>{text(path.stem)}: {title}</summary><ul>{inner}</ul></details>")
    head = [
        "kernel",
        "#mutants",
        "#cases",
        "#cases that notice none",
        "#share",
        "#fragile mutants",
        "#suites whose mutants others notice too",
    ]
    # Say first that no run on this machine measured these numbers.
    origin = "<p>These numbers come with mmcheck; the runs on this page did not measure them. "
    origin += "<code>make mutants MATRIX=1</code> measured them on the packaged kernels.</p>"
    return origin + grid("Kill matrices", head, rows) + "".join(parts) if rows else ""


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
    return grid("Coverage by file", ["file", "kernel", "#lines", "#branches"], rows) if rows else ""


def benchmarks(files: Sequence[JSON]) -> str:
    """The tables of make bench, and its plots."""
    parts = []
    for content in files:
        for table in content["tables"]:
            head = [str(name) for name in table["head"]]
            rows = [[text(cell) for cell in row] for row in table["rows"]]
            parts.append(f"<h3>{text(table['title'])}</h3>")
            parts.append(grid(str(table["title"]), head, rows))
            parts.append(str(table.get("svg", "")))
    return "".join(parts)
