"""Envoy's configuration as the gateway: who may come in, which paths exist, how long a silent stream lives. No Pulumi."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

OPEN_PATHS: Mapping[str, str] = {
    "/v1/models": "GET",
    "/v1/completions": "POST",
    "/v1/chat/completions": "POST",
    "/v1/responses": "POST",
    "/v1/messages": "POST",
    "/v1/messages/count_tokens": "POST",
}
"""OpenAI's and Anthropic's requests. An engine listens to more on the same port (cache flushes, profiles, weight updates):
none of that gets through."""

LISTEN_PORT = 8080
STATUS_PORT = 19001
ADMIN_PORT = 19000
KEYS_MOUNT = "/etc/gateway/keys"
CA_BUNDLE = "/etc/ssl/certs/ca-certificates.crt"
BUFFER_BYTES = 16 * 1024 * 1024
"""A prompt of a million tokens is about 5 MB of JSON."""

_TYPE = "type.googleapis.com/envoy.extensions"


@dataclass(frozen=True, kw_only=True)
class NoAuth:
    """Whoever reaches the gateway may use it."""


@dataclass(frozen=True, kw_only=True)
class ApiKeys:
    """One of the keys in a file, one a line, as `Authorization: Bearer` (OpenAI) or `x-api-key` (Anthropic).

    secret, key: Secret in the gateway's namespace and its key. The file is read when a worker starts.
    """

    secret: str
    key: str


@dataclass(frozen=True, kw_only=True)
class Jwt:
    """A token of one issuer for one of the audiences, in the same headers. ca: file with the roots that the key server's
    certificate is checked against."""

    issuer: str
    audiences: tuple[str, ...]
    jwks_uri: str
    ca: str = CA_BUNDLE


Auth = NoAuth | ApiKeys | Jwt


def envoy_config(
    *, upstream_host: str, upstream_port: int, auth: Auth, idle_seconds: int, keys_mount: str = KEYS_MOUNT
) -> dict[str, Any]:
    """A static Envoy configuration. upstream: the router. idle_seconds: how long a request may be silent; its length is not limited."""
    clusters = [_cluster("router", host=upstream_host, port=upstream_port), _admin_cluster()]
    if isinstance(auth, Jwt):
        clusters.append(_key_server(auth))
    return {
        "admin": {"address": _address("127.0.0.1", ADMIN_PORT)},
        "static_resources": {
            "listeners": [
                _listener(auth=auth, idle_seconds=idle_seconds, keys_mount=keys_mount),
                _status_listener(),
            ],
            "clusters": clusters,
        },
    }


def _address(host: str, port: int) -> dict[str, Any]:
    return {"socket_address": {"address": host, "port_value": port}}


def _listener(*, auth: Auth, idle_seconds: int, keys_mount: str) -> dict[str, Any]:
    manager = {
        "@type": f"{_TYPE}.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "gateway",
        "request_timeout": "0s",
        "stream_idle_timeout": f"{idle_seconds}s",
        "common_http_protocol_options": {"idle_timeout": f"{idle_seconds}s"},
        "use_remote_address": True,
        "normalize_path": True,
        "merge_slashes": True,
        "path_with_escaped_slashes_action": "REJECT_REQUEST",
        "http_filters": [*_auth_filters(auth, keys_mount=keys_mount), _filter("router", "router.v3.Router")],
        "route_config": {
            "name": "requests",
            "virtual_hosts": [{"name": "all", "domains": ["*"], "routes": _routes(idle_seconds)}],
        },
    }
    return {
        "name": "requests",
        "address": _address("0.0.0.0", LISTEN_PORT),
        "per_connection_buffer_limit_bytes": BUFFER_BYTES,
        "filter_chains": [
            {"filters": [{"name": "envoy.filters.network.http_connection_manager", "typed_config": manager}]}
        ],
    }


def _filter(name: str, kind: str, **config: Any) -> dict[str, Any]:
    return {"name": f"envoy.filters.http.{name}", "typed_config": {"@type": f"{_TYPE}.filters.http.{kind}", **config}}


def _routes(idle_seconds: int) -> list[dict[str, Any]]:
    served = [
        {
            "match": {"path": path, "headers": [{"name": ":method", "string_match": {"exact": method}}]},
            "route": {"cluster": "router", "timeout": "0s", "idle_timeout": f"{idle_seconds}s"},
            # What proves the caller's right ends here: neither router nor engines need it.
            "request_headers_to_remove": ["authorization", "x-api-key"],
        }
        for path, method in OPEN_PATHS.items()
    ]
    body = '{"error":{"message":"no such path","type":"not_found_error"}}'
    return [*served, {"match": {"prefix": "/"}, "direct_response": {"status": 404, "body": {"inline_string": body}}}]


def _auth_filters(auth: Auth, *, keys_mount: str) -> list[dict[str, Any]]:
    if isinstance(auth, ApiKeys):
        script = _LUA.replace("KEYS_FILE", f"{keys_mount}/{auth.key}")
        return [_filter("lua", "lua.v3.Lua", default_source_code={"inline_string": script})]
    if isinstance(auth, Jwt):
        provider = {
            "issuer": auth.issuer,
            "audiences": list(auth.audiences),
            "from_headers": [{"name": "authorization", "value_prefix": "Bearer "}, {"name": "x-api-key"}],
            "remote_jwks": {
                "http_uri": {"uri": auth.jwks_uri, "cluster": "keys", "timeout": "5s"},
                "cache_duration": "600s",
                "async_fetch": {},
            },
        }
        rules = [{"match": {"prefix": "/"}, "requires": {"provider_name": "issuer"}}]
        return [_filter("jwt_authn", "jwt_authn.v3.JwtAuthentication", providers={"issuer": provider}, rules=rules)]
    return []


_LUA = """\
local keys = {}
local file = io.open("KEYS_FILE", "r")
if file then
  for line in file:lines() do
    local key = line:match("^%s*(.-)%s*$")
    if key ~= "" then keys[key] = true end
  end
  file:close()
end

function envoy_on_request(handle)
  local headers = handle:headers()
  local bearer = (headers:get("authorization") or ""):match("^[Bb]earer%s+(.+)$")
  if keys[bearer or ""] or keys[headers:get("x-api-key") or ""] then return end
  handle:respond(
    {[":status"] = "401", ["content-type"] = "application/json", ["www-authenticate"] = "Bearer"},
    '{"error":{"message":"no valid API key","type":"authentication_error"}}'
  )
end
"""


def _cluster(name: str, *, host: str, port: int) -> dict[str, Any]:
    endpoint = {"endpoint": {"address": _address(host, port)}}
    return {
        "name": name,
        "type": "STRICT_DNS",
        "dns_lookup_family": "V4_ONLY",
        "connect_timeout": "5s",
        "per_connection_buffer_limit_bytes": BUFFER_BYTES,
        "circuit_breakers": {
            "thresholds": [{"max_connections": 65536, "max_pending_requests": 65536, "max_requests": 65536}]
        },
        "load_assignment": {"cluster_name": name, "endpoints": [{"lb_endpoints": [endpoint]}]},
    }


def _admin_cluster() -> dict[str, Any]:
    return {**_cluster("admin", host="127.0.0.1", port=ADMIN_PORT), "type": "STATIC"}


def _key_server(auth: Jwt) -> dict[str, Any]:
    parts = urlsplit(auth.jwks_uri)
    host = parts.hostname or ""
    context = {
        "@type": f"{_TYPE}.transport_sockets.tls.v3.UpstreamTlsContext",
        "sni": host,
        "common_tls_context": {
            "validation_context": {
                "trusted_ca": {"filename": auth.ca},
                "match_typed_subject_alt_names": [{"san_type": "DNS", "matcher": {"exact": host}}],
            }
        },
    }
    cluster = _cluster("keys", host=host, port=parts.port or 443)
    return {**cluster, "transport_socket": {"name": "envoy.transport_sockets.tls", "typed_config": context}}


def _status_listener() -> dict[str, Any]:
    """Readiness and metrics for the cluster, and nothing else of Envoy's admin interface."""
    routes = [{"match": {"path": path}, "route": {"cluster": "admin"}} for path in ("/ready", "/stats/prometheus")]
    manager = {
        "@type": f"{_TYPE}.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "status",
        "http_filters": [_filter("router", "router.v3.Router")],
        "route_config": {"name": "status", "virtual_hosts": [{"name": "all", "domains": ["*"], "routes": routes}]},
    }
    return {
        "name": "status",
        "address": _address("0.0.0.0", STATUS_PORT),
        "filter_chains": [
            {"filters": [{"name": "envoy.filters.network.http_connection_manager", "typed_config": manager}]}
        ],
    }
