from __future__ import annotations

import unicodedata
from pathlib import Path
from typing import Any

import pytest
import yaml
from games import make_spec, write_games
from hypothesis import given, settings
from hypothesis import strategies as st

from synthgym.publishing.card import SHOWN, dataset_card, harmless, size_category

EVIL = "</td><script>alert(1)</script> | [x](javascript:x) `code` *b* www.evil.io @you\n# head \u202eabc\x1b[2J"


def metadata(card: str) -> dict[str, Any]:
    _, front, _ = card.split("---\n", 2)
    found = yaml.safe_load(front)
    assert isinstance(found, dict)
    return found


def test_a_card_of_tables_tells_the_hub_where_they_are(tmp_path: Path) -> None:
    snapshot = write_games(tmp_path / "games", layout="shards", vectors=True)
    card = dataset_card(snapshot, "hf://org/games")
    found = metadata(card)
    assert found["license"] == "apache-2.0"
    assert {"synthgym", "gymnasium", "reinforcement-learning"} <= set(found["tags"])
    assert found["task_categories"] == ["reinforcement-learning"]
    assert found["size_categories"] == ["n<1K"]
    for config in found["configs"]:
        (files,) = config["data_files"]
        matched = list((tmp_path / "games").glob(files["path"]))
        assert matched
        assert all(path.suffix == ".parquet" for path in matched)
    assert [config["config_name"] for config in found["configs"]] == ["index", "envs", "notes"]
    assert "synthgym pull hf://org/games@1.0.0" in card
    assert snapshot.digest in card
    assert "| `synthgym/DryDock-v0` | 9 | The DryDock |" in card


def test_a_card_of_files_has_no_viewer(tmp_path: Path) -> None:
    found = metadata(dataset_card(write_games(tmp_path / "games"), "hf://org/games"))
    assert found["viewer"] is False
    assert "configs" not in found


@pytest.mark.parametrize(
    ("licenses", "expected"),
    [
        (["MIT"], {"license": "mit"}),
        (["MIT", "Apache-2.0"], {"license": ["apache-2.0", "mit"]}),
        (["GPL-3.0-or-later"], {"license": "gpl-3.0"}),
        (
            ["LicenseRef-x\n---\nevil: 1"],
            {"license": "other", "license_name": "licenseref-x-evil-1"},
        ),
        (["MIT OR Apache-2.0"], {"license": "other", "license_name": "mit-or-apache-2.0"}),
    ],
)
def test_licenses_are_those_that_the_hub_knows(
    tmp_path: Path, licenses: list[str], expected: dict[str, Any]
) -> None:
    specs = [make_spec(f"Env{n}", license=license) for n, license in enumerate(licenses)]
    found = metadata(dataset_card(write_games(tmp_path / "games", specs=specs), "hf://org/games"))
    assert {key: found[key] for key in found if key.startswith("license")} == expected


def test_strangers_text_stays_text(tmp_path: Path) -> None:
    specs = [make_spec("Evil", title=EVIL, skills=("a|b",), license="MIT\n\n# no")]
    card = dataset_card(write_games(tmp_path / "games", specs=specs), "hf://org/games")
    page = card.split("---\n", 2)[2]
    assert metadata(card)["license"] == "other"
    (row,) = [line for line in page.splitlines() if "Evil-v0" in line]
    assert row.count("|") - row.count("\\|") == 4
    for raw in ("<", "](", "www.", "\x1b", "\u202e", "\n# head", "\n# no"):
        assert raw not in page


@settings(deadline=None)
@given(st.text(max_size=300))
def test_any_text_is_one_line_without_marks(text: str) -> None:
    shown = harmless(text)
    assert "\n" not in shown
    assert not any(unicodedata.category(character).startswith("C") for character in shown)
    bare = shown.replace("\\\\", "")
    for mark in "|`*_[]#":
        assert bare.count(mark) == bare.count(f"\\{mark}")
    assert not set(shown) & set("<>")
    assert shown.count("&") == sum(
        shown.count(name) for name in ("&lt\\;", "&gt\\;", "&amp\\;", "&lt;", "&gt;", "&amp;")
    )


def test_long_lists_are_cut(tmp_path: Path) -> None:
    specs = [make_spec(f"Env{number}") for number in range(SHOWN + 3)]
    card = dataset_card(write_games(tmp_path / "games", specs=specs), "hf://org/games")
    assert card.count("| `synthgym/Env") == SHOWN
    assert "and 3 more." in card


@pytest.mark.parametrize(
    ("environments", "name"),
    [(0, "n<1K"), (999, "n<1K"), (1000, "1K<n<10K"), (99_999, "10K<n<100K"), (10**9, "100M<n<1B")],
)
def test_sizes_have_the_names_of_the_hub(environments: int, name: str) -> None:
    assert size_category(environments) == name
