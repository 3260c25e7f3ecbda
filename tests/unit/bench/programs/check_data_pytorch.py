"""Print what PyTorch's input pipeline delivers from the data in a folder, as one line of JSON."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from pipeline_answers import Ways, answer
from torchvision.io import encode_jpeg

from bench.data.pytorch import open_pipeline


def to_nhwc(part: Any) -> NDArray[Any]:
    """Return images (batch, 3, height, width) with their channels last; labels as they are."""
    array: NDArray[Any] = part.numpy()
    return array.transpose(0, 2, 3, 1) if array.ndim == 4 else array


def to_jpeg(image: NDArray[np.uint8]) -> bytes:
    """Return an image (height, width, 3) as a JPEG file."""
    return bytes(encode_jpeg(torch.from_numpy(image.transpose(2, 0, 1).copy()), quality=95).numpy())


if __name__ == "__main__":
    answer(Ways(framework="pytorch", open_pipeline=open_pipeline, to_nhwc=to_nhwc, encode_jpeg=to_jpeg))
