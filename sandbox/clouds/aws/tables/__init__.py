"""One table a resource type."""

from sandbox.clouds.aws.table import AwsTable
from sandbox.clouds.aws.tables import iam, security_groups, vpc

TABLES: tuple[type[AwsTable], ...] = (*vpc.TABLES, *security_groups.TABLES, *iam.TABLES)
