"""The command `probe`: search the largest batch of a model here, or predict it from the cells of a run."""

from typing import Annotated, get_args

import typer

from bench.errors import UserError
from bench.registry import FRAMEWORKS, MODELS, Mode, Precision
from runner.commands.options import (
    CONSOLE,
    DEFAULT_STORE,
    EXIT_NOT_OK,
    JsonOption,
    PythonOption,
    complete_run_id,
    make_error_console,
    read_durations,
    refuse_given,
)
from runner.terminal import echo

RUN_PANEL = "With --run"
OF_RUNS = ("store", "level")
OF_CELLS = ("phase", "precision", "mode", "input_size", "num_classes", "num_gpus", "context_of")

ModelArgument = Annotated[
    str | None,
    typer.Argument(metavar="MODEL", help=f"One of {', '.join(MODELS)}.", autocompletion=lambda: list(MODELS)),
]
DeviceOption = Annotated[str | None, typer.Option(metavar="NAME", help="cpu or gpu; default: gpu if one is visible.")]
PhaseOption = Annotated[
    str | None, typer.Option(metavar="NAME", help="train or infer; default: train if the model can be trained.")
]
ModeOption = Annotated[
    str | None,
    typer.Option(metavar="NAME", help=f"One of {', '.join(get_args(Mode))}; default: the framework's first."),
]
DeadlineOption = Annotated[
    float,
    typer.Option(
        "--deadline",
        parser=read_durations("--deadline"),
        metavar="TIME",
        help="Time for the whole search.",
        show_default="30m",
    ),
]
SizeOption = Annotated[int | None, typer.Option(metavar="NUMBER", help="Pixels, tokens or rows; default: the model's.")]
ContextOption = Annotated[
    int | None,
    typer.Option(
        "--context-of",
        min=1,
        metavar="SEQUENCES",
        help="Search the largest context of a language model for so many sequences at once, not the batch.",
    ),
]
RunsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--run",
        metavar="RUN_ID",
        help="Search nothing: predict from this run, with GPU cells at several batch sizes; repeatable.",
        rich_help_panel=RUN_PANEL,
        autocompletion=complete_run_id,
    ),
]
RunStoreOption = Annotated[
    str, typer.Option("--store", metavar="URL", help="Where the run is.", rich_help_panel=RUN_PANEL)
]


def probe(
    context: typer.Context,
    model: ModelArgument = None,
    framework: Annotated[str, typer.Option(metavar="NAME", help=f"One of {', '.join(FRAMEWORKS)}.")] = "pytorch",
    device: DeviceOption = None,
    phase: PhaseOption = None,
    precision: Annotated[str, typer.Option(metavar="NAME", help=", ".join(get_args(Precision)))] = "fp32",
    mode: ModeOption = None,
    max_batch_size: Annotated[int, typer.Option(metavar="NUMBER", help="Try no larger batch.")] = 65_536,
    deadline: DeadlineOption = 1800.0,
    python: PythonOption = None,
    as_json: JsonOption = False,
    input_size: SizeOption = None,
    num_gpus: Annotated[int, typer.Option(metavar="NUMBER", help="GPUs that share the batch.")] = 1,
    num_classes: Annotated[int | None, typer.Option(metavar="NUMBER", help="Default: the model's.")] = None,
    context_of: ContextOption = None,
    run_ids: RunsOption = None,
    store: RunStoreOption = DEFAULT_STORE,
    level: Annotated[
        float, typer.Option(metavar="PERCENT", help="Level of the intervals.", rich_help_panel=RUN_PANEL)
    ] = 95.0,
) -> None:
    """Find the largest batch of MODEL, or context, that fits into memory, trying each in a fresh process.

    With --run, fit memory over batch size to measured cells: the largest batch for cards of 16 to 141 GB, with
    intervals.
    """
    if run_ids:
        of_searches = {name for name in context.params if name not in ("run_ids", *OF_RUNS)}
        refuse_given(context, of_searches, "does not go with --run; leave one of them out")
        _predict(run_ids, store, level)
        return
    if model is None:
        raise UserError(f"MODEL is missing; give one of {', '.join(MODELS)}, or --run RUN_ID")
    refuse_given(context, OF_RUNS, "is for predictions from a run; add --run RUN_ID, or leave it out")
    from runner.local.hardware import explain_unsupported, find_gpu
    from runner.probe import make_cell, search_here

    if context_of is not None:
        refuse_given(context, ("input_size", "max_batch_size"), "does not go with --context-of; leave one out")
    gpu = find_gpu()
    options = {name: context.params[name] for name in OF_CELLS}
    cell = make_cell(model, framework, device=device or ("cpu" if gpu is None else "gpu"), **options)
    if max_batch_size < num_gpus:
        raise UserError(f"--max-batch-size {max_batch_size}: is below the smallest batch, {num_gpus}; give more")
    if reason := explain_unsupported(cell, gpu):
        raise UserError(f"this cannot be probed here: {reason}")
    gpu_name, console = gpu.name if gpu and cell.device == "gpu" else None, make_error_console() if as_json else CONSOLE
    max_size = max_batch_size if context_of is None else None
    report = search_here(cell, gpu_name, python or [], console, max_size, deadline)
    if as_json:
        echo(report.to_json())
    raise typer.Exit(0 if report.is_conclusive else EXIT_NOT_OK)


def _predict(run_ids: list[str], store: str, level: float) -> None:
    from collector.batches import describe_line, fit_lines
    from collector.results.load import join_results, load_runs
    from runner.stored_runs import open_existing_store, print_skipped

    if not 0 < level < 100:
        raise UserError(f"--level {level:g}: expected a percentage between 0 and 100, as in 95.")
    collections = load_runs(open_existing_store(store), run_ids)
    for collection in collections:
        print_skipped(collection, make_error_console())
    lines = fit_lines(join_results(collections))
    if not lines:
        raise UserError(
            f"{', '.join(run_ids)}: no GPU cell ended ok at two batch sizes or more in one version of its framework; "
            "measure a matrix with several in the axis batch_size."
        )
    for line in lines:
        for sentence in describe_line(line, level / 100):
            CONSOLE.print(sentence)
