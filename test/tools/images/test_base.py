"""Which base is chosen: the requested one, the one from before, the registry's, our own."""

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from fakes.image_engine import FakeEngine
from imaging import base
from imaging.base import REGISTRY_BASE, SUITE, Bases, is_native, recipe_digest
from imaging.errors import ImagesError
from imaging.process import Programs

LOCAL = f"localhost/mpiop-base:{SUITE}-{recipe_digest()}"
NATIVE = next(platform for platform in ("linux/amd64", "linux/arm64/v8", f"linux/{os.uname().machine}") if is_native(platform))
FOREIGN = (NATIVE, "linux/pdp11")


@dataclass(frozen=True)
class Case:
    id: str
    chosen: str
    desired: str = ""
    there: tuple[str, ...] = ()
    registry_answers: bool = False
    fresh: bool = False
    platforms: tuple[str, ...] = ()
    pulls: int = 0


CASES = [
    Case(id="what the user wants is not questioned", desired="my/base", chosen="my/base", there=(REGISTRY_BASE,)),
    Case(id="what was pulled before asks no registry", there=(REGISTRY_BASE, LOCAL), registry_answers=True, chosen=REGISTRY_BASE),
    Case(id="what was made before asks no registry", there=(LOCAL,), registry_answers=True, chosen=LOCAL),
    Case(id="a registry that answers is used", registry_answers=True, chosen=REGISTRY_BASE, pulls=1),
    Case(id="fresh decides anew", there=(LOCAL,), registry_answers=True, fresh=True, chosen=REGISTRY_BASE, pulls=1),
    Case(id="one made before serves this machine's platform", there=(LOCAL,), platforms=(NATIVE,), chosen=LOCAL),
    Case(
        id="one made before serves no other platform",
        there=(LOCAL,),
        registry_answers=True,
        platforms=FOREIGN,
        chosen=REGISTRY_BASE,
        pulls=1,
    ),
    Case(id="without a registry one is made", chosen=LOCAL, pulls=1),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_choice(case: Case, programs: Programs, tmp_path: Path, install: Callable[[str, str], Path]) -> None:
    install("mmdebstrap", 'for last; do :; done; echo root >"$last"; echo "$*" >>"$CALLS"')
    engine = FakeEngine(images={name: {} for name in case.there}, registry={REGISTRY_BASE} if case.registry_answers else set())
    assert Bases(engine, programs, tmp_path, platforms=case.platforms, fresh=case.fresh).choose(case.desired) == case.chosen
    assert len(engine.pulls) == case.pulls
    assert bool(engine.imports) == (case.chosen == LOCAL and LOCAL not in case.there)


def test_a_base_is_made_once_and_kept(programs: Programs, tmp_path: Path, install: Callable[[str, str], Path]) -> None:
    calls = install("mmdebstrap", 'for last; do :; done; echo root >"$last"; echo "$*" >>"$CALLS"')
    for _ in range(2):  # the second time with an empty storage
        Bases(FakeEngine(), programs, tmp_path).choose("")
    assert len(calls.read_text("utf-8").splitlines()) == 1
    Bases(FakeEngine(), programs, tmp_path, fresh=True).choose("")
    assert len(calls.read_text("utf-8").splitlines()) == 2


def test_another_platform_without_a_registry_is_refused(programs: Programs, tmp_path: Path) -> None:
    with pytest.raises(ImagesError, match="not for linux/pdp11; give one with BASE_IMAGE"):
        Bases(FakeEngine(images={LOCAL: {}}), programs, tmp_path, FOREIGN).choose("")


def test_a_failed_base_leaves_no_tar(programs: Programs, tmp_path: Path, install: Callable[[str, str], Path]) -> None:
    install("mmdebstrap", 'for last; do :; done; echo half >"$last"; echo no network; exit 25')
    with pytest.raises(ImagesError, match=r"(?s)exit code 25.*no network"):
        Bases(FakeEngine(), programs, tmp_path).choose("")
    assert not list(tmp_path.glob("*.tar"))


def test_a_user_who_cannot_make_one_is_told_the_ways_out(
    programs: Programs, tmp_path: Path, install: Callable[[str, str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    install("mmdebstrap", "exit 25")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(ImagesError, match="run this as root, or give a base with BASE_IMAGE"):
        Bases(FakeEngine(), programs, tmp_path).choose("")


def test_a_full_disk_is_reported_before_the_work(programs: Programs, tmp_path: Path, install: Callable[[str, str], Path]) -> None:
    install("mmdebstrap", "exit 1")
    needed = shutil.disk_usage(tmp_path).free / 1e9 + 100
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(base, "_NEEDED_GIGABYTES", needed)
        with pytest.raises(ImagesError, match="make room or set MPIOP_CACHE"):
            Bases(FakeEngine(), programs, tmp_path).choose("")
