"""Compare the names of devices by their words: vendors, price lists and papers write the same device differently."""

import re
from functools import cache

# What vendors and people put before a model's name, or leave out.
OPTIONAL_WORDS = {"nvidia", "tesla", "geforce", "quadro"}


@cache
def split_name(name: str) -> frozenset[str]:
    """Return the words of a device's name that tell it from others, folded to lower case."""
    return frozenset(re.findall(r"[a-z0-9]+", name.casefold())) - OPTIONAL_WORDS


def has_words(name: str, words: str) -> bool:
    """Return whether a device's name holds all of `words`, as whole words and whatever their case.

    `T4` is in `Tesla T4`, and `A100 40GB` in `NVIDIA A100-SXM4-40GB`; `L4` is not in `NVIDIA L40S`. The vendor's words
    may be left out.
    """
    held, wanted = split_name(name), split_name(words)
    return bool(wanted) and wanted <= held
