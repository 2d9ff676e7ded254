# SPDX-License-Identifier: GPL-2.0
"""Many mutants in one kernel: each function has all its variants, and a number chooses at run time.

A mutant is a change of the bodies of some functions. The kernel that holds a hundred of them costs one
build; which one is switched on is said on the command line of each boot:

    int f(int x)                        int f(int x)
    {                                   {
            return x + 1;                       extern int mmcheck_mutant;
    }                                           if (mmcheck_mutant == 7) {
                                                        return x - 1;
                                                }
                                                {
                                                        return x + 1;
                                                }
                                        }
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

SWITCH = "mmcheck_mutant"
"""The variable that chooses, and the parameter that sets it."""

_FUNCTION = re.compile(r"^(?P<head>[A-Za-z_][^;{}#=]*?)\n(?P<body>\{\n.*?^\})[ \t]*$", re.MULTILINE | re.DOTALL)
_NAME = re.compile(r"(\w+)\s*\(")
_LABEL = re.compile(r"^(?!default\b)([A-Za-z_]\w*):(?!:)", re.MULTILINE)
_MARK = re.compile(r"^/\* mutant (\d+) (begins|ends) \*/$")


@dataclass(frozen=True)
class Function:
    """A function with a body in the style of the kernel: its braces stand alone in the first column.

    name:       its name, and how many of that name come before it (#ifdef and #else)
    returns:    whether it returns a value
    start, end: where its body is in the text, braces included
    """

    name: tuple[str, int]
    returns: bool
    start: int
    end: int


def functions(text: str) -> list[Function]:
    """All functions of a C file, in order."""
    result: list[Function] = []
    for match in _FUNCTION.finditer(text):
        # What comes before the last empty line or comment is not part of the declaration.
        head = re.split(r"\n\s*\n|\*/", match["head"])[-1].strip()
        name = _NAME.search(head)
        if name is None:
            continue
        earlier = sum(function.name[0] == name[1] for function in result)
        returns = re.search(r"\bvoid\s+(\w+\s+)*$", head[: name.start()]) is None
        result.append(Function((name[1], earlier), returns, match.start("body"), match.end("body")))
    return result


def bodies(text: str) -> tuple[dict[tuple[str, int], str], str]:
    """The bodies of the functions of a C file by name, and what is left of the file without them."""
    found: dict[tuple[str, int], str] = {}
    rest, position = [], 0
    for function in functions(text):
        found[function.name] = text[function.start : function.end]
        rest.append(text[position : function.start])
        position = function.end
    return found, "".join([*rest, text[position:]])


def changed(before: str, after: str) -> dict[tuple[str, int], str] | None:
    """The new bodies of the functions that differ; None where more than bodies differ."""
    old, old_rest = bodies(before)
    new, new_rest = bodies(after)
    if old_rest != new_rest or old.keys() != new.keys():
        return None
    return {name: body for name, body in new.items() if body != old[name]}


def merge(text: str, variants: Mapping[tuple[str, int], Sequence[tuple[int, str]]]) -> str:
    """`text` with further bodies for some functions, each under a number."""
    result, position = [], 0
    for function in functions(text):
        body = text[function.start : function.end]
        if variants.get(function.name):
            result += [text[position : function.start], _switched(function, body, variants[function.name])]
            position = function.end
    return "".join([*result, text[position:]])


def _switched(function: Function, body: str, variants: Sequence[tuple[int, str]]) -> str:
    lines = ["{", f"extern int {SWITCH};"]
    for number, variant in variants:
        lines += [f"if ({SWITCH} == {number}) {{", f"/* mutant {number} begins */"]
        labels = sorted(set(_LABEL.findall(variant)))
        if labels:
            lines.append(f"__label__ {', '.join(labels)};")
        lines += [variant, f"/* mutant {number} ends */"]
        lines += ["}"] if function.returns else ["return;", "}"]
    return "\n".join([*lines, body, "}"])


def at_line(text: str, line: int) -> int | None:
    """The number of the mutant that line `line` (from 1) of a merged file belongs to."""
    number = None
    for content in text.splitlines()[:line]:
        if mark := _MARK.match(content):
            number = int(mark[1]) if mark[2] == "begins" else None
    return number
