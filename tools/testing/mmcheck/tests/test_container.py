# SPDX-License-Identifier: GPL-2.0
"""./mmcheck --container, with a stand-in for podman that records its arguments."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mmcheck import container
from mmcheck.core.errors import UserError
from mmcheck.core.settings import PROJECT
from mmcheck.run import closing

ENGINE = f"""#!{sys.executable}
import os, signal, sys, time
with open(os.environ["CALLS"], "a") as calls:
    print(*sys.argv[1:], file=calls)
if sys.argv[1] == "image":
    sys.exit(int(os.environ.get("LACKS", "0")))
if sys.argv[1] == "build":
    print("E: no such package")
    sys.exit(int(os.environ.get("BUILD", "0")))
if "SLEEPS" in os.environ:
    signal.signal(signal.SIGINT, lambda *_: sys.exit(130))
    open(os.environ["SLEEPS"], "w").close()
    time.sleep(60)
sys.exit(int(os.environ.get("STATUS", "0")))
"""


class Box:
    """A folder with a stand-in for podman, and with a user's tree and patch."""

    def __init__(self, root: Path) -> None:
        self.root, self.file = root, root / "calls"
        for name in ("bin", "home", "linux"):
            (root / name).mkdir()
        (root / "fix.patch").write_text("")
        (root / "bin/podman").write_text(ENGINE)
        (root / "bin/podman").chmod(0o755)
        path = f"{root}/bin:{os.environ['PATH']}"
        self.environ = {"PATH": path, "HOME": str(root / "home"), "CALLS": str(self.file), "O": str(root / "out")}

    def command(self, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
        """Run ./mmcheck with these arguments and variables."""
        return subprocess.run(
            [sys.executable, PROJECT / "tools/testing/mmcheck", *words],
            env={**self.environ, **more},
            cwd=self.root / "home",
            capture_output=True,
            text=True,
        )

    @property
    def calls(self) -> list[str]:
        """The arguments of the calls of the stand-in so far."""
        return self.file.read_text().splitlines() if self.file.exists() else []


@pytest.fixture
def box(tmp_path: Path) -> Box:
    return Box(tmp_path)


def test_the_command_runs_in_the_container(box: Box) -> None:
    done = box.command("--container", "kselftest", "--arch", "arm64", "--kdir", f"{box.root}/linux", "TESTS=folio_fork")
    assert (done.returncode, done.stderr) == (0, "")
    run = box.calls[-1]
    assert run.startswith("run --rm -i")
    assert " --tmpfs=/dev/shm:exec," in run  # UML needs this
    assert run.endswith(f"{PROJECT}/mmcheck kselftest --arch arm64 --kdir {box.root}/linux TESTS=folio_fork")
    for place in (PROJECT, box.root / "out", box.root / "home", box.root / "home/.cache/mmcheck"):
        assert f" -v {place}:{place} " in run
    assert f" -v {box.root}/linux:{box.root}/linux:ro " in run
    assert f"--env=O={box.root}/out" in run and f"--env=MMCHECK_CONTAINER={PROJECT}/out/container" in run


def test_files_that_the_command_names_are_shared(box: Box) -> None:
    box.command("--container", "run", "--arch=arm64", "--apply", f"{box.root}/fix.patch", PAGES="16K")
    assert f" -v {box.root}/fix.patch:{box.root}/fix.patch " in box.calls[-1]
    assert "--env=PAGES=16K" in box.calls[-1]


def test_graft_may_write_to_the_tree(box: Box) -> None:
    box.command("--container", "graft", f"KDIR={box.root}/linux")
    assert f" -v {box.root}/linux:{box.root}/linux " in box.calls[-1]


def test_folders_of_the_system_are_not_shared(box: Box) -> None:
    box.command("--container", "audit", "--arch", "arm64", "--", "/bin/true", "/", "x" * 5000)
    assert " -v /bin" not in box.calls[-1] and " -v /:/" not in box.calls[-1]


@pytest.mark.parametrize(("engine", "ours"), [(0, 0), (1, 1), (4, 4), (125, 125), (126, 125), (137, 125)])
def test_status(box: Box, engine: int, ours: int) -> None:
    assert box.command("--container", "results", STATUS=str(engine)).returncode == ours


def test_the_image_is_built_once(box: Box) -> None:
    box.command("--container", "results", LACKS="1")
    assert [call.split()[0] for call in box.calls] == ["image", "build", "run"]
    assert "PACKAGES=bc bison" in box.calls[1]
    box.command("--container", "results")
    assert [call.split()[0] for call in box.calls[3:]] == ["image", "run"]


def test_process_1_reaps() -> None:
    """Without this, ended processes that no parent waits for fill the container's limit on processes."""
    assert container.FILE.read_text().endswith('ENTRYPOINT ["tini", "--"]\n')
    assert "tini" in container.packages()


def test_an_image_that_cannot_be_built(box: Box) -> None:
    done = box.command("--container", "results", LACKS="1", BUILD="100")
    assert done.returncode == 125
    assert done.stderr.splitlines()[-1] == "container: podman could not build the image: E: no such package"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["frob"], "frob: no such command"),
        ([], "--container: no such command"),
        (["kselftest", "--frob"], "unrecognized arguments: --frob"),
        (["kselftest", "PAGES=3K"], "PAGES=3K: use one of"),
        (["kselftest", "KDIR=/nowhere"], "KDIR=/nowhere: there is no such folder"),
        (["kselftest", "HOST=1"], "leave out --container"),
    ],
)
def test_bad_input_starts_nothing(box: Box, words: list[str], message: str) -> None:
    done = box.command("--container", *words)
    assert done.returncode == 125 and message in done.stderr and done.stderr.count("\n") == 1
    assert box.calls == [] and not (box.root / "out").exists()


def test_a_path_with_a_colon(box: Box) -> None:
    (box.root / "a:b").mkdir()
    done = box.command("--container", "doctor", f"KDIR={box.root}/a:b")
    assert done.returncode == 125 and "allows no colon in a path" in done.stderr
    assert box.calls == [] and not (box.root / "out").exists()


def test_a_dry_run_starts_nothing(box: Box) -> None:
    for words in (["kselftest", "--dry-run"], ["run", "--dry-run"]):
        done = box.command("--container", *words)
        assert done.returncode == 0 and "podman run" in done.stdout
    assert box.calls == [] and not (box.root / "out").exists()


def test_an_interrupt_reaches_the_command(box: Box) -> None:
    started = box.root / "started"
    words = [sys.executable, str(PROJECT / "tools/testing/mmcheck"), "--container", "results"]
    process = subprocess.Popen(words, env={**box.environ, "SLEEPS": str(started)}, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not started.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    assert started.exists()
    process.send_signal(signal.SIGTERM)  # only mmcheck gets this signal; ^C would also reach the engine
    _, said = process.communicate(timeout=30)
    assert (process.returncode, said) == (130, "container: interrupted\n")


def test_commands_to_run_next_use_the_container(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MMCHECK_CONTAINER", "/p/out/container")
    given = {"O": "/p/out/container", "PAGES": "16K"}
    assert closing.again(["run", "--arch=arm64"], given) == "PAGES=16K ./mmcheck --container run --arch=arm64"
    assert closing.make("report", given) == "./mmcheck --container report PAGES=16K"
    assert closing.make("report", {"O": "/p/out"}) == "./mmcheck --container report O=/p/out"


def test_engines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", {"docker": "/usr/bin/docker"}.get)
    assert container.found("") == container.found("docker") == "docker"
    for engine, message in (("podman", "install podman"), ("lxc", "use podman or docker")):
        with pytest.raises(UserError, match=message):
            container.found(engine)
    monkeypatch.setattr("shutil.which", lambda _: None)
    with pytest.raises(UserError, match="install podman or docker"):
        container.found("")


def test_the_image_has_compilers_and_emulators() -> None:
    wanted = {"gcc", "gcc-aarch64-linux-gnu", "gcc-s390x-linux-gnu", "qemu-system-arm", "ccache", "clang", "xfsprogs"}
    assert wanted <= set(container.packages())
    assert "chromium" not in container.packages()
