"""Many threads and one model: batches, counts, failures and interruptions. `Scribe` answers by rule; it is no model."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing

import pytest
from openai_service import Answer, Service, answer, completion, serving

from spade_loop.backends.endpoint import EndpointWriter
from spade_loop.completers import JsonSchema, Reply
from spade_loop.errors import ConfigError, ContextError, ModelError
from spade_loop.speaking import Decoding, Speaker, Usage, run_all
from spade_loop.types import Message

SHORT = Decoding(max_tokens=8)


class Scribe:
    """Says each chat's last message again, with its seed, and keeps the size of each call."""

    concurrent = False
    name = "scribe"

    def __init__(self, fail: Callable[[str], Exception | None] = lambda _: None) -> None:
        self.calls: list[list[str]] = []
        self.decodings: list[tuple[float, float, int]] = []
        self.threads: set[int] = set()
        self.closed = 0
        self.gate = threading.Event()
        self.gate.set()
        self._fail = fail

    def write(
        self,
        chats: Sequence[Sequence[Message]],
        *,
        max_tokens: int,
        temperature: float,
        seeds: Sequence[int],
        schema: JsonSchema | None = None,
        top_p: float = 1.0,
        top_k: int = 0,
    ) -> list[Reply]:
        assert self.gate.wait(20)
        said = [chat[-1].content for chat in chats]
        self.calls.append(said)
        self.decodings.append((temperature, top_p, top_k))
        self.threads.add(threading.get_ident())
        for text in said:
            if (error := self._fail(text)) is not None:
                raise error
        return [Reply(f"{text}/{seed}", 2, True, 5) for text, seed in zip(said, seeds, strict=True)]

    def close(self) -> None:
        self.closed += 1


def chat(text: str) -> tuple[Message, ...]:
    return (Message("user", text),)


def leftovers() -> list[str]:
    return [
        t.name for t in threading.enumerate() if t.name.startswith(("run", "speak", "endpoint"))
    ]


@pytest.fixture(autouse=True)
def no_thread_is_left_behind() -> Iterator[None]:
    yield
    assert leftovers() == []


@pytest.fixture
def service() -> Iterator[Service]:
    with serving() as made:
        yield made


def test_a_model_on_this_machine_answers_what_waits_in_one_call() -> None:
    scribe = Scribe()
    scribe.gate.clear()
    with Speaker(scribe, rows=3) as speaker:
        work = run_all(range(8), lambda i: speaker.say(chat(f"q{i}"), SHORT, 10 + i), threads=8)
        threading.Timer(0.3, scribe.gate.set).start()
        said = dict(work)
        assert {i: r.text for i, r in said.items()} == {i: f"q{i}/{10 + i}" for i in range(8)}
        assert speaker.usage == Usage(8, 40, 16)
    assert max(map(len, scribe.calls)) == 3
    assert sum(map(len, scribe.calls)) == 8
    assert len(scribe.threads) == 1
    assert scribe.closed == 1


def test_chats_of_other_decoding_are_asked_in_another_call() -> None:
    scribe = Scribe()
    scribe.gate.clear()
    warm = Decoding(max_tokens=8, temperature=0.5, top_p=0.9, top_k=4)
    with Speaker(scribe, rows=16) as speaker:
        threading.Timer(0.3, scribe.gate.set).start()
        asked = [(f"q{i}", warm if i % 2 else SHORT) for i in range(6)]
        list(run_all(asked, lambda a: speaker.say(chat(a[0]), a[1], 0), threads=6))
    for said, decoding in zip(scribe.calls, scribe.decodings, strict=True):
        odd = decoding == (0.5, 0.9, 4)
        assert all(int(text[1:]) % 2 == odd for text in said)


def test_a_chat_that_does_not_fit_fails_alone() -> None:
    scribe = Scribe(lambda text: ContextError("too long") if text == "q2" else None)
    scribe.gate.clear()

    def ask(i: int) -> str:
        try:
            return speaker.say(chat(f"q{i}"), SHORT, i).text
        except ContextError:
            return "full"

    with Speaker(scribe, rows=8) as speaker:
        threading.Timer(0.3, scribe.gate.set).start()
        said = dict(run_all(range(4), ask, threads=4))
        assert said == {0: "q0/0", 1: "q1/1", 2: "full", 3: "q3/3"}
        assert speaker.say(chat("later"), SHORT, 1).text == "later/1"


@pytest.mark.parametrize("error", [ModelError("gone"), ValueError("our own fault")])
def test_every_caller_gets_a_failure(error: Exception) -> None:
    scribe = Scribe(lambda _: error)
    scribe.gate.clear()
    caught: list[str] = []

    def ask(i: int) -> None:
        try:
            speaker.say(chat(str(i)), SHORT, i)
        except (ModelError, ValueError) as failure:
            caught.append(str(failure))

    with Speaker(scribe, rows=2) as speaker:
        threading.Timer(0.3, scribe.gate.set).start()
        list(run_all(range(6), ask, threads=6))
        assert caught == [str(error)] * 6
        if isinstance(error, ModelError):
            with pytest.raises(ModelError, match="gone"):
                speaker.say(chat("later"), SHORT, 1)
            # Once it is known to be gone it is not asked again: those that waited shared two calls at most.
            assert len(scribe.calls) <= 2
        assert speaker.usage == Usage()


def test_after_closing_nothing_is_asked() -> None:
    scribe = Scribe()
    speaker = Speaker(scribe, rows=2)
    speaker.close()
    with pytest.raises(ModelError, match="asked nothing more"):
        speaker.say(chat("x"), SHORT, 1)
    assert scribe.calls == []


def test_an_endpoint_is_asked_by_each_thread_itself(service: Service) -> None:
    def slow(body: dict[str, object]) -> Answer:
        time.sleep(0.1)
        return completion(str(body["seed"]))

    service.answers = [slow]
    with Speaker(EndpointWriter(service.url, "m", concurrency=4), rows=1) as speaker:
        said = dict(run_all(range(8), lambda i: speaker.say(chat("q"), SHORT, i).text, threads=4))
    assert said == {i: str(i) for i in range(8)}
    assert 1 < service.most_at_once <= 4


def test_the_endpoint_is_told_how_to_draw_and_counts_are_taken(service: Service) -> None:
    body = {
        "choices": [{"message": {"content": "x"}}],
        "usage": {"completion_tokens": 3, "prompt_tokens": 11},
    }
    service.answers = [answer(body)]
    drawn = Decoding(max_tokens=5, temperature=0.6, top_p=0.8, top_k=20)
    with Speaker(EndpointWriter(service.url, "m"), rows=1) as speaker:
        speaker.say(chat("q"), drawn, 3)
        assert speaker.usage == Usage(1, 11, 3)
        assert speaker.usage.cost(1.0, 10.0) == pytest.approx(41e-6)
    (asked,) = service.asked
    assert (asked["top_p"], asked["top_k"], asked["temperature"]) == (0.8, 20, 0.6)


@pytest.mark.parametrize(
    "said",
    [
        {"error": {"code": "context_length_exceeded", "message": "too many"}},
        {"error": {"type": "exceed_context_size_error", "message": "x"}},
        {"error": {"message": "the request exceeds the available context size, try increasing it"}},
        {
            "message": "This model's maximum context length is 4096 tokens. However, you requested 5000"
        },
    ],
)
def test_a_chat_that_an_endpoint_finds_too_long(service: Service, said: object) -> None:
    service.answers = [answer(said, 400), completion("fine")]
    with Speaker(EndpointWriter(service.url, "m"), rows=1) as speaker:
        with pytest.raises(ContextError):
            speaker.say(chat("q"), SHORT, 3)
        assert speaker.say(chat("q"), SHORT, 3).text == "fine"


def test_closing_ends_a_request_that_would_take_long(service: Service) -> None:
    release = threading.Event()

    def stuck(body: dict[str, object]) -> Answer:
        release.wait(20)
        return completion()

    service.answers = [stuck]
    speaker = Speaker(EndpointWriter(service.url, "m", timeout=600), rows=1)
    threading.Timer(0.3, speaker.close).start()
    begun = time.monotonic()
    with pytest.raises(ModelError, match="asked nothing more"):
        speaker.say(chat("q"), SHORT, 3)
    assert time.monotonic() - begun < 5
    release.set()


def test_a_failure_ends_what_waits_and_keeps_what_was_done(service: Service) -> None:
    def reply(body: dict[str, object]) -> Answer:
        seed = body["seed"]
        assert isinstance(seed, int)
        if seed == 3:
            time.sleep(0.3)
            return answer({}, 500)
        if seed > 3:
            time.sleep(15)  # would be waited for if requests were not ended
        return completion(str(seed))

    service.answers = [reply]
    speaker = Speaker(EndpointWriter(service.url, "m", max_retries=0), rows=1)
    done: list[int] = []
    begun = time.monotonic()
    work = run_all(
        range(40), lambda i: speaker.say(chat("q"), SHORT, i), threads=6, stop=speaker.close
    )
    with pytest.raises(ModelError, match="answered 500"):
        done.extend(i for i, _ in work)
    assert sorted(done) == [0, 1, 2]
    assert time.monotonic() - begun < 10
    assert len(service.asked) < 12


def test_an_interrupted_loop_leaves_no_thread(service: Service) -> None:
    release = threading.Event()

    def reply(body: dict[str, object]) -> Answer:
        if body["seed"] != 0:
            release.wait(20)
        return completion()

    service.answers = [reply]
    speaker = Speaker(EndpointWriter(service.url, "m"), rows=1)
    work = run_all(
        range(40), lambda i: speaker.say(chat("q"), SHORT, i), threads=4, stop=speaker.close
    )
    begun = time.monotonic()

    def interrupted() -> None:
        with closing(work):
            for _ in work:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert time.monotonic() - begun < 5
    release.set()


def test_items_are_read_as_they_are_worked_off() -> None:
    read: list[int] = []

    def items() -> Iterator[int]:
        for i in range(100):
            read.append(i)
            yield i

    work = run_all(items(), lambda i: i, threads=2)
    next(work)
    assert len(read) <= 5
    assert sorted(i for i, _ in work) == sorted(set(range(100)) - {read[0]}) or len(read) == 100


@pytest.mark.parametrize(
    "bad",
    [
        {"max_tokens": 0},
        {"temperature": -0.1},
        {"temperature": float("nan")},
        {"top_p": 0.0},
        {"top_p": 1.5},
        {"top_k": -1},
    ],
)
def test_decoding_out_of_range_is_refused(bad: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=next(iter(bad))):
        Decoding(**{"max_tokens": 5} | bad)  # type: ignore[arg-type]
