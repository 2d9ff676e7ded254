# SPDX-License-Identifier: GPL-2.0
"""The record of a run: O/runs/ID/run.json, with the consoles next to it.

Each boot of suites and each run of selftests writes a record. The commands matrix, mutants, coverage, bench, patches,
tlb and tlb-mutants write records too. The commands that read results read only these records. run.schema.json describes
the file.
"""

import contextlib
import functools
import json
import os
import shutil
import time
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..boot.results import KNOWN, Case, counts
from ..boot.results import STATES as CASES
from ..core import disk, output, progress
from ..core.errors import FAILED, PASSED, SKIPPED, UserError
from ..core.settings import out_of

FILE = "run.json"

KEPT = 10
"""At most this many records with the same name are kept. Older records are removed."""

PAUSE = 5
"""At least this many seconds pass between two writes of one record, except before the last write."""

SCHEMA = "1.0"
"""The version of run.schema.json. A new field increases the second number. Any other change increases the first."""

TESTS = ("kunit", "kselftest")
"""The kinds of runs whose results are cases. Runs of other kinds store their results in `data`, in their own form."""

STATES = ("running", "passed", "failed", "skipped", "none")
"""The states of a run. The state "none" means that the run has no verdict. The reason is in `why`."""


@dataclass
class Record:
    """One run.

    id:        the name of its folder
    name:      what was run: kind and build folder, or the cell; a later run of the same name replaces it in summaries
    kind:      one of TESTS, or another kind that run.schema.json lists
    cell:      the cell of the matrix or of `make check`; "" for other runs
    label:     the kernel: package or version, and the changes in its working copy
    arch:      as in --arch=
    pages:     as in PAGES=
    build:     the name of the build folder
    config:    a digest of the configuration that was built, or ""
    source:    the package or the tree, with its commit
    version:   the version that the kernel prints, or ""
    compiler:  the compiler that the kernel prints, or ""
    emulator:  the emulator that booted the kernel
    host:      whether the tests ran on this machine's own kernel
    command:   the line that repeats the run; "" if no line does
    process:   the ID of the process that runs it
    began:     the time of the start, in ISO 8601
    seconds:   how long it took
    state:     one of STATES
    built:     whether the kernel was built
    why:       the reason, if there is no verdict
    logs:      names of the files in its folder
    cases:     each case with its verdict
    baseline:  the file with the known failures of the tree, or ""
    schema:    the version of this format, SCHEMA
    data: results of a command that are not cases; the command defines their form
    """

    id: str
    name: str
    kind: str
    label: str
    arch: str
    pages: str
    build: str
    cell: str = ""
    config: str = ""
    source: str = ""
    version: str = ""
    compiler: str = ""
    emulator: str = ""
    host: bool = False
    command: str = ""
    process: int = 0
    began: str = ""
    seconds: float = 0.0
    state: str = "running"
    built: bool = True
    why: str = ""
    logs: list[str] = field(default_factory=list)
    cases: list[Case] = field(default_factory=list)
    baseline: str = ""
    schema: str = SCHEMA
    data: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, content: dict[str, Any]) -> "Record":
        """The record with the content of a file; fields of later versions are ignored.

        Raises ValueError, TypeError, KeyError or AttributeError for a format that this version cannot read.
        """
        if str(content.get("schema", SCHEMA)).partition(".")[0] != SCHEMA.partition(".")[0]:
            raise ValueError(f"schema {content['schema']}")
        cases = [Case(**_fields(Case, case)) for case in content.get("cases", [])]
        if content.get("state", "running") not in STATES or {case.state for case in cases} - {*CASES, KNOWN}:
            raise ValueError("a state that is not known")
        datetime.fromisoformat(content["began"])
        return cls(**{**_fields(cls, content), "cases": cases})


def _fields(kind: type, content: dict[str, Any]) -> dict[str, Any]:
    """The content of a file without fields that the class does not have."""
    return {entry.name: content[entry.name] for entry in fields(kind) if entry.name in content}


def facts(kind: str, build: str, scope: str = "", **more: Any) -> Record:
    """The facts about a run before it begins; `scope`: the part of the tests that it runs, or "" for all."""
    name = " ".join(filter(None, [kind, build, scope]))
    return Record("-".join([time.strftime("%Y%m%dT%H%M%S"), kind, build]), name, kind, build=build, **more)


def outcome(status: int) -> str:
    """The state of a run when its command ends with this exit status."""
    return {PASSED: "passed", FAILED: "failed", SKIPPED: "skipped"}.get(status, "none")


NO_TEST = "has no test that matches"
"""The message of a run if the kernel has none of the named tests. Such a run leaves no record."""


def state(cases: Sequence[Case]) -> str:
    """The state of a run that ended with these cases. A run with only known failures has passed."""
    number = counts(cases)
    number["passed"] += number.get(KNOWN, 0)
    return next((name for name in ("failed", "passed", "skipped") if number[name]), "none")


class NothingRanError(UserError):
    """The kernel has none of the tests that the user named."""


class Recorder:
    """Writes the record of one run.

    record: the record
    folder: its folder
    """

    def __init__(self, out: Path, record: Record) -> None:
        """Begin a record below `out`. If a record with its ID exists, the ID gets a number."""
        for number in range(1000):
            self.folder = out / "runs" / (f"{record.id}-{number}" if number else record.id)
            with contextlib.suppress(FileExistsError):
                self.folder.mkdir(parents=True)
                break
        self.record, self._like = record, f"*{record.id.partition('-')[2]}*"
        self._since = self._written = time.monotonic()
        record.id, record.process = self.folder.name, os.getpid()
        record.began = record.began or datetime.now(UTC).isoformat(timespec="seconds")
        self._write()

    def note(self, cases: Sequence[Case]) -> None:
        """Save the verdicts so far, in case this process is killed."""
        self.record.cases = list(cases)
        if time.monotonic() - self._written >= PAUSE:
            self._write()

    def put(self, data: dict[str, Any]) -> None:
        """Keep what a command has found so far."""
        self.record.data = data
        self._write()

    def keep(self, files: Iterable[Path]) -> None:
        """Keep files next to the record. A link is enough, since runs replace these files and do not change them."""
        for file in files:
            if file.exists():
                target = self.folder / file.name
                target.unlink(missing_ok=True)
                try:
                    target.hardlink_to(file)
                except OSError:
                    shutil.copyfile(file, target)
                self.record.logs.append(file.name)

    def end(self, state: str, why: str = "") -> None:
        """Note the end of the run, and remove old records."""
        self.record.state, self.record.why = state, why
        self._write()
        prune(self.folder.parent, self.record.name, self._like)

    def _write(self) -> None:
        self._written = time.monotonic()
        self.record.seconds = round(self._written - self._since, 1)
        disk.replace(self.folder / FILE, (json.dumps(asdict(self.record), indent=1) + "\n").encode())


@contextlib.contextmanager
def kept(out: Path, facts: Record, complete: Callable[[Recorder], None] = lambda recorder: None) -> Iterator[Recorder]:
    """Record the block. `complete` adds to the record at the end. A block that ran nothing leaves no record.

    The block may set the state. If it does not, the cases decide the state.
    """
    recorder = Recorder(out, facts)
    why = ""
    try:
        yield recorder
    except NothingRanError:
        shutil.rmtree(recorder.folder)
        raise
    except BaseException as error:
        why = str(error) or "interrupted"
        raise
    finally:
        if recorder.folder.exists():
            complete(recorder)
            said = facts.state if facts.state != "running" else state(facts.cases)
            recorder.end("none" if why else said, why)


def every(out: Path, like: str = "*") -> Iterator[Record]:
    """The records below `out`, oldest first. If the process of a running record is gone, the run has no verdict.

    like: a glob of IDs
    """
    found = []
    for file in (out / "runs").glob(f"{like}/{FILE}"):
        try:
            found.append(Record.of({**json.loads(file.read_text()), "id": file.parent.name}))
        except OSError:
            continue  # another run removes it
        except (ValueError, TypeError, KeyError, AttributeError):
            _say_left_out(file)
    for record in sorted(found, key=lambda record: (record.began, record.id)):
        if record.state == "running" and not alive(record):
            record.state, record.why = "none", f"its process {record.process} was killed"
        yield record


@functools.cache
def _say_left_out(file: Path) -> None:
    progress.say(f"{file} is left out: it is damaged, or was written by another version of mmcheck")


def alive(record: Record) -> bool:
    """Whether the process of a run still exists. A process with the same number that began later does not count."""
    try:
        ticks = int(Path(f"/proc/{record.process}/stat").read_text().rpartition(")")[2].split()[19])
        up = float(Path("/proc/uptime").read_text().split()[0])
    except OSError:
        return False
    started = time.time() - up + ticks / os.sysconf("SC_CLK_TCK")
    return started <= datetime.fromisoformat(record.began).timestamp() + 2


def of_process(out: Path, process: int, since: float) -> Record | None:
    """The last record of a process that began at `since`. Earlier processes may have had the same number."""
    own = [one for one in every(out) if one.process == process]
    return own[-1] if own and datetime.fromisoformat(own[-1].began).timestamp() >= int(since) else None


def printed(environ: Mapping[str, str]) -> AbstractContextManager[None]:
    """With JSON=1: print the records that this process writes in the block, as one list; see output.as_json().

    The list also has the cells of a matrix that an earlier process completed.
    """
    out, since = out_of(environ), int(time.time())

    def text() -> str:
        found = list(every(out))
        own = [one for one in found if one.process == os.getpid()]
        own = [one for one in own if datetime.fromisoformat(one.began).timestamp() >= since]
        ids = {one.id for one in own}.union(*(one.data.get("done", ()) for one in own))
        return json.dumps([asdict(one) for one in found if one.id in ids], indent=1)

    return output.as_json(environ, text)


def latest(out: Path, kinds: Container[str] = TESTS) -> list[Record]:
    """For each name, the last record that is not running; sorted by name."""
    found = {record.name: record for record in every(out) if record.state != "running" and record.kind in kinds}
    return [found[name] for name in sorted(found)]


def data(out: Path, kind: str) -> dict[str, dict[str, Any]]:
    """For each name, the data of the last run that found something."""
    return {record.name: record.data for record in every(out) if record.kind == kind and record.data}


def prune(folder: Path, name: str, like: str = "*") -> None:
    """Remove old records of `name`; the glob `like` must match the IDs of all of them."""
    own = [record for record in every(folder.parent, like) if record.name == name and record.state != "running"]
    for record in own[:-KEPT]:
        shutil.rmtree(folder / record.id, ignore_errors=True)
