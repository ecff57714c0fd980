"""IAM roles: for the control plane, for nodes, and one a Kubernetes service account (EKS Pod Identity)."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from components.aws.documents import trust

NODE_POLICIES = ("AmazonEKSWorkerNodePolicy", "AmazonEC2ContainerRegistryPullOnly", "AmazonSSMManagedInstanceCore")
"""What a node's own role may do: join, pull images, and be reached by Session Manager (there is no SSH).
The CNI has a role of its own, so pods that reach the node's credentials can't change interfaces."""


def managed_policy(name: str, *, partition: str) -> str:
    """ARN of a policy that AWS maintains; some live under a path."""
    path = "service-role/" if name.startswith(("AmazonEBSCSI", "AmazonEFSCSI")) else ""
    return f"arn:{partition}:iam::aws:policy/{path}{name}"


class ServiceRole(pulumi.ComponentResource):
    """A role for one AWS service with policies that AWS maintains.

    service: for example ec2.amazonaws.com. policies: their names. arn, role_name: of the role.
    attached: the attachments; what is created with the role waits for them, and is deleted before them.
    """

    def __init__(
        self,
        name: str,
        *,
        service: str,
        policies: tuple[str, ...],
        partition: str,
        tag_session: bool = False,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("llm-serving:aws:ServiceRole", name, {}, opts)
        child = pulumi.ResourceOptions(parent=self)
        role = aws.iam.Role(name, assume_role_policy=trust(service, tag_session=tag_session), opts=child)
        self.attached: list[pulumi.Resource] = [
            aws.iam.RolePolicyAttachment(
                f"{name}-{policy}", role=role.name, policy_arn=managed_policy(policy, partition=partition), opts=child
            )
            for policy in policies
        ]
        self.arn: pulumi.Output[str] = role.arn
        self.role_name: pulumi.Output[str] = role.name
        self.register_outputs({"arn": self.arn})


@dataclass(frozen=True, kw_only=True)
class PodRoleArgs:
    """One service account's rights.

    policy: an inline policy document. managed: names of policies that AWS maintains.
    associate: bind the role to the service account here; an add-on binds it itself.
    """

    cluster_name: pulumi.Input[str]
    partition: str
    namespace: str
    service_account: str
    policy: pulumi.Input[str] | None = None
    managed: tuple[str, ...] = ()
    associate: bool = True


class PodRole(pulumi.ComponentResource):
    """A role that pods of one service account take on through EKS Pod Identity.

    arn: of the role. ready: what pods that need the rights wait for.
    """

    def __init__(self, name: str, *, args: PodRoleArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("llm-serving:aws:PodRole", name, {}, opts)
        child = pulumi.ResourceOptions(parent=self)
        role = ServiceRole(
            name,
            service="pods.eks.amazonaws.com",
            policies=args.managed,
            partition=args.partition,
            tag_session=True,
            opts=child,
        )
        self.ready: list[pulumi.Resource] = [*role.attached]
        if args.policy is not None:
            self.ready.append(aws.iam.RolePolicy(name, role=role.role_name, policy=args.policy, opts=child))
        if args.associate:
            self.ready.append(
                aws.eks.PodIdentityAssociation(
                    name,
                    cluster_name=args.cluster_name,
                    namespace=args.namespace,
                    service_account=args.service_account,
                    role_arn=role.arn,
                    opts=child,
                )
            )
        self.arn: pulumi.Output[str] = role.arn
        self.service_account = args.service_account
        self.register_outputs({"arn": self.arn})
