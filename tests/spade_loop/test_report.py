"""The page and the summary of a run, from rows as `rows.py` writes them."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from spade_loop.config import Config
from spade_loop.errors import RunStateError
from spade_loop.report.formats import MISSING, visible
from spade_loop.report.gallery import build_gallery
from spade_loop.report.page import write_report
from spade_loop.report.reading import read_run
from spade_loop.report.summary import print_summary
from spade_loop.state import RunDirectory, RunState
from synthgym.registry import write_snapshot
from synthgym.spec import EnvRecord, Provenance, SynthEnvSpec

HOSTILE_TEXT = "\n".join(
    (
        "</script><script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "\"' onmouseover='alert(1)'",
        "</pre></details></style>&lt;b&gt;",
        "{{ config }}{% raw %}",
        "a\u202eb\u200bc\x00d\x1b[31me\u2028f\x85g\rh\U000e0041i",
    )
)


def env_spec(name: str, source: str = "class RockEnv:\n    max_turns = 4\n") -> SynthEnvSpec:
    return SynthEnvSpec(
        record=EnvRecord(source=f"# {name}\n{source}", entry="RockEnv", max_turns=4),
        name=name,
        title="Weigh the rocks",
        skills=("optimisation",),
        provenance=Provenance(
            author="tiny-model", dialect="blueprint", family="best_trade", parameters={"goods": 3}
        ),
        metrics={"episodes": 16, "solve_rate": 0.25, "regret": 0.1, "quarantined": False},
    )


ROLE = json.loads(
    '{"rows": 5, "live_rows": 4, "trained_tokens": 1234, "abs_advantage": 2.5, "reward_mean": 0.2,'
    ' "reward_std": 0.1, "zero_variance_groups": 1, "rms": 0.3}'
)
METRICS = json.loads(
    '{"skills": ["optimisation"], "designs": {"admitted": 2, "unparsed": 1, "refused": 2, "duplicate": 1},'
    ' "refused_for": {"cut": 1, "reward-range": 2, "duplicate-parameters": 1}, "played": 4, "faulty": 0,'
    ' "solve_rate": {"plain": 0.25, "hinted": 0.5}, "return": {"plain": 0.3, "hinted": 0.6},'
    ' "regret": {"mean": 0.3, "standard_error": 0.1}, "update": {"rows": 37, "live_rows": 20,'
    ' "skipped": false, "loss": 0.0123, "grad_norm": 1.5, "logprob_gap": 0.01}}'
)
NOTHING_MEASURED = json.loads(
    '{"played": 0, "solve_rate": {"plain": null, "hinted": null}, "return": {"plain": null, "hinted": null},'
    ' "regret": {"mean": null, "standard_error": null}, "update": {"rows": 5, "live_rows": 0,'
    ' "skipped": true, "loss": null, "grad_norm": null, "logprob_gap": null}}'
)
MEASURED = json.loads(
    '{"regret": 0.31, "standard_error": 0.12, "solve_rate": 0.25, "hinted_solve_rate": 0.5, "seeds": 4,'
    ' "fault_share": 0.0}'
)


def metrics(iteration: int, **changes: Any) -> dict[str, Any]:
    roles = {"designer": ROLE, "agent": ROLE | {"trained_tokens": 4321}}
    return METRICS | {"iteration": iteration, "roles": roles} | changes


def design(iteration: int, spec: SynthEnvSpec | None = None, **changes: Any) -> dict[str, Any]:
    row = {
        "iteration": iteration,
        "index": 0,
        "skill": "optimisation",
        "document": "doc-7",
        "designer": "policy",
        "outcome": "refused" if spec is None else "admitted",
        "reasons": ["reward-range"] if spec is None else [],
        "detail": "paid 1.5" if spec is None else "",
        "cell": "best_trade",
        "env_id": None if spec is None else spec.env_id,
        "digest": None if spec is None else spec.digest,
        "reply": "a reply",
        "tokens": 30,
        "trained_tokens": 12,
        "measured": None if spec is None else MEASURED,
    }
    return row | changes


def episode(
    spec: SynthEnvSpec, seed: int, arm: str, earned: float, **changes: Any
) -> dict[str, Any]:
    text = changes.pop("text", "look")
    turns = [
        {
            "observation": f"{arm} {text}",
            "reply": f"I {text}",
            "action": text,
            "status": "ok",
            "reward": earned,
        },
        {"observation": text, "reply": text, "action": "", "status": "no-box", "reward": 0.0},
    ]
    row = {
        "iteration": 0,
        "env_id": spec.env_id,
        "digest": spec.digest,
        "seed": seed,
        "play": 0,
        "arm": arm,
        "return": earned,
        "success": earned == 1.0,
        "stop": "turns",
        "fault": None,
        "tokens": 48,
        "trained_tokens": 40,
        "turns": turns,
    }
    return row | changes


def pair(
    spec: SynthEnvSpec, seed: int, plain: float, hinted: float, **changes: Any
) -> list[dict[str, Any]]:
    return [
        episode(spec, seed, "plain", plain, **changes),
        episode(spec, seed, "hinted", hinted, **changes),
    ]


def make_run(path: Path, iterations: int = 3, planned: int = 3) -> RunDirectory:
    """A run committed as the loop commits it; the last iteration measured nothing."""
    directory = RunDirectory.create(path, Config(name="tiny", iterations=planned))
    specs = [env_spec(f"Rock{i}") for i in range(iterations)]
    for i, spec in enumerate(specs):
        barren = i > 0 and i == iterations - 1
        rows = {
            "metrics": [metrics(i, **(NOTHING_MEASURED if barren else {}))],
            "designs": [design(i, spec), design(i, index=1)],
            "episodes": pair(spec, 11, 0.5, 0.5) + pair(spec, 12, 0.25, 1.0),
            "timings": [{"iteration": i, "seconds": 38.7}],
        }
        with directory.commit(RunState(iteration=i + 1), rows):
            pass
    if specs:
        write_snapshot(path / "snapshot", specs, name="tiny", version="0.0.1")
    return directory


def append(path: Path, kind: str, *rows: dict[str, Any], ascii_only: bool = False) -> None:
    with (path / f"{kind}.jsonl").open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(row, ensure_ascii=ascii_only) + "\n" for row in rows)


VOID = {"meta", "line", "circle", "rect", "path", "polyline", "polygon"}


class Reader(HTMLParser):
    """Tags, attributes and text of a page; asserts that every tag is closed where it should be."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())


def page_of(path: Path) -> str:
    return write_report(path).read_text(encoding="utf-8")


def test_the_page_shows_the_run_and_its_environments(tmp_path: Path) -> None:
    make_run(tmp_path)
    reader = Reader(page_of(tmp_path))
    for wanted in (
        "3 of 3 iterations are complete: 18 designs made, 6 admitted",
        "3 could not be read, 6 failed validation, 3 resembled one that was held",
        "no evidence that the model learned",
        "smollm2-135m-instruct",
        "the bundled environments",
        "The optimiser step was skipped in iteration 3",
        "+0.30 ± 0.10",
        "regret +0.31 ± 0.12 over 4 seeds",
        "25 % plain, 50 % hinted",
        "class RockEnv:",
        '{"goods": 3}',
        "best_trade",
        "seed 12, return 0.25 plain, 1.00 hinted",
        "16 plain episodes, 25 % solved",
        "0.0123",
        "38.7 s",
        "paid 1.5",
    ):
        assert wanted in reader.text
    assert sum(tag == "svg" for tag, _ in reader.tags) == 5
    assert sum(tag == "article" for tag, _ in reader.tags) == 3


def test_the_page_is_accessible_and_loads_nothing(tmp_path: Path) -> None:
    make_run(tmp_path)
    page = page_of(tmp_path)
    reader = Reader(page)
    ids = [attrs["id"] for _, attrs in reader.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    for tag, attrs in reader.tags:
        assert tag not in {"script", "link", "img", "iframe", "object", "embed", "base", "form"}
        assert not {"src", "href", "srcset", "data", "action", "style"} & attrs.keys()
        assert not [name for name in attrs if name.startswith("on")]
        if tag == "svg":
            assert attrs["role"] == "img"
            assert set(str(attrs["aria-labelledby"]).split()) <= set(ids)
        if tag == "th":
            assert attrs["scope"] in {"row", "col"}
    assert not re.search(r"https?:|//[a-z]|url\(|@import", page)
    assert "default-src 'none'" in page
    assert ("html", {"lang": "en"}) in reader.tags


def test_hostile_text_stays_text_wherever_it_comes_from(tmp_path: Path) -> None:
    config = Config(name=HOSTILE_TEXT, registry=HOSTILE_TEXT)
    RunDirectory.create(tmp_path, config)
    spec = env_spec("Rock", HOSTILE_TEXT)
    spec = SynthEnvSpec(
        record=spec.record,
        name="Rock",
        title=HOSTILE_TEXT,
        license=HOSTILE_TEXT,
        provenance=Provenance(document_id=HOSTILE_TEXT, parameters={HOSTILE_TEXT: HOSTILE_TEXT}),
    )
    write_snapshot(tmp_path / "snapshot", [spec], name="tiny", version="0.0.1")
    lost = env_spec("Lost")
    append(
        tmp_path,
        "metrics",
        metrics(0, skills=[HOSTILE_TEXT], refused_for={HOSTILE_TEXT: 1}),
    )
    append(
        tmp_path,
        "designs",
        design(0, spec, skill=HOSTILE_TEXT),
        design(0, lost, document=HOSTILE_TEXT, env_id=HOSTILE_TEXT),
        design(0, reasons=[HOSTILE_TEXT], detail=HOSTILE_TEXT),
    )
    append(tmp_path, "episodes", *pair(spec, 3, 0.0, 1.0, text=HOSTILE_TEXT, stop=HOSTILE_TEXT))
    lone = [row | {"seed": 4, "return": 9.0} for row in pair(spec, 4, 0.0, 0.0, text="\ud800<b>")]
    lone[0]["return"] = 0.0
    append(tmp_path, "episodes", *lone, ascii_only=True)

    page = page_of(tmp_path)
    reader = Reader(page)
    assert {tag for tag, _ in reader.tags}.isdisjoint({"script", "img", "b"})
    assert all(not name.startswith("on") for _, attrs in reader.tags for name in attrs)
    assert visible(page) == page
    assert "{{ config }}" in reader.text
    assert "<script>alert(1)</script>" in reader.text
    assert r"a\u{202e}b\u{200b}c\u{0}d\u{1b}[31me\u{2028}f\u{85}g\u{d}h\u{e0041}i" in reader.text
    assert r"\u{d800}<b>" in reader.text


@pytest.mark.parametrize("planned", [1, 3])
def test_a_run_before_its_first_commit_has_a_page(tmp_path: Path, planned: int) -> None:
    make_run(tmp_path, iterations=0, planned=planned)
    reader = Reader(page_of(tmp_path))
    assert "No iteration is complete yet" in reader.text
    assert "No environment was admitted yet." in reader.text
    assert not any(tag == "svg" for tag, _ in reader.tags)


@pytest.mark.parametrize("kind", ["metrics", "episodes", "designs", "timings"])
@pytest.mark.parametrize("damage", ["missing", "empty", "cut"])
def test_a_page_is_made_whichever_row_file_is_missing_empty_or_cut(
    tmp_path: Path, kind: str, damage: str
) -> None:
    make_run(tmp_path, iterations=2)
    file = tmp_path / f"{kind}.jsonl"
    text = file.read_text(encoding="utf-8")
    file.unlink() if damage == "missing" else file.write_text(
        "" if damage == "empty" else text[:-5], encoding="utf-8"
    )
    assert "tiny" in Reader(page_of(tmp_path)).text


def test_a_run_in_progress_is_not_touched_by_its_report(tmp_path: Path) -> None:
    make_run(tmp_path, iterations=1)
    (tmp_path / "iter-00002.tmp").mkdir()
    before = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    write_report(tmp_path)
    after = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    after.pop(tmp_path / "report.html")
    assert after == before
    assert (tmp_path / "iter-00002.tmp").is_dir()


def test_the_same_files_give_the_same_page(tmp_path: Path) -> None:
    make_run(tmp_path)
    assert page_of(tmp_path) == page_of(tmp_path)


@pytest.mark.parametrize("make", [write_report, lambda path: print_summary(path, Console())])
def test_what_is_no_run_directory_is_refused(tmp_path: Path, make: Any) -> None:
    with pytest.raises(RunStateError, match="not a run directory"):
        make(tmp_path)
    with pytest.raises(RunStateError, match="not a run directory"):
        make(tmp_path / "nowhere")


@pytest.mark.parametrize("line", ["{", "[]", '{"iteration": "one"}', "{}"])
def test_a_damaged_line_is_refused_with_its_place(tmp_path: Path, line: str) -> None:
    make_run(tmp_path)
    with (tmp_path / "metrics.jsonl").open("a", encoding="utf-8") as file:
        file.write(line + "\n")
    with pytest.raises(RunStateError, match=r"metrics\.jsonl, line 4"):
        write_report(tmp_path)


def test_a_damaged_snapshot_costs_the_page_its_sources_only(tmp_path: Path) -> None:
    make_run(tmp_path, iterations=2)
    source = tmp_path / "snapshot" / "envs" / "Rock1" / "v0" / "env.py"
    source.write_text("changed", encoding="utf-8")
    text = Reader(page_of(tmp_path)).text
    assert "The source is not in the run's snapshot" in text
    assert "# Rock0" in text
    assert "# Rock1" not in text


def test_the_gallery_is_capped_and_counts_what_it_left_out(tmp_path: Path) -> None:
    make_run(tmp_path)
    run = read_run(tmp_path)
    assert [e.name for e in build_gallery(run, limit=2).exhibits] == ["Rock2", "Rock1"]
    assert build_gallery(run, limit=2).left_out == 1
    assert build_gallery(run, max_chars=100).left_out == 3


def test_a_gallery_of_huge_hostile_texts_stays_under_four_megabytes(tmp_path: Path) -> None:
    RunDirectory.create(tmp_path, Config())
    specs = [env_spec(f"Rock{i}", "<" * 60_000) for i in range(50)]
    append(tmp_path, "metrics", metrics(0))
    append(tmp_path, "designs", *(design(0, spec, index=i) for i, spec in enumerate(specs)))
    for spec in specs:
        append(tmp_path, "episodes", *pair(spec, 1, 0.0, 1.0, text="\u202e" * 30_000))
    write_snapshot(tmp_path / "snapshot", specs, name="tiny", version="0.0.1")
    target = write_report(tmp_path)
    assert target.stat().st_size < 4_000_000
    text = Reader(target.read_text(encoding="utf-8")).text
    assert re.search(r"\d+ more environments left out here", text)
    assert "more characters" in text


def test_a_run_of_hundreds_of_iterations_lists_the_newest(tmp_path: Path) -> None:
    RunDirectory.create(tmp_path, Config(iterations=300))
    append(tmp_path, "metrics", *(metrics(i) for i in range(300)))
    page = page_of(tmp_path)
    assert "The newest 200 iterations" in Reader(page).text
    assert 'class="band"' in page
    assert len(page) < 1_000_000


def test_the_summary_fits_a_terminal_of_eighty_columns(tmp_path: Path) -> None:
    make_run(tmp_path)
    console = Console(width=80)
    with console.capture() as captured:
        print_summary(tmp_path, console)
    lines = captured.get().splitlines()
    assert "tiny: 3 of 3 iterations" in lines[0]
    assert any(
        re.search(r"1\s+2/4\s+25 %\s+50 %\s+\+0\.30 ± 0\.10\s+1,234\s+2\.50\s+4,321\s+2\.50", x)
        for x in lines
    )
    assert any(re.search(rf"3\s+2/4\s+{MISSING}\s+{MISSING}\s+{MISSING}\s+1,234", x) for x in lines)
    assert "…" not in "".join(lines)
