"""List data sets by name, with the number of samples that an epoch of training takes."""

import difflib
import re
from dataclasses import dataclass

from bench.errors import UserError

MAX_SAMPLES = 10**15
MAX_DIGITS = 100
"""Leading zeros included: Python reads no number of more than 4,300."""
SAMPLES = re.compile("[0-9_]+|[0-9]{1,3}(?:,[0-9]{3})+")
"""`50000`, `50_000` or `50,000`; not `1,5`, which may be one and a half."""


@dataclass(frozen=True, kw_only=True)
class DataSet:
    """A training set and its size."""

    name: str
    title: str
    num_samples: int
    """Samples of an epoch, as a step of a cell counts them."""
    source: str


DATA_SETS = {
    found.name: found
    for found in (
        DataSet(
            name="imagenet",
            title="ImageNet-1k (ILSVRC 2012), training set",
            num_samples=1_281_167,
            source="1,281,167 training images, as the documentation of many libraries has it (DeepOBS, MLDatasets.jl; "
            "read 2026-11-22); image-net.org itself was not read",
        ),
        DataSet(
            name="cifar10",
            title="CIFAR-10, training set",
            num_samples=50_000,
            source="https://huggingface.co/Sendeky/Cifar10/raw/main/cifar10.py, read 2026-11-22",
        ),
        # A sample of CycleGAN is a pair; an epoch of its authors' code ends with the larger of both sets.
        DataSet(
            name="horse2zebra",
            title="horse2zebra, the larger of its two training sets",
            num_samples=1_334,
            source="https://github.com/tensorflow/datasets/blob/master/docs/catalog/cycle_gan.md, read 2026-11-22",
        ),
    )
}


def find_data_set(text: str) -> DataSet:
    """Return the data set of this name, or one with so many samples; UserError where it is neither."""
    if text in DATA_SETS:
        return DATA_SETS[text]
    digits = re.sub("[_,]", "", text) if SAMPLES.fullmatch(text) else ""
    if 0 < len(digits) <= MAX_DIGITS and 0 < (number := int(digits)) <= MAX_SAMPLES:
        return DataSet(name=text, title=f"a data set of {number:,} samples", num_samples=number, source="the user")
    if digits and int(digits[:MAX_DIGITS]):
        raise UserError(f"--dataset {text}: expected a number of samples above 0, at most {MAX_SAMPLES:,}")
    near = difflib.get_close_matches(text.lower(), DATA_SETS, n=1)
    hint = f"did you mean '{near[0]}'?" if near else f"known are {', '.join(DATA_SETS)}."
    raise UserError(f"--dataset {text}: is no known data set; {hint} Of another give the number of its samples")
