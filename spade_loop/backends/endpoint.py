"""A model behind an OpenAI-compatible endpoint: vLLM, llama.cpp, SGLang, or a hosted model.

The only module that imports `openai`. Its client retries what may pass (timeouts, lost connections, 408, 409, 429, 5xx)
with growing waits, and waits as long as `Retry-After` says. Bodies are read here, without trust: what a proxy answers
in place of the model must not become a design.

Requests are coroutines of one thread that each writer has for itself: closing the writer, or Ctrl-C in a thread that
waits for one, ends them at once, whatever the server does.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import threading
import weakref
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import urlsplit

from spade_loop.completers import JsonSchema, Reply
from spade_loop.errors import ConfigError, ContextError, MissingExtraError, ModelError
from spade_loop.types import Message
from synthgym.ids import did_you_mean

if TYPE_CHECKING:
    import openai

NO_KEY: Final = "none"
"""What is sent as the key where none is needed: the client insists on one."""
NEWER_LIMIT: Final = "max_completion_tokens"
"""What some hosted models call `max_tokens`."""
_SHOWN: Final = 200
"""Characters of an answer that an error quotes."""
_NO_LIST: Final = (404, 405, 501)
"""How servers that cannot list their models say so."""
_TOO_LONG: Final = re.compile(
    r"context_length_exceeded|exceed_context_size|context size|context length|maximum model length",
    re.IGNORECASE,
)
"""How servers say that a chat does not fit: OpenAI and its likes, llama.cpp (twice), vLLM and SGLang, vLLM."""
_Result = TypeVar("_Result")


class EndpointWriter:
    """A `Writer` over HTTP, several requests at a time.

    The model is named as the endpoint names it. A `seed` is sent with every chat; whether the same seed gives the same
    reply again is up to the server.
    """

    concurrent = True

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        api_key_env: str = "",
        timeout: float = 600.0,
        max_retries: int = 4,
        concurrency: int = 8,
    ) -> None:
        """Prepare to talk to `base_url`, which mostly ends in `/v1`; nothing is sent yet.

        `api_key_env` names the environment variable that holds the key, so that no recipe holds one; empty for
        servers that want none. `timeout` is in seconds and counts for each try. `ConfigError` when an argument is out
        of range, `ModelError` when the variable is not set, `MissingExtraError` without the package `openai`.
        """
        _check(base_url, timeout, max_retries, concurrency)
        self.name = model
        self._url = base_url
        self._variable = api_key_env
        self._key = _key(api_key_env)
        self._timeout = timeout
        self._tries = max_retries + 1
        self._limit_name = "max_tokens"
        self._client = _client(base_url, self._key, timeout, max_retries)
        self._slots = asyncio.Semaphore(concurrency)
        self._thread = _LoopThread(self._client.close)

    def write(  # noqa: PLR0913 -- how a reply is drawn, all by name
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
        """One reply to each chat, in order; tokens are 0 where the server does not count them. From any thread.

        A schema is sent as `response_format`. `top_p` and `top_k` are sent where they leave out anything; `top_k` is
        none of OpenAI's, and is named as vLLM, SGLang and llama.cpp name it. `ModelError` names the endpoint and what
        came instead of a reply, `ContextError` that the server finds a chat too long; the other requests of the call
        are then dropped.
        """
        common: dict[str, Any] = {"model": self.name, "temperature": temperature}
        common |= ({"top_p": top_p} if top_p < 1.0 else {}) | (
            {"top_k": top_k} if top_k > 0 else {}
        )
        if schema is not None:
            form = {"name": "design", "schema": dict(schema), "strict": True}
            common["response_format"] = {"type": "json_schema", "json_schema": form}
        bodies = [
            common
            | {"seed": seed, "messages": [{"role": m.role, "content": m.content} for m in chat]}
            for chat, seed in zip(chats, seeds, strict=True)
        ]
        return self._wait(self._replies(bodies, max_tokens))

    def check(self) -> None:
        """Refuse an endpoint that does not answer, or does not serve the model. `ModelError` says what to do.

        A server that cannot list its models passes.
        """
        served = self._wait(self._served())
        if served is not None and self.name not in served:
            raise ModelError(self._not_served(served))

    def close(self) -> None:
        """Close the connections; whoever waits for a reply gets a `ModelError`."""
        self._thread.stop()

    def _wait(self, work: Coroutine[Any, Any, _Result]) -> _Result:
        try:
            return self._thread.run(work)
        except CancelledError:
            raise ModelError(f"{self._who} is asked nothing more") from None

    async def _replies(self, bodies: Sequence[Mapping[str, Any]], max_tokens: int) -> list[Reply]:
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._reply(body, max_tokens)) for body in bodies]
        except* ModelError as errors:
            raise errors.exceptions[0] from None
        return [task.result() for task in tasks]

    async def _reply(self, body: Mapping[str, Any], max_tokens: int) -> Reply:
        async with self._slots:
            return await self._answer(body, max_tokens)

    async def _answer(self, body: Mapping[str, Any], max_tokens: int) -> Reply:
        import openai

        limit = self._limit_name
        try:
            return self._read(await self._ask({**body, limit: max_tokens}))
        except openai.BadRequestError as error:
            # Newer hosted models want the limit under another name, and say so.
            if limit == NEWER_LIMIT or NEWER_LIMIT not in str(error):
                failure = ContextError if _TOO_LONG.search(error.response.text) else ModelError
                raise failure(self._told(error)) from error
            self._limit_name = NEWER_LIMIT
            return await self._answer(body, max_tokens)
        except openai.NotFoundError as error:
            served = await self._served()
            if served is None or self.name in served:
                raise ModelError(f"{self._told(error)}; does the address end in /v1?") from error
            raise ModelError(self._not_served(served)) from error
        except openai.APIError as error:
            raise ModelError(self._told(error)) from error

    async def _ask(self, body: dict[str, Any]) -> bytes:
        # What is none of OpenAI's is an unknown argument to its client.
        extra = {"top_k": body.pop("top_k")} if "top_k" in body else None
        create = self._client.chat.completions.with_raw_response.create
        content: bytes = (await create(**body, extra_body=extra)).http_response.content
        return content

    def _read(self, content: bytes) -> Reply:
        """The first choice of a body."""
        try:
            data = json.loads(content)
        except (ValueError, RecursionError) as error:
            raise ModelError(
                f"{self._who} answered what is not JSON: {self._quoted(content)}"
            ) from error
        choices = data.get("choices") if isinstance(data, dict) else None
        if not isinstance(choices, list) or not choices:
            what = "no choices" if choices == [] else "something that is no chat completion"
            raise ModelError(f"{self._who} answered with {what}: {self._quoted(content)}")
        choice = choices[0] if isinstance(choices[0], dict) else {}
        message = choice.get("message")
        text = message.get("content") if isinstance(message, dict) else 0
        if text is not None and not isinstance(text, str):
            raise ModelError(
                f"{self._who} answered with a choice without text: {self._quoted(content)}"
            )
        return Reply(
            text=text or "",  # null: everything went into thinking
            tokens=_counted(data, "completion_tokens"),
            stopped=choice.get("finish_reason") != "length",
            prompt_tokens=_counted(data, "prompt_tokens"),
        )

    async def _served(self) -> tuple[str, ...] | None:
        """Ids of the models that the endpoint lists; None when it cannot."""
        import openai

        try:
            listing = await self._client.models.with_raw_response.list()
            listed = json.loads(listing.http_response.content)["data"]
            return tuple(str(item["id"]) for item in listed)
        except openai.APIStatusError as error:
            if error.status_code in _NO_LIST:
                return None
            raise ModelError(self._told(error)) from error
        except openai.APIError as error:
            raise ModelError(self._told(error)) from error
        except (ValueError, KeyError, TypeError, RecursionError):
            return None

    def _not_served(self, served: Sequence[str]) -> str:
        names = ", ".join(served[:10]) or "none"
        nearest = did_you_mean(self.name, served)
        return f"{self._who} does not serve {self.name!r}{nearest} (it lists: {names})"

    def _told(self, error: openai.APIError) -> str:
        """What a failure of the client means, and what to do."""
        import openai

        tries = f"{self._tries} tries" if self._tries > 1 else "one try"
        if isinstance(error, openai.APITimeoutError):
            late = f"did not answer within {self._timeout:g} s"
            return f"{self._who} {late} ({tries}): raise the timeout, or ask for less at a time"
        if isinstance(error, openai.APIConnectionError):
            cause = error.__cause__ or error
            return f"{self._who} cannot be reached ({tries}): {self._quoted(str(cause))}"
        if not isinstance(error, openai.APIStatusError):
            return f"{self._who} failed: {self._quoted(str(error))}"
        said = self._quoted(error.response.text)
        if error.status_code in (401, 403):
            key = f"the key in ${self._variable}" if self._variable else "a request without a key"
            return f"{self._who} refused {key} ({error.status_code}): {said}"
        if error.status_code == 429:
            return f"{self._who} is at its rate limit after {tries}: ask for fewer at a time, or retry longer: {said}"
        after = f" after {tries}" if error.status_code >= 500 else ""
        return f"{self._who} answered {error.status_code}{after}: {said}"

    def _quoted(self, said: str | bytes) -> str:
        """The beginning of what a server said, without the key that some servers repeat."""
        text = said.decode("utf-8", "replace") if isinstance(said, bytes) else said
        if self._key != NO_KEY:
            text = text.replace(self._key, "***")
        flat = " ".join(text.split())
        return repr(flat if len(flat) <= _SHOWN else f"{flat[: _SHOWN - 1]}…")

    @property
    def _who(self) -> str:
        return f"the endpoint {self._url}"


def _check(base_url: str, timeout: float, max_retries: int, concurrency: int) -> None:
    address = urlsplit(base_url)
    if address.scheme not in ("http", "https") or not address.hostname:
        raise ConfigError(
            f"an endpoint is an address such as http://host:8000/v1, got {base_url!r}"
        )
    if address.username or address.password:
        raise ConfigError(
            "the address of an endpoint holds a user or a password: put the key in an environment variable, "
            "and give the name of the variable"
        )
    if not timeout > 0 or max_retries < 0 or concurrency < 1:
        raise ConfigError(
            "timeout must be above 0, max_retries at least 0 and concurrency at least 1, "
            f"got {timeout!r}, {max_retries!r} and {concurrency!r}"
        )


def _key(variable: str) -> str:
    if not variable:
        return NO_KEY
    key = os.environ.get(variable, "")
    if not key:
        raise ModelError(
            f"the environment variable {variable} is not set: put the endpoint's key in it"
        )
    return key


class _LoopThread:
    """A thread with an event loop, begun when it is first needed. Ends with `stop`, or with this object."""

    def __init__(self, close: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._close = close
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopped = False
        self._end: Any = None

    def run(self, work: Coroutine[Any, Any, _Result]) -> _Result:
        """What `work` returns or raises; it is cancelled with this thread's wait. `CancelledError` after `stop`."""
        with self._lock:
            if self._stopped:
                work.close()
                raise CancelledError
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                thread = threading.Thread(
                    target=_serve, args=[self._loop, self._close], name="endpoint", daemon=True
                )
                thread.start()
                self._end = weakref.finalize(self, _end, self._loop, thread)
            future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        finally:
            future.cancel()

    def stop(self) -> None:
        """Cancel what is under way, and wait for the thread."""
        with self._lock:
            self._stopped = True
        if self._end is not None:
            self._end()


def _serve(loop: asyncio.AbstractEventLoop, close: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        loop.run_until_complete(close())
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        loop.close()


def _end(loop: asyncio.AbstractEventLoop, thread: threading.Thread) -> None:
    loop.call_soon_threadsafe(loop.stop)
    thread.join()


def _counted(data: Mapping[str, Any], name: str) -> int:
    """Tokens as a body counts them; 0 where it does not."""
    usage = data.get("usage")
    tokens = usage.get(name) if isinstance(usage, dict) else None
    return tokens if isinstance(tokens, int) else 0


def _client(base_url: str, key: str, timeout: float, max_retries: int) -> openai.AsyncOpenAI:
    try:
        import openai
    except ImportError as error:
        raise MissingExtraError(
            "an endpoint needs the package openai: pip install 'synthgym[endpoint]'"
        ) from error
    return openai.AsyncOpenAI(
        base_url=base_url, api_key=key, timeout=timeout, max_retries=max_retries
    )
