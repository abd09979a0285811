"""Actor, critic, and the normalisation of what they see."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import torch
from torch import nn

__all__ = ["Actor", "Normalizer", "network"]


def _layers(sizes: tuple[int, ...], generator: torch.Generator) -> list[nn.Module]:
    """Return linear layers with normalisation and ELU between them; weights are orthogonal."""
    made: list[nn.Module] = []
    for k, (inputs, outputs) in enumerate(pairwise(sizes)):
        last = k == len(sizes) - 2
        layer = nn.Linear(inputs, outputs, dtype=torch.float64)
        # nn.init has no generator in older versions of PyTorch: the factor Q of a random matrix is orthogonal.
        square = torch.randn(max(inputs, outputs), min(inputs, outputs), generator=generator, dtype=torch.float64)
        factor = torch.linalg.qr(square)[0]
        with torch.no_grad():
            layer.weight.copy_((factor if outputs >= inputs else factor.T) * (0.01 if last else math.sqrt(2)))
            layer.bias.zero_()
        made.append(layer)
        if not last:
            made += [nn.ELU(), nn.LayerNorm(outputs, dtype=torch.float64)]
    return made


def network(inputs: int, hidden: tuple[int, ...], outputs: int, generator: torch.Generator) -> nn.Sequential:
    """Return a network with hidden layers of these widths; its outputs are near 0."""
    return nn.Sequential(*_layers((inputs, *hidden, outputs), generator))


class Actor(nn.Module):
    """A policy: actions are the tangens hyperbolicus of a normal distribution, whose mean a network makes."""

    def __init__(self, mean: nn.Module, outputs: int, deviation: float) -> None:
        super().__init__()
        self.mean = mean
        self.log_deviation = nn.Parameter(torch.full((outputs,), math.log(deviation), dtype=torch.float64))

    def forward(self, seen: torch.Tensor, noise: torch.Tensor | None = None) -> torch.Tensor:
        """Return actions in (-1, 1); `noise` is standard normal, None: the actions of the mean."""
        mean: torch.Tensor = self.mean(seen)
        if noise is None:
            return torch.tanh(mean)
        return torch.tanh(mean + self.log_deviation.exp() * noise)


class Normalizer:
    """Running mean and variance of observations; calling it gives them mean 0 and variance 1."""

    def __init__(self, size: int) -> None:
        self.mean = torch.zeros(size, dtype=torch.float64)
        self.variance = torch.ones(size, dtype=torch.float64)
        self.count = 0

    def __call__(self, seen: torch.Tensor) -> torch.Tensor:
        """Return observations (N, k), normalised."""
        return (seen - self.mean) * torch.rsqrt(self.variance + 1e-5)

    def update(self, seen: torch.Tensor) -> None:
        """Take observations (n, k) into mean and variance, as if all had been seen at once."""
        new, old = len(seen), self.count
        mean, variance = seen.mean(0), seen.var(0, unbiased=False)
        part = new / (new + old)
        difference = mean - self.mean
        self.variance = (1 - part) * self.variance + part * variance + part * (1 - part) * difference**2
        self.mean = self.mean + part * difference
        self.count = new + old

    def state_dict(self) -> dict[str, Any]:
        """Return the state, whose tensors do not change later."""
        return {"mean": self.mean, "variance": self.variance, "count": self.count}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take a state of `state_dict`."""
        self.mean, self.variance, self.count = state["mean"], state["variance"], int(state["count"])
