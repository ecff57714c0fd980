"""Shared file systems for the weights: FSx for Lustre, filled from the bucket, and EFS, as the recipe's cache."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

LUSTRE_VERSION = "2.15"
"""The driver's default, 2.10, is too old for the node image's kernel (aws-fsx-csi-driver, docs/install.md)."""

LNET_PORTS = ((988, 988), (1018, 1023))
"""TCP ports of Lustre between clients and servers (FSx for Lustre guide, limit-access-security-groups)."""

NFS_PORT = 2049


class ClientGroup(pulumi.ComponentResource):
    """A security group for a file system that nodes of the cluster may reach on the listed TCP ports.

    group_id: of the file system's own group.
    """

    def __init__(
        self,
        name: str,
        *,
        vpc_id: pulumi.Input[str],
        clients: pulumi.Input[str],
        ports: tuple[tuple[int, int], ...],
        mutual: bool,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """clients: the nodes' security group. mutual: the servers also open connections, to clients and to each other."""
        super().__init__("llm-serving:aws:ClientGroup", name, {}, opts)
        child = pulumi.ResourceOptions(parent=self)
        group = aws.ec2.SecurityGroup(name, vpc_id=vpc_id, description=f"Clients of {name}", opts=child)
        ways: list[tuple[str, pulumi.Input[str], pulumi.Input[str]]] = [("from-nodes", group.id, clients)]
        if mutual:
            ways += [("among-servers", group.id, group.id), ("to-nodes", clients, group.id)]
        for way, target, source in ways:
            for low, high in ports:
                aws.vpc.SecurityGroupIngressRule(
                    f"{name}-{way}-{low}",
                    security_group_id=target,
                    referenced_security_group_id=source,
                    ip_protocol="tcp",
                    from_port=low,
                    to_port=high,
                    opts=child,
                )
        if mutual:
            for way, peer in (("nodes", clients), ("servers", group.id)):
                aws.vpc.SecurityGroupEgressRule(
                    f"{name}-out-to-{way}",
                    security_group_id=group.id,
                    referenced_security_group_id=peer,
                    ip_protocol="-1",
                    opts=child,
                )
        self.group_id: pulumi.Output[str] = group.id
        self.register_outputs({"groupId": self.group_id})


@dataclass(frozen=True, kw_only=True)
class LustreArgs:
    """storage_gib: 1,200, 2,400 or a multiple of 2,400. mbps_per_tib: 125, 250, 500 or 1,000 (PERSISTENT_2).

    subnet: in the accelerators' zone. bucket, prefix: what appears at `path` in the file system.
    """

    vpc_id: pulumi.Input[str]
    subnet: pulumi.Input[str]
    clients: pulumi.Input[str]
    storage_gib: int
    mbps_per_tib: int
    bucket: pulumi.Input[str]
    prefix: str
    path: str


class Lustre(pulumi.ComponentResource):
    """A PERSISTENT_2 file system tied to the bucket: names arrive at once, contents on the first read or by pre-warming.

    file_system_id, dns_name, mount_name: what a PersistentVolume needs. linked: the association with the bucket.
    """

    def __init__(self, name: str, *, args: LustreArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("llm-serving:aws:Lustre", name, {}, opts)
        child = pulumi.ResourceOptions(parent=self)
        group = ClientGroup(
            f"{name}-lustre", vpc_id=args.vpc_id, clients=args.clients, ports=LNET_PORTS, mutual=True, opts=child
        )
        system = aws.fsx.LustreFileSystem(
            name,
            deployment_type="PERSISTENT_2",
            storage_type="SSD",
            storage_capacity=args.storage_gib,
            per_unit_storage_throughput=args.mbps_per_tib,
            file_system_type_version=LUSTRE_VERSION,
            subnet_ids=args.subnet,
            security_group_ids=[group.group_id],
            skip_final_backup=True,
            opts=pulumi.ResourceOptions(parent=self, depends_on=[group]),
        )
        self.linked = aws.fsx.DataRepositoryAssociation(
            name,
            file_system_id=system.id,
            file_system_path=args.path,
            data_repository_path=pulumi.Output.format("s3://{0}/{1}", args.bucket, args.prefix),
            batch_import_meta_data_on_create=True,
            s3={"auto_import_policy": {"events": ["NEW", "CHANGED", "DELETED"]}},
            opts=child,
        )
        self.file_system_id: pulumi.Output[str] = system.id
        self.dns_name: pulumi.Output[str] = system.dns_name
        self.mount_name: pulumi.Output[str] = system.mount_name
        self.register_outputs(
            {"fileSystemId": self.file_system_id, "dnsName": self.dns_name, "mountName": self.mount_name}
        )


@dataclass(frozen=True, kw_only=True)
class ElasticFileSystemArgs:
    """subnets: private subnet id by zone; every zone with nodes gets a mount target."""

    vpc_id: pulumi.Input[str]
    subnets: dict[str, pulumi.Output[str]]
    clients: pulumi.Input[str]


class ElasticFileSystem(pulumi.ComponentResource):
    """An encrypted EFS file system in Elastic throughput mode, reachable in every zone of the nodes.

    file_system_id: what a PersistentVolume needs. mounted: the mount targets; pods that mount it wait for them.
    """

    def __init__(self, name: str, *, args: ElasticFileSystemArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("llm-serving:aws:ElasticFileSystem", name, {}, opts)
        child = pulumi.ResourceOptions(parent=self)
        group = ClientGroup(
            f"{name}-efs",
            vpc_id=args.vpc_id,
            clients=args.clients,
            ports=((NFS_PORT, NFS_PORT),),
            mutual=False,
            opts=child,
        )
        system = aws.efs.FileSystem(name, encrypted=True, throughput_mode="elastic", opts=child)
        self.mounted: list[pulumi.Resource] = [
            aws.efs.MountTarget(
                f"{name}-{zone}",
                file_system_id=system.id,
                subnet_id=subnet,
                security_groups=[group.group_id],
                opts=child,
            )
            for zone, subnet in args.subnets.items()
        ]
        self.file_system_id: pulumi.Output[str] = system.id
        self.register_outputs({"fileSystemId": self.file_system_id})
