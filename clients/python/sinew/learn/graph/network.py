"""The graph network: message passing by equations 2 to 4 of Z. Huang et al. over nodes of meshes and of objects.

Edges are updated from their latent numbers and those of the nodes at their ends (equation 2), nodes from theirs and the
sum of the edges that end there (equation 3), and the last ones of mesh nodes are decoded to accelerations (equation 4).
A face-face edge has latent numbers for each corner of its receiver; the corners share their weights, and those of the
sender count by their sum, so the order of corners does not matter. Sums are `index_add`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import nn

from sinew.errors import ArgumentError

__all__ = ["FEATURES", "Graph", "GraphNetwork", "Sizes"]

# Numbers that come in for mesh nodes, object nodes, mesh-mesh and object-mesh edges, and corners of face-face edges.
FEATURES = {"mesh": 4, "object": 3, "mesh_mesh": 4, "object_mesh": 4, "face_face": 14}


class Sizes(NamedTuple):
    """Sizes of a network.

    Attributes
    ----------
    width : int
        Latent numbers of a node or an edge.
    steps : int
        How often messages pass, L.
    """

    width: int = 48
    steps: int = 4


@dataclass(frozen=True, eq=False)
class Graph:
    """Nodes and edges of B scenes, numbered through, with what comes in.

    Attributes
    ----------
    mesh, object : Tensor, (N, 4) and (O, 3)
        Features of nodes. The last mesh node is the floor's.
    mesh_mesh, object_mesh : Tensor, (E, 4) and (N - 1, 4)
        Features of edges.
    face_face : Tensor, (M, 3, 14)
        Features of face-face edges for each corner of the receiver.
    ends : Tensor of int, (E, 2)
        Mesh nodes at the ends of mesh-mesh edges: from, to.
    owner : Tensor of int, (N - 1,)
        Object nodes of the mesh nodes.
    senders, receivers : Tensor of int, (M, 3)
        Mesh nodes at the corners of the triangles.
    """

    mesh: torch.Tensor
    object: torch.Tensor
    mesh_mesh: torch.Tensor
    object_mesh: torch.Tensor
    face_face: torch.Tensor
    ends: torch.Tensor
    owner: torch.Tensor
    senders: torch.Tensor
    receivers: torch.Tensor


def _two_layers(inputs: int, width: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(inputs, width), nn.SiLU(), nn.Linear(width, outputs))


class _Update(nn.Module):
    """Adds to latent numbers what two layers make of them and of others: phi_e and phi_v.

    The first layer's part of each other is a linear map of its own, so that it can be taken at nodes, not at edges.
    """

    def __init__(self, width: int, others: int) -> None:
        super().__init__()
        self.own = nn.Linear(width, width)
        self.others = nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(others))
        self.last = nn.Sequential(nn.SiLU(), nn.Linear(width, width), nn.LayerNorm(width))

    def forward(self, own: torch.Tensor, *mapped: torch.Tensor) -> torch.Tensor:
        hidden = self.own(own)
        for part in mapped:
            hidden = hidden + part
        updated: torch.Tensor = own + self.last(hidden)
        return updated


class _Layer(nn.Module):
    """Passes messages once."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.mesh_mesh, self.to_object, self.to_mesh = (_Update(width, 2) for _ in range(3))
        self.face_face = _Update(width, 3)
        self.mesh, self.object = _Update(width, 3), _Update(width, 1)

    def forward(self, graph: Graph, mesh: torch.Tensor, body: torch.Tensor, edges: list[torch.Tensor]) -> tuple[
        torch.Tensor, torch.Tensor, list[torch.Tensor]
    ]:  # fmt: skip
        moving = mesh[:-1]
        source, target = graph.ends.unbind(1)
        map_from, map_to = self.mesh_mesh.others
        across = self.mesh_mesh(edges[0], map_from(mesh)[source], map_to(mesh)[target])
        map_from, map_to = self.to_object.others
        up = self.to_object(edges[1], map_from(moving), map_to(body)[graph.owner])
        map_from, map_to = self.to_mesh.others
        down = self.to_mesh(edges[2], map_from(body)[graph.owner], map_to(moving))
        map_from, map_face, map_to = self.face_face.others
        touch = self.face_face(
            edges[3], map_from(mesh)[graph.senders].sum(1, keepdim=True),
            map_face(mesh)[graph.receivers].sum(1, keepdim=True), map_to(mesh)[graph.receivers],
        )  # fmt: skip
        zero = torch.zeros_like(mesh)
        sums = (
            zero.index_add(0, target, across),
            torch.cat([down, zero[-1:]]),  # one edge ends at each node of a body, none at the floor
            zero.index_add(0, graph.receivers.flatten(), touch.flatten(0, 1)),
        )
        new_mesh = self.mesh(mesh, *(f(x) for f, x in zip(self.mesh.others, sums, strict=True)))
        new_body = self.object(body, self.object.others[0](torch.zeros_like(body).index_add(0, graph.owner, up)))
        return new_mesh, new_body, [across, up, down, touch]


class GraphNetwork(nn.Module):
    """Maps a graph to accelerations of its mesh nodes, in units of its own. The first ones are zero.

    Parameters
    ----------
    sizes : Sizes
        Its sizes.
    """

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        if sizes.width < 1 or sizes.steps < 1:
            raise ArgumentError(f"sizes: {tuple(sizes)}, expected a width and steps of 1 and more")
        width = sizes.width
        self.encoders = nn.ModuleDict({x: _two_layers(n, width, width) for x, n in FEATURES.items()})
        self.second = _two_layers(FEATURES["object_mesh"], width, width)  # of object-mesh edges, from the object
        self.layers = nn.ModuleList(_Layer(width) for _ in range(sizes.steps))
        self.decoder = _two_layers(width, width, 3)
        nn.init.zeros_(self.decoder[-1].weight)
        nn.init.zeros_(self.decoder[-1].bias)

    def forward(self, graph: Graph) -> torch.Tensor:
        """Return accelerations of the mesh nodes of the bodies, (N - 1, 3)."""
        mesh, body, across, up, touch = (self.encoders[x](getattr(graph, x)) for x in FEATURES)
        edges = [across, up, self.second(graph.object_mesh), touch]
        for layer in self.layers:
            mesh, body, edges = layer(graph, mesh, body, edges)
        found: torch.Tensor = self.decoder(mesh[:-1])
        return found
