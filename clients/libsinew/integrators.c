// Many integrations with chosen steps on the threads of a backend: each thread takes the next integrator of the list.
#include <stdatomic.h>
#include <string.h>

#include "clients/libsinew/backend_private.h"
#include "clients/libsinew/integrator_private.h"

// A list that threads work on, and what its rows have. Runs have `bars` NULL.
typedef struct Integrators {
  const char *who;  // the call
  SinewIntegrator *const *integrator;
  int count;
  SinewSizes size;  // of all models
  const SinewState *from;
  const SinewIntegration *run;
  SinewIntegrationReport *report;
  const SinewIntegrationBars *bars;
  int nknot, nout;         // of the runs that are gone back through
  int *status;             // (count) of ways back
  ApiInterrupt interrupt;  // that of the first, whose own would begin anew on the thread that takes it
  atomic_int next;
  atomic_int failed;  // the first of the list whose call was refused; count: none
} Integrators;

// Returns row i of an array whose rows have n numbers; NULL stays.
static double *row(double *x, int i, size_t n) { return x ? x + (size_t)i * n : NULL; }
static const double *input(const double *x, int i, size_t n) { return x ? x + (size_t)i * n : NULL; }

// Returns report i of a caller whose structure may have another size than here.
static SinewIntegrationReport *report_of(const Integrators *x, int i) {
  return x->report ? (SinewIntegrationReport *)((char *)x->report + (size_t)i * x->report->size) : NULL;
}

static SinewStatus run_one(const Integrators *x, int i, SinewError *err) {
  const SinewSizes *s = &x->size;
  const size_t nq = (size_t)s->nq, nv = (size_t)s->nv, na = (size_t)s->na, nout = (size_t)x->run->nout;
  SinewState from = *x->from;
  from.qpos = input(from.qpos, i, nq);
  from.qvel = input(from.qvel, i, nv);
  from.act = input(from.act, i, na);
  from.mocap = input(from.mocap, i, 7 * (size_t)s->nmocap);
  SinewIntegration run = *x->run;
  run.knot = input(run.knot, i, (size_t)run.nknot * (size_t)s->nu);
  run.out_qpos = row(run.out_qpos, i, nout * nq);
  run.out_qvel = row(run.out_qvel, i, nout * nv);
  run.out_act = row(run.out_act, i, nout * na);
  return sinew_integrator_run(x->integrator[i], &from, &run, report_of(x, i), err);
}

static void zero(double *x, size_t n) {
  if (x && n > 0) memset(x, 0, n * sizeof *x);
}

static SinewStatus back_one(const Integrators *x, int i, SinewError *err) {
  const SinewSizes *s = &x->size;
  SinewIntegrationBars bars = *x->bars;
  const size_t nq = (size_t)(bars.coordinates == SINEW_ARRAY ? s->nq : s->nv), nv = (size_t)s->nv, na = (size_t)s->na;
  const size_t nout = (size_t)x->nout, nknot = (size_t)x->nknot * (size_t)s->nu, nmocap = 6 * (size_t)s->nmocap;
  const size_t parameters = bars.parameters ? (size_t)sinew_parameters_count(bars.parameters) : 0;
  bars.out_qpos = input(bars.out_qpos, i, nout * nq);
  bars.out_qvel = input(bars.out_qvel, i, nout * nv);
  bars.out_act = input(bars.out_act, i, nout * na);
  bars.qpos = row(bars.qpos, i, nq);
  bars.qvel = row(bars.qvel, i, nv);
  bars.act = row(bars.act, i, na);
  bars.knot = row(bars.knot, i, nknot);
  bars.mocap = row(bars.mocap, i, nmocap);
  bars.parameter = row(bars.parameter, i, parameters);
  const SinewStatus status = sinew_integrator_vjp(x->integrator[i], &bars, err);
  x->status[i] = (int)status;
  if (status != SINEW_ERR_STATE && status != SINEW_ERR_DIVERGED) return status;
  zero(bars.qpos, nq);
  zero(bars.qvel, nv);
  zero(bars.act, na);
  zero(bars.knot, nknot);
  zero(bars.mocap, nmocap);
  zero(bars.parameter, parameters);
  return SINEW_OK;
}

static SinewStatus one(const Integrators *x, int i, SinewError *err) {
  return x->bars ? back_one(x, i, err) : run_one(x, i, err);
}

static void work(void *argument, int thread) {
  (void)thread;
  Integrators *x = argument;
  for (int i = atomic_fetch_add(&x->next, 1); i < x->count && !api_interrupt_look(&x->interrupt);
       i = atomic_fetch_add(&x->next, 1)) {
    if (one(x, i, NULL) == SINEW_OK) continue;
    int first = atomic_load(&x->failed);
    while (i < first && !atomic_compare_exchange_weak(&x->failed, &first, i)) {
    }
  }
}

static void watch(void *argument) { api_interrupt_look(&((Integrators *)argument)->interrupt); }

// Lets all look at the interrupt of the first, or each at its own again.
static void share_interrupt(Integrators *x, bool shared) {
  for (int i = 0; i < x->count; ++i) {
    const ApiIntegratorView v = api_integrator_view(x->integrator[i]);
    *v.asked = shared ? &x->interrupt : v.own;
  }
}

// Refuses an integrator that does not belong to the others. `first` is what the list begins with.
static SinewStatus check_one(const Integrators *x, int i, const ApiIntegratorView *first, SinewError *err) {
  if (!x->integrator[i]) return api_fail(err, SINEW_ERR_ARGUMENT, "%s: integrators[%d] is NULL", x->who, i);
  const ApiIntegratorView v = api_integrator_view(x->integrator[i]);
  if (*v.listed) return api_fail(err, SINEW_ERR_ARGUMENT, "%s: integrators[%d] is listed twice", x->who, i);
  if (v.structure != first->structure)
    return api_fail(err, SINEW_ERR_ARGUMENT, "%s: the model of integrators[%d] has another structure than that of [0]",
                    x->who, i);
  if (x->bars && (v.nknot != first->nknot || v.nout != first->nout))
    return api_fail(err, SINEW_ERR_ARGUMENT, "%s: integrators[%d] ran with other numbers of knots or outputs than [0]",
                    x->who, i);
  if (x->report && !x->bars && report_of(x, i)->size != x->report->size)
    return api_fail(err, SINEW_ERR_ARGUMENT, "%s: reports[%d].size is %zu; that of [0] is %zu", x->who, i,
                    report_of(x, i)->size, x->report->size);
  *v.listed = true;
  return SINEW_OK;
}

// Checks the list, whose integrators are marked meanwhile, and takes the sizes of its models.
static SinewStatus check_list(Integrators *x, SinewError *err) {
  if (!x->integrator[0]) return api_fail(err, SINEW_ERR_ARGUMENT, "%s: integrators[0] is NULL", x->who);
  const ApiIntegratorView first = api_integrator_view(x->integrator[0]);
  const SnModel *m = first.model;
  x->size = (SinewSizes){.nq = m->nq, .nv = m->nv, .na = m->na, .nu = m->nu, .nmocap = m->nmocap};
  x->nknot = first.nknot;
  x->nout = first.nout;
  SinewStatus status = SINEW_OK;
  int n = 0;
  while (n < x->count && (status = check_one(x, n, &first, err)) == SINEW_OK) ++n;
  for (int i = 0; i < n; ++i) *api_integrator_view(x->integrator[i]).listed = false;
  return status;
}

static SinewStatus check(const SinewBackend *backend, Integrators *x, SinewError *err) {
  if (!backend || !x->integrator)
    return api_fail(err, SINEW_ERR_ARGUMENT, "%s: %s is NULL", x->who, backend ? "integrators" : "backend");
  if (x->count < 0)
    return api_fail(err, SINEW_ERR_ARGUMENT, "%s: count is %d; it has to be at least 0", x->who, x->count);
  if (!backend->pool)
    return api_fail(err, SINEW_ERR_UNSUPPORTED, "%s: the backend is a device; integrators need threads of the CPU",
                    x->who);
  return x->count > 0 ? check_list(x, err) : SINEW_OK;
}

// Works on the whole list; its integrators are checked.
static SinewStatus work_all(const SinewBackend *backend, Integrators *x, SinewError *err) {
  const ApiInterrupt *first = api_integrator_view(x->integrator[0]).own;
  x->interrupt = (ApiInterrupt){.ask = first->ask, .user = first->user};
  api_interrupt_begin(&x->interrupt);
  share_interrupt(x, true);
  atomic_store(&x->failed, x->count);
  if (x->count > 1 && sn_pool_size(backend->pool) > 1)
    sn_pool_run_watched(backend->pool, work, watch, x);
  else
    work(x, 0);
  const int failed = atomic_load(&x->failed);
  SinewStatus status = SINEW_OK;
  if (api_interrupt_look(&x->interrupt))
    status = api_interrupt_fail(err);
  else if (failed < x->count)
    status = one(x, failed, err);  // once more, for its text
  share_interrupt(x, false);
  return status;
}

static SinewStatus run_list(SinewBackend *backend, Integrators *x, SinewError *err) {
  SinewStatus status = check(backend, x, err);
  if (status == SINEW_OK) status = api_enter_backend(backend, "integrators", err);
  if (status != SINEW_OK) return status;
  if (x->count > 0) status = work_all(backend, x, err);
  return api_leave(&backend->guard, status == SINEW_OK ? api_ok(err) : status);
}

SinewStatus sinew_integrators_run(SinewBackend *backend, SinewIntegrator *const *integrators, int count,
                                  const SinewState *from, const SinewIntegration *run, SinewIntegrationReport *reports,
                                  SinewError *err) {
  static const char who[] = "sinew_integrators_run";
  SinewIntegration known;
  if (!from) return api_fail(err, SINEW_ERR_ARGUMENT, "%s: from is NULL", who);
  const SinewStatus status = api_integration_take(run, &known, err);
  if (status != SINEW_OK) return status;
  if (known.nknot < 0 || known.nout < 0)
    return api_fail(err, SINEW_ERR_ARGUMENT, "SinewIntegration.%s is %d; it has to be at least 0",
                    known.nknot < 0 ? "nknot" : "nout", known.nknot < 0 ? known.nknot : known.nout);
  Integrators x = {
      .who = who, .integrator = integrators, .count = count, .from = from, .run = &known, .report = reports};
  return run_list(backend, &x, err);
}

SinewStatus sinew_integrators_vjp(SinewBackend *backend, SinewIntegrator *const *integrators, int count,
                                  const SinewIntegrationBars *bars, int *status, SinewError *err) {
  SinewIntegrationBars known;
  const SinewStatus taken = api_integration_bars_take(bars, &known, err);
  if (taken != SINEW_OK) return taken;
  if (!status && count > 0) return api_fail(err, SINEW_ERR_ARGUMENT, "sinew_integrators_vjp: status is NULL");
  Integrators x = {
      .who = "sinew_integrators_vjp", .integrator = integrators, .count = count, .bars = &known, .status = status};
  return run_list(backend, &x, err);
}
