// Where a session plans when nobody has said (`backend: auto`): on the device for what it is measured to be faster at,
// else on the CPU. A plan by one gradient after another stays on the CPU so; candidates of sampling and many starts go
// to the device where there are enough of them.
//
// The measurement has backends of its own, beside those that plan, and takes about a second of one loader thread, once
// for a model, a device, a build and a number of threads. Its result is kept beside the compiled model. A device
// belongs to the thread that opened it, and its memory is wanted by those who plan: so they are opened for a
// measurement alone and closed behind it, and where a result is kept nothing is opened.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/planning/backends_private.h"
#include "physics/base/folders.h"
#include "physics/model/model_file.h"

enum { STEPS = 8, MOST = 4096 };
static const double seconds = 1.0;

// What a planner asks for at once. False: something that a device does not make, or one thing after another.
static bool asks_for(const SnSettings *s, SnContestKind *kind, int *count) {
  switch (s->planner) {
    case SN_PLANNER_SAMPLING:
    case SN_PLANNER_MPPI:
    case SN_PLANNER_CEM:
    case SN_PLANNER_HYBRID:
      *kind = SN_CONTEST_STEPS;
      *count = s->candidates;
      return true;
    case SN_PLANNER_ADAM:
      *kind = SN_CONTEST_REFINEMENTS;
      *count = s->adam_starts;
      return true;
    case SN_PLANNER_LBFGS:
      *kind = SN_CONTEST_GRADIENTS;
      *count = 1;
      return true;
    default:
      return false;
  }
}

// Measures with a device and a CPU of its own, where the planner begins, under controls of zero with noise.
static SnCode measure(SnBackend *device, SnBackend *cpu, const SnPlanner *planner, SnContest *contest, SnError *err) {
  const SnModel *m = sn_planner_model(planner);
  sn_number *ctrl = calloc((size_t)STEPS * (size_t)m->nu + 1, sizeof *ctrl);
  if (!ctrl) return sn_fail(err, SN_ERR_MEMORY, "out of memory");
  const SnContestDef def = {.device = device,
                            .cpu = {cpu},
                            .ncpu = 1,
                            .model = m,
                            .cost = sn_cost_none(),
                            .state = *sn_planner_initial(planner),
                            .ctrl = ctrl,
                            .steps = STEPS,
                            .most = MOST,
                            .seconds = seconds,
                            .clock = sn_clock_monotonic()};
  const SnCode code = sn_contest_run(&def, contest, err);
  free(ctrl);
  return code;
}

static bool cache_folder(const SnConfig *config, char *path, size_t size) {
  if (!config->cache[0]) return sn_default_model_cache(path, size);
  return (size_t)snprintf(path, size, "%s", config->cache) < size;
}

// Measures on backends that are opened for it.
static SnCode open_and_measure(SnBackends *b, const SnPlanner *planner, SnContest *contest, SnError *err) {
  SnPool *pool = NULL;
  int threads = 0;
  SnBackend *device = sn_backends_open_device(b, b->view.name, err);
  SnBackend *cpu = device ? sn_backends_open_cpu(b->config, &pool, &threads, err) : NULL;
  const SnCode code = cpu ? measure(device, cpu, planner, contest, err) : err->code;
  sn_backend_free(cpu);
  sn_pool_free(pool);
  sn_backend_free(device);
  return code;
}

// The result for a planner's model: what is kept, or a new measurement, which is then kept. *fresh: it was made now.
static SnCode find(SnBackends *b, const SnPlanner *planner, SnContest *contest, bool *fresh, SnError *err) {
  char folder[4096] = "";
  SnError kept = {0};
  *fresh = false;
  b->key.model = sn_model_checksum(sn_planner_model(planner), err);
  if (!b->key.model) return err->code;
  if (cache_folder(b->config, folder, sizeof folder) && sn_contest_kept(folder, &b->key, contest)) return SN_OK;
  *fresh = true;
  const SnCode code = open_and_measure(b, planner, contest, err);
  if (code == SN_OK && folder[0] && sn_contest_keep(folder, &b->key, contest, &kept) != SN_OK)
    sn_log_event(b->log, SN_LOG_WARNING, "what was measured is not kept: %s", kept.text);
  return code;
}

static void remember(SnBackends *b, const char *model, const SnContest *contest) {
  pthread_mutex_lock(&b->mutex);
  int i = 0;
  while (i < b->nmeasured && strcmp(b->measured[i].model, model) != 0) ++i;
  if (i < SN_MEASURED) {
    snprintf(b->measured[i].model, sizeof b->measured[i].model, "%s", model);
    for (int k = 0; k < SN_NCONTEST; ++k) b->measured[i].from[k] = sn_contest_from(contest, (SnContestKind)k, 0);
    if (i == b->nmeasured) ++b->nmeasured;
  }
  pthread_mutex_unlock(&b->mutex);
}

int sn_backends_measured(SnBackends *b, SnMeasured measured[SN_MEASURED]) {
  pthread_mutex_lock(&b->mutex);
  const int n = b->nmeasured;
  memcpy(measured, b->measured, sizeof *measured * (size_t)n);
  pthread_mutex_unlock(&b->mutex);
  return n;
}

static void say(const SnBackends *b, const char *model, const SnContest *contest) {
  char text[SN_NCONTEST][200];
  for (int k = 0; k < SN_NCONTEST; ++k) sn_contest_text(contest, (SnContestKind)k, 0, text[k], sizeof text[k]);
  sn_log_event(b->log, SN_LOG_INFO, "device-measured: model %s, where the device is faster: %s; %s; %s", model, text[0],
               text[1], text[2]);
}

// Who measures may be the first to notice that the device is gone, for the backend that plans, too, where no session
// calls it: loading a model there tells.
static void try_device(SnBackends *b, const SnPlanner *planner) {
  SnBackendModel *model = sn_backend_load(b->device, sn_planner_model(planner), sn_cost_none(), 1, NULL);
  if (model) sn_backend_unload(b->device, model);
}

bool sn_backends_wins(SnBackends *b, const char *model, const SnPlanner *planner, const SnSettings *settings) {
  SnContestKind kind = SN_CONTEST_STEPS;
  SnContest contest;
  SnError err = {0};
  int count = 0;
  bool fresh = false;
  if (!b->view.automatic || sn_backends_view(b).lost || sn_past_size(sn_planner_model(planner)) > 0 ||
      sn_has_metric(sn_planner_model(planner)) || !asks_for(settings, &kind, &count))
    return false;
  pthread_mutex_lock(&b->measuring);
  const SnCode code = find(b, planner, &contest, &fresh, &err);
  pthread_mutex_unlock(&b->measuring);
  if (code != SN_OK) {
    sn_log_event(b->log, SN_LOG_WARNING, "device-measured: model %s cannot be measured, it plans on the CPU: %s", model,
                 err.text);
    try_device(b, planner);
    return false;
  }
  remember(b, model, &contest);
  if (fresh) say(b, model, &contest);
  const int from = sn_contest_from(&contest, kind, 0);
  const bool wins = from > 0 && count >= from;
  char where[48];
  snprintf(where, sizeof where, from ? "from %d at once on" : "at no number of them", from);
  sn_log_event(b->log, SN_LOG_INFO, "backend-chosen: %s for %s, which asks for %d %s at once: the device is faster %s",
               wins ? b->view.name : "cpu", model, count, sn_contest_name(kind), where);
  return wins;
}
