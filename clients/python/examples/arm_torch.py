"""The arm of arm_lbfgs.py in PyTorch: eight random starts at once, improved by Adam.

python arm_torch.py --picture arm_torch.svg
"""

import argparse

import torch

import sinew
from sinew.torch import rollout

STEPS, STARTS, EFFORT = 300, 8, 0.002


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--iterations", type=int, default=150, help="of Adam (default: 150)")
    parser.add_argument("--picture", type=sinew.files.writable, help="file to draw into, .svg or .png")
    arguments = parser.parse_args()

    torch.manual_seed(1)
    model = sinew.Model.from_xml(sinew.share("models/arm_reach.xml"))
    start = {"qpos": torch.tensor(model.key_qpos[0].copy())}
    phase = 2 * torch.pi * model.opt.timestep * torch.arange(STEPS + 1, dtype=torch.float64) / 1.5
    target = torch.stack([0.45 + 0.08 * phase.sin(), 0 * phase, 1.35 + 0.1 * phase.cos()], dim=-1)

    free = torch.randn(STARTS, STEPS, model.nu, dtype=torch.float64) - 3  # controls are its sigmoid: in (0, 1)
    free.requires_grad_()
    optimizer = torch.optim.Adam([free], lr=0.1)
    costs = []
    for _ in range(arguments.iterations):
        ctrl = free.sigmoid()
        hand = rollout(model, start, ctrl).sensordata
        cost = ((hand - target) ** 2).sum(dim=(1, 2)) / STEPS + EFFORT * (ctrl**2).sum(dim=(1, 2)) / STEPS
        optimizer.zero_grad()
        cost.sum().backward()
        optimizer.step()
        costs.append(cost.detach())
    first, last = costs[0], costs[-1]
    print(f"mean cost of {STARTS} starts {first.mean():.6f} -> {last.mean():.6f}, best {last.min():.6f}")

    if arguments.picture:
        import matplotlib.pyplot as plt

        figure, axes = plt.subplots(figsize=(6, 3.6), layout="constrained")
        axes.semilogy(torch.stack(costs).numpy())
        axes.set(title=f"{STARTS} starts, Adam", xlabel="iteration", ylabel="cost")
        figure.savefig(arguments.picture, dpi=80)


if __name__ == "__main__":
    main()
