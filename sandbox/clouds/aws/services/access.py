"""EKS access entries, which let principals of AWS into a cluster, and pod identities, which let pods out to AWS."""

from __future__ import annotations

from sandbox.clouds.aws.api import Call
from sandbox.clouds.aws.services.control_planes import ControlPlanes, Document, Owned
from sandbox.clouds.aws.services.support import arn, hexadecimal, refuse, require_role


class AccessEntries:
    """The part of EKS that is about access entries and the policies associated with them."""

    service = "eks"

    def __init__(self, control_planes: ControlPlanes) -> None:
        self._control_planes = control_planes
        self.entries = control_planes.keep()
        self.policies: dict[Owned, dict[str, Document]] = {}
        control_planes.belongings.append(self.policies)

    def create_access_entry(self, call: Call) -> Document:
        params = dict(call.params)
        cluster = self._control_planes.cluster(call.region, params["clusterName"])
        if cluster["accessConfig"]["authenticationMode"] == "CONFIG_MAP":
            raise refuse(
                "InvalidRequestException", "the cluster's authentication mode must be API or API_AND_CONFIG_MAP"
            )
        key = (call.region, params["clusterName"], params["principalArn"])
        if key in self.entries:
            raise refuse(
                "ResourceInUseException",
                f"The specified access entry resource is already in use on this cluster: {key[2]}",
            )
        self.entries[key] = {
            "type": "STANDARD",
            "kubernetesGroups": [],
            "username": params["principalArn"],
            "tags": {},
            **params,
            "accessEntryArn": arn(
                "eks",
                call.region,
                f"access-entry/{key[1]}/role/{params['principalArn'].rsplit('/', 1)[-1]}/{hexadecimal(8)}",
            ),
            "createdAt": call.now,
            "modifiedAt": call.now,
        }
        return {"accessEntry": self.entries[key]}

    def describe_access_entry(self, call: Call) -> Document:
        return {"accessEntry": self._entry(call)}

    def update_access_entry(self, call: Call) -> Document:
        entry = self._entry(call)
        entry.update({name: call.params[name] for name in ("kubernetesGroups", "username") if name in call.params})
        return {"accessEntry": entry}

    def delete_access_entry(self, call: Call) -> Document:
        self._entry(call)
        key = (call.region, call.params["clusterName"], call.params["principalArn"])
        del self.entries[key]
        self.policies.pop(key, None)
        return {}

    def associate_access_policy(self, call: Call) -> Document:
        self._entry(call)
        key = (call.region, call.params["clusterName"], call.params["principalArn"])
        scope = call.params["accessScope"]
        if (scope.get("type") == "namespace") != bool(scope.get("namespaces")):
            raise refuse(
                "InvalidParameterException", "an access scope lists namespaces exactly when its type is namespace"
            )
        associated = {
            "policyArn": call.params["policyArn"],
            "accessScope": scope,
            "associatedAt": call.now,
            "modifiedAt": call.now,
        }
        self.policies.setdefault(key, {})[call.params["policyArn"]] = associated
        return {"clusterName": key[1], "principalArn": key[2], "associatedAccessPolicy": associated}

    def list_associated_access_policies(self, call: Call) -> Document:
        self._entry(call)
        key = (call.region, call.params["clusterName"], call.params["principalArn"])
        return {
            "clusterName": key[1],
            "principalArn": key[2],
            "associatedAccessPolicies": list(self.policies.get(key, {}).values()),
        }

    def disassociate_access_policy(self, call: Call) -> Document:
        self._entry(call)
        key = (call.region, call.params["clusterName"], call.params["principalArn"])
        if self.policies.get(key, {}).pop(call.params["policyArn"], None) is None:
            raise refuse("ResourceNotFoundException", f"{call.params['policyArn']} is not associated with {key[2]}")
        return {}

    def _entry(self, call: Call) -> Document:
        self._control_planes.cluster(call.region, call.params["clusterName"])
        entry = self.entries.get((call.region, call.params["clusterName"], call.params["principalArn"]))
        if entry is None:
            raise refuse(
                "ResourceNotFoundException",
                f"The specified principalArn could not be found: {call.params['principalArn']}",
            )
        return entry


class PodIdentities:
    """The part of EKS that is about pod identity associations."""

    service = "eks"

    def __init__(self, control_planes: ControlPlanes) -> None:
        self._control_planes = control_planes
        self.identities = control_planes.keep()

    def create_pod_identity_association(self, call: Call) -> Document:
        return {"association": self.bind(call, call.params["clusterName"], call.params)}

    def describe_pod_identity_association(self, call: Call) -> Document:
        return {"association": self._identity(call)}

    def update_pod_identity_association(self, call: Call) -> Document:
        identity = self._identity(call)
        if "roleArn" in call.params:
            require_role(call, call.params["roleArn"], service="pods.eks.amazonaws.com")
        members = ("roleArn", "targetRoleArn", "disableSessionTags", "policy")
        identity.update({name: call.params[name] for name in members if name in call.params})
        return {"association": identity}

    def delete_pod_identity_association(self, call: Call) -> Document:
        identity = self._identity(call)
        if "ownerArn" in identity:
            raise refuse("InvalidRequestException", "the association is an add-on's: change the add-on")
        del self.identities[(call.region, call.params["clusterName"], call.params["associationId"])]
        return {"association": identity}

    def bind(self, call: Call, cluster: str, wanted: Document) -> Document:
        """Gives a service account a role."""
        self._control_planes.cluster(call.region, cluster)
        require_role(call, wanted["roleArn"], service="pods.eks.amazonaws.com")
        account = (wanted["namespace"], wanted["serviceAccount"])
        for (region, other, _), identity in self.identities.items():
            if (region, other) == (call.region, cluster) and (
                identity["namespace"],
                identity["serviceAccount"],
            ) == account:
                raise refuse("ResourceInUseException", f"Association already exists: {identity['associationId']}")
        id = f"a-{hexadecimal()}"
        identity = {
            "tags": {},
            **{name: value for name, value in wanted.items() if name != "clientRequestToken"},
            "clusterName": cluster,
            "associationId": id,
            "associationArn": arn("eks", call.region, f"podidentityassociation/{cluster}/{id}"),
            "createdAt": call.now,
            "modifiedAt": call.now,
        }
        self.identities[(call.region, cluster, id)] = identity
        return identity

    def unbind(self, arns: list[str]) -> None:
        """Takes associations away."""
        for key in [key for key, identity in self.identities.items() if identity["associationArn"] in arns]:
            del self.identities[key]

    def _identity(self, call: Call) -> Document:
        key = (call.region, call.params["clusterName"], call.params["associationId"])
        if key not in self.identities:
            raise refuse("ResourceNotFoundException", f"no pod identity association {key[2]} in {key[1]}")
        return self.identities[key]
