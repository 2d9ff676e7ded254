# SPDX-License-Identifier: GPL-2.0
"""kunit.py: gets a kernel, grafts the overlay, and runs that kernel's own kunit.py."""

import argparse
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..core import command, disk, dry, ours, progress
from ..core.errors import NO_VERDICT, UserError
from ..core.settings import from_environment, out_of
from ..kernel import checkout, source
from . import baseline, closing, compare
from .cell import NAME
from .prepare import prepare
from .request import VERBS, parse, split
from .usage import HELP, READS


def own(arguments: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
    """Our own arguments, and all arguments of the kernel's kunit.py in their order."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    parser.add_argument("--apply", default="")
    parser.add_argument("--base", default="")
    try:
        return parser.parse_known_args(arguments)
    except argparse.ArgumentError as error:
        raise UserError(str(error)) from None


def patch_of(given: str, environ: Mapping[str, str]) -> str:
    """The file that --apply names; a range of commits becomes a file below O=."""
    if environ.get("PATCH"):
        raise UserError(f"--apply {given}: PATCH={environ['PATCH']} is set too; use one of them")
    if Path(given).exists() or ".." not in given:
        return given
    kdir = from_environment(environ).kdir
    if not kdir:
        raise UserError(f"--apply {given}: there is no such file. For a range of commits, set KDIR= to a git tree")
    text = checkout.mails(kdir, given)
    folder = out_of(environ) / "applied"
    file = folder / f"{disk.digest(text)[:12]}.mbox"
    if not dry.instead("write", str(file)):
        disk.replace(ours.claim(folder) / file.name, text)
    return str(file)


def run(arguments: Sequence[str], environ: Mapping[str, str]) -> int:
    """Do what the command line says; returns the exit status."""
    typed = arguments
    mine, arguments = own(arguments)
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(HELP, end="")
        return 0 if arguments else NO_VERDICT
    if arguments[0] not in VERBS:
        raise UserError(f"{arguments[0]}: no such verb; use {', '.join(VERBS)}, or --help")
    request = parse(arguments)
    if request.known.help:
        settings = from_environment(environ, "um")
        source.judge(settings)
        print(HELP, flush=True)
        if kernel := source.here(settings):
            theirs = [sys.executable, "-B", str(kernel.path / "tools/testing/kunit/kunit.py"), *arguments]
            return subprocess.run(theirs, stdin=subprocess.DEVNULL).returncode
        print(
            f"After linux {settings.kernel} is downloaded, this help also shows"
            " the arguments of the kernel's own kunit.py."
        )
        return 0
    if mine.apply:
        environ = {**environ, "PATCH": patch_of(mine.apply, environ)}
    known = baseline.named(environ)
    if known and request.boots and (mine.base or request.known.run_isolated):
        option = "--base, which compares two kernels" if mine.base else "--run_isolated, which keeps no full log"
        raise UserError(f"BASELINE={known.file} does not work with {option}: use one of them")
    if mine.base:
        if not request.boots:
            raise UserError('--base compares verdicts: use it with the verb "run"')
        repeat = closing.again(typed, {**environ, "PATCH": ""} if mine.apply else environ)
        return compare.run(mine.base, environ, lambda variables: prepare(request, variables), repeat)
    # Only this command uses all CPUs by default: other commands run several kernels, or compare times.
    launch = prepare(request, {"JOBS": str(os.cpu_count() or 1), **environ})
    launch.cell, launch.baseline = environ.get(NAME, ""), known
    launch.repeat = closing.again(arguments, environ)
    status = launch.run()
    for line in [*launch.skipped(environ), *launch.closing(environ)]:
        progress.say(line)
    return status


def main(arguments: Sequence[str]) -> int:
    """The command."""
    kept = "run it again to continue from here"
    try:
        found, rest = split(arguments)
    except UserError as error:
        progress.say(str(error), "kunit.py")
        return NO_VERDICT
    os.environ.update(found)
    return command.run("kunit.py", lambda environ: run(rest, environ), os.environ, kept, READS)
