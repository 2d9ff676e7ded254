# SPDX-License-Identifier: GPL-2.0
"""Provides the tools, the source of the kernel, and the working copy for a run."""

from collections.abc import Mapping

from ..core import progress
from ..core.settings import from_environment, whole
from ..kernel import identity, probes, shadow, source, toolchain
from .launch import Launch
from .request import Request
from .workspace import RunSpec, Workspace, compiler


def prepare(request: Request, environ: Mapping[str, str]) -> Launch:
    """Provide tools, kernel source and working copy; returns a Launch that runs this kernel's kunit.py."""
    known = request.known
    # Use --arch, as the kernel's kunit.py does, and not ARCH, which kernel developers export for make.
    settings = from_environment(environ, known.arch[-1] if known.arch else "um")
    source.judge(settings, own_machine=bool(known.qemu_config))
    if request.verb != "parse":
        llvm = any("LLVM=" in o for o in known.make_options or [])
        needs = toolchain.requirements(settings.arch, bool(known.cross_compile) or llvm)
        toolchain.provide([*needs, *(toolchain.LLVM if llvm else ()), *toolchain.named(known.qemu_args or [])])
    kernel = source.obtain(settings)
    # Take the stamp before the working copy is made. An edit in between then causes one make too many, not one too few.
    stamp = f"{shadow.fingerprint(kernel, features=settings.features)} {compiler(settings.arch)}"
    space = Workspace(RunSpec(settings, request), kernel, stamp)
    space.prepare()
    answers = probes.answers(space.tree) if request.boots else {}
    if unknown := [name for name, value in answers.items() if value == "unknown"]:
        progress.say(probes.warning(unknown))
    launch = Launch(space)
    launch.jobs = whole(environ, "JOBS", 1, "the number of boots at a time")
    launch.origin = identity.origin(kernel) + (f", with {settings.patch.name}" if settings.patch else "")
    return launch
