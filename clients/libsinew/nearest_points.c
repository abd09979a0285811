// Nearest points of many pairs of geoms at many states, and the way back: each thread takes the next state.
//
// A state's poses come from the stages of kinematics alone. On the way back each pair gives torques and forces on its
// geoms (physics/collision/distance.c); the sweep of the kinematics turns their sum into derivatives by positions,
// mocap bodies and the numbers of the model.
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "clients/libsinew/backend_private.h"
#include "clients/libsinew/coordinates_private.h"
#include "clients/libsinew/data_private.h"
#include "clients/libsinew/interrupt_private.h"
#include "clients/libsinew/parameters_private.h"
#include "physics/base/vec.h"
#include "physics/collision/collision.h"
#include "physics/dynamics/dynamics.h"
#include "physics/sensor/sensor.h"

static const ApiStruct points_type = {"SinewNearestPoints", "sinew_default_nearest_points", sizeof(SinewNearestPoints),
                                      API_END(SinewNearestPoints, normal)};
static const ApiStruct bars_type = {"SinewNearestBars", "sinew_default_nearest_bars", sizeof(SinewNearestBars),
                                    API_END(SinewNearestBars, parameter)};

// What a thread works with.
typedef struct Bench {
  SnGrowingWorld *body;
  SnAdjoint *adjoint;  // NULL without bars
  ApiBars model;       // one bar, where parameters are asked for
  double *tangent;     // (nv) scratch
} Bench;

typedef struct Call {
  const char *who;
  SinewNearestPoints at;
  SinewNearestBars bars;
  bool back;
  ApiInterrupt interrupt;
  int threads;
  Bench *bench;        // (threads)
  atomic_int next;     // state to be taken
  atomic_int *status;  // (count) of each state
} Call;

// ---- one state ----

static void place(const SnModel *m, const SnWorld *w, const int *pair, SnPlacedGeom g[2]) {
  for (int i = 0; i < 2; ++i) {
    g[i].geom = pair[i];
    sn_geom_pose(m, w, pair[i], g[i].pos, g[i].mat);
  }
}

static void give(const SinewNearestPoints *at, size_t k, const SnDistance *r) {
  if (at->dist) at->dist[k] = r->dist;
  if (at->from) memcpy(at->from + 3 * k, r->from, sizeof r->from);
  if (at->to) memcpy(at->to + 3 * k, r->to, sizeof r->to);
  if (at->normal) memcpy(at->normal + 3 * k, r->normal, sizeof r->normal);
}

static void take3(sn_real *to, const double *bar, size_t k) {
  if (bar) memcpy(to, bar + 3 * k, 3 * sizeof *to);
}

// Adds what the bars of pair k give to the adjoint.
static void pair_vjp(const Call *c, const SnModel *m, const SnWorld *w, SnAdjoint *a, const SnPlacedGeom g[2],
                     const SnDistance *r, size_t k) {
  SnDistanceBar bar = {.dist = c->bars.dist ? c->bars.dist[k] : 0};
  sn_real wrench[12] = {0}, sizes[6] = {0};
  take3(bar.from, c->bars.from, k);
  take3(bar.to, c->bars.to, k);
  take3(bar.normal, c->bars.normal, k);
  if (c->bars.surrogate)
    sn_geom_distance_surrogate_vjp(m, g, g + 1, r, &bar, wrench);
  else
    sn_geom_distance_vjp(m, g, g + 1, r, &bar, wrench);
  for (int side = 0; side < 2; ++side)
    sn_object_pose_vjp(m, w, a, SN_OBJ_GEOM, g[side].geom, wrench + 6 * side + 3, wrench + 6 * side);
  const SnModelBar *model = sn_model_bar(a);
  if (!model || !model->geom_size || (!model->geom_sized[g[0].geom] && !model->geom_sized[g[1].geom])) return;
  sn_geom_distance_size_vjp(m, g, g + 1, r, &bar, sizes);
  for (int i = 0; i < 6; ++i)
    if (model->geom_sized[g[i / 3].geom]) model->geom_size[3 * g[i / 3].geom + i % 3] += sizes[i];
}

// Writes the derivatives by state i. Returns SINEW_ERR_DIVERGED where one is not finite.
static SinewStatus write_bars(const Call *c, const Bench *b, size_t i) {
  const SnModel *m = &b->body->model;
  const SnAdjoint *a = b->adjoint;
  const size_t nv = (size_t)m->nv, nq = (size_t)m->nq;
  double sum = 0;
  for (size_t k = 0; k < nv; ++k) sum += fabs(b->tangent[k] = a->qpos_bar[k]);
  if (c->bars.qpos && c->bars.coordinates == SINEW_ARRAY)
    api_bar_of_array(m, b->body->world.qpos, b->tangent, c->bars.qpos + i * nq);
  else if (c->bars.qpos && nv > 0)
    memcpy(c->bars.qpos + i * nv, b->tangent, nv * sizeof *b->tangent);
  for (size_t k = 0; k < 6 * (size_t)m->nmocap; ++k) sum += fabs(a->mocap_bar[k]);
  if (c->bars.mocap) api_bar_of_mocap(m, a->mocap_bar, c->bars.mocap + i * 6 * (size_t)m->nmocap);
  if (!b->model.bar) return isfinite(sum) ? SINEW_OK : SINEW_ERR_DIVERGED;
  const size_t n = (size_t)sinew_parameters_count(c->bars.parameters);
  double *out = c->bars.parameter + i * n;
  sn_model_bar_apply(c->bars.parameters->tangents, b->model.bar, 0, out);
  for (size_t k = 0; k < n; ++k) sum += fabs(out[k]);
  return isfinite(sum) ? SINEW_OK : SINEW_ERR_DIVERGED;
}

static SinewStatus work_on(Call *c, Bench *b, size_t i, SinewError *err) {
  const SnModel *m = &b->body->model;
  SnWorld *w = &b->body->world;
  const size_t npair = (size_t)c->at.npair;
  const SinewState state = {.qpos = c->at.qpos ? c->at.qpos + i * (size_t)m->nq : NULL,
                            .mocap = c->at.mocap ? c->at.mocap + 7 * i * (size_t)m->nmocap : NULL};
  SinewStatus status = api_set_state(m, w, &state, c->who, err);
  if (status != SINEW_OK) return status;
  sn_kinematics(m, w, &b->body->lane);
  sn_com_pos(m, w, &b->body->lane);
  if (c->back) sn_adjoint_clear(m, b->adjoint, &b->body->lane);
  if (b->model.bar) sn_model_bar_init(c->bars.parameters->tangents, b->model.bar, b->model.memory);
  for (size_t k = 0; k < npair; ++k) {
    SnPlacedGeom g[2];
    SnDistance r;
    SnError why;
    if (k % 64 == 63 && api_interrupt_look(&c->interrupt)) return api_interrupt_fail(err);
    place(m, w, c->at.pair + 2 * k, g);
    if (sn_geom_distance(m, g, g + 1, c->at.limit == 0 ? (double)INFINITY : c->at.limit, &r, &why) != SN_OK)
      return api_hand_on(err, &why);
    if (c->back)
      pair_vjp(c, m, w, b->adjoint, g, &r, i * npair + k);
    else
      give(&c->at, i * npair + k, &r);
  }
  if (!c->back) return SINEW_OK;
  sn_kinematics_vjp(m, w, b->adjoint, &b->body->lane);
  status = write_bars(c, b, i);
  return status == SINEW_OK ? status : api_fail(err, status, "a derivative is not finite");
}

// ---- a call ----

static void work(void *argument, int thread) {
  Call *c = argument;
  for (int i = atomic_fetch_add(&c->next, 1); i < c->at.count && !api_interrupt_look(&c->interrupt);
       i = atomic_fetch_add(&c->next, 1))
    atomic_store(&c->status[i], (int)work_on(c, &c->bench[thread], (size_t)i, NULL));
}

static void watch(void *argument) { api_interrupt_look(&((Call *)argument)->interrupt); }

static SinewStatus check_points(const Call *c, const SinewBackend *backend, SinewError *err) {
  const SinewNearestPoints *at = &c->at;
  if (!backend || !at->model)
    return api_fail(err, SINEW_ERR_ARGUMENT, "%s: %s is NULL", c->who,
                    backend ? "SinewNearestPoints.model" : "backend");
  if (!backend->pool)
    return api_fail(err, SINEW_ERR_UNSUPPORTED, "%s: the backend is a device; nearest points need threads of the CPU",
                    c->who);
  if (at->count < 0 || at->npair < 0)
    return api_fail(err, SINEW_ERR_ARGUMENT, "%s: SinewNearestPoints.%s is %d; it has to be at least 0", c->who,
                    at->count < 0 ? "count" : "npair", at->count < 0 ? at->count : at->npair);
  if (at->npair > 0 && !at->pair)
    return api_fail(err, SINEW_ERR_ARGUMENT, "%s: SinewNearestPoints.pair is NULL", c->who);
  if (isnan(at->limit))
    return api_fail(err, SINEW_ERR_ARGUMENT, "%s: SinewNearestPoints.limit is not a number", c->who);
  const SnModel *m = at->model->model;
  for (int k = 0; k < 2 * at->npair; ++k)
    if (at->pair[k] < 0 || at->pair[k] >= m->ngeom)
      return api_fail(err, SINEW_ERR_ARGUMENT, "%s: SinewNearestPoints.pair[%d] is %d; the model has %d geoms", c->who,
                      k, at->pair[k], m->ngeom);
  return SINEW_OK;
}

static SinewStatus check_bars(const Call *c, SinewError *err) {
  const size_t n = (size_t)c->at.count * (size_t)c->at.npair;
  const struct {
    const char *name;
    const double *x;
    size_t n;
  } part[] = {{"dist", c->bars.dist, n},
              {"from", c->bars.from, 3 * n},
              {"to", c->bars.to, 3 * n},
              {"normal", c->bars.normal, 3 * n}};
  for (int k = 0; k < 4; ++k)
    for (size_t i = 0; part[k].x && i < part[k].n; ++i)
      if (!isfinite(part[k].x[i]))
        return api_fail(err, SINEW_ERR_ARGUMENT, "%s: SinewNearestBars.%s[%zu] is %g; a finite number is wanted",
                        c->who, part[k].name, i, part[k].x[i]);
  if (c->bars.coordinates != SINEW_TANGENT && c->bars.coordinates != SINEW_ARRAY)
    return api_fail(err, SINEW_ERR_ARGUMENT, "%s: SinewNearestBars.coordinates is %d; allowed are 0 and 1", c->who,
                    (int)c->bars.coordinates);
  if (!c->bars.parameter) return SINEW_OK;
  if (!c->bars.parameters)
    return api_fail(err, SINEW_ERR_ARGUMENT, "%s: SinewNearestBars.parameters is NULL, parameter is not", c->who);
  return api_parameters_fit(c->bars.parameters, api_model_structure(c->at.model), err);
}

static SinewStatus open_bench(const Call *c, Bench *b, SinewError *err) {
  const SnModel *m = c->at.model->model;
  SnError why;
  b->body = sn_growing_world_create(m, &why);
  if (!b->body) return api_hand_on(err, &why);
  if (!c->back) return SINEW_OK;
  b->adjoint = sn_growing_world_adjoint(b->body, &why);
  if (!b->adjoint) return api_hand_on(err, &why);
  b->tangent = malloc(sizeof *b->tangent * ((size_t)m->nv + 1));
  if (!b->tangent) return api_fail(err, SINEW_ERR_MEMORY, "%s: out of memory", c->who);
  if (!c->bars.parameter) return SINEW_OK;
  const SinewStatus status = api_bars_make(&b->model, c->bars.parameters, 1, err);
  if (status == SINEW_OK) b->adjoint->host->model = b->model.bar;
  return status;
}

static void close_call(Call *c) {
  for (int i = 0; c->bench && i < c->threads; ++i) {
    api_bars_free(&c->bench[i].model);
    free(c->bench[i].tangent);
    sn_growing_world_free(c->bench[i].body);
  }
  free(c->bench);
  free(c->status);
}

// Works on all states. Of those that fail the first one is told of, whatever thread had it.
static SinewStatus run(Call *c, SinewBackend *backend, SinewError *err) {
  c->threads = c->at.count > 1 ? sn_pool_size(backend->pool) : 1;
  c->bench = calloc((size_t)c->threads, sizeof *c->bench);
  c->status = calloc((size_t)c->at.count + 1, sizeof *c->status);
  SinewStatus status = SINEW_OK;
  if (!c->bench || !c->status) status = api_fail(err, SINEW_ERR_MEMORY, "%s: out of memory", c->who);
  for (int i = 0; status == SINEW_OK && i < c->threads; ++i) status = open_bench(c, &c->bench[i], err);
  if (status != SINEW_OK) return status;
  c->interrupt = (ApiInterrupt){.ask = c->at.interrupt, .user = c->at.interrupt_user};
  api_interrupt_begin(&c->interrupt);
  if (c->threads > 1)
    sn_pool_run_watched(backend->pool, work, c->at.interrupt ? watch : NULL, c);
  else
    work(c, 0);
  if (api_interrupt_look(&c->interrupt)) return api_interrupt_fail(err);
  for (int i = 0; i < c->at.count; ++i) {
    SinewError why;
    if (atomic_load(&c->status[i]) == SINEW_OK) continue;
    status = work_on(c, &c->bench[0], (size_t)i, &why);
    return api_fail(err, status, "%s: state %d: %s", c->who, i, why.text);
  }
  return api_ok(err);
}

static SinewStatus enter_and_run(SinewBackend *backend, Call *c, SinewError *err) {
  SinewStatus status = check_points(c, backend, err);
  if (status == SINEW_OK && c->back) status = check_bars(c, err);
  if (status == SINEW_OK) status = api_enter_backend(backend, "nearest points", err);
  if (status != SINEW_OK) return status;
  status = run(c, backend, err);
  close_call(c);
  return api_leave(&backend->guard, status);
}

SinewStatus sinew_nearest_points(SinewBackend *backend, const SinewNearestPoints *points, SinewError *err) {
  Call c = {.who = "sinew_nearest_points", .at = sinew_default_nearest_points()};
  const SinewStatus status = api_take(&points_type, points, &c.at, err);
  return status == SINEW_OK ? enter_and_run(backend, &c, err) : status;
}

SinewStatus sinew_nearest_points_vjp(SinewBackend *backend, const SinewNearestPoints *points,
                                     const SinewNearestBars *bars, SinewError *err) {
  Call c = {.who = "sinew_nearest_points_vjp",
            .at = sinew_default_nearest_points(),
            .bars = sinew_default_nearest_bars(),
            .back = true};
  SinewStatus status = api_take(&points_type, points, &c.at, err);
  if (status == SINEW_OK) status = api_take(&bars_type, bars, &c.bars, err);
  return status == SINEW_OK ? enter_and_run(backend, &c, err) : status;
}
