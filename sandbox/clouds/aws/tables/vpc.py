"""VPC, subnets, routes, gateways, endpoints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sandbox.clouds.aws.table import AwsTable, Caller, Part, Tagging, only_one
from sandbox.clouds.tables import NotFoundError, Values


class Ec2Table(AwsTable):
    """A resource of EC2: made with tag specifications, tagged by id."""

    service = "ec2"
    answer_key: str
    """Where the create answer has the resource."""
    id_member: str

    def identify(self, answer: dict[str, Any], inputs: Values) -> str:
        return str(answer[self.answer_key][self.id_member])

    def retag(self, call: Caller, id: str, old: Mapping[str, str], new: Mapping[str, str]) -> None:
        gone = [{"Key": key} for key in sorted(old.keys() - new.keys())]
        fresh = [{"Key": key, "Value": value} for key, value in sorted(new.items()) if old.get(key) != value]
        if gone:
            call("DeleteTags", Resources=[id], Tags=gone)
        if fresh:
            call("CreateTags", Resources=[id], Tags=fresh)

    def arn(self, kind: str, id: str, answer: dict[str, Any]) -> str:
        return f"arn:aws:ec2:{self.account.region}:{answer.get('OwnerId') or self.account.id}:{kind}/{id}"


def tagged(kind: str) -> Tagging:
    """Tags of an EC2 resource."""
    return Tagging("TagSpecifications", "specifications", resource_type=kind)


class Vpc(Ec2Table):
    token = "aws:ec2/vpc:Vpc"
    operation, answer_key, id_member = "CreateVpc", "Vpc", "VpcId"
    names = {"assignGeneratedIpv6CidrBlock": "AmazonProvidedIpv6CidrBlock"}
    parts = (
        Part(("enableDnsSupport",), "set_dns_support"),
        Part(("enableDnsHostnames",), "set_dns_hostnames"),
    )
    tagging = tagged("vpc")

    def set_dns_support(self, call: Caller, id: str, old: Values, new: Values) -> None:
        call("ModifyVpcAttribute", VpcId=id, EnableDnsSupport={"Value": new.get("enableDnsSupport", True)})

    def set_dns_hostnames(self, call: Caller, id: str, old: Values, new: Values) -> None:
        call("ModifyVpcAttribute", VpcId=id, EnableDnsHostnames={"Value": new.get("enableDnsHostnames", False)})

    def describe(self, call: Caller, id: str) -> dict[str, Any]:
        return only_one(call("DescribeVpcs", VpcIds=[id])["Vpcs"], id)

    def more(self, call: Caller, id: str, answer: dict[str, Any]) -> Values:
        support = call("DescribeVpcAttribute", VpcId=id, Attribute="enableDnsSupport")["EnableDnsSupport"]
        names = call("DescribeVpcAttribute", VpcId=id, Attribute="enableDnsHostnames")["EnableDnsHostnames"]
        here = [{"Name": "vpc-id", "Values": [id]}]
        groups = call("DescribeSecurityGroups", Filters=[*here, {"Name": "group-name", "Values": ["default"]}])
        main = call("DescribeRouteTables", Filters=[*here, {"Name": "association.main", "Values": ["true"]}])
        table = main["RouteTables"][0]["RouteTableId"] if main["RouteTables"] else None
        return {
            "arn": self.arn("vpc", id, answer),
            "enableDnsSupport": support["Value"],
            "enableDnsHostnames": names["Value"],
            "defaultSecurityGroupId": groups["SecurityGroups"][0]["GroupId"] if groups["SecurityGroups"] else None,
            "mainRouteTableId": table,
            "defaultRouteTableId": table,
        }

    def delete(self, id: str, inputs: Values, properties: Values) -> None:
        self.caller(inputs)("DeleteVpc", VpcId=id)


class Subnet(Ec2Table):
    token = "aws:ec2/subnet:Subnet"
    operation, answer_key, id_member = "CreateSubnet", "Subnet", "SubnetId"
    parts = (Part(("mapPublicIpOnLaunch",), "set_public"),)
    tagging = tagged("subnet")

    def set_public(self, call: Caller, id: str, old: Values, new: Values) -> None:
        call("ModifySubnetAttribute", SubnetId=id, MapPublicIpOnLaunch={"Value": new.get("mapPublicIpOnLaunch", False)})

    def describe(self, call: Caller, id: str) -> dict[str, Any]:
        return only_one(call("DescribeSubnets", SubnetIds=[id])["Subnets"], id)

    def more(self, call: Caller, id: str, answer: dict[str, Any]) -> Values:
        return {"arn": answer.get("SubnetArn") or self.arn("subnet", id, answer)}

    def delete(self, id: str, inputs: Values, properties: Values) -> None:
        self.caller(inputs)("DeleteSubnet", SubnetId=id)


class InternetGateway(Ec2Table):
    token = "aws:ec2/internetGateway:InternetGateway"
    operation, answer_key, id_member = "CreateInternetGateway", "InternetGateway", "InternetGatewayId"
    parts = (Part(("vpcId",), "attach"),)
    tagging = tagged("internet-gateway")

    def attach(self, call: Caller, id: str, old: Values, new: Values) -> None:
        if old.get("vpcId"):
            call("DetachInternetGateway", InternetGatewayId=id, VpcId=old["vpcId"])
        if new.get("vpcId"):
            call("AttachInternetGateway", InternetGatewayId=id, VpcId=new["vpcId"])

    def describe(self, call: Caller, id: str) -> dict[str, Any]:
        return only_one(call("DescribeInternetGateways", InternetGatewayIds=[id])["InternetGateways"], id)

    def more(self, call: Caller, id: str, answer: dict[str, Any]) -> Values:
        attached = answer.get("Attachments") or [{}]
        return {"arn": self.arn("internet-gateway", id, answer), "vpcId": attached[0].get("VpcId")}

    def delete(self, id: str, inputs: Values, properties: Values) -> None:
        call = self.caller(inputs)
        for attached in self.describe(call, id).get("Attachments", []):
            call("DetachInternetGateway", InternetGatewayId=id, VpcId=attached["VpcId"])
        call("DeleteInternetGateway", InternetGatewayId=id)


class RouteTable(Ec2Table):
    token = "aws:ec2/routeTable:RouteTable"
    operation, answer_key, id_member = "CreateRouteTable", "RouteTable", "RouteTableId"
    answer_names = {"routes": ""}
    parts = (Part(("routes",), "set_routes"),)
    tagging = tagged("route-table")

    TARGETS = {
        "cidrBlock": "DestinationCidrBlock",
        "ipv6CidrBlock": "DestinationIpv6CidrBlock",
        "destinationPrefixListId": "DestinationPrefixListId",
        "gatewayId": "GatewayId",
        "natGatewayId": "NatGatewayId",
        "vpcPeeringConnectionId": "VpcPeeringConnectionId",
        "transitGatewayId": "TransitGatewayId",
        "egressOnlyGatewayId": "EgressOnlyInternetGatewayId",
        "networkInterfaceId": "NetworkInterfaceId",
        "vpcEndpointId": "VpcEndpointId",
    }

    def set_routes(self, call: Caller, id: str, old: Values, new: Values) -> None:
        before = {route["cidrBlock"]: route for route in old.get("routes") or []}
        after = {route["cidrBlock"]: route for route in new.get("routes") or []}
        for cidr in before.keys() - after.keys():
            call("DeleteRoute", RouteTableId=id, DestinationCidrBlock=cidr)
        for cidr, route in after.items():
            if before.get(cidr) != route:
                members = {self.TARGETS[name]: value for name, value in route.items()}
                call("ReplaceRoute" if cidr in before else "CreateRoute", RouteTableId=id, **members)

    def describe(self, call: Caller, id: str) -> dict[str, Any]:
        return only_one(call("DescribeRouteTables", RouteTableIds=[id])["RouteTables"], id)

    def more(self, call: Caller, id: str, answer: dict[str, Any]) -> Values:
        own = [
            route for route in answer["Routes"] if route.get("GatewayId") != "local" and "DestinationCidrBlock" in route
        ]
        routes = [{name: route[member] for name, member in self.TARGETS.items() if route.get(member)} for route in own]
        # Routes that an endpoint put there are the endpoint's.
        routes = [route for route in routes if not str(route.get("gatewayId", "")).startswith("vpce-")]
        return {"arn": self.arn("route-table", id, answer), "routes": routes}

    def delete(self, id: str, inputs: Values, properties: Values) -> None:
        self.caller(inputs)("DeleteRouteTable", RouteTableId=id)


class RouteTableAssociation(Ec2Table):
    token = "aws:ec2/routeTableAssociation:RouteTableAssociation"
    operation = "AssociateRouteTable"
    parts = (Part(("routeTableId",), "move", at_create=False),)

    def identify(self, answer: dict[str, Any], inputs: Values) -> str:
        return str(answer["AssociationId"])

    def move(self, call: Caller, id: str, old: Values, new: Values) -> None:
        # EC2 gives the association a new id with each move; the old one can no longer be found.
        call(
            "ReplaceRouteTableAssociation", AssociationId=self.current(call, id, old), RouteTableId=new["routeTableId"]
        )

    def current(self, call: Caller, id: str, inputs: Values) -> str:
        """The association's present id."""
        return str(self._association(call, id)["RouteTableAssociationId"])

    def describe(self, call: Caller, id: str) -> dict[str, Any]:
        return self._association(call, id)

    def _association(self, call: Caller, id: str) -> dict[str, Any]:
        for table in call("DescribeRouteTables")["RouteTables"]:
            for association in table.get("Associations", []):
                if association.get("RouteTableAssociationId") == id:
                    return {**association, "RouteTableId": table["RouteTableId"]}
        raise NotFoundError("InvalidAssociationID.NotFound", f"{id} does not exist")

    def delete(self, id: str, inputs: Values, properties: Values) -> None:
        self.caller(inputs)("DisassociateRouteTable", AssociationId=id)


class Eip(Ec2Table):
    token = "aws:ec2/eip:Eip"
    operation = "AllocateAddress"
    tagging = tagged("elastic-ip")

    def identify(self, answer: dict[str, Any], inputs: Values) -> str:
        return str(answer["AllocationId"])

    def describe(self, call: Caller, id: str) -> dict[str, Any]:
        found = only_one(call("DescribeAddresses", AllocationIds=[id])["Addresses"], id)
        # What uses the address is not this resource's: the answer changes with it.
        return {name: found[name] for name in ("AllocationId", "PublicIp", "Domain", "Tags") if name in found}

    def more(self, call: Caller, id: str, answer: dict[str, Any]) -> Values:
        return {"arn": self.arn("elastic-ip", id, answer), "allocationId": id}

    def delete(self, id: str, inputs: Values, properties: Values) -> None:
        self.caller(inputs)("ReleaseAddress", AllocationId=id)


class NatGateway(Ec2Table):
    token = "aws:ec2/natGateway:NatGateway"
    operation, answer_key, id_member = "CreateNatGateway", "NatGateway", "NatGatewayId"
    tagging = tagged("natgateway")
    answer_names = {"privateIp": "", "publicIp": ""}

    def describe(self, call: Caller, id: str) -> dict[str, Any]:
        found = only_one(call("DescribeNatGateways", NatGatewayIds=[id])["NatGateways"], id)
        if found["State"] in ("deleted", "deleting"):
            raise NotFoundError("NatGatewayNotFound", f"{id} is deleted")
        return found

    def more(self, call: Caller, id: str, answer: dict[str, Any]) -> Values:
        address = answer["NatGatewayAddresses"][0]
        return {
            "allocationId": address.get("AllocationId"),
            "networkInterfaceId": address.get("NetworkInterfaceId"),
            "privateIp": address.get("PrivateIp"),
            "publicIp": address.get("PublicIp"),
        }

    def delete(self, id: str, inputs: Values, properties: Values) -> None:
        self.caller(inputs)("DeleteNatGateway", NatGatewayId=id)


class VpcEndpoint(Ec2Table):
    token = "aws:ec2/vpcEndpoint:VpcEndpoint"
    operation, answer_key, id_member = "CreateVpcEndpoint", "VpcEndpoint", "VpcEndpointId"
    names = {"policy": "PolicyDocument"}
    answer_names = {"policy": "PolicyDocument"}
    parts = (
        Part(
            ("routeTableIds", "subnetIds", "securityGroupIds", "policy", "privateDnsEnabled"), "modify", at_create=False
        ),
    )
    tagging = tagged("vpc-endpoint")
    LISTS = {
        "routeTableIds": ("AddRouteTableIds", "RemoveRouteTableIds"),
        "subnetIds": ("AddSubnetIds", "RemoveSubnetIds"),
        "securityGroupIds": ("AddSecurityGroupIds", "RemoveSecurityGroupIds"),
    }

    def modify(self, call: Caller, id: str, old: Values, new: Values) -> None:
        members: dict[str, Any] = {}
        for name, (add, remove) in self.LISTS.items():
            before, after = set(old.get(name) or []), set(new.get(name) or [])
            members |= {add: sorted(after - before) or None, remove: sorted(before - after) or None}
        if old.get("policy") != new.get("policy"):
            members |= {"PolicyDocument": new["policy"]} if new.get("policy") else {"ResetPolicy": True}
        if old.get("privateDnsEnabled") != new.get("privateDnsEnabled"):
            members["PrivateDnsEnabled"] = new.get("privateDnsEnabled", False)
        call("ModifyVpcEndpoint", VpcEndpointId=id, **members)

    def describe(self, call: Caller, id: str) -> dict[str, Any]:
        found = only_one(call("DescribeVpcEndpoints", VpcEndpointIds=[id])["VpcEndpoints"], id)
        if found.get("State") == "deleted":
            raise NotFoundError("InvalidVpcEndpointId.NotFound", f"{id} is deleted")
        return found

    def more(self, call: Caller, id: str, answer: dict[str, Any]) -> Values:
        return {"arn": self.arn("vpc-endpoint", id, answer)}

    def delete(self, id: str, inputs: Values, properties: Values) -> None:
        self.caller(inputs)("DeleteVpcEndpoints", VpcEndpointIds=[id])


TABLES = (Vpc, Subnet, InternetGateway, RouteTable, RouteTableAssociation, Eip, NatGateway, VpcEndpoint)
