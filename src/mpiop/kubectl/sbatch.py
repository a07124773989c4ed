"""Reads `#SBATCH` lines as sbatch does.

sbatch reads them up to the first line that is neither empty nor a comment, without a shell: no variable is expanded.
A long option may be abbreviated, and `-n4` is `-n 4`.
"""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Final

from mpiop.client.errors import InvalidError

_MARK: Final = "#SBATCH"
_FOREIGN: Final = ("#PBS", "#BSUB")
"""Lines of other batch systems, which sbatch reads too."""
_SHORT: Final[Mapping[str, str]] = {
    word[0]: word[2:]
    for word in """A=account a=array B=extra-node-info b=begin C=constraint c=cpus-per-task D=chdir d=dependency e=error F=nodefile
    G=gpus H=hold h=help I=immediate i=input J=job-name k=no-kill L=licenses M=clusters m=distribution N=nodes n=ntasks O=overcommit
    o=output p=partition Q=quiet q=qos S=core-spec s=oversubscribe t=time u=usage V=version v=verbose W=wait w=nodelist
    x=exclude""".split()  # noqa: SIM905 - a table is easier to read
}
FLAGS: Final = frozenset(
    """contiguous hold no-kill no-requeue overcommit parsable quiet reboot requeue spread-job test-only use-min-nodes verbose wait
    oversubscribe share""".split()  # noqa: SIM905
)
"""Options without a value."""
_OPTIONAL: Final = frozenset({"exclusive", "get-user-env", "nice", "propagate", "no-kill", "priority-nice"})
"""Options whose value is attached by `=` or missing."""
_LONG: Final = (
    frozenset(_SHORT.values())
    | FLAGS
    | _OPTIONAL
    | frozenset(
        """acctg-freq bb bbf begin cluster-constraint comment container core-spec cores-per-socket cpu-freq cpus-per-gpu deadline
    delay-boot export export-file exclude-nodes gid gpu-bind gpu-freq gpus-per-node gpus-per-socket gpus-per-task gres gres-flags hint
    ignore-pbs kill-on-invalid-dep licenses mail-type mail-user mcs-label mem mem-bind mem-per-cpu mem-per-gpu mincpus network
    ntasks-per-core ntasks-per-gpu ntasks-per-node ntasks-per-socket open-mode power priority profile reservation signal
    sockets-per-node switches tasks tasks-per-node thread-spec threads-per-core time-min tmp tres-per-task uid wait-all-nodes wckey
    workdir wrap""".split()  # noqa: SIM905
    )
)
_ALIASES: Final = {"tasks": "ntasks", "tasks-per-node": "ntasks-per-node", "workdir": "chdir"}


@dataclass(slots=True)
class Directives:
    """What the `#SBATCH` lines of a script request.

    Attributes:
        options: Values by long option; "" for a flag.
        problems: Lines or options that sbatch rejects or ignores, each with the reason.
        notes: Lines that sbatch ignores too.
    """

    options: dict[str, str] = field(default_factory=dict[str, str])
    problems: list[str] = field(default_factory=list[str])
    notes: list[str] = field(default_factory=list[str])


def read_directives(text: str) -> Directives:
    """Return the options of a script.

    Raises:
        InvalidError: The script is a heterogeneous job, or an abbreviation is ambiguous.
    """
    found = Directives()
    is_ended = False
    for number, line in enumerate(text.splitlines(), 1):
        if is_ended:
            if line.startswith(_MARK):
                found.notes.append(f"line {number}: {line}  (after the first command, so sbatch ignores it too)")
        elif line.startswith(_MARK):
            _read_line(line, number, found)
        elif line.startswith(_FOREIGN):
            found.problems.append(f"line {number}: {line}  (sbatch obeys it: write it as {_MARK})")
        elif line.strip() and not line.lstrip().startswith("#"):
            is_ended = True
    return found


def is_batch_script(text: str) -> bool:
    """Return whether a text is a script, with `#!` or an option for sbatch before its first command."""
    before = takewhile(lambda line: not line.strip() or line.lstrip().startswith("#"), text.splitlines())
    return text.startswith("#!") or any(line.startswith(_MARK) for line in before)


def _read_line(line: str, number: int, found: Directives) -> None:
    reader = shlex.shlex(line.removeprefix(_MARK), posix=True)
    reader.whitespace_split, reader.commenters = True, ""  # a comment begins at the start of a word only
    try:
        words = list(takewhile(lambda word: not word.startswith("#"), reader))
    except ValueError:
        found.problems.append(f"{line}  (a quote is not closed)")
        return
    if words[:1] in (["hetjob"], ["packjob"]):
        raise InvalidError(
            f"line {number}: a heterogeneous job cannot be converted, because all workers have one template: use one job for each"
        )
    while words:
        word = words.pop(0)
        if word in {"-", "--"} or not word.startswith("-"):
            found.problems.append(f"line {number}: {_MARK} {word}  (not an option)")
        elif word.startswith("--"):
            _read_long(word, words, found)
        else:
            _read_short(word, words, found)


def _read_long(word: str, words: list[str], found: Directives) -> None:
    name, is_attached, value = word[2:].partition("=")
    name = name.replace("_", "-") if name.replace("_", "-") in _LONG else name
    matches = [name] if name in _LONG else sorted(each for each in _LONG if name and each.startswith(name))
    if len(matches) > 1:
        raise InvalidError(f"{_MARK} {word} can be {' or '.join('--' + each for each in matches)}: write it out")
    if not matches:
        found.problems.append(f"{_MARK} {word}  (unknown to sbatch)")
        if not is_attached and words and not words[0].startswith("-"):
            words.pop(0)
        return
    option = matches[0]
    if is_attached or option in FLAGS | _OPTIONAL:
        found.options[_ALIASES.get(option, option)] = value
    else:
        _take_value(_ALIASES.get(option, option), word, words, found)


def _read_short(word: str, words: list[str], found: Directives) -> None:
    letter, value = word[1], word[2:]
    option = _SHORT.get(letter, "")
    if not option:
        found.problems.append(f"{_MARK} {word}  (unknown to sbatch)")
        return
    if option in FLAGS:
        if value:
            words.insert(0, f"-{value}")
        value = ""
    if value or option in FLAGS | _OPTIONAL:
        found.options[option] = value
    else:
        _take_value(option, word, words, found)


def _take_value(option: str, word: str, words: list[str], found: Directives) -> None:
    """Take the next word as the value of an option."""
    if words:
        found.options[option] = words.pop(0)
    else:
        found.problems.append(f"{_MARK} {word}  (its value is missing)")
