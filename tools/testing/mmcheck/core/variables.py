# SPDX-License-Identifier: GPL-2.0
"""The variables that commands read, and what the exit statuses mean."""

from collections.abc import Mapping

NAMES: Mapping[str, str] = {
    "A": "folder with results of make bench",
    "ALL": "1: with MATRIX=selftests, judge the mutants of the KUnit suites too",
    "APPEND": "words for the command line of the kernel that make tlb boots",
    "ARCH": "architecture: arm64, x86_64, riscv, s390, um",
    "AUDIT": "1: audit page tables and folios after each selftest, in the virtual machine",
    "B": "folder with other results of make bench",
    "BAD": "a commit of KDIR= where a test fails",
    "BASELINE": "a file with the known failures of your tree, which do not make a run fail",
    "BEFORE": "no: run only the kernel with the patches",
    "BOOT": "no: only write and check the mails; build and boot nothing",
    "BUDGET": "with MATRIX=selftests, seconds that programs may run for each mutant",
    "COMPARE": "1: boot a second time without the plugin, and print what the plugin costs",
    "CASE": "a case of a KUnit suite, as suite.case",
    "COMMAND": "the program to run and its arguments, or a line for the shell",
    "CORE": "1: only the suites for contpte, folio_pte_batch() and the bits of entries, for the given kernel alone",
    "CPUS": "how many CPUs the machine of make tlb has (1)",
    "DRY_RUN": "1: print what would be run and written, and run and write nothing",
    "FEATURES": "atomic_rmw, or nothing: code that mmcheck adds besides the tests (atomic_rmw; nothing with KDIR=)",
    "FILES": "files of the kernel, separated by commas: run only what tests these files",
    "FROM": "your name and address for the patches: 'Name <name@example.org>'",
    "GDB": "the debugger; no: only print how to attach one (gdb-multiarch, or gdb)",
    "GDB_ARGS": "further arguments of the debugger: '--batch -ex bt -ex continue'",
    "GENERATED": "1: mutants that rules generate, in place of the catalogue's",
    "GOOD": "a commit of KDIR= where this test passes",
    "HOST": "1: run the selftests on this machine, not in a virtual one; needs root",
    "IMAGE": "an arm64 kernel to boot, in place of one that is built here",
    "INITRD": "the initramfs for IMAGE",
    "INSTALL": "no: install nothing, and print the command instead",
    "JOBS": "how many builds or boots at a time",
    "JSON": "1: print JSON",
    "KCONFIG_ADD": "more options of the kernel: 'CONFIG_KASAN=y CONFIG_KASAN_INLINE=y'",
    "KDIR": "your own kernel tree, which is never written to",
    "KERNEL": "packaged kernel: 6.12, 7.3, another version, or latest (6.12); or a tarball, or a URL",
    "KERNEL_ARGS": "more words for the kernel's command line",
    "MATRIX": "a table of your own, in the form of matrix.toml",
    "MIB": "how many MiB of memory the suites work on (1024)",
    "MUTANTS": "a folder of your own, with *.toml or *.patch",
    "O": "folder for builds and results (out)",
    "ONLY": "globs, separated by blanks: what to run",
    "ORIGIN": "name of your lab at KCIDB",
    "OTHER": "a second kernel to compare with: a version, or a folder",
    "PAGES": "size of a page on arm64: 4K, 16K, 64K (4K)",
    "PATCH": "a patch for the kernel, applied to a private copy",
    "REPEATS": "how often to repeat measurements of time (25)",
    "SECONDS": "how long to walk (60)",
    "SEED": "the first seed of a walk (random)",
    "SELFTESTS": "no: use only the KUnit suites",
    "SERIES": "a patch, an mbox, or a range A..B of KDIR=",
    "STRICT": "1: a test that meets a known issue fails, and is not skipped",
    "SUITE": "upstream: the kernel's own mm selftests in place of these",
    "TARGETS": "mm, the only value",
    "TESTS": "selftests to run: programs, or suite.variant.case, or globs of these: 'folio_fork *.xfs.*' (all)",
    "VERSION": "the version to release, as 1.2.0",
}
"""Each variable that a verb reads. The option of KERNEL_ARGS is --kernel-args, for example."""

SWITCHES = frozenset(name for name, about in NAMES.items() if about.startswith("1:"))
"""The variables whose option needs no value."""


def statuses(fails: str = "a test failed", skips: bool = False) -> str:
    """What the exit statuses of a command mean.

    fails: the meaning of status 1, or "" if the command never returns it
    skips: whether the command returns 4 if all tests were skipped
    """
    found = {
        0: "passed" if fails else "done",
        1: fails,
        4: "all tests were skipped" if skips else "",
        125: "no verdict: git bisect run skips such a commit" if fails else "not done: the last line says why",
        130: "interrupted",
    }
    lines = [f"  {status:<4}{meaning}" for status, meaning in found.items() if meaning]
    return "\n".join(["exit status (make turns every status but 0 into 2):", *lines])


def listed(*names: str) -> str:
    """Variables and what they mean, one on each line."""
    return "\n".join(f"  {name:9} {NAMES[name]}" for name in names)


def option(name: str) -> str:
    """The option that sets a variable."""
    return "--" + name.lower().replace("_", "-")
