"""The table of programs that are built from source: what of which Go module, and under which names it runs.

To add one: a folder with a `go.mod` below `go/`, and a row here. It is built when first asked for.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from embedded.errors import ClusterError
from embedded.layout import GO_SOURCES


@dataclass(frozen=True)
class Program:
    """One `go build`: `package` relative to the module, or an import path; the first of `names` is the file, the others are links."""

    package: str
    names: tuple[str, ...]


@dataclass(frozen=True)
class Part:
    """One Go module of ours below `go/`; `seconds` is what a cold build takes on two cores, for the display."""

    name: str
    programs: tuple[Program, ...]
    seconds: int
    stamps: tuple[str, ...] = ()
    tags: str = ""

    @property
    def folder(self) -> Path:
        """The module's sources."""
        return GO_SOURCES / self.name

    @property
    def linker_flags(self) -> str:
        """What goes to `go build -ldflags`."""
        return " ".join(("-s", "-w", *(f"-X {stamp}" for stamp in self.stamps)))


def _single(name: str, package: str, seconds: int, *, stamps: tuple[str, ...] = (), tags: str = "") -> Part:
    """Return a part with one program, which has its name."""
    return Part(name, (Program(package, (name,)),), seconds, stamps, tags)


_KUBERNETES = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "kubectl")
_VERSION = "k8s.io/component-base/version"

PARTS = {
    part.name: part
    for part in (
        Part(
            "kubernetes",
            (Program(".", ("kubernetes", *_KUBERNETES)),),
            490,
            stamps=(f"{_VERSION}.gitVersion=v1.36.3", f"{_VERSION}.gitMajor=1", f"{_VERSION}.gitMinor=36"),
        ),
        _single("etcd", "go.etcd.io/etcd/server/v3", 50),
        Part(
            "containerd",
            (
                Program(".", ("containerd", "ctr")),
                Program("github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2", ("containerd-shim-runc-v2",)),
            ),
            100,
            stamps=("github.com/containerd/containerd/v2/version.Version=v2.4.2",),
            tags="no_btrfs,no_devmapper,no_zfs",
        ),
        _single("coredns", ".", 100),
        _single("pause", ".", 1),
        _single("probe", ".", 15),
        _single("kwok", "sigs.k8s.io/kwok/cmd/kwok", 110, stamps=("sigs.k8s.io/kwok/pkg/consts.Version=v0.8.0",)),
        _single("kubeflow-mpi-operator", "github.com/kubeflow/mpi-operator/cmd/mpi-operator", 120),
        _single("kueue", "sigs.k8s.io/kueue/cmd/kueue", 240),
        Part(
            "volcano",
            (
                Program("volcano.sh/volcano/cmd/scheduler", ("vc-scheduler",)),
                Program("volcano.sh/volcano/cmd/controller-manager", ("vc-controller-manager",)),
            ),
            150,
        ),
        _single("coscheduling", ".", 150),
        _single("dra-example-driver", "sigs.k8s.io/dra-example-driver/cmd/dra-example-kubeletplugin", 100),
        _single("helm", "helm.sh/helm/v4/cmd/helm", 80, stamps=("helm.sh/helm/v4/internal/version.version=v4.3.1",)),
        _single(
            "helm3",
            "helm.sh/helm/v3/cmd/helm",
            80,
            stamps=(
                "helm.sh/helm/v3/internal/version.version=v3.22.0",
                # Else `helm template` and `helm lint` take the cluster for one of version 1.20.
                "helm.sh/helm/v3/pkg/chartutil.k8sVersionMajor=1",
                "helm.sh/helm/v3/pkg/chartutil.k8sVersionMinor=37",
            ),
        ),
        _single("gitops", ".", 30),
        _single("kube-state-metrics", "k8s.io/kube-state-metrics/v2", 120),
        _single("metrics-server", "sigs.k8s.io/metrics-server/cmd/metrics-server", 100),
        _single("cosign", "github.com/sigstore/cosign/v3/cmd/cosign", 240),
        _single("crane", "github.com/google/go-containerregistry/cmd/crane", 30),
        _single("krew", "sigs.k8s.io/krew/cmd/krew", 20),
        _single("syft", "github.com/anchore/syft/cmd/syft", 160),
        _single("prometheus", "github.com/prometheus/prometheus/cmd/prometheus", 180, tags="remove_all_sd,enable_kubernetes_sd"),
    )
}
CONTROL_PLANE = ("kubernetes", "etcd")
NODE = ("containerd", "coredns", "pause")
SIMULATED = ("kwok",)


def find_part(name: str) -> Part:
    """Return the part called `name`.

    Raises:
        ClusterError: There is none.
    """
    if name not in PARTS:
        raise ClusterError(f"no part {name!r}; there are {', '.join(PARTS)}")
    return PARTS[name]


def fingerprint(part: Part, machine: str) -> str:
    """Return the cache key: the pinned versions, our sources, the flags and the architecture."""
    digest = hashlib.sha256(repr((part.programs, part.linker_flags, part.tags, machine)).encode())
    for file in sorted(part.folder.iterdir()):
        if file.name in {"go.mod", "go.sum"} or file.suffix == ".go":
            digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()[:16]
