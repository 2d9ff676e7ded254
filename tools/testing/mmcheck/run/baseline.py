# SPDX-License-Identifier: GPL-2.0
"""BASELINE=: the known failures of the user's own tree.

Only this module decides which failures a baseline accepts. It changes the state of an accepted failure from "failed"
to "known". All code that prints, counts or exports cases uses this state. A failure that a baseline does not accept
stays "failed", and its text gives the reason.
"""

import dataclasses
import fnmatch
import glob
import json
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..boot.results import KNOWN, Case, counts, printable
from ..core import disk
from ..core.errors import FAILED, PASSED, UserError

NOTE = "baseline: "
"""If the baseline does not accept a failure, the output of the failure gets a line that begins with this text."""

FIXED = "fixed: "
"""If the baseline lists a case that passed, the output of the case gets a line that begins with this text."""

KEYS = {"case": str, "why": str, "fails": int, "splat": bool, "arches": list, "pages": list}
"""The keys of an entry, and the type of each."""


@dataclass(frozen=True)
class Entry:
    """One known failure.

    case:   `suite.case`, or `suite.case: parameter`; `suite` alone is a failure outside of its cases
    why:    the reason
    fails:  if above 0, `case` is a glob, and at most this many of the matching cases may fail
    splat:  whether the kernel warns or dies
    arches, pages: where the entry holds; empty for everywhere
    """

    case: str
    why: str
    fails: int = 0
    splat: bool = False
    arches: tuple[str, ...] = ()
    pages: tuple[str, ...] = ()

    @property
    def most(self) -> int:
        """How many cases may fail."""
        return self.fails or 1

    def holds(self, arch: str, pages: str) -> bool:
        """Whether the entry is about kernels of this architecture and page size."""
        return (not self.arches or arch in self.arches) and (not self.pages or pages in self.pages)

    def names(self, case: str) -> bool:
        """Whether the entry is about this case."""
        return fnmatch.fnmatchcase(case, self.case) if self.fails else case == self.case

    def named_as(self, one: "Entry") -> bool:
        """Whether this entry is about the case of the entry `one`."""
        return self.case == one.case or self.names(one.case)

    def accepts(self, one: "Entry") -> bool:
        """Whether this entry accepts at least as many failures as `one`, and accepts splats if `one` does."""
        return self.most >= one.most and (self.splat or not one.splat)

    def places(self) -> list[tuple[str, str]]:
        """Architectures and page sizes to which the entry applies; "" for all."""
        return [(arch, pages) for arch in self.arches or [""] for pages in self.pages or [""]]

    def about(self, suite: str) -> bool:
        """Whether the entry is about cases of this suite."""
        return fnmatch.fnmatchcase(suite, self.case.partition(".")[0])

    def toml(self) -> str:
        """The entry as lines of a file."""
        values = {key: value for key, value in vars(self).items() if value or key in ("case", "why")}
        lines = (f"{key} = {text(list(value) if isinstance(value, tuple) else value)}" for key, value in values.items())
        return "\n".join(["[[known]]", *lines]) + "\n"


def text(value: object) -> str:
    """A value in TOML, which has no escapes for some characters that JSON escapes."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "?")


@dataclass(frozen=True)
class Baseline:
    """The known failures of a tree.

    file:    where they are listed
    entries: one for each failure; only the first entry that names a case counts
    """

    file: Path
    entries: tuple[Entry, ...] = ()

    def judge(self, cases: Sequence[Case], arch: str, pages: str) -> list[Case]:
        """The cases of one run; a failure that the baseline accepts has the state "known".

        An entry accepts no failure if more cases fail than it lists: old and new failures then look the same.
        """
        own = [entry for entry in self.entries if entry.holds(arch, pages)]
        entry_of = {it: next((one for one in own if one.names(it)), None) for it in {case.full for case in cases}}
        failed = [case for case in cases if case.state == "failed"]
        by_entry = Counter(entry_of[case.full] for case in failed)
        by_suite = Counter(case.suite for case in failed)
        left = {one: one.most - by_entry[one] for one in own}
        # A skipped case may still be broken, so its entry stays.
        open_ = {entry_of[case.full] for case in cases if case.state == "skipped"}
        found = []
        for case in cases:
            entry = entry_of[case.full]
            if case.state == "failed":
                listed = sum(one.most for one in own if one.about(case.suite))
                case = self._failed(case, entry, by_entry[entry], by_suite[case.suite], listed)
            elif case.state == "passed" and entry and left[entry] > 0 and entry not in open_:
                case = dataclasses.replace(case, text=[*case.text, self._fixed(entry, by_entry[entry])])
                left[entry] = 0
            found.append(case)
        return found

    def _failed(self, case: Case, entry: Entry | None, same: int, suite: int, listed: int) -> Case:
        """A case that failed.

        same: the number of cases that failed and match `entry`
        suite: the number of cases of its suite that failed
        listed: the number of failures that entries list for its suite

        A case that is not listed gets a line only if the baseline lists other cases of its suite.
        """
        if entry and same <= entry.most and (entry.splat or not case.splat):
            return dataclasses.replace(case, state=KNOWN, text=[f"{KNOWN} to this tree: {entry.why}", *case.text])
        if entry and same > entry.most:
            why = f"{same} failures match {entry.case}, but {self.file.name} accepts only {entry.most}"
        elif entry:
            why = f"the kernel warned or crashed in {case.full}, but its entry in {self.file.name} has no splat = true"
        elif listed and suite > listed:
            why = f"{suite} cases of {case.suite} fail, but {self.file.name} lists only {listed}"
        elif listed:
            why = f"{self.file.name} does not list {case.full}"
        else:
            return case
        return dataclasses.replace(case, text=[*case.text, f"{NOTE}{why}"])

    def _fixed(self, entry: Entry, failed: int) -> str:
        """The advice about an entry that lists more failures than there are."""
        if failed:
            less = f"only {failed} of {entry.most} failures of {entry.case} still occur"
            return f"{FIXED}{less}; set `fails = {failed}` in {self.file.name}"
        return f"{FIXED}remove {entry.case} from {self.file.name}"

    def missing(self, found: Iterable[Entry]) -> list[Entry]:
        """The entries of `found` that the baseline lacks."""
        return [one for one in found if not any(self._has(entry, one) for entry in self.entries)]

    def hidden(self, one: Entry) -> bool:
        """Whether an old entry hides the new entry `one`: the old entry names the same case, and accepts less."""
        places = one.places()
        return any(
            entry.named_as(one) and not entry.accepts(one) and any(entry.holds(*place) for place in places)
            for entry in self.entries
        )

    @staticmethod
    def _has(entry: Entry, one: Entry) -> bool:
        """Whether `entry` accepts all that `one` accepts."""
        return entry.named_as(one) and entry.accepts(one) and all(entry.holds(*place) for place in one.places())


def status(given: int, cases: Sequence[Case]) -> int:
    """The exit status to return for a run that ended with `given`. A run has passed if all its failures are known.

    The kernel's kunit.py ends with 0 if the kernel warned and no test failed. mmcheck counts such a run as failed.
    """
    number = counts(cases)
    if number["failed"] and given == PASSED:
        return FAILED
    return PASSED if given == FAILED and number.get(KNOWN) and not number["failed"] else given


def notes(cases: Iterable[Case]) -> list[str]:
    """The lines on failures that the baseline does not accept, each once."""
    failed = (case for case in cases if case.state == "failed")
    return list(dict.fromkeys(line for case in failed for line in case.text if line.startswith(NOTE)))


def load(file: Path) -> Baseline:
    """Read a baseline. Raises UserError with the place of the mistake."""
    try:
        whole = tomllib.loads(file.read_text())
    except OSError as error:
        hint = f"; ./mmcheck baseline --baseline {file} creates it" if isinstance(error, FileNotFoundError) else ""
        raise UserError(f"BASELINE={file}: {error.strerror}{hint}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"BASELINE={file}: {error}") from None
    if unknown := set(whole) - {"known"}:
        why = f"there is no key {', '.join(sorted(unknown))}; begin each entry with the line [[known]]"
        raise UserError(f"BASELINE={file}: {why}")
    if not isinstance(whole.get("known", []), list):
        raise UserError(f"BASELINE={file}: `known` is not a list; begin each entry with the line [[known]]")
    found: list[Entry] = []
    for number, content in enumerate(whole.get("known", []), 1):
        if why := wrong(content):
            raise UserError(f"BASELINE={file}: entry {number}: {why}")
        values: dict[str, Any] = {key: tuple(it) if isinstance(it, list) else it for key, it in content.items()}
        entry = Entry(**values)
        if any(old.case == entry.case and old.arches == entry.arches and old.pages == entry.pages for old in found):
            raise UserError(f"BASELINE={file}: entry {number}: {entry.case} is listed twice; remove one of them")
        found.append(entry)
    return Baseline(file, tuple(found))


def wrong(content: Any) -> str:
    """What is wrong with an entry; "" if nothing is."""
    if not isinstance(content, dict):
        return "begin each entry with the line [[known]]"
    for key, value in content.items():
        if key not in KEYS:
            return f"there is no key {key}; use {', '.join(KEYS)}"
        if type(value) is not KEYS[key] or (isinstance(value, list) and not all(isinstance(one, str) for one in value)):
            return f"{key} = {value!r}: the value has the wrong type"
    if not content.get("case") or not content.get("why", "").strip():
        return "needs the keys `case` and `why`, and a value for each"
    if "fails" in content and content["fails"] < 1:
        return f"fails = {content['fails']}: use a number above 0"
    if "fails" not in content and "*" in content["case"]:
        return f"{content['case']}: a glob needs the key `fails`, the number of matching cases that may fail"
    return ""


def named(environ: Mapping[str, str]) -> Baseline | None:
    """The baseline that BASELINE= names; None if it names none."""
    return load(Path(environ["BASELINE"]).expanduser()) if environ.get("BASELINE") else None


def entry(case: str, why: str, fails: int, splat: bool, arches: Iterable[str], pages: Iterable[str]) -> Entry:
    """An entry for a case that failed `fails` times in one run."""
    several = fails > 1
    written = glob.escape(case) if several else case
    return Entry(written, printable(why), fails * several, splat, tuple(sorted(arches)), tuple(sorted(pages)))


def add(file: Path, entries: Sequence[Entry]) -> None:
    """Append entries to a file, which may be missing. Its old content does not change."""
    old = file.read_bytes() if file.exists() else b"# Known failures of this tree; Documentation/mmcheck/baseline.rst\n"
    new = b"\n".join([old, *(one.toml().encode() for one in entries)])
    try:
        tomllib.loads(new.decode())
    except tomllib.TOMLDecodeError:
        why = "nothing was added: begin each entry with the line [[known]], and do not write known = [...]"
        raise UserError(f"BASELINE={file}: {why}") from None
    file.parent.mkdir(parents=True, exist_ok=True)
    disk.replace(file.resolve(), new)
