"""The contract suite, which unit tests run against the fake API server, against a real one: so that the fake cannot drift away."""

import os
import subprocess
import sys

import pytest

from e2e.clusters import IS_CURRENT, ROOT, embedded_cluster


@pytest.mark.skipif(IS_CURRENT, reason="the suite installs the CRD, which the user's own cluster may have in another version")
def test_the_fake_api_server_and_the_real_one_keep_the_same_contract() -> None:
    with embedded_cluster("e2e-contract", "--control-plane-only") as kubectl:
        environment = {**os.environ, "MPIOP_TEST_KUBECONFIG": kubectl.environment["KUBECONFIG"]}
        command = [sys.executable, "-m", "pytest", "-q", "test/contract"]
        ended = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "passed" in ended.stdout
