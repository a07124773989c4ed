"""What a row of the tables of annotations consists of: see `annotations` for those of an MPIJob, `controller.names` for the others."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

_Value = TypeVar("_Value")
Parser = Callable[[str, str], _Value]
"""Returns the value of a text; raises ValueError with a message that begins with the path, its first argument, if the text is invalid."""


@dataclass(frozen=True, slots=True)
class Annotation:
    """An annotation of any object.

    Attributes:
        name: With its prefix.
        where: The objects that have it, such as `an MPIJob`.
        help: What it is for, after "On <where>: " on the reference page.
    """

    name: str
    where: str
    help: str


@dataclass(frozen=True, slots=True)
class Need:
    """The annotation without which another is refused; with `value`, it must have that value, because of `why`."""

    name: str
    value: str = ""
    why: str = ""

    def is_met(self, annotations: Mapping[str, Any]) -> bool:
        """Return whether the annotation is there, and has the value."""
        found = annotations.get(self.name)
        return found == self.value if self.value else found is not None

    @property
    def advice(self) -> str:
        """Return what to do if it is missing."""
        return f"needs {self.name} to be {self.value}: {self.why}" if self.value else f"has no effect without {self.name}"


@dataclass(frozen=True, slots=True)
class Hashed:
    """How an annotation, or a field of the spec, counts in the revisions of a job.

    Attributes:
        place: Order among all that count. It must never change, because hashes are stored.
        text: Returns what is hashed of the attribute of MPIJob; "" leaves the hash as it is without it.
    """

    place: int
    text: Callable[[Any], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobAnnotation(Annotation, Generic[_Value]):
    """An annotation that users set on an MPIJob.

    Attributes:
        field: The field of MPIJob that it sets, or `<attribute>.<field>` if that is one of several in a dataclass of their own.
        parse: Reads it.
        default: The text that counts if the annotation is absent.
        examples: Valid texts.
        in_revision: None if an edit takes effect at any time, or not at all, or changes another field that counts.
        needs: What it is refused without.
    """

    field: str
    parse: Parser[_Value]
    default: str = ""
    examples: tuple[str, ...]
    in_revision: Hashed | None
    needs: Need | None = None

    @property
    def attribute(self) -> str:
        """Return the attribute of MPIJob that has the field, or is it."""
        return self.field.partition(".")[0]
