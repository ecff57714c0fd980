"""What EC2 and IAM refuse to delete while something uses it; moto lets much of it go."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sandbox.clouds.aws.api import Call
from sandbox.clouds.aws.services.control_planes import ControlPlanes
from sandbox.clouds.aws.services.node_groups import NodeGroups
from sandbox.clouds.aws.services.support import refuse


class References:
    """Refuses to delete subnets and security groups that are in use."""

    service = "ec2"

    def __init__(self, control_planes: ControlPlanes, node_groups: NodeGroups) -> None:
        self._control_planes = control_planes
        self._node_groups = node_groups

    def delete_subnet(self, call: Call) -> dict[str, Any]:
        self._refuse_if_used(call, call.params["SubnetId"], self._subnet_users(call))
        return call.forward()

    def delete_security_group(self, call: Call) -> dict[str, Any]:
        self._refuse_if_used(call, call.params["GroupId"], self._group_users(call))
        return call.forward()

    def _refuse_if_used(self, call: Call, id: str, users: Iterator[tuple[str, str]]) -> None:
        found = sorted({user for used, user in users if used == id})
        if found:
            raise refuse("DependencyViolation", f"resource {id} has a dependent object: {', '.join(found)}")

    def _subnet_users(self, call: Call) -> Iterator[tuple[str, str]]:
        for (region, name), cluster in self._control_planes.clusters.items():
            if region == call.region:
                yield from ((id, f"EKS cluster {name}") for id in cluster["resourcesVpcConfig"]["subnetIds"])
        for (region, _, name), group in self._node_groups.groups.items():
            if region == call.region:
                yield from ((id, f"node group {name}") for id in group.document["subnets"])
        ask = call.api.moto
        for gateway in ask("ec2", "DescribeNatGateways", call.region, {})["NatGateways"]:
            if gateway["State"] not in ("deleted", "deleting"):
                yield gateway["SubnetId"], gateway["NatGatewayId"]
        for balancer in ask("elbv2", "DescribeLoadBalancers", call.region, {})["LoadBalancers"]:
            yield from ((zone["SubnetId"], balancer["LoadBalancerName"]) for zone in balancer["AvailabilityZones"])
        for system in ask("efs", "DescribeFileSystems", call.region, {})["FileSystems"]:
            targets = ask("efs", "DescribeMountTargets", call.region, {"FileSystemId": system["FileSystemId"]})
            yield from ((target["SubnetId"], target["MountTargetId"]) for target in targets["MountTargets"])
        for system in ask("fsx", "DescribeFileSystems", call.region, {})["FileSystems"]:
            yield from ((id, system["FileSystemId"]) for id in system.get("SubnetIds", []))

    def _group_users(self, call: Call) -> Iterator[tuple[str, str]]:
        for (region, name), cluster in self._control_planes.clusters.items():
            if region == call.region:
                vpc = cluster["resourcesVpcConfig"]
                yield from (
                    (id, f"EKS cluster {name}") for id in [vpc["clusterSecurityGroupId"], *vpc["securityGroupIds"]]
                )
        for (region, _, name), group in self._node_groups.groups.items():
            if region == call.region and group.instances:
                interfaces = group.template.get("NetworkInterfaces", [])
                yield from ((id, f"node group {name}") for each in interfaces for id in each.get("Groups", []))
        ask = call.api.moto
        for balancer in ask("elbv2", "DescribeLoadBalancers", call.region, {})["LoadBalancers"]:
            yield from ((id, balancer["LoadBalancerName"]) for id in balancer.get("SecurityGroups", []))
        for system in ask("efs", "DescribeFileSystems", call.region, {})["FileSystems"]:
            for target in ask("efs", "DescribeMountTargets", call.region, {"FileSystemId": system["FileSystemId"]})[
                "MountTargets"
            ]:
                held = ask(
                    "efs", "DescribeMountTargetSecurityGroups", call.region, {"MountTargetId": target["MountTargetId"]}
                )
                yield from ((id, target["MountTargetId"]) for id in held["SecurityGroups"])
