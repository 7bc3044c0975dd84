"""The other side of a function that is judged: makes its arguments, and says what it should have returned.

    python3 syslab_reference.py --reference file.py:ref --inputs file.py:cases --list FD [--backward]
    python3 syslab_reference.py --reference file.py:ref --inputs file.py:cases

syslab starts this by itself, in a process of its own: what is judged shares nothing with it. The first form writes the
cases as JSON to the descriptor FD. The second serves the worker's wire format (docs/worker-wire.md), where `hello` says which case the
calls up to the next `hello` are `about`: `make` fills a call's arguments from a seed; `expect` runs the reference in float64,
where it can be, and says how far from its result a correct function may be. docs/any-function.md derives that bound. The files are run once.

Needs the standard library and whichever of NumPy and torch the user's files import.
"""
import argparse
import contextlib
import dataclasses
import hashlib
import inspect
import json
import math
import os
import pathlib
import random
import sys

from syslab_autograd import BACKWARD, Backward
from syslab_bounds import bound, change_of, doubles, error_of, larger, probed, unit_roundoff, whole_bound, widened
from syslab_failures import failed
from syslab_functions import load_callable, load_object, named_results
from syslab_library import BadCases, ManifestCase, Symbol, manifest_cases
from syslab_limits import lift_memory_limit
from syslab_loading import load_module
from syslab_signature import FLOATS, Signature, dtype_name, is_numpy, is_torch, item_bytes, raw_view, take_apart, wire_tensor
from syslab_tensors import Memory
from syslab_wire import PROTOCOL, Pipe

FIELDS = ("name", "axes", "arguments", "terms", "rtol", "atol", "flops", "bytes", "backward")
MOST_CASES = 10_000

PROBES = 4  # random changes of the arguments, by which the result's sensitivity is known


# --- cases ------------------------------------------------------------------------------------------------------------


def field(case, name, otherwise=None):
    return case.get(name, otherwise) if isinstance(case, dict) else getattr(case, name, otherwise)


def check_case(case, number, axes, names):
    where = f"case {number}"
    if not isinstance(case, dict) and not hasattr(case, "arguments"):
        raise BadCases(f"{where} is a {type(case).__name__}; expected a dict or dataclass with name, axes and arguments")
    if isinstance(case, dict) or dataclasses.is_dataclass(case):
        given = case if isinstance(case, dict) else [each.name for each in dataclasses.fields(case)]
        unknown = [key for key in given if key not in FIELDS]
        if unknown:
            raise BadCases(f"{where} has a field '{unknown[0]}'; there are {', '.join(FIELDS)}")
    name = field(case, "name")
    own = field(case, "axes") or {}
    if name is None:
        name = " ".join(f"{key}={value}" for key, value in own.items())
    if not isinstance(name, str) or not name or "," in name or "\n" in name:
        raise BadCases(f"{where}: a name is a text without commas, found {name!r}")
    if name in names:
        raise BadCases(f"two cases are called '{name}'")
    if not callable(field(case, "arguments")):
        raise BadCases(f"case '{name}': 'arguments' must be a function of a seed that makes them, so that each timed call meets "
                       f"new content; found {type(field(case, 'arguments')).__name__}")
    for key, value in own.items():
        if not isinstance(key, str) or not key.isidentifier() or key in ("impl", "device", "world_size", "case", "problem"):
            raise BadCases(f"case '{name}': an axis cannot be called {key!r}")
        if not isinstance(value, (bool, int, float, str)):
            raise BadCases(f"case '{name}': axis '{key}' is a {type(value).__name__}; axes are numbers, texts, True and False")
        if isinstance(value, float) and not math.isfinite(value):
            raise BadCases(f"case '{name}': axis '{key}' is {value}; axes are finite numbers")
    if axes and {key: type(value) for key, value in own.items()} != axes[0]:
        first = ", ".join(f"{key} ({kind.__name__})" for key, kind in axes[0].items()) or "none"
        raise BadCases(f"case '{name}' has other axes than the first, or of other types: all cases have {first}")
    axes.append({key: type(value) for key, value in own.items()})
    return name


def cases_object(path, name):
    """What gives the cases. Whoever has a function and a reference has none yet: the message says how one looks."""
    try:
        return load_object(path, name)
    except AttributeError as error:
        if "." in name or hasattr(load_module(path), name):
            raise  # out of the user's own code
        raise BadCases(f"{error}. What gives the cases makes the arguments to call both sides with, new ones for each seed: def {name}(): yield "
                       "{'arguments': lambda seed: [numpy.random.default_rng(seed).standard_normal((512, 512))]}. It may "
                       "stand in another file: --inputs FILE.py:NAME (docs/any-function.md)") from None


def read_cases(path, name):
    """The cases by name, in order."""
    made = manifest_cases(path) if pathlib.Path(path).suffix == ".json" else cases_object(path, name)
    made = made() if callable(made) else made
    cases, axes = {}, []
    for number, case in enumerate(made, 1):
        if number > MOST_CASES:
            raise BadCases(f"'{name}' gives more than {MOST_CASES} cases; does it end?")
        cases[check_case(case, number, axes, cases)] = case
    if not cases:
        raise BadCases(f"'{name}' gives no case")
    return cases


def passes_of(cases, backward):
    """Names and axes of all that can be asked: with gradients, each case that has them twice."""
    def has(case):
        return backward or bool(field(case, "backward"))

    passes = any(map(has, cases.values()))
    for name, case in cases.items():
        axes = dict(field(case, "axes") or {})
        if passes and "pass" in axes:
            raise BadCases(f"case '{name}': with gradients 'pass' is an axis already; call yours otherwise")
        yield {"name": name, "axes": {**axes, "pass": "forward"} if passes else axes}
        if has(case):
            yield {"name": name + BACKWARD, "axes": {**axes, "pass": "backward"}}


def source_of(path, name):
    """What the object of that name is, for a digest: its own source; of what has none, a list say, the file that makes it."""
    if pathlib.Path(path).suffix != ".py":
        return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()
    found = load_object(path, name)
    if inspect.isroutine(found) or inspect.isclass(found):
        with contextlib.suppress(OSError, TypeError):
            return inspect.getsource(found)
    return pathlib.Path(path).read_text(encoding="utf-8", errors="replace")


def problem_of(reference, inputs):
    """"softmax@1f2e3d4c": the reference's name and a digest of its source and that of the cases."""
    digest = hashlib.sha256("\0".join((source_of(*reference), source_of(*inputs))).encode()).hexdigest()
    return f"{reference[1]}@{digest[:8]}"


# --- what was expected ------------------------------------------------------------------------------------------------


def placed(values, device):
    """Tensors of torch there; arrays of NumPy, which know no place, as they are."""
    return [value.to(device) if is_torch(value) else value for value in values]


def is_module(function):
    return "torch" in sys.modules and isinstance(function, sys.modules["torch"].nn.Module)


class Reference:
    def __init__(self, reference, inputs, case_name, device):
        self.native = load_callable(*reference)
        cases = read_cases(*inputs)
        plain = case_name.removesuffix(BACKWARD)
        if plain not in cases:
            raise BadCases(f"there is no case '{plain}' any more (there are {', '.join(list(cases)[:8])})")
        self.case, self.name, self.problem = cases[plain], case_name, problem_of(reference, inputs)
        self.signature, first = self.arguments(1)
        if self.same(first, self.arguments(2)[1]) and first:
            raise BadCases(f"case '{case_name}': its arguments are the same with every seed; draw their content with the seed, so "
                           "that each timed call meets what no call has seen")
        if case_name.endswith(BACKWARD):
            self.differentiate(first)
            _, first = self.arguments(1)
        self.device = device if device != "cpu" and self.computes_on(device, first) else "cpu"
        there = placed(first, self.device)
        self.outputs = self.describe_outputs(self.run(self.native, there))
        self.wide = self.native
        if is_module(self.native):
            self.wide = load_callable(*reference).double().to(self.device)
        self.precision = self.precision_of(there)
        self.terms = field(self.case, "terms") or max([1] + [size for each in first for size in self.sums_over(each)])

    def sums_over(self, value):
        """Lengths of sums that a tensor may be an operand of: its dimensions; of gradients of what all rows share, its rows."""
        sizes = list(value.shape)
        return sizes + [math.prod(sizes[:-1])] if self.signature.late else sizes

    def differentiate(self, values):
        """From here on a call takes the gradients of its outputs, too, and returns those of its arguments and parameters."""
        if not values or not all(map(is_torch, values)) or isinstance(self.native, Symbol):
            raise BadCases(f"case '{self.name}': gradients are torch's by autograd, of tensors of torch")
        back = Backward(self.native, self.signature, [value.clone() for value in values])
        if not back.results or not back.wanted:
            raise BadCases(f"case '{self.name}': no output of the reference depends on an argument by way of autograd")
        late = [{"name": f"d({name})", "library": "torch", "dtype": dtype_name(value), "shape": list(value.shape)}
                for name, value in back.results]
        self.signature = Signature(self.signature.tree, self.signature.tensors + late, late=[name for name, _ in back.results])

    def gradients(self, seed):
        """Of the outputs, drawn as the arguments are."""
        torch = sys.modules.get("torch")
        late = self.signature.tensors[self.signature.early():]
        if not late:
            return []
        generator = torch.Generator().manual_seed(seed + 2 ** 32)
        return [torch.randn(each["shape"], generator=generator, dtype=getattr(torch, each["dtype"])
                            if each["dtype"].startswith("complex") else None).to(getattr(torch, each["dtype"])) for each in late]

    def arguments(self, seed):
        random.seed(seed)
        if "numpy" in sys.modules:
            sys.modules["numpy"].random.seed(seed % 2 ** 32)
        if "torch" in sys.modules:
            sys.modules["torch"].manual_seed(seed)
        made = field(self.case, "arguments")(seed)
        if isinstance(self.case, ManifestCase):
            return Signature(self.case.tree, self.case.inputs, self.case.abi), made
        signature, values = take_apart(made)
        if not hasattr(self, "signature"):
            return signature, values
        if (signature.tree, signature.tensors) != (self.signature.tree, self.signature.tensors[:self.signature.early()]):
            changed = [f"'{now['name']}' {tuple(now['shape'])} {now['dtype']}" for now, was in
                       zip(signature.tensors, self.signature.tensors) if now != was]
            raise BadCases(f"case '{self.name}': another seed makes arguments of another form ({', '.join(changed) or 'not tensors'});"
                           " only the content of tensors may depend on it")
        return self.signature, values + self.gradients(seed)

    @staticmethod
    def same(first, second):
        return all(is_torch(a) and sys.modules["torch"].equal(a, b) or is_numpy(a) and (a == b).all()
                   for a, b in zip(first, second))

    def run(self, function, values):
        torch = sys.modules.get("torch")
        copies = [value.clone() if is_torch(value) else value.copy() for value in values]
        if self.signature.late:
            back = Backward(function, self.signature, copies[:self.signature.early()])
            back.demand(self.signature.late, copies[self.signature.early():])
            return named_results(back.named(back.gradients(copies[self.signature.early():])), "the reference")
        if isinstance(function, Symbol):
            return named_results(function.bound(self.signature.abi, copies)(), "the reference")
        arguments = self.signature.build(copies)
        if torch is None:
            return named_results(function(*arguments), "the reference")
        with torch.no_grad():
            return named_results(function(*arguments), "the reference")

    @staticmethod
    def describe_outputs(results):
        return [{"name": name, "library": "torch" if is_torch(value) else "numpy", "dtype": dtype_name(value),
                 "shape": list(value.shape)} for name, value in results]

    def precision_of(self, values):
        """"float64" where the reference takes that and computes in it; else how it computes."""
        if not any(unit_roundoff(each["dtype"]) for each in self.outputs):
            return "float64"
        try:
            results = self.run(self.wide, [widened(value) for value in values])
        except Exception:  # noqa: BLE001, whatever it is, the reference does not take doubles
            return "its own"
        if [name for name, _ in results] != [each["name"] for each in self.outputs]:
            return "its own"
        wide = all(dtype_name(value) in ("float64", "complex128") for (_, value), each in zip(results, self.outputs)
                   if unit_roundoff(each["dtype"]))
        return "float64" if wide else "its own"

    def computes_on(self, device, values):
        """Whether the reference computes on the GPU, too, where it takes milliseconds for what takes the CPU seconds."""
        torch = sys.modules.get("torch")
        if torch is None or isinstance(self.native, Symbol) or not torch.cuda.is_available():
            return False
        try:
            if is_module(self.native):
                self.native.to(device)
            results = self.run(self.native, placed(values, device))
            if all(is_torch(value) and value.device.type == device for _, value in results):
                return True
        except Exception:  # noqa: BLE001, whatever it is, the reference is of the CPU
            pass
        if is_module(self.native):
            self.native.cpu()
        return False

    @contextlib.contextmanager
    def probed_parameters(self, generator):
        """A module's own numbers are rounded as its arguments are: they are moved with them, and put back."""
        if not is_module(self.wide):
            yield
            return
        torch = sys.modules["torch"]
        kept = {name: value.clone() for name, value in self.wide.state_dict().items()}
        try:
            with torch.no_grad():
                for value in self.wide.state_dict().values():
                    value.copy_(probed(value, generator))
            yield
        finally:
            self.wide.load_state_dict(kept)

    def own_errors(self, values, results):
        """How far the reference in its own dtype is from itself in float64: a right function may err as much, where rounding of
        what lies between (a sum with a constant, say) is what counts and no argument's."""
        return [error_of(doubles(own), doubles(value)) for (_, value), (_, own) in zip(results, self.run(self.native, values))]

    def expect(self, values, probes=PROBES):
        """For each output its value and its tolerance, as doubles. With fewer probes the tolerance is no wider, and
        takes less time: what lies within it is right, of what does not the whole has to be asked.
        """
        import numpy

        exact = self.precision == "float64"
        function = self.wide if exact else self.native
        given = values = placed(values, self.device)
        values = [widened(value) for value in values] if exact else values
        results = self.run(function, values)
        sensitivity = [None] * len(results)
        rtol, atol = field(self.case, "rtol"), field(self.case, "atol")
        declared = (rtol or 0.0, atol or 0.0) if rtol is not None or atol is not None else None
        own = [None] * len(results)
        if exact and not declared:
            own = self.own_errors(given, results) if probes == PROBES else own
            generator = numpy.random.default_rng(20230717)
            for _ in range(probes):
                with self.probed_parameters(generator):
                    moved = self.run(function, [probed(value, generator) for value in values])
                changes = [change_of(doubles(other), doubles(value)) for (_, value), (_, other) in zip(results, moved)]
                sensitivity = [larger(one, change) for one, change in zip(sensitivity, changes)]
        return [self.bound(name, doubles(value), each, moved, erring, exact, declared)
                for (name, value), each, moved, erring in zip(results, self.outputs, sensitivity, own)]

    def bound(self, name, value, output, sensitivity, erring, exact, declared):
        if bool((value != value).any()):
            raise BadCases(f"case '{self.name}': the reference computes NaN in '{name}'; nothing can be compared with that")
        dtype = output["dtype"]
        if unit_roundoff(dtype) == 0:
            if not dtype.startswith(("int", "uint", "bool")):
                raise BadCases(f"an output of {dtype}; floats, integers, bool and complex numbers are compared")
            if math.prod(value.shape) and float(abs(value).max()) >= 2.0 ** 53:
                raise BadCases("the reference's integers reach 2^53, from where they are not told apart")
            return value, whole_bound(value, *(declared or (0.0, 0.0)))
        given = max([unit_roundoff(dtype)] + [unit_roundoff(tensor["dtype"]) for tensor in self.signature.tensors])
        return bound(value, dtype, given=given, terms=self.terms, sensitivity=sensitivity, erring=erring, exact=exact, declared=declared)

    # --- the wire

    def domain(self):
        outputs = []
        for each in self.outputs:
            elements = math.prod(each["shape"]) * (2 if each["dtype"].startswith("complex") else 1)
            wire = FLOATS.get(each["dtype"], "fp32" if each["dtype"] == "complex64" else "fp64")
            shape = each["shape"] if 0 < len(each["shape"]) <= 4 and not each["dtype"].startswith("complex") else [elements]
            outputs.append({"name": each["name"], "dtype": wire, "shape": shape})
        inputs = [wire_tensor(each["name"], item, math.prod(each["shape"]))
                  for each, item in zip(self.signature.tensors, (item_bytes(value) for value in self.arguments(1)[1]))]
        return {"problem": self.problem, "inputs": inputs, "outputs": outputs, "signature": self.signature.text(),
                "results": json.dumps(self.outputs), "pass": "backward" if self.signature.late else "forward", "reference_in": self.precision, "terms": self.terms,
                "bound": "declared" if any(field(self.case, key) is not None for key in ("rtol", "atol")) else "derived",
                **{key: 0.0 if self.signature.late else float(field(self.case, key) or 0) for key in ("flops", "bytes")}}

    def views(self, memory, size, tensors):
        return [raw_view(memory, size, wire["offset"], tensor) for wire, tensor in zip(tensors, self.signature.tensors)]

    def call(self, message, memory):
        size = message["memory_bytes"]
        if message["function"] == "make":
            _, values = self.arguments(int(message["options"]["seed"]))
            for view, value in zip(self.views(memory, size, message["outputs"]), values):
                view.copy_(value) if is_torch(view) else view.__setitem__(..., value)
        elif message["function"] == "expect":
            probes = int(message["options"].get("probes", PROBES))
            parts = [part for pair in self.expect(self.views(memory, size, message["inputs"]), probes) for part in pair]
            for wire, part in zip(message["outputs"], parts):
                write_doubles(part, memory.bytes(size), wire["offset"])
            if self.device != "cpu":
                sys.modules["torch"].cuda.empty_cache()  # the GPU's memory is for what is judged
        else:
            raise ValueError(f"a reference makes and expects; it does not '{message['function']}'")
        return {"type": "returned", "elapsed_ns": 0}


def write_doubles(value, memory, offset):
    import numpy

    view = numpy.ndarray(tuple(value.shape), "f8", memory, offset)
    if is_torch(value):
        sys.modules["torch"].from_numpy(view).copy_(value)
    else:
        view[...] = value


def parse_place(text):
    path, _, name = text.rpartition(":")
    return os.path.realpath(path), name


def of_case(error, name, path):
    """The failure, with the case in front."""
    message = failed(error, path)
    if isinstance(error, BadCases):
        message.update({"message": str(error), "traceback": ""})
    elif name:
        message["message"] = f"case '{name}': {message['message']}"
    return message


def list_cases(reference, inputs, backward, descriptor):
    with os.fdopen(descriptor, "w") as out:
        of = "reference"
        try:
            load_callable(*reference)
            of = "inputs"
            cases = read_cases(*inputs)
            json.dump({"problem": problem_of(reference, inputs), "cases": list(passes_of(cases, backward))}, out)
        except BaseException as error:  # noqa: BLE001, a sys.exit() in the user's file, too
            json.dump({"failed": of_case(error, "", inputs[0])["message"], "of": of}, out)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reference", required=True, type=parse_place, metavar="FILE.py:NAME")
    parser.add_argument("--inputs", required=True, type=parse_place, metavar="FILE.py:NAME")
    parser.add_argument("--list", type=int, metavar="FD")
    parser.add_argument("--backward", action="store_true")
    parser.add_argument("--device", default="cpu", help="where the reference computes if it can")
    given = parser.parse_args()
    lift_memory_limit()
    if given.list is not None:
        descriptor = os.dup(given.list)
        os.dup2(2, 1)  # what the files print is no answer
        return list_cases(given.reference, given.inputs, given.backward, descriptor)

    pipe, memory, served, about = Pipe(), None, None, ""
    while (message := pipe.read()) is not None and message["type"] != "bye":
        try:
            if message["type"] == "hello":
                memory = Memory(message.get("memory_fd", -1))
                before, served, about = served, None, message.get("about", "")
                if before is not None and before.name == about and before.problem == problem_of(given.reference, given.inputs):
                    served = before  # of another launch of the same case
                else:
                    served = Reference(given.reference, given.inputs, about, given.device)
                pipe.write({"type": "hello", "protocol": PROTOCOL, "name": "reference", "language": "Python", "serves": ["call"],
                            "domain": served.domain()})
            else:
                pipe.write(served.call(message, memory))
        except BaseException as error:  # noqa: BLE001, as above
            pipe.write(of_case(error, about, given.reference[0]))
            if served is None:
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
