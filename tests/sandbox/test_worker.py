"""What a worker makes of the operations it is sent, without a process around it."""

from __future__ import annotations

import re

import pytest
from bare_worker import DICE, PROGRAM, BareWorker, failure, loaded, returning, stepped

from synthgym.sandbox.protocol import (
    MAX_CODE,
    MAX_FRAME,
    Done,
    Drop,
    Failed,
    Hint,
    HintDone,
    Load,
    LoadDone,
    Replay,
    Replayed,
    Resets,
    Rows,
    Solution,
    SolutionDone,
    Steps,
    Unload,
    append_frame,
)

COUNTING = "WORDS = []\n" + returning(
    step="str(len(WORDS)) + action, float(len(action)), action == 'win', action == 'cut', {}"
)


def test_a_source_is_compiled_and_loaded_with_what_it_holds() -> None:
    worker = BareWorker()
    compiled = worker.compile(DICE)
    assert compiled.code
    assert (compiled.requires, compiled.docstring) == (["random"], "Guess a number.")
    assert compiled.violations == []
    assert worker.load(DICE, entry="DiceEnv") == LoadDone(2, "DiceEnv", 5, "Rolls.", True, True)


def test_code_of_another_worker_is_loaded_without_the_source() -> None:
    code = BareWorker().compile(DICE).code
    other = BareWorker()
    assert isinstance(other.ask(Load(1, PROGRAM, code, "DiceEnv", b"{}", 1000)), LoadDone)
    assert other.reset(1, 3) == loaded(DICE).reset(1, 3)


def test_code_above_the_cap_stays_in_its_worker() -> None:
    texts = ", ".join(f"'{number:04x}' * 1000" for number in range(MAX_CODE // 4000 + 10))
    source = f"{DICE}\nTEXTS = [{texts}]\n"
    worker = BareWorker()
    compiled = worker.compile(source)
    assert (compiled.code, compiled.violations) == (b"", [])
    assert isinstance(worker.ask(Load(2, PROGRAM, b"", "", b"{}", 1000)), LoadDone)


@pytest.mark.parametrize("code", [b"", b"\x00", b"i\x05\x00\x00\x00", b"N"])
def test_what_is_no_code_is_not_loaded(code: bytes) -> None:
    reply = BareWorker().ask(Load(1, PROGRAM, code, "", b"{}", 1000))
    assert isinstance(reply, Failed)


def test_an_instance_is_reset_stepped_and_dropped() -> None:
    worker = loaded(DICE)
    worker.reset(7, 3)
    second = worker.step(7, "go")
    assert (second.rewards, second.infos) == ([0.25], {0: '{"turn":2}'})
    assert worker.ask(Drop(4, [7])) == Done(4)
    assert failure(worker.step(7, "go"))[0] == "refused"


def test_a_program_is_forgotten_with_its_instances_and_no_others() -> None:
    worker = loaded(DICE)
    assert isinstance(worker.load(COUNTING, program=2), LoadDone)
    worker.reset(7, 3)
    worker.reset(8, 3, program=2)
    assert worker.ask(Unload(5, PROGRAM)) == Done(5)
    assert failure(worker.step(7, "go"))[0] == "refused"
    assert failure(worker.reset(7, 3)) == ("refused", "the source is not loaded")
    assert worker.step(8, "go", program=2).observations == ["0go"]


def test_instances_do_not_share_a_random_stream() -> None:
    alone = loaded(DICE)
    alone.reset(1, 3)
    expected = [alone.step(1, "go") for _ in range(5)]
    shared = loaded(DICE)
    shared.reset(1, 3)
    found = []
    for number in range(5):
        shared.reset(2, number)
        shared.step(2, "other")
        shared.ask(Solution(1, PROGRAM, number))
        found.append(shared.step(1, "go"))
    assert found == expected


def test_nothing_leaks_from_one_episode_to_the_next() -> None:
    source = returning(step="str(SEEN.append(action) or SEEN), 0.0, False, False, {}")
    worker = loaded("SEEN = []\n" + source)
    seen = []
    for _ in range(2):
        worker.reset(1, 0)
        seen.append(worker.step(1, "go"))
    assert seen[0] == seen[1]
    assert not seen[0].failures


# --- batches ---


def test_a_batch_has_a_row_for_each_instance_in_order() -> None:
    worker = loaded(COUNTING)
    (first,) = worker.rows(Resets(3, PROGRAM, [4, 5, 6], [1, 2, 3]))
    assert first.observations == ["x"] * 3
    (rows,) = worker.rows(Steps(4, PROGRAM, [6, 4, 9, 5], ["win", "go", "go", "cut"]))
    assert rows.id == 4
    assert rows.observations == ["0win", "0go", "", "0cut"]
    assert rows.rewards == [3.0, 2.0, 0.0, 3.0]
    assert rows.flags == bytes([1, 0, 0, 2])
    assert list(rows.failures) == [2]


def test_rows_are_handed_out_before_they_are_too_much_for_a_frame() -> None:
    wide = returning(step='"\\U0001f600" * 65_536, 0.0, False, False, {action: "y" * 2000}')
    worker = loaded(wide, observation_chars=65_536)
    numbers = list(range(40))
    worker.rows(Resets(3, PROGRAM, numbers, numbers))
    replies = worker.rows(Steps(4, PROGRAM, numbers, [str(number) for number in numbers]))
    assert len(replies) > 1
    framed = bytearray()
    for reply in replies:
        append_frame(reply, framed)
    shown = [reply.infos[row] for reply in replies for row in range(len(reply.observations))]
    assert [info.split('"')[1] for info in shown] == [str(number) for number in numbers]
    assert len(framed) < len(replies) * MAX_FRAME


def test_the_counter_says_which_row_has_begun() -> None:
    worker = loaded(COUNTING)
    assert worker.begun == 2
    replies = worker.interpreter.answers(Resets(3, PROGRAM, [1, 2], [0, 0]))
    assert len(list(replies)) == 1
    assert worker.begun == 4
    worker.ask(Replay(4, PROGRAM, 1, 0, ["a", "b"]))
    assert worker.begun == 7
    worker.ask(Drop(5, [2]))
    assert worker.begun == 7
    worker.step(1, "a")
    worker.ask(Hint(6, PROGRAM, 0, 2))
    worker.ask(Solution(7, PROGRAM, 0))
    assert worker.begun == 10
    # A row that cannot be served was begun as well: the parent counts what it asked for.
    worker.reset(1, 0, program=9)
    worker.step(99, "a")
    worker.ask(Hint(8, 9, 0, 2))
    assert worker.begun == 13


def test_a_batch_ends_at_the_row_that_used_up_the_memory() -> None:
    bomb = returning().replace(
        "def step(self, action):",
        "def step(self, action):\n        if action == 'bomb':\n            raise MemoryError\n",
    )
    worker = loaded(bomb)
    worker.rows(Resets(3, PROGRAM, [1, 2, 3], [0, 0, 0]))
    assert not worker.interpreter.spent
    (rows,) = worker.rows(Steps(4, PROGRAM, [1, 2, 3], ["go", "bomb", "go"]))
    assert rows.observations == ["x", ""]
    assert rows.failures == {1: ("memory", "the memory quota is used up")}
    assert worker.interpreter.spent


# --- replays ---


def test_a_replay_stands_where_the_episode_stood() -> None:
    worker = loaded(DICE)
    worker.reset(1, 3)
    seen: list[Rows] = [worker.step(1, action) for action in "abc"]
    replayed = worker.ask(Replay(4, PROGRAM, 2, 3, list("ab")))
    assert replayed == Replayed(4, seen[1].observations[0], 0.5)
    assert worker.step(2, "c") == seen[2]


def test_a_replay_in_parts_is_the_replay_of_the_whole() -> None:
    worker = loaded(DICE)
    whole = worker.ask(Replay(1, PROGRAM, 1, 3, list("abcd")))
    worker.ask(Replay(2, PROGRAM, 2, 3, list("ab")))
    assert worker.ask(Replay(1, PROGRAM, 2, 3, list("cd"), resumed=True)) == whole
    assert worker.step(1, "e") == worker.step(2, "e")


def test_a_failed_step_is_part_of_a_replay_and_a_failed_reset_is_not() -> None:
    failing = COUNTING.replace(
        "def step(self, action):\n", "def step(self, action):\n        1 / len(action)\n"
    )
    worker = loaded(failing)
    assert worker.ask(Replay(1, PROGRAM, 1, 0, ["ab", ""])) == Replayed(1, "", 2.0)
    assert worker.ask(Replay(1, PROGRAM, 1, 0, ["", "ab"])) == Replayed(1, "0ab", 2.0)
    broken = loaded(returning(reset="1 / 0"))
    reply = broken.ask(Replay(1, PROGRAM, 1, 0, ["a"]))
    assert isinstance(reply, Failed)
    assert failure(broken.step(1, "a"))[0] == "refused"


def test_a_replay_that_fails_early_has_had_all_its_rows() -> None:
    """The parent counts what it asked for; the counter must not lag behind from then on."""
    worker = loaded(returning(reset="1 / 0"))
    before = worker.begun
    for resumed in (False, True):
        assert isinstance(worker.ask(Replay(1, PROGRAM, 1, 0, list("ab"), resumed)), Failed)
    worker.step(1, "c")
    assert worker.begun == before + 3 + 2 + 1


# --- hints and solutions ---


def test_hint_and_solution_come_from_another_instance() -> None:
    worker = loaded(DICE)
    roll = worker.reset(1, 3).observations[0].removeprefix("first ")
    before = worker.step(1, "go")
    assert worker.ask(Hint(4, PROGRAM, 3, 1)) == HintDone(4, f"level 1 of {roll}")
    assert worker.ask(Solution(5, PROGRAM, 3)) == SolutionDone(5, [roll])
    worker.reset(2, 3)
    assert worker.step(2, "go") == before


@pytest.mark.parametrize(
    ("hint", "expected"),
    [
        ("    def hint(self, level=2):\n        return str(level)", "3"),
        ("    def hint(self, level):\n        return str(level)", "3"),
        ("    def hint(self, *, level=2):\n        return str(level)", "3"),
        ("    def hint(self, *args):\n        return str(args[0])", "3"),
        ("    def hint(self):\n        return 'plain'", "plain"),
        ("    @staticmethod\n    def hint():\n        return 'static'", "static"),
        ("    hint = 'attribute'", "attribute"),
    ],
)
def test_every_form_of_hint_serves_every_level(hint: str, expected: str) -> None:
    worker = BareWorker()
    reply = worker.load(returning() + hint + "\n")
    assert isinstance(reply, LoadDone)
    assert reply.has_hint
    assert worker.ask(Hint(2, PROGRAM, 0, 3)) == HintDone(2, expected)


def test_an_environment_without_hint_and_solution_says_so() -> None:
    worker = BareWorker()
    reply = worker.load(returning())
    assert isinstance(reply, LoadDone)
    assert (reply.has_hint, reply.has_solution) == (False, False)
    assert isinstance(worker.ask(Hint(2, PROGRAM, 0, 2)), Failed)
    assert isinstance(worker.ask(Solution(2, PROGRAM, 0)), Failed)


# --- what is refused ---


@pytest.mark.parametrize(
    ("source", "detail"), [("class AEnv(:", "syntax error"), ("import os", "os")]
)
def test_a_source_outside_the_policy_is_not_compiled(source: str, detail: str) -> None:
    worker = BareWorker()
    compiled = worker.compile(source)
    assert compiled.code == b""
    ((line, message),) = compiled.violations
    assert line == 1
    assert detail in message
    reply = worker.ask(Load(2, PROGRAM, b"", "", b"{}", 1000))
    assert reply == Failed(2, "refused", "the source does not compile")


def test_a_source_that_does_not_compile_does_not_run_the_one_before_it() -> None:
    worker = BareWorker()
    worker.compile(DICE)
    worker.compile("import os")
    reply = worker.ask(Load(2, PROGRAM, b"", "", b"{}", 1000))
    assert isinstance(reply, Failed)


@pytest.mark.parametrize(
    ("source", "detail"),
    [
        ("x = 1", "exactly one class"),
        (returning() + returning().replace("Plain", "Other"), "got 2"),
        (returning().replace("def step", "def other"), r"needs a method step\(\)"),
        (returning().replace("def reset", "def other"), r"needs a method reset\(\)"),
        (returning().replace("max_turns = 5", "pass"), "max_turns.*got NoneType"),
        (returning().replace("= 5", "= True"), "max_turns.*got bool"),
        (returning().replace("= 5", "= 1"), "max_turns.*got 1"),
        (returning().replace("= 5", "= 10 ** 5000"), "max_turns.*got int"),
    ],
)
def test_a_source_outside_the_contract_is_refused(source: str, detail: str) -> None:
    reply = BareWorker().load(source)
    assert isinstance(reply, Failed)
    assert reply.kind == "refused"
    assert re.search(detail, reply.detail), reply.detail


def test_the_class_must_be_the_one_of_the_record() -> None:
    reply = BareWorker().load(DICE, entry="OtherEnv")
    assert isinstance(reply, Failed)
    assert "'OtherEnv'" in reply.detail
    assert "'DiceEnv'" in reply.detail


def test_keyword_arguments_reach_the_class() -> None:
    source = DICE.replace(
        "    def reset", "    def __init__(self, top):\n        self.top = top\n\n    def reset"
    )
    worker = loaded(source.replace('f"first', 'f"top {self.top} first'), kwargs=b'{"top":9}')
    assert worker.reset(1, 0).observations[0].startswith("top 9 first")


# --- what is raised ---


@pytest.mark.parametrize(
    ("error", "detail"),
    [
        ('ValueError("why")', "ValueError: why"),
        ("KeyError(3)", "KeyError: "),
        ("SystemExit(0)", "SystemExit: "),
        ("KeyboardInterrupt()", "KeyboardInterrupt: "),
        ("GeneratorExit()", "GeneratorExit: "),
        ("StopIteration(5)", "StopIteration: "),
        ('ValueError("x" * 10_000)', "ValueError: x"),
    ],
)
def test_whatever_is_raised_becomes_an_error(error: str, detail: str) -> None:
    kind, found = failure(stepped('("x", 0.0, False, False, {})', before=f"raise {error}"))
    assert kind == "error"
    assert found.startswith(detail)
    assert len(found) <= 500


def test_private_names_in_an_error_are_spelled_as_in_the_source() -> None:
    _, detail = failure(stepped('("x", 0.0, False, False, {})', before="self._missing"))
    assert detail == "AttributeError: 'PlainEnv' object has no attribute '_missing'"


def test_used_up_memory_is_a_failure_of_its_own_kind() -> None:
    kind, _ = failure(stepped('("x", 0.0, False, False, {})', before="raise MemoryError"))
    assert kind == "memory"


def test_an_instance_that_comes_again_after_its_end_is_not_stepped() -> None:
    source = returning(step="self.say(action), 0.0, action == 'win', action == 'cut', {}").replace(
        "    def step",
        "    def say(self, action):\n"
        "        self.said = getattr(self, 'said', '') + action[:1]\n"
        "        return 1 / 0 if action == 'fail' else self.said\n"
        "    def step",
    )
    worker = loaded(source)
    for instance in (1, 2, 3, 4):
        worker.reset(instance, 0)
    turns = [["a", "a", "a", "a"], ["win", "cut", "fail", "b"], ["c"] * 4]
    actions = [action for turn in turns for action in turn]
    before = worker.begun
    (rows,) = worker.rows(Steps(5, PROGRAM, [1, 2, 3, 4] * 3, actions))
    assert rows.observations == ["a", "a", "a", "a", "aw", "ac", "", "ab", "", "", "", "abc"]
    assert list(rows.flags) == [0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0]
    assert list(rows.failures) == [6]
    assert worker.begun == before + 12  # the parent counts all of them
    assert worker.step(1, "d").observations == ["awd"]  # nobody but who asks for it is kept from it
    assert worker.step(3, "e").observations == ["afe"]
