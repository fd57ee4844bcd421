from __future__ import annotations

import itertools
import json
from html.parser import HTMLParser
from pathlib import Path

import pytest

from synthgym.audit import Row, Status, Summary, write_page
from synthgym.audit.page import render_page
from synthgym.errors import ConfigError
from synthgym.validation import Finding, Reason

HOSTILE = "<script>alert(1)</script>&\"'\x1b[2J\u202e\udce9</pre></details><img src=x onerror=y>"


def refused(name: str, *reasons: Reason, text: str = "x", **fields: str) -> Row:
    findings = tuple(
        Finding(reason, f"detail {text}", 4, None, ("look", "", text), f"seen {text}")
        for reason in reasons
    )
    return Row(
        name=name,
        status=Status.REFUSED,
        digest="sha256:1",
        reasons=tuple(dict.fromkeys(map(str, reasons))),
        findings=findings,
        gates={"static": "passed", "load": "failed", "reset": "skipped"},
        **fields,
    )


ROWS = [
    Row(name="d", status=Status.OK, gates={"static": "passed", "load": "passed"}),
    Row(name="e", status=Status.OK, reasons=("answerable-at-once",), findings=()),
    Row(name="f", status=Status.UNREADABLE, detail="a link"),
    Row(name="g", status=Status.NOT_AUDITED, detail="died"),
    refused("c", Reason.STEP_RAISED),
    refused("a", Reason.STEP_RAISED, Reason.HINT_EMPTY),
    refused("b", Reason.HINT_EMPTY, Reason.HINT_EMPTY, same_as="a"),
]
EXPECTED = {
    "step-raised": (2, ["a", "c"]),
    "hint-empty": (2, ["a"]),
    "answerable-at-once": (1, ["e"]),
}


def summed(rows: object) -> Summary:
    summary = Summary()
    for row in rows:  # type: ignore[attr-defined]
        summary.add(row)
    return summary


def test_rows_are_counted_by_status_reason_and_gate() -> None:
    data = summed(ROWS).to_json()
    assert data["sources"] == 7
    assert data["statuses"] == {"ok": 2, "refused": 3, "unreadable": 1, "not-audited": 1}
    assert (data["ok"], data["warned"], data["copies"]) == (False, 1, 1)
    assert data["gates"] == {
        "static": {"tried": 4, "failed": 0},
        "load": {"tried": 4, "failed": 3},
        "reset": {"tried": 0, "failed": 0},
    }
    found = {item["reason"]: (item["sources"], item["examples"]) for item in data["reasons"]}
    assert found == {
        "hint-empty": (2, ["a"]),
        "step-raised": (2, ["a", "c"]),
        "answerable-at-once": (1, ["e"]),
    }
    assert [item["reason"] for item in data["reasons"]] == [
        "hint-empty",
        "step-raised",
        "answerable-at-once",
    ]
    assert [item["name"] for item in data["problems"]] == ["f", "g"]
    assert json.loads(json.dumps(data)) == data


def test_the_order_of_the_rows_changes_nothing() -> None:
    expected = summed(ROWS)
    for rows in itertools.islice(itertools.permutations(ROWS), 0, 5040, 97):
        again = summed(rows)
        assert again.to_json()["reasons"] == expected.to_json()["reasons"]
        assert again.to_json()["statuses"] == expected.to_json()["statuses"]
        assert render_page(again, "pool") == render_page(expected, "pool")


def test_few_rows_are_kept_however_many_come() -> None:
    rows = [refused(f"{number:04}", Reason.STEP_RAISED) for number in range(1000)]
    summary = summed(reversed(rows))
    ((_, tally),) = summary.reasons
    assert (tally.sources, [row.name for row in tally.examples]) == (1000, ["0000", "0001", "0002"])
    assert len(summary.of(Status.REFUSED).examples) == 3


def test_all_fine_means_all() -> None:
    assert summed([ROWS[0], ROWS[1]]).ok
    for row in ROWS[2:]:
        assert not summed([ROWS[0], row]).ok


class Page(HTMLParser):
    """Every tag and attribute of a page, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_page_shows_how_to_see_a_finding_again() -> None:
    page = Page(render_page(summed(ROWS), "pool"))
    assert not page.open
    assert Reason.STEP_RAISED.explanation in page.text
    assert Reason.STEP_RAISED.remedy in page.text
    assert "Reset with seed 4, then send:" in page.text
    assert '"look"""' in page.text.replace("\n", "")
    assert "seen x" in page.text
    assert page.tags.count("details") == 4
    assert "a link" in page.text
    assert "died" in page.text


def test_hostile_text_stays_text() -> None:
    rows = [
        refused(HOSTILE, Reason.STEP_RAISED, text=HOSTILE, title=HOSTILE),
        Row(name=HOSTILE, status=Status.UNREADABLE, detail=HOSTILE),
        Row(name=HOSTILE, status=Status.NOT_AUDITED, detail=HOSTILE),
    ]
    source = render_page(summed(rows), HOSTILE)
    page = Page(source)
    assert not page.open
    assert "script" not in page.tags
    assert "img" not in page.tags
    assert page.text.count("<script>alert(1)</script>") >= 9
    source.encode("utf-8")
    assert not {"\x1b", "\u202e"} & set(source)
    assert not [name for name, _ in page.attributes if name.startswith("on") or name == "src"]
    assert [value for name, value in page.attributes if name == "href"] == ["#step-raised"]


def test_the_page_loads_and_runs_nothing() -> None:
    source = render_page(summed(ROWS), "pool")
    assert "default-src 'none'" in source
    for word in ("http:", "https:", "<script", "@import", "url("):
        assert word not in source


def test_a_page_of_nothing_but_good_sources_is_a_page(tmp_path: Path) -> None:
    write_page(tmp_path / "page.html", summed([ROWS[0]]), "pool")
    page = Page((tmp_path / "page.html").read_text("utf-8"))
    assert not page.open
    assert "details" not in page.tags


def test_a_page_that_cannot_be_written_is_one_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot write"):
        write_page(tmp_path / "none" / "page.html", summed(ROWS), "pool")
