#!/usr/bin/env python3
"""Which law finds which fault, and whether "looks like" is right.

Faults are planted in two right libraries and checked one by one.

    python3 tools/long/planted_faults.py build/syslab [-k WORD] [--cases N] [--markdown]
    python3 tools/long/planted_faults.py build/syslab --depths [-k WORD]

Each fault replaces one line of tests/fixtures/plugins/naive_attention.c (one row, one pass) or right_attention.c (tiles
of 32 keys, online softmax); its anchor must stand there exactly once. Each is compiled, checked as `check --mine` does,
and told in a line: the laws that failed and what their "looks like" said. `looks` below is what it must say where it
says anything: what somebody who planted the fault calls it. Exit code 1: a fault that no law found, or a "looks like"
that is wrong. Takes a quarter of an hour on a busy machine.

--depths counts instead how many the default check names, and of the others how many `--deep` does, with the input that
shrinking left; with the faults of RARE, which strike at few lengths, in few calls or in long sums alone. Each check
ends at its first finding. A fault that the default does not name takes it 20 s and `--deep` up to 5 min.
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLUGINS = ROOT / "tests" / "fixtures" / "plugins"


class Fault(NamedTuple):
    name: str
    source: str  # naive or tiled
    old: str
    new: str
    looks: str  # a regular expression that a right "looks like" matches


MASK = "mask that shows one key too"
RESCALE = "rescaled"
OUT = "o_row[d] /= sum;"
FORWARD = [
    Fault("mask shows one key too many", "naive", "count += EXTRA_KEYS", "count += 1", MASK),
    Fault("mask shows one key too few", "naive", "count += EXTRA_KEYS", "count -= 1", MASK),
    Fault("causal flag ignored", "naive", "causal == 0 ? keys : causal == 1 ? i + 1",
          "causal >= 0 ? keys : causal == 1 ? i + 1",
          "no mask at all"),
    Fault("scale 1/D", "naive", "1.0F / sqrtf((float)size_from_end(q, 0))", "1.0F / (float)size_from_end(q, 0)",
          "another scale"),
    Fault("no scale", "naive", "options->scale != 0 ? options->scale : 1.0F / sqrtf((float)size_from_end(q, 0))",
          "1.0F",
          "another scale"),
    Fault("output not divided by the sum", "naive", "o_row[d] /= sum;", "o_row[d] /= 1;",
          "not divided by the row's sum"),
    Fault("log-sum-exp in base 2", "naive", "largest + logf(sum) :", "(largest + logf(sum)) * 1.442695F :", "base 2"),
    Fault("log2 of the sum", "naive", "largest + logf(sum) :", "largest + log2f(sum) :", "base 2"),
    Fault("log-sum-exp without the sum", "naive", "largest + logf(sum) :", "largest :", "row's maximum alone"),
    Fault("log-sum-exp without the maximum", "naive", "largest + logf(sum) :", "logf(sum) :",
          "without the row's maximum"),
    Fault("values of the first batch entry", "naive", "const float* v_row = row(v, b, h / group, j);\n          sum",
          "const float* v_row = row(v, 0, h / group, j);\n          sum", "first batch"),
    Fault("keys and values of the first batch entry", "naive",
          "static float dot(const float* a,",
          "#define row(t, b, h, i) ((row)(t, (t) == k ? 0 : (t) == v ? 0 : (b), h, i))\n"
          "static float dot(const float* a,", "first batch"),
    Fault("no maximum subtracted", "naive", "dim) - largest);\n          const float* v_row",
          "dim));\n          const float* v_row", "without the row's maximum|maximum subtracted"),
    Fault("maximum over the first 16 keys only", "naive", "for (int64_t j = 0; j < seen; ++j) largest",
          "for (int64_t j = 0; j < seen && j < 16; ++j) largest", "maximum"),
    Fault("last key dropped", "naive", "for (int64_t j = 0; j < seen; ++j) {\n          const float p",
          "for (int64_t j = 0; j < seen - (seen > 16); ++j) {\n          const float p", "key"),
    Fault("row sum starts at one", "naive", "float largest = -INFINITY, sum = 0;",
          "float largest = -INFINITY, sum = 1;", "sum"),
    Fault("output one percent too large", "naive", "o_row[d] /= sum;", "o_row[d] /= sum * 0.95F;", "factor"),
    Fault("exponent of half the score", "naive", "const float p = expf(scale * dot(q_row, row(k, b, h / group, j), "
          "dim) - largest);",
          "const float p = expf(0.5F * (scale * dot(q_row, row(k, b, h / group, j), dim) - largest));", "scale"),
    Fault("accumulator not rescaled", "tiled", "part->out[d] *= shrink;", "part->out[d] *= 1;", RESCALE),
    Fault("row sum not rescaled", "tiled", "      sum *= shrink;\n", "", RESCALE),
    Fault("neither rescaled", "tiled", "? power(largest - grown) : 0;", "? 1 : 0;", RESCALE),
    Fault("last, partial tile of keys left out", "tiled", "(last - first + TILE - 1) / TILE : 0",
          "(last - first) / TILE : 0",
          "last whole tile|left out"),
    Fault("log-sum-exp from before the last tile", "tiled", "part->lse = largest + logarithm((float)sum);",
          "(void)0;", "log-sum-exp|every element of lse"),
    Fault("rows of a partial tile of queries forgotten", "naive", "for (int64_t i = 0; i < queries; ++i) {\n        "
          "const float* q_row",
          "for (int64_t i = 0; i < (queries < 32 ? queries : queries / 32 * 32); ++i) {\n        const float* q_row",
          "tail|partial"),
    Fault("masked scores of -10", "naive", "for (int64_t d = 0; d < dim && seen > 0; ++d) o_row[d] /= sum;\n"
          "        *lse_at(lse, b, h, i) = seen > 0 ? largest + logf(sum) : -INFINITY;",
          "const float top = seen < keys ? fmaxf(largest, -10) : largest, shrink = expf(largest - top);\n"
          "        sum = sum * shrink + (keys - seen) * expf(-10 - top);\n        for (int64_t d = 0; d < dim; ++d) {\n"
          "          o_row[d] *= shrink;\n"
          "          for (int64_t j = seen; j < keys; ++j) o_row[d] += expf(-10 - top) * row(v, b, h / group, j)[d];\n"
          "          o_row[d] /= sum;\n        }\n        *lse_at(lse, b, h, i) = top + logf(sum);",
          "masked scores of -10"),
    Fault("softmax over the queries", "naive", OUT,
          "o_row[d] = 0;\n        for (int64_t j = 0; j < seen; ++j) {\n          double all = 0;\n"
          "          for (int64_t n = 0; n < queries; ++n) if (j < visible(n, queries, keys, options->causal))\n"
          "            all += exp(scale * dot(row(q, b, h, n), row(k, b, h / group, j), dim));\n"
          "          const float p = expf(scale * dot(q_row, row(k, b, h / group, j), dim)) / all;\n"
          "          for (int64_t d = 0; d < dim; ++d) o_row[d] += p * row(v, b, h / group, j)[d];\n        }",
          "wrong axis"),
    Fault("last tile counted twice", "tiled",
          "for (int64_t n = 0; n < tiles; ++n) {\n    const int64_t begin = first + (REVERSED ? tiles - 1 - n : n) * "
          "TILE;",
          "for (int64_t n = 0; n < tiles + (tiles > 0); ++n) {\n"
          "    const int64_t begin = first + (n < tiles ? n : tiles - 1) * TILE;", "counts twice"),
    Fault("no mask in the first tile", "naive", "const int64_t seen = visible(i, queries, keys, options->causal);",
          "int64_t seen = visible(i, queries, keys, options->causal);\n        if (options->causal && seen < 32) seen "
          "= keys < 32 ? keys : 32;",
          "missing in the first tile"),
]
ONLY_SEEN = ("for (int64_t j = 0; j < visible(i, queries, keys, options->causal); ++j) {\n"
             "          const float *k_row = row(k, b, h / group, j), *v_row = row(v, b, h / group, j);\n"
             "          float *dk_row = row(dk, b, h / group, j), *dv_row = row(dv, b, h / group, j);\n")
SCORE, OTHER_SCORE = "scale * dot(q_row, k_row, dim)", "scale * dot(q_row, row(k, b, h / group, n), dim)"
BACKWARD_P = "          const float p = expf(scale * dot(q_row, k_row, dim) - *lse_at(lse, b, h, i));\n"
BACKWARD_DS = "          const float ds = scale * p * (dot(do_row, v_row, dim) - delta);\n"


def hidden_keys(score):
    """A backward pass over all keys, of which those from `seen` on are hidden from the row: P with such a score."""
    return ("const int64_t seen = visible(i, queries, keys, options->causal);\n"
            + ONLY_SEEN.replace("visible(i, queries, keys, options->causal)", "keys")
            + f"          const float p = expf(({score}) - *lse_at(lse, b, h, i));\n")


def own_softmax(score):
    """The same, P divided by its own sum over all keys n."""
    return ("const int64_t seen = visible(i, queries, keys, options->causal);\n(void)seen;\n"
            "double most = -INFINITY, sum = 0;\n"
            f"for (int64_t n = 0; n < keys; ++n) most = fmax(most, {score});\n"
            f"for (int64_t n = 0; n < keys; ++n) sum += exp(({score}) - most);\n"
            + ONLY_SEEN.replace("visible(i, queries, keys, options->causal)", "keys")
            + f"          const int64_t n = j;\n          const float p = exp(({score}) - most) / sum;\n")


BACKWARD = [
    Fault("row term dropped", "naive", "(dot(do_row, v_row, dim) - delta)", "(dot(do_row, v_row, dim))", "row term"),
    Fault("row term added", "naive", "(dot(do_row, v_row, dim) - delta)", "(dot(do_row, v_row, dim) + delta)",
          "row term"),
    Fault("dQ and dK without the scale", "naive", "const float ds = scale * p *", "const float ds = p *",
          "dQ and dK with another scale"),
    Fault("dQ without the scale", "naive", "dq_row[d] += ds * k_row[d];", "dq_row[d] += ds / scale * k_row[d];",
          "dQ with another scale"),
    Fault("dK scaled twice", "naive", "dk_row[d] += ds * q_row[d];", "dk_row[d] += ds * scale * q_row[d];",
          "dK with another scale"),
    Fault("dV with the scale", "naive", "dv_row[d] += p * do_row[d];", "dv_row[d] += scale * p * do_row[d];",
          "dV with a scale"),
    Fault("dK and dV exchanged", "naive", "dv_row[d] += p * do_row[d];\n            dq_row[d] += ds * k_row[d];\n"
          "            dk_row[d] += ds * q_row[d];",
          "dk_row[d] += p * do_row[d];\n            dq_row[d] += ds * k_row[d];\n"
          "            dv_row[d] += ds * q_row[d];", "exchanged"),
    Fault("dQ has the wrong sign", "naive", "dq_row[d] += ds * k_row[d];", "dq_row[d] -= ds * k_row[d];",
          "dQ with another scale"),
    Fault("weights of the backward pass in base 2", "naive", "const float p = expf(scale * dot(q_row, k_row, dim) -",
          "const float p = exp2f(scale * dot(q_row, k_row, dim) -", "e\\^x in place of 2\\^x"),
    Fault("no mask in the backward pass", "naive", "j < visible(i, queries, keys, options->causal); ++j",
          "j < keys; ++j", "mask in the backward pass"),
    Fault("backward mask one key too many", "naive", "j < visible(i, queries, keys, options->causal); ++j",
          "j < keys && j < visible(i, queries, keys, options->causal) + 1; ++j", "backward mask"),
    Fault("masked scores of -10 in the backward pass", "naive", ONLY_SEEN + BACKWARD_P,
          hidden_keys(f"j < seen ? {SCORE} : -10"),
          "masked scores of -10 in place of −∞ in the backward pass"),
    Fault("masked scores of 0 in the backward pass", "naive", ONLY_SEEN + BACKWARD_P,
          hidden_keys(f"j < seen ? {SCORE} : 0"),
          "masked scores that are 0 in place of −∞ in the backward pass"),
    Fault("backward mask that adds -10", "naive", ONLY_SEEN + BACKWARD_P, hidden_keys(f"{SCORE} - (j < seen ? 0 : 10)"),
          "a mask that adds -10 to scores in place of −∞ in the backward pass"),
    Fault("no mask in dV", "naive", ONLY_SEEN + BACKWARD_P + BACKWARD_DS,
          hidden_keys(SCORE) + BACKWARD_DS.replace("scale * p", "(j < seen) * scale * p"), "no mask in dV alone"),
    Fault("no mask in a softmax of the backward pass", "naive", ONLY_SEEN + BACKWARD_P, own_softmax(OTHER_SCORE),
          "no mask in the backward pass"),
    Fault("masked scores of -10 in a softmax of the backward pass", "naive", ONLY_SEEN + BACKWARD_P,
          own_softmax(f"n < seen ? {OTHER_SCORE} : -10"), "masked scores of -10"),
    Fault("dK made of P", "naive", "dk_row[d] += ds * q_row[d];", "dk_row[d] += p * q_row[d];", "dK made of P"),
    Fault("gradients of the last key only assigned", "naive", "dk_row[d] += ds * q_row[d];",
          "dk_row[d] = ds * q_row[d];", "sum|assigned"),
]


# At few inputs, or in few calls.
RARE = [
    Fault("rows from 1,024 on", "naive", OUT, "o_row[d] /= (i >= 1024 ? 1.5F : 1) * sum;", ""),
    Fault("keys from 2,048 on", "naive", "for (int64_t j = 0; j < seen; ++j) {\n          const float p",
          "for (int64_t j = 0; j < (seen > 2048 ? 2048 : seen); ++j) {\n          const float p", ""),
    Fault("more than 600 queries with more than 500 keys", "naive", OUT,
          "o_row[d] /= (queries > 600 && keys > 500 ? 1.5F : 1) * sum;", ""),
    Fault("the ninth and later matrices of a call", "naive", OUT,
          "o_row[d] /= (b * heads(q) + h >= 8 ? 1.5F : 1) * sum;", ""),
    Fault("the last of eight heads of the last of eight batch entries", "naive", OUT,
          "o_row[d] /= (b == 7 && h == 7 ? 1.5F : 1) * sum;", ""),
    Fault("97 queries", "naive", OUT, "o_row[d] /= (queries == 97 ? 1.5F : 1) * sum;", ""),
    Fault("97 queries and 97 keys", "naive", OUT, "o_row[d] /= (queries == 97 && keys == 97 ? 1.5F : 1) * sum;", ""),
    Fault("61 queries, 33 keys, a width of 32", "naive", OUT,
          "o_row[d] /= (queries == 61 && keys == 33 && dim == 32 ? 1.5F : 1) * sum;", ""),
    Fault("lengths of 64 k + 63", "naive", OUT, "o_row[d] /= (keys % 64 == 63 ? 1.5F : 1) * sum;", ""),
    Fault("a width of 128 under a causal mask, with more keys than queries", "naive", OUT,
          "o_row[d] /= (dim == 128 && options->causal && keys > queries ? 1.5F : 1) * sum;", ""),
    Fault("one call of 50", "naive", "float largest = -INFINITY, sum = 0;",
          "static int64_t calls; calls += b + h + i == 0; float largest = -INFINITY, sum = calls % 50 == 7 ? 1 : 0;",
          ""),
    Fault("one call of 1,000", "naive", "float largest = -INFINITY, sum = 0;",
          "static int64_t calls; calls += b + h + i == 0; float largest = -INFINITY, sum = calls % 1000 == 7 ? 1 : 0;",
          ""),
    Fault("one call of 10,000", "naive", "float largest = -INFINITY, sum = 0;",
          "static int64_t calls; calls += b + h + i == 0; float largest = -INFINITY, sum = calls % 10000 == 7 ? 1 : 0;",
          ""),
]


def planted(fault, folder):
    """The library with the fault in it."""
    naive = (PLUGINS / "naive_attention.c").read_text(encoding="utf-8")
    tiled = (PLUGINS / "right_attention.c").read_text(encoding="utf-8")
    texts = {"naive": naive, "tiled": tiled}
    if texts[fault.source].count(fault.old) != 1:
        sys.exit(f"{fault.name}: its anchor stands {texts[fault.source].count(fault.old)} times in "
                 f"{fault.source}_attention.c, not once")
    texts[fault.source] = texts[fault.source].replace(fault.old, fault.new)
    (folder / "naive_attention.c").write_text(texts["naive"], encoding="utf-8")
    (folder / "tiled.c").write_text(texts["tiled"], encoding="utf-8")
    source = "naive_attention.c" if fault.source == "naive" else "tiled.c"
    subprocess.run([os.environ.get("CC", "cc"), "-O2", "-shared", "-fPIC", "-DTILE=32", "-I", str(ROOT / "src"), "-o",
                    "mine.so", source,
                    "-lm"], cwd=folder, check=True)


def checked(syslab, verb, folder, *depth):
    """(laws that failed, what their messages look like, the inputs that shrinking left)."""
    environment = {**os.environ, "SYSLAB_DB": str(folder / "lab.db"), "XDG_STATE_HOME": str(folder / "state"),
                   "NO_COLOR": "1"}
    done = subprocess.run([syslab, "check", verb, "--mine", "me=./mine.so", "--impl", "me", *depth, "--json"],
                          cwd=folder, env=environment, text=True, capture_output=True)
    if done.returncode not in (0, 1, 3):
        sys.exit(done.stderr)
    laws, looks, inputs = [], [], []
    for line in map(json.loads, done.stdout.splitlines()):
        if line.get("type") == "attempt" and line["status"] == "check_failed":
            law = line["law"].split()[0].removeprefix("attention.")
            laws += [law] if law not in laws else []
            looks += re.findall(r"^looks like (.*)$", line["detail"], re.MULTILINE)
            inputs += re.findall(r"^input: (.*)$", line["detail"], re.MULTILINE)
    return laws, looks, inputs


def judged(fault, laws, looks):
    wrong = [text for text in looks if not re.search(fault.looks, text)]
    if not laws:
        return "not found"
    return "wrong" if wrong else "right" if looks else "absent"


def count_depths(arguments):
    """Each fault by the default check, and by --deep if that does not name it. --deep tries all that the default tries,
    and more."""
    named: dict[str, list[str]] = {"the default": [], "--deep": [], "neither": []}
    for verb, faults in (("flash_forward", FORWARD + RARE), ("flash_backward", BACKWARD)):
        for fault in faults:
            if arguments.k not in fault.name:
                continue
            begin = time.monotonic()
            with tempfile.TemporaryDirectory(prefix="syslab_planted_") as name:
                folder = pathlib.Path(name)
                planted(fault, folder)
                by, inputs = "neither", []
                for depth, options in (("the default", ("-x",)), ("--deep", ("-x", "--deep"))):
                    laws, _, inputs = checked(arguments.syslab.resolve(), verb, folder, *options)
                    if laws:
                        by = depth
                        break
            named[by].append(fault.name)
            print(f"{by:11}  {fault.name}  {time.monotonic() - begin:.0f} s  {inputs[0] if inputs else ''}", flush=True)
    found, deeper, missed = (len(names) for names in named.values())
    every = max(1, found + deeper + missed)
    print(f"{every} faults: {found} named by the default ({100 * found / every:.0f} %), {found + deeper} by --deep "
          f"({100 * (found + deeper) / every:.0f} %)")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("syslab", type=pathlib.Path)
    parser.add_argument("-k", default="", metavar="WORD", help="only faults whose name holds this")
    parser.add_argument("--cases", type=int, default=100)
    parser.add_argument("--depths", action="store_true", help="how many the default check names, and how many --deep")
    parser.add_argument("--markdown", action="store_true", help="a table for docs/reading-a-counterexample.md")
    arguments = parser.parse_args()
    if arguments.depths:
        return count_depths(arguments)
    tally = {"right": 0, "absent": 0, "wrong": 0, "not found": 0}
    if arguments.markdown:
        print("| planted | laws that fail | \"looks like\" |\n| --- | --- | --- |")
    for verb, faults in (("flash_forward", FORWARD), ("flash_backward", BACKWARD)):
        for fault in faults:
            if arguments.k not in fault.name:
                continue
            with tempfile.TemporaryDirectory(prefix="syslab_planted_") as name:
                folder = pathlib.Path(name)
                planted(fault, folder)
                laws, looks, _ = checked(arguments.syslab.resolve(), verb, folder, "--cases", str(arguments.cases))
            verdict = judged(fault, laws, looks)
            tally[verdict] += 1
            said = sorted({text.split(":")[0] for text in looks})
            if arguments.markdown:
                print(f"| {fault.name} | {', '.join(f'`{law}`' for law in laws) or 'none'} | "
                      f"{'; '.join(said) or 'absent'}{' (**wrong**)' if verdict == 'wrong' else ''} |", flush=True)
            else:
                print(f"{verdict:9}  {fault.name}: {', '.join(laws) or 'no law'}; {'; '.join(said) or 'nothing said'}",
                      flush=True)
    print(", ".join(f"{count} {verdict}" for verdict, count in tally.items()), file=sys.stderr)
    return 1 if tally["wrong"] or tally["not found"] else 0


if __name__ == "__main__":
    sys.exit(main())
