# SPDX-License-Identifier: GPL-2.0
"""Merges the verdicts of several boots into one file, in the formats of the kernel's kunit.py."""

import json
from pathlib import Path
from xml.etree import ElementTree


def merge(file: str, part: Path, suite: str) -> None:
    """Replace the verdicts on `suite` in the JSON file `file` by those in the file `part`."""
    whole, new = json.loads(Path(file).read_text()), json.loads(part.read_text())
    groups = [group for group in whole["sub_groups"] if group["name"] != suite]
    whole["sub_groups"] = groups + new["sub_groups"]
    Path(file).write_text(json.dumps(whole, indent=4))


def merge_junit(results: str, part: Path, suite: str) -> None:
    """Replace the verdicts on `suite` in the JUnit file `results` by the test suites in the file `part`."""
    whole, new = ElementTree.parse(results), ElementTree.parse(part)
    root, other = whole.getroot(), new.getroot()
    for element in root.findall("testsuite"):
        if element.get("name") == suite:
            root.remove(element)
    root.extend(other.findall("testsuite"))
    for count in ("tests", "failures", "errors", "skipped"):
        if root.get(count) is not None:
            root.set(count, str(sum(int(element.get(count, "0")) for element in root.findall("testsuite"))))
    whole.write(results, encoding="utf-8", xml_declaration=True)
