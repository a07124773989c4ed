"""Kubeconfigs, with everything embedded so that the file works on its own."""

import base64
import json
from pathlib import Path


def render_kubeconfig(certificates: Path, user: str, server: str, name: str) -> str:
    """Return a kubeconfig (JSON, which is YAML too) for the client certificate `user`.

    Args:
        certificates: Folder with `ca.crt`, `<user>.crt` and `<user>.key`.
        user: File name of the certificate.
        server: URL of the API server.
        name: Of the cluster, the user and the context.
    """

    def data(file: str) -> str:
        return base64.b64encode((certificates / file).read_bytes()).decode("ascii")

    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": {"server": server, "certificate-authority-data": data("ca.crt")}}],
        "users": [{"name": name, "user": {"client-certificate-data": data(f"{user}.crt"), "client-key-data": data(f"{user}.key")}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }
    return json.dumps(content, indent=2) + "\n"
