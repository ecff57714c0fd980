"""Prices in US dollars. What has no public price is not here: the plan then says where to look."""

from __future__ import annotations

from dataclasses import dataclass

from catalog.source import Source


@dataclass(frozen=True, kw_only=True)
class Price:
    """usd for one `unit`, in `region`."""

    item: str
    unit: str
    region: str
    usd: float
    source: Source


_KARPENTER = Source(
    where="karpenter-provider-aws pkg/providers/pricing, generated from the AWS price list", date="2026-07-20"
)

PRICES = (
    Price(item="p6-b300.48xlarge", unit="hour", region="us-east-1", usd=142.416, source=_KARPENTER),
    Price(item="p6-b300.48xlarge", unit="hour", region="us-gov-east-1", usd=170.90, source=_KARPENTER),
    Price(item="p6-b200.48xlarge", unit="hour", region="us-east-1", usd=113.9328, source=_KARPENTER),
    Price(item="m6i.4xlarge", unit="hour", region="us-east-1", usd=0.768, source=_KARPENTER),
    Price(item="m7i.2xlarge", unit="hour", region="us-east-1", usd=0.4032, source=_KARPENTER),
    Price(item="m7i.4xlarge", unit="hour", region="us-east-1", usd=0.8064, source=_KARPENTER),
    Price(item="m7i.8xlarge", unit="hour", region="us-east-1", usd=1.6128, source=_KARPENTER),
)


def price(item: str, region: str) -> Price | None:
    """The price of an item in a region, or None. Another region's price is not taken for it."""
    return next((row for row in PRICES if row.item == item and row.region == region), None)


LOOK_HERE = {
    "capacity block": "the offering's upfront fee: `python -m components.aws.buy_block` shows it before anything is bought",
    "ec2": "https://aws.amazon.com/ec2/pricing/on-demand/",
    "eks": "https://aws.amazon.com/eks/pricing/",
    "s3": "https://aws.amazon.com/s3/pricing/",
    "fsx": "https://aws.amazon.com/fsx/lustre/pricing/",
    "efs": "https://aws.amazon.com/efs/pricing/",
    "network": "https://aws.amazon.com/vpc/pricing/",
    "amp": "https://aws.amazon.com/prometheus/pricing/",
    "gke": "https://cloud.google.com/kubernetes-engine/pricing",
    "gce": "your reservation's contract; list prices: https://cloud.google.com/compute/all-pricing",
    "tpu": "your reservation's contract; list prices: https://cloud.google.com/tpu/pricing",
    "gcs": "https://cloud.google.com/storage/pricing",
    "hyperdisk": "https://cloud.google.com/compute/disks-image-pricing",
}
