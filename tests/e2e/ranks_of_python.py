"""Ranks of syslab_ranks.py that never end, die or cannot begin, without syslab and with less patience. Needs torch; skipped without."""
import gc
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import weakref
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "src" / "python"))
try:
    import torch
    import syslab_collectives
    import syslab_ranks
except ImportError:
    torch = None

CLASSES = """
import os
import torch


class Container(torch.nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, batch):
        return self.module(batch)


class Good(Container):
    def finish_gradient_synchronization(self):
        torch.distributed.barrier()


class NeverEnds(Container):
    def finish_gradient_synchronization(self):
        while torch.distributed.get_rank() == 1:
            pass
        torch.distributed.barrier()


class Dies(Container):
    def finish_gradient_synchronization(self):
        if torch.distributed.get_rank() == 1:
            os._exit(3)
        torch.distributed.barrier()


class Raises(Container):
    def finish_gradient_synchronization(self):
        if torch.distributed.get_rank() == 1:
            raise ValueError("no bucket 7")
        torch.distributed.barrier()
"""
CASE = {"way": "data_parallel", "ranks": 2, "parameters": [{"name": "layers.0.weight", "shape": [2], "dtype": "fp32", "trains": True}],
        "buffers": [], "ties": [], "uses": [[0]], "steps": 1, "backwards": 1, "set_to_none": [True], "late": False, "curve": 1.0,
        "rate": 0.25, "resume_at": -1}
TENSORS = {"inputs": {"start": [2, 2], "batch": [1, 1, 2, 4]},
           "outputs": {"state": [2, 2], "gradients": [2, 1, 2], "weights": [2, 1, 2], "events": [2, 1025, 17], "held": [2, 1]}}


def strides(shape):
    return [int(torch.Size(shape[i + 1:]).numel()) for i in range(len(shape))]


@unittest.skipIf(torch is None, "no torch")
class Ranks(unittest.TestCase):
    def setUp(self):
        self.memory = os.memfd_create("ranks")
        self.addCleanup(os.close, self.memory)
        os.ftruncate(self.memory, 1 << 20)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name) / "classes.py"
        self.path.write_text(CLASSES)
        self.message, offset = {"memory_bytes": 1 << 20, "options": {"case": json.dumps(CASE)}}, 0
        for side, tensors in TENSORS.items():
            self.message[side] = []
            for name, shape in tensors.items():
                self.message[side].append({"name": name, "dtype": "fp32", "shape": shape, "strides": strides(shape), "offset": offset})
                offset += 4 * torch.Size(shape).numel()

    def gang(self, name):
        gang = syslab_ranks.Gang(2, (str(self.path), name), self.memory, 0, ())
        self.addCleanup(gang.end)
        return gang

    def test_ranks_that_end_well_are_kept(self):
        gang = self.gang("Good")
        for _ in range(3):
            self.assertEqual(gang.call(self.message), {"type": "returned", "elapsed_ns": 0})

    def test_the_rank_that_never_ends_is_named_and_not_the_one_that_waits_for_it(self):
        before = syslab_ranks.PATIENCE_S
        self.addCleanup(setattr, syslab_ranks, "PATIENCE_S", before)
        for patience in (2, 8, 30):
            gang, syslab_ranks.PATIENCE_S = self.gang("NeverEnds"), patience
            answer = gang.call(self.message)
            if "it is in the constructor" not in answer["message"]:  # where a busy machine can be for some seconds
                break
        self.assertEqual(answer["message"], f"rank 1 has not ended after {patience} s: it is in step 0")
        self.assertEqual(answer["finding"], "hang")
        self.assertFalse(gang.usable)

    def test_a_rank_that_dies_is_named(self):
        gang = self.gang("Dies")
        answer = gang.call(self.message)
        self.assertEqual((answer["kind"], answer["message"]), ("exception", "rank 1: its process ended in step 0"))
        self.assertEqual(answer["finding"], "crash")
        self.assertFalse(gang.usable)

    def test_what_a_rank_raises_comes_before_what_others_wait_for_and_the_ranks_go_on(self):
        gang = self.gang("Raises")
        for _ in range(2):
            self.assertIn("rank 1: ValueError: no bucket 7 (classes.py:", gang.call(self.message)["message"])
            self.assertTrue(gang.usable)

    def test_a_class_that_is_not_there_is_told_once(self):
        self.assertIn("classes.py has no class 'Nowhere'", self.gang("Nowhere").call(self.message)["message"])

    def test_ranks_that_are_asked_onto_gpus_say_that_there_is_none(self):
        if torch.cuda.is_available():
            self.skipTest("a GPU")
        gang = syslab_ranks.Gang(2, (str(self.path), "Good"), self.memory, 0, (), "cuda")
        self.addCleanup(gang.end)
        answer = gang.call(self.message)
        self.assertEqual((answer["kind"], answer["message"]), ("unsupported", f"torch {torch.__version__} sees no GPU"))


@unittest.skipIf(torch is None, "no torch")
class Timed(unittest.TestCase):
    def test_between_steps_nothing_is_kept_that_autograd_has_kept(self):
        import syslab_timing

        kept = []

        class Keeps(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.all = x * 1  # beside save_for_backward(): gone with the graph alone
                kept.append(weakref.ref(ctx.all))
                return x * 2

            @staticmethod
            def backward(ctx, gradient):
                return gradient * 2

        class Container(torch.nn.Module):
            def __init__(self, module):
                super().__init__()
                self.module = module

            def forward(self, x):
                return Keeps.apply(self.module(x))

        case = {"way": "data_parallel", "ranks": 1, "communicates": False, "rows": 1, "threads": 1, "seed": 1, "adamw": {"lr": 1e-3},
                "sizes": {"vocab": 16, "context": 4, "d_model": 8, "d_ff": 16, "layers": 1, "heads": 2}}
        mine = mock.Mock(container=Container)
        cpu = torch.device("cpu")
        training = syslab_timing.Training(case, mine, 0, syslab_collectives.Board(1), cpu, syslab_timing.Followed(syslab_timing.Marks(cpu)))
        training.refresh(1)
        training.step()
        self.assertEqual([one() for one in kept], [None])
        self.weights_are_those_behind_the_answer(training)
        told = torch.zeros(len(syslab_timing.FIELDS), dtype=torch.float64)
        training.tell(told)
        self.assertGreater(told[syslab_timing.FIELDS.index("loss")], 0)

    def test_collectives_are_followed_by_whatever_name_they_are_called(self):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([sys.executable, "-W", "ignore", "-c", FOLLOWS, folder + "/store"], capture_output=True, text=True,
                                  env={**os.environ, "PYTHONPATH": os.path.dirname(syslab_collectives.__file__)})
        self.assertEqual(done.returncode, 0, done.stderr)
        found = json.loads(done.stdout)
        self.assertEqual({name: (spans, is_seen) for name, (spans, _, is_seen) in found.items()}, dict.fromkeys(found, (1, True)))
        self.assertEqual([name for name, (_, messages, _) in found.items() if messages],
                         ["all_reduce", "all_reduce_coalesced", "coalesced, async", "the group's"])

    def weights_are_those_behind_the_answer(self, training):
        rank = syslab_ranks.TimedRank.__new__(syslab_ranks.TimedRank)
        rank.rank, rank.path, rank.training, rank.tensors, rank.lost = 0, "", training, mock.Mock(), None
        after = torch.zeros(1, 3)
        rank.tensors.view = lambda tensor, size: {"after": after, "told": torch.zeros(1, 12, dtype=torch.float64)}[tensor["name"]]
        message = {"memory_bytes": 0, "inputs": [], "outputs": [], "options": {"first": 1, "stride": 2, "count": 3}}
        self.assertEqual(rank.answer({**message, "function": "step"})["type"], "returned")
        first = training.parameters[0].detach().reshape(-1)
        left = first[1:7:2].clone()
        rank.behind()
        with torch.no_grad():
            training.parameters[0].add_(1)  # too late
        answer = rank.answer({**message, "function": "told", "options": {}, "outputs": [{"name": "after"}, {"name": "told"}]})
        self.assertEqual(answer["type"], "returned", answer)
        self.assertEqual(after.tolist(), [left.tolist()])
        rank.asked = {"first": 0, "stride": 1, "count": 1 << 20}  # more than there are
        rank.behind()
        self.assertIn("elements were found where", rank.answer({**message, "function": "told"})["message"])


FOLLOWS = """
import json, sys, torch
import torch.distributed as dist
import syslab_timing

dist.init_process_group("gloo", store=dist.FileStore(sys.argv[1], 1), rank=0, world_size=1)
followed = syslab_timing.Followed(syslab_timing.Marks(torch.device("cpu")))
followed.install()
t, group = torch.ones(4), dist.group.WORLD
calls = {"all_reduce": lambda: dist.all_reduce(t), "all_reduce_coalesced": lambda: dist.all_reduce_coalesced([t, t.clone()]),
         "coalesced, async": lambda: dist.all_reduce_coalesced([t], async_op=True).wait(),
         "all_gather_coalesced": lambda: dist.all_gather_coalesced([[t.clone()]], [t]), "gather": lambda: dist.gather(t, [t.clone()]),
         "scatter": lambda: dist.scatter(t, [t.clone()]), "barrier": lambda: dist.barrier(),
         "the group's": lambda: group.allreduce([t]).wait(), "the group's barrier": lambda: group.barrier().wait()}
found = {}
for name, call in calls.items():
    followed.begin()
    followed.on = True
    begin = followed.marks.mark()
    call()
    followed.on = False
    found[name] = [len(followed.spans), followed.messages, followed.busy(begin, 1.0)[0] > 0]
print(json.dumps(found))
"""


LEAF_ON_A_GPU = """
import sys
import torch
import syslab_collectives

if not torch.cuda.is_available():
    sys.exit(print("no GPU"))
made = syslab_collectives.Collectives(syslab_collectives.Board(1), 0, "gloo")
leaf = torch.ones(2, device="cuda", requires_grad=True)
made.broadcast(leaf.data, 0)
try:
    made.broadcast(leaf, 0)
except RuntimeError as error:
    print(error)
"""


# What a collective's work and its future hand out, by torch's own Gloo or by the collectives that take its place, on two ranks.
WORKS = """
import datetime, json, os, sys, torch
import torch.distributed as dist
import syslab_collectives

own, folder = sys.argv[1] == "own", sys.argv[2]
board = syslab_collectives.Board(2)
children = []
for rank in range(2):
    children.append(os.fork())
    if children[-1] == 0:
        break
else:
    sys.exit(max(os.waitpid(child, 0)[1] != 0 for child in children))
if own:
    syslab_collectives.join_group(board, rank, folder + "/store").begin(late=False)
else:
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    dist.init_process_group("gloo", store=dist.FileStore(folder + "/store", 2), rank=rank, world_size=2, timeout=datetime.timedelta(seconds=60))


def told(value, given):
    if torch.is_tensor(value):  # its numbers, and which of the caller's tensors it is
        return [value.tolist(), [i for i, one in enumerate(given) if one.data_ptr() == value.data_ptr()]]
    return [told(one, given) for one in value] if isinstance(value, (list, tuple)) else repr(value)


def ones(*shape):
    return torch.full(shape, 1.0 + rank)


def coalesced(inputs):
    return [[torch.zeros_like(one) for one in inputs] for _ in range(2)]


group, options = dist.group.WORLD, dist.AllreduceOptions()
options.reduceOp = dist.ReduceOp.MAX
CALLS = {
    "all_reduce": lambda t: dist.all_reduce(t[0], async_op=True),
    "broadcast": lambda t: dist.broadcast(t[0], 1, async_op=True),
    "reduce": lambda t: dist.reduce(t[0], 1, async_op=True),
    "all_gather": lambda t: dist.all_gather(t[1:], t[0], async_op=True),
    "barrier": lambda t: dist.barrier(async_op=True),
    "reduce_scatter": lambda t: dist.reduce_scatter(t[0], t[1:], async_op=True),
    "all_gather_into_tensor": lambda t: dist.all_gather_into_tensor(t[3], t[0], async_op=True),
    "reduce_scatter_tensor": lambda t: dist.reduce_scatter_tensor(t[0], t[3], async_op=True),
    "allreduce of the group": lambda t: group.allreduce([t[0]]),
    "allreduce of one tensor": lambda t: group.allreduce(t[0]),
    "allreduce by an operation": lambda t: group.allreduce(t[0], dist.ReduceOp.MAX),
    "allreduce by options": lambda t: group.allreduce([t[0]], options),
    "allreduce_coalesced": lambda t: group.allreduce_coalesced(t[:2]),
    "broadcast of the group": lambda t: group.broadcast(t[0], 1),
    "reduce of the group": lambda t: group.reduce(t[0], 1),
    "allgather": lambda t: group.allgather([t[1:3]], [t[0]]),
    "allgather of one tensor": lambda t: group.allgather(t[1:3], t[0]),
    "barrier of the group": lambda t: group.barrier(),
}
WAYS = {
    "wait": lambda work: work.wait(),
    "result": lambda work: (work.wait(), work.result())[1],
    "value": lambda work: (work.wait(), work.get_future().value())[1],
    "wait of the future": lambda work: work.get_future().wait(),
    "then": lambda work: work.get_future().then(lambda future: future.value()).wait(),
}
FUTURES = {  # functions that return a future, not a work
    "all_reduce_coalesced": lambda t: dist.all_reduce_coalesced(t[:2], async_op=True),
    "all_gather_coalesced": lambda t: dist.all_gather_coalesced([t[1:3], t[4:6]], [t[0], t[0]], async_op=True),
}
found = {}
for name, call, ways in [*((name, call, WAYS) for name, call in CALLS.items()),
                         *((name, call, {"wait": WAYS["wait"]}) for name, call in FUTURES.items())]:
    for way, look in ways.items():
        count = 3 if name in ("all_gather", "reduce_scatter") else 6
        given = [ones(6) if i == 3 else ones(3) + i for i in range(count)]
        try:
            handed_out = look(call(given))
            if name in ("reduce", "reduce of the group") and rank != 1:
                given[0].zero_()  # Gloo leaves partial sums in it
            found[f"{name}, {way}"] = told(handed_out, given)
        except RuntimeError as error:
            found[f"{name}, {way}"] = "unsupported" if "support" in str(error) else f"{type(error).__name__}: {error}"
try:
    dist.all_reduce_coalesced([ones(1), ones(1).double()])
except RuntimeError as error:
    found["two dtypes"] = str(error)[:45]
with open(f"{folder}/{rank}.json", "w") as told_to:
    json.dump(found, told_to)
os._exit(0)
"""


@unittest.skipIf(torch is None, "no torch")
class AsGlooDoes(unittest.TestCase):
    def found(self, whose):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([sys.executable, "-W", "ignore", "-c", WORKS, whose, folder], capture_output=True, text=True, timeout=120,
                                  env={**os.environ, "PYTHONPATH": os.path.dirname(syslab_collectives.__file__)})
            self.assertEqual(done.returncode, 0, done.stderr)
            return [json.loads(pathlib.Path(folder, f"{rank}.json").read_text()) for rank in range(2)]

    def test_works_and_futures_hand_out_what_those_of_gloo_do(self):
        for rank, (real, own) in enumerate(zip(self.found("torch"), self.found("own"))):
            compared = {name: value for name, value in real.items() if value != "unsupported"}
            self.assertEqual({name: own[name] for name in compared}, compared, f"rank {rank}")
            self.assertGreaterEqual(len(compared), 70)
            self.assertEqual(own["reduce_scatter_tensor, value"][0][1], [0])  # of which not every Gloo has one

    def test_a_late_result_is_not_there_before_it_was_waited_for(self):
        made = syslab_collectives.Collectives(syslab_collectives.Board(1), 0)
        made.begin(late=True)
        tensor = torch.ones(2)
        work = made.all_reduce(tensor, async_op=True)
        with self.assertRaisesRegex(RuntimeError, "Should call wait"):
            work.result()
        work.wait()
        self.assertIs(work.result()[0], tensor)

    def late(self):
        made = syslab_collectives.Collectives(syslab_collectives.Board(1), 0)
        made.begin(late=True)
        return made

    def test_whoever_asks_once_whether_a_late_result_is_there_has_not_waited(self):
        work = self.late().all_reduce(torch.ones(2), async_op=True)
        work.synchronize()  # of Gloo it waits for nothing
        self.assertFalse(work.is_completed())
        self.assertFalse(work.event["waited"])
        while not work.is_completed():
            pass
        self.assertTrue(work.event["waited"])

    def test_who_writes_to_what_is_on_its_way_is_told(self):
        made, sent = self.late(), torch.tensor([1.0, float("nan")])
        calls = {"all_reduce": lambda: made.all_reduce(sent, async_op=True),
                 "broadcast": lambda: made.broadcast(sent, group_src=0, async_op=True),
                 "all_gather": lambda: made.all_gather([torch.zeros(2)], sent, async_op=True),
                 "reduce_scatter": lambda: made.reduce_scatter(torch.zeros(2), [sent], async_op=True),
                 "all_reduce of": lambda: made.all_reduce_together([torch.ones(1), sent])}
        for name, call in calls.items():
            with self.subTest(name):
                call().wait()
                work = call()
                sent[0] += 1
                with self.assertRaisesRegex(Exception, rf"the input of {name} .* elements in the constructor, begun at ranks_of_python\.py:\d+, "
                                                       "was written to before it was waited for"):
                    work.wait()
        freed = torch.ones(2)
        work = made.all_gather([torch.zeros(2)], freed, async_op=True)
        freed._storage().resize_(0)
        work.wait()

    def test_what_is_not_followed_is_unsupported_and_what_gloo_reduces_by_is_not(self):
        made, by = self.late(), torch.distributed.ReduceOp
        bits = [torch.tensor([1, 0, 1], dtype=torch.uint8), torch.tensor([0, 0, 1], dtype=torch.uint8)]
        self.assertEqual([made.reduced(bits, op).tolist() for op in (by.BOR, by.BAND, by.BXOR, by.PRODUCT)],
                         [[1, 0, 1], [0, 0, 1], [1, 0, 0], [0, 0, 1]])
        with self.assertRaisesRegex(RuntimeError, "Gloo cannot reduce by BOR"):
            made.reduced([torch.ones(1)], by.BOR)
        unsupported = syslab_collectives.Unsupported
        with self.assertRaisesRegex(unsupported, "syslab's ranks move at most"):
            made.all_reduce(torch.zeros(1 << 20))
        with mock.patch("torch.distributed.get_world_size", lambda group: -1), self.assertRaisesRegex(unsupported, "a group of 0 of the 1 ranks"):
            made.all_reduce(torch.zeros(1), group=object())
        with self.assertRaisesRegex(unsupported, r"the method source_rank\(\) of a collective's work"):
            made.all_reduce(torch.zeros(1), async_op=True).source_rank()
        with self.assertRaises(AttributeError):
            made.all_reduce(torch.zeros(1), async_op=True).nothing()


@unittest.skipIf(torch is None, "no torch")
class Memories(unittest.TestCase):
    def test_what_is_frozen_or_in_another_layout_is_looked_at(self):
        import syslab_held

        numbers = torch.arange(1.0, 65.0) * (torch.arange(64) % 3 > 0)
        ways = {"frozen": lambda: numbers.clone(), "sparse": numbers.to_sparse, "mkldnn": numbers.to_mkldnn,
                "sparse rows": lambda: numbers.reshape(8, 8).to_sparse_csr(),
                "quantized": lambda: torch.quantize_per_tensor(numbers, 0.5, 0, torch.qint32)}
        lent = [numbers]
        self.assertFalse(any(syslab_held.has(memory, syslab_held.bytes_of(numbers), 4) for _, memory in syslab_held.memories(lent)))
        for name, make in ways.items():
            with self.subTest(name):
                kept = make()
                if name == "frozen":
                    gc.freeze()
                self.assertTrue(any(syslab_held.has(memory, syslab_held.bytes_of(numbers), 4) for _, memory in syslab_held.memories(lent)))
                del kept
                gc.collect()


@unittest.skipIf(torch is None, "no torch")
class AsNcclDoes(unittest.TestCase):
    def collectives(self, backend):
        return syslab_collectives.Collectives(syslab_collectives.Board(1), 0, backend)

    def averaged(self, backend, gloo=None):
        made = self.collectives(backend)
        made.board.ranks, made.gloo = 2, gloo or made.gloo
        return made.reduced([torch.tensor([2.0, 4.0]), torch.tensor([6.0, 0.0])], torch.distributed.ReduceOp.AVG).tolist()

    def test_nccl_averages(self):
        self.assertEqual(self.averaged("nccl"), [4.0, 2.0])

    def test_gloo_averages_where_that_of_torch_does(self):
        self.assertEqual(self.averaged("gloo", mock.Mock(averages=True)), [4.0, 2.0])
        with self.assertRaisesRegex(RuntimeError, "Gloo cannot reduce by .*AVG.* here: sum, and divide"):
            self.averaged("gloo", mock.Mock(averages=False))

    def test_whether_gloo_averages_is_asked_of_torch(self):
        version = tuple(int(part) for part in torch.__version__.split(".")[:2])
        self.assertEqual(syslab_collectives.Gloo().averages, version >= (2, 8))

    def test_a_leaf_that_requires_grad_is_refused_where_gloo_refuses_it(self):
        class Refuses(syslab_collectives.Gloo):
            group = mock.Mock(**{"broadcast.side_effect": RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")})

        made, leaf = self.collectives("gloo"), torch.ones(2, requires_grad=True)
        calls = (lambda: made.broadcast(leaf, 0), lambda: made.all_reduce(leaf), lambda: made.reduce(leaf, 0))
        for call in calls:  # in the CPU's memory Gloo writes to it
            call()
        made.gloo = Refuses()
        for call in calls:
            with self.assertRaisesRegex(RuntimeError, "a leaf Variable that requires grad"):
                call()
        made.broadcast(leaf.data, 0)
        made.backend = "nccl"
        made.barrier()
        made.demand_writable(leaf)

    def test_a_leaf_on_a_gpu_is_refused_by_gloo(self):
        # In a process of its own: other tests fork this one, which a look at CUDA would spoil.
        done = subprocess.run([sys.executable, "-c", LEAF_ON_A_GPU], capture_output=True, text=True,
                              env={**os.environ, "PYTHONPATH": os.path.dirname(syslab_collectives.__file__)})
        if done.stdout == "no GPU\n":
            self.skipTest("no GPU")
        self.assertEqual((done.stdout, done.returncode), ("a leaf Variable that requires grad is being used in an in-place operation.\n", 0), done.stderr)

    def test_nccl_moves_nothing_that_lies_on_the_cpu(self):
        with self.assertRaisesRegex(ValueError, "all_reduce of a tensor on the CPU: NCCL moves what lies on GPUs"):
            self.collectives("nccl").all_reduce(torch.ones(2))
        self.collectives("nccl").barrier()
        self.collectives("gloo").all_reduce(torch.ones(2))


if __name__ == "__main__":
    unittest.main()
