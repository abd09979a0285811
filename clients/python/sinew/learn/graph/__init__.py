"""A simulator of rigid bodies that learns: a graph network after FIGNet, differentiable from first to last pose.

After Z. Huang et al., "Few-Shot Neural Differentiable Simulator: Real-to-Sim Rigid-Contact Modeling", and K. Allen et
al., "Learning rigid dynamics with face interaction graph networks", 2023.

>>> from sinew.learn.graph.meshes import Mesh, Scene
>>> from sinew.learn.graph.simulator import Simulator
>>> scene = Scene([Mesh.box([0.05, 0.05, 0.05])])
>>> simulator = Simulator(step=0.0135)
>>> poses = simulator.rollout(scene, *simulator.start(qpos, qvel), 60)  # qpos (B, 7), qvel (B, 6): tensors
"""
