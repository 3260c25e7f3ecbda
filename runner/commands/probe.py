"""The command `probe`."""

from typing import TYPE_CHECKING, Annotated, get_args

import typer
from rich.console import Console

from bench.errors import UserError
from bench.registry import FRAMEWORKS, MODELS, Mode
from runner.commands.exit_codes import EXIT_NOT_OK, find_end_code
from runner.commands.options import CONSOLE, JsonOption, PythonOption, make_error_console
from runner.durations import read_durations
from runner.terminal_text import echo

if TYPE_CHECKING:  # help and completion need no more than the options
    from bench.schema import Cell
    from runner.capabilities import GpuKind
    from runner.probe.search import Probe, ProbeReport

ModelArgument = Annotated[
    str, typer.Argument(metavar="MODEL", help=f"One of {', '.join(MODELS)}.", autocompletion=lambda: list(MODELS))
]
FrameworkOption = Annotated[str, typer.Option(metavar="NAME", help=f"One of {', '.join(FRAMEWORKS)}.")]
DeviceOption = Annotated[str | None, typer.Option(metavar="NAME", help="cpu or gpu; default: gpu if one is visible.")]
PhaseOption = Annotated[
    str | None, typer.Option(metavar="NAME", help="train or infer; default: train if the model can be trained.")
]
PrecisionOption = Annotated[str, typer.Option(metavar="NAME", help="fp32, tf32, fp16 or bf16.")]
ModeOption = Annotated[
    str | None,
    typer.Option(metavar="NAME", help=f"One of {', '.join(get_args(Mode))}; default: the framework's first."),
]
InputSizeOption = Annotated[
    int | None, typer.Option(metavar="NUMBER", help="Pixels, tokens or rows; default: the model's.")
]
NumClassesOption = Annotated[int | None, typer.Option(metavar="NUMBER", help="Default: the model's.")]
NumGpusOption = Annotated[int, typer.Option(metavar="NUMBER", help="GPUs that share the batch.")]
MaxBatchSizeOption = Annotated[int, typer.Option(metavar="NUMBER", help="Try no larger batch.")]
DeadlineOption = Annotated[
    float,
    typer.Option(
        "--deadline",
        "--time-limit",
        parser=read_durations("--deadline"),
        metavar="TIME",
        help="Time for the whole search, --time-limit is its former name.",
        show_default="30m",
    ),
]


def probe(
    model: ModelArgument,
    framework: FrameworkOption = "pytorch",
    device: DeviceOption = None,
    phase: PhaseOption = None,
    precision: PrecisionOption = "fp32",
    mode: ModeOption = None,
    input_size: InputSizeOption = None,
    num_classes: NumClassesOption = None,
    num_gpus: NumGpusOption = 1,
    max_batch_size: MaxBatchSizeOption = 65_536,
    deadline: DeadlineOption = 1800.0,
    python: PythonOption = None,
    as_json: JsonOption = False,
) -> None:
    """Find the largest batch of MODEL that fits into memory, trying each in a fresh process."""
    from runner.local.hardware import find_gpu
    from runner.probe.search import make_cell

    gpu = find_gpu()
    cell = make_cell(
        model,
        framework,
        device=device or ("cpu" if gpu is None else "gpu"),
        phase=phase,
        precision=precision,
        mode=mode,
        input_size=input_size,
        num_classes=num_classes,
        num_gpus=num_gpus,
    )
    search = _plan_search(cell, gpu, max_batch_size, deadline)
    report = _search(search, python or [], make_error_console() if as_json else CONSOLE)
    if as_json:
        echo(report.to_json())
    raise typer.Exit(0 if report.is_conclusive else EXIT_NOT_OK)


def _plan_search(cell: "Cell", gpu: "GpuKind | None", max_batch_size: int, deadline: float) -> "Probe":
    """Return the search. Raise UserError if these bounds leave nothing to try, or this machine cannot run the cell."""
    from runner.local.hardware import explain_unsupported
    from runner.probe.search import Probe

    if max_batch_size < cell.num_gpus:
        raise UserError(f"--max-batch-size {max_batch_size}: is below the smallest batch, {cell.num_gpus}; give more")
    if reason := explain_unsupported(cell, gpu):
        raise UserError(f"this cannot be probed here: {reason}")
    return Probe(
        cell=cell,
        gpu_name=gpu.name if gpu and cell.device == "gpu" else None,
        max_batch_size=max_batch_size,
        time_limit_seconds=deadline,
    )


def _search(search: "Probe", python: list[str], console: Console) -> "ProbeReport":
    from runner.local.host_lock import hold_host_lock
    from runner.local.run import end_like_interrupt, find_interpreters, parse_interpreters
    from runner.probe.display import show_search

    given = parse_interpreters(python, tuple(FRAMEWORKS))
    try:
        with end_like_interrupt(), hold_host_lock("probe") as lock:
            interpreters = find_interpreters({search.cell.framework}, given, console, lock)
            return show_search(search, interpreters, lock, console)
    except KeyboardInterrupt as interrupt:
        console.print("interrupted")
        raise typer.Exit(find_end_code(interrupt)) from None
