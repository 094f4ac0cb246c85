"""A client of Headgate's decision API, with nothing but the standard library.

    limits = Headgate("http://127.0.0.1:8082")
    decision = limits.check(["user:42", "ip:192.0.2.1"], method="POST", path="/login")
    if not decision.allowed:
        return decision.status, decision.headers

A connection is kept for each thread. When the API does not answer in time, `check` and `peek` return a decision that lets
the request pass (or rejects it, with `fail_open=False`): a limiter that is down must not take the service down. Only
`open_per_second` requests pass so in a second, because a client may be the reason why the API does not answer in time.
"""

import http.client
import json
import threading
import time
import urllib.parse
from dataclasses import dataclass, field
from typing import Any, Mapping, Optional, Sequence, Union

Subject = Union[str, Mapping[str, str]]


@dataclass(frozen=True)
class Decision:
    """What the API decided. `status` and `headers` are ready for the response; `raw` is all that it said."""

    allowed: bool
    status: int
    headers: Mapping[str, str]
    source: str
    retry_after_ms: Optional[float]
    reference: Optional[str] = None
    raw: Mapping[str, Any] = field(default_factory=dict)


class HeadgateError(Exception):
    """The API rejected a request: `status`, and the `field` that is wrong where it is one."""

    def __init__(self, status: int, detail: str, field_name: Optional[str]):
        super().__init__(detail)
        self.status = status
        self.field = field_name


class Headgate:
    def __init__(
        self,
        url: str = "http://127.0.0.1:8082",
        *,
        token: Optional[str] = None,
        timeout: float = 0.2,
        fail_open: bool = True,
        open_per_second: float = 50,
    ):
        parts = urllib.parse.urlsplit(url)
        self._address = parts.netloc
        self._token = token
        self._timeout = timeout
        self._fail_open = fail_open
        self._open_per_second = open_per_second
        self._local = threading.local()
        self._lock = threading.Lock()
        self._tokens, self._refilled_at = open_per_second, time.monotonic()

    def check(self, subject: Union[Subject, Sequence[Subject]], **facts: Any) -> Decision:
        """Charges a request: by `policy` or `tier`, or by the rules with `method` and `path`."""
        return self._decide("/v1/check", subject, facts)

    def peek(self, subject: Union[Subject, Sequence[Subject]], **facts: Any) -> Decision:
        """Says what `check` would and changes nothing."""
        return self._decide("/v1/peek", subject, facts)

    def refund(self, reference: str, units: Optional[int] = None) -> int:
        """Gives back what a check with `refundable=True` charged; returns the units that came back."""
        body = {"reference": reference, **({} if units is None else {"units": units})}
        return self._call("/v1/refund", body)["refunded"]

    def _decide(self, path: str, subject: Any, facts: Mapping[str, Any]) -> Decision:
        try:
            said = self._call(path, {"subject": subject, **facts})
        except (OSError, http.client.HTTPException):
            return self._undecided()
        return Decision(
            allowed=said["allowed"],
            status=said["status"],
            headers=said["headers"],
            source=said["source"],
            retry_after_ms=said["retryAfterMs"],
            reference=said.get("reference"),
            raw=said,
        )

    def _undecided(self) -> Decision:
        if self._fail_open and self._take_token():
            return Decision(True, 200, {}, "open", 0)
        return Decision(False, 503, {"Retry-After": "1"}, "closed", 1000)

    def _take_token(self) -> bool:
        with self._lock:
            now = time.monotonic()
            refilled = self._tokens + (now - self._refilled_at) * self._open_per_second
            self._tokens, self._refilled_at = min(self._open_per_second, refilled), now
            if self._tokens < 1:
                return False
            self._tokens -= 1
            return True

    def _call(self, path: str, body: Mapping[str, Any]) -> Any:
        connection = getattr(self._local, "connection", None)
        if connection is None:
            connection = http.client.HTTPConnection(self._address, timeout=self._timeout)
            self._local.connection = connection
        headers = {"Content-Type": "application/json"}
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        try:
            connection.request("POST", path, json.dumps(body), headers)
            response = connection.getresponse()
            said = json.loads(response.read())
        except (OSError, http.client.HTTPException):
            # What comes late must not be taken for the answer to the next question.
            connection.close()
            self._local.connection = None
            raise
        if response.status != 200:
            raise HeadgateError(response.status, said.get("detail", ""), said.get("field"))
        return said
