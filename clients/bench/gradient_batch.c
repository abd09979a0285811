#include "clients/bench/gradient_batch_private.h"

#include <math.h>
#include <stdlib.h>

#include "clients/base/progress.h"
#include "clients/base/statistics.h"
#include "clients/bench/bench_report.h"
#include "planner/task/settings.h"

static int setting(void) { return sn_settings_find("gradient"); }

static const char *method_name(int method) {
  static char text[64];
  return sn_settings_choice_name(setting(), method, text, sizeof text);
}

typedef struct GradientBatch {
  const DrivenModel *driven;
  BenchBackend *on;
  SnBackendModel *device;
  SnGradient *item;
  sn_real *ctrl, *ctrl_bar;  // (count, steps, nu)
  int count;
} GradientBatch;

// Item 0 is the driven rollout, the others have noise in their controls.
static SnCode make_items(GradientBatch *x, SnError *err) {
  const SnModel *m = x->driven->o.m;
  const int steps = x->driven->steps;
  const size_t size = (size_t)steps * (size_t)m->nu;
  SnNoiseSettings noise = {.seed = 1, .spacing = (steps + 14) / 15, .interpolation = SN_SPLINE_LINEAR};
  noise.colour = SN_NOISE_PINK;
  noise.scale = SN_R(0.1);
  noise.knots = sn_noise_knots(steps, noise.spacing, noise.phase);
  x->item = calloc((size_t)x->count, sizeof *x->item);
  x->ctrl = calloc((size_t)x->count * size + 1, sizeof *x->ctrl);
  x->ctrl_bar = calloc((size_t)x->count * size + 1, sizeof *x->ctrl_bar);
  sn_real *scratch = calloc(3 * (size_t)noise.knots, sizeof *scratch);
  const bool ok = x->item && x->ctrl && x->ctrl_bar && scratch;
  for (int i = 0; i < x->count && ok; ++i) {
    sn_noise_candidate(m, &noise, i, x->driven->ctrl, steps, scratch, x->ctrl + (size_t)i * size);
    x->item[i] = (SnGradient){.state = x->driven->initial,
                              .ctrl = x->ctrl + (size_t)i * size,
                              .target = x->driven->target,
                              .nstep = steps,
                              .max_velocity = 1e6,
                              .ctrl_bar = x->ctrl_bar + (size_t)i * size};
  }
  free(scratch);
  return ok ? SN_OK : sn_fail(err, SN_ERR_MEMORY, "no memory for %d gradients", x->count);
}

// Returns the time that `count` items take [ms]; negative when the backend stopped.
static double pass(GradientBatch *x, const SnGradientSettings *settings, int count) {
  const SnClock clock = sn_clock_monotonic();
  SnGradientBatch batch = {.settings = *settings, .item = x->item, .count = count};
  for (int i = 0; i < count; ++i) x->item[i].status = SN_GRADIENT_PENDING;
  const double t = sn_now_us();
  if (!sn_backend_gradients(x->on->backend, x->device, &batch, &clock, INFINITY)) return -1;
  return 1e-3 * (sn_now_us() - t);
}

// A row; *one: time of one item by this method [ms], NaN until it is measured.
static SnCode measure(GradientBatch *x, const SnGradientSettings *settings, int count, int rounds, double *one,
                      cJSON *rows, SnError *err) {
  double spent[BENCH_ROUNDS];
  double warm = pass(x, settings, count);
  for (int i = 0; i < rounds && warm >= 0; ++i) {
    sn_progress("%s, %d items, round %d of %d", method_name((int)settings->method), count, i + 1, rounds);
    spent[i] = warm = pass(x, settings, count);
  }
  if (warm < 0) return bench_backend_stopped(x->on, err);
  const double ms = sn_median(spent, rounds);
  int done = 0;
  for (int i = 0; i < count; ++i) done += x->item[i].status == SN_GRADIENT_DONE;
  if (count == 1) *one = ms;
  cJSON *row = cJSON_CreateObject();
  cJSON_AddStringToObject(row, "method", method_name((int)settings->method));
  cJSON_AddNumberToObject(row, "items", count);
  cJSON_AddNumberToObject(row, "done", done);
  cJSON_AddNumberToObject(row, "ms", ms);
  cJSON_AddNumberToObject(row, "ms_low", spent[0]);
  cJSON_AddNumberToObject(row, "ms_high", spent[rounds - 1]);
  cJSON_AddNumberToObject(row, "ms_an_item", ms / count);
  cJSON_AddNumberToObject(row, "over_one", ms / *one);  // null where one item was not asked for
  cJSON_AddItemToArray(rows, row);
  return SN_OK;
}

cJSON *gradient_batch_run(const DrivenModel *driven, BenchBackend *on, const SnGradientSettings *settings,
                          const GradientBatchSizes *sizes, SnError *err) {
  GradientBatch x = {.driven = driven, .on = on};
  SnBackend *b = on->backend;
  char name[64];
  for (int i = 0; i < sizes->n; ++i)
    if (sizes->item[i] > x.count) x.count = sizes->item[i];
  cJSON *rows = cJSON_CreateArray();
  SnCode code = make_items(&x, err);
  if (code == SN_OK && !(x.device = sn_backend_load(b, driven->o.m, driven->cost, driven->steps, err)))
    code = err->code;
  if (code == SN_OK) code = sn_backend_reserve_gradients(b, x.device, x.count, err);
  for (int k = 0; code == SN_OK && sn_settings_choice_name(setting(), k, name, sizeof name)[0]; ++k) {
    SnGradientSettings of = *settings;
    double one = NAN;
    of.method = (SnGradientMethod)k;
    for (int i = 0; i < sizes->n && code == SN_OK; ++i)
      code = measure(&x, &of, sizes->item[i], sizes->rounds, &one, rows, err);
  }
  if (x.device) sn_backend_unload(b, x.device);
  free(x.item);
  free(x.ctrl);
  free(x.ctrl_bar);
  if (code == SN_OK) return rows;
  cJSON_Delete(rows);
  return NULL;
}
