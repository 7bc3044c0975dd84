"""What a case declares of its bound, and arguments of forms that few have."""
import math

import numpy as np


def reference(x):
    return x / (1 + np.exp(-x))


def mine(x):
    return x * (np.tanh(x / 2) + 1) / 2


def zeros(x):
    return np.zeros_like(x)


def drawn(seed):
    return {"x": np.random.default_rng(seed).standard_normal((64, 64), dtype=np.float32)}


def case(**declared):
    return lambda: [{"name": "drawn", "arguments": drawn, **declared}]


class Refused:
    rtol_inf, rtol_nan, rtol_negative = case(rtol=math.inf), case(rtol=math.nan), case(rtol=-1)
    rtol_true, rtol_text, atol_nan, atol_huge = case(rtol=True), case(rtol="0.1"), case(atol=math.nan), case(atol=10 ** 400)
    terms_negative, terms_nan, terms_half = case(terms=-5), case(terms=math.nan), case(terms=1.5)
    terms_zero, terms_huge, terms_true, flops_nan = case(terms=0), case(terms=10 ** 30), case(terms=True), case(flops=math.nan)


class Taken:
    numbers = case(rtol=np.float32(1e-3), atol=0, terms=np.int64(64))
    whole = case(terms=64.0, rtol=None)


class Wide:
    rtol_one, atol_one, terms = case(rtol=1), case(atol=100), case(terms=2 ** 52)
    narrow = case(rtol=0.01, atol=1e-3)
    long_terms = case(terms=5000)


def of(name, made):
    return lambda: [{"name": name, "arguments": lambda seed: made}]


class Forms:
    none, number, empty = of("none", None), of("number", 7), of("empty", {"x": np.zeros((0, 64), np.float32)})
