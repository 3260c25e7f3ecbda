"""Print what JAX's input pipeline delivers from the data in a folder, as one line of JSON."""

from io import BytesIO

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from pipeline_answers import Ways, answer

from bench.data.jax import open_pipeline


def to_jpeg(image: NDArray[np.uint8]) -> bytes:
    """Return an image (height, width, 3) as a JPEG file."""
    file = BytesIO()
    Image.fromarray(image).save(file, "JPEG", quality=95)
    return file.getvalue()


if __name__ == "__main__":
    # np.array: what Grain hands over lives in memory shared with its workers.
    answer(Ways(framework="jax", open_pipeline=open_pipeline, to_nhwc=np.array, encode_jpeg=to_jpeg))
