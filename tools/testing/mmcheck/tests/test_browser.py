# SPDX-License-Identifier: GPL-2.0
"""Tests of the report in Chromium: how it looks, how the keyboard controls it, and whether it is accessible."""

import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("axe_playwright_python", reason="needs a browser: make check-report runs it")

from . import browser, seeded

CASE = "contpte_fold.set_pte_at_ascending"
SUITE = "contpte on 7.3 arm64 4K"


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with browser.browser() as driver:
        yield driver


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The pages of two reports: one with failures and missing cells, the other with all cells and no failure."""
    out = tmp_path_factory.mktemp
    return {
        "failing": seeded.page(out("failing"), failing=True, missing=True),
        "good": seeded.page(out("good"), failing=False, missing=False),
    }


def violations(shown: Any) -> list[tuple[str, str]]:
    """The violations that axe-core finds: the rule, and the first element that violates it."""
    found = importlib.import_module("axe_playwright_python.sync_playwright").Axe().run(shown).response["violations"]
    return [(one["id"], one["nodes"][0]["html"]) for one in found]


@pytest.mark.parametrize("name", ["failing", "good"])
@pytest.mark.parametrize(("width", "dark"), [(390, False), (900, True), (1600, False)])
def test_the_page_is_accessible_and_fits(
    chromium: Any, pages: dict[str, Path], name: str, width: int, dark: bool
) -> None:
    shown = browser.show(chromium, pages[name], width, dark)
    assert shown.evaluate("document.documentElement.scrollWidth") <= width
    shown.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    shown.evaluate(f"location.hash = '#case={CASE}'")
    shown.wait_for_selector(f"#detail h3:has-text('{CASE}')")
    assert violations(shown) == []
    assert shown.evaluate("document.documentElement.scrollWidth") <= width
    shown.close()


def test_the_checker_finds_what_is_wrong(chromium: Any, pages: dict[str, Path]) -> None:
    shown = browser.show(chromium, pages["good"], 900)
    shown.evaluate("document.querySelector('#find').closest('label').replaceWith(document.createElement('input'))")
    assert "label" in [rule for rule, _ in violations(shown)]
    shown.close()


def test_the_page_asks_for_nothing_else(chromium: Any, pages: dict[str, Path]) -> None:
    context = chromium.new_context()
    shown = context.new_page()
    asked: list[str] = []
    errors: list[str] = []
    shown.on("request", lambda request: asked.append(request.url))
    shown.on("pageerror", lambda error: errors.append(str(error)))
    shown.goto(pages["failing"].as_uri())
    shown.fill("#find", "contpte")
    assert asked == [pages["failing"].as_uri()] and not errors
    context.close()


def test_dark_and_light_are_different_and_legible(chromium: Any, pages: dict[str, Path]) -> None:
    colours = []
    for dark in (False, True):
        shown = browser.show(chromium, pages["good"], 900, dark)
        rgb = shown.evaluate("getComputedStyle(document.body).backgroundColor")
        colours.append(sum(map(int, re.findall(r"\d+", rgb)[:3])))
        shown.close()
    assert colours[0] > 600 > 200 > colours[1]


def test_the_map_leads_to_the_cases_by_keyboard(chromium: Any, pages: dict[str, Path]) -> None:
    shown = browser.show(chromium, pages["failing"], 1600)
    shown.focus("#heat td[tabindex='0']")
    assert shown.evaluate("document.activeElement.title").startswith(SUITE + ": 1 failed")
    shown.keyboard.press("ArrowDown")
    shown.keyboard.press("ArrowRight")
    assert shown.evaluate("document.activeElement.title").startswith("contpte_fold on 7.3 arm64 4K locks")
    assert shown.evaluate("document.querySelectorAll('#heat td[tabindex=\"0\"]').length") == 1
    shown.keyboard.press("ArrowLeft")
    shown.keyboard.press("ArrowUp")
    shown.keyboard.press("Enter")
    shown.wait_for_selector(f"#detail h3:has-text('{SUITE}')")
    assert shown.evaluate("document.activeElement.id") == "detail"
    first = shown.inner_text("#detail tbody tr")
    assert "contpte.modify_prot_range" in first and "failed" in first and "entry 31 is" in first
    shown.close()


def test_a_case_has_its_history_in_each_cell_and_leads_to_its_card(chromium: Any, pages: dict[str, Path]) -> None:
    shown = browser.show(chromium, pages["failing"], 900)
    shown.evaluate(f"location.hash = '#case={CASE}'")
    shown.wait_for_selector("#detail a")
    rows = shown.inner_text("#detail tbody")
    assert re.search(r"7\.3 arm64 4K smp2\s+failed\s.*entry 0 is.*\n\s*passed from .*, then failed from ", rows)
    assert re.search(r"6\.12 arm64 4K\s+passed\s+no change", rows)
    shown.click("#detail a")
    assert shown.evaluate(f"document.getElementById('failure-{CASE.replace('.', '-')}').open")
    shown.close()


@pytest.mark.parametrize(
    ("typed", "only", "tests"),
    [
        ("modify_prot_range", "", 1),
        ("known issue 1:", "", 3),
        ("contpte_fold", "f", 15),
        ("", "h", 18),
        ("no such test", "", 0),
    ],
)
def test_search_and_filter_find_tests(chromium: Any, pages: dict[str, Path], typed: str, only: str, tests: int) -> None:
    shown = browser.show(chromium, pages["failing"], 900)
    shown.check(f"input[name=only][value='{only}']")
    shown.fill("#find", typed)
    assert shown.inner_text("#found").startswith(f"{tests} test")
    assert shown.locator("#detail tbody tr").count() == tests
    shown.close()


def test_hatched_squares_are_cells_that_were_not_run(chromium: Any, pages: dict[str, Path]) -> None:
    shown = browser.show(chromium, pages["failing"], 1600)
    heads = shown.evaluate("[...document.querySelectorAll('#heat thead th')].map(one => one.textContent)")
    kinds = shown.evaluate("[...document.querySelector('#heat tbody tr').cells].slice(1).map(one => one.className)")
    hatched = {head for head, kind in zip(heads, kinds, strict=True) if "missing" in kind}
    assert "6.12 riscv" in hatched and "7.3 arm64 4K kasan" in hatched and "7.3 arm64 4K" not in hatched
    image = "getComputedStyle(document.querySelector('#heat td.missing')).backgroundImage"
    assert "repeating-linear-gradient" in shown.evaluate(image)
    shown.close()


def test_the_pictures_can_be_made(chromium: Any, tmp_path: Path) -> None:
    made = browser.pictures(chromium, tmp_path, widths=(390,))
    assert [path.name for path in made] == ["report-390.png", "report-dark.png"]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in made)
