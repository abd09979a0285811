// Tasks from files and text.
#include <stdlib.h>

#include "clients/libsinew/task_private.h"

// Wraps a task of the engine, NULL with `why`; frees it on failure.
static SinewTask *wrap(SnTask *t, const SnError *why, SinewError *err) {
  if (!t) {
    api_hand_on(err, why);
    return NULL;
  }
  SinewTask *task = calloc(1, sizeof *task);
  if (!task) {
    sn_task_free(t);
    api_fail(err, SINEW_ERR_MEMORY, "task: out of memory");
    return NULL;
  }
  task->task = t;
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
  free(task);
}

const char *sinew_task_name(const SinewTask *task) { return task ? task->task->name : ""; }
const char *sinew_task_model(const SinewTask *task) { return task ? task->task->model : ""; }
