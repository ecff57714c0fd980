"""The proxies of the environment: looked at before the first request, so that a wrong one is named and never printed."""

from __future__ import annotations

from urllib.parse import SplitResult, unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from .errors import UsageError


def proxy_for(address: str) -> str | None:
    """The proxy through which `address` is asked (HTTPS_PROXY, HTTP_PROXY, ALL_PROXY, NO_PROXY); None: directly."""
    url = urlsplit(address)
    proxies = getproxies()
    proxy = proxies.get(url.scheme) or proxies.get("all")
    if not proxy or proxy_bypass(url.netloc):
        return None
    return _with_scheme(proxy)


def credentials(proxy: str) -> str | None:
    """`USER:PASSWORD` of a proxy's address."""
    url = urlsplit(proxy)
    return None if url.username is None else f"{unquote(url.username)}:{unquote(url.password or '')}"


def check_proxies() -> None:
    """Raises UsageError when a proxy of the environment can't be one. The value may hold a password: it is not shown."""
    for scheme, value in getproxies().items():
        if scheme in ("http", "https", "all") and value and (wrong := address_problem(_with_scheme(value))):
            raise UsageError(
                f"{scheme.upper()}_PROXY {wrong}",
                remedy="Write http://HOST:PORT or http://USER:PASSWORD@HOST:PORT, with what is special in the password as %XX",
            )


def _with_scheme(proxy: str) -> str:
    return proxy if "://" in proxy else f"http://{proxy}"


def address_problem(address: str) -> str | None:
    """What is wrong with an HTTP address, without its value."""
    try:
        url: SplitResult = urlsplit(address)
        host, _ = url.hostname, url.port
        (credentials(address) or "").encode("latin-1")
    except UnicodeEncodeError:
        return "has a user or password that HTTP's basic authentication can't carry"
    except ValueError:
        return "has no port that can be read"
    if url.scheme not in ("http", "https"):
        return f"is no HTTP address ({url.scheme or 'no scheme'})"
    if not host or any(character.isspace() for character in host):
        return "has no host that can be read"
    return None
