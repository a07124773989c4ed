"""`make invariants` and `make mutants`: they fail when they should."""

import re
from pathlib import Path

import pytest

from reliability.copies import Copy
from reliability.defects import DEFECTS
from reliability.invariants import ROOT, TITLES, Proof, find_proofs
from reliability.mutants import Outcome, Verdict, broken, run, try_one
from reliability.random_defects import Coverage, picked, possible_changes
from reliability.report import Result, parse, problems, render, selected

A, B = Proof("test/unit/test_a.py", "test_R4_a"), Proof("test/unit/test_b.py", "TestQ40B")
REPORT = """<?xml version="1.0"?><testsuites><testsuite>
<testcase classname="test.unit.test_a" name="test_R4_a[1]" time="0.5"/>
<testcase classname="test.unit.test_a" name="test_R4_a[2]" time="0.25">{}</testcase>
<testcase classname="test.unit.test_b.TestQ40B" name="runTest" time="1"/>
</testsuite></testsuites>"""


def test_every_number_is_there() -> None:
    ranges = {"R": (1, 22), "I": (23, 39), "Q": (40, 49), "E": (50, 59), "L": (60, 66), "T": (1, 6)}
    numbers = [f"{letter}{number}" for letter, (first, last) in ranges.items() for number in range(first, last + 1)]
    assert list(TITLES) == numbers


def test_every_invariant_has_a_test_and_a_defect() -> None:
    assert [number for number, found in find_proofs().items() if not found] == []
    assert set(TITLES) == {defect.number for defect in DEFECTS}


def test_the_text_of_every_defect_is_there_once_and_its_replacement_makes_another_program() -> None:
    for defect in DEFECTS:
        assert defect.old != defect.new, defect.why
        compile(broken(defect), f"{defect.number}: {defect.why}", "exec")


def tree(root: Path, source: str) -> Path:
    (root / "test" / "unit").mkdir(parents=True)
    (root / "test" / "unit" / "test_some.py").write_text(source, encoding="utf-8")
    return root


def test_tests_are_found_by_their_names(tmp_path: Path) -> None:
    names = ("test_R01_R2_a", "test_L61_F43_b", "test_F5_c", "test_that_R4_is_later", "test_r4_is_small", "helper_R4", "test_d")
    source = "".join(f"def {name}(): ...\n" for name in names) + "async def test_R1_e(): ...\nTestQ40Q41M = object\n"
    proofs = find_proofs(tree(tmp_path, source))
    found = {number: [test.node_id.removeprefix("test/unit/test_some.py::") for test in tests] for number, tests in proofs.items() if tests}
    several = {"R1": ["test_R01_R2_a", "test_R1_e"], "R2": ["test_R01_R2_a"], "L61": ["test_L61_F43_b"]}
    assert found == several | {"Q40": ["TestQ40Q41M"], "Q41": ["TestQ40Q41M"]}


def test_a_number_that_there_is_not_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="test_R99_a: there is no invariant R99"):
        find_proofs(tree(tmp_path, "def test_R99_a(): ...\n"))


def test_cases_are_counted_by_test() -> None:
    assert parse(REPORT.format("")) == {A: Result(passed=2, seconds=0.75), B: Result(passed=1, seconds=1)}


@pytest.mark.parametrize(
    ("what", "problem"),
    [
        ('<failure message="no&#10;way"/>', "test/unit/test_a.py::test_R4_a: FAILED 1 of 2 test_R4_a[2]: no"),
        ('<error message="fixture"/>', "test/unit/test_a.py::test_R4_a: FAILED 1 of 2 test_R4_a[2]: fixture"),
    ],
    ids=["failure", "error"],
)
def test_a_failing_case_is_a_problem(what: str, problem: str) -> None:
    results = parse(REPORT.format(what))
    assert problems({"R4": [A], "Q40": [B]}, results) == [problem]
    assert "1 problem" in render({"R4": [A], "Q40": [B]}, results)


def test_gaps_tests_that_did_not_run_and_tests_that_are_always_skipped_are_problems() -> None:
    found = problems({"R4": [A], "R5": [], "Q40": [B]}, {B: Result(skipped=3)})
    assert [line.partition(":")[0] for line in found] == ["R5", "test/unit/test_a.py", "test/unit/test_b.py"]
    assert [line.rpartition(" ")[2] for line in found[1:]] == ["RUN", "SKIPPED"]
    assert "no gap, no failure" in render({"Q40": [B]}, {B: Result(passed=1)})


def test_unknown_numbers_are_refused() -> None:
    assert selected({"R4": [A], "Q40": [B]}, ["Q40"]) == {"Q40": [B]}
    with pytest.raises(ValueError, match="there is no invariant R77; they run from R1 to T6"):
        selected({"R4": [A]}, ["R77"])


class Scripted(Copy):
    """A copy in which tests end as the script sets."""

    def __init__(self, status: int | None) -> None:
        self.status = status
        self.texts = [""]

    def write(self, file: str, text: str) -> None:
        del file
        self.texts.append(text)

    def restore(self, file: str) -> None:
        self.texts.append(f"{file} as it was")

    async def test(self, ids: object, seconds: float) -> tuple[int | None, str]:
        del ids, seconds
        self.texts.append("tested")
        return self.status, "output"


DEFECT = DEFECTS[0]


@pytest.mark.parametrize(
    ("status", "hangs", "verdict"),
    [
        (1, False, Verdict.CAUGHT),
        (0, False, Verdict.SURVIVED),
        (None, False, Verdict.BROKEN),
        (None, True, Verdict.CAUGHT),
        (0, True, Verdict.SURVIVED),
        (2, False, Verdict.BROKEN),
        (4, True, Verdict.BROKEN),
    ],
)
async def test_only_a_test_that_fails_catches_a_defect(status: int | None, *, hangs: bool, verdict: Verdict) -> None:
    copy = Scripted(status)
    outcome = await try_one(copy, DEFECT._replace(hangs=hangs), ["x"])
    assert outcome.verdict is verdict
    assert copy.texts[1:] == [broken(DEFECT), "tested", f"{DEFECT.file} as it was"]
    assert DEFECT.old not in copy.texts[1]


@pytest.mark.parametrize("old", ["text that nobody wrote", "self"], ids=["gone", "often"])
async def test_a_defect_whose_text_is_not_there_once_is_reported(old: str) -> None:
    copy = Scripted(1)
    outcome = await try_one(copy, DEFECT._replace(old=old), ["x"])
    assert outcome.verdict is Verdict.NOT_FOUND
    assert copy.texts == [""]


async def test_a_defect_without_test_is_reported() -> None:
    assert await try_one(Scripted(1), DEFECT, []) == Outcome(DEFECT, Verdict.UNTESTED)


def test_a_copy_can_be_broken_and_made_whole(tmp_path: Path) -> None:
    copy = Copy(tmp_path / "copy")
    path = tmp_path / "copy/src/mpiop" / DEFECT.file
    whole = path.read_text(encoding="utf-8")
    copy.write(DEFECT.file, broken(DEFECT))
    assert DEFECT.new in path.read_text(encoding="utf-8") != whole
    copy.restore(DEFECT.file)
    assert path.read_text(encoding="utf-8") == whole


@pytest.mark.parametrize(
    ("line", "changed"),
    [
        ("x = a < b", ["x = (a <= b)"]),
        ("x = a is b or c", ["x = (a is b and c)", "x = (a is not b) or c"]),
        ("x = 1 if a else True", ["x = 1 if (not (a)) else True", "x = 1 if a else False", "x = 2 if a else True"]),
        ("def f(): return ü", ["def f(): return None"]),
        ("def f(): return None", []),
        ('x = f"{a == b}", "text"', []),
    ],
)
def test_small_changes_of_a_line(line: str, changed: list[str]) -> None:
    content = line.encode()
    assert sorted(change.apply(content).decode() for change in possible_changes("a.py", content)) == changed


def test_the_tests_of_a_change_are_those_that_run_its_line_the_narrowest_first() -> None:
    coverage = Coverage({"a.py": {1: frozenset({"wide", "narrow"}), 2: frozenset({"wide"})}, "b.py": {1: frozenset({"other"})}})
    [change] = possible_changes("a.py", b"x = 1")
    assert coverage.chosen(change) == ["narrow", "wide"]


def test_the_seed_fixes_which_lines_are_changed() -> None:
    coverage = Coverage({"token_bucket.py": {line: frozenset({"test"}) for line in range(1, 100)}})
    assert picked(coverage, ROOT, 3, 7) == picked(coverage, ROOT, 3, 7) != picked(coverage, ROOT, 3, 8)
    assert picked(Coverage({"token_bucket.py": {}}), ROOT, 3, 7) == []


def test_random_defects_are_tried_and_counted(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--random", "1", "--seed", "7", "test/unit/test_token_bucket.py"]) == 0
    tried, counted = capsys.readouterr().out.splitlines()
    assert re.match(r"\[  1/1\]   caught  token_bucket\.py:\d+: ", tried)
    assert counted == "1 of 1 random defects caught (seed 7)"
