#include "clients/bench/gradient_inside_private.h"

#include <math.h>
#include <stdlib.h>

#include "clients/base/api.h"
#include "clients/base/statistics.h"
#include "clients/bench/gradient_batch_private.h"

struct GradientInside {
  const GradientInsideArgs *args;
  DrivenModel driven;
  BenchBackend on;
  SnBackendModel *device;
  SnGradientSettings settings;
  SnGradient g;
  sn_real *ctrl_bar;  // (steps, nu)
};

static SinewStatus hand_on(SinewError *err, const SnError *why) {
  return api_fail(err, (SinewStatus)why->code, "%s", why->text);
}

// All pairs, reach 1 m, without friction.
static SnGradientSettings settings_of(const GradientInsideArgs *args) {
  SnGradientSettings settings = sn_default_gradient_settings();
  settings.method = (SnGradientMethod)args->method;
  if (args->cfd)
    settings.cfd = (SnCfdSettings){
        .on = 1, .solimp = {SN_R(0.0), SN_R(0.1), SN_R(1.0), SN_R(1.0), SN_R(4.0)}, .width = SN_R(0.002)};
  return settings;
}

static SnCode open_inside(GradientInside *x, SnError *err) {
  const int steps = x->args->driven.steps;
  SnCode code = driven_model_open(&x->driven, &x->args->driven, err);
  if (code == SN_OK) code = bench_backend_open(&x->on, &x->args->backend, err);
  if (code != SN_OK) return code;
  const SnModel *m = x->driven.o.m;
  x->driven.initial.qacc_warmstart = NULL;  // as a user's rollouts begin
  if (!(x->device = sn_backend_load(x->on.backend, m, x->driven.cost, steps, err))) return err->code;
  if ((code = sn_backend_reserve_gradients(x->on.backend, x->device, 1, err)) != SN_OK) return code;
  x->ctrl_bar = calloc((size_t)steps * (size_t)m->nu + 1, sizeof *x->ctrl_bar);
  x->settings = settings_of(x->args);
  x->g = (SnGradient){.state = x->driven.initial,
                      .ctrl = x->driven.ctrl,
                      .target = x->driven.target,
                      .nstep = steps,
                      .max_velocity = 1e6,
                      .ctrl_bar = x->ctrl_bar};
  return x->ctrl_bar ? SN_OK : sn_fail(err, SN_ERR_MEMORY, "out of memory");
}

GradientInside *gradient_inside_open(const GradientInsideArgs *args, SinewError *err) {
  SnError why = {0};
  GradientInside *x = calloc(1, sizeof *x);
  if (!x) {
    api_fail(err, SINEW_ERR_MEMORY, "out of memory");
    return NULL;
  }
  x->args = args;
  if (open_inside(x, &why) == SN_OK) return x;
  hand_on(err, &why);
  gradient_inside_close(x);
  return NULL;
}

void gradient_inside_close(GradientInside *x) {
  if (!x) return;
  if (x->device) sn_backend_unload(x->on.backend, x->device);
  bench_backend_close(&x->on);
  driven_model_close(&x->driven);
  free(x->ctrl_bar);
  free(x);
}

SinewStatus gradient_inside_pass(GradientInside *x, GradientOutcome *out, SinewError *err) {
  SnError why = {0};
  const SnClock clock = sn_clock_monotonic();
  SnGradientBatch batch = {.settings = x->settings, .item = &x->g, .count = 1};
  x->g.status = SN_GRADIENT_PENDING;
  const double t = sn_now_us();
  if (!sn_backend_gradients(x->on.backend, x->device, &batch, &clock, INFINITY)) {
    bench_backend_stopped(&x->on, &why);
    return hand_on(err, &why);
  }
  *out = (GradientOutcome){.status = x->g.status == SN_GRADIENT_DONE       ? "done"
                                     : x->g.status == SN_GRADIENT_DIVERGED ? "diverged"
                                                                           : "unbounded",
                           .norm = x->g.norm,
                           .ms = 1e-3 * (sn_now_us() - t)};
  return SINEW_OK;
}

SinewStatus gradient_inside_shares(GradientInside *x, int rounds, cJSON **shares, SinewError *err) {
  GradientOutcome outcome;
  SinewStatus status = SINEW_OK;
  cJSON_Delete(bench_stage_shares(&x->on, x->device));
  for (int i = 0; i < rounds && status == SINEW_OK; ++i) status = gradient_inside_pass(x, &outcome, err);
  if (status == SINEW_OK) *shares = bench_stage_shares(&x->on, x->device);
  return status;
}

cJSON *gradient_inside_items(GradientInside *x, const int *item, int n, int rounds, SinewError *err) {
  SnError why = {0};
  const GradientBatchSizes sizes = {.item = item, .n = n, .rounds = rounds};
  cJSON *rows = gradient_batch_run(&x->driven, &x->on, &x->settings, &sizes, &why);
  if (!rows) hand_on(err, &why);
  return rows;
}
