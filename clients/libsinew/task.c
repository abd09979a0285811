// Tasks from files and text.
#include <math.h>
#include <stdlib.h>

#include "clients/libsinew/task_private.h"

// Shows what the engine's task has besides its cost.
static bool show(SinewTask *task) {
  const SnTask *t = task->task;
  task->measure = calloc((size_t)t->nmeasure + 1, sizeof *task->measure);
  if (!task->measure) return false;
  for (int i = 0; i < t->nmeasure; ++i)
    task->measure[i] = (SinewMeasure){t->measure[i].name, t->measure[i].below, t->measure[i].during};
  for (int i = 0; i < 2; ++i) task->plant.solref[i] = i < t->plant.nsolref ? t->plant.solref[i] : (double)NAN;
  for (int i = 0; i < 5; ++i) task->plant.solimp[i] = i < t->plant.nsolimp ? t->plant.solimp[i] : (double)NAN;
  return true;
}

// Wraps a task of the engine, NULL with `why`; frees it on failure.
static SinewTask *wrap(SnTask *t, const SnError *why, SinewError *err) {
  if (!t) {
    api_hand_on(err, why);
    return NULL;
  }
  SinewTask *task = calloc(1, sizeof *task);
  if (task) task->task = t;
  if (!task || !show(task)) {
    sn_task_free(t);
    free(task);
    api_fail(err, SINEW_ERR_MEMORY, "task: out of memory");
    return NULL;
  }
  api_ok(err);
  return task;
}

SinewTask *sinew_task_load(const char *path, SinewError *err) {
  SnError why = {0};
  if (!path) {
    api_fail(err, SINEW_ERR_ARGUMENT, "sinew_task_load: path is NULL");
    return NULL;
  }
  return wrap(sn_task_load(path, &why), &why, err);
}

SinewTask *sinew_task_parse(const char *text, size_t size, const char *name, SinewError *err) {
  SnError why = {0};
  if (!text || !name) {
    api_fail(err, SINEW_ERR_ARGUMENT, "sinew_task_parse: %s is NULL", text ? "name" : "text");
    return NULL;
  }
  return wrap(sn_task_parse(text, size, name, &why), &why, err);
}

void sinew_task_free(SinewTask *task) {
  if (!task) return;
  sn_task_free(task->task);
  free(task->measure);
  free(task);
}

const char *sinew_task_name(const SinewTask *task) { return task ? task->task->name : ""; }
const char *sinew_task_model(const SinewTask *task) { return task ? task->task->model : ""; }

const char *sinew_task_text(const SinewTask *task) { return task ? task->task->text : ""; }

const SinewMeasure *sinew_task_measure(const SinewTask *task, int i) {
  return task && i >= 0 && i < task->task->nmeasure ? &task->measure[i] : NULL;
}

const SinewTaskPlant *sinew_task_plant(const SinewTask *task) { return task ? &task->plant : NULL; }
