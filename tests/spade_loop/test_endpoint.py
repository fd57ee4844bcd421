"""Designers behind HTTP: a real server on this machine that answers as servers do, well and badly."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from openai_service import Answer, Service, answer, completion, serving

from spade_loop.backends.endpoint import EndpointWriter
from spade_loop.completers import Reply, Writer
from spade_loop.errors import ConfigError, ModelError
from spade_loop.types import Message

pytest.importorskip("openai")

CHAT = (Message("system", "You design."), Message("user", "Design."))


@pytest.fixture
def service() -> Iterator[Service]:
    with serving() as made:
        yield made


@pytest.fixture
def connect(service: Service) -> Iterator[Callable[..., EndpointWriter]]:
    made: list[EndpointWriter] = []

    def connect(model: str = "qwen-coder", **settings: Any) -> EndpointWriter:
        made.append(
            EndpointWriter(service.url, model, **{"max_retries": 0, "timeout": 20.0} | settings)
        )
        return made[-1]

    yield connect
    for writer in made:
        writer.close()


def write(writer: Writer, chats: int = 1, schema: dict[str, Any] | None = None) -> list[Reply]:
    seeds = range(7, 7 + chats)
    return writer.write([CHAT] * chats, max_tokens=90, temperature=0.5, seeds=seeds, schema=schema)


def test_what_is_asked_and_what_comes_back(
    service: Service, connect: Callable[..., EndpointWriter]
) -> None:
    assert write(connect()) == [Reply("Hello.", 3, stopped=True)]
    (asked,) = service.asked
    assert asked == {
        "model": "qwen-coder",
        "messages": [
            {"role": "system", "content": "You design."},
            {"role": "user", "content": "Design."},
        ],
        "max_tokens": 90,
        "temperature": 0.5,
        "seed": 7,
    }


def test_a_schema_is_sent_as_the_format_of_the_reply(
    service: Service, connect: Callable[..., EndpointWriter]
) -> None:
    schema = {"type": "object"}
    write(connect(), schema=schema)
    form = service.asked[0]["response_format"]
    assert form["type"] == "json_schema"
    assert form["json_schema"]["schema"] == schema


def test_replies_come_in_the_order_of_the_chats_however_long_each_takes(
    service: Service, connect: Callable[..., EndpointWriter]
) -> None:
    def late(body: dict[str, Any]) -> Answer:
        time.sleep(0.05 * (10 - body["seed"]))
        return completion(f"seed {body['seed']}")

    service.answers = [late]
    replies = write(connect(concurrency=3), chats=3)
    assert [reply.text for reply in replies] == ["seed 7", "seed 8", "seed 9"]
    assert 1 < service.most_at_once <= 3


def test_no_more_requests_are_under_way_than_allowed(
    service: Service, connect: Callable[..., EndpointWriter]
) -> None:
    def slow(body: dict[str, Any]) -> Answer:
        time.sleep(0.03)
        return completion()

    service.answers = [slow]
    assert len(write(connect(concurrency=2), chats=7)) == 7
    assert service.most_at_once == 2


@pytest.mark.parametrize(
    ("reason", "text", "reply"),
    [
        ("length", "Hel", Reply("Hel", 3, stopped=False)),
        ("length", None, Reply("", 3, stopped=False)),
        ("stop", None, Reply("", 3, stopped=True)),
    ],
)
def test_a_reply_that_the_limit_cut_says_so(
    service: Service,
    connect: Callable[..., EndpointWriter],
    reason: str,
    text: str | None,
    reply: Reply,
) -> None:
    service.answers = [completion(text, reason)]
    assert write(connect()) == [reply]


def test_a_server_that_counts_no_tokens_is_read(
    service: Service, connect: Callable[..., EndpointWriter]
) -> None:
    service.answers = [answer({"choices": [{"message": {"content": "x"}}]})]
    assert write(connect()) == [Reply("x", 0, stopped=True)]


def test_a_rate_limit_is_waited_for_as_long_as_the_server_says(
    service: Service, connect: Callable[..., EndpointWriter]
) -> None:
    service.answers = [answer({}, 429, Retry_After="1.5"), completion()]
    assert write(connect(max_retries=1))[0].text == "Hello."
    first, second = service.times
    assert 1.4 < second - first < 10  # without the header it is half a second


def test_a_failing_server_is_tried_again(
    service: Service, connect: Callable[..., EndpointWriter]
) -> None:
    service.answers = [answer(b"oops", 500), answer({}, 503), completion()]
    assert write(connect(max_retries=2))[0].text == "Hello."
    assert len(service.asked) == 3


def test_a_lost_connection_is_tried_again(
    service: Service, connect: Callable[..., EndpointWriter]
) -> None:
    service.answers = [answer(b'{"choices"', Content_Length="500"), completion()]
    assert write(connect(max_retries=1))[0].text == "Hello."


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (answer({}, 429), r"is at its rate limit after one try"),
        (answer({"error": "boom"}, 500), r"answered 500 after one try: .*boom"),
        (answer({"error": "no such context"}, 400), r"answered 400: .*no such context"),
        (answer({"error": "who are you"}, 401), r"refused a request without a key \(401\)"),
        (answer(b"<html>proxy</html>"), r"answered what is not JSON: '<html>proxy</html>'"),
        (answer(b'{"choices": [{"mess'), r"answered what is not JSON"),
        (answer(b"[" * 100_000), r"answered what is not JSON"),
        (answer({"choices": []}), r"answered with no choices"),
        (answer([1]), r"something that is no chat completion"),
        (answer({"object": "error"}), r"something that is no chat completion"),
        (answer({"choices": [5]}), r"a choice without text"),
        (answer({"choices": [{"message": {"content": 5}}]}), r"a choice without text"),
        (answer(b"half", Content_Length="500"), r"cannot be reached \(one try\)"),
    ],
)
def test_what_is_no_reply_is_an_error_that_names_the_endpoint(
    service: Service, connect: Callable[..., EndpointWriter], bad: Answer, message: str
) -> None:
    service.answers = [bad]
    with pytest.raises(ModelError, match=message) as caught:
        write(connect())
    assert service.url in str(caught.value)
    assert len(str(caught.value)) < 500


def test_a_server_that_takes_too_long_is_named_with_the_limit(
    service: Service, connect: Callable[..., EndpointWriter]
) -> None:
    def never(body: dict[str, Any]) -> Answer:
        time.sleep(2)
        return completion()

    service.answers = [never]
    with pytest.raises(ModelError, match=r"did not answer within 0\.2 s \(2 tries\)"):
        write(connect(timeout=0.2, max_retries=1))


def test_an_error_drops_the_chats_that_wait(
    service: Service, connect: Callable[..., EndpointWriter]
) -> None:
    service.answers = [answer({}, 400)]
    with pytest.raises(ModelError, match="answered 400"):
        write(connect(concurrency=1), chats=50)
    assert len(service.asked) < 50


def test_an_endpoint_that_is_not_there(service: Service) -> None:
    url = service.url
    service.server.server_close()
    writer = EndpointWriter(url, "m", max_retries=0)
    with pytest.raises(ModelError, match="cannot be reached"):
        writer.check()
    writer.close()


def test_a_model_that_is_not_served_is_named_with_the_nearest(
    service: Service, connect: Callable[..., EndpointWriter]
) -> None:
    message = r"does not serve 'qwen-codr'.*qwen-coder.*it lists: qwen-coder, other"
    with pytest.raises(ModelError, match=message):
        connect("qwen-codr").check()
    service.answers = [answer({"error": {"message": "no model"}}, 404)]
    with pytest.raises(ModelError, match=message):
        write(connect("qwen-codr"))
    connect().check()


@pytest.mark.parametrize(
    "models", [answer({}, 404), answer(b"hm"), answer({"data": 3}), answer({"data": [{}]})]
)
def test_a_server_that_lists_no_models_passes(
    service: Service, connect: Callable[..., EndpointWriter], models: Answer
) -> None:
    service.models = models
    connect("any").check()


def test_a_wrong_path_is_told_as_such(
    service: Service, connect: Callable[..., EndpointWriter]
) -> None:
    service.answers = [answer({}, 404)]
    with pytest.raises(ModelError, match=r"answered 404.*does the address end in /v1\?"):
        write(connect())


def test_the_newer_name_of_the_limit_is_found_out_once(
    service: Service, connect: Callable[..., EndpointWriter]
) -> None:
    def newer(body: dict[str, Any]) -> Answer:
        if "max_tokens" in body:
            return answer({"error": {"message": "use 'max_completion_tokens' instead"}}, 400)
        return completion()

    service.answers = [newer]
    writer = connect(concurrency=1)
    assert len(write(writer, chats=3)) == 3
    assert [body.get("max_completion_tokens") for body in service.asked] == [None, 90, 90, 90]


def test_the_key_comes_from_a_variable_and_is_in_no_message(
    service: Service, connect: Callable[..., EndpointWriter], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEST_ENDPOINT_KEY", "sk-secret-1")
    service.answers = [answer({"error": "bad key sk-secret-1"}, 401)]
    with pytest.raises(ModelError, match=r"refused the key in \$TEST_ENDPOINT_KEY") as caught:
        write(connect(api_key_env="TEST_ENDPOINT_KEY"))
    assert "sk-secret" not in str(caught.value)
    assert service.keys == ["Bearer sk-secret-1"]
    monkeypatch.delenv("TEST_ENDPOINT_KEY")
    with pytest.raises(ModelError, match="TEST_ENDPOINT_KEY is not set"):
        connect(api_key_env="TEST_ENDPOINT_KEY")


@pytest.mark.parametrize(
    ("url", "settings", "message"),
    [
        ("localhost:8000/v1", {}, "an address such as"),
        ("file:///etc", {}, "an address such as"),
        ("http://me:secret@host/v1", {}, "holds a user or a password"),
        ("http://host/v1", {"timeout": 0}, "timeout must be above 0"),
        ("http://host/v1", {"max_retries": -1}, "max_retries at least 0"),
        ("http://host/v1", {"concurrency": 0}, "concurrency at least 1"),
    ],
)
def test_a_wrong_argument_is_refused(url: str, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        EndpointWriter(url, "m", **settings)
    assert "secret" not in str(caught.value)
