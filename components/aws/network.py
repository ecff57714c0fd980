"""VPC, subnets, NAT and the S3 gateway endpoint."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from components.aws.addresses import ZoneSubnets, zone_subnets


@dataclass(frozen=True, kw_only=True)
class NetworkArgs:
    """What a network needs to know.

    region: for example us-west-2. cidr: the VPC's IPv4 range, a /18 or larger.
    zones: availability zones by name, the accelerators' among them; the order fixes the addresses.
    cluster_name: subnets are tagged for load balancers of this cluster.
    """

    region: str
    cidr: str
    zones: tuple[str, ...]
    cluster_name: str


class Network(pulumi.ComponentResource):
    """One VPC: a private and a public subnet a zone, one NAT gateway a zone, S3 through a gateway endpoint.

    Nodes live in private subnets only. The S3 endpoint is not an option: without it the checkpoint
    would be read through the NAT gateway, slower and billed by the byte.

    vpc_id: of the VPC. private_subnets, public_subnets: subnet id by zone name.
    """

    def __init__(self, name: str, *, args: NetworkArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("llm-serving:aws:Network", name, {}, opts)
        self._name = name
        self._child = pulumi.ResourceOptions(parent=self)
        self._vpc = aws.ec2.Vpc(
            f"{name}-vpc",
            cidr_block=args.cidr,
            enable_dns_support=True,
            enable_dns_hostnames=True,
            tags={"Name": args.cluster_name},
            opts=self._child,
        )
        # A VPC's default group allows everything among its members; nothing of ours uses it, so it is emptied.
        aws.ec2.DefaultSecurityGroup(
            f"{name}-default-group", vpc_id=self._vpc.id, ingress=[], egress=[], opts=self._child
        )
        gateway = aws.ec2.InternetGateway(
            f"{name}-internet", vpc_id=self._vpc.id, tags={"Name": args.cluster_name}, opts=self._child
        )
        public_routes = aws.ec2.RouteTable(
            f"{name}-public",
            vpc_id=self._vpc.id,
            routes=[{"cidr_block": "0.0.0.0/0", "gateway_id": gateway.id}],
            tags={"Name": f"{args.cluster_name}-public"},
            opts=self._child,
        )
        route_tables: list[pulumi.Output[str]] = []
        self.private_subnets: dict[str, pulumi.Output[str]] = {}
        self.public_subnets: dict[str, pulumi.Output[str]] = {}
        for zone in zone_subnets(cidr=args.cidr, zones=args.zones):
            self.public_subnets[zone.zone] = self._public(zone, args=args, routes=public_routes)
            private, table = self._private(zone, args=args, gateway=gateway)
            self.private_subnets[zone.zone] = private
            route_tables.append(table)
        aws.ec2.VpcEndpoint(
            f"{name}-s3",
            vpc_id=self._vpc.id,
            service_name=f"com.amazonaws.{args.region}.s3",
            vpc_endpoint_type="Gateway",
            route_table_ids=route_tables,
            tags={"Name": f"{args.cluster_name}-s3"},
            opts=self._child,
        )
        self.vpc_id: pulumi.Output[str] = self._vpc.id
        self.register_outputs(
            {"vpcId": self.vpc_id, "privateSubnets": self.private_subnets, "publicSubnets": self.public_subnets}
        )

    def _public(self, zone: ZoneSubnets, *, args: NetworkArgs, routes: aws.ec2.RouteTable) -> pulumi.Output[str]:
        subnet = aws.ec2.Subnet(
            f"{self._name}-public-{zone.zone}",
            vpc_id=self._vpc.id,
            availability_zone=zone.zone,
            cidr_block=str(zone.public),
            map_public_ip_on_launch=False,
            tags={"Name": f"{args.cluster_name}-public-{zone.zone}", "kubernetes.io/role/elb": "1"},
            opts=self._child,
        )
        aws.ec2.RouteTableAssociation(
            f"{self._name}-public-{zone.zone}", subnet_id=subnet.id, route_table_id=routes.id, opts=self._child
        )
        made: pulumi.Output[str] = subnet.id
        return made

    def _private(
        self, zone: ZoneSubnets, *, args: NetworkArgs, gateway: aws.ec2.InternetGateway
    ) -> tuple[pulumi.Output[str], pulumi.Output[str]]:
        """A private subnet whose traffic leaves by a NAT gateway of its own zone; returns subnet id and route table id."""
        tags = {"Name": f"{args.cluster_name}-private-{zone.zone}"}
        subnet = aws.ec2.Subnet(
            f"{self._name}-private-{zone.zone}",
            vpc_id=self._vpc.id,
            availability_zone=zone.zone,
            cidr_block=str(zone.private),
            map_public_ip_on_launch=False,
            tags={**tags, "kubernetes.io/role/internal-elb": "1"},
            opts=self._child,
        )
        address = aws.ec2.Eip(f"{self._name}-nat-{zone.zone}", domain="vpc", tags=tags, opts=self._child)
        nat = aws.ec2.NatGateway(
            f"{self._name}-nat-{zone.zone}",
            subnet_id=self.public_subnets[zone.zone],
            allocation_id=address.allocation_id,
            tags=tags,
            opts=pulumi.ResourceOptions(parent=self, depends_on=[gateway]),
        )
        table = aws.ec2.RouteTable(
            f"{self._name}-private-{zone.zone}",
            vpc_id=self._vpc.id,
            routes=[{"cidr_block": "0.0.0.0/0", "nat_gateway_id": nat.id}],
            tags=tags,
            opts=self._child,
        )
        aws.ec2.RouteTableAssociation(
            f"{self._name}-private-{zone.zone}", subnet_id=subnet.id, route_table_id=table.id, opts=self._child
        )
        return subnet.id, table.id
