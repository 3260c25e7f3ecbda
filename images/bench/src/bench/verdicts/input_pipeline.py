"""Checks that the device, not the reading of data, set the pace: input-bound."""

from collections.abc import Iterator

from bench.verdicts.inputs import Found, ValidityInputs

# input-bound. A tenth is what identical runs differ by anyway (bench.verdicts.series.MAX_SPREAD), and what somebody
# would add workers for. Handing over a batch that is ready takes well below a millisecond: a pipeline that keeps up
# stays below the bound unless steps are that short, and then the hand-over does set the pace. The share is that of the
# whole window, not of the median step: several workers deliver in bursts, one long wait and then none.
MAX_WAIT_SHARE = 0.10


def check_input(inputs: ValidityInputs) -> Found:
    """Yield input-bound where the steps spent too much of the window waiting for data."""
    waits = inputs.samples.data_wait_seconds
    if not waits:
        return
    share = sum(waits) / sum(inputs.samples.step_seconds)
    if share > MAX_WAIT_SHARE:
        mean = sum(waits) / len(waits)
        yield (
            "input-bound",
            f"steps waited for data in {share:.0%} of their time ({mean * 1e3:.3g} ms each), more than "
            f"{MAX_WAIT_SHARE:.0%}: the input pipeline set the pace",
        )


def list_unchecked_input(inputs: ValidityInputs) -> Iterator[str]:
    """Yield that the waits for data of a cell with an input pipeline are not known."""
    if inputs.samples.max_queued_batches is not None and inputs.samples.data_wait_seconds is None:
        yield "how long steps waited for data not observed"
