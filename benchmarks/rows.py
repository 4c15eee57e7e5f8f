"""What a benchmark found: one row of the table."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

OURS = "virtualzarr_refs"


class ResultsDifferError(AssertionError):
    """Two subjects of a benchmark gave different values, so that their times mean nothing."""


@dataclass(frozen=True, slots=True)
class Row:
    """A figure of ours beside those of the peers.

    Parameters
    ----------
    suite, case : str
        What was done, and to what.
    unit : str
        Of all figures: ``"s"``, ``"MB"``, ``"requests"``. Less is better.
    ours : float
        Our figure.
    peers : mapping of str to float
        The figures of each peer that is installed and could do it.
    ratios : mapping of str to float
        How many times more a peer should take than we do.
    limit : float, optional
        What our figure should be at most.
    notes : tuple of str
        What a reader of the table has to know: a peer that failed, say.
    """

    suite: str
    case: str
    unit: str
    ours: float
    peers: Mapping[str, float] = field(default_factory=dict[str, float])
    ratios: Mapping[str, float] = field(default_factory=dict[str, float])
    limit: float | None = None
    notes: tuple[str, ...] = ()

    def ratio(self, peer: str) -> float:
        """How many times more a peer takes than we do."""
        return self.peers[peer] / self.ours if self.ours else float("inf")

    @property
    def is_met(self) -> bool | None:
        """Whether every target that could be measured is met; None where there is none."""
        verdicts = [self.ratio(peer) >= target for peer, target in self.ratios.items() if peer in self.peers]
        verdicts += [] if self.limit is None else [self.ours <= self.limit]
        return all(verdicts) if verdicts else None

    def to_json(self) -> dict[str, Any]:
        """The row as a document, its ratios to the peers and its verdict included."""
        times = {peer: round(self.ratio(peer), 3) for peer in self.peers}
        return asdict(self) | {"times_ours": times, "is_met": self.is_met}


@dataclass(frozen=True, slots=True)
class Race:
    """The same work, done by several subjects.

    Parameters
    ----------
    suite, case : str
        See `Row`.
    subjects : mapping of str to callable
        How each does it; `OURS` is among them. What they return is compared.
    ratios : mapping of str to float
        See `Row`.
    same : callable
        Whether a subject's result agrees with ours.
    rounds : int
        How often each takes its turn; the best time counts, which disturbances only ever make longer.
    limit : float, optional
        See `Row`, in seconds.
    """

    suite: str
    case: str
    subjects: Mapping[str, Callable[[], Any]]
    same: Callable[[Any, Any], bool]
    ratios: Mapping[str, float] = field(default_factory=dict[str, float])
    rounds: int = 5
    limit: float | None = None

    def run(self) -> Row:
        """Let the subjects take turns.

        Raises
        ------
        ResultsDifferError
            If one gives other values than we do.
        """
        results, notes = self._check()
        best = dict.fromkeys(results, float("inf"))
        for _ in range(self.rounds):
            for name in results:
                best[name] = min(best[name], _timed(self.subjects[name]))
        return Row(self.suite, self.case, "s", best.pop(OURS), best, self.ratios, self.limit, notes)

    def _check(self) -> tuple[list[str], tuple[str, ...]]:
        """The subjects that can do it, after one turn each, which also warms what is cached."""
        ours, able, notes = self.subjects[OURS](), [OURS], list[str]()
        for name in self.subjects.keys() - {OURS}:
            try:
                theirs = self.subjects[name]()
            except Exception as error:  # noqa: BLE001  a peer may fail in any way, which is a result too
                notes.append(f"{name} fails: {type(error).__name__}: {error!s:.100}")
                continue
            if not self.same(ours, theirs):
                raise ResultsDifferError(f"{self.suite} {self.case}: {name} gives other values")
            able.append(name)
        return able, tuple(notes)


def run_all(races: Iterable[Race]) -> Iterable[Row]:
    """The rows of several races, one by one as they end."""
    return (race.run() for race in races)


def _timed(work: Callable[[], Any]) -> float:
    """Seconds that it takes, the release of the result not included."""
    gc.collect()
    start = time.perf_counter()
    result = work()
    seconds = time.perf_counter() - start
    del result
    return seconds
