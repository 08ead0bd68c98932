"""Adam as the recipe uses it."""

import keras

CLIP_NORM = 1.0


def build_optimizer(model: keras.Model, learning_rate: float, weight_decay: float) -> keras.optimizers.Optimizer:
    """Adam with decoupled weight decay (Loshchilov and Hutter 2019) on the kernels alone and gradients clipped to a global norm of 1.

    As an L2 term of the loss the same decay would pass through Adam's normalisation, where it outweighs the small gradients of the
    deep layers, empties them and leaves a network that answers with the constant prior. Under `mixed_float16` the loss is scaled
    dynamically and a step whose gradients overflow is skipped. Its state exists on return, ready to be restored or broadcast.
    """
    optimizer = keras.optimizers.Adam(learning_rate, weight_decay=weight_decay, global_clipnorm=CLIP_NORM)
    optimizer.exclude_from_weight_decay(var_list=[v for v in model.trainable_variables if v.name != "kernel"])
    if keras.config.dtype_policy().name == "mixed_float16":
        optimizer = keras.optimizers.LossScaleOptimizer(optimizer)
    optimizer.build(model.trainable_variables)
    return optimizer
