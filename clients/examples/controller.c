// A controller in forty lines: ask for a plan, apply it, ask again. The body here does
// not move; put your robot's input and output where the comments say.
#include <sinew_client.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
  SinewError err;
  SinewClient *client = sinew_client_connect(argc > 1 ? argv[1] : NULL, 10.0, 0, &err);
  if (!client) return fprintf(stderr, "%s\n", err.text), 1;
  SinewSessionDef def = sinew_default_session();
  def.task = argc > 2 ? argv[2] : "arm_reach";
  def.latency = 0.02;                          // a plan is in force 20 ms after its state
  def.fallback = sinew_session_fallback_zero;  // relax when there is no usable plan
  SinewSession *session = sinew_session_open(client, &def, &err);
  if (!session) {
    fprintf(stderr, "%s\n", err.text);
    sinew_client_disconnect(client);
    return 1;
  }
  const SinewSessionInfo *info = sinew_session_info(session);
  double *ctrl = calloc((size_t)info->nu + 1, sizeof *ctrl);
  double now = 0;
  for (int cycle = 0; cycle < 10; ++cycle) {
    // Measure: fill qpos and qvel from your sensors. act is left out, the daemon estimates it.
    const SinewState state = {.time = now, .qpos = info->initial.qpos, .qvel = info->initial.qvel};
    const SinewStatus status = sinew_session_plan(session, &state, 0.02, &err);
    if (status != SINEW_OK) fprintf(stderr, "%s: %s\n", sinew_status_name(status), err.text);
    for (int step = 0; step < 4; ++step, now += info->timestep) {
      sinew_session_control(session, now, ctrl, &err);
      // Actuate: send ctrl to your robot and wait for the next time step.
    }
    const SinewSessionPlan *plan = sinew_session_current_plan(session);
    if (plan) printf("t %.3f  cost %.4g -> %.4g  control %.3f\n", now, plan->cost_before, plan->cost_after, ctrl[0]);
  }
  free(ctrl);
  sinew_session_close(session, NULL);
  sinew_client_disconnect(client);
  return 0;
}
