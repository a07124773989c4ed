"""The table of kubeconfigs states what kubectl does: kubectl itself runs through it, against a server on loopback."""

import asyncio
import os
from pathlib import Path

import pytest

from e2e.clusters import IS_CURRENT
from e2e.kubectl import Kubectl
from fakes.certificates import Authority
from fakes.http_server import Exchange, http_server
from kubeconfig_cases import CASES, SERVER_NAME, Case, echo, seen, write

AT_ONCE = asyncio.Semaphore(4)
SECONDS = 30
PATH = "/api/v1/namespaces/default/pods/a"


@pytest.mark.real_time
@pytest.mark.skipif(IS_CURRENT, reason="another version of kubectl may do otherwise")
async def test_kubectl_does_what_the_table_states(cluster: Kubectl, tmp_path: Path) -> None:
    authority, environment = Authority(), {"PATH": cluster.environment["PATH"], "HOME": str(tmp_path)}
    differing = await asyncio.gather(*(difference(case, authority, tmp_path / str(row), environment) for row, case in enumerate(CASES)))
    assert [sentence for sentence in differing if sentence] == []


async def difference(case: Case, authority: Authority, folder: Path, environment: dict[str, str]) -> str:
    """Return what kubectl does otherwise, or ""."""
    async with AT_ONCE, http_server(echo, authority.issue(SERVER_NAME), authority.certificate) as server:
        path = write(folder, case, server.url, authority)
        kubectl = await asyncio.create_subprocess_exec(
            "kubectl",
            f"--kubeconfig={path}",
            "get",
            f"--raw={PATH}",
            env=environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        async with asyncio.timeout(SECONDS):
            output = (await kubectl.communicate())[0].decode()
        if case.by_kubectl:
            is_same = kubectl.returncode != 0 and case.by_kubectl in output
        else:
            is_same = (
                kubectl.returncode == 0 and not case.refused and seen(server.exchanges[-1]) == (case.path + PATH, case.name, case.sends)
            )
        sent: list[Exchange] = server.exchanges[-1:]
        return "" if is_same else f"{case.id}: {kubectl.returncode}, {[seen(exchange) for exchange in sent]}, {output[-500:]}{os.linesep}"
