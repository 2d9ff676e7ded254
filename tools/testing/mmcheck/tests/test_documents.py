# SPDX-License-Identifier: GPL-2.0
"""The files and cases that documents name exist."""

import re
from pathlib import Path

from mmcheck.core.settings import PROJECT
from mmcheck.kernel import known_issues, suites

from .conftest import files


def test_suites_stay_readable() -> None:
    for path in [*files(".c"), *PROJECT.glob("tools/testing/selftests/mm/*.c")]:
        assert len(path.read_text().splitlines()) < 600, path


def head(path: Path) -> str:
    """The first comment of a suite, as one line."""
    return " ".join(re.sub(r"(?m)^ \*", "", path.read_text().partition("*/")[0]).split())


def test_heads_of_suites_say_what_is_not_covered() -> None:
    for path in files("_kunit.c"):
        assert re.search(r"(?i)not covered", head(path)), path


def test_heads_of_contpte_suites_say_where_to_begin() -> None:
    suites_of_blocks = [path for path in files("_kunit.c") if path.name.startswith("contpte_")]
    assert len(suites_of_blocks) > 10
    for path in suites_of_blocks:
        found = re.search(r"Begin with (this suite|contpte_fold)\b", head(path))
        assert found and (found[1] == "this suite") == (path.name == "contpte_fold_kunit.c"), path


def test_comments_name_bugs_by_commit() -> None:
    for path in [*files(".c"), *PROJECT.glob("tools/testing/selftests/mm/*.c")]:
        assert not re.search(r"\[bug \w+\]", path.read_text()), path


def test_paths_in_the_readme_exist() -> None:
    readme = re.sub(r"(?ms)^```.*?^```", "", (PROJECT / "README.md").read_text())
    named = set(re.findall(r"`([\w.-]+(?:/[\w.-]+)+)`", readme)) | set(re.findall(r"\]\(([\w./]+)\)", readme))
    assert len(named) > 5
    for name in named:
        assert Path(PROJECT / name).exists(), name


def test_known_issues_are_those_that_tests_name() -> None:
    listed = set(re.findall(r"^## (\d+)\.", (PROJECT / "KNOWN_ISSUES.md").read_text(), re.MULTILINE))
    assert listed == {str(issue.number) for issue in known_issues.load()}
    for path in [*files("_kunit.c"), *PROJECT.glob("tools/testing/selftests/mm/*.c")]:
        text = path.read_text()
        met, stale = (
            set(re.findall(pattern, text))
            for pattern in (
                r"(?:_known_issue\(test,|\bKNOWN_ISSUE\()\s*(\d+)",
                r"(?:_stale_issue\(test,|\bSTALE_ISSUE\()\s*(\d+)",
            )
        )
        assert met == stale, path
        assert met <= listed
    named = {(str(issue.number), test) for issue in known_issues.load() for test in issue.tests}
    assert named == {
        (number, name) for name, body in bodies().items() for number in re.findall(r"KNOWN_ISSUE\((\d+)", body)
    }


def bodies() -> dict[str, str]:
    """The text of each case, and of the functions to which a selftest leaves its verdict, by `suite.case`.

    Known issues have the same form in all texts.
    """
    found: dict[str, str] = {}
    for one in suites.suites():
        for case in one.cases:
            for part in one.text.split(f"static void {case}(struct kunit ")[1:]:
                name = f"{one.name}.{case}"
                found[name] = found.get(name, "") + part.partition("\n}\n")[0]
    for path in PROJECT.glob("tools/testing/selftests/mm/*.c"):
        text = path.read_text()
        helpers = {
            match[1]: text[match.start() :].partition("\n}\n")[0]
            for match in re.finditer(r"^static void (\w+)\(struct __test_metadata ", text, re.MULTILINE)
        }
        for match in re.finditer(r"^TEST_F\w*\((\w+), (\w+)", text, re.MULTILINE):
            body = text[match.start() :].partition("\n}\n")[0]
            called = [helpers[name] for name in set(re.findall(r"(\w+)\(_metadata", body)) & set(helpers)]
            found[f"{match[1]}.{match[2]}"] = "\n".join([body, *called])
    return {name: re.sub(r"pgtable_kunit_known_issue\(test,\s*", "KNOWN_ISSUE(", body) for name, body in found.items()}


def test_each_patch_is_of_a_known_issue() -> None:
    listed = {name for issue in known_issues.load() for name in issue.patch}
    assert listed == {f"patches/{patch.name}" for patch in PROJECT.glob("patches/*.patch")}
    assert all((PROJECT / name).read_text().startswith("Subject: [PATCH] ") for name in listed)
