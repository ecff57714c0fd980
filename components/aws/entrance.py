"""The way in: a network load balancer in front of the gateway's pods."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

TLS_POLICY = "ELBSecurityPolicy-TLS13-1-2-2021-06"


@dataclass(frozen=True, kw_only=True)
class EntranceArgs:
    """Who may come in, and how.

    subnets: one a zone; private ones for an internal balancer, public ones otherwise. node_port: where the gateway's
    Service listens on every system node. autoscaling_group: of those nodes. nodes: their security group.
    callers: CIDRs that may connect. certificate_arn: ends TLS at the balancer; without it the port is plain HTTP.
    idle_seconds: how long a connection may be silent, 60 to 6,000. drain_seconds: how long running connections through a
    node that goes are kept, up to 3,600.
    """

    vpc_id: pulumi.Input[str]
    subnets: tuple[pulumi.Input[str], ...]
    internal: bool
    callers: tuple[str, ...]
    port: int
    node_port: int
    autoscaling_group: pulumi.Input[str]
    nodes: pulumi.Input[str]
    idle_seconds: int
    drain_seconds: int
    certificate_arn: str | None = None


class Entrance(pulumi.ComponentResource):
    """A network load balancer, made here and not by a controller in the cluster.

    So a preview shows it, `destroy` ends it before its subnets (a balancer left behind by a deleted cluster keeps them
    alive), and nothing in the cluster may create or delete load balancers.

    hostname: DNS name. url: where requests go, with scheme and port. ready: the listener.
    """

    def __init__(self, name: str, *, args: EntranceArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("llm-serving:aws:Entrance", name, {}, opts)
        child = pulumi.ResourceOptions(parent=self)
        group = self._group(name, args=args)
        balancer = aws.lb.LoadBalancer(
            name,
            load_balancer_type="network",
            internal=args.internal,
            subnets=list(args.subnets),
            security_groups=[group],
            enable_cross_zone_load_balancing=True,
            opts=child,
        )
        targets = aws.lb.TargetGroup(
            name,
            vpc_id=args.vpc_id,
            target_type="instance",
            protocol="TCP",
            port=args.node_port,
            # A node that leaves must not cut the streams that run through it: they get as long as a gateway pod that goes.
            deregistration_delay=args.drain_seconds,
            # A node port without a ready pod behind it refuses connections.
            health_check={"protocol": "TCP", "port": "traffic-port"},
            opts=child,
        )
        aws.autoscaling.Attachment(
            name, autoscaling_group_name=args.autoscaling_group, lb_target_group_arn=targets.arn, opts=child
        )
        tls = args.certificate_arn is not None
        self.ready = aws.lb.Listener(
            name,
            load_balancer_arn=balancer.arn,
            port=args.port,
            protocol="TLS" if tls else "TCP",
            certificate_arn=args.certificate_arn,
            ssl_policy=TLS_POLICY if tls else None,
            # AWS fixes the idle time of TLS listeners at 350 s.
            tcp_idle_timeout_seconds=None if tls else args.idle_seconds,
            default_actions=[{"type": "forward", "target_group_arn": targets.arn}],
            opts=child,
        )
        self.hostname: pulumi.Output[str] = balancer.dns_name
        self.url: pulumi.Output[str] = self.hostname.apply(
            lambda host: f"{'https' if tls else 'http'}://{host}:{args.port}"
        )
        self.register_outputs({"hostname": self.hostname, "url": self.url})

    def _group(self, name: str, *, args: EntranceArgs) -> pulumi.Output[str]:
        """The balancer's security group: callers to its port, itself to the node port, and the nodes' side of that."""
        child = pulumi.ResourceOptions(parent=self)
        group = aws.ec2.SecurityGroup(name, vpc_id=args.vpc_id, description="Requests to the model", opts=child)
        for cidr in args.callers:
            aws.vpc.SecurityGroupIngressRule(
                f"{name}-from-{cidr.replace('/', '-')}",
                security_group_id=group.id,
                cidr_ipv4=cidr,
                ip_protocol="tcp",
                from_port=args.port,
                to_port=args.port,
                opts=child,
            )
        for rule, target, peer in (
            (aws.vpc.SecurityGroupEgressRule, group.id, args.nodes),
            (aws.vpc.SecurityGroupIngressRule, args.nodes, group.id),
        ):
            rule(
                f"{name}-to-nodes",
                security_group_id=target,
                referenced_security_group_id=peer,
                ip_protocol="tcp",
                from_port=args.node_port,
                to_port=args.node_port,
                opts=child,
            )
        made: pulumi.Output[str] = group.id
        return made
