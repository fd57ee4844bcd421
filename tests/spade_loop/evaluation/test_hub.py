"""Data of suites from the Hub, without a network: what is asked, and what is said when nothing comes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from spade_loop.errors import ModelError
from spade_loop.evaluation import hub
from spade_loop.evaluation.suites.aime import aime_2025, aime_2026
from spade_loop.evaluation.suites.gpqa import GpqaDiamond


@pytest.fixture
def reachable(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Hub that answers, without a network."""
    hub_library = pytest.importorskip("huggingface_hub")
    monkeypatch.setattr(hub_library.HfApi, "dataset_info", lambda *_, **__: None)


def test_without_a_network_the_cache_alone_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    datasets = pytest.importorskip("datasets")
    hub_library = pytest.importorskip("huggingface_hub")
    constants = hub_library.constants
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    offline: list[bool] = []

    def unreachable(*_: Any, **__: Any) -> None:
        raise hub_library.errors.HfHubHTTPError.__bases__[0]("no such host")

    def load(*_: Any, **__: Any) -> list[Any]:
        offline.append(constants.HF_HUB_OFFLINE)
        return [{"a": 1}]

    monkeypatch.setattr(hub_library.HfApi, "dataset_info", unreachable)
    monkeypatch.setattr(datasets, "load_dataset", load)
    hub.rows_of(None, hub.HubData(repository="a/b"))
    assert (offline, constants.HF_HUB_OFFLINE) == ([True], False)
    monkeypatch.setattr(hub_library.HfApi, "dataset_info", lambda *_, **__: None)
    hub.rows_of(None, hub.HubData(repository="a/b"))
    assert offline == [True, False]


@pytest.mark.usefixtures("reachable")
def test_data_come_from_the_hub_where_no_file_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    datasets = pytest.importorskip("datasets")
    asked: list[Any] = []

    def load(*where: Any, **how: Any) -> Any:
        asked.append((where, how))
        return datasets.Dataset.from_list([{"problem": "2 + 2?", "answer": 4, "problem_idx": 1}])

    monkeypatch.setattr(datasets, "load_dataset", load)
    pytest.importorskip("math_verify", reason="needs the extra `eval`", exc_type=ImportError)
    suite = aime_2026()
    assert [item.id for item in suite.items(None)] == ["aime-2026/1"]
    assert asked == [(("MathArena/aime_2026", None), {"split": "train"})]
    suite.close()


@pytest.mark.usefixtures("reachable")
@pytest.mark.parametrize(
    ("suite", "told"),
    [
        (lambda: aime_2025(), r"datasets/MathArena/aime_2025 cannot be fetched: check the network.*--data FILE"),
        (lambda: GpqaDiamond(), r"datasets/Idavidrein/gpqa cannot be fetched: its authors give access.*--data FILE"),
    ],
)  # fmt: skip
def test_without_the_hub_it_is_said_what_to_fetch(
    monkeypatch: pytest.MonkeyPatch, suite: Callable[[], Any], told: str
) -> None:
    datasets = pytest.importorskip("datasets")
    pytest.importorskip("math_verify", reason="needs the extra `eval`", exc_type=ImportError)

    def load(*where: Any, **how: Any) -> Any:
        raise ConnectionError("couldn't reach\nthe Hub")

    monkeypatch.setattr(datasets, "load_dataset", load)
    with pytest.raises(ModelError, match=f"{told}.*What came: couldn't reach the Hub"):
        suite()


def test_without_the_package_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "datasets", None)
    with pytest.raises(ImportError, match=r"synthgym\[eval\].*--data FILE"):
        hub.rows_of(None, hub.HubData(repository="a/b"))
