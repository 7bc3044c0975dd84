"""A norm and a layer of torch with their gradients by autograd, right and wrong."""
import torch


def reference(x, weight):
    return torch.nn.functional.layer_norm(x, x.shape[-1:], weight)


def cases():
    for n in (24, 40):
        def arguments(seed, n=n):
            generator = torch.Generator().manual_seed(seed)
            return {"x": torch.randn(6, n, generator=generator), "weight": torch.randn(n, generator=generator)}

        yield {"axes": {"n": n}, "arguments": arguments}


def cases_with_gradients():
    return [{**case, "backward": True} for case in cases()]


class ByHand(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        y = x - x.mean(-1, keepdim=True)
        inverse = torch.rsqrt((y * y).mean(-1, keepdim=True) + 1e-5)
        y = y * inverse
        ctx.save_for_backward(y, inverse, weight)
        return y * weight

    @staticmethod
    def backward(ctx, gradient):
        y, inverse, weight = ctx.saved_tensors
        inner = gradient * weight
        inner = (inner - inner.mean(-1, keepdim=True) - y * (inner * y).mean(-1, keepdim=True)) * inverse
        return inner, (gradient * y).sum(0)


class Forgets(ByHand):
    @staticmethod
    def backward(ctx, gradient):
        y, inverse, weight = ctx.saved_tensors
        return gradient * weight * inverse, (gradient * y).sum(0)


class ReadsByItsOwnStrides(ByHand):
    """As a kernel does that takes the gradient's address and the output's strides."""

    @staticmethod
    def backward(ctx, gradient):
        y = ctx.saved_tensors[0]
        if gradient.storage().size() >= gradient.storage_offset() + y.numel():
            gradient = gradient.as_strided(y.shape, y.stride())
        return ByHand.backward(ctx, gradient)


class RefusesOtherStrides(ByHand):
    @staticmethod
    def backward(ctx, gradient):
        if not gradient.is_contiguous():
            raise ValueError("the gradient must be contiguous")
        return ByHand.backward(ctx, gradient)


class TurnsTheGradient(ByHand):
    """What came in is the caller's."""

    @staticmethod
    def backward(ctx, gradient):
        found = ByHand.backward(ctx, gradient)
        gradient.t_()
        return found


def locks_the_weight(x, weight):
    y = ByHand.apply(x, weight)
    weight.requires_grad_(False)
    return y


def detached(x, weight):
    return reference(x.detach(), weight.detach())


def fails_backward(x, weight):
    return Raises.apply(reference(x, weight))


class Raises(torch.autograd.Function):
    @staticmethod
    def forward(ctx, y):
        return y.clone()

    @staticmethod
    def backward(ctx, gradient):
        if gradient.shape[-1] > 24:
            raise ValueError("no kernel for 40 columns")
        return gradient


class Layer(torch.nn.Module):
    """Its parameters' gradients are compared, too: the bias is in a sum over all rows."""

    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(24, 8)

    def forward(self, x):
        return torch.relu(self.inner(x))


class SameLayer(Layer):
    def forward(self, x):
        return (x @ self.inner.weight.T + self.inner.bias).clamp(min=0)


class WrongBias(Layer):
    def forward(self, x):
        return (x @ self.inner.weight.T + self.inner.bias.detach()).clamp(min=0)


def inputs_of_layer():
    def arguments(seed):
        return [torch.randn(50, 24, generator=torch.Generator().manual_seed(seed))]

    yield {"name": "layer", "arguments": arguments, "backward": True}


def added(x, weight):
    return x + weight, x.argmax(-1)
