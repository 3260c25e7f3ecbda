"""Make the table of prices and the sums of docs/results/reproduce-on-t4.md from the price table."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from collector.prices.table import PriceRow
from runner.price_tables import load_prices

HOURS = 5
"""About four hours of measuring, half an hour of setting up, some slack: the section "How long it takes"."""
CONTROL_PLANE = 0.10
# The machines of the page's commands: cloud, machine type, whether with a GPU.
MACHINES = (
    ("GKE", "n1-standard-4", True),
    ("GKE", "n2-standard-4", False),
    ("GKE", "e2-standard-2", False),
    ("EKS", "g4dn.xlarge", True),
    ("EKS", "m6i.xlarge", False),
)
REGIONS = {"GKE": "us-central1", "EKS": "us-east-1"}


@dataclass(frozen=True)
class _Cost:
    cloud: str
    words: str
    per_hour: float
    source: str


def list_budget_rows() -> Iterator[tuple[str, str, str]]:
    """Yield the cells of each row: what, USD per hour, from where."""
    for cost in _list_costs():
        yield cost.words, f"{cost.per_hour:.3f}", cost.source
    yield (
        "control plane, GKE and EKS alike",
        f"{CONTROL_PLANE:.3f}",
        "[GKE](https://cloud.google.com/kubernetes-engine/pricing), read 2026-11-22; EKS not verified",
    )


def describe_sums() -> str:
    """Return what GKE and EKS cost for HOURS, as sums of the rows."""
    return "\n".join(f"- {cloud}: {_describe_sum(cloud)}" for cloud in REGIONS)


def _describe_sum(cloud: str) -> str:
    prices = [f"{cost.per_hour:.3f}" for cost in _list_costs() if cost.cloud == cloud] + [f"{CONTROL_PLANE:.3f}"]
    return f"({' + '.join(prices)}) x {HOURS} = {sum(map(float, prices)) * HOURS:.1f} USD"


def _list_costs() -> Iterator[_Cost]:
    rows = load_prices().prices
    for cloud, machine, has_gpu in MACHINES:
        row = _find_row(rows, cloud, machine, has_gpu)
        words = f"{machine} with a {row.gpu}" if row.gpu and cloud == "GKE" else machine
        remark = f"; {row.remark}" if row.remark else ""
        source = f"[price list]({row.source}), {row.date}{remark}"
        yield _Cost(cloud, f"{words}, {row.region}", row.price_per_hour, source)


def _find_row(rows: Sequence[PriceRow], cloud: str, machine: str, has_gpu: bool) -> PriceRow:
    (row,) = (
        row
        for row in rows
        if (row.cloud, row.region, row.machine, row.purchase) == (cloud, REGIONS[cloud], machine, "on-demand")
        and (row.gpu is not None) == has_gpu
    )
    return row
