# SPDX-License-Identifier: GPL-2.0
"""`make kcidb`: writes the results below O= as a submission to KCIDB, the database of kernel test results (schema 5).

In the submission, a kernel with the overlay is a checkout, a build folder is a build, and a case is a test run. The ID
of a test run derives from the build and the verdicts of its run, so the same results always get the same IDs. The
command does not send the submission.
"""

import functools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from ..boot import results
from ..core import disk, git, progress
from ..core.errors import UserError
from ..core.settings import PROJECT, from_environment
from ..kernel import graft, identity, known_issues, source
from ..kernel.make import LOG
from ..run import record

VERSION = {"major": 5, "minor": 0}
ORIGIN = "mmcheck"
ISSUE_VERSION = 1
"""KCIDB requires a version number for each issue. All known issues have this version."""
EXCERPT = 16384
"""The maximum number of characters that the schema allows for a log."""

LARGEST = 4 << 20
"""The largest size of a submission in bytes. Servers refuse or drop larger ones, so mmcheck splits them."""

STATUS = {"passed": "PASS", "failed": "FAIL", "skipped": "SKIP", results.KNOWN: "FAIL"}
SUITES = {"kunit": "kunit", "kselftest": "kselftest.mm"}
"""The place of KUnit suites and of selftests in KCIDB's tree of tests."""

Item = dict[str, Any]


@dataclass(frozen=True)
class Submission:
    """Turns the results below a folder into a submission in the format of KCIDB.

    out:    the folder
    origin: the name of the lab that submits the results
    kdir:   the user's own kernel tree, or None
    """

    out: Path
    origin: str = ORIGIN
    kdir: Path | None = None

    def whole(self) -> Item:
        """The submission."""
        builds: dict[str, Item] = {}
        labels: dict[str, str] = {}
        tests: list[Item] = []
        for one in record.latest(self.out):
            if one.host:
                progress.say(f"the run {one.name} is left out, because mmcheck did not build its kernel")
                continue
            build = self.build(one)
            builds[build["id"]] = build
            labels[build["checkout_id"]] = one.label
            tests += self.tests(one)
        if not builds:
            raise UserError(f"no results in {self.out}: run kunit.py or make kselftest first, or set O=")
        return {
            "version": VERSION,
            "checkouts": [self.checkout(label) for label in labels.values()],
            "builds": list(builds.values()),
            "tests": tests,
            **self.known(tests),
        }

    def known(self, tests: Sequence[Item]) -> Item:
        """The known issues that `tests` met or reported as stale, and an incident for each report.

        A failure that the baseline lists counts as a failure here too, and becomes an issue of its own.
        """
        table = {issue.number: issue for issue in known_issues.load()}
        incidents: list[Item] = []
        for test in tests:
            said = test["misc"].get("reason", "") if test["status"] == "SKIP" else test["misc"].get("stale", "")
            pattern = known_issues.MET if test["status"] == "SKIP" else known_issues.STALE
            for match in pattern.finditer(said):
                incidents.append(self.incident(match[1], test, test["status"] == "SKIP", said))
        own: dict[str, Item] = {}
        for test in tests:
            if why := test["misc"].get("known"):
                number = "known-" + disk.digest(f"{test['path']} {why}".encode())[:12]
                own[number] = self.issue(number, f"{test['comment']}: {why}")
                incidents.append(self.incident(number, test, True, why))
        for incident in incidents:
            number = incident["issue_id"].rpartition(":")[2]
            if number.isdigit() and int(number) in table:
                it = table[int(number)]
                about = self.issue(number, f"{it.title}: {it.effect}")
                own[number] = {**about, "misc": {"upstream": it.upstream, "fixes": it.fixes}}
        issues = [own[number] for number in sorted(own)]
        listed = {issue["id"] for issue in issues}
        incidents = [incident for incident in incidents if incident["issue_id"] in listed]
        return {"issues": issues, "incidents": incidents} if issues else {}

    def issue(self, number: str, comment: str) -> Item:
        """An issue of KCIDB: a bug of the kernel."""
        return {
            "id": self.id("issue", number),
            "version": ISSUE_VERSION,
            "origin": self.origin,
            "comment": excerpt(comment),
            "culprit": {"code": True, "tool": False, "harness": False},
        }

    def incident(self, number: str, test: Item, present: bool, comment: str) -> Item:
        """An incident of KCIDB. It says that `test` met the issue, or that `test` reported the issue as stale."""
        return {
            "id": self.id("incident", number, test["id"].partition(":")[2]),
            "origin": self.origin,
            "issue_id": self.id("issue", number),
            "issue_version": ISSUE_VERSION,
            "test_id": test["id"],
            "present": present,
            "comment": excerpt(comment),
        }

    def id(self, *parts: str) -> str:
        """The ID of an item."""
        return ":".join([self.origin, *parts])

    def checkout_id(self, label: str) -> str:
        """The ID of a checkout: the kernel `label`, its commit if git knows it, and a digest of the overlay."""
        commit = self.git(label).get("git_commit_hash", "")[:12]
        return self.id("-".join(part for part in (label, commit, overlay()[:12]) if part))

    def checkout(self, label: str) -> Item:
        """The checkout of the kernel `label`."""
        return {
            "id": self.checkout_id(label),
            "origin": self.origin,
            "comment": f"linux {label} with mmcheck",
            "valid": True,
            **self.git(label),
            "misc": {"kernel": label, "overlay": overlay()},
        }

    def git(self, label: str) -> dict[str, str]:
        """Commit, branch and URL of the user's own tree, if the tree has the kernel `label`."""
        if self.kdir is None or source.from_folder(self.kdir).label != label.partition("+")[0]:
            return {}
        questions = {
            "git_commit_hash": ("rev-parse", "HEAD"),
            "git_repository_branch": ("symbolic-ref", "-q", "--short", "HEAD"),
            "git_repository_url": ("config", "remote.origin.url"),
        }
        answers = {name: git.asked(self.kdir, *question) for name, question in questions.items()}
        answers["git_commit_name"] = identity.describe(self.kdir)
        if not answers["git_repository_url"].startswith("https://"):
            del answers["git_repository_url"]
        return {name: answer for name, answer in answers.items() if answer}

    def build_id(self, one: record.Record) -> str:
        """The ID of a build: the checkout, the build folder, and a digest of its configuration."""
        return ":".join(part for part in (self.checkout_id(one.label), one.build, one.config[:12]) if part)

    def build(self, one: record.Record) -> Item:
        """The build of the kernel of a run."""
        item: Item = {
            "id": self.build_id(one),
            "checkout_id": self.checkout_id(one.label),
            "origin": self.origin,
            "architecture": one.arch,
            "compiler": one.compiler,
            "config_name": one.pages,
            "status": "PASS" if one.built else "FAIL",
            "misc": {"folder": one.build},
        }
        if not one.built:
            item["log_excerpt"] = excerpt(self.log(one)[-EXCERPT:] or one.why)
        return {name: value for name, value in item.items() if value}

    def log(self, one: record.Record) -> str:
        """The output of the build of a run; "" if the build has no log."""
        file = self.out / "runs" / one.id / LOG
        return file.read_text(errors="replace") if file.exists() else ""

    def tests(self, one: record.Record) -> Iterator[Item]:
        """The test runs of one boot."""
        build = self.build_id(one)
        run = disk.digest("".join(map(str, [build, one.name, *one.cases])).encode())[:16]
        began = datetime.fromisoformat(one.began).timestamp()
        number: dict[str, int] = {}
        for case in one.cases:
            name = case.full
            number[name] = number.get(name, 0) + 1
            again = [str(number[name])] if number[name] > 1 else []
            item: Item = {
                "id": self.id(run, name, *again),
                "build_id": build,
                "origin": self.origin,
                "environment": {"comment": environment(one.arch), "misc": {"arch": one.arch}},
                "path": path(one.kind, case),
                "comment": excerpt(name),
                "status": STATUS[case.state],
                "start_time": datetime.fromtimestamp(round(began), UTC).isoformat(),
                "misc": {"suite": case.suite, "case": case.name},
            }
            began += case.seconds
            if case.seconds:  # this is 0 if the console has no time stamps
                item["duration"] = case.seconds
            text = excerpt("\n".join(case.text))
            if case.state == results.KNOWN:
                item["misc"]["known"] = case.text[0]
            if case.state in ("failed", results.KNOWN):
                item["log_excerpt"] = text or "no reason given"
                item["misc"]["splat"] = case.splat
            elif case.state == "skipped":
                item["misc"]["reason"] = text
            elif text:
                item["misc"]["stale"] = text
            yield item


def encoded(whole: Item) -> bytes:
    """The content of a file with the submission."""
    return json.dumps(whole, indent=1).encode()


def split(whole: Item, most: int = LARGEST) -> Iterator[Item]:
    """The submission in parts of at most `most` bytes, because servers drop a larger submission.

    Each part can be sent alone: it has the builds and checkouts of its tests, and their incidents and issues. An item
    in several parts has the same ID and content in each part.
    """
    incidents: dict[str, list[Item]] = {}
    for incident in whole.get("incidents", []):
        incidents.setdefault(incident["test_id"], []).append(incident)
    queue = [whole["tests"]]
    first = True
    while queue:
        tests = queue.pop(0)
        own = part(whole, tests, [one for test in tests for one in incidents.get(test["id"], [])], first)
        if len(tests) > 1 and len(encoded(own)) > most:
            half = len(tests) // 2
            queue[:0] = [tests[:half], tests[half:]]
            continue
        first = False
        yield own


def part(whole: Item, tests: Sequence[Item], incidents: Sequence[Item], first: bool) -> Item:
    """A part of the submission: `tests` and all items that they refer to. The `first` part has builds without tests."""
    tested = {test["build_id"] for test in whole["tests"]}
    used = {test["build_id"] for test in tests}
    builds = [one for one in whole["builds"] if one["id"] in used or (first and one["id"] not in tested)]
    trees, met = {one["checkout_id"] for one in builds}, {one["issue_id"] for one in incidents}
    found = {
        "version": whole["version"],
        "checkouts": [one for one in whole["checkouts"] if one["id"] in trees],
        "builds": builds,
        "tests": list(tests),
    }
    issues = [one for one in whole.get("issues", []) if one["id"] in met]
    return {**found, "issues": issues, "incidents": list(incidents)} if issues else found


def path(kind: str, case: results.Case) -> str:
    """The place of a case in KCIDB's tree of tests: `kunit.contpte.fold`. A parameter adds one level."""
    name, _, parameter = case.name.partition(": ")
    parts = [*case.suite.split("."), *name.split("."), parameter]
    return ".".join([SUITES[kind], *(word for part in parts if (word := re.sub(r"[^\w-]+", "_", part, flags=re.A)))])


def environment(arch: str) -> str:
    """The name of the machine that boots kernels for `arch`."""
    return "User Mode Linux" if arch == "um" else f"QEMU {arch}".strip()


def excerpt(text: str) -> str:
    """The beginning of `text`, as long as the schema allows, without control characters."""
    return results.printable(text)[:EXCERPT]


@functools.cache
def overlay() -> str:
    """A digest of all files that this repository adds to a kernel tree."""
    whole = sha256()
    for name in graft.overlay_files():
        whole.update(f"{name} {disk.digest((PROJECT / name).read_bytes())}\n".encode())
    return whole.hexdigest()


def run(environ: Mapping[str, str]) -> int:
    """Run the command. Returns the exit status, which does not depend on verdicts."""
    settings = from_environment({**environ, "PAGES": "", "PATCH": ""})
    origin = environ.get("ORIGIN") or ORIGIN
    if not re.fullmatch(r"[a-z0-9_]+", origin):
        raise UserError(f"ORIGIN={origin}: KCIDB allows lower-case letters, digits and underscores")
    whole = Submission(settings.out, origin, settings.kdir).whole()
    for old in settings.out.glob("kcidb-*.json"):
        if old.stem[6:].isdecimal():
            old.unlink()
    parts = list(split(whole))
    for number, part in enumerate(parts, 1):
        name = f"kcidb-{number}.json" if number > 1 else "kcidb.json"
        disk.replace(settings.out / name, encoded(part))
    counts = ", ".join(f"{len(whole[name])} {name}" for name in ("checkouts", "builds", "tests"))
    more = f", and kcidb-2.json to kcidb-{len(parts)}.json next to it: send each" if len(parts) > 1 else ""
    progress.say(f"{counts} in {settings.out / 'kcidb.json'}{more}")
    return 0
