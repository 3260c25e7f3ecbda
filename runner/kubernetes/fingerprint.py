"""The fingerprint of a run: what its Jobs measure for, and with what, in a few hex digits.

It is in the name and in a label of every Job. So the same run id with another store, another plan or other images gives
other Jobs, in the same namespace too, and a runner that starts again with the same ones finds its own.
"""

import hashlib
import json

from bench.schema import Run
from runner.profiles.model import Profile

NUM_DIGITS = 12
"""As many as in a Job's name: 48 bits, so that a namespace with a million runs has two alike with a chance of 0.2 %."""


def compute_fingerprint(run: Run, profile: Profile, store_url: str) -> str:
    """Return the hex digits for the Jobs of a run. UserError if the profile names no image for one of its cells.

    In it: the store's URL, variables and Secret that lead the cells to their store and can change what they measure,
    the planned cells and repeats, the images by reference, and the cores of a cell. Not in it: what decides only where
    and when a Job runs, or for how long it is waited; a run may go on with another value of these.
    """
    cells = {(planned.cell.framework, planned.cell.device): planned.cell for planned in run.cells}
    parts = {
        "store": store_url.rstrip("/"),
        "store_secret": profile.store_secret,
        "environment": profile.environment,
        "plan": run.plan_id,
        "images": {" ".join(kind): profile.find_image(cell) for kind, cell in cells.items()},
        "cpus": {device: profile.pools[device].cpus for _, device in cells if device in profile.pools},
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:NUM_DIGITS]
