# SPDX-License-Identifier: GPL-2.0
"""Measures the cost of the plugin: boots with it and without it, at the same time on the same machine."""

import multiprocessing
import resource
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from .boots import Machine
from .reports import Report
from .symbols import Symbols

Outcome = tuple[list[Report], dict[str, int], float]
"""The type that Machine.run() returns."""


@dataclass(frozen=True)
class Cost:
    """The cost of a boot.

    wall:   seconds of real time
    cpu:    seconds of CPU time
    memory: the largest memory of the emulator in MiB, with the memory of the guest
    """

    wall: float
    cpu: float
    memory: float


def measured(
    machine: Machine, image: Path, append: str, symbols: Symbols, more: Sequence[str] = ()
) -> tuple[Outcome, Cost]:
    """Boot. Returns the outcome of Machine.run(), and the cost. This process must have had no other child processes."""
    outcome = machine.run(image, append, symbols, more)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return outcome, Cost(round(outcome[2], 1), round(used.ru_utime + used.ru_stime, 1), round(used.ru_maxrss / 1024, 1))


def both(
    machine: Machine, image: Path, append: str, symbols: Symbols, more: Sequence[str] = ()
) -> tuple[Outcome, dict[str, Cost]]:
    """Boot with the plugin, and at the same time without it. Returns the outcome with the plugin, and both costs."""
    plain = replace(machine, plugin=None, out=machine.out / "without")
    context = multiprocessing.get_context("spawn")
    with ExitStack() as stack:
        pools = [stack.enter_context(ProcessPoolExecutor(1, context)) for _ in range(2)]
        waiting = [
            pool.submit(measured, one, image, append, symbols, more)
            for pool, one in zip(pools, (machine, plain), strict=True)
        ]
        (outcome, watched), (_, without) = (future.result() for future in waiting)
    return outcome, {"with": watched, "without": without}


def text(costs: dict[str, Cost]) -> str:
    """The costs as a table for a terminal."""
    watched, without = costs["with"], costs["without"]
    lines = [f"{'':15} {'with':>9} {'without':>9} {'ratio':>6}"]
    for name, unit in (("wall", "s"), ("cpu", "s"), ("memory", "MiB")):
        one, other = asdict(watched)[name], asdict(without)[name]
        lines.append(f"{f'{name} ({unit})':15} {one:9.1f} {other:9.1f} {one / max(other, 0.1):6.2f}")
    return "\n".join(lines)
