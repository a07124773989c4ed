"""The documents are correct: every command, link, target and image name in them exists."""

import itertools
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
import yaml

from imaging.catalogue import CATALOGUE, release_version, with_registry
from mpiop.api.parse import parse_mpijob
from mpiop.api.validation import validate
from mpiop.kubectl.main import cli
from mpiop.kubectl.verbs import VERBS
from website.staging import links, pages

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [ROOT / page for page in pages()]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
TARGET_NAMES = {name for line in re.findall(r"^\.PHONY: (.+)$", MAKEFILE, re.MULTILINE) for name in line.split()}
DECISIONS = sorted(ROOT.glob("docs/adr/[0-9]*.md"))
MANIFESTS = sorted([*ROOT.glob("deploy/**/*.yaml"), *ROOT.glob("examples/**/*.yaml")])


def text_of(document: Path) -> str:
    return document.read_text(encoding="utf-8")


def by_path(document: Path) -> str:
    return str(document.relative_to(ROOT))


@pytest.mark.parametrize("document", DOCUMENTS, ids=by_path)
def test_every_link_leads_somewhere_on_a_code_host(document: Path) -> None:
    targets = [((document.parent / path).resolve() if path else document, anchor) for path, anchor in links(text_of(document))]
    assert [path for path, _ in targets if not path.exists()] == []
    assert [(by_path(path), anchor) for path, anchor in targets if anchor and anchor not in anchors(path)] == []


def anchors(document: Path) -> set[str]:
    """Return the places of a page that a link can lead to: its headings, as code hosts name them, and its own."""
    text = re.sub(r"^```.*?^```$", "", text_of(document), flags=re.MULTILINE | re.DOTALL)
    headings = (re.sub(r"\]\([^)]*\)|[^\w\- ]", "", heading.lower()) for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE))
    return {heading.strip().replace(" ", "-") for heading in headings} | set(re.findall(r'<a id="([^"]+)">', text))


def test_every_alert_leads_to_what_to_do() -> None:
    alerts = yaml.safe_load(text_of(ROOT / "charts/mpiop/files/alerts.yaml"))["groups"][0]["rules"]
    runbooks = [alert["annotations"]["runbook_url"].partition("#") for alert in alerts]
    assert [anchor for _, _, anchor in runbooks] == [alert["alert"].lower() for alert in alerts]
    assert [(path, anchor) for path, _, anchor in runbooks if anchor not in anchors(ROOT / path)] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=by_path)
def test_lists_are_lists_for_every_renderer(document: Path) -> None:
    text = re.sub(r"^```.*?^```$", "```", text_of(document), flags=re.MULTILINE | re.DOTALL)
    item = r"(?:[-*]|\d+\.) "
    assert re.findall(rf"^(?! *{item}|  )\S.*\n *({item}.{{20}})", text, re.MULTILINE) == [], "an empty line before the list is missing"
    assert re.findall(rf"^ {{1,3}}({item}.{{20}})", text, re.MULTILINE) == [], "an item of an inner list begins with four spaces"


@pytest.mark.parametrize("document", DOCUMENTS, ids=by_path)
def test_each_row_of_a_table_has_as_many_cells_as_its_head(document: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", text_of(document), flags=re.MULTILINE | re.DOTALL)
    for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        head, *rows = table.splitlines()
        cells = len(re.findall(r"(?<!\\)\|", head))
        assert [row for row in rows if len(re.findall(r"(?<!\\)\|", row)) != cells] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=by_path)
def test_every_make_target_exists(document: Path) -> None:
    code = re.findall(r"`([^`]+)`", text_of(document)) + re.findall(r"```.*?\n(.*?)```", text_of(document), re.DOTALL)
    named = {
        word
        for piece in code
        for words in re.findall(r"(?:^|[ \n])make((?: +[A-Za-z_]+=(?:'[^']*'|\S*)| +[a-z][a-z0-9-]*)+)", piece)
        for word in re.sub(r"[A-Za-z_]+=(?:'[^']*'|\S*)", "", words).split()
    }
    assert named - TARGET_NAMES == set()


@pytest.mark.parametrize("document", DOCUMENTS, ids=by_path)
def test_every_file_that_a_command_names_exists(document: Path) -> None:
    named = re.findall(r"(?:-f|-k) +((?:deploy|manifests|examples)/\S+?)[`\s]", text_of(document))
    assert [name for name in named if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=by_path)
def test_every_verb_and_option_of_kubectl_mpi_exists(document: Path) -> None:
    for verb, words in calls_in(text_of(document)):
        command = cli.get_command(click.Context(cli), verb)
        assert command, verb
        command.make_parser(click.Context(command, **command.context_settings)).parse_args(words)


def calls_in(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield verb and arguments of each `kubectl mpi` in the code of a page."""
    blocks = re.findall(r"^ *```.*?\n(.*?)^ *```", text, re.MULTILINE | re.DOTALL)
    inline = re.findall(r"`([^`\n]+)`", re.sub(r"^ *```.*?^ *```", "", text, flags=re.MULTILINE | re.DOTALL))
    for line in "\n".join([*blocks, *inline]).replace("\\\n", " ").replace("\\|", "|").splitlines():
        for call in re.split(r"\bkubectl mpi (?=[a-z]+\b)", line)[1:]:
            words = shlex.shlex(call, posix=True, punctuation_chars=True)
            words.whitespace_split = True
            verb, *arguments = itertools.takewhile(lambda word: word[:1] not in "|&;<>()", words)
            yield verb, [*arguments, "value of a last option"]


@pytest.mark.parametrize("document", DOCUMENTS, ids=by_path)
def test_every_value_of_the_chart_that_helm_sets_exists(document: Path) -> None:
    values = yaml.safe_load(text_of(ROOT / "charts/mpiop/values.yaml"))
    for path in re.findall(r"--set(?:-string)? '?([\w.-]+)[\[=]", text_of(document)):
        found = values
        for key in path.split("."):
            assert found == {} or key in found, path
            found = found.get(key, {})


@pytest.mark.parametrize("document", DOCUMENTS, ids=by_path)
def test_no_place_was_left_to_fill_in(document: Path) -> None:
    assert re.findall(r"@[A-Z_]+@|TODO|TBD|FIXME", text_of(document)) == []


@pytest.mark.parametrize("decision", DECISIONS, ids=by_path)
def test_a_decision_has_the_usual_sections_and_is_listed(decision: Path) -> None:
    text = text_of(decision)
    assert text.startswith(f"# {decision.name[:4]}: ")
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == ["Status", "Context", "Decision", "Consequences", "Alternatives"]
    assert f"]({decision.name}) | " in text_of(ROOT / "docs/adr/README.md")
    assert f"- docs/adr/{decision.name}\n" in text_of(ROOT / "mkdocs.yml")


def test_decisions_have_different_numbers() -> None:
    assert len({decision.name[:4] for decision in DECISIONS}) == len(DECISIONS)


@pytest.mark.parametrize(
    "page", sorted({*ROOT.glob("docs/*.md"), *ROOT.glob("docs/reference/*.md")} - {ROOT / "docs/README.md"}), ids=by_path
)
def test_every_page_can_be_found(page: Path) -> None:
    assert f"]({page.relative_to(ROOT / 'docs')})" in text_of(ROOT / "docs/README.md"), "a row in the list of documents is missing"
    assert f"- {by_path(page)}\n" in text_of(ROOT / "mkdocs.yml"), "a place in the nav is missing"


def test_the_readme_quotes_the_figures_of_the_benchmark() -> None:
    quoted = [
        cells_of(row)[1:3] for row in text_of(ROOT / "README.md").splitlines() if row.startswith("|") and "performance.md#figures" in row
    ]
    measured = [cells_of(row)[1:3] for row in text_of(ROOT / "docs/performance.md").splitlines() if row.startswith("|")]
    assert quoted
    assert [figures for figures in quoted if figures not in measured] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=by_path)
def test_every_mpijob_that_is_shown_whole_is_valid(document: Path) -> None:
    blocks = re.findall(r"^```yaml\n(.*?)^```$", text_of(document), re.MULTILINE | re.DOTALL)
    shown = [each for block in blocks for each in yaml.safe_load_all(block) if is_whole_mpijob(each)]
    jobs = [parse_mpijob(each | {"metadata": {"namespace": "team", "uid": "1", **each["metadata"]}}) for each in shown]
    assert [validate(job) for job in jobs] == [()] * len(shown)


def is_whole_mpijob(value: object) -> bool:
    return isinstance(value, dict) and value.get("kind") == "MPIJob" and "metadata" in value


@pytest.mark.parametrize(
    ("part", "module"),
    [
        ("kubernetes", "k8s.io/kubernetes"),
        ("containerd", "github.com/containerd/containerd/v2"),
        ("helm", "helm.sh/helm/v4"),
        ("helm3", "helm.sh/helm/v3"),
        ("kueue", "sigs.k8s.io/kueue"),
        ("volcano", "volcano.sh/volcano"),
        ("coscheduling", "sigs.k8s.io/scheduler-plugins"),
        ("prometheus", "github.com/prometheus/prometheus"),
        ("kube-state-metrics", "k8s.io/kube-state-metrics/v2"),
        ("metrics-server", "sigs.k8s.io/metrics-server"),
        ("gitops", "sigs.k8s.io/cli-utils"),
        ("kubeflow-mpi-operator", "github.com/kubeflow/mpi-operator"),
    ],
)
def test_the_support_matrix_names_the_versions_that_tests_run(part: str, module: str) -> None:
    required = re.search(rf"^\s*{module} v(\S+)", text_of(ROOT / f"hack/embedded/go/{part}/go.mod"), re.MULTILINE)
    tested = [cells_of(row)[2] for row in text_of(ROOT / "docs/support.md").splitlines() if row.startswith("|")]
    assert required
    assert any(required[1] in re.findall(r"[\d.]*\d", cell) for cell in tested)


def test_plugins_of_k9s_call_verbs_that_exist() -> None:
    [block] = [text for text in re.findall(r"```yaml\n(.*?)```", text_of(ROOT / "docs/editors.md"), re.DOTALL) if "plugins:" in text]
    plugins = yaml.safe_load(block)["plugins"]
    called = [re.search(r"\bmpi (\w+)", " ".join(each["args"])) for each in plugins.values()]
    assert [match[1] for match in called if match and match[1] in VERBS] == [name.removeprefix("mpi-") for name in plugins]


def test_the_schema_for_editors_is_of_a_version_that_the_crd_has() -> None:
    [crd] = yaml.safe_load_all(text_of(ROOT / "manifests/base/kubeflow.org_mpijobs.yaml"))
    named = re.findall(r'versions\[\?\(@\.name=="(\w+)"\)\]\.schema\.openAPIV3Schema', text_of(ROOT / "docs/editors.md"))
    assert set(named) == {version["name"] for version in crd["spec"]["versions"]}


def cells_of(row: str) -> list[str]:
    return [cell.strip() for cell in row.strip("|").split("|")]


def test_every_target_is_explained() -> None:
    internal = {"mypy", "basedpyright", "imports"}
    explained = set(re.findall(r"^([a-z0-9-]+):.*## ", MAKEFILE, re.MULTILINE))
    assert explained == TARGET_NAMES - internal


@pytest.mark.parametrize("manifest", MANIFESTS, ids=by_path)
def test_manifests_name_the_images_that_make_images_builds(manifest: Path) -> None:
    built = {image.reference(release_version()) for image in CATALOGUE}
    named = {with_tag(name) for each in yaml.safe_load_all(text_of(manifest)) for name in images_in(each)}
    repositories = {name.rpartition(":")[0] for name in built}
    assert named
    assert {name for name in named if name.rpartition(":")[0] in repositories} <= built


def with_tag(name: str) -> str:
    repository, colon, tag = name.rpartition(":")
    return f"{with_registry(repository)}:{tag}" if colon else name


def images_in(node: object) -> list[str]:
    """Return the value of every `image` of a container below `node`."""
    if isinstance(node, list):
        return [name for each in node for name in images_in(each)]
    if not isinstance(node, dict):
        return []
    own = [container["image"] for key in ("containers", "initContainers") for container in containers(node.get(key))]
    return own + [name for each in node.values() for name in images_in(each)]


def containers(value: object) -> list[dict[str, str]]:
    """Return the containers of a Pod's spec; a CRD has such a key too, for their schema."""
    return [each for each in value if isinstance(each, dict) and "image" in each] if isinstance(value, list) else []
