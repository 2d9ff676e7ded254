# SPDX-License-Identifier: GPL-2.0
"""make mutants: does a test fail if the kernel has a mistake?

The KUnit suites judge a mutant of the catalogue. If its entry names a selftest, this selftest judges it instead. All
suites, and then all selftests, judge a mutant from MUTANTS= or a generated mutant. MATRIX=1 finds every case that
notices a mutant.
"""

import dataclasses
import fnmatch
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..boot import guest
from ..core import progress
from ..core.errors import FAILED, NO_VERDICT, PASSED, UserError
from ..core.settings import from_environment, whole
from ..core.variables import name_list
from ..run import closing, record
from . import catalogue, guest_judge, guest_matrix, killmatrix, matrix_run, rules, sample, suite_matrix
from .catalogue import Mutant
from .judge import KILLED, STATES, Result, Session


def table(results: Sequence[Result]) -> str:
    """The results and a summary as lines for a terminal."""
    width = max((len(result.name) for result in results), default=0)
    lines = []
    for result in results:
        what = result.where or result.argument or (result.harm if result.state != "does not fit" else "")
        lines.append(f"{result.name:{width}}  {result.state:14} {result.seconds:5.1f}s  {what}".rstrip())
    counts = {state: sum(r.state == state for r in results) for state in STATES}
    lines += [f"{count:4} {STATES[state]}" for state, count in counts.items() if count]
    return "\n".join(lines)


def excused(result: Result, mutants: Sequence[Mutant], session: Session) -> Result:
    """`result`. If the mutant is for another kernel or architecture, the result gets this reason."""
    if result.state != "does not fit":
        return result
    arches = sorted({m.arch for m in mutants if m.name == result.name})
    if all(arches) and not any(session.settings.arch in arch.split() for arch in arches):
        return dataclasses.replace(result, argument=f"for {', '.join(arches)}")
    if result.name in catalogue.misfits(session.source.path):
        return dataclasses.replace(result, argument="for another kernel")
    return result


NOTHING = ("does not fit", "does not build")
"""If a mutant has one of these states, no test ran with the mutant. These states say nothing about the tests."""


def status(results: Sequence[Result]) -> int:
    """FAILED if a mutant survived without a known reason, or if a test failed for an equivalent mutant.

    Otherwise NO_VERDICT if a mutant was not judged and the reason is not known. Otherwise PASSED.
    """
    if any(r.state == "false alarm" or (r.state == "survived" and not r.argument) for r in results):
        return FAILED
    return NO_VERDICT if any(r.state in NOTHING and not r.argument for r in results) else PASSED


def chosen(mutant: Mutant, only: str) -> bool:
    """Whether one of the globs of ONLY= matches a mutant."""
    return any(fnmatch.fnmatch(mutant.name, glob) for glob in name_list(only))


def run(environ: Mapping[str, str]) -> int:
    """Run the command. Returns the exit status."""
    with record.printed(environ):
        return judge_chosen(environ)


def judge_chosen(environ: Mapping[str, str]) -> int:
    """Judge the mutants that the variables choose. Returns the exit status."""
    jobs = whole(environ, "JOBS", os.cpu_count() or 1, "the number of boots that run at a time")
    folder = Path(environ["MUTANTS"]) if environ.get("MUTANTS") else catalogue.FOLDER
    settings = from_environment({"ARCH": "arm64", **environ})
    only = environ.get("ONLY") or "*"
    known = catalogue.load(folder)
    mutants = [mutant for mutant in known if chosen(mutant, only)]
    rules, matrix = environ.get("GENERATED") == "1", environ.get("MATRIX") or ""
    if not mutants and not rules:
        raise UserError(f"ONLY={only}: no mutant in {folder} has such a name")
    both = settings.arch in guest.DEBIAN and environ.get("SELFTESTS") != "no"
    foreign = guest_judge.BothSession if both else Session
    if rules:
        session = foreign(settings, jobs, "+generated")
        session.hints = killmatrix.hints()
        with session.recorded(repeat(environ)):
            return by_rules(session, only, environ)
    wanted: list[tuple[type[Session], list[Mutant]]] = [
        (Session, [m for m in mutants if not m.program]),
        (guest_judge.GuestSession, [m for m in mutants if m.program]),
    ]
    if folder.resolve() != catalogue.FOLDER and both:
        wanted = [(foreign, mutants)]
    if matrix not in ("", "1", "selftests"):
        raise UserError(f"MATRIX={matrix}: use MATRIX=1 for the KUnit suites, or MATRIX=selftests for the selftests")
    if matrix == "selftests":
        wanted = [(guest_matrix.GuestMatrixSession, mutants if environ.get("ALL") == "1" else wanted[1][1])]
    elif matrix:
        wanted = wanted[:1]
    found: list[Result] = []
    folders: list[Path] = []
    for kind, own in wanted:
        if not own:
            continue
        session = kind(settings, jobs)
        session.hints = killmatrix.hints()
        if matrix:
            with session.recorded(repeat(environ), matrix_run.KIND):
                rule: matrix_run.MakeRule = suite_matrix.Cases
                if isinstance(session, guest_matrix.GuestMatrixSession):
                    session.budget = float(environ.get("BUDGET") or session.budget)
                    rule = guest_matrix.Programs
                print(matrix_run.whole(session, own, environ, rule))
                assert session.recorder
                session.recorder.record.state = record.outcome(PASSED)
            continue
        with session.recorded(repeat(environ)):
            results = [excused(result, own, session) for result in session.run(own)]
            session.end([result for result in results if result.state != "does not fit"], status(results))
        folders.append(session.folder)
        found += results
    if not found:
        return PASSED
    print(table(found))
    for line in ending(found, folders, environ):
        print(line)
    return status(found)


KIND = ("GENERATED", "MUTANTS")
"""The variables that select the source of the mutants."""


def repeat(environ: Mapping[str, str]) -> str:
    """The command that repeats the run."""
    return closing.make("mutants", environ, *KIND, "MATRIX", "ALL", "BUDGET", "SELFTESTS", "ONLY")


def ending(
    found: Sequence[Result], folders: Sequence[Path], environ: Mapping[str, str], more: Sequence[str] = ()
) -> list[str]:
    """The last paragraph of the run's output. `more` are additional lines in it."""
    verdict = {PASSED: "passed", FAILED: "FAILED"}.get(status(found), "NO VERDICT")
    judged = [result for result in found if result.state not in (*NOTHING, "equivalent", "false alarm")]
    noticed = sum(result.state in KILLED for result in judged)
    alive = [r.name for r in found if r.state == "survived" and not r.argument]
    wrong = [r.name for r in found if r.state == "false alarm"]
    without = [r.name for r in found if r.state in NOTHING and not r.argument]
    again = alive or wrong or without
    return closing.lines(
        f"{verdict}: {noticed} of {len(judged)} mutants noticed",
        [
            closing.named("not noticed", alive),
            closing.named("mutants that are noticed, although the catalogue calls them equivalent", wrong),
            closing.named("mutants without a verdict", without),
            *more,
        ],
        f"{', '.join(map(str, folders))} (consoles)",
        closing.make("mutants", environ, *KIND, ONLY=again[0]) if again else "",
    )


def by_rules(session: Session, only: str, environ: Mapping[str, str]) -> int:
    """Judge the sample of generated mutants. Returns the exit status."""
    every = rules.every(session.read)
    path = sample.survivors_file(session.source.label, session.settings.arch)
    answered = sample.answers(path)
    drawn = [dataclasses.replace(mutant, survives=answered.get(mutant.name, "")) for mutant in sample.draw(every)]
    judged = [mutant for mutant in drawn if chosen(mutant, only)]
    progress.say(f"rules generate {len(every)} mutants; testing {len(judged)} random ones (seed {sample.SEED})")
    results = session.run(drawn, {mutant.name for mutant in judged})
    if not isinstance(session, guest_judge.BothSession):
        # No selftest ran. Drop "survived" if a selftest noticed the mutant in an earlier run.
        before = sample.verdicts(path)
        results = [r for r in results if r.state != "survived" or before.get(r.name, ("survived",))[0] not in KILLED]
    session.end(results, status(results))
    by_name = {mutant.name: mutant for mutant in judged}
    survivors = [by_name[result.name] for result in results if result.state == "survived"]
    sample.list_survivors(path, survivors, session.read, {r.name for r in results} - {m.name for m in survivors})
    print(table(results))
    found = {result.name: (result.state, result.where) for result in results}
    verdicts = sample.record(path, found, [mutant.name for mutant in drawn])
    total = sample.score(verdicts, sample.answers(path), KILLED)
    could = total.noticed + total.survived
    more = [
        f"the whole sample: {len(verdicts)} mutants tested; {total.noticed} of {could} noticed "
        f"({percent(total.noticed, could)}); of the noticed mutants, {total.failing} made a test fail; "
        f"{total.equivalent} of the tested mutants are equivalent and do not count"
    ]
    if score := by_hand(session):
        more.append(f"the catalogue: {score[0]} of {score[1]} noticed ({percent(*score)})")
    if survivors:
        more.append(f"mutants survived: for each of them, write into {path} why it is harmless")
    for line in ending(results, [session.folder], environ, more):
        print(line)
    return status(results)


def percent(part: int, whole: int) -> str:
    """A share as text."""
    return f"{100 * part / whole:.1f} %" if whole else "-"


def by_hand(session: Session) -> tuple[int, int] | None:
    """The number of noticed mutants of the catalogue on the same kernel, and the number that are not equivalent."""
    matrix = killmatrix.Matrix.load(
        killmatrix.file_of(session.source.label, session.settings.arch, session.settings.pages)
    )
    same = {mutant.name for mutant in catalogue.load(catalogue.FOLDER) if mutant.equivalent}
    rows = [row for name, row in matrix.rows.items() if name not in same]
    return (sum(bool(row.cases) for row in rows), len(rows)) if rows else None
