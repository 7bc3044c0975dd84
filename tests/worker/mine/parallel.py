"""Data parallelism, a sharded optimizer and full sharding as students write them: seven that are right.
parallel_variants.py has more."""
import torch
import torch.distributed as dist


def after_gradient(parameter, function):
    """Calls function() once the parameter's gradient is final; what must be kept for that."""
    if hasattr(parameter, "register_post_accumulate_grad_hook"):
        return parameter.register_post_accumulate_grad_hook(lambda _: function())
    node = parameter.expand_as(parameter).grad_fn.next_functions[0][0]
    node.register_hook(lambda *_: function())
    return node


class Container(torch.nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module = module
        self.share()

    def share(self):
        for tensor in list(self.module.parameters()) + list(self.module.buffers()):
            dist.broadcast(tensor.data, 0)

    def forward(self, *inputs, **options):
        return self.module(*inputs, **options)

    def trained(self):
        return [p for p in self.module.parameters() if p.requires_grad]


class Naive(Container):
    def finish_gradient_synchronization(self):
        for p in self.trained():
            if p.grad is not None:
                dist.all_reduce(p.grad)
                p.grad /= dist.get_world_size()


class Flat(Container):
    def finish_gradient_synchronization(self):
        with_gradient = [p for p in self.trained() if p.grad is not None]
        for dtype in sorted({p.dtype for p in with_gradient}, key=str):
            grads = [p.grad for p in with_gradient if p.dtype == dtype]
            buffer = torch.cat([g.reshape(-1) for g in grads])
            dist.all_reduce(buffer)
            buffer /= dist.get_world_size()
            for grad, part in zip(grads, buffer.split([g.numel() for g in grads])):
                grad.copy_(part.view_as(grad))


class Individual(Container):
    def __init__(self, module):
        super().__init__(module)
        self.handles = []
        self.hooks = [after_gradient(p, lambda p=p: self.reduce(p)) for p in self.trained()]

    def reduce(self, p):
        self.handles.append((dist.all_reduce(p.grad, async_op=True), p))

    def finish_gradient_synchronization(self):
        for handle, p in self.handles:
            handle.wait()
            p.grad /= dist.get_world_size()
        self.handles.clear()


class DividesFirst(Individual):
    """Sums what each rank has multiplied by one over the number of ranks, and waits by polling."""

    def reduce(self, p):
        p.grad *= 1 / dist.get_world_size()
        super().reduce(p)

    def finish_gradient_synchronization(self):
        for handle, _ in self.handles:
            while not handle.is_completed():
                pass
        self.handles.clear()


class Bucketed(Container):
    def __init__(self, module, bucket_size_mb):
        super().__init__(module)
        self.buckets = self.packed(bucket_size_mb)
        self.bucket_of = {p: i for i, bucket in enumerate(self.buckets) for p in bucket}
        self.hooks = [after_gradient(p, lambda p=p: self.ready(p)) for p in self.trained()]
        self.begin()

    def begin(self):
        self.waiting = [len(bucket) for bucket in self.buckets]
        self.sent: dict = {}

    def packed(self, limit_mb):
        limit = float("inf") if limit_mb is None else limit_mb * 2**20
        buckets: list = []
        size = 0
        for p in reversed(self.trained()):
            count = p.numel() * p.element_size()
            if not buckets or size + count > limit or buckets[-1][0].dtype != p.dtype:
                buckets.append([])
                size = 0
            buckets[-1].append(p)
            size += count
        return buckets

    def ready(self, p):
        index = self.bucket_of[p]
        self.waiting[index] -= 1
        if self.waiting[index] == 0:
            self.send(index)

    def send(self, index):
        members = [p for p in self.buckets[index] if p.grad is not None]
        if members:
            buffer = torch.cat([p.grad.reshape(-1) for p in members])
            self.sent[index] = (dist.all_reduce(buffer, async_op=True), buffer, members)

    def finish_gradient_synchronization(self):
        for index in range(len(self.buckets)):
            if index not in self.sent:  # it has a member without a gradient in this step
                self.send(index)
        for handle, buffer, members in self.sent.values():
            handle.wait()
            buffer /= dist.get_world_size()
            for p, part in zip(members, buffer.split([p.numel() for p in members])):
                p.grad.copy_(part.view_as(p.grad))
        self.begin()


class Sharded(torch.optim.Optimizer):
    pairs: list = []  # of our groups and the inner optimizer's

    def __init__(self, params, optimizer_cls, **options):
        self.optimizer_cls, self.options, self.inner = optimizer_cls, options, None
        self.held = [0] * dist.get_world_size()
        self.owner = {}
        super().__init__(params, options)

    def add_param_group(self, group):
        super().add_param_group(group)
        added = self.param_groups[-1]
        own = []
        for p in added["params"]:
            if p not in self.owner:
                self.owner[p] = min(range(len(self.held)), key=self.held.__getitem__)
                self.held[self.owner[p]] += p.numel()
            if self.owner[p] == dist.get_rank():
                own.append(p)
        mine = dict({k: v for k, v in added.items() if k != "params"}, params=own)
        if not own:
            return
        if self.inner is None:
            self.inner = self.optimizer_cls([mine], **self.options)
        else:
            self.inner.add_param_group(mine)
        self.pairs = [*self.pairs, (added, self.inner.param_groups[-1])]

    def pass_on(self):
        for group, inner in self.pairs:
            inner.update((k, v) for k, v in group.items() if k != "params")

    def step(self, closure=None, **options):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        if self.inner is not None:
            self.pass_on()
            self.inner.step(**options)
        for p, owner in self.owner.items():
            dist.broadcast(p.data, owner)
        return loss


class FullySharded(torch.nn.Module):
    """Rows of linear layers' and embeddings' weights, padded to equal parts; whole only while a layer computes."""

    def __init__(self, module):
        super().__init__()
        self.module, self.ranks, self.rank = module, dist.get_world_size(), dist.get_rank()
        self.sharded: dict = {}
        self.handles: list = []
        self.hooks: list = []
        for p in module.parameters():
            dist.broadcast(p.data, 0)
        for layer in module.modules():
            if isinstance(layer, (torch.nn.Linear, torch.nn.Embedding)):
                if layer.weight not in self.sharded:  # two layers may have one weight
                    self.shard(layer.weight)
                layer.register_forward_pre_hook(lambda _, inputs, p=layer.weight: self.gather(p))
                layer.register_forward_hook(lambda _, inputs, out, p=layer.weight: self.after_forward(p, out))
        for p in module.parameters():
            if p not in self.sharded:
                self.hooks.append(after_gradient(p,
                                                 lambda p=p: self.handles.append(
                                                     (dist.all_reduce(p.grad, async_op=True), p, None))))

    def shard(self, p):
        rows = -(-p.shape[0] // self.ranks)
        self.sharded[p] = p.shape
        padded = p.data.new_zeros(rows * self.ranks, *p.shape[1:])
        padded[:p.shape[0]] = p.data
        self.hooks.append(after_gradient(p, lambda: self.scatter(p)))  # while it is whole: autograd notes its shape
        p.data = padded[self.rank * rows:(self.rank + 1) * rows].clone()
        p.part = p.data

    def gather(self, p):
        parts = [torch.empty_like(p.part) for _ in range(self.ranks)]
        dist.all_gather(parts, p.part)
        p.data = torch.cat(parts)[:self.sharded[p][0]].clone()

    def after_forward(self, p, out):
        p.data = p.part
        if out.requires_grad:
            out.register_hook(lambda grad: self.gather(p))

    def scatter(self, p):
        padded = p.grad.new_zeros(p.part.shape[0] * self.ranks, *p.part.shape[1:])
        padded[:p.grad.shape[0]] = p.grad
        mine = torch.empty_like(p.part)
        p.grad = None
        p.data = p.part
        self.handles.append((dist.reduce_scatter_tensor(mine, padded, async_op=True), p, mine))

    def forward(self, *inputs, **options):
        return self.module(*inputs, **options)

    def finish_gradient_synchronization(self):
        for handle, p, mine in self.handles:
            handle.wait()
            if mine is not None:
                p.grad = mine
            p.grad /= self.ranks
        self.handles.clear()

    def gather_full_params(self):
        whole = {}
        for name, p in self.module.named_parameters():
            if p in self.sharded:
                parts = [torch.empty_like(p.part) for _ in range(self.ranks)]
                dist.all_gather(parts, p.part)
                whole[name] = torch.cat(parts)[:self.sharded[p][0]]
            else:
                whole[name] = p.data
        return whole
