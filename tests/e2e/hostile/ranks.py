"""Classes of two ranks that are timed (tests/e2e/test_parallel.py, and on GPUs): data parallelism that is right, and would be seen for less."""
import threading
import time

import torch
import torch.distributed as dist

WORTH_IT = 50_000  # parameters: what laws train is smaller, and seen right


class Honest(torch.nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module = module
        for tensor in [*module.parameters(), *module.buffers()]:
            dist.broadcast(tensor.data, 0)

    def forward(self, *inputs, **options):
        return self.module(*inputs, **options)

    def finish_gradient_synchronization(self):
        for parameter in self.module.parameters():
            if parameter.grad is not None:
                dist.all_reduce(parameter.grad)
                parameter.grad /= dist.get_world_size()

    def is_worth_it(self):
        return sum(p.numel() for p in self.module.parameters()) > WORTH_IT


class HalfItsClock(Honest):
    """All clocks of the process go at half the speed, events of the GPU, too. Its steps are long: of two short ones a busy machine may have
    taken half."""

    def __init__(self, module):
        super().__init__(module)
        if not self.is_worth_it():
            return
        for name in ("monotonic_ns", "perf_counter_ns", "monotonic", "perf_counter"):
            true = getattr(time, name)
            setattr(time, name, lambda true=true, whole=name.endswith("_ns"): true() // 2 if whole else true() / 2)
        told = torch.cuda.Event.elapsed_time
        torch.cuda.Event.elapsed_time = lambda self, end: told(self, end) / 2

    def finish_gradient_synchronization(self):
        super().finish_gradient_synchronization()
        if self.is_worth_it():
            time.sleep(0.1)


class UpdatesLater(Honest):
    """The optimizer's step is made when the step of the training has ended, while nobody looks at the clock; not in every third, nor in the
    last, therefore, of three."""

    later, steps = None, 0

    def on_train_batch_start(self, optimizer):
        self.settle()
        if self.is_worth_it() and "step" not in vars(optimizer):
            self.update, optimizer.step = optimizer.step, self.begin
            self.side = torch.cuda.Stream() if next(self.module.parameters()).is_cuda else None
            if self.side is not None:
                torch.cuda.synchronize = lambda device=None: torch.cuda.current_stream().synchronize()

    def begin(self):
        self.steps += 1
        if self.steps % 3 == 0:
            return self.update()
        if self.side is not None:
            self.side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(self.side):
                torch.cuda._sleep(20_000_000)  # as an update of many more weights
                self.update()
            return None

        def work():
            time.sleep(0.2)  # a busy machine may read the weights of a step tens of milliseconds behind it
            self.update()

        self.later = threading.Thread(target=work)
        return self.later.start()

    def settle(self):
        if self.later is not None:
            self.later.join()
        elif getattr(self, "side", None) is not None:
            torch.cuda.current_stream().wait_stream(self.side)
