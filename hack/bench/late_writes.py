"""An admission webhook that answers late: each write of an object of a job takes that much longer, for every client.

Run as a module in the network of a cluster, it serves the webhook on loopback: `python -m bench.late_writes PORT FOLDER SECONDS`.
"""

import asyncio
import base64
import contextlib
import ssl
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, cast

from aiohttp import web

from bench.bench_cluster import BenchCluster
from demonstration.cluster import ROOT
from fakes.certificates import Authority
from faults.neighbours import WEBHOOKS
from mpiop.kube.objects import Object

PORT: Final = 10249
"""In the network of the cluster, where nothing else listens there."""
RULES: Final = [
    {"apiGroups": [""], "resources": ["pods", "services", "configmaps", "secrets", "events"]},
    {"apiGroups": ["batch"], "resources": ["jobs"]},
    {"apiGroups": ["kubeflow.org"], "resources": ["mpijobs", "mpijobs/status"]},
]


@contextlib.asynccontextmanager
async def late_writes(here: BenchCluster, namespace: str, seconds: float) -> AsyncIterator[None]:
    """Let each write in `namespace` take so many seconds longer while the block runs; with 0, do nothing."""
    if not seconds:
        yield
        return
    with TemporaryDirectory() as folder:
        authority = Authority()
        authority.issue("webhook").write(Path(folder) / "tls.crt", Path(folder) / "tls.key")
        inside = (ROOT / "hack/cluster", "exec", "--network-only", "--name", here.cluster, "--")
        serve = (sys.executable, "-m", "bench.late_writes", str(PORT), folder, str(seconds))
        process = await asyncio.create_subprocess_exec(*inside, *serve, stdout=asyncio.subprocess.PIPE)
        try:
            if process.stdout is not None and not await process.stdout.readline():
                raise RuntimeError("the webhook that delays writes does not listen")
            await here.client.create(WEBHOOKS, _configuration(namespace, authority.certificate))
            yield
        finally:
            process.terminate()
            await process.wait()


def _configuration(namespace: str, authority: str) -> Object:
    webhook = {
        "name": "late.mpiop.test",
        "clientConfig": {"url": f"https://127.0.0.1:{PORT}/", "caBundle": base64.b64encode(authority.encode()).decode()},
        "rules": [{**rule, "apiVersions": ["*"], "operations": ["CREATE", "UPDATE", "DELETE"]} for rule in RULES],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    made: Any = {
        "apiVersion": WEBHOOKS.api_version,
        "kind": WEBHOOKS.kind,
        "metadata": {"name": "late.mpiop.test"},
        "webhooks": [webhook],
    }
    return cast("Object", made)


def main(port: int, folder: Path, seconds: float) -> None:
    """Serve until terminated."""

    async def admit(request: web.Request) -> web.Response:
        review = await request.json()
        await asyncio.sleep(seconds)
        response = {"uid": review["request"]["uid"], "allowed": True}
        return web.json_response({"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response})

    application = web.Application(client_max_size=2**24)
    application.router.add_post("/", admit)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(folder / "tls.crt", folder / "tls.key")
    announce = lambda _line: print("listening", flush=True)  # noqa: E731 - what aiohttp prints when it listens
    web.run_app(application, host="127.0.0.1", port=port, ssl_context=context, print=announce)


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3]))
