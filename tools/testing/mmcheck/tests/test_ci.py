# SPDX-License-Identifier: GPL-2.0
"""The templates in ci/ are well-formed, and boot the machine of `make kselftest`. test_commands.py executes them."""

import io
import re
import shlex
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from mmcheck.boot import guest, results
from mmcheck.core import ours, settings
from mmcheck.core.settings import PROJECT
from mmcheck.kernel import toolchain
from mmcheck.run import bundle, selftests
from mmcheck.run.session import SelftestRun

CI = PROJECT / "ci"

CONSOLE = """\
[    0.802382] Run /init as init process\r
[    1.087901] # selftests: mm: folio_one\r
[    1.123781] TAP version 13\r
[    1.124377] # Starting 4 tests from 1 test cases.\r
[    1.124386] #  RUN           folio_one.anon.good ...\r
[    1.186059] #            OK  folio_one.anon.good\r
[    1.186269] ok 1 folio_one.anon.good\r
[    2.011563] #      SKIP      CONFIG_MEM_SOFT_DIRTY=n\r
[    2.013632] ok 2 folio_one.anon.missing # SKIP CONFIG_MEM_SOFT_DIRTY=n\r
[    2.213632] not ok 3 folio_one.anon.bad\r
[    2.313632] ok 4 folio_one.anon.known # XFAIL some day\r
[    2.631963] not ok 1 selftests: mm: folio_one # exit=1\r
[    2.731963] # selftests: mm: old\r
[    2.831963] ok 2 selftests: mm: old # SKIP\r
[    2.931963] # selftests: mm: slow\r
[   30.631963] not ok 3 selftests: mm: slow # TIMEOUT 300 seconds\r
[   30.651261] reboot: Power down\r
"""


def load(name: str) -> Any:
    """The content of a YAML file of ci/."""
    yaml = pytest.importorskip("ruamel.yaml", reason="ruamel.yaml, which check-jsonschema brings, is not installed")
    return yaml.YAML(typ="safe").load(io.StringIO((CI / name).read_text()))


@pytest.mark.parametrize(
    ("name", "schema"),
    [
        ("github.yml", ["vendor.github-workflows"]),
        ("github.yml", ["custom.github-workflows-require-timeout"]),
        ("gitlab.yml", ["vendor.gitlab-ci", "--data-transform", "gitlab-ci"]),
    ],
)
def test_the_schema_takes_it(name: str, schema: list[str]) -> None:
    pytest.importorskip("check_jsonschema", reason="check-jsonschema is not installed")
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", *schema, str(CI / name)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_each_kernel_and_page_size_is_one_that_there_is() -> None:
    rows = load("github.yml")["jobs"]["kunit"]["strategy"]["matrix"]["include"]
    rows += [
        {"arch": arch, "kernel": row["KERNEL"], "pages": pages}
        for row in load("gitlab.yml")["kunit"]["parallel"]["matrix"]
        for arch in ([row["ARCH"]] if isinstance(row["ARCH"], str) else row["ARCH"])
        for pages in row.get("PAGES", [""])
    ]
    for row in rows:
        assert row["arch"] in toolchain.ARCHITECTURES
        assert isinstance(row["kernel"], str)  # YAML would read a number 6.10 as 6.1
        settings.from_environment({"ARCH": row["arch"], "PAGES": row.get("pages", "")})


def test_the_lava_job_boots_the_machine_of_the_selftests() -> None:
    job = load("lava.yaml")
    context, deploy = job["context"], job["actions"][0]["deploy"]["images"]
    kernel = deploy["kernel"]["image_arg"]
    ours = guest.command("arm64", Path("build"), Path("initrd"), Path("disk"), cpus=1, accelerated=False)
    assert shlex.split(kernel) == ["-kernel", "{kernel}", "-append", ours[-1]]
    assert context["cpu"] == ours[ours.index("-cpu") + 1]
    assert context["machine"] == ours[ours.index("-machine") + 1]
    assert context["memory"] == guest.MEMORY
    assert set(" ".join(context["extra_options"]).split()) <= set(ours)
    assert deploy["disk"]["image_arg"].split()[-2:] == ours[ours.index("-device") :][:2]


def test_the_lava_job_reads_the_verdicts_that_the_machine_prints() -> None:
    (monitor,) = load("lava.yaml")["actions"][2]["test"]["monitors"]
    begun = re.search(monitor["start"], CONSOLE)
    assert begun and re.search(monitor["end"], CONSOLE)
    # LAVA matches the pattern with DOTALL, against the output so far.
    pattern = re.compile(monitor["pattern"], re.DOTALL)
    found = []
    rest = seen = ""
    for character in CONSOLE[begun.end() :]:
        rest = seen + character
        match = pattern.search(rest)
        if match:
            found.append((match["test_case_id"], monitor["fixupdict"][match["result"]]))
        seen = rest[match.end() :] if match else rest
    assert found == [
        ("folio_one.anon.good", "pass"),
        ("folio_one.anon.missing", "skip"),
        ("folio_one.anon.bad", "fail"),
        ("folio_one.anon.known", "skip"),
        ("folio_one", "fail"),
        ("old", "skip"),
        ("slow", "fail"),
    ]
    reader = results.Reader()
    cases = [case for line in CONSOLE.splitlines() for case in reader.feed(line)]
    states = {"passed": "pass", "failed": "fail", "skipped": "skip"}
    assert [states[case.state] for case in cases] == [word for name, word in found if name != "folio_one"]


KSELFTEST = """\
TAP version 13
1..2
# timeout set to 300
# selftests: mm: folio_one
# TAP version 13
# ok 1 folio_one.anon.good
# ok 2 folio_one.anon.missing # SKIP CONFIG_MEM_SOFT_DIRTY=n
# not ok 3 folio_one.anon.bad
# # Totals: pass:1 fail:1
not ok 1 selftests: mm: folio_one # exit=1
# selftests: mm: old
ok 2 selftests: mm: old # SKIP
"""


def test_the_job_for_boards_reads_what_run_kselftest_prints(tmp_path: Path) -> None:
    (definition,) = load("lava-board.yaml")["actions"][2]["test"]["definitions"]
    steps = definition["repository"]["run"]["steps"]
    assert any("./run_kselftest.sh -c mm " in step for step in steps)
    log = tmp_path / "kselftest.log"
    log.write_text(KSELFTEST)
    (step,) = [step for step in steps if step.startswith("awk")]
    tool = tmp_path / "lava-test-case"
    tool.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/said\n')
    tool.chmod(0o755)
    script = step.replace("/tmp/kselftest.log", str(log))
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    done = subprocess.run(["sh", "-e", "-c", script], env=environment, capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr, done.stderr
    assert (tmp_path / "said").read_text().splitlines() == [
        "folio_one.anon.good --result pass",
        "folio_one.anon.missing --result skip",
        "folio_one.anon.bad --result fail",
        "folio_one --result fail",
        "old --result skip",
    ]


def test_each_job_for_kernelci_is_scheduled() -> None:
    whole = load("kernelci.yml")
    assert {entry["job"] for entry in whole["scheduler"]} == set(whole["jobs"])
    for job in whole["jobs"].values():
        assert job["kind"] == "job" and job["template"] == "generic.jinja2"
        assert job["params"]["test_method"] == "kselftest" and job["params"]["collections"] == "mm"
    for entry in whole["scheduler"]:
        assert set(entry) == {"job", "event", "runtime", "platforms"}


def test_a_bundle_is_what_a_lab_boots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build, target = tmp_path / "build", tmp_path / "bundle"
    image = build / "arch/arm64/boot/Image"
    image.parent.mkdir(parents=True)
    image.write_text("image")
    tool = build / "usr/gen_init_cpio"
    tool.parent.mkdir()
    tool.write_text('#!/bin/sh\ncat "$1"\n')
    tool.chmod(0o755)
    monkeypatch.setattr(guest, "packages", lambda *_: Path("/cache"))
    monkeypatch.setattr(guest, "disk", lambda path: path.write_text("disk"))
    session = SimpleNamespace(
        settings=settings.from_environment({"ARCH": "arm64", "O": str(tmp_path)}),
        launch=SimpleNamespace(build=build, tree=tmp_path),
        broken={},
        build=lambda names: {name: tmp_path / "programs" / name for name in names},
    )
    bundle.pack(cast(SelftestRun, session), "", target)
    names = {Path(url).name for image in load("lava.yaml")["actions"][0]["deploy"]["images"].values()
             for key, url in image.items() if key == "url"}  # fmt: skip
    assert {path.name for path in target.iterdir()} == names | {"cmdline", "programs", "kselftest.tar.gz", ours.MARKER}
    run = [line.split()[1] for line in (target / "programs").read_text().splitlines()]
    assert run == [one.name for one in selftests.programs() if one.name not in selftests.MACHINES]
    bundle.pack(cast(SelftestRun, session), "folio_race", target)
    assert (target / "programs").read_text() == "300 folio_race\n"
