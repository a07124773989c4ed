"""Go's flag syntax: what the reference's arguments mean, they mean here."""

from collections.abc import Callable
from typing import Any

import pytest

from mpiop.cli.goflags import (
    BOOLEAN,
    DURATION,
    INTEGER,
    NUMBER,
    Flag,
    FlagError,
    Kind,
    at_least,
    one_of,
    parse,
    parse_duration,
    parse_float,
    parse_int,
    port,
    text_kind,
)

NAME = Flag(("name", "nick-name"), text_kind("NAME"), "a name")
COUNT = Flag(("count",), INTEGER, "a number")
LOUD = Flag(("loud",), BOOLEAN, "a switch")
FLAGS = (NAME, COUNT, LOUD)
NO_DURATION = "must be a duration with its unit, like 15s"


@pytest.mark.parametrize(
    ("arguments", "values"),
    [
        pytest.param([], {}, id="nothing"),
        pytest.param(["-name=x"], {NAME: "x"}, id="one dash"),
        pytest.param(["--name=x"], {NAME: "x"}, id="two dashes"),
        pytest.param(["--nick-name=x"], {NAME: "x"}, id="another spelling"),
        pytest.param(["-name", "x"], {NAME: "x"}, id="the value is the next argument"),
        pytest.param(["--name="], {NAME: ""}, id="an empty value"),
        pytest.param(["--name", ""], {NAME: ""}, id="an empty value as an argument"),
        pytest.param(["--name=a=b"], {NAME: "a=b"}, id="an equals sign in the value"),
        pytest.param(["--count", "-3"], {COUNT: -3}, id="a value that looks like a flag"),
        pytest.param(["--name", "--loud"], {NAME: "--loud"}, id="a value that is a flag elsewhere"),
        pytest.param(["--loud"], {LOUD: True}, id="a switch on its own"),
        pytest.param(["--loud", "--name=x"], {LOUD: True, NAME: "x"}, id="a switch takes no argument"),
        pytest.param(["--loud=false"], {LOUD: False}, id="a switch that is off"),
        pytest.param(["--name=a", "--name=b"], {NAME: "b"}, id="the last one wins"),
    ],
)
def test_arguments_are_read_as_go_reads_them(arguments: list[str], values: dict[Flag, Any]) -> None:
    assert parse(arguments, FLAGS).values == values


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        pytest.param(["--nam=x"], "there is no flag --nam; did you mean --name?", id="a typing error"),
        pytest.param(["--nick_name=x"], "there is no flag --nick_name; did you mean --nick-name?", id="underscores"),
        pytest.param(["--COUNT=1"], "there is no flag --COUNT; did you mean --count?", id="capitals"),
        pytest.param(["--zebra"], "there is no flag --zebra; see mpiop --help for all flags", id="like no other"),
        pytest.param(["--name"], "flag --name needs a value: --name=NAME", id="no value"),
        pytest.param(["--count=many"], "flag --count cannot be 'many': must be a whole number", id="not a number"),
        pytest.param(["--loud=maybe"], "flag --loud cannot be 'maybe': it is either true or false", id="not a truth"),
        pytest.param(
            ["--loud", "false"], "unexpected argument 'false': flags look like --name=value; see mpiop --help", id="in Go: ends all"
        ),
        pytest.param(["volcano"], "unexpected argument 'volcano'", id="no dash"),
        pytest.param(["-"], "unexpected argument '-'", id="a dash alone"),
        pytest.param(["--"], "unexpected argument '--'", id="two dashes alone"),
        pytest.param(["---name=x"], "unexpected argument '---name=x'", id="three dashes"),
        pytest.param(["--=x"], "unexpected argument '--=x'", id="no name"),
    ],
)
def test_what_cannot_be_understood_is_one_clear_sentence(arguments: list[str], complaint: str) -> None:
    with pytest.raises(FlagError) as caught:
        parse(arguments, FLAGS)
    assert str(caught.value).startswith(complaint)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("yes", "no"), [("1", "0"), ("t", "f"), ("T", "F"), ("true", "false"), ("TRUE", "FALSE"), ("True", "False")])
def test_truth_has_go_s_spellings(yes: str, no: str) -> None:
    assert BOOLEAN.parse(yes) is True
    assert BOOLEAN.parse(no) is False


@pytest.mark.parametrize(
    ("text", "number"), [("12", 12), ("-3", -3), ("0x1f", 31), ("0b11", 3), ("0o17", 15), ("017", 15), ("1_000", 1000), ("0", 0)]
)
def test_integers_have_go_s_spellings(text: str, number: int) -> None:
    assert parse_int(text) == number


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("15s", 15),
        ("1m30s", 90),
        ("500ms", 0.5),
        ("1.5h", 5400),
        (".5s", 0.5),
        ("2us", 2e-6),
        ("2µs", 2e-6),
        ("3ns", 3e-9),
        ("0", 0),
        ("1.s", 1),
    ],
)
def test_durations_have_go_s_spellings(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("parse_text", "text", "complaint"),
    [
        *((parse_int, text, "must be a whole number") for text in ("", "x", "1.5", "08", "1e3", "0x")),
        *((parse_float, text, "number") for text in ("", "x", "nan", "inf", "1,5")),
        *((parse_duration, text, NO_DURATION) for text in ("", "15", "s", "15 s", "15s ", "15sec", "-5s", "1m 30s", "1d")),
    ],
)
def test_what_has_no_such_value_is_refused(parse_text: Callable[[str], object], text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        parse_text(text)


@pytest.mark.parametrize(
    ("kind", "good", "bad", "complaint"),
    [
        pytest.param(at_least(1, INTEGER), ("1", 1), "0", "it must be at least 1", id="at least"),
        pytest.param(at_least(0, NUMBER), ("0", 0.0), "-0.1", "it must be at least 0", id="at least, with fractions"),
        pytest.param(port(), ("65535", 65535), "65536", "a port is a number from 0 to 65535", id="port"),
        pytest.param(port(), ("0", 0), "-1", "a port is a number from 0 to 65535", id="port below"),
        pytest.param(one_of("json", "text"), ("json", "json"), "xml", "it is one of json, text", id="one of"),
    ],
)
def test_kinds_check_their_values(kind: Kind, good: tuple[str, Any], bad: str, complaint: str) -> None:
    text, value = good
    assert kind.parse(text) == value
    with pytest.raises(ValueError, match=complaint):
        kind.parse(bad)


@pytest.mark.parametrize(
    ("kind", "value", "text"), [(DURATION, 15.0, "15s"), (NUMBER, 10.0, "10"), (BOOLEAN, False, "false"), (INTEGER, 2, "2")]
)
def test_values_are_shown_as_they_are_typed(kind: Kind, value: Any, text: str) -> None:
    assert kind.render(value) == text
