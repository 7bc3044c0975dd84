"""Ranks of syslab_ranks.py that never end, die or cannot begin, without syslab and with less patience. Needs torch; skipped without."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import weakref
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools" / "python"))
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
           "outputs": {"state": [2, 2], "gradients": [2, 1, 2], "weights": [2, 1, 2], "events": [2, 257, 17], "held": [2, 1]}}


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
