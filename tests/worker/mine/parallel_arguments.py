"""Containers and optimizers that drop keyword arguments."""
from parallel import Naive, Sharded
from parallel_variants import FlatFSDP


class DropsKeywords(Naive):
    def forward(self, *inputs, **options):
        return self.module(*inputs)


class TakesNoKeywords(Naive):
    def forward(self, *inputs):  # pylint: disable=arguments-differ
        return self.module(*inputs)


class FullyShardedDropsKeywords(FlatFSDP):
    def forward(self, *inputs, **options):
        return self.module(*inputs)


class DropsOptions(Sharded):
    """Hands only some options to the wrapped optimizer."""

    dropped = ""

    def __init__(self, params, optimizer_cls, **options):
        options.pop(self.dropped, None)
        super().__init__(params, optimizer_cls, **options)


class DropsNesterov(DropsOptions):
    dropped = "nesterov"


class DropsDampening(DropsOptions):
    dropped = "dampening"


class DropsMaximize(DropsOptions):
    dropped = "maximize"


class DropsAmsgrad(DropsOptions):
    dropped = "amsgrad"


class DropsBetas(DropsOptions):
    dropped = "betas"


class DropsEps(DropsOptions):
    dropped = "eps"
