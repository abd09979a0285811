// Sensitivities along the rollouts that a batch keeps: with S the derivatives of a state by the columns asked for,
//
//   S_{t+1} = A_t S_t + E_t,    Y_t = C_t S_t + F_t,
//
// A, E of the step and C, F of the sensors by the state and by the parameters. These matrices of some states at a time
// are made by all threads; then S goes on through them.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "clients/libsinew/batch_private.h"
#include "clients/libsinew/parameters_private.h"

static const ApiStruct sensitivity_type = {"SinewSensitivity", "sinew_default_sensitivity", sizeof(SinewSensitivity),
                                           API_END(SinewSensitivity, status)};

enum { BLOCK_NUMBERS = 4 << 20 };  // that matrices of a block may have, unless one state of all rollouts has more

// What a call works with.
typedef struct Work {
  const SinewSensitivity *out;
  size_t n, ns, np, cols;  // rows of S and Y, parameters, columns
  int count, steps;        // of the rollouts
  SnLinearization block;   // its matrices
  SnParameterRows *by;     // of each thread
  void *memory;            // what they hold
  double *S, *next;        // (count, n, cols), (n, cols)
} Work;

static void free_work(Work *w) {
  free(w->block.A);
  free(w->block.C);
  free(w->block.E);
  free(w->block.F);
  free(w->by);
  free(w->S);
  free(w->next);
  free(w->memory);
}

static SinewStatus make_rows(Work *w, int threads, SinewError *err) {
  const SnModelTangents *tangents = w->out->parameters->tangents;
  const size_t size = sn_parameter_rows_size(tangents), n = (size_t)threads;
  w->by = calloc(n, sizeof *w->by);
  w->memory = aligned_alloc(64, size * n);
  if (!w->by || !w->memory)
    return api_fail(err, SINEW_ERR_MEMORY, "derivatives by %d parameters: out of memory", (int)w->np);
  for (size_t i = 0; i < n; ++i) w->by[i] = (SnParameterRows){tangents, (char *)w->memory + i * size};
  w->block.by = w->by;
  return SINEW_OK;
}

// Makes room for the matrices of as many states as a block has.
static SinewStatus make_work(Work *w, const SinewBatch *b, SinewError *err) {
  const size_t count = (size_t)w->count, sensors = w->out->sensordata ? w->ns : 0;
  const size_t state = count * (w->n + sensors) * (w->n + w->np), most = (size_t)BLOCK_NUMBERS / (state + 1);
  const size_t states = most < 1 ? 1 : most > (size_t)w->steps + 1 ? (size_t)w->steps + 1 : most, rows = count * states;
  ApiRoom room = {0};
  w->block.count = w->count;
  w->block.nstep = (int)states;
  w->block.A = api_batch_alloc(rows * w->n * w->n, sizeof *w->block.A, &room);
  if (w->np > 0) w->block.E = api_batch_alloc(rows * w->n * w->np, sizeof *w->block.E, &room);
  if (sensors > 0) w->block.C = api_batch_alloc(rows * sensors * w->n, sizeof *w->block.C, &room);
  if (sensors > 0 && w->np > 0) w->block.F = api_batch_alloc(rows * sensors * w->np, sizeof *w->block.F, &room);
  w->S = api_batch_alloc(count * w->n * w->cols, sizeof *w->S, &room);
  w->next = api_batch_alloc(w->n * w->cols, sizeof *w->next, &room);
  if (room.full) return api_fail(err, SINEW_ERR_MEMORY, "sensitivities of %d rollouts: out of memory", w->count);
  return w->np > 0 ? make_rows(w, sn_pool_size(b->backend->pool), err) : SINEW_OK;
}

// Y = J S + P, with P (rows, np) in the first columns; NULL: zero.
static void multiply(const Work *w, double *Y, const double *J, const double *S, const double *P, size_t rows) {
  const size_t n = w->n, cols = w->cols;
  for (size_t r = 0; r < rows; ++r) {
    double *y = Y + r * cols;
    memset(y, 0, cols * sizeof *y);
    if (P) memcpy(y, P + r * w->np, w->np * sizeof *y);
    for (size_t j = 0; j < n; ++j) {
      const double a = J[r * n + j];
      if (a == 0) continue;  // rows of activations have one number each
      for (size_t c = 0; c < cols; ++c) y[c] += a * S[j * cols + c];
    }
  }
}

// Goes on through the states of a block, rollout i.
static void go_through(Work *w, int i, int states) {
  const SnLinearization *x = &w->block;
  const size_t n = w->n, ns = w->ns, np = w->np, cols = w->cols, rows = (size_t)w->steps + 1;
  double *S = w->S + (size_t)i * n * cols;
  for (int t = 0; t < states; ++t) {
    const size_t k = (size_t)i * (size_t)x->nstep + (size_t)t;
    const size_t to = (size_t)i * rows + (size_t)(x->first + t);
    if (w->out->state) memcpy(w->out->state + to * n * cols, S, n * cols * sizeof *S);
    if (x->C)
      multiply(w, w->out->sensordata + to * ns * cols, x->C + k * ns * n, S, x->F ? x->F + k * ns * np : NULL, ns);
    if (x->first + t == w->steps) return;
    multiply(w, w->next, x->A + k * n * n, S, x->E ? x->E + k * n * np : NULL, n);
    memcpy(S, w->next, n * cols * sizeof *S);
  }
}

static bool is_finite(const double *x, size_t n) {
  int bad = 0;
  for (size_t i = 0; x && i < n; ++i) bad |= !isfinite(x[i]);
  return !bad;
}

// Results of rollout i, all states: zeros, or whether they are finite.
static bool finish(const Work *w, int i, bool good) {
  const size_t rows = (size_t)w->steps + 1, states = rows * w->n * w->cols, sensors = rows * w->ns * w->cols;
  double *state = w->out->state ? w->out->state + (size_t)i * states : NULL;
  double *sensor = w->out->sensordata ? w->out->sensordata + (size_t)i * sensors : NULL;
  if (good && is_finite(state, states) && is_finite(sensor, sensors)) return true;
  if (state) memset(state, 0, states * sizeof *state);
  if (sensor) memset(sensor, 0, sensors * sizeof *sensor);
  return false;
}

static SinewStatus go_along(SinewBatch *b, Work *w, bool *good, SinewError *err) {
  SnLinearization *x = &w->block;
  api_interrupt_begin(&b->interrupt);
  const SnClock clock = api_interrupt_clock(&b->interrupt, false);
  const double until = api_interrupt_until(&b->interrupt);
  const int most = x->nstep;
  for (; x->first <= w->steps; x->first += most) {
    const int left = w->steps + 1 - x->first;
    x->nstep = left < most ? left : most;
    if (!sn_backend_linearize(b->backend->backend, b->loaded, x, &clock, until) || api_interrupt_look(&b->interrupt))
      return api_batch_unfinished(b, err);
    for (int i = 0; i < w->count; ++i) {
      good[i] = good[i] && x->status[i] == SN_GRADIENT_DONE;
      if (good[i]) go_through(w, i, x->nstep);
    }
  }
  for (int i = 0; i < w->count; ++i) {
    const bool done = finish(w, i, good[i]);
    if (w->out->status) w->out->status[i] = done ? SINEW_OK : SINEW_ERR_DIVERGED;
  }
  return api_ok(err);
}

static SinewStatus check(const SinewBatch *b, const SinewSensitivity *out, const char *who, SinewError *err) {
  const SnBackend *backend = b->backend->backend;
  SinewStatus status = api_check_kept(b, err);
  if (status == SINEW_OK) status = api_check_jacobians(b, who, err);
  if (status != SINEW_OK) return status;
  if (!sn_backend_has(backend, SN_BACKEND_LINEARIZE) || !sn_backend_has(backend, SN_BACKEND_PARAMETERS))
    return api_fail(err, SINEW_ERR_UNSUPPORTED, "%s: the backend '%s' makes no derivatives by the model", who,
                    sn_backend_name(backend));
  const int parameters = sinew_parameters_count(out->parameters);
  if (out->columns < parameters)
    return api_fail(err, SINEW_ERR_ARGUMENT, "%s: columns is %d, at least the %d of the parameters are allowed", who,
                    out->columns, parameters);
  if (out->parameters) status = api_parameters_fit(out->parameters, api_model_structure(b->model), err);
  if (status == SINEW_OK && out->sensordata) status = api_check_sensors(b->m, out->sensors, who, err);
  const size_t n = (size_t)sn_tangent_size(b->m), each = n * (size_t)out->columns;
  for (size_t i = 0; status == SINEW_OK && out->initial && i < (size_t)b->kept->count * each; ++i)
    if (!isfinite(out->initial[i]))
      return api_fail(err, SINEW_ERR_ARGUMENT, "%s: initial of rollout %zu, number %zu: not finite", who, i / each,
                      i % each);
  return status;
}

static SinewStatus sensitivity(SinewBatch *b, const SinewSensitivity *in, SinewError *err) {
  const char *const who = "sinew_batch_sensitivity";
  SinewSensitivity out = sinew_default_sensitivity();
  SinewStatus status = api_take(&sensitivity_type, in, &out, err);
  if (status == SINEW_OK) status = check(b, &out, who, err);
  if (status != SINEW_OK) return status;
  const ApiKept *k = b->kept;
  Work w = {.out = &out,
            .n = (size_t)sn_tangent_size(b->m),
            .ns = (size_t)b->m->nsensordata,
            .np = (size_t)sinew_parameters_count(out.parameters),
            .cols = (size_t)out.columns,
            .count = k->count,
            .steps = k->steps,
            .block = {.status = k->linearized, .sensors = out.sensors}};
  if (b->cfd.use != SINEW_CFD_NONE) w.block.cfd = b->cfd.settings;
  bool *good = calloc((size_t)k->count + 1, sizeof *good);
  status = good ? make_work(&w, b, err) : api_fail(err, SINEW_ERR_MEMORY, "%s: out of memory", who);
  if (status == SINEW_OK) {
    for (int i = 0; i < k->count; ++i) good[i] = k->rolled[i];
    if (out.initial) memcpy(w.S, out.initial, (size_t)k->count * w.n * w.cols * sizeof *w.S);
    status = go_along(b, &w, good, err);
  }
  free(good);
  free_work(&w);
  return status;
}

SinewStatus sinew_batch_sensitivity(SinewBatch *batch, const SinewSensitivity *out, SinewError *err) {
  if (!batch) return api_fail(err, SINEW_ERR_ARGUMENT, "sinew_batch_sensitivity: batch is NULL");
  const SinewStatus status = api_enter_pair(&batch->guard, "batch", batch->backend, err);
  if (status != SINEW_OK) return status;
  return api_leave_pair(&batch->guard, batch->backend, sensitivity(batch, out, err));
}
