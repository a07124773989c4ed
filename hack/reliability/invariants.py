"""What must hold, by number; a test that shows it carries the number in its name.

R list and watch, I store and informer, Q work queue, E ownership and consistency, L leader election, T transport.
"""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TEST_DIRECTORIES = ("test/unit", "test/contract")
CHAPTERS = {
    "R": "List and watch",
    "I": "Store and informer",
    "Q": "Work queue",
    "E": "Ownership and consistency",
    "L": "Leader election",
    "T": "Transport",
}

TITLES: Mapping[str, str] = {
    "R1": "The first list requests version 0, and each later list requests the last seen version, so the cache never goes back",
    "R2": "If the version of a list has expired, the list is repeated at once at the newest version; it is not repeated in other cases",
    "R3": "If the server has not reached the requested version yet, the list is repeated at once at the newest version",
    "R4": "A 410 in a watch causes exactly one list, at the last version seen",
    "R5": "After a watch ends normally, a new watch continues from its last version, without a list",
    "R6": "A watch that ends at once without an event is repeated with back-off",
    "R7": "After a refused connection or a 429, the watch is repeated after a pause, without a list",
    "R8": "Internal errors in a watch first cause new watches, and after a while a list",
    "R9": "The back-off doubles from 0.8 s to 30 s, with jitter, and is reset after two healthy minutes",
    "R10": "Each watch requests a random duration of 5 to 10 minutes, and is closed if the server does not end it in time",
    "R11": "Each kind of event advances the version. If no version is known yet, this starts after all initial objects have arrived",
    "R12": "A bookmark advances the version and changes nothing else",
    "R13": "An invalid event is skipped; an answer that is not a list is an error",
    "R14": "A relist is applied completely or not at all",
    "R15": "Pages have 500 objects; after an expired continuation, one full list follows at the version of the first page",
    "R16": "A list at a known version has no page limit, unless the server has shown that it pages lists at version 0",
    "R17": "A watch-list takes effect only when its end bookmark has arrived; then the stream continues",
    "R18": "A watch-list that breaks before its end bookmark starts again; a watch-list that breaks later continues as a watch",
    "R19": "If a server does not support watch-lists, a list and a watch follow in the same pass",
    "R20": "A stop takes effect promptly at any time and closes the stream, and no event is delivered after it",
    "R21": "No failure ends the loop, and each failure is reported",
    "R22": "A stream that falls silent is closed, and a new watch starts",
    "I23": "The deletion of an object during a gap is reported with the object's last known state",
    "I24": "A replace reports one change for each key, deletions first",
    "I25": "If an object was deleted and recreated during a gap, one update with a new UID may report it",
    "I26": "The store contains a change before any handler receives it",
    "I27": "A handler never receives an older state of an object after a newer one",
    "I28": "Indexes reflect every change, and contain no deleted objects",
    "I29": "The store reports the version to which it is synchronised",
    "I30": "Synced means that the whole first list is in the store",
    "I31": "A handler is synced when it has received the whole first list",
    "I32": "A handler that is added late receives each stored object once, and misses no change",
    "I33": "A removed handler is not called again",
    "I34": "A resync reports stored objects again without a request, and skips objects with a pending change",
    "I35": "If a handler raises an exception, it loses one item; other handlers are not affected",
    "I36": "A slow handler delays nothing else, and its backlog is measured",
    "I37": "An informer runs only once, then rejects handlers, and leaves no task behind",
    "I38": "Stored objects are never modified",
    "I39": "After any disruption, the changes that handlers received add up to the real difference",
    "Q40": "Any number of adds of a queued key cause one run",
    "Q41": "A key is never processed by two workers at the same time; adds during a run cause exactly one more run",
    "Q42": "Keys of a namespace are processed in FIFO order, and the queue keeps no data about a finished key",
    "Q43": "After a shutdown, adds are dropped and queued keys are processed; then the workers end",
    "Q44": "No namespace occupies all workers, and namespaces take turns",
    "Q45": "A delayed key never arrives early; if a key has two delays, the earlier one applies",
    "Q46": "The delay of a key doubles with each failure up to a limit; a reset affects only that key",
    "Q47": "A token bucket for each namespace limits its retries; the longest delay applies",
    "Q48": "Success resets the delay, a failed key is requeued with a rate limit, and each key is always returned to the queue",
    "Q49": "Depth, adds, latency, processing time, unfinished work and retries are measured",
    "E50": "The answer to a write determines the version to wait for, so after a failed write there is no wait",
    "E51": "Until the caches show our own writes, no further write is sent; this wait always ends",
    "E52": "After a deletion, the server's answer determines the wait: one for an object that is being deleted, none for a deleted one",
    "E53": "The records about the writes of a job are deleted with the job, and a new job with the same name inherits none of them",
    "E54": "Before a child is read from the caches, the caches are checked to be recent enough",
    "E55": "No job is evaluated until every cache shows the last write for this job",
    "E56": "Creations are sent in growing batches, and stop after the first batch with a rejected creation",
    "E57": "Objects of another controller are neither changed nor deleted; namespace, group, kind and UID identify an owner",
    "E58": "If a name is taken, the object is read: our own counts as created, an old job's causes a wait, any other is reported",
    "E59": "Deleting a missing object succeeds; a namespace that is being deleted does not cause a flood of requests",
    "L60": "Lease durations that cannot prevent two simultaneous leaders are rejected",
    "L61": "A replica takes a Lease when it is free, or when it has not changed for its duration, measured on the replica's clock",
    "L62": "If the request of a replica is rejected, the replica does not lead, and retries after a pause with jitter",
    "L63": "A takeover increments the number of transitions and keeps unknown fields; a renewal changes only its time",
    "L64": "Without a renewal, work ends before another replica can start; the time starts when the last successful renewal is sent",
    "L65": "The Lease is released after the work has ended, only if we still hold it, and never after a loss",
    "L66": "A leader that should already have ended is reported as unhealthy",
    "T1": "A token file is read again each minute, and at once after a 401; an unusable file changes nothing",
    "T2": "New connections use new certificates without a restart, and old connections are closed",
    "T3": "429 and 5xx are retried at most ten times, when the server asks for it; after a broken connection, only reads are retried",
    "T4": "After a conflict, the object is read again before the next attempt, and the number of attempts is limited",
    "T5": "Events never delay work; they are combined, limited, and dropped if the server does not accept them",
    "T6": "After a 401, the credential plug-in runs once more, no matter how many requests received the 401",
}

_FUNCTION = re.compile(r"test_((?:[A-Z]\d+_)+)")
_CLASS = re.compile(r"Test((?:[A-Z]\d+)+)")
_NUMBER = re.compile(r"([A-Z])0*(\d+)")


@dataclass(frozen=True, order=True)
class Proof:
    """A test function, or a class whose tests belong together.

    Attributes:
        file: Path from the root of the repository.
        name: Of the function or class.
    """

    file: str
    name: str

    @property
    def node_id(self) -> str:
        """Return how pytest calls it."""
        return f"{self.file}::{self.name}"


def numbers_of(name: str) -> list[str]:
    """Return the numbers that the name of a test carries, such as R4 and F13 for `test_R04_F13_…`; zeros in front do not count."""
    found = _FUNCTION.match(name) or _CLASS.match(name)
    return [f"{letter}{digits}" for letter, digits in _NUMBER.findall(found[1])] if found else []


def find_proofs(root: Path = ROOT) -> dict[str, list[Proof]]:
    """Return the tests of each invariant, in the order of `TITLES`; an empty list is a gap.

    Raises:
        ValueError: A test carries a number that there is not.
    """
    found: dict[str, list[Proof]] = {number: [] for number in TITLES}
    for proof in _proofs(root):
        for number in numbers_of(proof.name):
            if number.startswith("F"):  # a row of the fault matrix
                continue
            if number not in found:
                raise ValueError(f"{proof.node_id}: there is no invariant {number}; see hack/reliability/invariants.py")
            found[number].append(proof)
    return found


def node_ids(proofs: Mapping[str, Sequence[Proof]]) -> list[str]:
    """Return what to ask pytest for, each test once."""
    return list(dict.fromkeys(proof.node_id for found in proofs.values() for proof in found))


def _proofs(root: Path) -> Iterator[Proof]:
    for directory in TEST_DIRECTORIES:
        for path in sorted((root / directory).rglob("test_*.py")):
            for name in _names(ast.parse(path.read_text(encoding="utf-8"), filename=str(path))):
                yield Proof(path.relative_to(root).as_posix(), name)


def _names(module: ast.Module) -> Iterator[str]:
    """Yield the names at the top of `module` that pytest would collect, among others."""
    for node in module.body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Assign(targets=[ast.Name(id=name)]):  # a state machine's TestCase
                yield name
            case _:
                pass
