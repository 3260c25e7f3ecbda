"""The table of environments and the words for one."""

from collector.tables.environments import describe_environment
from factories import make_environment, make_gpu
from machine_facts import make_machine


def test_machine_and_gpu_are_described() -> None:
    gpu = make_gpu(
        ecc_enabled=True,
        pcie_generation=1,
        pcie_width=8,
        max_pcie_generation=4,
        max_pcie_width=16,
        power_limit_watts=60.0,
        default_power_limit_watts=70.0,
    )
    texts = describe_environment(make_environment(machine=make_machine(), gpus=(gpu,)))
    assert (texts["machine"], texts["which cores"]) == ("Amazon EC2, g4dn.xlarge, virtual machine", "0-1 of 4")
    names = ("physical cores", "sockets", "NUMA nodes", "threads per core", "instruction sets")
    assert [texts[name] for name in names] == ["1", "1", "1", "2", "avx2, avx512f"]
    assert (texts["GPU ECC"], texts["MIG slice"]) == ("on", "–")
    assert (texts["GPU's PCIe link"], texts["GPU's PCIe link at most"]) == (
        "generation 1, 8 lanes",
        "generation 4, 16 lanes",
    )
    assert (texts["GPU power limit (W)"], texts["GPU power limit by default (W)"]) == ("60", "70")


def test_an_environment_without_the_facts_has_the_same_rows() -> None:
    old = describe_environment(make_environment(gpus=(make_gpu(),)))
    new = describe_environment(make_environment(machine=make_machine()))
    assert list(old) == list(new)
    assert (old["machine"], old["which cores"], old["GPU ECC"]) == ("–", "–", "–")
