import numpy as np
import oracle
from formula import array_by_formula, set_weights_by_formula

from reprt.layers import RMSNorm

X = array_by_formula((3, 7, 5), scale=2.0) + 1.0


def test_equals_the_equation():
    layer = RMSNorm(1e-3)
    layer.build(X.shape)
    expected = oracle.rms_norm(set_weights_by_formula(layer).gain, X, 1e-3)
    np.testing.assert_allclose(layer(X), expected, atol=1e-6)


def test_squares_that_leave_half_precision_do_no_harm():
    x = (1000 * X).astype("float16")
    assert np.square(x, dtype="float32").mean() > np.finfo("float16").max
    y = RMSNorm(dtype="mixed_float16")(x)
    assert y.dtype == "float16"
    np.testing.assert_allclose(y, RMSNorm()(X), atol=5e-3)
