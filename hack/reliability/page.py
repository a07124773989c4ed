"""The page that links each invariant to its tests."""

from collections import Counter

from reliability.defects import DEFECTS
from reliability.invariants import CHAPTERS, TITLES, Proof, find_proofs

_HEAD = """# Invariants

<!-- Made by hack/generate from hack/reliability/invariants.py and the names of the tests; edit those. -->

The operator maintains these properties, no matter how the network, the API server and the machine behave. `make invariants` runs the
tests and shows their results. `make mutants` shows that the tests can fail: the column *defects* contains the number of deliberate
defects that the tests detect. [Reliability](../reliability.md) explains which guarantees depend on these properties.
"""


def invariants_page() -> str:
    """Return the page as Markdown."""
    lines = [_HEAD]
    proofs = find_proofs()
    for letter, chapter in CHAPTERS.items():
        lines += [f"## {chapter}", "", "| no. | property | tests | defects |", "|---|---|---|---|"]
        lines += [_row(number, proofs[number]) for number in TITLES if number.startswith(letter)]
        lines.append("")
    return "\n".join(lines)


def _row(number: str, proofs: list[Proof]) -> str:
    files = Counter(proof.file for proof in proofs)
    links = ", ".join(f"{count} in [{file.rpartition('/')[2]}](../../{file})" for file, count in files.items()) or "none"
    defects = sum(defect.number == number for defect in DEFECTS)
    return f"| {number} | {TITLES[number]} | {links} | {defects} |"
