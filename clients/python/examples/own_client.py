"""A controller without the package sinew: pyzmq, protobuf and the schema. proto/WIRE.md says what it relies on.

protoc --descriptor_set_out=sinew.desc --proto_path=proto sinew.proto  # or share/sinew/sinew.desc of an installation
python own_client.py sinew.desc ipc:///run/user/1000/sinew/sinewd.sock arm_reach
"""

import math
import sys

import zmq
from google.protobuf import descriptor_pb2, message_factory

with open(sys.argv[1], "rb") as file:
    messages = message_factory.GetMessages(descriptor_pb2.FileDescriptorSet.FromString(file.read()).file)
socket = zmq.Context().socket(zmq.DEALER)
socket.connect(sys.argv[2])
asked = 0


def ask(kind, **fields):
    """Send a request in one frame and wait for its reply, which has the same id."""
    global asked
    asked += 1
    socket.send(messages["sinew.v1.Request"](id=asked, **{kind: fields}).SerializeToString())
    while socket.poll(10_000):
        reply = messages["sinew.v1.Reply"].FromString(socket.recv())
        if reply.id == asked and reply.WhichOneof("body") == kind:
            return getattr(reply, kind)
        if reply.id in (asked, 0):
            sys.exit(reply.error.text)
    sys.exit(f"no answer from {sys.argv[2]}")


if ask("hello", protocol=1, client="own").protocol != 1:
    sys.exit("the daemon speaks another protocol")
model = ask("describe_task", task=sys.argv[3]).model
opened = ask("open", task=sys.argv[3], seed=3, session={"latency": 0.02})
now = 0.0
for _cycle in range(10):
    state = {"time": now, "qpos": opened.initial.qpos, "qvel": opened.initial.qvel}  # measure them here
    plan = ask("plan", session=opened.session, state=state, deadline=0.02)
    for _tick in range(4):
        ctrl = [0.0] * model.nu  # without a plan that may be used the muscles relax
        if plan.steps and abs(now - plan.state_time) <= plan.time_to_live:
            row = min(max(math.floor((now - plan.start) / plan.step + 1e-6), 0), plan.steps - 1)
            ctrl = plan.ctrl[row * model.nu : (row + 1) * model.nu]
        now += model.timestep  # apply ctrl here, within the ranges of model.ctrl
    print(f"t {now:.3f}  cost {plan.cost_before:.4g} -> {plan.cost_after:.4g}  control {ctrl[0]:.3f}")
ask("close", session=opened.session)
