# SPDX-License-Identifier: GPL-2.0
"""make series CORE=1: the part of the overlay that is about contiguous PTEs, as three series for one kernel tree.

The series have the library of synthetic tables, the suites for folio_pte_batch(), contpte and the bits of an entry, the
random walk, and the checker of break-before-make. This module simplifies the sources of the overlay: they fit only one
kernel tree (see resolve), and lack the watchdog and the list of known issues. A test that meets a known issue fails.
"""

import re
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path

from ...core.errors import UserError
from ...core.settings import PROJECT
from . import kconfig, resolve
from .overlay import FIRST, Overlay

PARTS = (
    (
        "arch/arm64/mm/tests/pte_bits_kunit.c",
        "mm/tests/folio_pte_batch_kunit.c",
        "mm/tests/folio_pte_batch_bits_kunit.c",
    ),
    (
        "arch/arm64/mm/tests/contpte_kunit.c",
        "arch/arm64/mm/tests/contpte_fold_kunit.c",
        "arch/arm64/mm/tests/contpte_access_kunit.c",
    ),
    (
        "arch/arm64/mm/tests/contpte_walk_kunit.c",
        "arch/arm64/mm/tests/contpte_bbm_kunit.c",
        "arch/arm64/mm/tests/contpte_order_kunit.c",
    ),
)
"""The suites of each series. A series with more than about 5,000 lines is too long to review."""

SUITES = tuple(suite for part in PARTS for suite in part)

LIBRARY = ("table", "folio", "pte_diff", "suite", "tlb", "pte_op", "pte_model", "pte_run", "walk_draw", "walk_report")
"""The sources in lib/pgtable_kunit that these suites need."""

HELPERS = ("contpte_model", "contpte_table", "contpte_bbm", "contpte_order", "contpte_record", "contpte_recorded")
"""The sources in arch/arm64/mm/tests that these suites need."""

SYMBOLS = {
    *("PGTABLE_KUNIT", "PGTABLE_KUNIT_WALK", "PGTABLE_KUNIT_TESTS"),
    *("FOLIO_PTE_BATCH_KUNIT_TEST", "CONTPTE_KUNIT_TEST", "PTE_BITS_KUNIT_TEST"),
}
"""The Kconfig options of the series."""

OTHER = (*FIRST, "lib/pgtable_kunit/cut.awk")

HELPER = "lib/pgtable_kunit/helpers.h"
"""In a series this header replaces compat.h. The header has only the definitions that the sources use."""

BATCH = "mm/tests/folio_pte_batch.h"
"""The header that only the suites of folio_pte_batch() include. Its definitions need mm/internal.h."""

GONE = (
    "thp_set", "swap_on", "compaction_off", "do_syscall", "suite_init", "init", "case_init",
)  # fmt: skip
"""Functions of the library that the suites of the series do not call."""

LETTERS = (
    """\
mm: KUnit tests for folio_pte_batch() and the bits of arm64 page-table entries

fork, munmap and madvise change runs of page-table entries with one call. folio_pte_batch() finds these runs. If a run \
is one entry too long, the caller changes another mapping. On arm64, the dirty state of an entry has a hardware \
form and a software form. The helpers for single entries must preserve this state and the accessed bit. If a helper \
loses a dirty bit, data is lost.

No test in the tree calls folio_pte_batch(), which is private to mm/. This is the first of three series. It adds a \
small library of synthetic page tables with guards and real folios, and the suites for folio_pte_batch() and for these \
helpers. The suites compare every entry with a model, also the entries outside of the run.
""",
    """\
arm64/mm: KUnit tests for contiguous PTEs

On arm64, set_ptes(), wrprotect_ptes(), get_and_clear_full_ptes() and similar functions set and clear the contiguous \
bit of whole blocks of page-table entries. The callers in mm do not know about this bit. If one entry of a block \
differs from the others, the CPU may use any of them. If a function changes one entry too many, it changes another \
mapping.

No test in the tree calls any of these functions. They are inline, private or not exported. This is the second of \
three series. It adds a model of the functions and suites that call each function for each range of a block. They \
compare every entry of the table with the model.
""",
    """\
arm64/mm: KUnit tests for the order of writes to contiguous PTEs

The architecture has rules for the order in which software may change a contiguous block (break-before-make). Most \
mistakes in this order do not change the final table, so a test that compares tables cannot see them.

This is the last of three series. A second compilation of arm64's code records each access and each TLB invalidation, \
and a checker compares the record with the rules of break-before-make. Random walks call all functions in random \
order, and print the shortest sequence of calls that fails.
""",
)
"""The beginning of the cover letter of each series."""

_OTHER_KERNEL = re.compile(r"(?:[Oo]lder|[Nn]ewer) kernels?|[Kk]nown issue|[Ss]ome kernels|probe\.mk|compat\.h")


def _fail(indent: str, rest: str) -> str:
    """The call that fails a test. It replaces the call that skips the test because of a known issue."""
    first, *more = rest.split("\n")
    width = 8 * len(indent) + len("KUNIT_FAIL(")
    lines = [f"{indent}KUNIT_FAIL(test, {first}", *(resolve.indented(line.lstrip(), width) for line in more)]
    return "\n".join(lines)


_KNOWN: tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...] = (
    (r"^\t+else if \([^;{}]*\)\n\t+pgtable_kunit_stale_issue\([^;]*\);\n", ""),
    (r"^\t+else\n\t+pgtable_kunit_stale_issue\([^;]*\);\n", ""),
    (r"^\t+if \([^;{}]*\)\n\t+pgtable_kunit_stale_issue\([^;]*\);\n", ""),
    (r"^\t+pgtable_kunit_stale_issue\([^;]*\);\n", ""),
    (r"^(\t+)pgtable_kunit_known_issue\(test, \d+,\s+([^;]*;)", lambda match: _fail(match[1], match[2])),
    (r"pgtable_kunit_source_has_issue\(\d+\)", "false"),
    (r'#include "known_issue.h"\n', ""),
    (r"/\* Set entries of one kind.*?(?=/\*\*\n \* pte_ctx_init)", ""),
    (r"^(?:void |\t)pte_ctx_avoid_known\(.*\);\n", ""),
)
_WATCHDOG = (
    (r"^\t\.suite_init = pgtable_kunit_suite_init,\n", ""),
    (r"^\t\.init = pgtable_kunit_init,\n", ""),
    (r"return pgtable_kunit_suite_init\(suite\);", "return 0;"),
    (r"^\tint err = pgtable_kunit_init\(test\);\n\n\tif \(!err\)\n\t(\t.*\n)\treturn err;\n", r"\1\treturn 0;\n"),
    (r"^\tint err = pgtable_kunit_init\(test\);\n((?:\t.*\n)*)\n\tif \(err\)\n\t\treturn err;\n", r"\1\n"),
    (
        r"/\*\n \* Each suite has \.suite_init.*?\*/\n",
        "/* The combinations that a case has tried, for pgtable_kunit_exit(). */\n",
    ),
    (r"recorders, the watchdog", "recorders"),
    (r"#include <asm/pgalloc.h>", "#include <linux/pgalloc.h>"),
    (rf"^(?:\w+ )+\*?pgtable_kunit_(?:{'|'.join(GONE)})\([^;]*\);\n", ""),
    (r"^/\* pgtable_kunit_syscall.*?^\}\)\n", ""),
    (r"^/\* No race runs longer.*?^\}\n\n", ""),
    (r"#include <linux/jiffies.h>\n", ""),
)
_BUILD = (
    (r"^include .*probe\.mk\n", "ccflags-y += -I$(srctree)/lib/pgtable_kunit\n"),
    (r"^ccflags-y \+= \$\(call pgtable_kunit_has(?:.*\\\n)*.*\n", ""),
    (r"^CFLAGS_\w+\.o := \$\(call pgtable_kunit_has(?:.*\\\n)*.*\n", ""),
    (r"^CFLAGS_known_issue.*\n\tsh .*\n", ""),
    (r"^\tselect (?:CGROUPS|KPROBES|MEMCG|USERFAULTFD|CHECKPOINT_RESTORE|MEM_SOFT_DIRTY)\b.*\n", ""),
)


def _plain(comment: str) -> str:
    """A comment without references to other kernels and known issues."""
    indent = "\t" * (len(comment.split("\n")[-1]) - len(comment.split("\n")[-1].lstrip("\t")))
    inside = re.sub(r"\A/\*[\s*]*|\s*\*/\Z", "", comment)
    kept = [text for part in re.split(r"\n\s*\*\n", inside) if (text := _paragraph(part, indent))]
    if not kept:
        return ""
    body = f"\n{indent} *\n{indent} * ".join(kept)
    begin = "/**" if comment.startswith("/**") else "/*"
    text = f"/* {body} */" if "\n" not in body else f"{begin}\n{indent} * {body}\n{indent} */"
    return text.replace(" * \t", " *\t")


def _paragraph(part: str, indent: str) -> str:
    lines = [re.sub(r"^\s*\*( |(?=\t)|$)", "", line) for line in part.split("\n")]
    text = " ".join(lines)
    if not _OTHER_KERNEL.search(text) or any(line[:1].isspace() for line in lines):
        return f"\n{indent} * ".join(lines)
    sentences = re.split(r"(?<=\.)\s+", " ".join(text.split()))
    rest = " ".join(sentence for sentence in sentences if not _OTHER_KERNEL.search(sentence))
    return f"\n{indent} * ".join(textwrap.wrap(rest, 77 - 8 * len(indent), break_on_hyphens=False))


def _simple(text: str) -> str:
    """A source whose comments have no references to other kernels and known issues."""

    def change(match: re.Match[str]) -> str:
        flat = re.sub(r"\n\s*\*", " ", match[0])
        return _plain(match[0]) if _OTHER_KERNEL.search(" ".join(flat.split())) else match[0]

    return re.sub(r"/\*.*?\*/", change, text, flags=re.DOTALL)


def texts(project: Path, tree: Path) -> dict[str, str]:
    """The files of the series, made from the files of the overlay."""
    full = Overlay(project)
    folder = Path(resolve.WRAPPERS).parent
    chosen = [*SUITES, *(f"{folder}/{name}.c" for name in LIBRARY), f"{folder}/walk_run.c"]
    chosen += [f"{Path(SUITES[-1]).parent}/{name}.c" for name in HELPERS]
    if missing := [name for name in chosen if name not in full.texts]:
        raise UserError(f"{missing[0]} is not in the overlay; see SUITES, LIBRARY and HELPERS of dev/series/core.py")
    names = {name for name in full.closure(chosen) if not name.endswith(("/compat.h", "/known_issue.h"))}
    ask = resolve.asker(tree)
    found = {name: resolve.chosen(full.texts[name], ask) for name in names}
    header = resolve.chosen(full.texts[resolve.WRAPPERS], ask)
    aliases = resolve.aliases(header)
    changes = (*_KNOWN, *_WATCHDOG)
    for name, text in found.items():
        for old, new in changes:
            text = re.sub(old, new, text, flags=re.MULTILINE | re.DOTALL if ".*?" in old else re.MULTILINE)
        text = text.replace('#include "compat.h"', f'#include "{Path(HELPER).name}"')
        found[name] = resolve.renamed(_simple(text), aliases)
    _share(found, header, aliases)
    makefiles = {f"{Path(name).parent}/Makefile" for name in found}
    for name, text in full.texts.items():
        if name in OTHER or name in makefiles:
            if name in makefiles:
                text = full.makefiles[name].cut(set(found))
            for old, new in _BUILD:
                text = re.sub(old, new, text, flags=re.MULTILINE)
            if Path(name).name.startswith("Kconfig"):
                text = "".join(entry.text for entry in kconfig.entries(text) if _wanted(entry))
            if Path(name).name == ".kunitconfig":
                text = re.split(r"\n\n(?=# Restart|# The rest|# Firmware)", text)[0] + "\n"
            found[name] = text
    return {name: re.sub(r"\n{3,}", "\n\n", text) for name, text in found.items()}


def _wanted(entry: kconfig.Entry) -> bool:
    """Whether an entry of a Kconfig file is in the series."""
    return not entry.source and (not entry.symbol or entry.symbol in SYMBOLS)


def _share(found: dict[str, str], header: str, aliases: Mapping[str, str]) -> None:
    """Put the definitions that the sources need into the headers HELPER and BATCH."""
    ours: list[str] = []
    batch: list[str] = []
    sources = dict(found)
    for piece in reversed(resolve.definitions(header)):
        users = [name for name, text in sources.items() if piece.used_in(text)]
        if not users:
            continue
        text = resolve.renamed(_simple(piece.text), aliases).strip("\n")
        own = all(name.startswith("mm/tests/folio_pte_batch") for name in users)
        (batch if own else ours).insert(0, text)
        sources[f"{BATCH} {len(batch)}" if own else f"{HELPER} {len(ours)}"] = text
    includes = "\n".join(re.findall(r"^#include .*$", header, re.MULTILINE))
    found[HELPER] = (
        "/* SPDX-License-Identifier: GPL-2.0 */\n/* Definitions that the page-table suites share. */\n"
        "#ifndef _PGTABLE_KUNIT_HELPERS_H\n#define _PGTABLE_KUNIT_HELPERS_H\n\n"
        f"{includes}\n\n" + "\n\n".join(ours) + "\n\n#endif /* _PGTABLE_KUNIT_HELPERS_H */\n"
    )
    last = re.findall(r"^#include .*\n", found[BATCH], re.MULTILINE)[-1]
    found[BATCH] = found[BATCH].replace(last, last + "\n" + "\n\n".join(batch) + "\n", 1)


class Core(Overlay):
    """The overlay, reduced and simplified for `tree`."""

    parts = tuple(frozenset(part) for part in PARTS)
    letters = LETTERS

    def __init__(self, tree: Path, project: Path = PROJECT) -> None:
        super().__init__(project, texts(project, tree))
