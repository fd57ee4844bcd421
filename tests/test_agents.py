from __future__ import annotations

import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synthgym.agents import (
    MAX_READ,
    Agent,
    blanks,
    copying,
    fill,
    null,
    offered,
    random_words,
    repeating,
    scraping,
    scripted,
)
from synthgym.agents.offers import MAX_OFFERED

CHOOSING = pytest.mark.parametrize("agent", [random_words, scraping, copying])


def sent(agent: Agent, *observations: str) -> list[str]:
    """What an agent says to these observations."""
    said = [agent(observation) for observation in observations]
    assert all(isinstance(text, str) for text in said)
    return [text for text in said if text is not None]


# what is on offer


@pytest.mark.parametrize(
    ("observation", "commands"),
    [
        # after words that announce commands
        ("Commands: look, take lamp, wait.", ("look", "take lamp", "wait")),
        ("A door.\nCommands: 'take key', 'open <number>'.", ("take key", "open <number>")),
        ("Reply with one of: red, blue or green. The bell rings.", ("red", "blue", "green")),
        ("Reply with one of red, blue. The bell rings.", ("red", "blue")),
        ("Options: north; south; east, then west", ("north", "south", "east, then west")),
        ("Actions: go <north|south> | wait", ("go <north|south>", "wait")),
        ("The available actions are north, south and wait.", ("north", "south", "wait")),
        ("You may: look, sing", ("look", "sing")),
        ("You can use these commands: hop / skip / jump!", ("hop", "skip", "jump")),
        ("Choose one of the following moves: rock, paper.", ("rock", "paper")),
        ("Commands: wire <a> <b> or <b>, pin <a>.", ("wire <a> <b> or <b>", "pin <a>")),
        ("Commands: hit (hard; 'hit' will do), run (away), rest.", ("hit", "run", "rest")),
        ("Commands: `go <x>` walks, north or east; `rest` waits.", ("go <x>", "rest")),
        ("Options: 1) go north 2) wait 3) run away. Turn 1.", ("go north", "wait", "run away")),
        ("Type the number. Options: 1) fight 2) flee", ("1", "fight", "2", "flee")),
        ("Commands:\n  look - look around\n  go <way>\n\nA lamp.", ("look", "go <way>")),
        ("Commands:\n- look: see\n- `go <way>` walks\n", ("look", "go <way>")),
        ("Commands:\nlook, go <way>\n", ("look", "go <way>")),
        # what is only quoted or listed does not count beside them
        ("It says 'sesame'.\n- a rope\nCommands: look, wait.", ("look", "wait")),
        # without such words
        ("Say 'go north' or \"wait\".", ("go north", "wait")),
        ("Say \u2018hop\u2019, \u201cskip\u201d or `jump`.", ("hop", "skip", "jump")),
        ("Don't go, it isn't safe; 'run'!", ("run",)),
        ("Arm it with \\boxed{arm}.", ("arm",)),
        ("Name one number in brackets, like [42].", ("[42]",)),
        ("Moves:\n- lift\n- drop: lets go\n1. look (around)\n", ("lift", "drop", "look")),
        ("What now?\nA) the red door\nB) the blue one", ("A", "the red door", "B", "the blue one")),
        ("Say left or right.", ("left", "right")),
        # what looks like a list and is none
        ("Moves: 3 of 10. Lamps 1:on 2:off.", ()),
        ("Moves: 3", ()),
        ("You see a red, a blue and a green door.", ()),
        ("", ()),
    ],
)
def test_what_a_reader_takes_for_commands(observation: str, commands: tuple[str, ...]) -> None:
    assert offered(observation) == commands


def test_commands_on_offer_are_few_and_do_not_repeat() -> None:
    many = "Commands: " + ", ".join(f"press {n}, press 0" for n in range(40)) + "."
    assert offered(many) == tuple(f"press {n}" for n in range(MAX_OFFERED))


def test_of_a_long_text_the_beginning_and_the_end_are_read() -> None:
    filler = "nothing here \n" * 10_000
    assert offered(f"Commands: look, wait.\n{filler}") == ("look", "wait")
    assert offered(f"{filler}Commands: look, wait.") == ("look", "wait")
    assert offered(f"{filler}Commands: look, wait.\n{filler}") == ()


HOSTILE = [
    text * (65_536 // len(text))
    for text in [
        *(
            "(",
            "<",
            "`",
            "'",
            '"',
            "[",
            "{",
            "\\boxed{",
            ":",
            ": ",
            "a",
            "7",
            "-",
            "\n",
            " ",
            "\t",
            "\x0b",
        ),
        *(
            "commands: ",
            "commands:\n",
            "options: (",
            "one of ",
            "either ",
            "are include ",
            "say or ",
        ),
        *(
            "a, ",
            "a, b and ",
            "a-",
            "a'",
            "1-",
            "1 to 2 ",
            "between 1 and ",
            "is ",
            "the answer is ",
            "it was\x0b",
        ),
        *(
            "1) ",
            "a) b ",
            "- ",
            "1. x\n",
            "<a|",
            "< a ",
            "[a",
            "\u0130",
            "\U0001f600",
            "\u0663",
            "a b c d ",
        ),
    ]
]


@CHOOSING
@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: repr(text[:12]))
def test_hostile_text_is_read_in_no_time(agent: Callable[[int], Agent], text: str) -> None:
    offered(text)
    playing = agent(1)
    assert len(sent(playing, *[f"{turn}{text}" for turn in range(3)])) == 3


@CHOOSING
@settings(max_examples=60, deadline=None)
@given(texts=st.lists(st.text(st.sampled_from("ab1 :,.;'`\"<>[]{}()\n\\-|/NX\x0b\u0130"))))
def test_no_text_makes_an_agent_fail(agent: Callable[[int], Agent], texts: list[str]) -> None:
    sent(agent(0), *texts, *(f"Commands: {text}" for text in texts))


# blanks


@pytest.mark.parametrize(
    ("command", "found"),
    [
        ("open <number>", ["<number>"]),
        ("go {way} [number]", ["{way}", "[number]"]),
        ("<word>", ["<word>"]),
        ("[number]", ["[number]"]),
        ("[look]", []),
        ("[42]", []),
        ("open N", ["N"]),
        ("go DIRECTION", ["DIRECTION"]),
        ("GO NORTH", []),
        ("N", []),
        ("ask Nora", []),
        ("look", []),
    ],
)
def test_blanks_of_a_command(command: str, found: list[str]) -> None:
    assert [blank[0] for blank in blanks(command)] == found


@pytest.mark.parametrize(
    ("command", "texts", "possible"),
    [
        ("open <number>", ["Doors 7 and 9."], {"open 7", "open 9"}),
        ("go <x>", ["Red, blue or green?"], {"go Red", "go blue", "go green"}),
        ("go <north|south>", [""], {"go north", "go south"}),
        ("say <yes or no>", ["a, b, c"], {"say yes", "say no"}),
        ("roll <1-3>", ["9"], {"roll 1", "roll 2", "roll 3"}),
        ("open N", ["Between 4 and 6 it is."], {"open 4", "open 5", "open 6"}),
        ("open N", ["Doors 4 to 6."], {"open 4", "open 5", "open 6"}),
        ("go <x>", ["Wide."], {"go Wide", *(f"go {digit}" for digit in range(10))}),
        ("go <x>", [], {"go "}),
        ("look", ["Red, blue or green?"], {"look"}),
    ],
)
def test_blanks_are_filled_by_what_was_seen(
    command: str, texts: list[str], possible: set[str]
) -> None:
    rng = random.Random(2)
    assert {fill(command, rng, texts) for _ in range(300)} == possible


# agents


def test_agents_without_a_choice() -> None:
    assert sent(null(), "a", "b") == ["", ""]
    assert sent(repeating("go"), "a", "b") == ["go", "go"]
    agent = scripted(["x", "y"])
    assert [agent("a") for _ in range(3)] == ["x", "y", None]


@pytest.mark.parametrize("turns", [0, 1, 2, 3, 7])
def test_what_an_agent_without_eyes_will_do_is_known_before(turns: int) -> None:
    for make in (null, lambda: repeating("go"), lambda: scripted(["x", "y", "z"])):
        agent = make()
        said = [action for action in (agent("?") for _ in range(turns)) if action is not None]
        assert list(agent.first(turns)) == list(make().first(turns)) == said


SEEN = [
    "Red, blue and green boxes. A note: 'try the red one'. Commands: open <box>, wait.",
    "The answer is blue.\nTurn 2 of 9.",
    "",
    "Nothing.",
]


def test_the_same_seed_says_the_same_in_another_process() -> None:
    code = (
        "from synthgym.agents import copying, random_words, scraping\n"
        "for agent in (random_words, scraping, copying):\n"
        f"    print([[play(seen) for seen in {SEEN!r} * 5] for play in map(agent, range(9))])"
    )
    runs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": hash_seed},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for hash_seed in ("1", "2")
    }
    here = [
        [sent(agent(seed), *SEEN * 5) for seed in range(9)]
        for agent in (random_words, scraping, copying)
    ]
    assert runs == {"".join(f"{plays}\n" for plays in here)}
    assert all(len(set(map(str, plays))) == 9 for plays in here)


@CHOOSING
def test_an_agent_draws_other_numbers_than_an_environment_of_its_seed(
    agent: Callable[[int], Agent],
) -> None:
    """An environment that hides what `random.Random(seed)` chooses must not be guessed by the same draw."""
    places = ("red", "blue", "green", "white")
    seen = f"Reply with one of: {', '.join(places)}."
    hits = sum(random.Random(seed).choice(places) == agent(seed)(seen) for seed in range(400))
    assert hits < 140


def test_the_random_agent_uses_words_of_the_observation_and_digits() -> None:
    agent = random_words(3)
    actions = sent(agent, *["Open the upper-gate, quickly."] * 300)
    words = {word for action in actions for word in action.split(" ")}
    assert words == {"Open", "the", "upper-gate", "quickly", *"0123456789"}
    assert {len(action.split(" ")) for action in actions} == {1, 2, 3}
    assert set(random_words(1)("").split(" ")) <= set("0123456789")


def test_the_scraping_agent_chooses_evenly_among_what_is_on_offer() -> None:
    seen = "Reply with one of: red, blue, green."
    counts = Counter(sent(scraping(1), *[seen] * 900))
    assert set(counts) == {"red", "blue", "green"}
    assert min(counts.values()) > 240


def test_the_scraping_agent_remembers_what_was_on_offer_and_what_was_named() -> None:
    agent = scraping(4)
    agent("Red, blue and green boxes, 20 to 99. Commands: open <box>, wait.")
    actions = set(sent(agent, *["Nothing here."] * 400))
    assert {"wait", "open Red", "open blue", "open green"} <= actions
    numbers = {int(action[5:]) for action in actions if action[5:].isdigit()}
    assert len(numbers) > 20
    assert all(20 <= number <= 99 for number in numbers)


def test_what_is_only_quoted_does_not_drive_out_the_commands() -> None:
    agent = scraping(4)
    agent("Commands: look, wait.")
    assert set(sent(agent, *["A sign: 'beware'."] * 60)) == {"look", "wait", "beware"}
    assert set(sent(agent, *["Commands: run."] * 20)) == {"run"}


def test_the_scraping_agent_says_nothing_where_nothing_was_on_offer() -> None:
    assert sent(scraping(1), "A room.", "") == ["", ""]


def test_the_copying_agent_copies_pieces_of_all_kinds() -> None:
    seen = "A note: 'try red'.\nRed, blue and green are 17 paces away. Go on"
    said = {action for seed in range(60) for action in sent(copying(seed), *[seen] * 10)}
    bare = {action for action in said if action == "try red" or not action.startswith("try ")}
    assert bare == {
        *("try red", "17", "Red", "blue", "green", "Go on", seen),
        *("A note: 'try red'.", "Red, blue and green are 17 paces away. Go on"),
    }


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("The answer is blue.", "blue"),
        ("Halt! Tonight the watchword is amber.\nGo.", "amber"),
        ("Wrong, it was 72.", "72"),
        ("Wrong (expected north).", "north"),
        ("You should have said open seven.", "open seven"),
        ("The right order was red, then green.", "red, then green"),
        ("Code: 4711", "4711"),
    ],
)
def test_the_copying_agent_prefers_what_it_is_told(text: str, told: str) -> None:
    said = Counter(copying(seed)(text) for seed in range(200))
    assert said[told] > 40
    assert said.most_common(1)[0][0] in (told, told.split()[0].strip(","), told.split()[-1])


def test_the_copying_agent_puts_pieces_into_commands() -> None:
    seen = "The code is 4711. Commands: open <number>, knock twice, wait."
    said = Counter(action for seed in range(40) for action in sent(copying(seed), *[seen] * 5))
    assert min(said["4711"], said["open 4711"], said["knock 4711"]) > 15
    assert said["wait 4711"] == 0


def test_some_copying_agents_keep_to_one_way() -> None:
    """Where only one way of copying wins, an agent that changes between ways would not win in time."""
    seen = "The code is {}. Commands: open <number>."
    plays = [
        sent(copying(seed), *[seen.format(number) for number in range(20, 26)])
        for seed in range(60)
    ]
    wins = [[f"{way}{number}" for number in range(20, 26)] for way in ("", "open ")]
    assert all(sum(play == win for play in plays) >= 6 for win in wins)


def test_an_observation_may_be_as_long_as_the_sandbox_lets_it() -> None:
    text = "word " * 13_000
    said = {len(copying(seed)(text) or "") for seed in range(20)}
    assert max(said) <= MAX_READ + 1


@pytest.mark.parametrize(("place", "seed"), list(product(range(3), range(3))))
def test_old_observations_are_forgotten_but_for_the_first(place: int, seed: int) -> None:
    agent = scraping(seed)
    agent("Adam, Bert and Carl. Commands: ask <name>.")
    for number in range(30):
        agent(f"x{number}, y{number}, z{number}")
    actions = set(sent(agent, *["Hm."] * 300))
    assert "ask Adam" in actions
    assert f"ask {'xyz'[place]}29" in actions
    assert f"ask {'xyz'[place]}3" not in actions
