# SPDX-License-Identifier: GPL-2.0
"""Numbers of the benchmark suites, their tables, and the comparison of two results."""

from pathlib import Path
from xml.etree import ElementTree

import pytest

from mmcheck import verbs
from mmcheck.core.errors import UserError
from mmcheck.study import bench_compare, bench_numbers, plot
from mmcheck.study.bench_numbers import Number

from .seeded import of_command

CONSOLE = """\
[    1.000000]     # bench_single_pages: number fork single mib=64 ns=1000 faults=0 copies=0 invalidations=1
[    1.000000]     # clear_bench: number clear_pages 64K ns_median=10 spread=2 ns_min=9 ns_max=30 runs=25
    # something: 3 numbers of things=4
"""


def save(folder: Path, name: str, **fields: int) -> str:
    number = {"run": "7.3 arm64 4K", "what": "fork single", "fields": fields}
    of_command(folder / name, "bench", {"numbers": {"folio_bench": [number]}, "tables": []})
    return str(folder / name)


def bars(svg: str) -> list[float]:
    """The lengths of the bars of a plot."""
    found = ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}rect")
    return [float(rect.attrib["width"]) for rect in found if rect.attrib["class"] == "bar"]


def test_lines_for_machines_are_read() -> None:
    fork, clear = bench_numbers.numbers("r", CONSOLE.splitlines())
    assert fork == Number("r", "fork single", {"mib": 64, "ns": 1000, "faults": 0, "copies": 0, "invalidations": 1})
    assert (clear.what, clear.fields["ns_median"]) == ("clear_pages 64K", 10)


def test_a_table_has_the_ratio_to_its_first_row_and_a_plot() -> None:
    found = [
        Number("off", "fork block", {"ns": 200, "faults": 1}),
        Number("on", "fork block", {"ns": 100, "faults": 1}),
    ]
    (table,) = bench_numbers.tables({"folio_bench": found})
    assert [row[-1] for row in table.rows] == ["1.000", "0.500"]
    assert "fork block  on" in bench_numbers.text(table)
    assert len(bars(table.svg)) == 2
    assert bench_numbers.ktap({"folio_bench": found}).count("\n    ok ") == 2


def test_what_another_boot_counted_is_added() -> None:
    found = [Number("a", "fork block", {"ns": 1}), Number("b", "fork block", {"ns": 2})]
    more = [Number("b", "fork block", {"writes": 3}), Number("a", "munmap block", {"writes": 4})]
    assert bench_numbers.merged(found, more) == [
        Number("a", "fork block", {"ns": 1}),
        Number("b", "fork block", {"ns": 2, "writes": 3}),
        Number("a", "munmap block", {"writes": 4}),
    ]
    assert bench_numbers.merged([], found) == found


def test_a_plot_is_as_long_as_it_has_to_be_and_no_wider() -> None:
    svg = plot.ratios("a < b", "time", {"one": [("x", 1.0), ("y", 0.5)], "two": [("x", 2.0)]})
    assert bars(svg) == [plot.BARS / 2, plot.BARS / 4, plot.BARS]
    whole = ElementTree.fromstring(svg)
    texts = list(whole.iter("{http://www.w3.org/2000/svg}text"))
    assert [text.text for text in texts][:3] == ["a < b", "time", "one"]
    assert all(float(text.attrib["y"]) < float(whole.attrib["height"]) for text in texts)
    assert plot.LABELS + plot.BARS + len("17.20") * 8 <= plot.WIDTH


def test_plots_are_files_as_png_where_the_program_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    convert = tmp_path / "rsvg-convert"
    convert.write_text("#!/bin/sh\ncp $4 $3\n")
    convert.chmod(0o755)
    monkeypatch.setattr("shutil.which", lambda _: None)
    assert plot.save({"Linear map": "<svg/>"}, tmp_path) == "SVG (install librsvg2-bin to get PNG too)"
    assert not list(tmp_path.glob("*.png"))
    monkeypatch.setattr("shutil.which", lambda _: str(convert))
    assert plot.save({"Linear map": "<svg/>"}, tmp_path) == "SVG and PNG"
    assert (tmp_path / "linear-map.png").read_text() == (tmp_path / "linear-map.svg").read_text() == "<svg/>"


def test_rates_of_clearing_are_bytes_for_each_nanosecond() -> None:
    one, two = (Number(name, "clear_pages 1M", {"ns_median": ns, "spread": 1}) for name, ns in (("a", 100), ("b", 50)))
    (table,) = bench_numbers.tables({"clear_pages": [one, two, Number("a", "clock_step", {"ns": 1})]})
    assert [row[-1] for row in table.rows] == ["1.000", "2.000"]


def test_exact_numbers_differ_or_they_do_not(tmp_path: Path) -> None:
    a, b = save(tmp_path, "a", faults=2, ns=10), save(tmp_path, "b", faults=1, ns=10)
    said = bench_compare.compare(a, b)
    assert "differs" in said and said.endswith("1 of 2 numbers differ")
    assert bench_compare.compare(a, a) == "0 of 2 numbers differ"


@pytest.mark.parametrize(
    ("a", "b", "spread", "said"),
    [(100, 104, 0, ""), (100, 120, 10, ""), (100, 150, 10, "slower"), (150, 100, 10, "faster")],
)
def test_times_differ_only_beyond_their_spread(a: int, b: int, spread: int, said: str) -> None:
    one, two = ({"ns_median": value, "spread": spread} for value in (a, b))
    assert bench_compare.verdict("ns_median", one, two) == said


def test_instructions_differ_only_beyond_what_timers_move() -> None:
    assert bench_compare.verdict("ns", {"ns": 1000000}, {"ns": 1015000}) == ""
    assert bench_compare.verdict("ns", {"ns": 1000000}, {"ns": 1030000}) == "slower"
    assert bench_compare.verdict("faults", {"faults": 1000000}, {"faults": 1000001}) == "differs"


@pytest.mark.parametrize("content", ["", "{}", '{"numbers": []}'])
def test_what_is_no_result_is_one_line(tmp_path: Path, content: str) -> None:
    (tmp_path / "x").write_text(content)
    with pytest.raises(UserError, match="no result of make bench"):
        bench_compare.load(str(tmp_path / "x"))
    assert verbs.run("bench-compare", {"A": "x"}) == 125
    assert verbs.run("bench", {"MIB": "many"}) == 125
