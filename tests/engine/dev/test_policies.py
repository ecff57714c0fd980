"""The policy pack in the real engine: it lets the dev stack pass, and a planted violation fails the preview before anything is made."""

from pathlib import Path

from tests.support.dev import Dev
from tests.support.pulumi import PROJECT, Stack

PACK = str(PROJECT / "policies")

PLANTED = """
import pulumi
import pulumi_kubernetes as k8s
where = k8s.Provider("nowhere", render_yaml_to_directory="rendered")
k8s.apps.v1.Deployment(
    "planted",
    metadata={"name": "planted", "namespace": "default"},
    spec={
        "selector": {"match_labels": {"app": "planted"}},
        "template": {
            "metadata": {"labels": {"app": "planted"}},
            "spec": {"containers": [{"name": "c", "image": "docker.io/library/nginx:latest"}]},
        },
    },
    opts=pulumi.ResourceOptions(provider=where),
)
# A cluster that does not exist yet: its provider can't be asked anything at preview.
first = k8s.core.v1.ConfigMap("first", data={}, opts=pulumi.ResourceOptions(provider=where))
later = k8s.Provider("later", kubeconfig=first.id)
k8s.core.v1.Namespace("open", metadata={"name": "open"}, opts=pulumi.ResourceOptions(provider=later))
k8s.core.v1.Pod(
    "guest",
    metadata={"name": "guest", "namespace": "open"},
    spec={"containers": [{"name": "c", "image": "docker.io/library/nginx:1.29"}]},
    opts=pulumi.ResourceOptions(provider=later),
)
"""


def test_a_planted_violation_fails_the_preview_with_the_rules_words(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "Pulumi.yaml").write_text(
        f"name: planted\nruntime: {{name: python, options: {{toolchain: pip, virtualenv: {PROJECT / '.venv'}}}}}\n"
    )
    (project / "__main__.py").write_text(PLANTED)
    stack = Stack(name="planted", directory=tmp_path / "stack", project=project)
    stack.preview().succeeded()
    refused = stack.preview("--policy-pack", PACK)
    assert refused.code != 0
    assert "mandatory" in refused.text
    assert "nginx:latest" in refused.text
    assert "Pods in the namespace open have no default for Egress and Ingress" in refused.text


def test_the_pack_has_nothing_against_the_dev_stack(dev: Dev) -> None:
    dev.stack.preview("--policy-pack", PACK).succeeded()
