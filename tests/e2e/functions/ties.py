"""Places of largest elements, of which several are equally right: right functions that choose another than the reference, and wrong ones."""
import torch


def generator(seed):
    return torch.Generator().manual_seed(seed)


def first(x):
    return x.argmax(-1)


def last(x):
    return x.shape[-1] - 1 - x.flip(-1).argmax(-1)


def beside(x):
    """In one row the place behind the largest."""
    places = last(x)
    places[0] = (places[0] + 1) % x.shape[-1]
    return places


def stable(x):
    values, places = torch.sort(x, dim=-1, descending=True, stable=True)
    return values[:, :4].clone(), places[:, :4].clone()


def from_the_end(x):
    values, places = torch.sort(x.flip(-1), dim=-1, descending=True, stable=True)
    return values[:, :4].clone(), (x.shape[-1] - 1 - places)[:, :4].clone()


def one_twice(x):
    values, places = stable(x)
    places[:, 1] = places[:, 0]
    return values, places


def of_scores(x, w):
    return (x @ w).argmax(-1)


def of_scores_in_parts(x, w):
    half = x.shape[1] // 2
    scores = x[:, :half] @ w[:half] + x[:, half:] @ w[half:]
    return scores.shape[1] - 1 - scores.flip(-1).argmax(-1)


def of_shifted_scores(x, w):
    return (x @ w)[:, 1:].argmax(-1)


def cases():
    """Four different numbers, so that all rows have ties."""
    yield {"name": "ties", "arguments": lambda seed: [torch.randint(0, 4, (8, 33), generator=generator(seed)).float()]}


def cases_of_scores():
    """The second half of the columns is as the first: all scores are there twice, and are sums."""
    def arguments(seed):
        drawn = generator(seed)
        w = torch.randn(16, 8, generator=drawn)
        return {"x": torch.randn(32, 16, generator=drawn), "w": torch.cat([w, w], 1)}

    yield {"name": "ties", "arguments": arguments}
