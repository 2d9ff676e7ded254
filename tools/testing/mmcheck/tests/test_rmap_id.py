# SPDX-License-Identifier: GPL-2.0
"""Parameters of rmap IDs: the parameters that do not compile, and the shortest collision."""

import math
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from mmcheck.core.settings import PROJECT

Vector = list[int]

WORD = 1 << 64
POSTED_BASE = 513
POSTED_BITS = 8
POSTED_OWNERS = {0x5501: 1, 0xAA01: 2, 0x2B01: 12, 0x6901: 28, 0x4D01: 28}

# Definitions of kernel headers that rmap_id_params.h needs.
SHIM = """\
typedef __UINT64_TYPE__ u64;
typedef _Bool bool;
#define U64_MAX ((u64)-1)
#define __always_inline inline __attribute__((always_inline))
#define BUILD_BUG_ON(c) do { extern __attribute__((error("unsound: " #c))) void bug(void); if (c) bug(); } while (0)
"""


def dot(a: Vector, b: Vector) -> int:
    return sum(x * y for x, y in zip(a, b, strict=True))


def norm(vector: Vector) -> int:
    return max(map(abs, vector))


def digits(part: int, base: int) -> int:
    """The number whose digits in base `base` are the bits of `part`."""
    return sum(base**bit for bit in range(part.bit_length()) if part >> bit & 1)


def lattice(base: int, bits: int) -> list[Vector]:
    """A basis of short vectors for the lattice of all differences of digits whose value is 0 modulo 2^64."""
    rows = [[base * (i == k) - (i == k + 1) for i in range(bits)] for k in range(bits - 1)]
    rest = WORD
    rows.append([])
    for _ in range(bits - 1):
        rows[-1].append(rest % base)
        rest //= base
    rows[-1].append(rest)
    changed = True
    while changed:
        changed = False
        for i in range(bits):
            for j, other in enumerate(rows):
                q = (2 * dot(rows[i], other) + dot(other, other)) // (2 * dot(other, other))
                shorter = [x - q * y for x, y in zip(rows[i], other, strict=True)]
                if i != j and dot(shorter, shorter) < dot(rows[i], rows[i]):
                    rows[i] = shorter
                    changed = True
    return sorted(rows, key=lambda row: dot(row, row))


def short_vectors(rows: list[Vector], bound: int) -> Iterator[Vector]:
    """All vectors of the lattice whose components are at most `bound`. The algorithm is by Fincke and Pohst."""
    size = len(rows)
    mu = [[0.0] * size for _ in rows]
    orthogonal: list[list[float]] = []
    for i, row in enumerate(rows):
        rest = [float(x) for x in row]
        for j, other in enumerate(orthogonal):
            square = sum(x * x for x in other)
            mu[i][j] = sum(x * y for x, y in zip(row, other, strict=True)) / square
            rest = [x - mu[i][j] * y for x, y in zip(rest, other, strict=True)]
        orthogonal.append(rest)
    squares = [sum(x * x for x in row) for row in orthogonal]
    factors = [0] * size

    def search(i: int, left: float) -> Iterator[Vector]:
        if i < 0:
            vector = [sum(f * row[k] for f, row in zip(factors, rows, strict=True)) for k in range(size)]
            if any(vector) and norm(vector) <= bound:
                yield vector
            return
        centre = -sum(factors[j] * mu[j][i] for j in range(i + 1, size))
        # Search a slightly larger range, because floats are not exact. The check above drops vectors that are too long.
        width = math.sqrt(max(left, 0.0) / squares[i]) + 1e-6
        for factor in range(math.ceil(centre - width), math.floor(centre + width) + 1):
            factors[i] = factor
            yield from search(i - 1, left - (factor - centre) ** 2 * squares[i])
        factors[i] = 0

    return search(size - 1, size * bound**2 * (1 + 1e-6))


def test_the_shortest_collision_of_the_posted_ids_is_twice_the_binomials() -> None:
    """So the posted IDs are wrong for folios of 128 or more pages, and right for folios of 64 pages."""
    assert POSTED_BASE**POSTED_BITS > WORD
    found = sorted(short_vectors(lattice(POSTED_BASE, POSTED_BITS), 128), key=norm)
    binomials = [2 * math.comb(7, k) * (-1) ** (k + 1) for k in range(8)]
    assert all(sum(x * POSTED_BASE**k for k, x in enumerate(v)) % WORD == 0 for v in found)
    assert sorted(v for v in found if norm(v) <= 70) == sorted([binomials, [-x for x in binomials]])
    assert norm(found[2]) == 72


def test_the_owners_of_that_collision_look_like_one() -> None:
    mapcount = sum(POSTED_OWNERS.values())
    assert mapcount == 71
    for value in range(3):
        total = sum(n * digits(owner >> 8 * value & 0xFF, POSTED_BASE) for owner, n in POSTED_OWNERS.items())
        assert (total - mapcount * digits(0x5501 >> 8 * value & 0xFF, POSTED_BASE)) % WORD == 0


@pytest.mark.parametrize(("base", "bits"), [(5, 24), (33, 12), (1025, 6), (4097, 5), (32769, 4), (513, 7)])
def test_sound_parameters_fit(base: int, bits: int) -> None:
    assert base**bits - 1 < WORD


def compiles(tmp_path: Path, order: int, values: int, bits: int) -> str:
    """The messages of the compiler for an object of this order with these parameters."""
    for name in ("bits", "build_bug", "limits", "types"):
        (tmp_path / "linux").mkdir(exist_ok=True)
        (tmp_path / f"linux/{name}.h").write_text(SHIM if name == "types" else "")
    source = tmp_path / "params.c"
    source.write_text(
        '#include <linux/types.h>\n#include "rmap_id_params.h"\n'
        f"unsigned int f(void) {{ return rmap_id_sound_params({order}, {values}, {bits}).base; }}\n"
    )
    command = ["gcc", "-O2", "-Werror", f"-I{tmp_path}", f"-I{PROJECT}/lib/rmap_id", "-S", "-o", "/dev/null"]
    return subprocess.run([*command, source], capture_output=True, text=True, check=False).stderr


@pytest.mark.skipif(not shutil.which("gcc"), reason="no gcc")
@pytest.mark.parametrize(
    ("order", "values", "bits", "refused"),
    [
        (9, 4, 6, False),
        (9, 4, 7, False),
        (9, 3, 8, True),  # the posted parameters
        (9, 3, 7, True),  # sound, but too few IDs
        (8, 3, 8, True),
        (7, 3, 8, False),  # 129^8 fits: three values are enough for 128 pages
        (2, 1, 24, False),
        (2, 1, 28, True),
        (10, 4, 6, False),
        (11, 4, 6, True),
        (15, 6, 4, False),
        (15, 5, 5, True),
        (3, 7, 4, True),  # too many values
    ],
)
def test_unsound_parameters_do_not_compile(tmp_path: Path, order: int, values: int, bits: int, refused: bool) -> None:
    sound = ((1 << order) + 1) ** bits < WORD
    assert refused == (not sound or values * bits < 24 or values > 6)
    message = compiles(tmp_path, order, values, bits)
    assert ("unsound" in message) == refused, message
    assert bool(message) == refused
