"""What `up` decided and later commands need: kept as JSON in the state folder."""

import dataclasses
import json
from dataclasses import dataclass

from embedded.layout import Layout
from embedded.network import Addresses


@dataclass(frozen=True)
class Options:
    """What the user asked `up` for."""

    control_plane_only: bool = False
    simulated_nodes: int = 0
    feature_gates: str = ""
    runtime_config: str = ""
    audit: bool = False
    admission_plugins: str = ""
    nodes: int = 1


@dataclass(frozen=True)
class Record:
    """One cluster; `index` determines its addresses. `ready` is written last: a record without it is of an `up` that did not end."""

    options: Options
    index: int
    programs: dict[str, str]
    ready: bool = False

    @property
    def addresses(self) -> Addresses:
        """The cluster's addresses."""
        return Addresses(self.index)


def write_record(layout: Layout, record: Record) -> None:
    """Store `record` in one step."""
    unfinished = layout.record.with_suffix(".tmp")
    unfinished.write_text(json.dumps(dataclasses.asdict(record), indent=1), encoding="utf-8")
    unfinished.rename(layout.record)


def read_record(layout: Layout) -> Record | None:
    """Return the record of the cluster; None when there is none that is whole."""
    try:
        stored = json.loads(layout.record.read_text(encoding="utf-8"))
        return Record(Options(**stored["options"]), stored["index"], stored["programs"], stored["ready"])
    except (FileNotFoundError, ValueError, TypeError, KeyError):
        return None
