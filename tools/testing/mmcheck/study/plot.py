# SPDX-License-Identifier: GPL-2.0
"""Makes plots as SVG, for the page of `make report` and as files. If rsvg-convert is installed, it makes PNG files too.

Colours are attributes, because every viewer understands them. On the page the style sheet overrides these colours.
"""

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

from ..core import disk
from ..core.errors import UserError

WIDTH, LABELS, BARS = 420, 165, 210
"""Three widths: the whole plot, its part for names, and its part for bars. A plot fits on the screen of a phone."""

LINE = 18


def ratios(title: str, about: str, groups: Mapping[str, Sequence[tuple[str, float]]]) -> str:
    """Horizontal bars in groups, each with a name and its value; a vertical line marks the value 1.

    about: a few words that explain the values
    """
    most = max([1.0, *(value for group in groups.values() for _, value in group)])
    height = LINE * (2 + len(groups) + sum(map(len, groups.values()))) + 8
    one, y = round(LABELS + BARS / most, 1), 2 * LINE
    lines = [_text(0, 14, title, bold=True), _text(0, 14 + LINE, about)]
    lines.append(f'<path stroke="#5c6166" stroke-opacity=".5" d="M{one} {y + 4}V{height - 4}"/>')
    for name, group in groups.items():
        lines.append(_text(0, y + 16, name))
        for label, value in group:
            y += LINE
            width = round(BARS * value / most, 1)
            lines.append(_text(LABELS - 5, y + 14, label, end=True))
            lines.append(f'<rect class="bar" fill="#176b3a" x="{LABELS}" y="{y + 4}" width="{width}" height="12"/>')
            lines.append(_text(LABELS + 5 + width, y + 14, f"{value:.2f}"))
        y += LINE
    return svg(WIDTH, height, title, "".join(lines))


def _text(x: float, y: float, text: str, bold: bool = False, end: bool = False) -> str:
    more = ' font-weight="bold"' * bold + ' text-anchor="end"' * end
    return f'<text x="{x}" y="{y}" fill="#5c6166"{more}>{escape(text)}</text>'


def svg(width: int, height: int, label: str, body: str) -> str:
    """The SVG of a plot with the content `body`."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'role="img" font-family="sans-serif" font-size="12"><title>{escape(label)}</title>'
        f'<rect class="paper" fill="#fff" width="{width}" height="{height}"/>{body}</svg>'
    )


def save(plots: Mapping[str, str], folder: Path) -> str:
    """Write each plot to files with its name, as SVG and if possible as PNG. Returns the formats in words."""
    convert = shutil.which("rsvg-convert")
    for name, plot in plots.items():
        file = folder / f"{name.lower().replace(' ', '-')}.svg"
        disk.replace(file, plot.encode())
        if convert:
            command = [convert, "--zoom=2", "--output", str(file.with_suffix(".png")), str(file)]
            done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
            if done.returncode:
                raise UserError(f"{convert} {file}: {done.stderr.strip()}")
    return "SVG and PNG" if convert else "SVG (install librsvg2-bin to get PNG too)"
