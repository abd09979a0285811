// The critical path of a step and of its adjoint on n lanes: how many phases there are between barriers, and how many
// loads and stores the busiest lane of each makes. What a device needs for one world follows from these, since the
// lanes of a phase run side by side and phases one after the other.
//
//   critical_path IMAGE LANES
//
// IMAGE: of a model, as sinew-import writes it. Prints an object of JSON, for critical_path.py: means over the steps
// that are counted. Ends with 1 where the lanes change a bit of what one lane computes.
#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "physics/model/model_file.h"
#include "physics/step/step.h"
#include "tests/cuda/critical_path/counter.h"

// What the estimate of a time is made of. The first three are taken from other devices' published latencies of loads
// that hit a cache, of barriers of a block and of shuffles of a warp; no device has confirmed them. See
// cuda/MEASURED.md.
#define CYCLES_ACCESS 30.0
#define CYCLES_BARRIER 35.0
#define CYCLES_SHUFFLE 25.0
#define CLOCK_GHZ 1.755  // of an H100

// SEED is that of the controls' phases; STEPS are counted, after WARM_UP others.
enum { SEED = 1, WARM_UP = 60, STEPS = 20, BARRIERS = 400, MOST_CTRL = 4096 };

// A part of the path: accesses of the busiest lanes, what they wait for, lanes at work.
typedef struct Path {
  double phases, accesses, issued, all, shuffles, active;
} Path;

// What is on the path before one barrier of the text.
typedef struct Barrier {
  const char *file;
  int line;
  Path path;
} Barrier;

// Sums over the counted steps.
typedef struct Total {
  const char *name;
  Path path, one;  // all of it; its phases with one lane
  Path mark[SN_NMARK];
  double touched[COUNTER_PLACES];
  Barrier barrier[BARRIERS];
  int nbarrier;
} Total;

// A world with its adjoint, in memory that is counted or not.
typedef struct Run {
  const SnModel *m;
  SnWorld w;
  SnAdjoint a;
  size_t world_size, bars_size;
  void *world, *bars;
} Run;

static void run_step(SnLane *lane, void *arg) {
  Run *r = arg;
  sn_step(r->m, &r->w, lane);
}
static void run_forward(SnLane *lane, void *arg) {
  Run *r = arg;
  sn_forward(r->m, &r->w, lane);
}
static void run_clear(SnLane *lane, void *arg) {
  Run *r = arg;
  sn_adjoint_clear(r->m, &r->a, lane);
}
static void run_vjp(SnLane *lane, void *arg) {
  Run *r = arg;
  sn_step_vjp(r->m, &r->w, &r->a, lane);
  sn_position_vjp(r->m, &r->w, &r->a, lane);
}

static void must_run(int lanes, CounterBody *body, Run *r) {
  if (!counter_run(lanes, body, r)) exit(1);
}

// ---- sums

static void add_phase(Path *path, const CounterPhase *p) {
  path->phases++;
  path->accesses += (double)p->most;
  path->issued += (double)p->issued;
  path->all += (double)p->all;
  path->shuffles += p->shuffles;
  path->active += p->active;
}

static void add_barrier(Total *t, const CounterPhase *p) {
  const char *name = strrchr(p->file, '/') ? strrchr(p->file, '/') + 1 : p->file;
  int k = 0;
  while (k < t->nbarrier && (t->barrier[k].line != p->line || strcmp(t->barrier[k].file, name) != 0)) k++;
  if (k == BARRIERS) return;
  if (k == t->nbarrier) t->barrier[t->nbarrier++] = (Barrier){.file = name, .line = p->line};
  add_phase(&t->barrier[k].path, p);
}

static void add_run(Total *t) {
  int n;
  const CounterPhase *phase = counter_phases(&n);
  for (int i = 0; i < n; i++) {
    const CounterPhase *p = &phase[i];
    add_phase(&t->path, p);
    if (p->active == 1) add_phase(&t->one, p);
    add_phase(&t->mark[p->mark], p);
    add_barrier(t, p);
  }
  for (int k = 0; k < COUNTER_PLACES; k++) t->touched[k] += (double)counter_touched((CounterPlace)k);
}

static double microseconds(const Path *p) {
  const double cycles = p->accesses * CYCLES_ACCESS + p->phases * CYCLES_BARRIER + p->shuffles * CYCLES_SHUFFLE;
  return cycles / (CLOCK_GHZ * 1e3);
}

// ---- the run

// Smooth controls over the middle of their range, each with a phase of its own.
static void set_controls(const SnModel *m, SnWorld *w, const double *begin, int t) {
  for (int i = 0; i < m->nu && i < MOST_CTRL; i++) {
    const bool limited = m->actuator_ctrllimited[i];
    const double low = limited ? (double)m->actuator_ctrlrange[2 * i] : 0;
    const double high = limited ? (double)m->actuator_ctrlrange[2 * i + 1] : 1;
    w->ctrl[i] = (sn_real)(low + (high - low) * (0.5 + 0.5 * sin(begin[i] + 0.05 * t)));
  }
}

// Ends the program where a result of the lanes has other bits than that of one lane.
static void must_agree(const char *name, const sn_real *lanes, const sn_real *one, int n) {
  if (n == 0 || memcmp(lanes, one, sizeof *one * (size_t)n) == 0) return;
  fprintf(stderr, "%s depends on the number of lanes\n", name);
  exit(1);
}

static double draw(unsigned *seed) { return (double)rand_r(seed) / RAND_MAX; }

// One adjoint on the lanes, or on one, with the same bars to begin with.
static void run_adjoint(int lanes, Run *r, const double *bar) {
  const SnModel *m = r->m;
  must_run(lanes, run_forward, r);
  must_run(lanes, run_clear, r);
  for (int i = 0; i < m->nv; i++) {
    r->a.qpos_next_bar[i] = (sn_real)(1e-3 * bar[2 * i]);
    r->a.qvel_next_bar[i] = (sn_real)(1e-3 * bar[2 * i + 1]);
  }
  for (int i = 0; i < m->na; i++) r->a.act_next_bar[i] = (sn_real)1e-3;
  must_run(lanes, run_vjp, r);
}

static void count_adjoint(int lanes, Run *r, Run *one, unsigned *seed, Total *total) {
  const SnModel *m = r->m;
  double *bar = calloc((size_t)(2 * m->nv + 1), sizeof *bar);
  if (!bar) abort();
  for (int i = 0; i < 2 * m->nv; i++) bar[i] = draw(seed);
  run_adjoint(1, one, bar);
  run_adjoint(lanes, r, bar);
  add_run(total);
  must_agree("the bar of qpos", r->a.qpos_bar, one->a.qpos_bar, m->nv);
  must_agree("the bar of qvel", r->a.qvel_bar, one->a.qvel_bar, m->nv);
  must_agree("the bar of ctrl", r->a.ctrl_bar, one->a.ctrl_bar, m->nu);
  free(bar);
}

// Steps both worlds; that of `one` on one lane.
static void count(int lanes, Run *r, Run *one, Total *step, Total *adjoint, double rows[3]) {
  const SnModel *m = r->m;
  unsigned seed = SEED;
  double *begin = calloc(MOST_CTRL, sizeof *begin);
  if (!begin) abort();
  for (int i = 0; i < MOST_CTRL; i++) begin[i] = 6.28 * draw(&seed);
  for (int t = 0; t < WARM_UP + STEPS; t++) {
    set_controls(m, &r->w, begin, t);
    set_controls(m, &one->w, begin, t);
    if (t >= WARM_UP) count_adjoint(lanes, r, one, &seed, adjoint);
    must_run(1, run_step, one);
    must_run(t < WARM_UP ? 1 : lanes, run_step, r);
    if (t < WARM_UP) continue;
    add_run(step);
    must_agree("qpos", r->w.qpos, one->w.qpos, m->nq);
    must_agree("qvel", r->w.qvel, one->w.qvel, m->nv);
    must_agree("act", r->w.act, one->w.act, m->na);
    rows[0] += r->w.ncon[0];
    rows[1] += r->w.nefc[0];
    rows[2] += r->w.solver_niter[0];
  }
  free(begin);
  if (*r->w.warn) fprintf(stderr, "warnings %#x: the motion is not a good one\n", (unsigned)*r->w.warn);
}

// ---- the report

static const char *const place_name[COUNTER_PLACES] = {"world", "adjoint", "model", "fields", "stack"};

// Sums of all steps as the mean of one.
static void add_mean(cJSON *o, const char *name, double sum) { cJSON_AddNumberToObject(o, name, sum / STEPS); }

static void add_path(cJSON *o, const Path *p) {
  add_mean(o, "phases", p->phases);
  add_mean(o, "accesses", p->accesses);
  add_mean(o, "issued", p->issued);
  add_mean(o, "accesses_of_all_lanes", p->all);
  add_mean(o, "shuffles", p->shuffles);
}

static void add_total(cJSON *to, const Total *t) {
  cJSON *o = cJSON_AddObjectToObject(to, t->name);
  add_path(o, &t->path);
  add_mean(o, "phases_with_one_lane", t->one.phases);
  add_mean(o, "accesses_with_one_lane", t->one.accesses);
  add_mean(o, "estimate_us", microseconds(&t->path));
  cJSON *touched = cJSON_AddObjectToObject(o, "touched_bytes"), *stages = cJSON_AddObjectToObject(o, "stages");
  for (int k = 0; k < COUNTER_PLACES; k++) add_mean(touched, place_name[k], t->touched[k]);
  for (int k = 0; k < SN_NMARK; k++)
    if (t->mark[k].phases > 0) add_path(cJSON_AddObjectToObject(stages, sn_mark_name((SnMark)k)), &t->mark[k]);
  cJSON *barriers = cJSON_AddObjectToObject(o, "barriers");
  for (int k = 0; k < t->nbarrier; k++) {
    const Barrier *b = &t->barrier[k];
    char place[200];
    snprintf(place, sizeof place, "%s:%d", b->file, b->line);
    cJSON *one = cJSON_AddObjectToObject(barriers, place);
    add_path(one, &b->path);
    cJSON_AddNumberToObject(one, "lanes", b->path.active / b->path.phases);
  }
}

static void print(const double rows[3], const Total *step, const Total *adjoint) {
  cJSON *all = cJSON_CreateObject();
  add_mean(all, "contacts", rows[0]);
  add_mean(all, "rows", rows[1]);
  add_mean(all, "iterations", rows[2]);
  add_total(all, step);
  add_total(all, adjoint);
  char *text = cJSON_PrintUnformatted(all);
  if (text) puts(text);
  free(text);
  cJSON_Delete(all);
}

// ---- the program

static void begin_run(Run *r, const SnModel *m) {
  r->m = m;
  r->world_size = (sn_world_size(m) + 63) / 64 * 64;
  r->bars_size = (sn_adjoint_size(m) + 63) / 64 * 64;
  r->world = aligned_alloc(64, r->world_size);
  r->bars = aligned_alloc(64, r->bars_size);
  if (!r->world || !r->bars) abort();
  sn_world_init(m, &r->w, r->world);
  sn_adjoint_init(m, &r->a, r->bars);
  sn_world_reset(m, &r->w);
}

static void end_run(Run *r) {
  free(r->world);
  free(r->bars);
}

static void name_memory(const Run *r) {
  const SnModel *m = r->m;
  counter_range(COUNTER_WORLD, r->world, r->world_size);
  counter_range(COUNTER_BARS, r->bars, r->bars_size);
  counter_range(COUNTER_FIELDS, m, sizeof *m);
  counter_range(COUNTER_FIELDS, &r->w, sizeof r->w);
  counter_range(COUNTER_FIELDS, &r->a, sizeof r->a);
  counter_lanes();
#define SN_SIZE(name)       \
  const int name = m->name; \
  (void)name;
#include "physics/model/model_sizes.inc"
#undef SN_SIZE
#define SN_MODEL_FIELD(type, name, rows, cols) \
  counter_range(COUNTER_MODEL, m->name, sizeof(type) * (size_t)(rows) * (size_t)(cols));
#include "physics/model/model_fields.inc"
#undef SN_MODEL_FIELD
}

int main(int argc, char **argv) {
  const int lanes = argc == 3 ? atoi(argv[2]) : 0;
  if (lanes < 1 || lanes > COUNTER_LANES) {
    fprintf(stderr, "usage: critical_path IMAGE LANES, 1 to %d\n", COUNTER_LANES);
    return 2;
  }
  SnError err = {0};
  SnModel *m = sn_model_load_file(argv[1], &err);
  if (!m) {
    fprintf(stderr, "critical_path: %s\n", err.text);
    return 1;
  }
  static Total step = {.name = "step"}, adjoint = {.name = "adjoint"};
  static Run r, one;
  double rows[3] = {0};
  begin_run(&r, m);
  begin_run(&one, m);
  name_memory(&r);
  count(lanes, &r, &one, &step, &adjoint, rows);
  print(rows, &step, &adjoint);
  end_run(&r);
  end_run(&one);
  sn_model_free(m);
  return 0;
}
