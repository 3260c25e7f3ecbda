"""Normalises batches with TensorFlow's one fused operation, where Keras 3 takes several."""

from typing import Any

import keras
import tensorflow as tf


class FusedBatchNormalization(keras.layers.BatchNormalization):
    """A batch norm of images, channels last, that TensorFlow computes as one `FusedBatchNormV3`.

    Takes and keeps the weights of Keras's own layer. Two things differ. The moving variance is that of n - 1 values,
    as in PyTorch; Keras's is that of n. In half precision the operation reads and writes half-precision images and
    computes statistics in float32; Keras converts whole images to float32 and back. There is no float64.
    """

    def call(self, inputs: Any, training: bool | None = None, mask: Any = None) -> Any:
        assert mask is None
        is_training = bool(training) and self.trainable
        # The operation's own moving averages: (1 - f) * old + f * new, as Keras's with f = 1 - momentum.
        outputs, mean, variance, *_ = tf.raw_ops.FusedBatchNormV3(
            x=inputs,
            scale=tf.cast(self.gamma, "float32"),
            offset=tf.cast(self.beta, "float32"),
            mean=tf.cast(self.moving_mean, "float32"),
            variance=tf.cast(self.moving_variance, "float32"),
            epsilon=self.epsilon,
            exponential_avg_factor=1.0 - self.momentum,
            data_format="NHWC",
            is_training=is_training,
        )
        if is_training:
            self.moving_mean.assign(mean)
            self.moving_variance.assign(variance)
        return outputs
