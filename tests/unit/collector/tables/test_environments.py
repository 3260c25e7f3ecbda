"""The table of environments and the words for one."""

from collector.analysis import analyze_run
from collector.results.hosts import describe_environment
from collector.tables.environments import make_environments_table, make_shared_environment_table
from factories import make_cell, make_environment, make_gpu, make_machine
from measured_runs import Collect, make_repeats


def test_machine_and_gpu_are_described() -> None:
    gpu = make_gpu(ecc_enabled=True, pcie_generation=1, pcie_width=8, power_limit_watts=60.0)
    texts = describe_environment(make_environment(machine=make_machine(), gpus=(gpu,)))
    expected = {
        "machine vendor": "Amazon EC2",
        "machine is virtual": "yes",
        "machine visible cores": "0-1",
        "machine instruction sets": "avx2, avx512f",
        "GPU memory total": "15.0 GiB",
        "GPU mig profile": "–",
        "GPU power limit watts": "60.0",
    }
    assert {name: texts[name] for name in expected} == expected


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
    assert (alike["package numpy"], alike["num threads"], alike["repeats"]) == ("2.5.2", "2", "1")
