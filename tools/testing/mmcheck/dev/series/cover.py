# SPDX-License-Identifier: GPL-2.0
"""The cover letter: the reasons for the tests, their subjects and their results."""

import json
from collections.abc import Sequence, Set
from pathlib import Path

from ...boot import results
from ...core.errors import UserError
from ...kernel import graft
from ...kernel.suites import name as suite_name
from . import message
from .overlay import Overlay, is_suite
from .steps import Step

RUN = """\
  ./tools/testing/kunit/kunit.py run --kunitconfig=mm/tests
  ./tools/testing/kunit/kunit.py run --kunitconfig=mm/tests \\
        --arch=arm64 --cross_compile=aarch64-linux-gnu-
  make kselftest TARGETS=mm
"""


def figures(out: Path, names: Set[str]) -> str:
    """The counts of `make results` for the suites and programs in `names`, as a table; "" if there are none."""
    path = out / "results" / "results.json"
    try:
        cases = [results.Case(**case) for case in json.loads(path.read_text())["cases"]]
    except FileNotFoundError:
        return ""
    except (ValueError, KeyError, TypeError):
        raise UserError(f"{path} is damaged; run make results again, or delete it") from None
    runs: dict[str, list[results.Case]] = {}
    for case in cases:
        run, _, suite = case.suite.rpartition(" ")
        if suite in names:
            runs.setdefault(run, []).append(case)
    width = max((len(run) for run in runs), default=0)
    rows = [("", results.STATES), *((run, results.counts(own).values()) for run, own in runs.items())]
    table = [f"  {run:{width}}" + "".join(f"{cell:>9}" for cell in cells) for run, cells in rows]
    return "\n".join(table) if runs else ""


def letter(overlay: Overlay, steps: Sequence[Step], base: str, commit: str, table: str, text: str) -> str:
    """The text of the cover letter. It begins with `text`, and `text` begins with the subject."""
    subject, *paragraphs = text.rstrip().split("\n\n")
    blocks = [subject, *(message.wrapped(text) for text in paragraphs)]
    for title, kind in (("KUnit suites:", "_kunit.c"), ("Selftests:", f"{graft.SELFTESTS}/")):
        suites = [(step.name, step.heads[0]) for step in steps if step.name and kind in step.heads[0]]
        about = [
            message.wrapped(f"{name}: {' '.join(message.head(overlay.texts[path])[0])}", "- ") for name, path in suites
        ]
        blocks += [title, "\n".join(about)] if about else []
    if gone := [suite_name(overlay.texts[n]) or Path(n).stem for n in sorted(overlay.left_out) if is_suite(n)]:
        features = ", ".join(graft.FEATURES)
        blocks.append(
            message.wrapped(
                f"These suites are left out: {', '.join(gone)}. Each of them uses a feature that is not part "
                f"of the kernel ({features}), or shares its Kconfig symbol with a suite that uses such a feature."
            )
        )
    has_programs = any(f"{graft.SELFTESTS}/" in step.heads[0] for step in steps)
    commands = RUN if has_programs else RUN.rpartition("  make kselftest")[0]
    blocks += ["To run them:", commands.rstrip()]
    if table:
        blocks += ["Cases by their verdicts:", table]
    blocks.append(f"Made for Linux {base}.")
    if commit:
        blocks.append(f"base-commit: {commit}")
    return "\n\n".join(blocks) + "\n"
