"""Envoy's configuration in front of an endpoint picker in the same pod: it asks the picker where each request goes. No Pulumi."""

from __future__ import annotations

from typing import Any

PICKER_PORT = 9002
PICKER_HEALTH_PORT = 9003
PICKER_METRICS_PORT = 9090
STATUS_PORT = 19001
ADMIN_PORT = 19000
DESTINATION_HEADER = "x-gateway-destination-endpoint"
"""In which the picker answers (gateway-api-inference-extension v1.5.0, docs/proposals/004-endpoint-picker-protocol)."""

LONGEST_REQUEST = "86400s"
"""The inference extension's own chart allows a day: a long answer is not a hanging one."""

PICK_SECONDS = 10
"""How long the picker may be unreachable until a request is refused."""

_TYPE = "type.googleapis.com/envoy.extensions"


def envoy_picker_config(*, port: int) -> dict[str, Any]:
    """A static configuration. port: where requests come in. The picker listens in plain text on this pod's loopback."""
    return {
        "admin": {"address": _address("127.0.0.1", ADMIN_PORT)},
        "static_resources": {
            "listeners": [_requests(port), _status()],
            "clusters": [_engines(), _picker(), _admin()],
        },
    }


def _address(host: str, port: int) -> dict[str, Any]:
    return {"socket_address": {"address": host, "port_value": port}}


def _requests(port: int) -> dict[str, Any]:
    picker = {
        "name": "envoy.filters.http.ext_proc",
        "typed_config": {
            "@type": f"{_TYPE}.filters.http.ext_proc.v3.ExternalProcessor",
            "grpc_service": {"envoy_grpc": {"cluster_name": "picker"}, "timeout": f"{PICK_SECONDS}s"},
            # The picker reads the body to know the prompt, and the answer to know how much was served.
            "processing_mode": {
                "request_header_mode": "SEND",
                "response_header_mode": "SEND",
                "request_body_mode": "FULL_DUPLEX_STREAMED",
                "response_body_mode": "FULL_DUPLEX_STREAMED",
                "request_trailer_mode": "SEND",
                "response_trailer_mode": "SEND",
            },
            "message_timeout": "1000s",
        },
    }
    routes = [
        {
            "match": {"prefix": "/"},
            "route": {"cluster": "engines", "timeout": LONGEST_REQUEST, "idle_timeout": LONGEST_REQUEST},
        }
    ]
    manager = {
        "@type": f"{_TYPE}.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "requests",
        "http_filters": [picker, _router()],
        "route_config": {"name": "requests", "virtual_hosts": [{"name": "all", "domains": ["*"], "routes": routes}]},
    }
    return {"name": "requests", "address": _address("0.0.0.0", port), "filter_chains": [_chain(manager)]}


def _router() -> dict[str, Any]:
    return {"name": "envoy.filters.http.router", "typed_config": {"@type": f"{_TYPE}.filters.http.router.v3.Router"}}


def _chain(manager: dict[str, Any]) -> dict[str, Any]:
    return {"filters": [{"name": "envoy.filters.network.http_connection_manager", "typed_config": manager}]}


def _status() -> dict[str, Any]:
    """Readiness and metrics for the cluster, and nothing else of Envoy's admin interface."""
    routes = [{"match": {"path": path}, "route": {"cluster": "admin"}} for path in ("/ready", "/stats/prometheus")]
    manager = {
        "@type": f"{_TYPE}.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "status",
        "http_filters": [_router()],
        "route_config": {"name": "status", "virtual_hosts": [{"name": "all", "domains": ["*"], "routes": routes}]},
    }
    return {"name": "status", "address": _address("0.0.0.0", STATUS_PORT), "filter_chains": [_chain(manager)]}


def _engines() -> dict[str, Any]:
    """Whatever address the picker wrote into the header."""
    return {
        "name": "engines",
        "type": "ORIGINAL_DST",
        "lb_policy": "CLUSTER_PROVIDED",
        "connect_timeout": "10s",
        "circuit_breakers": _limits(),
        "original_dst_lb_config": {"use_http_header": True, "http_header_name": DESTINATION_HEADER},
    }


def _picker() -> dict[str, Any]:
    protocol = f"{_TYPE}.upstreams.http.v3.HttpProtocolOptions"
    return {
        **_static("picker", PICKER_PORT),
        "circuit_breakers": _limits(),
        "typed_extension_protocol_options": {
            protocol.removeprefix("type.googleapis.com/"): {
                "@type": protocol,
                "explicit_http_config": {"http2_protocol_options": {}},
            }
        },
    }


def _admin() -> dict[str, Any]:
    return _static("admin", ADMIN_PORT)


def _static(name: str, port: int) -> dict[str, Any]:
    endpoint = {"endpoint": {"address": _address("127.0.0.1", port)}}
    return {
        "name": name,
        "type": "STATIC",
        "connect_timeout": "5s",
        "load_assignment": {"cluster_name": name, "endpoints": [{"lb_endpoints": [endpoint]}]},
    }


def _limits() -> dict[str, Any]:
    most = 40000
    return {"thresholds": [{"max_connections": most, "max_pending_requests": most, "max_requests": most}]}
