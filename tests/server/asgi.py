"""A client that calls an ASGI application in this process."""

import asyncio
import json
from dataclasses import dataclass, field
from urllib.parse import unquote


@dataclass
class Answer:
    """What an application sent. It is complete unless the application broke off."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    blocks: list[bytes] = field(default_factory=list)
    is_complete: bool = False

    @property
    def body(self):
        return b"".join(self.blocks)

    def json(self):
        assert self.headers["content-type"] == "application/json"
        return json.loads(self.body)

    def json_or_body(self):
        """The parsed body of JSON without the path of a listing; else the bytes."""
        if self.headers["content-type"] != "application/json":
            return self.body
        return {name: value for name, value in self.json().items() if name != "path"}


class Client:
    """Asks an application as one client would."""

    def __init__(self, app, on_block=lambda: None):
        self.app = app
        self.on_block = on_block

    def get(self, path, **fields):
        return self.request("GET", path, **fields)

    def head(self, path, **fields):
        return self.request("HEAD", path, **fields)

    def request(self, method, path, *, blocks=None, **fields):
        """Ask for an escaped path; go away once `blocks` blocks are received, if that is given."""
        return asyncio.run(self._request(method, path, blocks, fields))

    async def _request(self, method, path, blocks, fields):
        answer = Answer()

        async def receive():
            if blocks is not None and len(answer.blocks) >= blocks:
                return {"type": "http.disconnect"}
            return await asyncio.Future()

        async def send(message):
            if message["type"] == "http.response.start":
                answer.status = message["status"]
                answer.headers = {name.decode(): value.decode() for name, value in message["headers"]}
            else:
                answer.blocks.append(bytes(message.get("body", b"")))
                answer.is_complete = not message.get("more_body", False)
                self.on_block()

        headers = [(name.replace("_", "-").encode(), value.encode("latin-1")) for name, value in fields.items()]
        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "method": method,
            "path": unquote(path),
            "raw_path": path.encode(),
            "query_string": b"",
            "headers": headers,
        }
        await self.app(scope, receive, send)
        return answer
