"""The other side of a function that is judged: makes its arguments, and says what it should have returned.

    python3 syslab_reference.py --reference file.py:ref --inputs file.py:cases --list FD [--backward]
    python3 syslab_reference.py --reference file.py:ref --inputs file.py:cases

syslab starts this by itself, in a process of its own: what is judged shares nothing with it. The first form writes the
cases as JSON to the descriptor FD. The second serves the worker's wire format (docs/worker-wire.md), where `hello` says
which case the calls up to the next `hello` are `about`: `make` fills a call's arguments from a seed; `expect` runs the
reference in float64, where it can be, and says how far from its result a correct function may be; `expect_ties` has
seen what the function returned. docs/any-function.md derives that bound. The files are run once.

Needs the standard library and whichever of NumPy and torch the user's files import.
"""
from __future__ import annotations

import argparse
import contextlib
import functools
import json
import math
import os
import random
import sys
from typing import TYPE_CHECKING, Any

from syslab_autograd import BACKWARD, Backward
from syslab_bounds import (FACTOR, bound, change_of, doubles, error_of, is_inexact, larger, probed, sizes_of,
                           unit_roundoff, whole_bound, widened)
from syslab_cases import field, list_cases, number_of, of_case, parse_place, problem_of, read_cases, shown
from syslab_functions import load_callable, loaded, named_results
from syslab_library import BadCases, ManifestCase, Symbol
from syslab_limits import lift_memory_limit
from syslab_loading import own_files, replaced_names
from syslab_reads import read_files, watch_reads
from syslab_signature import (FLOATS, Signature, dtype_name, is_numpy, is_torch, item_bytes, raw_view, take_apart,
                              wire_tensor)
from syslab_tensors import Memory
from syslab_ties import (DRAWS, MovedArgument, OutputStandsOut, array_of, in_place_of, read_doubles, rounded, settled,
                         write_doubles)
from syslab_within import ARRANGEMENTS, results_moved
from syslab_wire import PROTOCOL, Pipe

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy
    from torch import Tensor

    from syslab_ties import Array, Scores
    from syslab_wire import Message

    Bounded = tuple[Array, ...]  # a value, its tolerance, each element's own
    Results = list[tuple[str, Array]]

PROBES = 4  # random changes of the arguments, by which the result's sensitivity is known


# --- what was expected ------------------------------------------------------------------------------------------------


def placed(values: list[Array], device: str) -> list[Array]:
    """Tensors of torch there; arrays of NumPy, which know no place, as they are."""
    return [value.to(device) if is_torch(value) else value for value in values]


def is_integer(dtype: str) -> bool:
    return dtype.startswith(("int", "uint"))


def is_module(function: Any) -> bool:
    return "torch" in sys.modules and isinstance(function, sys.modules["torch"].nn.Module)


class Reference:
    def __init__(self, reference: tuple[str, str], inputs: tuple[str, str], case_name: str, device: str) -> None:
        self.native = load_callable(*reference)
        cases = read_cases(*inputs)
        plain = case_name.removesuffix(BACKWARD)
        if plain not in cases:
            raise BadCases(f"there is no case '{plain}' any more (there are {', '.join(list(cases)[:8])})")
        self.case, self.name, self.problem = cases[plain], case_name, problem_of(reference, inputs)
        self.signature, first = self.arguments(1)
        if self.same(first, self.arguments(2)[1]):
            raise BadCases(f"case '{case_name}': its arguments are the same with every seed; draw their content with "
                           "the seed, so that each timed call meets what no call has seen")
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
        self.keeps_shapes = self.keeps_shapes_of(there)
        self.terms = self.number("terms") or max([1] + [size for each in first for size in self.sums_over(each)])

    def number(self, key: str) -> Any:
        return number_of(self.case, key, self.name)

    def declared(self) -> tuple[float, float] | None:
        """(rtol, atol) of the case, or None."""
        rtol, atol = self.number("rtol"), self.number("atol")
        return None if rtol is None and atol is None else (rtol or 0.0, atol or 0.0)

    def summable(self) -> int:
        """How many numbers there are that a sum may be of: elements of the arguments and of a module's parameters."""
        parameters = [each.numel() for each in self.native.state_dict().values()] if is_module(self.native) else []
        return sum([math.prod(each["shape"]) for each in self.signature.tensors] + parameters)

    def sums_over(self, value: Array) -> list[int]:
        """Lengths of sums that a tensor may be an operand of: its dimensions; of gradients of what all rows share, its
        rows."""
        sizes = list(value.shape)
        return sizes + [math.prod(sizes[:-1])] if self.signature.late else sizes

    def differentiate(self, values: list[Array]) -> None:
        """From here on a call takes the gradients of its outputs, too, and returns those of its arguments and
        parameters."""
        if not values or not all(map(is_torch, values)) or isinstance(self.native, Symbol):
            raise BadCases(f"case '{self.name}': gradients are torch's by autograd, of tensors of torch")
        back = Backward(self.native, self.signature, [value.clone() for value in values])
        if not back.results or not back.wanted:
            raise BadCases(f"case '{self.name}': no output of the reference depends on an argument by way of autograd")
        late = [{"name": f"d({name})", "library": "torch", "dtype": dtype_name(value), "shape": list(value.shape)}
                for name, value in back.results]
        self.signature = Signature(self.signature.tree, self.signature.tensors + late,
                                   late=[name for name, _ in back.results], names=self.signature.names)

    def gradients(self, seed: int) -> list[Tensor]:
        """Of the outputs, drawn as the arguments are."""
        torch = loaded("torch")
        late = self.signature.tensors[self.signature.early():]
        if not late:
            return []
        # torch keeps 32 bits of a seed: these numbers must not be those of an argument that was drawn with `seed`.
        generator = torch.Generator().manual_seed((seed * 0x9E3779B1 + 0x7F4A7C15) % 2 ** 32)
        return [torch.randn(each["shape"], generator=generator, dtype=getattr(torch, each["dtype"])
                            if each["dtype"].startswith("complex") else None).to(getattr(torch, each["dtype"]))
                for each in late]

    def arguments(self, seed: int) -> tuple[Signature, list[Array]]:
        random.seed(seed)
        if "numpy" in sys.modules:
            sys.modules["numpy"].random.seed(seed % 2 ** 32)
        if "torch" in sys.modules:
            sys.modules["torch"].manual_seed(seed)
        made = field(self.case, "arguments")(seed)
        try:
            iter(made)
        except TypeError:
            raise BadCases(f"case '{self.name}': arguments({seed}) returned {shown(made)}; expected a dict, list or "
                           "tuple with the arguments of a call") from None
        if isinstance(self.case, ManifestCase):
            return Signature(self.case.tree, self.case.inputs, self.case.abi), made
        signature, values = take_apart(made)
        if not hasattr(self, "signature"):
            return signature, values
        if (signature.tree, signature.tensors) != (self.signature.tree,
                                                   self.signature.tensors[:self.signature.early()]):
            changed = [f"'{now['name']}' {tuple(now['shape'])} {now['dtype']}" for now, was in
                       zip(signature.tensors, self.signature.tensors) if now != was]
            raise BadCases(f"case '{self.name}': another seed makes arguments of another form "
                           f"({', '.join(changed) or 'not tensors'}); only the content of tensors may depend on it")
        return self.signature, values + self.gradients(seed)

    @staticmethod
    def same(first: list[Array], second: list[Array]) -> bool:
        """Whether there is content, and all of it is equal: a tensor without elements has none."""
        pairs = [(a, b) for a, b in zip(first, second) if math.prod(a.shape)]
        return bool(pairs) and all(is_torch(a) and sys.modules["torch"].equal(a, b) or is_numpy(a) and (a == b).all()
                                   for a, b in pairs)

    def run(self, function: Any, values: list[Array]) -> Results:
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
    def describe_outputs(results: Results) -> list[dict[str, Any]]:
        return [{"name": name, "library": "torch" if is_torch(value) else "numpy", "dtype": dtype_name(value),
                 "shape": list(value.shape)} for name, value in results]

    def has_shapes(self, results: Results) -> bool:
        return [list(value.shape) for _, value in results] == [each["shape"] for each in self.outputs]

    def demand_shapes(self, results: Results) -> None:
        """Of other arguments: the call has memory for the shapes of the first ones' results."""
        for (name, value), each in zip(results, self.outputs):
            if list(value.shape) != each["shape"]:
                raise BadCases(f"case '{self.name}': the reference returns '{name}' of shape {tuple(value.shape)} for "
                               f"these arguments and of shape {tuple(each['shape'])} for the first ones; draw "
                               "arguments whose results have one shape, or pad results to one length")

    def keeps_shapes_of(self, values: list[Array]) -> bool:
        """Whether results have the same shapes with arguments that differ in their last bits. The results of
        numpy.unique have not, where elements are equal."""
        import numpy

        if self.precision != "float64" or self.declared() or not any(map(is_inexact, values)):
            return True
        generator = numpy.random.default_rng(20230717)
        try:
            with self.probed_parameters(generator):
                return self.has_shapes(self.run(self.wide, [probed(widened(value), generator) for value in values]))
        except Exception:  # noqa: BLE001, whatever it is, expect() will say so
            return True

    def precision_of(self, values: list[Array]) -> str:
        """"float64" where the reference takes that and computes in it; else how it computes."""
        try:
            results = self.run(self.wide, [widened(value) for value in values])
        except Exception:  # noqa: BLE001, whatever it is, the reference does not take doubles
            return "its own"
        if [name for name, _ in results] != [each["name"] for each in self.outputs] or not self.has_shapes(results):
            return "its own"
        wide = all(dtype_name(value) in ("float64", "complex128") for (_, value), each in zip(results, self.outputs)
                   if unit_roundoff(each["dtype"]))
        return "float64" if wide else "its own"

    def computes_on(self, device: str, values: list[Array]) -> bool:
        """Whether the reference computes on the GPU, too, where it takes milliseconds for what takes the CPU
        seconds."""
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
    def probed_parameters(self, generator: numpy.random.Generator) -> Iterator[None]:
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

    def own_errors(self, values: list[Array], results: Results) -> list[Any]:
        """How far the reference in its own dtype is from itself in float64: a right function may err as much, where
        rounding of what lies between (a sum with a constant, say) is what counts and no argument's."""
        own_results = self.run(self.native, values)
        if not self.has_shapes(own_results):
            return [None] * len(results)
        return [error_of(doubles(own), doubles(value)) for (_, value), (_, own) in zip(results, own_results)]

    def changes_within(self, values: list[Array], results: Results) -> tuple[list[Any], float | None]:
        """For each output how much it moves with what is rounded on the way to it (syslab_within.py), in units of that,
        and the largest number on the way. None where that is not known: of NumPy, and of what torch cannot watch."""
        import numpy

        unknown = [None] * len(results), None
        if "torch" not in sys.modules or isinstance(self.wide, Symbol):
            return unknown
        found, largest = unknown
        generator = numpy.random.default_rng(20230718)
        for arrangement in ARRANGEMENTS:
            try:
                with results_moved(arrangement, generator) as seen:
                    moved = self.run(self.wide, values)
            except Exception:  # noqa: BLE001, whatever it is, the reference does not run so
                return unknown
            if seen.value is None or not self.has_shapes(moved):
                return unknown
            changes = [change_of(doubles(other), doubles(value)) for (_, value), (_, other) in zip(results, moved)]
            found = [larger(one, change) for one, change in zip(found, changes)]
            largest = max(largest or 0.0, seen.value)
        return found, largest

    def expect(self, values: list[Array], probes: int = PROBES) -> list[Bounded]:
        """For each output its value, its tolerance, and each element's own tolerance, which lends it nothing of its
        neighbours (syslab_bounds.own_tolerance), as doubles. With fewer probes the tolerance is no wider, and takes
        less time: what lies within it is right, of what does not the whole has to be asked.
        """
        import numpy

        exact = self.precision == "float64"
        function = self.wide if exact else self.native
        given = values = placed(values, self.device)
        values = [widened(value) for value in values] if exact else values
        results = self.run(function, values)
        if exact and not self.has_shapes(results):  # rounding decides about the shapes
            exact, function, values = False, self.native, given
            results = self.run(function, values)
        self.demand_shapes(results)
        sensitivity = [None] * len(results)
        declared = self.declared()
        own, within, largest = [None] * len(results), [None] * len(results), None
        if exact and not declared:
            own = self.own_errors(given, results) if probes == PROBES else own
            generator = numpy.random.default_rng(20230717)
            for _ in range(probes):
                with self.probed_parameters(generator):
                    moved = self.run(function, [probed(value, generator) for value in values])
                if not self.has_shapes(moved):  # elements of the two are not the same ones
                    continue
                changes = [change_of(doubles(other), doubles(value)) for (_, value), (_, other) in zip(results, moved)]
                sensitivity = [larger(one, change) for one, change in zip(sensitivity, changes)]
            if probes == PROBES and sensitivity[0] is None:  # as if each element moved as its arguments do
                sensitivity = [sizes_of(doubles(value)) for _, value in results]
            elif probes == PROBES:
                within, largest = self.changes_within(values, results)
        return [self.bound(name, doubles(value), each, exact, declared, sensitivity=moved, erring=erring, within=change,
                           largest=largest)
                for (name, value), each, moved, erring, change in zip(results, self.outputs, sensitivity, own, within)]

    def expect_ties(self, values: list[Array], seen: list[numpy.ndarray], probes: int) -> list[Bounded]:
        """The same, with what was seen (arrays of doubles) in place of the reference's integers where as right."""
        pairs = self.expect(values, probes)
        if self.declared() is not None:
            return pairs
        integers = [i for i, each in enumerate(self.outputs) if is_integer(each["dtype"])]
        for number in DRAWS:
            drawn, found = self.decided_by_rounding(values, number), list(pairs)
            for i in integers:
                own = array_of(pairs[i][0])
                scores = [*self.scores_of_arguments(values, i), *self.scores_of_outputs(pairs, drawn, i)]
                others = [array_of(results[i][1]).astype("f8") for results in drawn]
                found[i] = settled(own, seen[i].reshape(own.shape), scores, others), *map(array_of, pairs[i][1:])
            if all((found[i][0].reshape(-1) == seen[i].reshape(-1)).all() for i in integers):
                break
        return found

    def scores_of_arguments(self, values: list[Array], output: int) -> list[Scores]:
        """What that output may be places in: (array, margin, evidence) of each argument."""
        def found_with(argument: int, scores: numpy.ndarray) -> numpy.ndarray | None:
            replaced = [in_place_of(value, scores) if i == argument else value for i, value in enumerate(values)]
            exact = self.precision == "float64"
            given = [widened(value) if exact else value for value in placed(replaced, self.device)]
            try:
                results = self.run(self.wide if exact else self.native, given)
                return array_of(results[output][1]).astype("f8") if self.has_shapes(results) else None
            except Exception:  # noqa: BLE001, whatever it is, the reference does not take these
                return None

        return [(array_of(value), 0.0, MovedArgument(functools.partial(found_with, i)))
                for i, value in enumerate(values)]

    @staticmethod
    def scores_of_outputs(pairs: list[Bounded], drawn: list[Results], output: int) -> Iterator[Scores]:
        """The same of each other output; `drawn`: what decided_by_rounding() gave."""
        moved = drawn[1:] or drawn
        for i, (value, tolerance, _) in enumerate(pairs):
            if i != output:
                runs = [(array_of(results[output][1]).astype("f8"), array_of(doubles(results[i][1])))
                        for results in moved]
                yield array_of(value), array_of(tolerance), OutputStandsOut(runs)

    def decided_by_rounding(self, values: list[Array], draws: int) -> list[Results]:
        """What the reference finds in its own dtype, and with arguments that differ by as much as they are rounded on
        their way, in float64 where it takes that: results of the expected shapes alone."""
        import numpy

        given, wide = placed(values, self.device), self.precision == "float64"
        results = [self.run(self.native, given)]
        units = [unit_roundoff(tensor["dtype"]) for tensor in self.signature.tensors]
        generator = numpy.random.default_rng(20230717)
        for _ in range(draws):
            results.append(self.run(self.wide if wide else self.native,
                                    [rounded(value, FACTOR * unit, generator, wide) if is_inexact(value) else value
                                     for value, unit in zip(given, units)]))
        return [one for one in results if self.has_shapes(one)]

    def bound(self, name: str, value: Array, output: dict[str, Any], exact: bool, declared: tuple[float, float] | None,
              **measured: Any) -> Bounded:
        if bool((value != value).any()):
            raise BadCases(f"case '{self.name}': the reference computes NaN in '{name}'; nothing can be compared with "
                           "that")
        dtype = output["dtype"]
        if unit_roundoff(dtype) == 0:
            if not dtype.startswith(("int", "uint", "bool")):
                raise BadCases(f"an output of {dtype}; floats, integers, bool and complex numbers are compared")
            if math.prod(value.shape) and float(abs(value).max()) >= 2.0 ** 53:
                raise BadCases("the reference's integers reach 2^53, from where they are not told apart")
            tolerance = whole_bound(value, *(declared if declared and dtype != "bool" else (0.0, 0.0)))
            return value, tolerance, tolerance
        given = max([unit_roundoff(dtype)] + [unit_roundoff(tensor["dtype"]) for tensor in self.signature.tensors])
        return bound(value, dtype, given=given, terms=self.terms, exact=exact, declared=declared, **measured)

    # --- the wire

    def domain(self) -> dict[str, Any]:
        outputs = []
        for each in self.outputs:
            parts = [*each["shape"], 2] if each["dtype"].startswith("complex") else each["shape"]  # real, imaginary
            wire = FLOATS.get(each["dtype"], "fp32" if each["dtype"] == "complex64" else "fp64")
            shape = parts if 0 < len(parts) <= 4 else [math.prod(parts)]
            outputs.append({"name": each["name"], "dtype": wire, "shape": shape})
        inputs = [wire_tensor(each["name"], item, math.prod(each["shape"]))
                  for each, item in zip(self.signature.tensors, (item_bytes(value) for value in self.arguments(1)[1]))]
        files = sorted({*own_files(), *read_files()})
        return {"files": files, "patched": replaced_names(files), "problem": self.problem, "inputs": inputs,
                "outputs": outputs, "signature": self.signature.text(),
                "ties": any(is_integer(each["dtype"]) for each in self.outputs), "results": json.dumps(self.outputs),
                "pass": "backward" if self.signature.late else "forward", "reference_in": self.precision,
                "terms": self.terms, "terms_declared": self.number("terms") is not None, "summable": self.summable(),
                "bound": "declared" if self.declared() else "derived" if self.keeps_shapes else "rounding",
                **{key: 0.0 if self.signature.late else self.number(key) or 0.0 for key in ("flops", "bytes")}}

    def views(self, memory: Memory, size: int, tensors: list[dict[str, Any]]) -> list[Array]:
        return [raw_view(memory, size, wire["offset"], tensor) for wire, tensor in zip(tensors, self.signature.tensors)]

    def call(self, message: Message, memory: Memory) -> Message:
        size = message["memory_bytes"]
        if message["function"] == "make":
            _, values = self.arguments(int(message["options"]["seed"]))
            for view, value in zip(self.views(memory, size, message["outputs"]), values):
                view.copy_(value) if is_torch(view) else view.__setitem__(..., value)
        elif message["function"] in ("expect", "expect_ties"):
            probes = int(message["options"].get("probes", PROBES))
            values = self.views(memory, size, message["inputs"])
            if message["function"] == "expect":
                pairs = self.expect(values, probes)
            else:
                seen = message["inputs"][len(self.signature.tensors):]
                pairs = self.expect_ties(values, [read_doubles(memory.bytes(size), wire) for wire in seen], probes)
            parts = [part for told in pairs for part in told]
            for wire, part in zip(message["outputs"], parts):
                write_doubles(part, memory.bytes(size), wire["offset"])
            if self.device != "cpu":
                sys.modules["torch"].cuda.empty_cache()  # the GPU's memory is for what is judged
        elif message["function"] == "shapes":  # whether what has other shapes is wrong
            self.demand_shapes(self.run(self.native, placed(self.views(memory, size, message["inputs"]), self.device)))
        else:
            raise ValueError(f"a reference makes and expects; it does not '{message['function']}'")
        return {"type": "returned", "elapsed_ns": 0}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reference", required=True, type=parse_place, metavar="FILE.py:NAME")
    parser.add_argument("--inputs", required=True, type=parse_place, metavar="FILE.py:NAME")
    parser.add_argument("--list", type=int, metavar="FD")
    parser.add_argument("--backward", action="store_true")
    parser.add_argument("--device", default="cpu", help="where the reference computes if it can")
    given = parser.parse_args()
    lift_memory_limit()
    watch_reads()
    if given.list is not None:
        descriptor = os.dup(given.list)
        os.dup2(2, 1)  # what the files print is no answer
        list_cases(given.reference, given.inputs, given.backward, descriptor)
        return 0

    pipe, memory, about = Pipe(), None, ""
    served: Any = None
    while (message := pipe.read()) is not None and message["type"] != "bye":
        try:
            if message["type"] == "hello":
                memory = Memory(message.get("memory_fd", -1))
                before, served, about = served, None, message.get("about", "")
                is_it = before is not None and before.name == about
                if is_it and before.problem == problem_of(given.reference, given.inputs):
                    served = before  # of another launch of the same case
                else:
                    served = Reference(given.reference, given.inputs, about, given.device)
                pipe.write({"type": "hello", "protocol": PROTOCOL, "name": "reference", "language": "Python",
                            "serves": ["call"], "domain": served.domain()})
            else:
                pipe.write(served.call(message, memory))
        except BaseException as error:  # noqa: BLE001, as above
            pipe.write(of_case(error, about, given.reference[0]))
            if served is None:
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
