from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spade_loop
from spade_loop.corpus import Corpus, Document, excerpt
from spade_loop.errors import ConfigError, CorpusError
from synthgym.contract import SKILLS

BUNDLED = Path(spade_loop.__file__).parent / "data" / "mechanisms.jsonl"


def write(path: Path, *lines: Any) -> Path:
    text = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
    path.write_text(text + "\n", encoding="utf-8")
    return path


def load_or_message(path: Path) -> Corpus | str:
    try:
        return Corpus.load(path)
    except CorpusError as error:
        return str(error)


@pytest.fixture(scope="module")
def bundled() -> Corpus:
    return Corpus.load(None)


# --- the bundled corpus


def test_bundled_corpus_has_enough_documents_for_each_of_the_six_skills(bundled: Corpus) -> None:
    counts = Counter(document.skill for document in bundled)
    assert len(bundled) >= 72
    assert set(counts) == set(SKILLS)
    assert min(counts.values()) >= 12


def test_bundled_documents_keep_to_length_licence_and_slugs(bundled: Corpus) -> None:
    for document in bundled:
        assert 150 <= len(document.text.split()) <= 400, document.id
        assert document.license == "CC0-1.0"
        assert document.title.strip()
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", document.id)


def test_bundled_documents_differ_in_title_and_opening(bundled: Corpus) -> None:
    assert len({document.title for document in bundled}) == len(bundled)
    assert len({tuple(document.text.split()[:4]) for document in bundled}) == len(bundled)


def test_no_two_bundled_documents_share_a_sentence(bundled: Corpus) -> None:
    sentences = Counter(
        sentence
        for document in bundled
        for sentence in set(re.split(r"(?<=[.!?])\s+", document.text))
        if len(sentence.split()) > 4
    )
    assert [sentence for sentence, count in sentences.items() if count > 1] == []


def test_bundled_file_is_written_in_its_documented_form() -> None:
    content = BUNDLED.read_bytes()
    assert b"\r" not in content
    assert content.endswith(b"}\n")
    for line in content.decode("utf-8").removesuffix("\n").split("\n"):
        record = json.loads(line)
        assert list(record) == ["id", "title", "text", "skill", "license"]
        assert line == json.dumps(record, ensure_ascii=False)
        assert record["text"] == record["text"].strip()
        assert not re.search(r"[ \t]\n|  |\n{3}", record["text"])


def test_an_excerpt_of_120_words_of_each_bundled_document_ends_with_a_sentence(
    bundled: Corpus,
) -> None:
    for document in bundled:
        cut = excerpt(document, 120)
        assert 60 <= len(cut.split()) <= 120, document.id
        assert cut.endswith((".", "?", "!", '"', ")")), document.id


# --- loading


def test_a_users_file_needs_only_text(tmp_path: Path) -> None:
    corpus = Corpus.load(write(tmp_path / "c.jsonl", {"text": "One."}, "", {"text": "Two."}))
    assert list(corpus) == [
        Document("line-1", "One.", "unknown"),
        Document("line-3", "Two.", "unknown"),
    ]


def test_orig_doc_wins_over_text_and_other_keys_are_ignored(tmp_path: Path) -> None:
    line = {"text": "b", "orig_doc": "a", "id": 7, "license": "MIT", "skill": "s", "url": "x"}
    assert list(Corpus.load(write(tmp_path / "c.jsonl", line))) == [
        Document("7", "a", "MIT", skill="s")
    ]


def test_null_counts_as_absent(tmp_path: Path) -> None:
    line = {"orig_doc": None, "text": "a", "id": None, "license": None, "title": None}
    assert list(Corpus.load(write(tmp_path / "c.jsonl", line))) == [
        Document("line-1", "a", "unknown")
    ]


def test_byte_order_mark_crlf_and_line_separators_inside_text_are_read(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    path.write_bytes('\ufeff{"text": "a\u2028b\u0085c"}\r\n\r\n{"text": "d"}'.encode())
    assert [document.text for document in Corpus.load(path)] == ["a\u2028b\u0085c", "d"]


GOOD = '{"text": "good"}'


@pytest.mark.parametrize(
    ("lines", "line", "message"),
    [
        ([GOOD, "{'text': 1}"], 2, "not valid JSON"),
        ([GOOD, '{"text": "cut of'], 2, "not valid JSON"),
        (["[" * 100_000], 1, "not valid JSON"),
        ([GOOD, "", '["text"]'], 3, "expected a JSON object"),
        (['{"txt": "a"}'], 1, "'text' must be a string with text in it, got nothing"),
        (['{"text": "  "}'], 1, "'text' must be a string"),
        (['{"text": 3}'], 1, "'text' must be a string"),
        (['{"orig_doc": [], "text": "a"}'], 1, "'orig_doc' must be a string"),
        (['{"text": "a", "id": ""}'], 1, "'id' must be a string"),
        (['{"text": "a", "id": true}'], 1, "'id' must be a string"),
        (['{"text": "a", "license": 1}'], 1, "'license' must be a string"),
        (['{"text": "a", "title": []}'], 1, "'title' must be a string"),
        (['{"text": "\\ud800"}'], 1, "surrogate"),
        (['{"text": "a", "id": "x"}', GOOD, '{"text": "b", "id": "x"}'], 3, "used on line 1"),
        ([GOOD, '{"text": "b", "id": "line-1"}'], 2, "used on line 1"),
        (["", "  "], 1, "the corpus is empty"),
    ],
)
def test_a_wrong_line_is_refused_with_path_and_line_number(
    tmp_path: Path, lines: list[str], line: int, message: str
) -> None:
    path = write(tmp_path / "c.jsonl", *lines)
    with pytest.raises(CorpusError) as caught:
        Corpus.load(path)
    assert str(caught.value).startswith(f"{path}, line {line}: ")
    assert message in str(caught.value)


def test_text_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    path.write_bytes(b'{"text": "ok"}\n{"text": "\xff"}\n')
    with pytest.raises(CorpusError, match="line 2: not valid JSON in UTF-8"):
        Corpus.load(path)


def test_a_missing_file_and_a_folder_are_refused_by_path(tmp_path: Path) -> None:
    for path in (tmp_path / "nowhere.jsonl", tmp_path):
        with pytest.raises(CorpusError, match=re.escape(str(path))):
            Corpus.load(path)


def test_a_corpus_needs_documents_with_different_ids() -> None:
    document = Document("a", "Text.", "CC0-1.0")
    with pytest.raises(CorpusError, match="two documents"):
        Corpus([document, document])
    with pytest.raises(CorpusError, match="at least one"):
        Corpus([])


@settings(deadline=None)
@given(content=st.binary(max_size=200))
def test_any_bytes_either_load_or_raise_a_corpus_error(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "bytes.jsonl"
    path.write_bytes(content)
    outcome = load_or_message(path)
    if isinstance(outcome, str):
        assert outcome.startswith(f"{path}, line ")
    else:
        assert len(outcome) >= 1


JSON = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.text(max_size=5),
    st.lists(st.integers(), max_size=2),
    st.just({}),
)
KEYS = st.sampled_from(["id", "text", "orig_doc", "license", "title", "skill", "other"])


@settings(deadline=None)
@given(records=st.lists(st.dictionaries(KEYS, JSON, max_size=5), max_size=4))
def test_any_json_objects_either_load_or_name_a_line(
    tmp_path_factory: pytest.TempPathFactory, records: list[dict[str, Any]]
) -> None:
    path = write(tmp_path_factory.getbasetemp() / "objects.jsonl", *records)
    outcome = load_or_message(path)
    if isinstance(outcome, str):
        assert outcome.startswith(f"{path}, line ")
    else:
        assert len(outcome) == len(records)
        assert outcome.digest.startswith("sha256:")


@settings(deadline=None)
@given(
    documents=st.lists(
        st.builds(
            Document,
            id=st.text(min_size=1).filter(str.strip),
            text=st.text(min_size=1).filter(str.strip),
            license=st.text(min_size=1).filter(str.strip),
            title=st.text(),
            skill=st.text(),
        ),
        min_size=1,
        max_size=5,
        unique_by=lambda document: document.id,
    )
)
def test_documents_survive_a_round_through_a_file_in_any_order(
    tmp_path_factory: pytest.TempPathFactory, documents: list[Document]
) -> None:
    path = tmp_path_factory.getbasetemp() / "round.jsonl"
    fields = ("id", "text", "license", "title", "skill")
    records = [{field: getattr(document, field) for field in fields} for document in documents]
    loaded = Corpus.load(write(path, *reversed(records)))
    assert list(loaded) == list(Corpus(documents))
    assert loaded.digest == Corpus(documents).digest


# --- lookup and digest


def test_lookup_by_id_names_the_nearest_when_there_is_none(bundled: Corpus) -> None:
    assert bundled["siphon"].title == "What keeps a siphon running"
    assert "siphon" in bundled
    with pytest.raises(CorpusError, match="did you mean 'siphon'"):
        bundled["siphons"]


def test_digest_covers_every_field_and_not_the_order() -> None:
    a, b = Document("a", "A.", "MIT"), Document("b", "B.", "MIT")
    base = Corpus([a, b]).digest
    assert re.fullmatch(r"sha256:[0-9a-f]{64}", base)
    assert Corpus([b, a]).digest == base
    changed = [
        Document("c", "B.", "MIT"),
        Document("b", "C.", "MIT"),
        Document("b", "B.", "CC0-1.0"),
        Document("b", "B.", "MIT", title="t"),
        Document("b", "B.", "MIT", skill="s"),
    ]
    assert len({base, *(Corpus([a, other]).digest for other in changed)}) == 6


# --- excerpts


@pytest.mark.parametrize(
    ("text", "words", "expected"),
    [
        (" One two three.\n", 3, "One two three."),
        ("One two. Three four. Five six.", 5, "One two. Three four."),
        ("One two.\n\nThree (four.) Five six.", 5, "One two.\n\nThree (four.)"),
        ("One two three four! Five", 4, "One two three four!"),
        ("One. Two three four five six.", 4, "One. Two three four\u2026"),
        ("One two three four", 3, "One two three\u2026"),
        ("One two", 1, "One\u2026"),
    ],
)
def test_an_excerpt_ends_with_a_sentence_where_that_keeps_half(
    text: str, words: int, expected: str
) -> None:
    assert excerpt(Document("d", text, "CC0-1.0"), words) == expected


@settings(deadline=None)
@given(text=st.text(alphabet="ab .!\n", min_size=1), words=st.integers(1, 12))
def test_an_excerpt_is_a_short_enough_beginning_of_the_text(text: str, words: int) -> None:
    cut = excerpt(Document("d", text, "CC0-1.0"), words)
    assert len(cut.split()) <= words
    assert text.strip().startswith(cut.removesuffix("\u2026"))


def test_an_excerpt_of_no_words_is_refused() -> None:
    with pytest.raises(ConfigError, match="max_words must be at least 1, got 0"):
        excerpt(Document("d", "Text.", "CC0-1.0"), 0)
