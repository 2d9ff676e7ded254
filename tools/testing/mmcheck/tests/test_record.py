# SPDX-License-Identifier: GPL-2.0
"""Each run writes a record. The record matches its schema, and is correct even if the run is killed."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest

from mmcheck.boot.results import Case
from mmcheck.core.errors import UserError
from mmcheck.core.settings import PROJECT
from mmcheck.run import record
from mmcheck.run.record import Record, Recorder

from .conftest import User
from .seeded import of_command, recorded

SCHEMA = json.loads((PROJECT / "tools/testing/mmcheck/run/run.schema.json").read_text())
CASES = [Case("contpte", "a", "passed", 0.5), Case("contpte", "b", "failed", 0.1, ["entry 0 is 1"], splat=True)]


def files(out: Path) -> list[dict[str, Any]]:
    """The content of all records below `out`. Each record must match the schema."""
    found = [json.loads(file.read_text()) for file in sorted(out.glob(f"runs/*/{record.FILE}"))]
    for content in found:
        jsonschema.validate(content, SCHEMA)
    return found


def test_a_run_is_recorded(tmp_path: Path) -> None:
    assert tuple(SCHEMA["properties"]["state"]["enum"]) == record.STATES
    recorded(tmp_path, "6.12-um", CASES)
    (content,) = files(tmp_path)
    (one,) = record.latest(tmp_path)
    assert (one.state, one.cases, one.process) == ("failed", CASES, os.getpid())
    content["cases"][0]["a later field"] = 1
    assert Record.of({**content, "a later field": 1}) == one


@pytest.mark.parametrize(
    ("cases", "state"),
    [(CASES, "failed"), (CASES[:1], "passed"), ([Case("a", "b", "skipped")], "skipped"), ([], "none")],
)
def test_the_state_follows_from_the_cases(cases: list[Case], state: str) -> None:
    assert record.state(cases) == state


def test_the_last_run_of_a_name_counts(tmp_path: Path) -> None:
    for number in range(3):
        recorded(tmp_path, "6.12-um", [Case("one", str(number), "passed")])
    recorded(tmp_path, "7.3-um", CASES)
    assert [(one.name, len(one.cases)) for one in record.latest(tmp_path)] == [
        ("kunit 6.12-um", 1),
        ("kunit 7.3-um", 2),
    ]
    assert record.latest(tmp_path)[0].cases[0].name == "2"


def test_old_records_are_removed_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "runs/mine").mkdir(parents=True)
    (tmp_path / "runs/mine/file").write_text("x")
    for _ in range(record.KEPT + 3):
        recorded(tmp_path, "6.12-um", CASES)
    recorded(tmp_path, "7.3-um", CASES)
    assert len(files(tmp_path)) == record.KEPT + 1
    assert (tmp_path / "runs/mine/file").exists()


def test_a_damaged_record_is_left_out_and_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recorded(tmp_path, "6.12-um", CASES)
    (content,) = files(tmp_path)
    wrong: list[dict[str, object]] = [{"began": ""}, {"began": 7}, {"state": "x"}, {"cases": None}, {"schema": "0.9"}]
    wrong += [{"state": "running", "began": "x"}, {"cases": [{**content["cases"][0], "state": "flaky"}]}]
    texts = ["{", "[]", "null", '{"id": "../../.."}', *(json.dumps({**content, **one}) for one in wrong)]
    for number, text in enumerate(texts):
        (tmp_path / "runs" / str(number)).mkdir()
        (tmp_path / "runs" / str(number) / record.FILE).write_text(text)
    assert [one.name for one in record.latest(tmp_path)] == ["kunit 6.12-um"]
    said = capsys.readouterr().err
    assert all(f"/runs/{number}/run.json is left out: " in said for number in range(len(texts)))


def test_a_killed_run_has_no_verdict(tmp_path: Path) -> None:
    script = (
        "import sys, time; from pathlib import Path; from mmcheck.run import record\n"
        "facts = record.Record('x', 'kunit x', 'kunit', 'x', 'um', '', 'x')\n"
        "record.Recorder(Path(sys.argv[1]), facts); print('begun', flush=True); time.sleep(60)"
    )
    environment = {"PYTHONPATH": str(PROJECT / "tools/testing")}
    command = [sys.executable, "-c", script, str(tmp_path)]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout and child.stdout.readline() == "begun\n"
        assert record.latest(tmp_path) == [] and files(tmp_path)[0]["state"] == "running"
        child.kill()
    (one,) = record.latest(tmp_path)
    assert (one.state, one.why) == ("none", f"its process {child.pid} was killed")


def test_what_was_seen_survives_a_kill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Recorder(tmp_path, Record("x", "kunit x", "kunit", "x", "um", "", "x"))
    recorder.note(CASES[:1])
    assert files(tmp_path)[0]["cases"] == [], "the file is not written for each case"
    monkeypatch.setattr(record, "PAUSE", 0)
    time.sleep(0.01)
    recorder.note(CASES)
    assert len(files(tmp_path)[0]["cases"]) == 2


def test_logs_stay_when_the_next_run_replaces_them(tmp_path: Path) -> None:
    log = tmp_path / "test.log"
    log.write_text("first")
    one = recorded(tmp_path, "x-um", CASES, logs=[log, tmp_path / "missing"])
    log.unlink()
    log.write_text("second")
    assert one.logs == ["test.log"] and (tmp_path / "runs" / one.id / "test.log").read_text() == "first"


@pytest.mark.parametrize("kind", ["mutants", "coverage", "bench", "patches"])
def test_what_is_no_case_is_recorded_as_data(tmp_path: Path, kind: str) -> None:
    of_command(tmp_path, kind, {"found": 1})
    of_command(tmp_path, kind, {"found": 2})
    of_command(tmp_path, kind, {"found": 3}, "a part")
    with (
        pytest.raises(UserError),
        record.kept(tmp_path, record.facts(kind, "linux-um", label="linux", arch="um", pages="")),
    ):
        raise UserError("it does not build")
    assert [content["state"] for content in files(tmp_path)].count("passed") == 3
    assert record.data(tmp_path, kind) == {f"{kind} linux-um": {"found": 2}, f"{kind} linux-um a part": {"found": 3}}
    assert [one.state for one in record.latest(tmp_path, (kind,))] == ["none", "passed"]
    assert record.latest(tmp_path) == [], "readers of cases do not get this record"


def test_kunit_py_writes_a_record(user: User) -> None:
    done = user.kunit("run", "--arch=arm64")
    assert done.returncode == 0, done.stderr
    (content,) = files(Path(user.environment["O"]))
    assert (content["kind"], content["state"], content["arch"], content["pages"]) == ("kunit", "passed", "arm64", "4K")
    assert content["command"].endswith("./tools/testing/kunit/kunit.py run --arch=arm64") and content["logs"]


FAILS = """\
KTAP version 1
1..1
    # Subtest: one
    # a: w.seed=7 w.steps=9 goes wrong
    not ok 1 a
not ok 1 one
"""


def test_a_part_does_not_replace_the_whole(user: User) -> None:
    user.kunit("run", "--arch=arm64")
    consoles = json.dumps({"one.a": FAILS, "typo": "KTAP version 1\n1..0\n"})
    done = user.kunit("run", "--arch=arm64", "one.a", FAKE_CONSOLES=consoles, FAKE_STATUS="1")
    words = "./tools/testing/kunit/kunit.py run --arch=arm64"
    assert f"{words} --kernel_args w.seed=7 --kernel_args w.steps=9 one.a\n" in done.stderr
    done = user.kunit("run", "--arch=arm64", "typo", FAKE_CONSOLES=consoles, FAKE_STATUS="1")
    assert done.returncode == 125 and "has no test that matches typo: --list_tests prints all" in done.stderr
    whole, part = record.latest(Path(user.environment["O"]))
    assert (whole.state, part.state) == ("passed", "failed") and part.name == f"{whole.name} one.a"


def test_after_a_repeat_the_next_step_is_to_compare(user: User) -> None:
    words = ["run", "--arch=arm64", "--kernel_args", "w.seed=7", "--kernel_args", "w.steps=9", "one.a"]
    done = user.kunit(*words, FAKE_CONSOLES=json.dumps({"w.seed=7": FAILS}))
    assert f"{' '.join(words)}  # do these tests also fail on this kernel?" in done.stderr


def test_an_unknown_architecture_is_one_line(user: User) -> None:
    done = user.kunit("run", "--arch=arm65")
    assert done.returncode == 125 and user.calls() == []
    assert done.stderr.startswith("kunit.py: --arch=arm65: no such architecture; choose from um, arm64")
