"""One table a resource type."""

from sandbox.clouds.aws.table import AwsTable
from sandbox.clouds.aws.tables import (
    compute,
    eks,
    file_systems,
    iam,
    kms_logs,
    load_balancers,
    prometheus,
    s3,
    security_groups,
    vpc,
)

TABLES: tuple[type[AwsTable], ...] = (
    *vpc.TABLES,
    *security_groups.TABLES,
    *iam.TABLES,
    *s3.TABLES,
    *kms_logs.TABLES,
    *compute.TABLES,
    *eks.TABLES,
    *file_systems.TABLES,
    *load_balancers.TABLES,
    *prometheus.TABLES,
)
