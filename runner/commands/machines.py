"""The option `--machine`: which machine type the cells of a device are priced as."""

from typing import Annotated

import typer

from bench.errors import UserError
from bench.registry import Device

DEVICES: tuple[Device, ...] = ("cpu", "gpu")

MachinesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--machine",
        metavar="DEVICE=MACHINE",
        help="Machine type whose price counts for the cells of a device, such as cpu=m6i.xlarge; repeatable.",
    ),
]


def parse_machines(texts: list[str]) -> dict[Device, str]:
    """Return the machine type of each device.

    UserError where one is not `cpu=MACHINE` or `gpu=MACHINE`, or where a device stands twice.
    """
    machines: dict[Device, str] = {}
    for text in texts:
        word, separator, name = text.partition("=")
        device = next((known for known in DEVICES if known == word), None)
        if device is None or not separator or not name:
            raise UserError(f"--machine {text}: expected cpu=MACHINE or gpu=MACHINE, such as cpu=m6i.xlarge")
        if device in machines:
            raise UserError(f"--machine {text}: {device} is given twice, first {machines[device]}; give it once")
        machines[device] = name
    return machines
