#include "clients/bench/bench_plan_private.h"

#include <stdio.h>
#include <string.h>

#include "clients/base/progress.h"
#include "clients/base/statistics.h"
#include "clients/bench/bench_user_private.h"
#include "clients/reference/mirror.h"

// All that plans are made of, freed together.
typedef struct Parts {
  SinewModel *model;
  SinewTask *task;
  SinewBackend *backend;
  SinewPlanner *planner;
} Parts;

static SinewStatus open_parts(Parts *x, const BenchPlan *p, SinewError *err) {
  const BenchTaskArgs *a = p->args;
  const char *settings[BENCH_SETTINGS + 4] = {NULL};
  char horizon[40], iterations[40];
  snprintf(horizon, sizeof horizon, "horizon=%d", p->steps);
  snprintf(iterations, sizeof iterations, "adam_iterations=%d", p->iterations);
  memcpy(settings, a->settings, sizeof settings[0] * (size_t)a->nsettings);
  settings[a->nsettings] = "planner=adam";
  settings[a->nsettings + 1] = horizon;
  settings[a->nsettings + 2] = iterations;
  if (!(x->model = sn_mirror_model(p->body, err)) || !(x->task = bench_user_task(a, err)) ||
      !(x->backend = bench_user_backend(&a->backend, err)))
    return err->status;
  SinewPlannerDef def = sinew_default_planner();
  def.model = x->model;
  def.task = x->task;
  def.backend = x->backend;
  def.settings = settings;
  def.seed = a->seed;
  x->planner = sinew_planner_create(&def, err);
  return x->planner ? SINEW_OK : err->status;
}

static void close_parts(Parts *x) {
  sinew_planner_free(x->planner);
  sinew_backend_close(x->backend);
  sinew_task_free(x->task);
  sinew_model_free(x->model);
}

static SinewStatus pass(SinewPlanner *planner, uint64_t seed, double *ms, double *cost, SinewError *err) {
  SinewPlanRequest request = sinew_default_plan_request();
  const SinewPlan *plan;
  SinewStatus status = sinew_planner_reset(planner, seed, err);
  if (status != SINEW_OK) return status;
  request.state = sinew_planner_initial(planner);
  const double t = sn_now_us();
  status = sinew_planner_plan(planner, &request, &plan, err);
  *ms = 1e-3 * (sn_now_us() - t);
  if (status == SINEW_OK) *cost = plan->cost_after;
  return status;
}

SinewStatus bench_plan_measure(const BenchPlan *p, double *ms, double *cost, SinewError *err) {
  Parts x = {.model = NULL};
  SinewStatus status = open_parts(&x, p, err);
  for (int r = -1; r < p->rounds && status == SINEW_OK; ++r) {
    sn_progress("a planner's plan, round %d of %d", r + 1, p->rounds);
    status = pass(x.planner, p->args->seed, &ms[r < 0 ? 0 : r], cost, err);
  }
  close_parts(&x);
  return status;
}
