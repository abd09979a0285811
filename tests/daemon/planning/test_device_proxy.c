// A backend that belongs to one thread: whoever asks, its owner does it.
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/planning/device_proxy_private.h"
#include "planner/backend/backend_impl.h"

enum { THREADS = 6, ROUNDS = 200, CAPACITY = 1000 };

struct SnBackendModel {
  int max_step, rollouts, batches, gradients, starts;
};

// A device that two threads would break: nothing of it is guarded.
typedef struct Fake {
  SnBackend table;
  pthread_t thread;
  int calls, loaded, strangers;
} Fake;

static Fake *note(const SnBackend *b) {
  Fake *f = (Fake *)(uintptr_t)b;
  f->calls++;
  f->strangers += !pthread_equal(pthread_self(), f->thread);
  return f;
}

static SnBackendModel *fake_load(SnBackend *b, const SnModel *m, const SnCost *cost, int max_step, SnError *err) {
  (void)m, (void)cost;
  Fake *f = note(b);
  if (max_step > CAPACITY) {
    sn_fail(err, SN_ERR_LIMIT, "%d steps; there is room for %d", max_step, CAPACITY);
    return NULL;
  }
  SnBackendModel *x = calloc(1, sizeof *x);
  x->max_step = max_step;
  f->loaded++;
  return x;
}
static void fake_unload(SnBackend *b, SnBackendModel *x) {
  note(b)->loaded--;
  free(x);
}
static void fake_update(SnBackend *b, SnBackendModel *x) { note(b), x->max_step++; }
static SnCode fake_reserve_rollouts(SnBackend *b, SnBackendModel *x, int count, SnError *err) {
  note(b);
  if (count > CAPACITY) return sn_fail(err, SN_ERR_LIMIT, "%d rollouts", count);
  x->rollouts = count;
  return SN_OK;
}
static SnCode fake_reserve_batches(SnBackend *b, SnBackendModel *x, int count, SnError *err) {
  note(b);
  if (count > CAPACITY) return sn_fail(err, SN_ERR_LIMIT, "%d rollouts with all states", count);
  x->batches = count;
  return SN_OK;
}
static SnCode fake_reserve_gradients(SnBackend *b, SnBackendModel *x, int count, SnError *err) {
  note(b);
  if (count > CAPACITY) return sn_fail(err, SN_ERR_LIMIT, "%d gradients", count);
  x->gradients = count;
  return SN_OK;
}
static SnCode fake_reserve_multistart(SnBackend *b, SnBackendModel *x, int starts, SnError *err) {
  note(b);
  if (starts > CAPACITY) return sn_fail(err, SN_ERR_LIMIT, "%d starts", starts);
  x->starts = starts;
  return SN_OK;
}
// A backend that reserves capacity for work does the work, too.
static bool fake_gradients(SnBackend *b, SnBackendModel *x, SnGradientBatch *batch, const SnClock *clock,
                           double until) {
  (void)x, (void)batch, (void)clock, (void)until;
  note(b);
  return true;
}
static bool fake_multistart(SnBackend *b, SnBackendModel *x, SnMultistartJob *job, const SnClock *clock, double until) {
  (void)x, (void)job, (void)clock, (void)until;
  note(b);
  return true;
}
static void fake_multistart_end(SnBackend *b, SnBackendModel *x, SnMultistartJob *job) {
  (void)x, (void)job;
  note(b);
}
static void fake_abandon(SnBackend *b, SnBackendModel *x) { note(b), x->starts = 0; }
static bool fake_lost(const SnBackend *b, char *text, int size) {
  note(b);
  snprintf(text, (size_t)size, "as it was told");
  return true;
}
static void fake_destroy(SnBackend *b) { note(b); }

static Fake fake;
static SnBackend *owned;
static atomic_int finished, woken;

static void wake(void *context) { atomic_fetch_add((atomic_int *)context, 1); }

static SnBackend *make(SnError *err) {
  fake = (Fake){.table = {.name = "fake",
                          .load = fake_load,
                          .unload = fake_unload,
                          .update = fake_update,
                          .batches = true,
                          .reserve_rollouts = fake_reserve_rollouts,
                          .reserve_batches = fake_reserve_batches,
                          .reserve_gradients = fake_reserve_gradients,
                          .gradients = fake_gradients,
                          .reserve_multistart = fake_reserve_multistart,
                          .multistart = fake_multistart,
                          .multistart_end = fake_multistart_end,
                          .abandon = fake_abandon,
                          .lost = fake_lost,
                          .destroy = fake_destroy},
                .thread = pthread_self()};
  return sn_device_proxy_create(&fake.table, wake, &woken, err);
}

// What a loader thread does: memory for a planner, refused now and then, and released.
static void *load_and_unload(void *argument) {
  const int thread = (int)(intptr_t)argument;
  intptr_t wrong = 0;
  for (int i = 0; i < ROUNDS; i++) {
    SnError err = {0};
    const int size = 1 + (i + thread) % CAPACITY;
    if (sn_backend_load(owned, NULL, NULL, CAPACITY + size, &err)) wrong++;
    wrong += err.code != SN_ERR_LIMIT;
    SnBackendModel *x = sn_backend_load(owned, NULL, NULL, size, &err);
    sn_backend_update(owned, x);
    wrong += sn_backend_reserve_rollouts(owned, x, size, &err) != SN_OK;
    wrong += sn_backend_reserve_rollouts(owned, x, CAPACITY + 1, &err) != SN_ERR_LIMIT;
    wrong += sn_backend_reserve_batches(owned, x, size, &err) != SN_OK;
    wrong += sn_backend_reserve_batches(owned, x, CAPACITY + 1, &err) != SN_ERR_LIMIT;
    wrong += sn_backend_reserve_gradients(owned, x, size, &err) != SN_OK;
    wrong += sn_backend_reserve_gradients(owned, x, CAPACITY + 1, &err) != SN_ERR_LIMIT;
    wrong += sn_backend_reserve_multistart(owned, x, size, &err) != SN_OK;
    wrong += x->max_step != size + 1 || x->rollouts != size || x->gradients != size || x->starts != size;
    wrong += x->batches != size;
    sn_backend_abandon(owned, x);
    char text[32] = "";
    wrong += !sn_backend_lost(owned, text, sizeof text) || strcmp(text, "as it was told") != 0;
    sn_backend_unload(owned, x);
  }
  atomic_fetch_add(&finished, 1);
  return (void *)wrong;
}

static void test_calls_of_many_threads(void **state) {
  (void)state;
  SnError err = {0};
  pthread_t thread[THREADS];
  owned = make(&err);
  assert_non_null(owned);
  assert_string_equal(owned->name, "fake");
  assert_true(sn_backend_has(owned, SN_BACKEND_BATCHES));
  // what the backend has not, it has not either
  assert_true(owned->memory == NULL && owned->multistart_submit == NULL && owned->rollouts_submit == NULL);
  for (intptr_t i = 0; i < THREADS; i++)
    assert_int_equal(pthread_create(&thread[i], NULL, load_and_unload, (void *)i), 0);
  int rounds = 0;
  while (atomic_load(&finished) < THREADS) rounds += sn_device_proxy_serve(owned);
  for (int i = 0; i < THREADS; i++) {
    void *wrong;
    pthread_join(thread[i], &wrong);
    assert_int_equal((intptr_t)wrong, 0);
  }
  const int each = 13;
  print_message("%d calls of %d threads in %d rounds of the owner\n", fake.calls, THREADS, rounds);
  assert_int_equal(fake.calls, THREADS * ROUNDS * each);
  assert_int_equal(atomic_load(&woken), fake.calls);
  assert_true(fake.strangers == 0 && fake.loaded == 0);
  assert_false(sn_device_proxy_serve(owned));
  sn_backend_free(owned);
}

// Calls of the owning thread do not wait for anybody.
static void test_calls_of_the_owner(void **state) {
  (void)state;
  SnError err = {0};
  SnBackend *b = make(&err);
  const int before = atomic_load(&woken);
  SnBackendModel *x = sn_backend_load(b, NULL, NULL, 7, &err);
  assert_non_null(x);
  assert_int_equal(sn_backend_reserve_multistart(b, x, CAPACITY + 1, &err), SN_ERR_LIMIT);
  sn_backend_unload(b, x);
  assert_true(fake.calls == 3 && atomic_load(&woken) == before);
  sn_backend_free(b);
  assert_int_equal(fake.calls, 4);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_calls_of_many_threads),
      cmocka_unit_test(test_calls_of_the_owner),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
