# SPDX-License-Identifier: GPL-2.0
"""Results become a submission that KCIDB accepts, with stable IDs."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from mmcheck import verbs
from mmcheck.boot import results
from mmcheck.core.errors import UserError
from mmcheck.kernel import source
from mmcheck.report import kcidb
from mmcheck.report.kcidb import Submission
from mmcheck.run import record

from .seeded import recorded
from .test_results import KUNIT

BUILD = "6.12.117-1_deb12u1-arm64-16K"
MACHINE = "7.3.4-1_bpo13_1-arm64-4K-c8488f60"
BEGAN = "2026-11-01T12:00:00+00:00"


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """One run of KUnit, and one run of the selftests."""
    recorded(tmp_path, BUILD, results.kunit(KUNIT.splitlines()), compiler="gcc (Debian) 12", began=BEGAN)
    long = ["\0" + "x" * 2 * kcidb.EXCERPT]
    cases = [
        results.Case("folio_one", "anon.good", "passed", 0.5),
        results.Case("folio_one", "anon.good", "passed", 0.5),
        results.Case("folio_one", "anon.bad", "failed", 0.1, long, splat=True),
        results.Case("folio_two", "", "skipped", 0.0, ["no swap"]),
    ]
    recorded(tmp_path, MACHINE, cases, "kselftest", began=BEGAN)
    return tmp_path


def valid(whole: dict[str, Any]) -> bool:
    """Whether the submission is valid for each version 5 of KCIDB's schema."""
    schema = pytest.importorskip("kcidb_io", reason="kcidb-io is not installed").schema
    return bool(schema.V5_0.is_valid(whole) and schema.V5_0.is_valid_exactly(whole) and schema.LATEST.is_valid(whole))


def test_the_schema_takes_it(out: Path) -> None:
    whole = Submission(out).whole()
    assert valid(whole)
    whole["tests"][0]["path"] = "no path"
    assert not valid(whole)


def test_a_case_is_a_test_run_of_a_build_of_a_checkout(out: Path) -> None:
    whole = Submission(out).whole()
    builds = {build["id"]: build for build in whole["builds"]}
    assert {build["checkout_id"] for build in builds.values()} == {tree["id"] for tree in whole["checkouts"]}
    assert [(test["path"], test["status"]) for test in whole["tests"]] == [
        ("kselftest.mm.folio_one.anon.good", "PASS"),
        ("kselftest.mm.folio_one.anon.good", "PASS"),
        ("kselftest.mm.folio_one.anon.bad", "FAIL"),
        ("kselftest.mm.folio_two", "SKIP"),
        ("kunit.contpte.plain", "PASS"),
        ("kunit.contpte.with_parameters.one", "PASS"),
        ("kunit.contpte.with_parameters.two", "FAIL"),
        ("kunit.contpte.races", "SKIP"),
    ]
    build = builds[whole["tests"][-1]["build_id"]]
    assert (build["architecture"], build["config_name"], build["status"]) == ("arm64", "16K", "PASS")
    assert build["compiler"] == "gcc (Debian) 12"
    assert whole["tests"][-1]["environment"]["comment"] == "QEMU arm64"


def test_failures_and_skips_say_why(out: Path) -> None:
    tests = {test["path"]: test for test in Submission(out).whole()["tests"]}
    assert "entry 0 is 1, expected 2" in tests["kunit.contpte.with_parameters.two"]["log_excerpt"]
    bad = tests["kselftest.mm.folio_one.anon.bad"]
    assert bad["misc"]["splat"] and len(bad["log_excerpt"]) == kcidb.EXCERPT and "\0" not in bad["log_excerpt"]
    assert tests["kunit.contpte.races"]["misc"]["reason"] == "needs two CPUs"
    assert "log_excerpt" not in tests["kunit.contpte.plain"]


def test_ids_are_stable_unique_and_of_the_origin(out: Path) -> None:
    whole, again = Submission(out, "lab").whole(), Submission(out, "lab").whole()
    assert whole == again
    for name in ("checkouts", "builds", "tests"):
        ids = [item["id"] for item in whole[name]]
        assert len(ids) == len(set(ids)) and all(one.startswith("lab:") for one in ids)
    cases = results.kunit(KUNIT.replace("plain", "other").splitlines())
    recorded(out, BUILD, cases, began="2026-11-02T12:00:00+00:00")
    assert not {test["id"] for test in Submission(out, "lab").whole()["tests"]} & {t["id"] for t in whole["tests"][4:]}


def test_the_same_verdicts_on_other_kernels_are_other_test_runs(tmp_path: Path) -> None:
    for build in ("6.12-arm64-4K", "6.12-arm64-16K", "7.3-arm64-4K"):
        recorded(tmp_path, build, [results.Case("contpte", "a", "passed")])
    part = record.Record("x", "kunit 7.3-arm64-4K contpte.*", "kunit", "7.3", "arm64", "4K", "7.3-arm64-4K")
    with record.kept(tmp_path, part):
        part.cases = [results.Case("contpte", "a", "passed")]
    whole = Submission(tmp_path).whole()
    assert (len(whole["builds"]), len({test["id"] for test in whole["tests"]})) == (3, 4)


def test_a_build_that_failed_is_submitted(out: Path) -> None:
    log = out / "build.log"
    log.write_text("mm/memory.c:1:1: error: oh dear\nmake[2]: *** [mm/memory.o] Error 1\n")
    recorded(out, "linux-0a1b2c3d-um", [], built=False, why="linux does not build", logs=[log])
    whole = Submission(out).whole()
    (build,) = (build for build in whole["builds"] if build["status"] == "FAIL")
    assert build["architecture"] == "um" and "oh dear" in build["log_excerpt"]
    assert valid(whole)


def test_runs_on_this_machines_own_kernel_are_left_out(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recorded(out, MACHINE, [results.Case("folio_one", "anon.good", "passed")], "kselftest", host=True)
    assert {test["path"].partition(".")[0] for test in Submission(out).whole()["tests"]} == {"kunit"}
    assert "left out" in capsys.readouterr().err


def test_the_commit_of_the_users_own_tree_is_in_the_checkout(out: Path, tree: Path) -> None:
    identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "-q", "-b", "mm"], ["add", "Makefile"], [*identity, "commit", "-q", "-m", "one"]):
        subprocess.run(["git", *words], cwd=tree, check=True)
    label = source.from_folder(tree).label
    recorded(out, BUILD, results.kunit(KUNIT.splitlines()), label=f"{label}+atomic_rmw")
    whole = Submission(out, kdir=tree).whole()
    other, own = sorted(whole["checkouts"], key=lambda tree: len(tree["misc"]["kernel"]))
    assert own["misc"]["kernel"] == f"{label}+atomic_rmw" and own["git_commit_hash"][:12] in own["id"]
    assert own["git_repository_branch"] == "mm" and "git_repository_url" not in own
    assert "git_commit_hash" not in other
    assert valid(whole)


def test_the_command(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    environment = {"O": str(out), "HOME": os.environ["HOME"], "ORIGIN": "lab_1"}
    assert verbs.run("kcidb", environment) == 0
    assert "2 checkouts, 2 builds, 8 tests" in capsys.readouterr().err
    assert json.loads((out / "kcidb.json").read_text())["version"] == {"major": 5, "minor": 0}
    assert verbs.run("kcidb", {**environment, "ORIGIN": "My Lab"}) == 125
    assert "lower-case letters" in capsys.readouterr().err
    with pytest.raises(UserError, match="no results in"):
        Submission(out / "empty").whole()


def test_a_large_submission_is_split_and_each_part_stands_alone(tmp_path: Path) -> None:
    met = [results.Case("met", f"a{n}", "skipped", text=["known issue 3: x"]) for n in range(3)]
    for number in range(3):
        cases = [results.Case("s", f"c{n}", "failed", text=[f"{number} " * 250]) for n in range(40)] + met
        recorded(tmp_path, f"6.12-arm64-{4 << number * 2}K", cases, began=BEGAN)
    recorded(tmp_path, "7.3-um", [], built=False, why="does not build")
    whole = Submission(tmp_path).whole()
    size = 20000
    parts = list(kcidb.split(whole, size))
    assert len(parts) > 3 and all(len(kcidb.encoded(part)) <= size for part in parts)
    assert [test for part in parts for test in part["tests"]] == whole["tests"]
    assert [one for part in parts for one in part.get("incidents", [])] == whole["incidents"]
    for name in ("checkouts", "builds"):
        found = {one["id"] for part in parts for one in part[name]}
        assert found == {one["id"] for one in whole[name]}
    for part in parts:
        builds = {one["id"] for one in part["builds"]}
        issues = {one["id"] for one in part.get("issues", [])}
        assert {test["build_id"] for test in part["tests"]} <= builds
        assert {one["checkout_id"] for one in part["builds"]} == {one["id"] for one in part["checkouts"]}
        assert {one["issue_id"] for one in part.get("incidents", [])} == issues
    assert list(kcidb.split(whole)) == [whole]


def test_a_test_that_is_larger_than_a_part_is_sent(tmp_path: Path) -> None:
    recorded(tmp_path, "7.3-um", [results.Case("s", "c", "failed", text=["x" * 500])])
    whole = Submission(tmp_path).whole()
    assert list(kcidb.split(whole, 100)) == [whole]


def test_the_command_writes_the_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cases = [results.Case("s", f"c{n}", "failed", text=["x" * 500]) for n in range(40)]
    recorded(tmp_path, "7.3-um", cases)
    for name in ("9", "of-our-lab"):
        (tmp_path / f"kcidb-{name}.json").write_text("old")
    split = kcidb.split
    monkeypatch.setattr(kcidb, "split", lambda whole: split(whole, 20000))
    assert kcidb.run({"O": str(tmp_path)}) == 0
    names = sorted(file.name for file in tmp_path.glob("kcidb*.json"))
    assert names == ["kcidb-2.json", "kcidb-of-our-lab.json", "kcidb.json"]
    names.remove("kcidb-of-our-lab.json")
    count = sum(len(json.loads((tmp_path / name).read_text())["tests"]) for name in names)
    assert count == 40
