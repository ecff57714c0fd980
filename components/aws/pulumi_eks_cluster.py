"""The control plane by `pulumi_eks.Cluster`, for teams that standardise on it. Same outputs as `Cluster`.

Its provider is a Node program with a plugin of its own, so the embedded sandbox can't run it: this is proved under Pulumi's
mocks only, where it is one opaque resource.
"""

from __future__ import annotations

import pulumi
import pulumi_aws as aws
import pulumi_eks as eks

from components.aws.cluster import (
    ACCESS_POLICY,
    LOG_TYPES,
    ClusterArgs,
    PrivateEndpoint,
    PublicEndpoint,
    admit,
    kubeconfig,
)
from components.aws.documents import partition_of


class PulumiEksCluster(pulumi.ComponentResource):
    """An EKS cluster made by the pulumi-eks component, without its default node group and security groups.

    Outputs mean the same as those of `components.aws.cluster.Cluster`.
    """

    def __init__(self, name: str, *, args: ClusterArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("llm-serving:aws:PulumiEksCluster", name, {}, opts)
        child = pulumi.ResourceOptions(parent=self)
        public = args.endpoint.callers if isinstance(args.endpoint, PublicEndpoint) else ()
        key = aws.kms.Key(
            f"{name}-secrets",
            description=f"Kubernetes secrets of {args.name}",
            enable_key_rotation=True,
            deletion_window_in_days=30,
            opts=child,
        )
        made = eks.Cluster(
            name,
            name=args.name,
            version=args.kubernetes_version,
            vpc_id=args.vpc_id,
            private_subnet_ids=list(args.subnets),
            authentication_mode=eks.AuthenticationMode.API,
            access_entries={
                principal.rsplit("/", 1)[-1]: {
                    "principal_arn": principal,
                    "access_policies": {
                        "admin": {
                            "policy_arn": f"arn:{partition_of(args.region)}:eks::aws:cluster-access-policy/{ACCESS_POLICY}",
                            "access_scope": {"type": "cluster"},
                        }
                    },
                }
                for principal in args.administrators
            },
            enabled_cluster_log_types=list(LOG_TYPES),
            encryption_config_key_arn=key.arn,
            endpoint_private_access=True,
            endpoint_public_access=bool(public),
            public_access_cidrs=list(public) or None,
            skip_default_node_group=True,
            skip_default_security_groups=True,
            use_default_vpc_cni=True,
            create_oidc_provider=False,
            opts=child,
        )
        self.cluster_name: pulumi.Output[str] = made.eks_cluster.name
        self.arn: pulumi.Output[str] = made.eks_cluster.arn
        self.endpoint: pulumi.Output[str] = made.eks_cluster.endpoint
        self.certificate_authority: pulumi.Output[str] = made.eks_cluster.certificate_authority.data
        self.security_group_id: pulumi.Output[str] = made.eks_cluster.vpc_config.cluster_security_group_id
        if isinstance(args.endpoint, PrivateEndpoint):
            admit(self, name, security_group_id=self.security_group_id, callers=args.endpoint.callers)
        self.kubeconfig: pulumi.Output[str] = pulumi.Output.all(
            self.endpoint, self.certificate_authority, self.cluster_name
        ).apply(
            lambda known: kubeconfig(
                endpoint=known[0], certificate_authority=known[1], cluster_name=known[2], region=args.region
            )
        )
        self.register_outputs({"clusterName": self.cluster_name, "endpoint": self.endpoint})
