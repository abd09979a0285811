"""A controller over the socket: a private daemon plans, an arm in this process moves, in lockstep.

python controller.py --picture controller.svg
"""

import argparse

import numpy as np

import sinew


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=3.0, help="of motion (default: 3)")
    parser.add_argument("--iterations", type=int, default=8, help="of Adam for each plan (default: 8)")
    parser.add_argument("--picture", type=sinew.files.writable, help="file to draw into, .svg or .png")
    arguments = parser.parse_args()

    every = 8  # steps between two plans
    hand, costs = [], []
    with (
        sinew.serve() as daemon,
        daemon.client() as client,
        client.open("arm_reach", seed=1, settings={"adam_iterations": arguments.iterations}) as session,
    ):
        model = sinew.Model.from_xml(sinew.share("models/arm_reach.xml"))
        data = sinew.Data(model)
        data.set_state(session.initial)
        for step in range(round(arguments.seconds / model.opt.timestep)):
            if step % every == 0:
                plan = session.plan(data.state)
                costs.append((data.time, plan.cost_after))
            data.ctrl = session.control(data.time)
            data.step()
            hand.append(data.site("hand").xpos.copy())
    time = model.opt.timestep * np.arange(len(hand))
    phase = 2 * np.pi * time / 4
    target = np.stack([0.45 + 0.08 * np.sin(phase), 0 * time, 1.35 + 0.1 * np.sin(phase + 1.5708)], axis=-1)
    distance = np.linalg.norm(np.array(hand) - target, axis=1)
    print(
        f"{len(costs)} plans, distance of the hand {1000 * distance[0]:.0f} mm at first, "
        f"{1000 * distance[len(distance) // 2 :].mean():.1f} mm on average over the second half"
    )

    if arguments.picture:
        import matplotlib.pyplot as plt

        figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
        left.semilogy(time, 1000 * distance)
        left.set(title="distance of the hand from its target [mm]", xlabel="time [s]")
        right.semilogy(*np.array(costs).T)
        right.set(title="cost of the plans", xlabel="time [s]")
        figure.savefig(arguments.picture, dpi=80)


if __name__ == "__main__":
    main()
