"""What the symbols of symbols.c should return."""
import numpy as np


def reference(x, scale):
    y = np.exp(scale * (x - x.max(-1, keepdims=True)))
    return y / y.sum(-1, keepdims=True)
