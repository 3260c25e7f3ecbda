"""Print what TensorFlow's input pipeline delivers from the data in a folder, as one line of JSON."""

import tensorflow as tf
from pipeline_answers import Ways, answer

from bench.data.tensorflow import open_pipeline

if __name__ == "__main__":
    answer(
        Ways(
            framework="tensorflow",
            open_pipeline=open_pipeline,
            to_nhwc=lambda part: part.numpy(),
            encode_jpeg=lambda image: tf.io.encode_jpeg(image, quality=95).numpy(),
        )
    )
