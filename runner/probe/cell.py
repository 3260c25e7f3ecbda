"""Make the cell of a search from the options of `benchmatrix probe`."""

from typing import Any

from pydantic import ValidationError

from bench.errors import UserError
from bench.registry import MODELS
from bench.schema import Cell
from runner.matrix.expansion import DEFAULT_MODES
from runner.yaml_input import suggest_word

# Adam makes its state in the first step, and the peak comes after that: three steps, the fewest that the harness takes.
SHORT_PROTOCOL = {
    "num_warmup_steps": 1,
    "max_warmup_seconds": 1e-3,
    "num_steps": 1,
    "min_seconds": 0.0,
    "sampling_seconds": 0.0,
    "pipelined_seconds": 0.0,
    "num_profiled_steps": 0,
}


def make_cell(model: str, framework: str, **options: Any) -> Cell:
    """Return the cell of the first trial; an option that is None gets the value of the model or the framework.

    Raise UserError that names the wrong option.
    """
    if model not in MODELS:
        raise UserError(f"MODEL {model}: unknown; {suggest_word(model, list(MODELS))}")
    spec = MODELS[model]
    defaults = {
        "phase": spec.phases[0],
        "input_size": spec.input_size,
        "num_classes": spec.num_classes,
        "mode": DEFAULT_MODES.get(framework),
    }
    given = {key: value for key, value in options.items() if value is not None}
    fields = defaults | given | SHORT_PROTOCOL | {"model": model, "framework": framework}
    try:
        return Cell.model_validate(fields | {"batch_size": options["num_gpus"]})
    except ValidationError as error:
        raise _name_option(error, fields) from None


def _name_option(error: ValidationError, fields: dict[str, Any]) -> UserError:
    """Return the error for the option that pydantic, or a validator of Cell at the start of its message, names."""
    first = error.errors()[0]
    if first["loc"]:
        key, message = str(first["loc"][0]), first["msg"]
    else:
        key, _, message = str(first["ctx"]["error"]).partition(": ")
    return UserError(f"--{key.replace('_', '-')} {fields[key]}: {message}")
