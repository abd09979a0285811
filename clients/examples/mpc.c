// Lets a planner of this process move a body that MuJoCo steps: every 8 steps the body's state goes to the planner, and
// the next rows of its plan to the body. No daemon is needed. The body waits for each plan.
//   mpc MODEL.xml TASK [SECONDS]
#include <mujoco/mujoco.h>
#include <sinew.h>
#include <stdio.h>
#include <stdlib.h>

enum { EXECUTE = 8 };  // steps between two plans

static int fail(const SinewError *err) { return fprintf(stderr, "mpc: %s\n", err->text), 1; }

// Puts MuJoCo's body where the planner says that it shall start.
static void start(const mjModel *m, mjData *d, const SinewPlanner *planner) {
  const SinewState s = sinew_planner_initial(planner);
  d->time = s.time;
  mju_copy(d->qpos, s.qpos, m->nq);
  mju_copy(d->qvel, s.qvel, m->nv);
  mju_copy(d->act, s.act, m->na);
  for (int i = 0; i < m->nmocap; ++i) {
    mju_copy(d->mocap_pos + 3 * i, s.mocap + 7 * i, 3);
    mju_copy(d->mocap_quat + 4 * i, s.mocap + 7 * i + 3, 4);
  }
}

// Moves the body until `end` [s]. Returns 0, or 1 where there is no plan.
static int run(mjModel *m, mjData *d, SinewPlanner *planner, double end) {
  SinewPlanRequest request = sinew_default_plan_request();
  const SinewPlan *plan;
  SinewError err;
  double first = 0, spent = 0;
  int plans = 0;
  request.max_iterations = 16;
  while (d->time < end) {
    request.state.time = d->time;
    request.state.qpos = d->qpos;
    request.state.qvel = d->qvel;
    request.state.act = d->act;  // on a robot NULL: nobody measures activations
    if (sinew_planner_plan(planner, &request, &plan, &err) != SINEW_OK) return fail(&err);
    if (plans++ == 0) first = plan->cost_before;
    spent += plan->seconds;
    m->opt.timestep = plan->step;
    for (int k = 0; k < EXECUTE; ++k) {
      if (sinew_planner_control(planner, d->time, d->ctrl, &err) != SINEW_OK) return fail(&err);
      mj_step(m, d);
    }
  }
  if (plans == 0) return 1;
  sinew_planner_plan(planner, &request, &plan, &err);
  printf("cost %.4g at the start, %.4g after %.2f s; %d plans of %.2f ms\n", first, plan ? plan->cost_after : 0,
         d->time, plans, 1e3 * spent / plans);
  return !plan || plan->cost_after > first;
}

int main(int argc, char **argv) {
  if (argc < 3) return fprintf(stderr, "usage: mpc MODEL.xml TASK [SECONDS]\n"), 2;
  char text[1000] = "";
  mjModel *m = mj_loadXML(argv[1], NULL, text, sizeof text);
  if (!m) return fprintf(stderr, "mpc: %s\n", text), 1;
  mjData *d = mj_makeData(m);

  SinewError err;
  SinewPlannerDef def = sinew_default_planner();
  SinewModel *model = sinew_model_load(argv[1], &err);
  SinewTask *task = model ? sinew_task_load(argv[2], &err) : NULL;
  SinewBackend *backend = task ? sinew_backend_open("cpu", NULL, &err) : NULL;
  if (!backend) return fail(&err);
  const char *const settings[] = {"planner=adam", NULL};
  def.model = model;
  def.task = task;
  def.backend = backend;
  def.settings = settings;
  def.seed = 1;
  SinewPlanner *planner = sinew_planner_create(&def, &err);
  if (!planner) return fail(&err);

  start(m, d, planner);
  const int status = run(m, d, planner, argc > 3 ? atof(argv[3]) : 1);

  sinew_planner_free(planner);
  sinew_backend_close(backend);
  sinew_task_free(task);
  sinew_model_free(model);
  mj_deleteData(d);
  mj_deleteModel(m);
  return status;
}
