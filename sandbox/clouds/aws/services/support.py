"""What the state machines share."""

from __future__ import annotations

from typing import Any

from moto.moto_api._internal import mock_random

from sandbox.clouds.aws.api import ACCOUNT, Call
from sandbox.clouds.tables import CloudError, NotFoundError


def hexadecimal(length: int = 17) -> str:
    """Random digits as in an id of AWS; the same again after a restart."""
    return str(mock_random.get_random_hex(length))


def refuse(code: str, message: str) -> CloudError:
    """A refusal with the code that AWS would give."""
    return NotFoundError(code, message) if "NotFound" in code else CloudError(code, message)


def require_role(call: Call, arn: str, *, service: str) -> None:
    """Refuses a role that does not exist or that the service may not assume."""
    try:
        role = call.api.moto("iam", "GetRole", call.region, {"RoleName": arn.rsplit("/", 1)[-1]})["Role"]
    except NotFoundError as error:
        raise refuse("InvalidParameterException", f"role {arn} does not exist") from error
    statements = role["AssumeRolePolicyDocument"]["Statement"]
    trusted = {
        name
        for statement in statements
        if statement["Effect"] == "Allow"
        for name in _listed(statement.get("Principal", {}).get("Service", []))
    }
    if service not in trusted:
        raise refuse(
            "InvalidParameterException",
            f"role {arn} does not let {service} assume it; it trusts {', '.join(sorted(trusted)) or 'no service'}",
        )


def subnets(call: Call, ids: list[str]) -> list[dict[str, Any]]:
    """The subnets; refuses one that does not exist."""
    try:
        found: list[dict[str, Any]] = call.api.moto("ec2", "DescribeSubnets", call.region, {"SubnetIds": ids})[
            "Subnets"
        ]
    except NotFoundError as error:
        raise refuse("InvalidParameterException", str(error)) from error
    return found


def require_groups(call: Call, ids: list[str]) -> None:
    """Refuses a security group that does not exist."""
    if ids:
        try:
            call.api.moto("ec2", "DescribeSecurityGroups", call.region, {"GroupIds": ids})
        except NotFoundError as error:
            raise refuse("InvalidParameterException", str(error)) from error


def arn(service: str, region: str, rest: str) -> str:
    """An ARN of the account."""
    return f"arn:aws:{service}:{region}:{ACCOUNT}:{rest}"


def _listed(value: Any) -> list[str]:
    return value if isinstance(value, list) else [value]
