"""How long work still takes: from tables at first, then from what it has taken on this machine."""

import json
from pathlib import Path

import pytest

from pacing.forecast import Forecast
from pacing.pace import in_words, measured_pace
from pacing.shared_work import SharedWork, record_pace, recorded_pace

PARTS = {"kubernetes": 490.0, "containerd": 100.0, "coredns": 100.0, "etcd": 50.0, "pause": 1.0}


class Machine:
    """Builds parts two at a time, as the embedded cluster's build does, on a machine of another speed."""

    def __init__(self, seconds_for_one: float) -> None:
        self.now = 0.0
        self.seconds_for_one = seconds_for_one
        self.work = SharedWork(PARTS, 1.0, lambda: self.now)
        self.waiting = sorted(PARTS, key=lambda name: -PARTS[name])
        self.left = dict(PARTS)
        self.at_work: list[str] = []
        self.said: list[tuple[float, float]] = []
        """The time and what was left then, by the estimate, after each part."""

    def run(self) -> None:
        while self.waiting or self.at_work:
            while self.waiting and len(self.at_work) < 2:
                self.at_work.append(self.waiting.pop(0))
                self.work.begin(self.at_work[-1])
            first = min(self.at_work, key=self.left.__getitem__)
            amount = self.left[first]
            self.now += amount * len(self.at_work) * self.seconds_for_one
            for name in self.at_work:
                self.left[name] -= amount
            self.at_work.remove(first)
            self.work.done(first)
            self.said.append((self.now, self.work.left_seconds()))


@pytest.mark.parametrize("seconds_for_one", [0.3, 1.0, 3.0])
def test_after_the_first_part_the_end_of_a_build_is_known_on_machines_of_any_speed(seconds_for_one: float) -> None:
    machine = Machine(seconds_for_one)
    assert machine.work.left_seconds() == sum(PARTS.values())
    machine.run()
    assert machine.now == pytest.approx(sum(PARTS.values()) * seconds_for_one)
    assert [time + left for time, left in machine.said] == pytest.approx([machine.now] * len(PARTS), rel=0.05)
    assert machine.work.pace == pytest.approx(seconds_for_one)
    assert machine.said[-1][1] == 0


def test_a_part_that_is_late_is_never_said_to_be_done() -> None:
    now = 0.0
    work = SharedWork({"thing": 100}, 1.0, lambda: now)
    work.begin("thing")
    now = 60.0
    assert work.left_seconds() == pytest.approx(40)
    now = 600.0
    assert work.left_seconds() == pytest.approx(5)


def test_a_part_that_another_build_made_does_not_change_the_pace() -> None:
    work = SharedWork({"ours": 100, "theirs": 100}, 2.0, lambda: 0.0)
    work.done("theirs")
    assert work.left_seconds() == 200


def test_the_pace_of_a_build_is_left_to_the_next_one(tmp_path: Path) -> None:
    file = tmp_path / "pace"
    assert recorded_pace(file) is None
    record_pace(file, 1.5)
    assert recorded_pace(file) == 1.5
    file.write_text("fast", encoding="utf-8")
    assert recorded_pace(file) is None
    record_pace(tmp_path / "none" / "pace", 1.0)


def test_a_run_expects_what_the_run_before_took(tmp_path: Path) -> None:
    record = tmp_path / "new" / "record.json"
    first = Forecast({"cluster": 12, "images": 3}, record)
    assert first.left_seconds() == 15
    first.done(24)
    assert first.left_seconds() == 3, "a wrong guess about one step means nothing for another"
    first.done(5)
    assert first.left_seconds() == 0
    second = Forecast({"cluster": 12, "images": 3, "job": 6}, record)
    assert second.left_seconds() == 24 + 5 + 6
    second.done(48)
    assert second.left_seconds() == 2 * (5 + 6), "twice as slow as the last time, so the rest is too"
    third = Forecast({"cluster": 12, "images": 3}, record)
    third.done(10)
    assert third.left_seconds() == 5, "there was less to do, which means nothing for another step"


@pytest.mark.parametrize("content", ["", "[]", "{", json.dumps({"cluster": "long"})])
def test_a_record_that_cannot_be_read_counts_as_none(content: str, tmp_path: Path) -> None:
    record = tmp_path / "record.json"
    record.write_text(content, encoding="utf-8")
    assert Forecast({"cluster": 12}, record).left_seconds() == 12


def test_short_steps_do_not_change_what_is_expected_of_long_ones(tmp_path: Path) -> None:
    record = tmp_path / "record.json"
    record.write_text(json.dumps({"short": 1, "long": 100}), encoding="utf-8")
    forecast = Forecast({"short": 1, "long": 100}, record)
    forecast.done(4)
    assert forecast.left_seconds() == 100


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "a few seconds"),
        (4.9, "a few seconds"),
        (5, "about 5 s"),
        (41, "about 40 s"),
        (99, "about 100 s"),
        (101, "about 2 min"),
        (444, "about 7 min"),
    ],
)
def test_times_are_as_exact_as_an_estimate(seconds: float, words: str) -> None:
    assert in_words(seconds) == words


def test_the_processor_is_measured() -> None:
    assert 0.01 < measured_pace() < 100
