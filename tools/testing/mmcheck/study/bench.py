# SPDX-License-Identifier: GPL-2.0
"""make bench: measures how much batches, contiguous blocks, tracking of owners, extents and forced write faults save.

The command runs the benchmark suites on kernels that differ in one point, and compares their numbers. On arm64 the
emulator derives time from the number of instructions that it executes. The numbers of page faults, copies, writes and
TLB invalidations are the same in each run. The number of instructions varies by up to 1 %. Clearing of memory is
measured in nanoseconds, under KVM if this machine has KVM.
"""

import concurrent.futures
import contextlib
import dataclasses
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..boot import boot, guest, linear_map
from ..core import dry, progress
from ..core.errors import UserError
from ..core.settings import from_environment, whole
from ..core.variables import name_list
from ..kernel import shadow, source
from ..mutants import catalogue
from ..run import closing, record
from ..run.cell import Cell
from ..run.launch import Launch
from ..run.prepare import prepare
from ..run.request import parse
from ..run.workspace import Workspace
from . import bench_numbers, plot
from .bench_numbers import Number

KERNELS = ("6.12", "7.3")
COUNTED = "-icount shift=0 -m 3072"
"""With these options, the emulator counts instructions to measure time. The memory of the emulated machine has room for
1 GiB of test memory and for the copies of its pages.
"""

NATIVE = "-accel kvm -cpu host -m 8192"
LARGE = ("clear_pages.bench_mib=1024",)
"""Options for KVM, and the number of MiB that the suite clears at once. An emulator would take hours for this size."""

BY_CALLS = "clearcpuid=erms,rep_good"
"""An option for x86_64. With it the kernel clears memory by calls of a function, which can be counted.
Without it the kernel uses one inlined instruction.
"""

TIMEOUT = 3600
"""Seconds for a boot."""

COUNTERS = catalogue.FOLDER / "counters"
"""With these changes, a kernel counts the page-table entries that it writes."""

ANEW = ("fixmap_per_pte_block", "fixmap_per_pmd_block")
"""With these mutants, the kernel maps a table into the fixmap separately for each contiguous block, as before 6.10."""

LINEAR_MAPS = (
    ("pages, anew for each block", linear_map.CPU, ANEW, KERNELS),
    ("pages", linear_map.CPU, (), KERNELS),
    ("blocks", linear_map.BLOCKS_CPU, (), KERNELS[1:]),
)
"""Ways to map memory. Each has a name, and the CPU and the mutants that make a kernel use this way. The last item names
the kernels to test.
"""


@dataclass(frozen=True)
class Part:
    """One suite on some kernels.

    name:   the name of the suite
    cells:  the kernels; all kernels are compared with the first kernel
    words:  words for the kernel's command line
    exact:  True if the suite counts events: several kernels run at a time. False if it measures time and runs alone.
    writes: the kernels count the entries that they write. These counts are added to the numbers of the same kernels
            without counters.
    """

    name: str
    cells: tuple[Cell, ...]
    words: tuple[str, ...]
    exact: bool = True
    writes: bool = False


def parts(mib: int, repeats: int) -> list[Part]:
    """All parts. Suites work on `mib` MiB of memory, and measure each time `repeats` times."""
    without = ("--kconfig_add=CONFIG_ARM64_CONTPTE=n",)
    blocks = [Cell(k, "arm64", "4K", "no contpte" * bool(words), words) for k in KERNELS for words in (without, ())]
    atomics = [Cell(k, "arm64", "4K", "stock" * (f == ""), features=f) for k in KERNELS for f in ("", None)]
    clearing = [Cell(k, "x86_64") for k in KERNELS]
    extents = [Cell(k, arch) for arch in ("arm64", "x86_64") for k in KERNELS]
    folios = Part("folio_bench", tuple(blocks), (f"folio_bench.mib={mib}",))
    return [
        folios,
        dataclasses.replace(folios, writes=True),
        Part("atomic_rmw_bench", tuple(atomics), (f"atomic_rmw_bench.mib={min(mib, 64)}",)),
        Part("folio_zero_order", tuple(extents), (BY_CALLS,)),
        Part("clear_pages", tuple(clearing), (f"clear_pages.bench={repeats}",), exact=False),
    ]


@contextlib.contextmanager
def built(
    cell: Cell, environ: Mapping[str, str], out: Path, changes: Sequence[catalogue.Mutant] = ()
) -> Iterator[Path]:
    """Build the kernel of a cell with `changes`, which are always on. Gives its build folder.

    During the block, no other run uses the kernel.
    """
    request = parse(["build", f"--arch={cell.arch}", *cell.arguments])
    launch = prepare(request, {**environ, **cell.variables, "O": str(out)})
    launch = Launch(_changed(launch.workspace, changes)) if changes else launch
    launch.aside = True
    with launch.hold():
        if changes:
            launch.workspace.prepare()
        launch.run()
        yield launch.build


def machines(part: Part, cell: Cell) -> list[str]:
    """Sets of emulator options to try one after the other: KVM does not work on every machine that has it."""
    if part.exact:
        return [COUNTED]
    return [*([NATIVE] if guest.has_kvm(cell.arch) else []), "-accel tcg"]


def boot_cell(part: Part, cell: Cell, folder: Path, out: Path) -> list[Number]:
    """Boot a kernel that was built in `folder`. Raises UserError if it prints no numbers."""
    words = [*part.words, "pgtable_kunit.timeout=600", f"kunit.filter_glob={part.name}"]
    log = out / "bench" / f"{part.name}{'-writes' * part.writes}-{cell.slug}.log"
    verdict = boot.Verdict("none", "", 0)
    for options in machines(part, cell):
        more, silence = (LARGE, guest.KVM_SILENCE) if options == NATIVE else ((), TIMEOUT)
        line = [*boot.command(cell.arch, folder, [*words, *more]), *options.split()]
        verdict = boot.follow(line, log, TIMEOUT, silence)
        if verdict.state == "passed":
            break
    if dry.on():
        return []
    own = bench_numbers.numbers(str(cell), log.read_text(errors="replace").splitlines())
    if verdict.state != "passed" or not own:
        state = "no number" if verdict.state == "passed" else verdict.state
        raise UserError(f"{part.name} on {cell}: {state} in {verdict.where or 'no suite'}; see {log}")
    return own


def run_part(part: Part, environ: Mapping[str, str], out: Path, jobs: int) -> list[Number]:
    """Build the kernels of a part one after the other, then boot them: if the part is exact, `jobs` at a time."""
    counters = catalogue.load(COUNTERS) if part.writes else []
    with (
        contextlib.ExitStack() as stack,
        progress.Progress(part.name, len(part.cells)) as shown,
        concurrent.futures.ThreadPoolExecutor(jobs if part.exact else 1) as pool,
    ):
        folders = []
        for cell in part.cells:
            progress.say(f"{part.name} on {cell}" + ", writes to page tables" * part.writes)
            folders.append(stack.enter_context(built(cell, environ, out, counters)))
        waiting = [
            pool.submit(boot_cell, part, cell, folder, out) for cell, folder in zip(part.cells, folders, strict=True)
        ]
        try:
            for number, future in enumerate(concurrent.futures.as_completed(waiting), 1):
                future.result()
                shown.advance(number, "")
            return [number for future in waiting for number in future.result()]
        except BaseException:
            boot.stop.set()
            pool.shutdown(wait=True, cancel_futures=True)
            raise


def _changed(space: Workspace, changes: Sequence[catalogue.Mutant]) -> Workspace:
    """The workspace of a kernel with `changes`. Of several changes with the same name, the first that fits is applied.

    Raises UserError if none of them fits.
    """
    texts: dict[str, str] = {}
    usual = shadow.reader(space.kernel.path, space.settings.features)
    fits: set[str] = set()

    def read(name: str) -> str:
        return texts.get(name) or usual(name)

    for change in changes:
        if change.name not in fits and (found := change.files(read)):
            texts |= found
            fits.add(change.name)
    if missing := {change.name for change in changes} - fits:
        raise UserError(f"these mutants do not fit linux {space.label}: {', '.join(sorted(missing))}")
    others = {name: text.encode() for name, text in texts.items()}
    return Workspace(dataclasses.replace(space.spec, variant=changes[0].name, files=others), space.kernel)


def run_linear_map(environ: Mapping[str, str], out: Path) -> list[Number]:
    """The changes of the fixmap and the instructions that the kernel needs at boot to map one GiB of memory."""
    found = []
    known = catalogue.load(catalogue.FOLDER)
    for by, cpu, names, kernels in LINEAR_MAPS:
        for kernel in kernels:
            cell = Cell(kernel, "arm64")
            progress.say(f"linear map by {by} on {cell}")
            with built(cell, environ, out, [mutant for mutant in known if mutant.name in names]) as folder:
                sets, clears = linear_map.changes_per_gib(folder, cpu)
                per_gib = {
                    "sets_per_gib": round(sets),
                    "clears_per_gib": round(clears),
                    "instructions_per_gib": round(linear_map.instructions_per_gib(folder, cpu)),
                }
            found.append(Number(f"{cell}, by {by}", f"linear map of {kernel}", per_gib))
    return found


def run(environ: Mapping[str, str]) -> int:
    """Run the command. Returns the exit status."""
    settings = from_environment({**environ, "ARCH": "", "PAGES": ""})
    if settings.kdir:
        raise UserError(
            "KDIR= is set, but make bench compares packaged kernels; "
            "for your tree run kunit.py with --kernel_args folio_bench.mib=1024"
        )
    mib, repeats = (whole(environ, name, default) for name, default in (("MIB", 1024), ("REPEATS", 25)))
    jobs = whole(environ, "JOBS", os.cpu_count() or 1)
    only = name_list(environ.get("ONLY", ""))
    (settings.out / "bench").mkdir(parents=True, exist_ok=True)
    for kernel in KERNELS:
        source.obtain(dataclasses.replace(settings, kernel=kernel))
    known = [*dict.fromkeys(part.name for part in parts(mib, repeats)), "linear_map"]
    for name in only:
        if name not in known:
            raise UserError(f"ONLY={name}: use {', '.join(known)}")
    facts = record.facts(
        "bench", "bench", " ".join(only), label=" and ".join(KERNELS), arch="arm64 and x86_64", pages=""
    )
    facts.command = closing.make("bench", environ, "ONLY", "MIB", "REPEATS")
    with record.kept(settings.out, facts) as recorder:
        found = measured(settings.out, environ, only or known, mib, repeats, jobs)
        shown = bench_numbers.tables(found)
        numbers = {name: [dataclasses.asdict(number) for number in own] for name, own in found.items()}
        recorder.put({"numbers": numbers, "tables": [dataclasses.asdict(table) for table in shown]})
        facts.state = "passed"
    forms = plot.save({table.title: table.svg for table in shown}, settings.out / "bench")
    print(bench_numbers.ktap(found))
    for table in shown:
        print("\n".join(f"# {line}" for line in bench_numbers.text(table).splitlines()))
    progress.say(f"the plots are {forms} in {settings.out / 'bench'}, and the numbers are in {recorder.folder}")
    return 0


def measured(
    out: Path, environ: Mapping[str, str], only: Sequence[str], mib: int, repeats: int, jobs: int
) -> dict[str, list[Number]]:
    """The numbers of the parts `only`."""
    found: dict[str, list[Number]] = {}
    for part in parts(mib, repeats):
        if part.name in only:
            if part.name == "clear_pages" and not guest.has_kvm("x86_64"):
                progress.say(
                    "clear_pages: this machine emulates x86_64, so the times are from an emulator, not a processor"
                )
            with dry.part():
                own = run_part(part, {**environ, "KDIR": ""}, out, jobs)
                found[part.name] = bench_numbers.merged(found.get(part.name, []), own)
    if "linear_map" in only:
        found["linear_map"] = run_linear_map(environ, out)
    return found
