# SPDX-License-Identifier: GPL-2.0
"""Puts many mutants into one kernel: a function contains all its variants, and a number chooses one at run time.

A mutant is a change of the bodies of some functions. A kernel with a hundred mutants needs only one build.
The command line of each boot enables one mutant:

    int f(int x)                        int f(int x)
    {                                   {
            return x + 1;                       extern int mmcheck_mutant;
    }                                           extern volatile unsigned char mmcheck_reached[];
                                                mmcheck_reached[3] = 1;
                                                if (mmcheck_mutant == 7) {
                                                        return x - 1;
                                                }
                                                {
                                                        return x + 1;
                                                }
                                        }

The array mmcheck_reached notes which functions with mutants run. A test cannot notice a mutant in a function that it
does not run. The array is volatile: without volatile, gcc 12 moves the store to the array out of the loop of
__set_ptes(), and then the code after the loop stores the last entry a second time. The second store loses bits that
the hardware has set after the first store.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

SWITCH = "mmcheck_mutant"
"""The name of the variable that chooses the mutant. The kernel parameter that sets the variable has the same name."""

REACHED = "mmcheck_reached"
"""The array that records which functions ran."""

_NAME = re.compile(r"(\w+)\s*\(")
_NO_NAME = {"__attribute__", "__section", "__aligned", "__printf", "__releases", "__acquires", "__no_sanitize"}
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_LABEL = re.compile(r"^(?!default\b)([A-Za-z_]\w*):(?!:)", re.MULTILINE)
_MARK = re.compile(r"^/\* mutant (\d+) (begins|ends) \*/$")


@dataclass(frozen=True)
class Function:
    """A function with a body.

    name:       its name, and the number of functions with the same name before it (#ifdef and #else)
    returns:    whether it returns a value
    start, end: the place of its body in the text, with the braces
    """

    name: tuple[str, int]
    returns: bool
    start: int
    end: int


_TOKEN = re.compile(
    r"""(?P<skip>/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')"""
    r"""|(?P<directive>^[ \t]*\#(?:\\\n|/\*.*?\*/|[^\n])*)|(?P<brace>[{}])|(?P<end>;)""",
    re.MULTILINE | re.DOTALL,
)


def functions(text: str) -> list[Function]:
    """All functions of a C file, in order. Braces in any column mark the bodies.

    If a body has an #if, only the braces in the first branch of the #if count.
    """
    result: list[Function] = []
    counts: dict[str, int] = {}
    head, start, depth = 0, 0, 0
    branches: list[list[int]] = []
    for token in _TOKEN.finditer(text):
        if token["directive"]:
            depth = _branch(token["directive"].lstrip(" \t#"), branches, depth)
            head = token.end() if not depth else head
        elif token["brace"] == "{":
            start = start if depth else token.start()
            depth += 1
        elif token["brace"] and depth:
            depth -= 1
            if not depth:
                result += _function(text, head, start, token.end(), counts)
                head = token.end()
        elif token["end"] and not depth:
            head = token.end()
    return result


def _branch(directive: str, branches: list[list[int]], depth: int) -> int:
    """The depth of braces after a directive. `branches` has the depths before each #if and after its first branch."""
    if directive.startswith("if"):
        branches.append([depth])
    elif directive.startswith(("else", "elif")) and branches:
        branches[-1][1:] = branches[-1][1:] or [depth]
        return branches[-1][0]
    elif directive.startswith("endif") and branches:
        ends = branches.pop()[1:]
        return ends[0] if ends else depth
    return depth


def _function(text: str, head: int, start: int, end: int, counts: dict[str, int]) -> list[Function]:
    """The function with the body from `start` to `end`; an empty list if this is not the body of a function."""
    declared = _COMMENT.sub(" ", text[head:start])
    name = next((match for match in _NAME.finditer(declared) if match[1] not in _NO_NAME), None)
    if name is None or "=" in declared[: name.start()] or not declared.rstrip().endswith(")"):
        return []
    if re.match(r"\s*typedef\b", declared):
        return []
    called = name[1]
    if inner := re.match(r"(?:(?:COMPAT_)?SYSCALL_DEFINE\d?|DEFINE_\w+)\s*\(\s*(\w+)", declared[name.start() :]):
        called = inner[1]
    counts[called] = counts.get(called, 0) + 1
    returns = re.search(r"\bvoid\s+(\w+\s+)*$", declared[: name.start()]) is None
    return [Function((called, counts[called] - 1), returns, start, end)]


def bodies(text: str) -> tuple[dict[tuple[str, int], str], str]:
    """The bodies of the functions of a C file, by name, and the rest of the file."""
    found: dict[tuple[str, int], str] = {}
    rest, position = [], 0
    for function in functions(text):
        found[function.name] = text[function.start : function.end]
        rest.append(text[position : function.start])
        position = function.end
    return found, "".join([*rest, text[position:]])


def changed(before: str, after: str) -> dict[tuple[str, int], str] | None:
    """The new bodies of the functions that differ; None if the files also differ outside of bodies."""
    old, old_rest = bodies(before)
    new, new_rest = bodies(after)
    if old_rest != new_rest or old.keys() != new.keys():
        return None
    return {name: body for name, body in new.items() if body != old[name]}


def merge(
    text: str,
    variants: Mapping[tuple[str, int], Sequence[tuple[int, str]]],
    reached: Mapping[tuple[str, int], int] | None = None,
) -> str:
    """`text`, in which some functions get additional bodies, each with the number of its mutant.

    reached: the number of each function, which is noted when the function runs
    """
    result, position = [], 0
    for function in functions(text):
        body = text[function.start : function.end]
        if variants.get(function.name):
            result += [
                text[position : function.start],
                _switched(function, body, variants[function.name], (reached or {}).get(function.name)),
            ]
            position = function.end
    return "".join([*result, text[position:]])


def _switched(function: Function, body: str, variants: Sequence[tuple[int, str]], reached: int | None) -> str:
    lines = ["{", f"extern int {SWITCH};"]
    if reached is not None:
        lines += [f"extern volatile unsigned char {REACHED}[];", f"{REACHED}[{reached}] = 1;"]
    for number, variant in variants:
        lines += [f"if ({SWITCH} == {number}) {{", f"/* mutant {number} begins */"]
        labels = sorted(set(_LABEL.findall(variant)))
        if labels:
            lines.append(f"__label__ {', '.join(labels)};")
        lines += [variant, f"/* mutant {number} ends */"]
        lines += ["}"] if function.returns else ["return;", "}"]
    return "\n".join([*lines, body, "}"])


def at_line(text: str, line: int) -> int | None:
    """The number of the mutant to which line `line` of a merged file belongs. Line numbers begin at 1."""
    number = None
    for content in text.splitlines()[:line]:
        if mark := _MARK.match(content):
            number = int(mark[1]) if mark[2] == "begins" else None
    return number
