from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from diversity_pools import collection
from hypothesis import given, settings
from hypothesis import strategies as st

from synthgym.diversity import (
    FIGURES,
    Collection,
    Diversity,
    Unmeasured,
    compare,
    measure,
    render_page,
    write_page,
)
from synthgym.diversity.charts import bar_chart, size_bins
from synthgym.errors import ConfigError

NASTY = "</title></style><script>alert(1)</script>\"'>&\x1b[31m\u202egpj"
ALLOWED = {
    *("html", "head", "meta", "title", "style", "body", "h1", "h2", "h3", "p", "table", "thead"),
    *("tbody", "tr", "th", "td", "strong", "span", "bdi", "code", "br", "ul", "li"),
    *("svg", "text", "rect"),
}


class Tags(HTMLParser):
    """The tags and attributes of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}


def with_stranger(text: str) -> Collection:
    """A pool every text of which is `text`."""
    found = collection([0, 0, 1], name=text or "x")
    for member in found.members:
        object.__setattr__(member, "title", text)
    item = Unmeasured(found.digest, text, "error", "reset", text)
    object.__setattr__(found, "unmeasured", (item,))
    object.__setattr__(found, "embedder", text)
    return found


def of(pool: Collection) -> Diversity:
    return measure(pool, np.random.default_rng(0))


def test_a_page_has_every_figure_with_its_embedder_and_names_pairs_and_families() -> None:
    pools = [collection([0, 0, 1, 2], name="one 1"), collection([0, 1], name="two 1")]
    page = render_page(compare(pools))
    for figure in FIGURES[:-3]:
        assert f'<th scope="row">{figure.title}</th>' in page
    rows = re.findall(r'<tr><th scope="row">(.*?)</tr>', page)
    for figure in FIGURES[:-3]:
        (row,) = [r for r in rows[: len(FIGURES) - 3] if r.startswith(figure.title + "</th>")]
        assert ("made/1" in row) == figure.embedded
    assert "Figures at 2 environments" in page
    assert "4 of 4 environments measured" in page
    assert page.count("<svg ") == 2
    assert "synthgym/Made0-v0" in page
    assert "number 1" in page


def test_text_of_strangers_is_escaped_and_made_visible() -> None:
    page = render_page([of(with_stranger(NASTY))])
    assert "<script" not in page
    assert "\x1b" not in page
    assert "\u202e" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert Tags(page).tags <= ALLOWED


@settings(max_examples=30, deadline=None)
@given(st.text(st.characters(codec=None), min_size=1, max_size=40))
def test_no_text_adds_a_tag_or_an_attribute(text: str) -> None:
    plain, odd = Tags(render_page([of(with_stranger("x"))])), with_stranger("y")
    for member in odd.members:
        object.__setattr__(member, "title", text)
    object.__setattr__(odd, "name", text)
    found = Tags(render_page([of(odd)]))
    assert found.tags <= plain.tags
    assert found.attributes <= plain.attributes


def test_the_page_forbids_scripts_and_requests() -> None:
    page = render_page([of(collection([0, 1]))])
    assert "default-src 'none'; style-src 'unsafe-inline'" in page
    assert "http:" not in page.replace('http-equiv="', "")
    assert "https:" not in page


def test_the_same_measurement_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_page(tmp_path / name, compare([collection([0, 0, 1])]))
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_what_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot write"):
        write_page(tmp_path / "none" / "page.html", compare([collection([0])]))


def test_a_pool_without_figures_says_so() -> None:
    assert "No environment could be measured" in render_page([of(collection([]))])


def test_a_pool_that_is_larger_than_the_subsets_shows_the_figures_of_all() -> None:
    page = render_page([measure(collection(range(12)), np.random.default_rng(0), sample=4)])
    assert "Figures at 4 environments" in page
    assert "<h3>Of all 12</h3>" in page


def test_many_unmeasured_are_counted() -> None:
    pool = collection([0])
    items = [Unmeasured("", f"synthgym/X{n}-v0", "error", "reset", "") for n in range(60)]
    object.__setattr__(pool, "unmeasured", tuple(items))
    page = render_page([of(pool)])
    assert "In no figure: 60" in page
    assert "and 10 more" in page


def test_sizes_are_binned_by_doubling() -> None:
    assert size_bins({1: 5, 2: 1, 3: 2, 4: 1, 9: 1}) == {
        "1": 5,
        "2": 1,
        "3 to 4": 3,
        "5 to 8": 0,
        "9 to 16": 1,
    }
    assert size_bins({}) == {}


def test_bars_are_in_proportion_and_well_formed() -> None:
    chart = ET.fromstring(bar_chart({"1": 8, "2": 2, "3 to 4": 0}, "sizes"))
    widths = [float(rect.get("width", "nan")) for rect in chart.iter("rect")]
    assert widths[1] == pytest.approx(widths[0] / 4)
    assert widths[2] == 0.0
    assert [t.text for t in chart.iter("text")] == ["1", "8", "2", "2", "3 to 4", "0"]
