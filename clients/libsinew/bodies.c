// Many bodies on the threads of a backend: each thread takes the next body of the list.
#include <stdatomic.h>

#include "clients/libsinew/backend_private.h"
#include "clients/libsinew/data_private.h"

// A list that threads work on.
typedef struct Bodies {
  SinewData *const *data;
  int count, steps;
  bool forward;  // instead of steps
  int *status;   // (count)
  atomic_int next;
} Bodies;

static void work(void *argument, int thread) {
  (void)thread;
  Bodies *b = argument;
  for (int i = atomic_fetch_add(&b->next, 1); i < b->count; i = atomic_fetch_add(&b->next, 1))
    b->status[i] = (int)(b->forward ? sinew_forward(b->data[i], NULL) : sinew_step(b->data[i], b->steps, NULL));
}

// Refuses a list with a hole, or with a body twice: marks each body that it meets, and takes the marks off again.
static SinewStatus check_list(const Bodies *b, const char *who, SinewError *err) {
  int n = 0;
  while (n < b->count && b->data[n] && !b->data[n]->listed) b->data[n++]->listed = true;
  for (int i = 0; i < n; ++i) b->data[i]->listed = false;
  if (n == b->count) return SINEW_OK;
  int first = 0;
  while (b->data[n] && b->data[first] != b->data[n]) ++first;
  if (b->data[n]) return api_fail(err, SINEW_ERR_ARGUMENT, "%s: data[%d] and data[%d] are one body", who, first, n);
  return api_fail(err, SINEW_ERR_ARGUMENT, "%s: data[%d] is NULL", who, n);
}

static SinewStatus check(const SinewBackend *backend, const Bodies *b, const char *who, SinewError *err) {
  if (!backend) return api_fail(err, SINEW_ERR_ARGUMENT, "%s: backend is NULL", who);
  if (b->count < 0 || b->steps < 0)
    return api_fail(err, SINEW_ERR_ARGUMENT, "%s: %s is %d; it has to be at least 0", who,
                    b->count < 0 ? "count" : "steps", b->count < 0 ? b->count : b->steps);
  if (b->count > 0 && (!b->data || !b->status))
    return api_fail(err, SINEW_ERR_ARGUMENT, "%s: %s is NULL", who, b->data ? "status" : "data");
  if (!backend->pool)
    return api_fail(err, SINEW_ERR_UNSUPPORTED, "%s: the backend is a device; bodies need threads of the CPU", who);
  return check_list(b, who, err);
}

static SinewStatus run(SinewBackend *backend, Bodies *b, const char *who, SinewError *err) {
  SinewStatus status = check(backend, b, who, err);
  if (status == SINEW_OK) status = api_enter_backend(backend, "bodies", err);
  if (status != SINEW_OK) return status;
  if (b->count > 1 && sn_pool_size(backend->pool) > 1)
    sn_pool_run(backend->pool, work, b);
  else
    work(b, 0);
  for (int i = 0; status == SINEW_OK && i < b->count; ++i)
    if (b->status[i] != SINEW_OK && b->status[i] != SINEW_ERR_DIVERGED)
      status = api_fail(err, (SinewStatus)b->status[i], "%s: data[%d]: %s", who, i,
                        sinew_status_name((SinewStatus)b->status[i]));
  return api_leave(&backend->guard, status == SINEW_OK ? api_ok(err) : status);
}

SinewStatus sinew_bodies_step(SinewBackend *backend, SinewData *const *data, int count, int steps, int *status,
                              SinewError *err) {
  Bodies b = {.data = data, .count = count, .steps = steps, .status = status};
  return run(backend, &b, "sinew_bodies_step", err);
}

SinewStatus sinew_bodies_forward(SinewBackend *backend, SinewData *const *data, int count, int *status,
                                 SinewError *err) {
  Bodies b = {.data = data, .count = count, .forward = true, .status = status};
  return run(backend, &b, "sinew_bodies_forward", err);
}
