# SPDX-License-Identifier: GPL-2.0
"""Counts the instructions that a machine executes between two places in its kernel.

QEMU counts instructions while it records (-icount rr=record), and its monitor prints the count. GDB's remote protocol
stops the machine at an address, and carries commands to the monitor. QEMU itself speaks this protocol, so no debugger
is needed.
"""

import re
import socket
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ..core.errors import UserError

PATIENCE = 120
"""The number of seconds that the machine may take to answer or to reach an address."""


class Remote:
    """A connection to QEMU, which uses GDB's remote protocol."""

    def __init__(self, connection: socket.socket) -> None:
        """The caller sets the time limit of `connection`."""
        self.connection = connection
        self.rest = b""

    def ask(self, text: str) -> str:
        """Send a packet; returns the next packet that QEMU sends."""
        self.connection.sendall(f"${text}#{sum(text.encode()) & 0xFF:02x}".encode())
        return self.packet()

    def packet(self) -> str:
        """The next packet. Raises EOFError if the connection has ended."""
        while not (match := re.search(rb"\$([^#]*)#..", self.rest, re.DOTALL)):
            part = self.connection.recv(4096)
            if not part:
                raise EOFError("it has ended")
            self.rest += part
        self.rest = self.rest[match.end() :]
        self.connection.sendall(b"+")
        return match[1].decode()

    def monitor(self, command: str) -> str:
        """The answer of QEMU's monitor to a command."""
        answer = self.ask(f"qRcmd,{command.encode().hex()}")
        said = ""
        while answer.startswith("O") and answer != "OK":
            said += bytes.fromhex(answer[1:]).decode()
            answer = self.packet()
        return said

    def run_to(self, address: int) -> None:
        """Run the machine up to the instruction at `address`. Raises EOFError if the machine does not reach it."""
        self.ask(f"Z0,{address:x},4")
        if not self.ask("c").startswith("T"):
            raise EOFError(f"it did not reach {address:#x}")
        self.ask(f"z0,{address:x},4")

    def register(self, number: int) -> int:
        """The value of a 64-bit register of a little-endian machine."""
        every = bytes.fromhex(self.ask("g"))
        if len(every) < 8 * (number + 1):
            raise EOFError(f"it has no register {number}")
        return int.from_bytes(every[8 * number : 8 * number + 8], "little")

    def instructions(self) -> int:
        """How many instructions the machine has executed. Raises EOFError if QEMU does not count."""
        said = self.monitor("info replay")
        if not (match := re.search(r"instruction count = (\d+)", said)):
            raise EOFError(f"it says {said!r}")
        return int(match[1])


def instructions_of_call(command: Sequence[str], address: int, link: int = 30) -> int:
    """The number of instructions in the first call of the function at `address`, up to its return.

    command: starts the machine
    link:    number of the register with the return address; x30 on arm64
    """
    with tempfile.TemporaryDirectory(prefix="mmcheck-") as folder:
        path = Path(folder) / "socket"
        count = ["-icount", f"shift=0,rr=record,rrfile={folder}/record"]
        stopped = ["-S", "-chardev", f"socket,id=gdb,path={path}", "-gdb", "chardev:gdb"]
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(path))
            server.listen()
            server.settimeout(0.2)
            try:
                with subprocess.Popen(
                    [*command, *count, *stopped],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.PIPE,
                    text=True,
                ) as qemu:
                    try:
                        return _count(server, qemu, address, link)
                    finally:
                        qemu.kill()
            except (OSError, EOFError, ValueError) as error:
                raise UserError(f"{command[0]}: cannot count its instructions: {error}") from None


def _count(server: socket.socket, qemu: subprocess.Popen[str], address: int, link: int) -> int:
    while True:
        try:
            connection, _ = server.accept()
            break
        except TimeoutError:
            if qemu.poll() is not None:
                assert qemu.stderr
                raise EOFError(qemu.stderr.read().strip() or "it has ended") from None
    with connection:
        connection.settimeout(PATIENCE)
        remote = Remote(connection)
        remote.run_to(address)
        before = remote.instructions()
        remote.run_to(remote.register(link))
        return remote.instructions() - before
