"""The overlay standalone as one YAML document stream; kustomize is the one in kubectl."""

import hashlib
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent.parent
STANDALONE = ROOT / "manifests" / "overlays" / "standalone"
_SOURCES = ("manifests/base", "manifests/overlays/standalone")
_CONTENTS = "# Contents: sha256 "


class GenerateError(Exception):
    """A file cannot be generated; the message states what is needed."""


def to_yaml(*documents: Any) -> str:
    """Render documents as the repository writes its generated YAML, with a line between them."""
    return yaml.dump_all(documents, Dumper=_Dumper, sort_keys=False, width=120, allow_unicode=True)


def deployment_file() -> str:
    """Return deploy/v2beta1/mpi-operator.yaml: the overlay standalone, with digests that show whether it is up to date.

    Raises:
        GenerateError: kubectl is missing, or kustomize fails.
    """
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        raise GenerateError('no kubectl on PATH, whose kustomize is needed; `eval "$(hack/cluster env)"` brings one')
    # Kustomize needs no cluster, and must not be stopped by a broken kubeconfig.
    environment = {**os.environ, "KUBECONFIG": os.devnull}
    done = subprocess.run([kubectl, "kustomize", STANDALONE], capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        raise GenerateError(f"kubectl kustomize {STANDALONE}: {done.stderr.strip()}")
    objects = to_yaml(*yaml.load_all(done.stdout, Loader=yaml.CSafeLoader))
    header = "# Made from manifests/overlays/standalone by hack/generate; edit those.\n"
    return f"{header}{_CONTENTS}{_digest(objects)}, sources {_sources_digest()}\n{objects}"


def is_current(text: str) -> bool:
    """Return from the digests alone whether `text` and its sources are unchanged since `deployment_file` rendered it."""
    match = re.search(rf"^{_CONTENTS}([0-9a-f]+), sources ([0-9a-f]+)\n", text, re.MULTILINE)
    return match is not None and (_digest(text[match.end() :]), _sources_digest()) == match.groups()


def _sources_digest() -> str:
    files = sorted(path for folder in _SOURCES for path in (ROOT / folder).glob("*.yaml"))
    return _digest("".join(f"{path.relative_to(ROOT)}\n{path.read_text(encoding='utf-8')}\n" for path in files))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


class _Dumper(yaml.CSafeDumper):
    """Writes multi-line strings as blocks, and everything in full (no anchors); libyaml's, since the CRD has 9,000 lines."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - PyYAML's signature
        return True


def _represent_text(dumper: yaml.CSafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _represent_text)
