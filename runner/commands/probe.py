"""`benchmatrix probe`: words in, the search for the largest batch that fits, shown live, and its report out."""

from typing import Annotated, Any

import typer
from pydantic import ValidationError
from rich.console import Console
from rich.text import Text

from bench.errors import UserError
from bench.registry import FRAMEWORKS, MODELS
from bench.schema import Cell
from runner.commands.options import EXIT_INTERRUPTED, EXIT_NOT_OK, PythonOption
from runner.local.hardware import find_gpu, find_obstacle
from runner.local.host_lock import hold_host_lock
from runner.local.run import end_like_interrupt, find_interpreters, parse_interpreters
from runner.matrix.expansion import DEFAULT_MODES
from runner.probe.batch_search import Try
from runner.probe.search import SHORT_PROTOCOL, Probe, ProbeReport
from runner.yaml_files.wording import suggest_word

DEFAULT_MAX_BATCH_SIZE = 65_536
DEFAULT_TIME_LIMIT_SECONDS = 1800.0
OUTCOME_STYLES = {"fits": "green", "out-of-memory": "yellow", "time-limit": "red", "failure": "red"}


def probe(
    model: Annotated[str, typer.Argument(help=f"One of {', '.join(MODELS)}.")],
    framework: Annotated[str, typer.Option(help=f"One of {', '.join(FRAMEWORKS)}.")] = "pytorch",
    device: Annotated[str | None, typer.Option(help="cpu or gpu; default: gpu where one is visible.")] = None,
    phase: Annotated[str | None, typer.Option(help="train or infer; default: train where the model has it.")] = None,
    precision: Annotated[str, typer.Option(help="fp32, tf32, fp16 or bf16.")] = "fp32",
    mode: Annotated[str | None, typer.Option(help="eager, graph or compiled; default: the framework's first.")] = None,
    input_size: Annotated[int | None, typer.Option(help="Pixels, tokens or rows; default: the model's.")] = None,
    num_classes: Annotated[int | None, typer.Option(help="Default: the model's.")] = None,
    num_gpus: Annotated[int, typer.Option(help="GPUs that share the batch.")] = 1,
    max_batch_size: Annotated[int, typer.Option(help="Try no larger batch.")] = DEFAULT_MAX_BATCH_SIZE,
    time_limit: Annotated[float, typer.Option(help="Seconds for the whole search.")] = DEFAULT_TIME_LIMIT_SECONDS,
    python: PythonOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document, and the tries to stderr.")] = False,
) -> None:
    """Find the largest batch of MODEL that fits into memory, each try in a fresh process."""
    gpu = find_gpu()
    cell = make_cell(
        model=model,
        framework=framework,
        device=device or ("cpu" if gpu is None else "gpu"),
        phase=phase,
        precision=precision,
        mode=mode,
        input_size=input_size,
        num_classes=num_classes,
        num_gpus=num_gpus,
    )
    if max_batch_size < num_gpus:
        raise UserError(f"--max-batch-size {max_batch_size}: is below the smallest batch, {num_gpus}; give more")
    if time_limit <= 0:
        raise UserError(f"--time-limit {time_limit:g}: is no time to search in; give seconds above 0")
    if obstacle := find_obstacle(cell, gpu):
        raise UserError(f"this cannot be probed here: {obstacle}")
    interpreters = parse_interpreters(python or [], tuple(FRAMEWORKS))
    console = Console(markup=False, emoji=False, highlight=False, stderr=as_json)
    try:
        with end_like_interrupt(), hold_host_lock("probe") as lock:
            search = Probe(
                cell=cell,
                gpu_name=gpu.name if gpu and cell.device == "gpu" else None,
                max_batch_size=max_batch_size,
                time_limit_seconds=time_limit,
                interpreters=find_interpreters({cell.framework}, interpreters, console, lock),
                lock=lock,
            )
            report = show_search(search, console)
    except KeyboardInterrupt:
        console.print("interrupted")
        raise typer.Exit(EXIT_INTERRUPTED) from None
    if as_json:
        typer.echo(report.to_json())
    raise typer.Exit(0 if report.is_conclusive else EXIT_NOT_OK)


def make_cell(model: str, framework: str, **options: Any) -> Cell:
    """Return the cell of the first try; an option that is None becomes the model's or framework's own.

    UserError that names the option which is wrong.
    """
    if model not in MODELS:
        raise UserError(f"MODEL {model}: unknown; {suggest_word(model, list(MODELS))}")
    spec = MODELS[model]
    own = {
        "phase": spec.phases[0],
        "input_size": spec.input_size,
        "num_classes": spec.num_classes,
        "mode": DEFAULT_MODES.get(framework),
    }
    given = {key: value for key, value in options.items() if value is not None}
    fields = own | given | SHORT_PROTOCOL | {"model": model, "framework": framework}
    try:
        return Cell.model_validate(fields | {"batch_size": options["num_gpus"]})
    except ValidationError as error:
        raise _refuse_option(error, fields) from None


def _refuse_option(error: ValidationError, fields: dict[str, Any]) -> UserError:
    """Point at the option that pydantic, or a validator of Cell at the start of its message, names."""
    first = error.errors()[0]
    if first["loc"]:
        key, message = str(first["loc"][0]), first["msg"]
    else:
        key, _, message = str(first["ctx"]["error"]).partition(": ")
    return UserError(f"--{key.replace('_', '-')} {fields[key]}: {message}")


def show_search(search: Probe, console: Console) -> ProbeReport:
    """Search, printing each try as it ends, then what was found."""
    cell = search.cell
    place = search.gpu_name or "the CPU"
    name = f"{cell.model}, {cell.framework}, {cell.phase}, {cell.precision}, {cell.mode}"
    bounds = f"up to batch {search.max_batch_size:,} and {search.time_limit_seconds:,.0f} s"
    console.print(f"probing {name} on {place}: {bounds}", soft_wrap=True)
    status = console.status("")

    def start_try(batch_size: int) -> None:
        status.update(f"trying batch {batch_size:,}")
        status.start()

    def finish_try(tried: Try) -> None:
        status.stop()
        console.print(describe_try(tried), soft_wrap=True)

    try:
        report = search.search(start_try, finish_try)
    finally:
        status.stop()
    console.print(describe_end(report), soft_wrap=True)
    return report


def describe_try(tried: Try) -> Text:
    """Return the line of one try."""
    line = Text.assemble(
        f"batch {tried.batch_size:>9,}  ",
        (f"{tried.outcome:<13}", OUTCOME_STYLES[tried.outcome]),
        f"  {tried.seconds:6.1f} s",
    )
    if tried.peak_bytes is not None:
        line.append(f"  peak {format_gibibytes(tried.peak_bytes)}")
    if tried.bytes_requested is not None:
        line.append(f"  asked for {format_gibibytes(tried.bytes_requested)}")
    elif tried.message:
        line.append("  " + "".join(letter if letter.isprintable() else " " for letter in tried.message))
    return line


def describe_end(report: ProbeReport) -> str:
    """Return in one line what is known at the end of a search."""
    largest, failing = report.largest_batch_size, report.smallest_failing_batch_size
    within = ""
    if report.memory_limit_bytes is not None:
        within = f" into {format_gibibytes(report.memory_limit_bytes)}, the memory to be had here"
    known = f"batch {largest:,} fits{within}" if largest else f"no batch is known to fit{within}"
    if failing:
        known += f", {failing:,} does not"
    match report.ended_by:
        case "found" if largest:
            return f"largest batch that fits{within}: {largest:,} ({failing:,} does not)"
        case "found":
            return f"not even a batch of {failing:,} fits{within}"
        case "max-batch-size":
            return f"{known}; this is the upper bound, raise --max-batch-size to look further"
        case "time-limit":
            return f"the time is up: {known}; raise --time-limit to look further"
        case "failure":
            memory = "the GPU's memory" if report.cell.device == "gpu" else "memory"
            return f"the last try failed for another reason than {memory}; {known}"


def format_gibibytes(number: int) -> str:
    """Return bytes in GiB with two digits behind the point."""
    return f"{number / 2**30:.2f} GiB"
