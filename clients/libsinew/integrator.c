// Integration of one body with chosen steps, and its adjoint: physics/step/horizon.h does the work.
#include <stdlib.h>
#include <string.h>

#include "clients/libsinew/coordinates_private.h"
#include "clients/libsinew/data_private.h"
#include "clients/libsinew/integrator_private.h"
#include "clients/libsinew/parameters_private.h"
#include "physics/step/horizon.h"

static const ApiStruct def_type = {"SinewIntegratorDef", "sinew_default_integrator", sizeof(SinewIntegratorDef),
                                   API_END(SinewIntegratorDef, cfd)};
static const ApiStruct run_type = {"SinewIntegration", "sinew_default_integration", sizeof(SinewIntegration),
                                   API_END(SinewIntegration, out_act)};
static const ApiStruct report_type = {"SinewIntegrationReport", "sinew_default_integration_report",
                                      sizeof(SinewIntegrationReport), API_END(SinewIntegrationReport, warnings)};
static const ApiStruct bars_type = {"SinewIntegrationBars", "sinew_default_integration_bars",
                                    sizeof(SinewIntegrationBars), API_END(SinewIntegrationBars, mocap)};

_Static_assert((int)SINEW_END_DONE == (int)SN_HORIZON_DONE && (int)SINEW_END_STEPS == (int)SN_HORIZON_STEPS &&
                   (int)SINEW_END_SMALLEST == (int)SN_HORIZON_SMALLEST &&
                   (int)SINEW_END_DIVERGED == (int)SN_HORIZON_BAD && (int)SINEW_END_MEMORY == (int)SN_HORIZON_KEEP,
               "ends of an integration of the engine and of the library differ");

enum { MOST_STEPS = 10000000, MOST_TIMES = 10000000 };  // of a run; knots, and outputs

struct SinewIntegrator {
  ApiGuard guard;
  ApiCfd cfd;
  ApiInterrupt own, *interrupt;  // interrupt: own, or that of the list that is at work
  SnHorizon *horizon;
  uint64_t structure;    // of the model
  bool gradients, done;  // done: the last run can be gone back through
  bool listed;           // in a list of integrators, while it is checked
  // Copies of what the last run was given, and its positions, in one block.
  double *block;
  size_t nblock;
  SnHorizonInput in;
  double *start;    // (nq)
  double *qpos;     // (nout, nq) of the outputs
  double *bar;      // (nout, nv) scratch: their bars as tangents
  double *tangent;  // (nv) scratch
};

// ---- life ----

// Divides `memory` bytes: all steps where they fit, else as many as leave room for checkpoints of all others, as far as
// that goes. Returns SINEW_ERR_ARGUMENT where they hold none.
static SinewStatus find_keep(const SinewIntegratorDef *def, SnHorizonSettings *s, SinewError *err) {
  const SnModel *m = def->model->model;
  const size_t step = sn_horizon_step_bytes(m, s->method), all = (size_t)s->max_steps + 1, held = def->memory / step;
  s->keep = s->checkpoints = 0;
  if (!def->gradients) return SINEW_OK;
  if (held == 0)
    return api_fail(err, SINEW_ERR_ARGUMENT, "SinewIntegratorDef.memory is %zu; a step of this model takes %zu bytes",
                    def->memory, step);
  s->keep = (int)(held < all ? held : all);  // who has all steps runs out of steps first
  size_t most = (size_t)s->keep;
  for (size_t keep = held; keep >= 1 && most < all; keep -= keep / 8 + 1) {
    const size_t slots = (keep + 1) * step, left = slots < def->memory ? def->memory - slots : 0;
    const size_t room = left / sn_horizon_checkpoint_bytes(m, (int)keep), wanted = all / keep + 1;
    const size_t points = room < wanted ? room : wanted;
    if (keep * points <= most) continue;
    most = keep * points;
    s->keep = (int)keep;
    s->checkpoints = (int)points;
  }
  return SINEW_OK;
}

static SinewStatus read_settings(const SinewIntegratorDef *def, SnHorizonSettings *s, SinewError *err) {
  const int method = def->method ? sn_tableau_find(def->method) : -1;
  if (!def->method) return api_fail(err, SINEW_ERR_ARGUMENT, "SinewIntegratorDef.method is NULL");
  if (method < 0)
    return api_fail(err, SINEW_ERR_NOT_FOUND,
                    "SinewIntegratorDef.method is '%s'; allowed are euler, heun, midpoint, ralston, bosh3, rk4, "
                    "tsit5, dopri5, dopri8",
                    def->method);
  *s = (SnHorizonSettings){.method = method,
                           .rtol = def->rtol,
                           .atol = def->atol,
                           .fixed_step = def->fixed_step,
                           .first_step = def->first_step,
                           .smallest_step = def->smallest_step,
                           .largest_step = def->largest_step,
                           .p = def->p,
                           .i = def->i,
                           .d = def->d,
                           .safety = def->safety,
                           .shrink = def->shrink,
                           .grow = def->grow,
                           .max_steps = def->max_steps,
                           .linear = def->linear,
                           .stop_at_outputs = def->stop_at_outputs,
                           .events = def->events};
  if (s->max_steps < 1 || s->max_steps > MOST_STEPS)
    return api_fail(err, SINEW_ERR_ARGUMENT, "SinewIntegratorDef.max_steps is %d; allowed are 1 to %d", s->max_steps,
                    (int)MOST_STEPS);
  return find_keep(def, s, err);
}

static bool stops(void *argument) { return api_interrupt_look(((SinewIntegrator *)argument)->interrupt); }

static SinewStatus make(SinewIntegrator *x, const SinewIntegratorDef *def, SinewError *err) {
  SnHorizonSettings settings;
  SnError why;
  SinewStatus status = read_settings(def, &settings, err);
  x->gradients = def->gradients;
  if (status == SINEW_OK && def->cfd) status = api_cfd_read(def->model, def->cfd, &x->cfd, err);
  if (status != SINEW_OK) return status;
  x->horizon = sn_horizon_create(def->model->model, &settings, &why);
  x->structure = api_model_structure(def->model);
  if (!x->horizon) return api_hand_on(err, &why);
  x->interrupt = &x->own;
  x->own = (ApiInterrupt){.ask = def->interrupt, .user = def->interrupt_user};
  x->horizon->stop = stops;
  x->horizon->stop_argument = x;
  return api_ok(err);
}

SinewIntegrator *sinew_integrator_create(const SinewIntegratorDef *def, SinewError *err) {
  SinewIntegratorDef known = sinew_default_integrator();
  if (api_take(&def_type, def, &known, err) != SINEW_OK) return NULL;
  if (!known.model) {
    api_fail(err, SINEW_ERR_ARGUMENT, "SinewIntegratorDef.model is NULL");
    return NULL;
  }
  SinewIntegrator *x = calloc(1, sizeof *x);
  if (!x) api_fail(err, SINEW_ERR_MEMORY, "sinew_integrator_create: out of memory");
  if (x && make(x, &known, err) == SINEW_OK) return x;
  sinew_integrator_free(x);
  return NULL;
}

void sinew_integrator_free(SinewIntegrator *integrator) {
  if (!integrator) return;
  sn_horizon_free(integrator->horizon);
  api_cfd_clear(&integrator->cfd);
  free(integrator->block);
  free(integrator);
}

const char *sinew_integration_end_text(SinewIntegrationEnd end) {
  if (end == SINEW_END_MEMORY) return "the memory for the steps of the way back (memory) does not suffice";
  return sn_horizon_status_text((SnHorizonStatus)end);
}

// ---- the run ----

static SinewStatus check_run(const SinewIntegrator *x, const SinewIntegration *run, SinewError *err) {
  const struct {
    const char *name, *time;
    int n;
    bool missing;
  } part[] = {{"nknot", "knot_time or knot", run->nknot, !run->knot_time || (!run->knot && x->horizon->model.nu > 0)},
              {"nout", "out_time", run->nout, !run->out_time}};
  for (int k = 0; k < 2; ++k) {
    if (part[k].n < 0 || part[k].n > MOST_TIMES)
      return api_fail(err, SINEW_ERR_ARGUMENT, "SinewIntegration.%s is %d; allowed are 0 to %d", part[k].name,
                      part[k].n, (int)MOST_TIMES);
    if (part[k].n > 0 && part[k].missing)
      return api_fail(err, SINEW_ERR_ARGUMENT, "SinewIntegration.%s is %d, and %s is NULL", part[k].name, part[k].n,
                      part[k].time);
  }
  return SINEW_OK;
}

// Takes n numbers of the block.
static double *take(double **at, size_t n) {
  double *taken = *at;
  *at += n;
  return taken;
}

static double *take_copy(double **at, const double *from, size_t n) {
  double *taken = take(at, n);
  if (n > 0) memcpy(taken, from, sizeof *taken * n);
  return taken;
}

// Copies what a run is given.
static SinewStatus keep_input(SinewIntegrator *x, const SinewIntegration *run, SinewError *err) {
  const SnModel *m = &x->horizon->model;
  const size_t nq = (size_t)m->nq, nv = (size_t)m->nv, nu = (size_t)m->nu;
  const size_t nknot = (size_t)run->nknot, nout = (size_t)run->nout;
  const size_t n = nknot * (1 + nu) + nout * (1 + nq + nv) + nq + nv + 1;  // a body may have nothing that moves
  if (n > x->nblock) {
    free(x->block);
    x->nblock = 0;
    x->block = malloc(n * sizeof *x->block);
    if (!x->block) return api_fail(err, SINEW_ERR_MEMORY, "sinew_integrator_run: no memory for %zu numbers", n);
    x->nblock = n;
  }
  double *at = x->block;
  x->in = (SnHorizonInput){.duration = run->duration, .nknot = run->nknot, .nout = run->nout};
  x->in.knot_time = take_copy(&at, run->knot_time, nknot);
  x->in.knot = take_copy(&at, run->knot, nknot * nu);
  x->in.out_time = take_copy(&at, run->out_time, nout);
  x->start = take(&at, nq);
  x->qpos = take(&at, nout * nq);
  x->bar = take(&at, nout * nv);
  x->tangent = take(&at, nv);
  return SINEW_OK;
}

// Puts the world where the run begins.
static SinewStatus begin(SinewIntegrator *x, const SinewState *from, SinewError *err) {
  SnHorizon *h = x->horizon;
  SnCfdSettings cfd = x->cfd.settings;
  cfd.on = x->cfd.use == SINEW_CFD_FORWARD;
  sn_world_reset(&h->model, &h->world);
  *h->world.cfd = sn_cfd(&cfd);
  const SinewStatus status = api_set_state(&h->model, &h->world, from, "sinew_integrator_run", err);
  memcpy(x->start, h->world.qpos, sizeof *x->start * (size_t)h->model.nq);
  return status;
}

static SinewStatus integrate(SinewIntegrator *x, const SinewState *from, const SinewIntegration *given,
                             SinewIntegrationReport *report, SinewError *err) {
  SnHorizon *h = x->horizon;
  SinewIntegration run;
  SnHorizonStatus end;
  SnError why;
  x->done = false;  // of a run that is refused nothing can be asked
  h->accepted = h->rejected = h->evaluations = 0;
  SinewStatus status = api_integration_take(given, &run, err);
  if (status == SINEW_OK) status = check_run(x, &run, err);
  if (status == SINEW_OK) status = keep_input(x, &run, err);
  if (status == SINEW_OK) status = begin(x, from, err);
  if (status != SINEW_OK) return status;
  const size_t nout = (size_t)run.nout, nq = nout * (size_t)h->model.nq;
  api_fill_nan(x->qpos, nq);
  api_fill_nan(run.out_qvel, nout * (size_t)h->model.nv);
  api_fill_nan(run.out_act, nout * (size_t)h->model.na);
  const SnHorizonOutput out = {.qpos = x->qpos, .qvel = run.out_qvel, .act = run.out_act};
  const SnCode code = sn_horizon_run(h, &x->in, &out, &end, &why);
  if (code != SN_OK) return code == SN_ERR_TIMEOUT ? api_interrupt_fail(err) : api_hand_on(err, &why);
  if (run.out_qpos && nq > 0) memcpy(run.out_qpos, x->qpos, sizeof *x->qpos * nq);
  x->done = x->gradients && end == SN_HORIZON_DONE;
  if (!report) return api_ok(err);
  const SinewIntegrationReport made = {.size = sizeof made,
                                       .end = (SinewIntegrationEnd)end,
                                       .reached = h->reached,
                                       .accepted = h->accepted,
                                       .rejected = h->rejected,
                                       .evaluations = h->evaluations,
                                       .warnings = (unsigned)*h->world.warn};
  status = api_give(&report_type, &made, report, err);
  return status == SINEW_OK ? api_ok(err) : status;
}

SinewStatus sinew_integrator_run(SinewIntegrator *integrator, const SinewState *from, const SinewIntegration *run,
                                 SinewIntegrationReport *report, SinewError *err) {
  if (!integrator || !from)
    return api_fail(err, SINEW_ERR_ARGUMENT, "sinew_integrator_run: %s is NULL", integrator ? "from" : "integrator");
  const SinewStatus status = api_enter(&integrator->guard, "integrator", err);
  if (status != SINEW_OK) return status;
  if (integrator->interrupt == &integrator->own) api_interrupt_begin(&integrator->own);
  return api_leave(&integrator->guard, integrate(integrator, from, run, report, err));
}

int sinew_integrator_steps(const SinewIntegrator *integrator, double *time, int n) {
  if (!integrator || !integrator->gradients) return 0;
  const SnHorizon *h = integrator->horizon;
  for (int k = 0; time && k < n && k < h->accepted; ++k) {
    sn_real step[2];
    sn_horizon_step(h, k, step, NULL, NULL, NULL);
    time[k] = step[0];
  }
  return h->accepted;
}

// ---- the way back ----

static SinewStatus check_parameters(const SinewIntegrator *x, const SinewIntegrationBars *bars, SinewError *err) {
  if (!bars->parameter) return SINEW_OK;
  if (!bars->parameters)
    return api_fail(err, SINEW_ERR_ARGUMENT, "SinewIntegrationBars.parameters is NULL, parameter is not");
  return api_parameters_fit(bars->parameters, x->structure, err);
}

static SinewStatus check_bars(const SinewIntegrator *x, const SinewIntegrationBars *bars, SinewError *err) {
  const SnModel *m = &x->horizon->model;
  const int nqpos = bars->coordinates == SINEW_ARRAY ? m->nq : m->nv;
  const struct {
    const char *name;
    const double *x;
    int n;
  } part[] = {
      {"out_qpos", bars->out_qpos, nqpos}, {"out_qvel", bars->out_qvel, m->nv}, {"out_act", bars->out_act, m->na}};
  if (bars->coordinates != SINEW_TANGENT && bars->coordinates != SINEW_ARRAY)
    return api_fail(err, SINEW_ERR_ARGUMENT, "SinewIntegrationBars.coordinates is %d; allowed are 0 and 1",
                    (int)bars->coordinates);
  if (bars->adjoint != SINEW_DISCRETE && bars->adjoint != SINEW_BACKSOLVE)
    return api_fail(err, SINEW_ERR_ARGUMENT, "SinewIntegrationBars.adjoint is %d; allowed are 0 and 1",
                    (int)bars->adjoint);
  if (bars->adjoint == SINEW_BACKSOLVE && bars->parameter)
    return api_fail(err, SINEW_ERR_ARGUMENT,
                    "SinewIntegrationBars.adjoint: the backsolve has no derivatives by parameters");
  for (int k = 0; k < 3; ++k)
    for (size_t i = 0; part[k].x && i < (size_t)x->in.nout * (size_t)part[k].n; ++i)
      if (!isfinite(part[k].x[i]))
        return api_fail(err, SINEW_ERR_ARGUMENT, "SinewIntegrationBars.%s[%zu] is %g; a finite number is wanted",
                        part[k].name, i, part[k].x[i]);
  return SINEW_OK;
}

static bool all_finite(const double *x, size_t n) {
  for (size_t i = 0; x && i < n; ++i)
    if (!isfinite(x[i])) return false;
  return true;
}

static SinewStatus go_back(SinewIntegrator *x, const SinewIntegrationBars *given, SinewError *err) {
  const char *const who = "sinew_integrator_vjp";
  const SnModel *m = &x->horizon->model;
  SinewIntegrationBars bars;
  SnError why;
  SinewStatus status = api_integration_bars_take(given, &bars, err);
  if (status == SINEW_OK && !x->done)
    status = api_fail(err, SINEW_ERR_STATE, "%s: %s", who,
                      x->gradients ? "there is no run that was done" : "the integrator was made without gradients");
  if (status == SINEW_OK) status = check_bars(x, &bars, err);
  if (status == SINEW_OK) status = check_parameters(x, &bars, err);
  if (status != SINEW_OK) return status;
  ApiBars model = {0};
  if (bars.parameter && (status = api_bars_make(&model, bars.parameters, 1, err)) != SINEW_OK) return status;
  const bool array = bars.coordinates == SINEW_ARRAY;
  for (int k = 0; array && bars.out_qpos && k < x->in.nout; ++k)
    api_bar_of_tangent(m, x->qpos + (size_t)k * (size_t)m->nq, bars.out_qpos + (size_t)k * (size_t)m->nq,
                       x->bar + (size_t)k * (size_t)m->nv);
  const SnHorizonBars all = {.out_qpos = array && bars.out_qpos ? x->bar : bars.out_qpos,
                             .out_qvel = bars.out_qvel,
                             .out_act = bars.out_act,
                             .qpos = x->tangent,
                             .qvel = bars.qvel,
                             .act = bars.act,
                             .knot = x->in.nknot > 0 ? bars.knot : NULL,
                             .mocap = bars.mocap,
                             .model = model.bar};
  SnCfdSettings settings = x->cfd.settings;
  settings.on = x->cfd.use != SINEW_CFD_NONE;
  const SnCfd cfd = sn_cfd(&settings);
  const SnCode code = bars.adjoint == SINEW_BACKSOLVE ? sn_horizon_backsolve(x->horizon, &x->in, &cfd, &all, &why)
                                                      : sn_horizon_vjp(x->horizon, &x->in, &cfd, &all, &why);
  if (code == SN_ERR_ARGUMENT || code == SN_ERR_TIMEOUT) {
    api_bars_free(&model);
    return code == SN_ERR_TIMEOUT ? api_interrupt_fail(err) : api_hand_on(err, &why);
  }
  bool good = code == SN_OK;
  if (good && model.bar) sn_model_bar_apply(bars.parameters->tangents, model.bar, 0, bars.parameter);
  api_bars_free(&model);
  if (!good || !all_finite(bars.parameter, bars.parameter ? (size_t)sinew_parameters_count(bars.parameters) : 0) ||
      !all_finite(x->tangent, (size_t)m->nv) || !all_finite(bars.qvel, (size_t)m->nv) ||
      !all_finite(bars.act, (size_t)m->na) || !all_finite(all.knot, (size_t)x->in.nknot * (size_t)m->nu) ||
      !all_finite(bars.mocap, 6 * (size_t)m->nmocap))
    return api_fail(err, SINEW_ERR_DIVERGED, "%s: a derivative is not finite", who);
  if (array && bars.qpos) api_bar_of_array(m, x->start, x->tangent, bars.qpos);
  if (!array && bars.qpos) memcpy(bars.qpos, x->tangent, sizeof *x->tangent * (size_t)m->nv);
  if (bars.mocap) api_bar_of_mocap(m, bars.mocap, bars.mocap);
  return api_ok(err);
}

SinewStatus sinew_integrator_vjp(SinewIntegrator *integrator, const SinewIntegrationBars *bars, SinewError *err) {
  if (!integrator) return api_fail(err, SINEW_ERR_ARGUMENT, "sinew_integrator_vjp: integrator is NULL");
  const SinewStatus status = api_enter(&integrator->guard, "integrator", err);
  if (status != SINEW_OK) return status;
  if (integrator->interrupt == &integrator->own) api_interrupt_begin(&integrator->own);
  return api_leave(&integrator->guard, go_back(integrator, bars, err));
}

// ---- lists ----

ApiIntegratorView api_integrator_view(SinewIntegrator *x) {
  return (ApiIntegratorView){&x->horizon->model, x->structure, x->in.nknot,  x->in.nout,
                             &x->listed,         &x->own,      &x->interrupt};
}

SinewStatus api_integration_take(const SinewIntegration *given, SinewIntegration *run, SinewError *err) {
  *run = sinew_default_integration();
  return api_take(&run_type, given, run, err);
}

SinewStatus api_integration_bars_take(const SinewIntegrationBars *given, SinewIntegrationBars *bars, SinewError *err) {
  *bars = sinew_default_integration_bars();
  return api_take(&bars_type, given, bars, err);
}
