"""The table of environments and the words for one."""

from collector.analysis import analyze_run
from collector.tables.environments import (
    describe_environment,
    make_environments_table,
    make_shared_environment_table,
)
from factories import make_cell, make_environment, make_gpu
from machine_facts import make_machine
from measured_runs import Collect, make_repeats


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


def test_environments_are_named_by_what_ran_in_them_and_show_what_differs(collect: Collect) -> None:
    torch = make_environment(versions={"torch": "2.11.0", "numpy": "2.5.2"}, settings={"optimizer": "Adam"})
    forward = make_environment(versions={"torch": "2.11.0", "numpy": "2.5.2"}, settings={"optimizer": "none"})
    keras = make_environment(versions={"tensorflow": "2.21.0", "numpy": "2.5.2"}, settings={"optimizer": "Adam"})
    graph = make_cell(framework="tensorflow", mode="graph")
    analysis = analyze_run(
        collect(
            *make_repeats(make_cell(), 0.1, environment=torch),
            *make_repeats(make_cell(phase="infer"), 0.1, environment=forward),
            *make_repeats(graph, 0.1, environment=keras),
        )
    )
    table, shared = make_environments_table(analysis), make_shared_environment_table(analysis)
    assert table is not None
    assert shared is not None
    assert table.headings == [
        "property",
        "PyTorch eager training",
        "PyTorch eager inference",
        "TensorFlow graph training",
    ]
    rows = {row[0]: row[1:] for row in table.format_rows()}
    assert rows.pop("id")
    assert rows == {
        "package tensorflow": ("–", "–", "2.21.0"),
        "package torch": ("2.11.0", "2.11.0", "–"),
        "setting optimizer": ("Adam", "none", "Adam"),
    }
    alike = {row[0]: row[1] for row in shared.format_rows()}
    assert (alike["package numpy"], alike["threads"], alike["repeats"]) == ("2.5.2", "2", "1")
