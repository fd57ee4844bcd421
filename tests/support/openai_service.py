"""An OpenAI-compatible endpoint on this machine whose answers come from a list: for tests of what talks to one."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MODELS = {"data": [{"id": "qwen-coder"}, {"id": "other"}]}
Answer = tuple[int, dict[str, str], bytes]


def answer(body: object, status: int = 200, **headers: str) -> Answer:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return status, {"Content-Type": "application/json"} | named, raw


def completion(text: str | None = "Hello.", reason: str = "stop", tokens: int = 3) -> Answer:
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "message": message, "finish_reason": reason}
    return answer({"choices": [choice], "usage": {"completion_tokens": tokens}})


class Service:
    """An endpoint whose answers come from a list; the last one stays."""

    def __init__(self) -> None:
        self.answers: list[Answer | Callable[[dict[str, Any]], Answer]] = [completion()]
        self.models: Answer = answer(MODELS)
        self.asked: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.times: list[float] = []
        self.at_once = self.most_at_once = 0
        self._lock = threading.Lock()
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._send(service.models)

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                service.keys.append(self.headers["Authorization"])
                with service._lock:
                    service.at_once += 1
                    service.most_at_once = max(service.most_at_once, service.at_once)
                self._send(service._next(body))
                with service._lock:
                    service.at_once -= 1

            def _send(self, reply: Answer) -> None:
                status, headers, raw = reply
                self.send_response(status)
                for name, value in ({"Content-Length": str(len(raw))} | headers).items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(raw)

            def log_message(self, format: str, *args: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request: Any, client_address: Any) -> None:
                pass  # a client that no longer waits

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/v1"

    def _next(self, body: dict[str, Any]) -> Answer:
        with self._lock:
            self.asked.append(body)
            self.times.append(time.monotonic())
            chosen = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return chosen(body) if callable(chosen) else chosen


@contextmanager
def serving() -> Iterator[Service]:
    """A service that answers until the block ends."""
    made = Service()
    thread = threading.Thread(target=made.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield made
    finally:
        made.server.shutdown()
        thread.join()
        made.server.server_close()
