#include "clients/bench/bench_task.h"

#include <stdlib.h>
#include <string.h>

#include "physics/import/import_mjcf.h"

static SnCode set_all(const BenchTaskArgs *args, SnSettings *s, SnError *err) {
  SnCode code = SN_OK;
  for (int i = 0; code == SN_OK && i < args->nsettings; ++i) code = sn_settings_assign(s, args->settings[i], err);
  return code;
}

static SnTask *load_task(const BenchTaskArgs *args, SnError *err) {
  char path[BENCH_PATH];
  if (bench_task_path(args, path)) return sn_task_load(path, err);
  sn_fail(err, SN_ERR_IO, BENCH_NO_TASKS);
  return NULL;
}

static SnCode load_model(const BenchTaskArgs *args, const SnTask *task, PlantBody *body, SnModel **model,
                         SnError *err) {
  char text[4096];
  if (!plant_body_open(body, &args->places, NULL, task->model, text, sizeof text))
    return args->places.xml ? sn_fail(err, SN_ERR_NOT_FOUND, "%s", text)
                            : sn_task_model_fault(task, SN_ERR_NOT_FOUND, text, err);
  *model = sn_import_mjmodel(body->m, err);
  return *model ? SN_OK : err->code;
}

static sn_real *reals(int n) { return calloc((size_t)n + 1, sizeof(sn_real)); }

static void copy(sn_real *to, const sn_real *from, int n) { memcpy(to, from, sizeof *to * (size_t)n); }

static SnCode make_arrays(BenchTask *t, SnError *err) {
  const SnModel *m = t->m;
  t->qpos = reals(m->nq);
  t->qvel = reals(m->nv);
  t->act = reals(m->na);
  t->mocap_pos = reals(3 * m->nmocap);
  t->mocap_quat = reals(4 * m->nmocap);
  t->ctrl = reals(t->steps * m->nu);
  t->target = reals((t->steps + 1) * t->cost->ntarget);
  return t->qpos && t->qvel && t->act && t->mocap_pos && t->mocap_quat && t->ctrl && t->target
             ? SN_OK
             : sn_fail(err, SN_ERR_MEMORY, "out of memory");
}

// The task's initial state and controls, and the targets over the steps.
static SnCode prepare(BenchTask *t, uint64_t seed, SnError *err) {
  const SnModel *m = t->m;
  SnLaneShared shared;
  SnLane lane = {.n = 1, .shared = &shared};
  SnWorld w;
  SnCode code = make_arrays(t, err);
  if (code != SN_OK) return code;
  void *memory = aligned_alloc(64, (sn_world_size(m) + 63) / 64 * 64);
  if (!memory) return sn_fail(err, SN_ERR_MEMORY, "out of memory");
  sn_world_init(m, &w, memory);
  code = sn_task_reset(t->task, m, &w, &lane, seed, NULL, (double)INFINITY, err);
  if (code == SN_OK) {
    sn_cost_capture(t->cost, m, &w, &lane);
    copy(t->qpos, w.qpos, m->nq);
    copy(t->qvel, w.qvel, m->nv);
    copy(t->act, w.act, m->na);
    copy(t->mocap_pos, w.mocap_pos, 3 * m->nmocap);
    copy(t->mocap_quat, w.mocap_quat, 4 * m->nmocap);
    for (int k = 0; k < t->steps; ++k) sn_task_initial_plan(t->task, m, seed, t->ctrl + k * m->nu);
    sn_cost_schedule(t->cost, 0, (double)m->opt.timestep, t->steps + 1, t->target);
  }
  free(memory);
  return code;
}

SnCode bench_task_open(BenchTask *t, const BenchTaskArgs *args, int steps, SnError *err) {
  memset(t, 0, sizeof *t);
  if (!(t->task = load_task(args, err))) return err->code;
  SnCode code = set_all(args, &t->task->settings, err);
  if (code == SN_OK) code = sn_settings_validate(&t->task->settings, err);
  if (code == SN_OK) code = load_model(args, t->task, &t->body, &t->loaded, err);
  if (code != SN_OK) return code;
  if (!(t->m = sn_task_model(t->task, t->loaded, err))) return err->code;
  if (!(t->cost = sn_cost_create(t->task, t->m, err))) return err->code;
  t->steps = steps > 0 ? steps : t->task->settings.horizon;
  return prepare(t, args->seed, err);
}

void bench_task_close(BenchTask *t) {
  sn_real *all[] = {t->qpos, t->qvel, t->act, t->mocap_pos, t->mocap_quat, t->ctrl, t->target};
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i) free(all[i]);
  sn_cost_free(t->cost);
  sn_model_free(t->m);
  sn_model_free(t->loaded);
  sn_task_free(t->task);
  plant_body_free(&t->body);
}

SnState bench_task_state(const BenchTask *t) {
  return (SnState){
      .qpos = t->qpos, .qvel = t->qvel, .act = t->act, .mocap_pos = t->mocap_pos, .mocap_quat = t->mocap_quat};
}
