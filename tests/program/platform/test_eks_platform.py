"""GPU software, Prometheus and dashboards, as the API server would be asked to make them."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
import yaml

from components.platform.gpu import ChartSource, DevicePlugin, DraDriver, GpuSoftware, GpuSoftwareArgs
from components.platform.monitoring import Target, block_alerts, rule_file, scrape_configuration, sglang_dashboard
from components.platform.prometheus import Dashboards, Prometheus, PrometheusArgs
from tests.support.recorder import Recording, record

DRA = DraDriver(
    source=ChartSource(chart="oci://registry.k8s.io/dra-driver-nvidia/charts/dra-driver-nvidia-gpu", version="0.4.1"),
    image_repository="registry.k8s.io/dra-driver-nvidia/dra-driver-nvidia-gpu",
    image_tag="v0.4.1",
)
PLUGIN = DevicePlugin(
    source=ChartSource(
        chart="nvidia-device-plugin", version="0.20.0", repository="https://nvidia.github.io/k8s-device-plugin"
    ),
    image_repository="nvcr.io/nvidia/k8s-device-plugin",
    image_tag="v0.20.0",
)


def software(allocator: DraDriver | DevicePlugin) -> Recording:
    args = GpuSoftwareArgs(
        allocator=allocator, exporter_image="dcgm-exporter:1", node_selector={"llm-serving/pool": "accelerators"}
    )
    return record(lambda: (GpuSoftware("gpu", args=args), None)[1])


@pytest.mark.parametrize("allocator", [DRA, PLUGIN], ids=["dra", "plugin"])
def test_one_allocator_hands_out_gpus_and_never_two(allocator: DraDriver | DevicePlugin) -> None:
    charts = software(allocator).of("helm.sh/v4:Chart")
    assert [chart.inputs["chart"] for chart in charts] == [allocator.source.chart]


def test_the_dra_driver_serves_gpus_and_no_compute_domains() -> None:
    values = software(DRA).one("helm.sh/v4:Chart").inputs["values"]
    assert values["gpuResourcesEnabledOverride"] is True
    assert values["resources"] == {"gpus": {"enabled": True}, "computeDomains": {"enabled": False}}


def test_the_dra_driver_is_not_in_the_namespace_that_its_chart_refuses() -> None:
    assert software(DRA).one("helm.sh/v4:Chart").inputs["namespace"] != "default"


def test_the_device_plugin_leaves_off_what_clashes_with_efa() -> None:
    values = software(PLUGIN).one("helm.sh/v4:Chart").inputs["values"]
    assert values["mofedEnabled"] is False
    assert values["gdrcopyEnabled"] is False


def test_the_exporter_runs_on_accelerator_nodes_only_and_tolerates_their_taint() -> None:
    spec = software(DRA).one("DaemonSet").inputs["spec"]["template"]["spec"]
    assert spec["nodeSelector"] == {"llm-serving/pool": "accelerators"}
    assert spec["tolerations"][0]["key"] == "nvidia.com/gpu"


def prometheus() -> Recording:

    args = PrometheusArgs(
        namespace="monitoring",
        image="prometheus:3",
        scrape_configuration=scrape_configuration(
            [Target(job="engine", namespace="ml-team", labels={"a": "b"}, port="http")]
        ),
        rules={
            "block.rules.yaml": rule_file(
                "block",
                block_alerts(
                    ends_at=datetime(2026, 12, 10, tzinfo=UTC), drain_at=datetime(2026, 12, 9, 23, tzinfo=UTC)
                ),
            )
        },
        namespaces=("ml-team",),
        provisioner="ebs.csi.aws.com",
        storage_gib=100,
        retention_days=15,
        node_selector={},
    )
    return record(lambda: (Prometheus("prometheus", args=args), None)[1])


def test_prometheus_reads_every_rule_file_that_it_is_given() -> None:
    files = prometheus().one("ConfigMap").inputs["data"]
    config = yaml.safe_load(files["prometheus.yaml"])
    assert config["rule_files"] == ["/etc/prometheus/*.rules.yaml"]
    assert [job["job_name"] for job in config["scrape_configs"]] == ["engine"]
    assert yaml.safe_load(files["block.rules.yaml"])["groups"]


def test_prometheus_may_look_up_pods_in_the_named_namespaces_and_nothing_else() -> None:
    recording = prometheus()
    assert not recording.of("ClusterRole")
    role = recording.one("v1:Role").inputs
    assert role["metadata"]["namespace"] == "ml-team"
    assert role["rules"] == [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]}]


def test_prometheus_keeps_less_than_its_volume_holds() -> None:
    arguments = prometheus().one("StatefulSet").inputs["spec"]["template"]["spec"]["containers"][0]["args"]
    assert "--storage.tsdb.retention.size=90GB" in arguments


def test_dashboards_carry_the_label_that_grafana_looks_for() -> None:
    recording = record(
        lambda: (
            Dashboards("dashboards", namespace="monitoring", dashboards={"sglang": sglang_dashboard(job="engine")}),
            None,
        )[1]
    )
    stored = recording.one("ConfigMap").inputs
    assert stored["metadata"]["labels"] == {"grafana_dashboard": "1"}
    assert json.loads(stored["data"]["sglang.json"])["title"] == "SGLang engines"


def test_the_volume_of_samples_is_encrypted_and_goes_with_prometheus() -> None:
    recording = prometheus()
    storage = recording.one("StorageClass").inputs
    assert storage["parameters"]["encrypted"] == "true"
    assert storage["reclaimPolicy"] == "Delete"
    assert recording.one("PersistentVolumeClaim").inputs["spec"]["storageClassName"] == storage["metadata"]["name"]
    assert "volumeClaimTemplates" not in recording.one("StatefulSet").inputs["spec"]
