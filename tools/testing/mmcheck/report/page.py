# SPDX-License-Identifier: GPL-2.0
"""Makes the page from page.html, the data of the model, the style sheet and the script."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from . import extras, failures, heat, model
from . import verdict as head
from .history import History
from .records import Input

HERE = Path(__file__).parent
SHORT = 30
"""A word with at most this many letters fits on the screen of a phone."""


def script(content: object) -> Markup:
    """JSON for the inside of a <script> element. No text in it can end the element."""
    text = json.dumps(content, separators=(",", ":"), ensure_ascii=False)
    return Markup(text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029"))


def words(command: str) -> Markup:
    """A command as HTML for a narrow page: no line break divides a short word. The text stays the same."""
    kept = []
    for word in command.split(" "):
        at = len(word) if len(word) <= SHORT else word.find("=") + 1
        kept.append(Markup("<span>{}</span>{}").format(word[:at], word[at:]) if at else escape(word))
    return Markup(" ").join(kept)


def tiles(data: Input, number: Mapping[str, int]) -> list[tuple[str, str, str, str]]:
    """The tiles at the head of the page: number, name, colour, and the section of the page that explains the number."""

    def many(name: str, what: str) -> str:
        return model.plural(number[name], what).partition(" ")[2]

    found = [
        ("failed", many("failed", "failed test"), "bad", "failures"),
        ("new", "of them new", "bad", "failures"),
        ("fixed", "fixed", "good", "history"),
        ("none", "without a verdict", "warn", "failures"),
        ("met", many("met", "known issue") + " hit", "warn", "issues"),
        ("nowhere", many("nowhere", "test") + " skipped: how to run them", "", "skips"),
        ("missing", many("missing", "cell") + " not run", "warn", "cells"),
    ]
    shown = [
        (str(number[name]), what, kind if number[name] else "", where)
        for name, what, kind, where in found
        if number[name] or name == "failed"
    ]
    for content in data.mutants:
        killed, could = extras.score(content["mutants"])
        if could:
            version = str(content["kernel"]).partition("-")[0]
            shown.append((f"{100 * killed / could:.0f}%", f"mutants noticed, {version}", "", "mutants"))
    return shown


def render(data: Input, history: History, now: Mapping[str, Mapping[str, str]], when: str) -> str:
    """The whole page."""
    tests = model.Tests.of(now)
    failed = failures.failures(data, history)
    met = model.issues(data.runs)
    fixed, same = head.changed(data, history, now)
    missing = [name for name in data.planned if name not in now]
    columns, rows = heat.squares(data)
    bad = [one for one in failed if one.verdict]
    reasons = model.reasons(data, tests)
    number = {
        "failed": len(bad),
        "new": sum(bool(one.new) for one in bad),
        "fixed": len(fixed),
        "none": len(failed) - len(bad),
        "met": sum(bool(one.met) for one in met),
        "nowhere": len(tests.skipped),
        "missing": len(missing),
    }
    extra = [
        ("mutants", "Mutants: which mistakes are noticed", extras.mutation(data.mutants)),
        ("kills", "Kill matrix: which cases notice them", extras.kills()),
        ("coverage", "Coverage of the code under test", extras.covered(data.coverage)),
        ("bench", "Benchmarks", extras.benchmarks(data.bench)),
    ]
    context: dict[str, Any] = {
        "when": when,
        "verdict": head.verdict(data, failed, met, tests, history, len(fixed), same),
        "identity": head.identity(data),
        "tiles": tiles(data, number),
        "failures": failed[: failures.CARDS],
        "others": failed[failures.CARDS :],
        "compares": history.compares,
        "columns": columns,
        "rows": rows,
        "missing": len(missing),
        "tests": tests,
        "suites": heat.suites_of(data.runs),
        "kind": "cell" if data.planned else "run",
        "reasons": reasons,
        "elsewhere": len({name for one in reasons if one.unskip for name in one.lost}),
        "met": met,
        "extra": [(name, title, Markup(body)) for name, title, body in extra if body],
        "events": heat.events(history),
        "data": script(heat.embedded(data, history)),
        "style": Markup((HERE / "page.css").read_text("utf-8")),
        "script": Markup((HERE / "page.js").read_text()),
    }
    environment = Environment(
        loader=FileSystemLoader(HERE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["marked"] = lambda value: Markup(extras.marked(str(value)))
    environment.filters["plural"] = model.plural
    environment.filters["words"] = words
    return environment.get_template("page.html").render(context)
