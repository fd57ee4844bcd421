from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synthgym.validation.telling import (
    Case,
    Known,
    Odds,
    Reader,
    Secrets,
    Text,
    is_listed,
    is_script,
    told,
)

WORD = st.text("abcdefghijklm0123456789", min_size=1, max_size=6)
ACTION = st.lists(WORD, min_size=1, max_size=4).map(" ".join)
WITNESS = st.lists(ACTION, min_size=2, max_size=12)
SEPARATORS = (", ", "\n", " -> ", "; then ", "', '", ". Next, ", " | ", "\n* ", ", and finally ")


def read(*actions: str) -> list[Text]:
    return Reader({0: actions}).witnesses[0]


def case(seed: int, said: str, witness: list[str], start: str = "") -> Case:
    reader = Reader({seed: witness})
    secrets = Secrets.of(reader.witnesses[seed])
    return Case(seed, reader(said), secrets, lambda: Known([reader(start)]))


@pytest.mark.parametrize(
    ("text", "marked"),
    [
        ("Take the KEY,\nthen open 057!", " take the key | open 57 | "),
        ("upper-gate / it's", " upper gate | it s "),
        ("2,3,4 and 0", " 2 3 4 | 0 "),
        ("['push', \"pull\"]", " | push | pull | "),
        ("red_key _", " red key | "),
        ("", "  "),
        ("...", " | "),
        ("Größe 7", " größe 7 "),
    ],
)
def test_a_text_is_read_as_words_and_marks(text: str, marked: str) -> None:
    assert Reader({})(text).marked == marked
    assert Reader({})(text).flat.split() == marked.replace("|", " ").split()


def test_fillers_are_words_where_a_witness_uses_them() -> None:
    reader = Reader({0: ["wire a and b", "next"]})
    assert reader("wire a and b, then next").marked == " wire a and b | next "


def test_what_is_spelled_out_counts_as_one_word() -> None:
    text = Reader({})("The row is 5 6 2, then 4 1 3; not 1 2.")
    assert text.tells("562413")
    assert not text.tells("12")
    assert text.tells("row")
    assert text.tells("6 2 4")


@pytest.mark.parametrize(
    ("secret", "known"),
    [
        ("lentil", True),  # lentils
        ("boxes", True),  # box
        ("57", False),  # 570
        ("570", True),
        ("red blue", True),
        ("blue red", False),
        ("ed", False),
    ],
)
def test_what_the_start_shows_is_known_in_other_forms_too(secret: str, known: bool) -> None:
    start = Known([Text("Lentils, a box and 570. Red, blue.", {"and"})])
    assert (start.without({secret}) == set()) == known


@pytest.mark.parametrize(
    ("actions", "lists"),
    [
        (["plan 2 3 4 0 3", "open"], ["2 3 4 0 3"]),
        (["survey a", "dock a", "dock b", "dock c", "sign"], ["a b c"]),
        (["look", "red green blue"], ["red green blue"]),
        (["wire a b", "deliver"], []),
        (["left", "right", "left"], []),
    ],
)
def test_lists_of_three_or_more_are_secrets(actions: list[str], lists: list[str]) -> None:
    assert list(Secrets.of(read(*actions)).lists) == lists


@settings(deadline=None, max_examples=60)
@given(WITNESS, st.lists(st.text("nopqrstuvw", min_size=2, max_size=6), max_size=40))
def test_a_hint_of_other_words_never_tells(witness: list[str], hint: list[str]) -> None:
    cases = [case(seed, " ".join([*hint, "n" * seed]), witness) for seed in range(20)]
    assert told(cases) == {}


@settings(deadline=None, max_examples=60)
@given(WITNESS, st.sampled_from(SEPARATORS))
def test_the_joined_witness_is_always_a_script(witness: list[str], separator: str) -> None:
    reader = Reader({0: witness})
    text = reader(f"Do this: {separator.join(witness)}. Good luck!")
    assert is_script(reader.witnesses[0], text)
    assert is_listed(reader.witnesses[0], text)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.text("abcdefgh", min_size=1, max_size=5), min_size=2, max_size=9))
def test_a_numbered_list_is_one(witness: list[str]) -> None:
    reader = Reader({0: witness})
    for form in ("{}. {}\n", "{}) {} ", "({}) {}\n"):
        listed = "".join(form.format(number, action) for number, action in enumerate(witness, 1))
        assert any(is_listed(reader.witnesses[0], text) for text in reader.readings(listed))


@settings(deadline=None, max_examples=60)
@given(st.lists(WORD, min_size=3, max_size=8, unique=True))
def test_a_piece_of_a_longer_list_is_none(items: list[str]) -> None:
    reader = Reader({0: items})
    belt = ", ".join(items * 2)
    assert not is_listed(reader.witnesses[0], reader(f"Belt: {belt}."))


@pytest.mark.parametrize(
    ("hint", "script"),
    [
        ("take key, open door, go out", True),
        ("First take key. It is heavy. Then open door, and at last go out.", True),
        ("go out, open door, take key", False),
        ("take key, then open the door, and go out", False),
        ("take key, open door, and see", False),
        ("take keys, open door, go out", False),
    ],
)
def test_a_script_has_every_action_in_order(hint: str, script: bool) -> None:
    reader = Reader({0: ["take key", "open door", "go out"]})
    assert is_script(reader.witnesses[0], reader(hint)) == script


def test_of_a_long_script_a_tenth_may_be_missing_but_not_the_end() -> None:
    actions = [f"go {way}" for way in "abcdefghijkl"]
    reader = Reader({0: actions})
    assert is_script(reader.witnesses[0], reader(", ".join(actions[:4] + actions[5:])))
    assert not is_script(reader.witnesses[0], reader(", ".join(actions[:-1])))
    assert not is_script(reader.witnesses[0], reader(", ".join(actions[:4] + actions[6:])))


def test_one_action_is_no_script() -> None:
    assert not is_script(read("open 57"), Text("open 57"))


@pytest.mark.parametrize("leaking", range(2, 21))
def test_a_rare_word_told_on_a_few_seeds_is_a_leak(leaking: int) -> None:
    cases = [
        case(
            seed, f"see {1000 + seed if seed < leaking else 'there'}", [f"go {1000 + seed}", "end"]
        )
        for seed in range(20)
    ]
    assert told(cases) == {seed: str(1000 + seed) for seed in range(leaking)}
    known = [
        case(one.seed, f"see {1000 + one.seed}", [f"go {1000 + one.seed}"], f"{1000 + one.seed}")
        for one in cases
    ]
    assert told(known) == {}


def test_one_seed_proves_nothing() -> None:
    assert (
        told(
            [
                case(seed, f"see {seed}7", [f"go {'17' if seed == 1 else 'on'}"])
                for seed in range(20)
            ]
        )
        == {}
    )


def test_an_answer_out_of_two_is_found_when_it_is_always_told() -> None:
    ways = ["left" if seed * 7 % 5 > 1 else "right" for seed in range(20)]
    assert told(
        [case(seed, f"it is {way}", ["look", f"go {way}"]) for seed, way in enumerate(ways)]
    )
    turned = ways[1:] + ways[:1]
    assert not told(
        [
            case(seed, f"it is {way}", ["look", f"go {ways[seed]}"])
            for seed, way in enumerate(turned)
        ]
    )


def test_numbers_that_meet_by_accident_are_no_leak() -> None:
    found = 0
    for world in range(200):
        rng = random.Random(world)
        high = rng.choice([9, 20, 50, 100, 1000])
        count = rng.randint(1, 4)
        cases = [
            case(
                seed,
                f"between {rng.randint(1, high)} and {rng.randint(1, high)}",
                [
                    *(f"look {rng.randint(1, high)}" for _ in range(count)),
                    f"open {rng.randint(1, high)}",
                ],
            )
            for seed in range(20)
        ]
        found += bool(told(cases))
    assert found <= 2


def test_turn_counters_are_no_leak() -> None:
    counter = " ".join(f"turn {turn} of 30" for turn in range(1, 15))
    assert told([case(seed, counter, [f"guess {seed * 5 % 19 + 1}"]) for seed in range(5)]) == {}


@pytest.mark.parametrize(
    ("own", "hits", "chance", "chances", "beaten"),
    [
        (20, 1, 0, 380, False),
        (20, 2, 0, 380, True),
        (20, 2, 4, 380, False),
        (20, 20, 190, 380, True),
        (20, 20, 350, 380, False),
        (5, 2, 0, 20, False),
        (5, 3, 0, 20, True),
        (5, 5, 12, 20, False),
        (2, 2, 0, 2, False),
    ],
)
def test_how_much_is_more_than_accident(
    own: int, hits: int, chance: int, chances: int, beaten: bool
) -> None:
    odds = Odds()
    for index in range(own):
        odds.count(own=True, hit=index < hits)
    for index in range(chances):
        odds.count(own=False, hit=index < chance)
    assert odds.beaten == beaten


def test_long_texts_take_no_longer_than_their_length_allows() -> None:
    words = " ".join(f"w{number}" for number in range(12_000))  # 64k characters
    cases = [case(seed, f"{words} {seed}", [words[:4000]] * 20) for seed in range(20)]
    assert told(cases) == {}
    belt = "a, " * 20_000
    assert not is_listed(read("a", "a", "a"), Text(belt))
    assert not is_script(read(*["a b"] * 100), Text("a b " * 99 + belt))
    assert Text("1 " * 30_000).words == {"1", "1" * 30_000}
