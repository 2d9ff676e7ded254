# SPDX-License-Identifier: GPL-2.0
"""`make bundle`: writes files for a lab to O/bundle: a kernel, an initramfs with the selftests, an empty disk.

The bundle is not booted here. In the lab it acts like the machine of `make kselftest`: it runs the programs, prints
the verdicts on its console, and turns the machine off. TESTS= chooses the programs. Without TESTS= the bundle has all
programs except those that need a special machine. kselftest.tar.gz has the same programs for machines that have their
own root file system, in the form of kselftest's gen_tar.
"""

import gzip
import shutil
from collections.abc import Mapping
from pathlib import Path

from ..boot import boot, guest
from ..core import ours, progress
from ..core.errors import UserError
from ..core.settings import from_environment
from ..kernel import source, toolchain
from . import selftest_tar, selftests
from .prepare import prepare
from .session import SelftestRun


def pack(session: SelftestRun, tests: str, target: Path) -> None:
    """Build what `tests` chooses, and write the bundle into the folder `target`."""
    every = selftests.programs()
    wanted = selftests.chosen(every, tests or " ".join(one.name for one in every if one.name not in selftests.MACHINES))
    files = session.build([program.name for program in every])
    if bad := [program.name for program in wanted if program.name in session.broken]:
        raise UserError(f"{', '.join(bad)} do not build: see the lines above, or choose other programs with TESTS=")
    settings, build = session.settings, session.launch.build
    ours.empty(target)
    listing, initrd, drive = target / "programs", target / "initramfs.cpio", target / "xfs.img"
    by_name = {program.name: program for program in every}
    listing.write_text("".join(f"{selftests.line(program, by_name)}\n" for program in wanted))
    guest.pack(guest.specification(settings.arch, settings.cache, files, listing), build, initrd)
    guest.disk(drive)
    for plain in (initrd, drive):
        with plain.open("rb") as content, gzip.open(f"{plain}.gz", "wb", compresslevel=6) as small:
            shutil.copyfileobj(content, small)
        plain.unlink()
    initrd.with_suffix(".list").unlink()
    shutil.copyfile(build / boot.IMAGES[settings.arch], target / "Image")
    words = guest.command(settings.arch, build, initrd, drive, cpus=1, accelerated=False)[-1]
    (target / "cmdline").write_text(f"{words}\n")
    chosen = {program.name: files[program.name] for program in wanted}
    selftest_tar.pack(session.launch.tree, chosen, target / "kselftest.tar.gz")


def run(environ: Mapping[str, str]) -> int:
    """The command; returns the exit status."""
    environ = {**environ, "ARCH": environ.get("ARCH") or toolchain.own_arch()}
    settings = from_environment(environ)
    target = settings.out / "bundle"
    ours.claim(target)
    source.judge(settings)
    selftests.provide(environ["ARCH"])
    session = SelftestRun(prepare(selftests.request(environ["ARCH"]), environ))
    with session.launch.hold():
        pack(session, environ.get("TESTS", ""), target)
    progress.say(f"{target} contains Image, initramfs.cpio.gz, xfs.img.gz and cmdline, and kselftest.tar.gz for boards")
    return 0
