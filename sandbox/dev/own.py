"""What `make up` asks of a cluster that the user brings."""

from __future__ import annotations

import os

import yaml
from kubernetes import client, config
from kubernetes.config import ConfigException
from urllib3.exceptions import HTTPError

OLDEST_KUBERNETES = (1, 34)
"""resource.k8s.io/v1, which the production stacks' claims use, is served since 1.34 (Kubernetes changelog)."""


class ClusterError(Exception):
    """The user's cluster can't be used; the message says why and what to do."""


def check_own_cluster() -> str:
    """Asks the cluster of $KUBECONFIG for its version and says which it is.

    Raises ClusterError when it can't be reached, refuses, or is too old.
    """
    where = os.environ["KUBECONFIG"]
    try:
        api = config.new_client_from_config(config_file=where)
        api.configuration.retries = False
        version = client.VersionApi(api).get_code(_request_timeout=10)
    except (
        ConfigException,
        yaml.YAMLError,
        AttributeError,
        TypeError,
    ) as error:  # the client's reader lets what is no kubeconfig through
        raise ClusterError(
            f"KUBECONFIG={where} can't be read: {' '.join(str(error).split())}. Name a kubeconfig file, or unset it."
        ) from None
    except client.ApiException as error:
        raise ClusterError(f"the cluster in KUBECONFIG={where} refuses: {error.status} {error.reason}.") from None
    except (HTTPError, OSError) as error:
        raise ClusterError(
            f"the cluster in KUBECONFIG={where} can't be reached: {error}. Start it, or unset KUBECONFIG to use the embedded cluster."
        ) from None
    found = (int(version.major), int(version.minor.rstrip("+")))
    if found < OLDEST_KUBERNETES:
        raise ClusterError(
            f"the cluster in KUBECONFIG={where} is Kubernetes {found[0]}.{found[1]}; "
            f"{OLDEST_KUBERNETES[0]}.{OLDEST_KUBERNETES[1]} or newer is needed. Upgrade it, or unset KUBECONFIG."
        )
    return f"Kubernetes {version.git_version} from KUBECONFIG={where}"
