# SPDX-License-Identifier: GPL-2.0
"""make mutants GENERATED=1: a random sample of the mutants that rules generate, and their verdicts.

The share of noticed mutants of this sample says more than the share of the catalogue, because the catalogue was written
with knowledge of the tests. The seed is fixed. mutants/generated/ lists each survivor with its diff. The field `answer`
of an entry says why no test can notice the mutant, or which test notices it now.
"""

import difflib
import hashlib
import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..core import disk
from . import catalogue
from .catalogue import Mutant, Read

FOLDER = catalogue.FOLDER / "generated"
SEED = 19
SAMPLE = 300

NAME = re.compile(r"(?:boundary|constant|drop_call|drop_merge|level|negate|swap)_(\w+)_[0-9a-f]{6}")


def draw(mutants: Sequence[Mutant], count: int = SAMPLE, seed: int = SEED) -> list[Mutant]:
    """A random sample of mutants, sorted by name. The sample is the same each time.

    The sample depends only on the names of the mutants, so it changes little if the kernel gets new functions.
    """

    def lot(mutant: Mutant) -> str:
        return hashlib.sha256(f"{seed} {mutant.name}".encode()).hexdigest()

    return sorted(sorted(mutants, key=lot)[:count], key=lambda mutant: mutant.name)


def survivors_file(kernel: str, arch: str) -> Path:
    """The file that lists the survivors of a kernel. Its name contains the first two numbers of the version."""
    return FOLDER / f"{'.'.join(re.split(r'[.+-]', kernel)[:2])}-{arch}.toml"


@dataclass(frozen=True)
class Score:
    """The verdicts on a sample.

    noticed:    mutants that a test, a warning of the kernel, or a hang revealed
    failing:    those noticed mutants that made a test fail
    equivalent: survivors whose answer says that they are equivalent to the original
    survived:   all other survivors
    """

    noticed: int
    failing: int
    equivalent: int
    survived: int


def verdicts(path: Path) -> dict[str, tuple[str, str]]:
    """The verdicts that record() wrote next to the list of survivors `path`."""
    try:
        before = json.loads(path.with_suffix(".json").read_text())["verdicts"]
    except FileNotFoundError:
        return {}
    return {name: (str(state), str(where)) for name, (state, where) in before.items()}


def record(path: Path, found: Mapping[str, tuple[str, str]], sample: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Write the verdicts on a sample, as JSON, next to the list of survivors `path`. Returns these verdicts.

    found: the verdicts of this run, by mutant: its state, and the case that noticed it. Older verdicts on other mutants
           of the sample stay.
    """
    whole = {**verdicts(path), **found}
    kept = {name: (str(whole[name][0]), str(whole[name][1])) for name in sorted(sample) if name in whole}
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(verdict)}" for name, verdict in kept.items())
    disk.replace(path.with_suffix(".json"), f'{{"seed": {SEED}, "verdicts": {{\n{lines}\n}}}}\n'.encode())
    return kept


def noticed(folder: Path = FOLDER) -> Iterator[tuple[str, str]]:
    """For each mutant with a recorded verdict "noticed": its function, and the suite or selftest that noticed it."""
    for path in sorted(folder.glob("*.json")):
        for name, (_, where) in json.loads(path.read_text())["verdicts"].items():
            if where and (match := NAME.fullmatch(name)):
                yield match[1], where.partition(".")[0]


def score(judged: Mapping[str, tuple[str, str]], answered: Mapping[str, str], killed: Sequence[str]) -> Score:
    """Count the verdicts `judged`. The states `killed` mean that a mutant was noticed."""
    alive = [name for name, (state, _) in judged.items() if state == "survived"]
    same = sum(answered.get(name, "").startswith("Equivalent") for name in alive)
    states = [state for state, _ in judged.values()]
    noticed = sum(state in killed for state in states)
    return Score(noticed, states.count("failed"), same, len(alive) - same)


def answers(path: Path) -> dict[str, str]:
    """The answers in a list of survivors, by name of the mutant."""
    try:
        whole = tomllib.loads(path.read_text())
    except FileNotFoundError:
        return {}
    return {str(entry["name"]): str(entry.get("answer", "")) for entry in whole.get("survivor", [])}


def list_survivors(path: Path, survivors: Sequence[Mutant], read: Read, gone: Iterable[str]) -> None:
    """Write the list of survivors. The list keeps its answers, and its entries on mutants that were not judged.

    gone: names of mutants that a test notices now; their entries are removed
    """
    kept: dict[str, dict[str, str]] = {}
    if path.exists():
        entries = tomllib.loads(path.read_text()).get("survivor", [])
        kept = {entry["name"]: entry for entry in entries if entry["name"] not in set(gone)}
    for mutant in survivors:
        answer = kept.get(mutant.name, {}).get("answer", "")
        kept[mutant.name] = {"name": mutant.name, "diff": diff(mutant, read), "answer": answer}
    lines = [
        "# SPDX-License-Identifier: GPL-2.0",
        "# Generated mutants that no test noticed. Each answer says why no test notices the mutant, or names a test",
        "# that now notices it.",
    ]
    for _, entry in sorted(kept.items()):
        lines += ["", "[[survivor]]", f'name = "{entry["name"]}"', f"diff = '''\n{entry['diff']}'''"]
        text = entry["answer"].replace("\\", "\\\\").replace('"', '\\"')
        lines.append(f'answer = "{text}"')
    path.parent.mkdir(parents=True, exist_ok=True)
    disk.replace(path, ("\n".join(lines) + "\n").encode())


def diff(mutant: Mutant, read: Read) -> str:
    """The change of a mutant as a patch."""
    parts: list[str] = []
    for name, text in (mutant.files(read) or {}).items():
        before, after = read(name).splitlines(True), text.splitlines(True)
        parts += difflib.unified_diff(before, after, f"a/{name}", f"b/{name}", n=2)
    return "".join(parts).replace("'''", "'' '")
