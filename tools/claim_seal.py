"""A claim's JSON, edited and sealed anew, as `claim` seals what it writes (src/claim/alteration.hpp). For tests, and
for trials of `verify`.

The seal is a SHA-256 of each part's text, so the text must be the one that syslab writes: keys sorted, no spaces,
UTF-8, and doubles by the digits that nlohmann's json chooses. Those are found by Grisu2 (Loitsch 2010), which is right
and nearly always as short as possible: of 1,500 doubles Python writes one otherwise. tests/claim_seal_test.py compares
both.
"""
import hashlib
import json
import math

ALPHA = -60  # the exponent that a significand is scaled to, at least
PRECISION = 64


def normalized(f, e):
    shift = PRECISION - f.bit_length()
    return f << shift, e - shift


def cached_power(e):
    """A power of ten, as a significand of 64 bits: c = f 2^x = 10^k with ALPHA <= x + e + 64. They are 8 apart, from
    10^-300 on."""
    wanted = ALPHA - e - 1
    k = int(wanted * 78913 / (1 << 18)) + (wanted > 0)  # 78913 / 2^18 is about log10(2)
    k = -300 + (300 + k + 7) // 8 * 8
    numerator, denominator = 10 ** max(k, 0), 10 ** max(-k, 0)
    x = numerator.bit_length() - denominator.bit_length() - PRECISION
    while True:
        scaled = (numerator << max(-x, 0), denominator << max(x, 0))
        f = (2 * scaled[0] + scaled[1]) // (2 * scaled[1])  # rounded to the nearest
        if f < 1 << (PRECISION - 1):
            x -= 1
        elif f >= 1 << PRECISION:
            x += 1
        else:
            return f, x, k


def digits_of(value):
    """Digits and exponent of a double above zero: value = digits 10^exponent, as Grisu2 finds them."""
    mantissa, exponent = math.frexp(value)
    e = max(exponent - 53, -1074)
    f = int(math.ldexp(value, -e)) if e > -1074 else int(value / 5e-324)
    plus, plus_e = normalized(2 * f + 1, e - 1)
    minus, minus_e = (4 * f - 1, e - 2) if f == 1 << 52 and e > -1074 else (2 * f - 1, e - 1)
    minus <<= minus_e - plus_e
    v, _ = normalized(f, e)
    c, c_e, k = cached_power(plus_e)

    def times(x):
        return (x * c + (1 << 63)) >> 64

    e = -(plus_e + c_e + 64)
    low, w, high = times(minus) + 1, times(v), times(plus) - 1
    delta, dist = high - low, high - w
    whole, rest = high >> e, high & ((1 << e) - 1)
    digits, exponent = "", -k
    n = len(str(whole))
    unit = 10 ** (n - 1)
    while n > 0:
        digits += str(whole // unit)
        whole %= unit
        n -= 1
        left = (whole << e) + rest
        if left <= delta:
            return rounded(digits, dist, delta, left, unit << e), exponent + n
        unit //= 10
    while True:
        rest *= 10
        digits += str(rest >> e)
        rest &= (1 << e) - 1
        exponent -= 1
        delta *= 10
        dist *= 10
        if rest <= delta:
            return rounded(digits, dist, delta, rest, 1 << e), exponent


def rounded(digits, dist, delta, rest, unit):
    """The last digit moved towards the value, as long as that leads nearer."""
    last = int(digits[-1])
    while rest < dist and delta - rest >= unit and (rest + unit < dist or dist - rest > rest + unit - dist):
        last -= 1
        rest += unit
    return digits[:-1] + str(last)


def number_text(value):
    """A double as nlohmann's json writes it: 0.0001, 1e-05, 100000000000000.0, 1e+15."""
    if value == 0:
        return "-0.0" if math.copysign(1, value) < 0 else "0.0"
    digits, exponent = digits_of(abs(value))
    sign = "-" if value < 0 else ""
    point = len(digits) + exponent  # digits before it
    if len(digits) <= point <= 15:
        return sign + digits + "0" * exponent + ".0"
    if 0 < point <= 15:
        return sign + digits[:point] + "." + digits[point:]
    if -4 < point <= 0:
        return sign + "0." + "0" * -point + digits
    power = point - 1
    return sign + digits[0] + ("." + digits[1:] if len(digits) > 1
                               else "") + f"e{'-' if power < 0 else '+'}{abs(power):02}"


def text_of(part):
    """A part of a claim as syslab writes it."""
    if isinstance(part, dict):
        return "{" + ",".join(f"{text_of(key)}:{text_of(part[key])}" for key in sorted(part, key=str.encode)) + "}"
    if isinstance(part, list):
        return "[" + ",".join(map(text_of, part)) + "]"
    if isinstance(part, float):
        return number_text(part)
    return json.dumps(part, ensure_ascii=False)


def sealed(held):
    """The same with a seal that fits: a SHA-256 of the JSON of each part."""
    return {**held, "seal": {name: hashlib.sha256(text_of(part).encode()).hexdigest() for name, part in held.items()
                             if name != "seal"}}


def machine_kind(environment):
    """The kind of machine that such facts are of (src/runner/environment.cpp)."""
    fields = ("name", "memory_bytes", "power_limit_w", "ecc", "mig")
    kinds = sorted({text_of({field: gpu.get(field) for field in fields}) for gpu in environment.get("gpu", [])})
    kind = {"gpu": kinds, "cpu_model": environment["cpu"]["model"], "cpu_cores": environment["cpu"]["cores"],
            "cpu_usable": environment["cpu"]["usable"],
            "driver_major": environment.get("cuda", {}).get("driver", "").split(".")[0]}
    return hashlib.sha256(text_of(kind).encode()).hexdigest()


def slowed(held, times):
    """The same, its slower side's times multiplied: a forgery that its own samples confirm."""
    held = json.loads(json.dumps(held))
    for case in held["cases"]:
        for block in case["blocks"]:
            block["seconds"] = [seconds * times if side == "A" else seconds
                                for side, seconds in zip(block["order"], block["seconds"])]
            block["log_ratio"] = sum((0.5 if side == "B" else -0.5) * math.log(seconds)
                                     for side, seconds in zip(block["order"], block["seconds"]))
    return held
