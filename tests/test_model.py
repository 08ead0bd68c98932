import keras
import numpy as np
import pytest

from model import build_model, unet


def test_parameter_count():
    assert build_model("unet", (572, 572, 1), 2, 64, seed=0).count_params() == 34_512_258


def test_sizes_of_the_paper():
    assert unet.output_size(572) == 388
    assert unet.input_size(388) == 572


@pytest.mark.parametrize("size", [188, 204, 380, 572, 588])
def test_size_rule_is_what_the_network_does(size):
    model = unet.build((size, 188, 1), 2, base_filters=1)
    assert model.output_shape == (None, unet.output_size(size), 4, 2)
    assert unet.input_size(unet.output_size(size)) == size


@pytest.mark.parametrize(
    "size, near", [(0, "188 and 188"), (187, "188 and 188"), (189, "188 and 204"), (570, "556 and 572"), (573, "572 and 588")]
)
def test_impossible_sizes_name_the_nearest(size, near):
    with pytest.raises(ValueError, match=near):
        unet.build((size, 572, 1), 2, base_filters=1)


def test_unknown_name_lists_the_known():
    with pytest.raises(ValueError, match="unknown model 'vnet': choose from unet"):
        build_model("vnet", (188, 188, 1), 2, 1, seed=0)


def test_initial_kernels_differ_by_layer_and_seed_and_repeat():
    def kernels(seed):
        return {v.path: v.numpy() for v in unet.build((188, 188, 1), 2, 2, seed).trainable_variables if v.name == "kernel"}

    first, again, other = kernels(0), kernels(0), kernels(1)
    assert all(np.array_equal(first[path], again[path]) for path in first)
    assert not any(np.array_equal(first[path], other[path]) for path in first)
    values = [kernel.ravel()[:4].tobytes() for kernel in first.values()]
    assert len(set(values)) == len(values)


def test_names_are_roles():
    names = [layer.name for layer in unet.build((188, 188, 1), 2, 1).layers]
    assert {"images", "down1_conv1", "down4_pool", "bottom_dropout", "up4_upconv", "up1_conv2", "logits"} <= set(names)


def test_logits_are_float32_in_mixed_precision():
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        model = unet.build((188, 188, 1), 2, 1)
    finally:
        keras.config.set_dtype_policy(before)
    assert model.get_layer("bottom_conv1").compute_dtype == "bfloat16"
    assert model(np.zeros((1, 188, 188, 1), np.float32)).dtype == "float32"


def test_a_far_pixel_matters_and_the_centre_crop_is_aligned():
    """An impulse moved by 16 pixels moves the answer by 16 pixels: skips are cropped at their centre."""
    model = unet.build((412, 412, 1), 2, 1, seed=3)
    image = np.zeros((2, 412, 412, 1), np.float32)
    image[0, 200, 200] = image[1, 216, 216] = 5
    first, moved = model.predict(image, verbose=0)
    np.testing.assert_allclose(first[:-16, :-16], moved[16:, 16:], atol=1e-5)
    assert np.abs(first - first[0, 0]).max() > 1e-3
