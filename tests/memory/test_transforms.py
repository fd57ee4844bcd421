"""The copies in disguise of benchmarks/transforms.py: legal, deterministic, and still the same game."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from synthgym import Pool, validate
from synthgym.memory.fingerprint import ast_hash, data_hash, parse_source

ROOT = Path(__file__).parents[2]
ENVS = ROOT / "registry" / "envs"
KINDS = ("rename", "constants", "reword", "refactor", "reskin", "reskin+refactor")
PLAYED = ("AssayOffice", "LostProperty")
"""The second has tools."""
FOREIGN = '''
from base import Task


class SumTask(Task):
    """Add the numbers that somebody wrote on the cards."""

    prompt = "Somebody wrote {count} numbers on small cards: {cards}. Find the sum of all of them."
    PATTERN = r"(\\d+) cards? on the table"

    def _generate(self):
        """Draw the cards."""
        assert "count" in self.parameter, "the count of the cards is missing"
        total = 0
        for card in range(self.parameter["count"]):
            if card % 2:
                total += card * 5
            else:
                total -= 3
        self.parameter["answer"] = total
        words = f"The cards add up to {total:>5} in the end"
        return [words.count("a") for words in (words, self.prompt.format(count=1, cards=card))]
'''


@pytest.fixture(scope="module")
def transforms() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "benchmarks"))
        yield importlib.import_module("transforms")


def source_of(name: str) -> str:
    return next(ENVS.glob(f"{name}/v*/env.py")).read_text("utf-8")


def copies(transforms: ModuleType, source: str, seed: int = 0) -> dict[str, str]:
    return {kind: transforms.transform(source, kind, np.random.default_rng(seed)) for kind in KINDS}


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool(max_workers=2, sources_per_worker=20) as pool:
        yield pool


def test_the_kinds_are_those_of_the_docs(transforms: ModuleType) -> None:
    assert transforms.KINDS == KINDS
    assert set(transforms.SAME_GAME) == set(KINDS) - {"constants"}
    with pytest.raises(ValueError, match="kind must be one of rename"):
        transforms.transform("x = 1", "renaming", np.random.default_rng(0))


@pytest.mark.parametrize("name", sorted(path.name for path in ENVS.iterdir()))
def test_copies_parse_and_are_the_same_for_the_same_generator(
    transforms: ModuleType, name: str
) -> None:
    source = source_of(name)
    found = copies(transforms, source)
    assert found == copies(transforms, source)
    assert len({source, *found.values()}) == len(KINDS) + 1
    for text in found.values():
        ast.parse(text)
    other = copies(transforms, source, seed=1)
    assert all(found[kind] != other[kind] for kind in KINDS)


@pytest.mark.slow
@pytest.mark.parametrize("name", PLAYED)
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "constants"])
def test_a_copy_of_a_good_environment_is_a_good_environment(
    transforms: ModuleType, pool: Pool, name: str, kind: str
) -> None:
    text = transforms.transform(source_of(name), kind, np.random.default_rng(3))
    report = validate(text, pool=pool, seeds=6)
    assert report.ok, report.findings


def words(source: str) -> set[str]:
    """The words of every text."""
    texts = [n.value for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Constant)]
    return {word for text in texts if isinstance(text, str) for word in text.lower().split()}


def names(source: str) -> set[str]:
    return {node.id for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)}


@pytest.mark.parametrize("name", ["AssayOffice", "PrintersCube"])
def test_each_kind_changes_what_it_says_and_nothing_else(transforms: ModuleType, name: str) -> None:
    source = source_of(name)
    found = copies(transforms, source)
    before = ast_hash(parse_source(source))
    structure = {kind: ast_hash(parse_source(text)) == before for kind, text in found.items()}
    assert structure == {kind: "refactor" not in kind for kind in KINDS}
    assert words(found["rename"]) == words(source)
    assert names(found["constants"]) == names(found["reword"]) == names(source)
    assert len(names(found["rename"]) & names(source)) < len(names(source)) / 2
    assert len(words(found["reskin"]) & words(source)) < len(words(source)) * 0.6
    assert words(found["reword"]) != words(source)
    data = data_hash(parse_source(source))
    assert data_hash(parse_source(found["rename"])) == data
    assert data_hash(parse_source(found["reword"])) == data


def test_what_somebody_else_refers_to_is_kept(transforms: ModuleType) -> None:
    keep = ("_generate", "parameter", "prompt", "count", "cards")
    for kind in KINDS:
        text = transforms.transform(FOREIGN, kind, np.random.default_rng(0), keep=keep)
        assert "def _generate(self" in text
        assert "from base import Task" in text
        assert "self.parameter['answer']" in text
        assert "self.prompt.format(count=" in text
        assert "{count}" in text
        assert "{cards}" in text
        assert r"(\\d+) cards? on the table" in text  # a pattern is no prose
        assert ".count('a')" in text
        assert ":>" in text


def test_story_words_change_alike_wherever_they_stand(transforms: ModuleType) -> None:
    source = (
        'VERBS = ("melt", "pour", "cool")\n'
        'def f(word):\n    "Type melt or pour to work the metal, and cool it then."\n'
        '    return word == "melt" or "You can Melt the bars, a bar at a time."\n'
    )
    text = transforms.transform(source, "reskin", np.random.default_rng(0))
    tree = ast.parse(text)
    table = next(n for n in ast.walk(tree) if isinstance(n, ast.Tuple) and len(n.elts) == 3)
    verb = ast.literal_eval(table)[0]
    assert verb != "melt"
    assert f"Type {verb} or" in text
    assert f"== '{verb}'" in text
    assert f"can {verb.capitalize()} the" in text
    plural = text.partition(" the ")[2]
    assert "metal" not in plural
    assert "melt" not in text.lower()


def test_commands_keep_their_words_when_prose_is_reworded(transforms: ModuleType) -> None:
    source = (
        'def f(word):\n    "You must choose the final number to find the large box."\n'
        '    return word in ("choose", "find")\n'
    )
    text = transforms.transform(source, "reword", np.random.default_rng(1))
    assert "choose" in text
    assert "find" in text
    assert "must choose the final number" not in text


def test_constants_leave_mechanics_alone(transforms: ModuleType) -> None:
    text = transforms.transform(
        "x = [0, 1, 2, -1, True, 40, 0.5, 1.0]", "constants", np.random.default_rng(0)
    )
    values = ast.literal_eval(text.partition("=")[2].strip())
    assert values[:5] == [0, 1, 2, -1, True]
    assert 40 < values[5] <= 50
    assert 0.5 < values[6] < 0.7
    assert values[7] == 1.0


def test_a_refactored_method_does_the_same(transforms: ModuleType) -> None:
    source = """
class Tally:
    def run(self, items):
        total, seen = 0, [i * 2 for i in items if i != 3]
        for item in seen:
            share = item * 3 + len(seen) - total % 7
            if item in (2, 4):
                total += share
            else:
                total -= share if share > 5 else item
        best = sorted((x for x in seen), key=lambda x: -x)
        return total, best, not seen
"""
    expected = run(source, "Tally", "run")
    for seed in range(30):
        text = transforms.transform(source, "refactor", np.random.default_rng(seed))
        tree = ast.parse(text)
        kind = next(n.name for n in tree.body if isinstance(n, ast.ClassDef))
        methods = [n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)]
        [method] = [name for name in methods if not name.startswith("_")]
        assert run(text, kind, method) == expected, text
        assert len(methods) >= 3


def run(source: str, kind: str, method: str) -> object:
    names: dict[str, type] = {}
    exec(source, names)
    return [getattr(names[kind](), method)(range(n)) for n in (0, 1, 6)]
