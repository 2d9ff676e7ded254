# SPDX-License-Identifier: GPL-2.0
"""`./mmcheck --container VERB`: runs the same command in a container, for a machine without Debian.

The image is built once, from ci/Containerfile. The container sees this repository, the current folder, the cache of
mmcheck, and the files and folders that the command names, each at its own path. Results are in out/container, because
programs that the container builds might not run on this machine.
"""

import hashlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from .core import command, progress, settings
from .core.errors import FAILED, INTERRUPTED, NO_VERDICT, PASSED, SKIPPED, UserError
from .core.settings import PROJECT, Settings
from .core.variables import CONTAINER, NAMES
from .kernel import toolchain
from .run import request

ENGINES = ("podman", "docker")
FILE = PROJECT / "ci/Containerfile"
RESULTS = PROJECT / "out/container"
"""The O= of commands without O=."""

ALWAYS = ("ca-certificates", "ccache", "python3", "tini")
PROXIES = ("http_proxy", "https_proxy", "no_proxy")
WRITES = ("graft", "ungraft")
"""The commands that write to KDIR=."""

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc", "/proc", "/sys", "/dev", "/run", "/var")
"""Folders that are not shared with the container, because the container has its own folders with these names."""

KEPT = (PASSED, FAILED, SKIPPED, NO_VERDICT, INTERRUPTED)


def main(engine: str, arguments: Sequence[str], given: Mapping[str, str]) -> int:
    """Run the command `arguments` in a container; returns its exit status.

    engine: podman or docker; "" for the first one that is installed
    given:  the variables that the command reads
    """

    def body(environ: dict[str, str]) -> int:
        if environ.get("HOST") == "1":
            raise UserError(f"HOST=1 tests the kernel of this machine, so it needs no container: leave out {CONTAINER}")
        chosen = settings.from_environment({"O": str(RESULTS), **environ})
        if chosen.kdir and not chosen.kdir.is_dir():
            raise UserError(f"KDIR={chosen.kdir}: there is no such folder")
        program = found(engine)
        shared = places(arguments, environ, chosen)
        words = [*options(program, chosen), *(word for place in shared for word in ("-v", place))]
        return run([program, "run", *words, image(program), str(PROJECT / "mmcheck"), *arguments])

    return command.run("container", body, given)


def of_kunit(arguments: Sequence[str]) -> dict[str, str]:
    """The variables that correspond to arguments of kunit.py. In the container kunit.py reads the arguments again."""
    found, rest = request.split(["run", *arguments])
    arch = request.parse(rest).known.arch
    return {**found, **({"ARCH": arch[-1]} if arch else {})}


def found(engine: str) -> str:
    """The engine to use. Raises UserError if there is none."""
    if engine not in ("", *ENGINES):
        raise UserError(f"{CONTAINER}={engine}: use {' or '.join(ENGINES)}")
    for name in [engine] if engine else ENGINES:
        if shutil.which(name):
            return name
    raise UserError(f"no container engine: install {engine or ' or '.join(ENGINES)}")


def packages() -> list[str]:
    """The Debian packages that commands install, except Chromium, which is large and needed only to check reports."""
    arches = toolchain.ARCHITECTURES
    own = arches[toolchain.own_arch()].prefix if toolchain.own_arch() in arches else "-"
    needs = {need for need in toolchain.PACKAGES if own.rstrip("-") not in need or own == "-"}
    needs |= {need for arch in arches for need in toolchain.requirements(arch, own_compiler=False)}
    return sorted({*ALWAYS, *map(toolchain.package, needs)} - {"chromium"})


def image(engine: str) -> str:
    """The name of the image, which is built if it does not exist."""
    wanted = " ".join(packages())
    name = f"mmcheck:{hashlib.sha256(FILE.read_bytes() + wanted.encode()).hexdigest()[:12]}"
    if not subprocess.run([engine, "image", "inspect", name], capture_output=True).returncode:
        return name
    proxies = [f"--build-arg={key}={os.environ[key]}" for key in PROXIES if os.environ.get(key)]
    words = [engine, "build", "--network=host", f"--build-arg=PACKAGES={wanted}", *proxies, "-t", name, "-f", str(FILE)]
    with progress.Progress("building the image of the container"):
        done = subprocess.run([*words, str(FILE.parent)], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        said = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        errors = [line for line in said if line.lower().startswith(("e:", "error"))] or said[-1:] or ["no reason given"]
        raise UserError(f"{engine} could not build the image: {errors[0].strip()}")
    return name


def places(arguments: Sequence[str], environ: Mapping[str, str], chosen: Settings) -> list[str]:
    """The folders and files that the container shares with this machine, in the form of the option -v.

    Creates the folders that the command itself would create. Raises UserError for a path that -v does not allow.
    """
    here, tree = Path.cwd(), chosen.kdir
    own = [chosen.cache, chosen.cache.parent / "ccache", chosen.out]
    shared: list[Path] = [PROJECT, *own, *([] if here == Path("/") else [here])]
    for word in (*arguments, *(environ[name] for name in NAMES if environ.get(name))):
        path = Path(word[word.find("=") + 1 :]).expanduser().absolute()
        known = any(path.is_relative_to(place) for place in [*shared, *map(Path, SYSTEM)])
        if path != Path("/") and not known and _exists(path):
            shared.append(path)
    if tree and tree not in shared:
        shared.append(tree)
    for path in shared:
        if ":" in str(path):
            raise UserError(f"{path}: {CONTAINER} allows no colon in a path; rename or move this path")
    for folder in own:
        folder.mkdir(parents=True, exist_ok=True)
    closed = tree if arguments[0] not in WRITES else None
    return [f"{path}:{path}{':ro' if path == closed else ''}" for path in dict.fromkeys(shared)]


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # the word is too long for a file name
        return False


def options(engine: str, chosen: Settings) -> list[str]:
    """The options of `podman run` and `docker run`, except those for the shared folders."""
    found = ["--rm", "-i", "--network=host", "--security-opt=label=disable", f"--workdir={Path.cwd()}"]
    found.append("--tmpfs=/dev/shm:exec,mode=1777")  # UML executes code in its memory, which is a file there
    if sys.stdin.isatty() and sys.stdout.isatty():
        found.append("-t")
    if os.access("/dev/kvm", os.R_OK | os.W_OK):
        found.append("--device=/dev/kvm")
    if engine == "docker" and os.getuid():  # with podman, files that root writes in the container belong to this user
        found.append(f"--user={os.getuid()}:{os.getgid()}")
    fixed = {
        toolchain.BOXED: str(RESULTS),
        "O": str(chosen.out),
        "XDG_CACHE_HOME": str(chosen.cache.parent),
        "HOME": str(Path.home()),
    }
    passed = {name: os.environ[name] for name in (*NAMES, *PROXIES, "TERM") if name in os.environ}
    return [*found, *(f"--env={name}={value}" for name, value in {**passed, **fixed}.items())]


def run(words: Sequence[str]) -> int:
    """Run the engine; returns the exit status of the command in the container."""
    with subprocess.Popen(words) as process:
        try:
            status = process.wait()
        except KeyboardInterrupt:
            process.send_signal(signal.SIGINT)  # the engine passes the signal on, and the command cleans up
            process.wait()
            raise
    return status if status in KEPT else NO_VERDICT
