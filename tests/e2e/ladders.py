"""The ladders of the program as it tells them, and what became of every rung, dtype and pass of one.

A ladder is an experiment whose implementations on the device one process can run. Experiments over the same rungs and the same
passes time the same operations: the simplest of them stands for all.
"""
import collections
import dataclasses

NUMBERS = ("dtype", "precision")  # what an experiment calls the axis of its numbers
PASSES = ("pass", "mode")
REFUSED = ("skipped", "unsupported")  # with a reason, and not passed


@dataclasses.dataclass
class Ladder:
    experiment: str
    rungs: dict  # name: the dtypes that it says it has; empty if it does not say
    numbers: tuple  # the axis and its values; ("", [""]) where there is none
    passes: tuple
    shapes: list  # of dicts: axis to value

    def arguments(self, shape):
        every = [(axis, values) for axis, values in (self.numbers, self.passes) if axis]
        every += [(axis, [value]) for axis, value in shape.items()]
        return [word for axis, values in every for word in ("-a", f"{axis}={','.join(map(str, values))}")]


def ladders(experiments, device):
    """Of `list --json`."""
    found = {}
    for experiment in experiments:
        rungs = {one["name"]: one["dtypes"] for one in experiment["implementations"] if one["device"] == device}
        if not rungs or experiment["takes_ranks"]:
            continue
        axes = {axis["name"]: axis for axis in experiment["axes"]}
        numbers, passes = (_all_values(axes, names) for names in (NUMBERS, PASSES))
        # Where no axis says which pass, the experiment itself is the pass.
        same = (frozenset((name, *dtypes) for name, dtypes in rungs.items()), numbers[0], passes[0],
                frozenset(passes[1]) if passes[0] else experiment["id"])
        if same not in found or len(axes) < found[same][0]:
            given = experiment["presets"].get("smoke", {})
            shapes = _two_shapes(axes, given, {numbers[0], passes[0]})
            found[same] = (len(axes), Ladder(experiment["id"], rungs, numbers, passes, shapes))
    return [ladder for _, ladder in found.values()]


def _all_values(axes, names):
    for name in names:
        if name in axes:
            return name, axes[name]["values"] + axes[name]["also"]
    return "", [""]


def larger(size):
    """Half as much again, and no whole number of tiles of 16."""
    return size + size // 2 + (8 if size >= 16 else 1)


def _two_shapes(axes, given, without):
    """The first values of the smoke preset, and with larger sizes. Closed axes that it leaves open keep all their values."""
    first, second = {}, {}
    for name, axis in axes.items():
        if name in without or (axis["closed"] and name not in given):
            continue
        value = given.get(name, axis["values"])[0]
        is_size = not axis["closed"] and isinstance(value, int) and not isinstance(value, bool) and value > 0
        first[name], second[name] = value, larger(value) if is_size else value
    return [first, second]


class Outcomes:
    """What became of the cases of one ladder at one shape; `attempts`: the lines of `run --json`."""

    def __init__(self, ladder, attempts):
        self.ladder = ladder
        self.passed = 0
        self.refused = collections.Counter()  # by reason
        self.failed = []
        self.reached = set()  # (rung, number, pass) with a case that passed
        self.reasons = collections.defaultdict(set)  # of refusals, by the same
        number_axis, pass_axis = ladder.numbers[0], ladder.passes[0]
        for one in attempts:
            key = (one["impl"], one["params"].get(number_axis, ""), one["params"].get(pass_axis, ""))
            if one["status"] == "ok":
                self.passed += 1
                self.reached.add(key)
            elif one["status"] in REFUSED:
                self.refused[one["detail"]] += 1
                self.reasons[key].add(one["detail"])
            else:
                self.failed.append(f"{one['status']}: {one['experiment']} {one['impl']} {one['params']}: {one['detail']}")

    def silent(self):
        """Rungs none of whose cases passed."""
        return set(self.ladder.rungs) - {rung for rung, _, _ in self.reached}

    def missing(self):
        """Of every rung that passed at all: passes of it without a case that passed, and of each, dtypes that it says it has.
        A pass that it refuses in all of its dtypes for one and the same reason is a pass that it has not (`graph` records whole
        steps only)."""
        numbers, passes = self.ladder.numbers[1], self.ladder.passes[1]
        found = []
        for rung in sorted(set(self.ladder.rungs) - self.silent()):
            for one_pass in passes:
                passed = {number for name, number, of in self.reached if (name, of) == (rung, one_pass)}
                wanted = set(self.ladder.rungs[rung]) & set(numbers)
                reasons = [self.reasons[rung, number, one_pass] for number in wanted or numbers]
                if not passed and all(reasons) and len(set().union(*reasons)) == 1:
                    continue
                if not passed or not wanted <= passed:
                    found.append(f"{rung} {one_pass}: {', '.join(sorted(wanted - passed)) or 'nothing'}")
        return found
