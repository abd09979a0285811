// Fuzz target: task files, from the text to the cost of a model. The model of the task is not asked for: a small one
// takes its place, whose names most seeds have.
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "physics/import/model_cache.h"
#include "planner/cost/cost.h"
#include "planner/task/task.h"
#include "tests/fuzz/fuzz.h"

static SnModel *load_model(void) {
  SnError err = {0};
  SnModelInputs *inputs = NULL;
  char folder[] = "/tmp/fuzz-task.XXXXXX", clean[64];
  SnModelCacheDef def = sn_default_model_cache_def();
  if (!mkdtemp(folder)) fuzz_fail("no folder for models");
  def.folder = folder;
  def.importer = SN_TEST_BINARY_DIR "/sinew-import";
  SnModelCache *cache = sn_model_cache_open(&def, &err);
  SnModel *m = cache ? sn_model_cache_load(cache, SN_TEST_SOURCE_DIR "/fuzz/live/small.xml", &inputs, &err) : NULL;
  if (!m) fuzz_fail("%s", err.text);
  sn_model_inputs_free(inputs);
  sn_model_cache_close(cache);
  snprintf(clean, sizeof clean, "rm -r %s", folder);
  if (system(clean) != 0) fuzz_fail("%s stays", folder);
  return m;
}

static bool priced;

void fuzz_one(const uint8_t *data, size_t size) {
  static SnModel *model;
  SnError err = {0};
  if (!model) model = load_model();
  SnTask *task = sn_task_parse((const char *)data, size, SN_TEST_SOURCE_DIR "/fuzz/live/fuzz.yaml", &err);
  if (!task != (err.text[0] != '\0')) fuzz_fail("task %p with the text '%s'", (void *)task, err.text);
  SnModel *own = task ? sn_task_model(task, model, &err) : NULL;
  SnCost *cost = own ? sn_cost_create(task, own, &err) : NULL;
  if (task && !cost && !err.text[0]) fuzz_fail("no cost, and no word why");
  for (int i = 0; cost && i < task->nterm; ++i) {
    double target[64];
    if (sn_cost_find(cost, sn_cost_name(cost, i)) != i) fuzz_fail("term %d is not found by its name", i);
    if (sn_cost_target_size(cost, i) <= 64) sn_cost_target(cost, i, 0.5, target);
  }
  priced |= cost != NULL;
  sn_cost_free(cost);
  sn_model_free(own);
  sn_task_free(task);
}

const char *fuzz_missing(void) { return priced ? NULL : "a cost"; }

static const char *const own[] = {
    "model: small.xml\nterms:\n  a: {residual: {position: {site: tip}}, target: {position: {body: target}}, norm: "
    "euclidean, width: 0.01, weight: 2, terminal: 1}\n",
    "model: small.xml\nvariables: {goal: [0, 0.1, 0.2], w: 3}\ninitial: {joints: {shoulder: 0.1}, settle: 0.1}\n"
    "perturb: {joints: {shoulder: 0.1}, plan: 0.1}\nplan: {muscle: 0.2}\nterms:\n"
    "  - {name: a, residual: {position: {site: tip}}, target: $goal, weight: $w, side: above}\n"
    "success:\n  - {name: m, term: a, below: 0.1, during: 1}\n",
    "base: small\nterms:\n  reach: {weight: 2}\n  pose: ~\noptions: {timestep: 0.002, iterations: 3}\n",
    "model: small.xml\nterms:\n  - name: q\n    residual: {orientation: {body: hand}}\n    target: [1, 0, 0, 0]\n"
    "  - name: s\n    residual: {position: {site: tip}}\n    target: {sinusoid: {center: [0.4, 0, 1], amplitude: [0.1, "
    "0, "
    "0.1], period: 4}}\n    gate: {position: {site: tip}, axis: z, above: 0.2, width: 0.1}\n"
    "settings: {grid: [64x1, 32x2], horizon: 128, planner: ilqg}\n"};

// Our own texts, then all tasks of the planner.
size_t fuzz_seed(int i, uint8_t *bytes) {
  enum { OWN = sizeof own / sizeof *own };
  if (i < OWN) return fuzz_text(own[i], bytes);
  struct dirent **entry;
  size_t size = 0;
  char path[1024];
  const int n = scandir(SN_TEST_SOURCE_DIR "/../planner/tasks", &entry, NULL, alphasort);
  for (int k = 0, seen = OWN; k < n; ++k) {
    if (strstr(entry[k]->d_name, ".yaml") && seen++ == i) {
      snprintf(path, sizeof path, SN_TEST_SOURCE_DIR "/../planner/tasks/%s", entry[k]->d_name);
      size = fuzz_read(path, bytes);
    }
    free(entry[k]);
  }
  if (n >= 0) free(entry);
  return size;
}
