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
    "R1": "The first list asks for version 0, each later one for the last version seen: the cache never goes back",
    "R2": "A list whose version has expired is repeated at once, at the newest version, and only then",
    "R3": "A list whose version the server has not reached yet is repeated at once at the newest version",
    "R4": "410 in a watch leads to exactly one list, at the last version seen",
    "R5": "A watch that ends as it should is followed by a watch from there, and no list",
    "R6": "A watch that ends at once with nothing goes through the back-off",
    "R7": "A refused connection or 429 is followed by a watch after a pause, and no list",
    "R8": "Internal errors in a watch are followed by watches for a while, then by a list",
    "R9": "Back-off: 0.8 s doubling to 30 s, jittered, forgotten after two healthy minutes",
    "R10": "Each watch asks for 5 to 10 minutes, chosen at random, and is left when the server does not end it",
    "R11": "Each kind of event moves the version on; after a start from nowhere, none before the initial objects are through",
    "R12": "A bookmark moves the version and nothing else",
    "R13": "An event that cannot be understood is skipped; an answer that is no list is an error",
    "R14": "A relist happens entirely or not at all",
    "R15": "Pages of 500; an expired continuation becomes one full list at the version of the first page",
    "R16": "No page limit at a known version; it stays when the server has shown that it pages lists at 0",
    "R17": "A watch-list counts when its end bookmark has come, not before; the stream then goes on",
    "R18": "A watch-list cut before its bookmark begins again, after it goes on as a watch",
    "R19": "A server that does not know watch-lists is listed and watched in the same pass",
    "R20": "A stop at any moment is prompt, closes the stream, and nothing is delivered after it",
    "R21": "No failure ends the loop, and each is reported",
    "R22": "A stream that has fallen silent is left and watched again",
    "I23": "What vanished in a gap is told, with its last known state",
    "I24": "A replace tells one change for each key, deletions first",
    "I25": "Deletion and recreation in a gap may be one update, with a new UID",
    "I26": "The store has a change before any handler hears of it",
    "I27": "A handler sees each object move forward only",
    "I28": "Indexes follow every change, and nothing of what is gone stays in them",
    "I29": "The store tells the version that it is synchronised to",
    "I30": "Synced means that the whole first list is in the store",
    "I31": "A handler is synced when it has heard of the whole first list",
    "I32": "A late handler hears of each stored object once, and misses no change",
    "I33": "A removed handler is not called again",
    "I34": "A resync tells stored objects again, without a request, and skips those with news on the way",
    "I35": "A handler that raises loses one item; nobody else notices",
    "I36": "A slow handler holds up nobody, and its backlog is measured",
    "I37": "An informer runs once, refuses handlers afterwards, and leaves no task behind",
    "I38": "Stored objects are never changed",
    "I39": "After whatever disruption, what handlers were told adds up to the real difference",
    "Q40": "Any number of adds of a queued key is one run",
    "Q41": "A key is never in two workers; adds meanwhile are exactly one more run",
    "Q42": "First in, first out between keys of a namespace; nothing stays of a key that is done",
    "Q43": "After shut-down adds are dropped, queued work is handed out, then workers go home",
    "Q44": "No namespace occupies all workers, and namespaces take turns",
    "Q45": "A delayed key never comes early; of two delays the earlier counts",
    "Q46": "A key's delay doubles with its failures up to a cap, and forgetting resets it alone",
    "Q47": "Retries in a namespace are bound by a token bucket of its own; the longest delay counts",
    "Q48": "Success forgets, failure comes back rate-limited, a key in hand is always given back",
    "Q49": "Depth, adds, latency, work, unfinished work and retries are measured",
    "E50": "What a write makes us wait for is noted from its answer, so that a failed one leaves nothing to wait for",
    "E51": "Waiting for our own writes holds up the writes, and never for good",
    "E52": "A deletion is waited for by what the server answered to it: an object on its way out once, one that is gone not at all",
    "E53": "What we know of our writes dies with the job, and a successor of its name inherits nothing",
    "E54": "The caches are asked whether they are new enough before a child is read from them",
    "E55": "No job is judged before every cache shows what was last written for it",
    "E56": "Creations go out in growing batches and stop after the first batch with a refusal",
    "E57": "What another controller owns is neither changed nor deleted; identity is namespace, group, kind and UID",
    "E58": "A name that is taken is looked at live: ours is done, a predecessor's is waited for, a stranger's is reported",
    "E59": "Deleting what is gone succeeds; a namespace on its way out causes no storm",
    "L60": "Lease times that cannot keep two leaders apart are refused",
    "L61": "A lease is taken when it is free, or unchanged for its own duration on our own clock",
    "L62": "Who is refused does not lead, and tries again after a jittered pause",
    "L63": "A takeover counts a transition and keeps what is not ours; a renewal changes its time alone",
    "L64": "Without a renewal, counted from when the last one was sent, work ends before anybody else may begin",
    "L65": "The lease is given away after the work has ended, only if it is still ours, and never after a loss",
    "L66": "A leader that should have ended is reported as unhealthy",
    "T1": "A token file is read again each minute, and at once after a 401; an unusable one changes nothing",
    "T2": "New certificates are used for new connections without a restart, and old connections end",
    "T3": "429 and 5xx are retried when the server says when, at most ten times; a broken connection for reads alone",
    "T4": "After a conflict the object is read again before the next try, and tries are bounded",
    "T5": "Events never hold up work, are combined, limited, and dropped when nobody takes them",
    "T6": "A 401 runs the credential plug-in once more, however many requests met it",
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
