// device_cuda.c on a CUDA runtime of the test's own: what it calls, and what it makes of every call that fails. That a
// GPU does the same is for the checks on a device.
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "cuda/device/device.h"
#include "tests/cuda/device/fake_cuda.h"

static SnDevice *open_device(void) {
  SnError err = {0};
  SnDevice *d = sn_device_open(0, NULL, &err);
  if (!d) fail_msg("%s", err.text);
  return d;
}

static void a_device_opens_and_closes(void **state) {
  (void)state;
  fake = fake_default();
  SnDevice *d = open_device();
  assert_non_null(strstr(d->text, "Fake, compute capability 9.0, 32.0 GiB, CUDA "));
  assert_int_equal(d->multiprocessors, 100);
  assert_int_equal(d->memory, (size_t)32 << 30);
  assert_true(d->shared % 64 == 0 && d->shared + 400 <= 227 << 10 && d->shared > 220 << 10);
  assert_int_equal(fake.warmed, SN_NKERNEL);  // every kernel is on the device
  assert_int_equal(fake.dynamic, SN_NKERNEL);
  assert_int_equal(d->resident(d, SN_KERNEL_MAKE, 128, 100 << 10), 2);
  assert_int_equal(d->resident(d, SN_KERNEL_MAKE, 512, 0), 0);  // more threads than its registers allow
  assert_int_equal(d->resident(d, SN_KERNEL_MAKE, 128, d->shared + 64), 0);
  assert_false(d->lost);
  d->close(d);
  assert_int_equal(fake.left, 0);
}

static void expect_refused(const char *text, SnCode code) {
  SnError err = {0};
  assert_null(sn_device_open(0, NULL, &err));
  if (!strstr(err.text, text)) fail_msg("\"%s\" is not in \"%s\"", text, err.text);
  assert_int_equal(err.code, code);
  assert_int_equal(fake.left, 0);
}

static void what_cannot_be_used_is_refused(void **state) {
  (void)state;
  SnError err = {0};
  fake = fake_default();
  fake.driver = 0;
  expect_refused("no NVIDIA driver is installed", SN_ERR_NOT_FOUND);
  fake = fake_default();
  fake.driver = 11080;
  expect_refused("too old: it is for CUDA 11.8", SN_ERR_NOT_FOUND);
  fake = fake_default();
  fake.devices = 0;
  expect_refused("no CUDA-capable device is detected", SN_ERR_NOT_FOUND);
  fake = fake_default();
  assert_null(sn_device_open(3, NULL, &err));
  assert_non_null(strstr(err.text, "device 3: there are 1"));
  assert_null(sn_device_open(0, "launch:2", &err));
  assert_int_equal(err.code, SN_ERR_ARGUMENT);
  fake.major = 7;
  expect_refused("compute capability 7.5 or more", SN_ERR_NOT_FOUND);
  fake = fake_default();
  fake.stack = 128 << 10;  // 25 GiB
  expect_refused("stack of 131072 bytes, 25.00 GiB for 204800 threads; 16.00 GiB are free", SN_ERR_LIMIT);
}

static void whatever_fails_while_it_opens_is_told(void **state) {
  (void)state;
  fake = fake_default();
  SnDevice *d = open_device();
  const int calls = fake.calls;
  d->close(d);
  for (int n = 1; n <= calls; ++n) {
    SnError err = {0};
    fake = fake_default();
    fake.fail = n;
    d = sn_device_open(0, "", &err);
    if (d) {  // in what may be unknown, or is freed already
      assert_true(strcmp(fake.failed, "cudaDriverGetVersion") == 0 ||
                  strcmp(fake.failed, "cudaDeviceGetAttribute") == 0);
      d->close(d);
      continue;
    }
    assert_true(err.code != SN_OK && err.text[0]);
    if (!strstr(err.text, "fake") && !strstr(err.text, "driver")) fail_msg("%s: %s", fake.failed, err.text);
    if (!strstr(fake.failed, "Free") && !strstr(fake.failed, "Destroy")) assert_int_equal(fake.left, 0);
  }
}

enum { N = 8, BYTES = 4096 };

// Every operation once. Goes on whatever happens, as the host side does.
static void work(SnDevice *d, sn_real *result) {
  SnDeviceStream *s = d->stream(d);
  sn_real *memory = d->alloc(d, BYTES), *host = d->alloc_host(d, BYTES);
  if (s && memory && host) {
    const SnWork work = {.scratch = memory, .scratch_size = 1, .model.nbody = 1};
    const SnLaunchShape shape = {N, 128, SN_KERNEL_HEAD};
    const SnProducts p = {.m = 1, .n = 1, .k = 1, .count = 1, .a = memory, .b = memory + 1, .c = memory + 2};
    for (int i = 0; i < N; ++i) host[i] = (sn_real)i;
    d->copy_in(d, s, memory, host, BYTES);
    d->launch(d, s, SN_KERNEL_ITERATE, &shape, &work);
    d->multiply(d, s, &p);
    d->wait(d, s);
    d->record(d, s);
    d->launch(d, s, SN_KERNEL_ROLLOUT, &shape, &work);
    d->copy_out(d, s, host, memory, BYTES);
    SnGraph *g = d->recorded(d, s);
    d->run(d, s, g);
    d->run(d, s, g);
    while (!d->idle(d, s) && !d->lost) {
    }
    memcpy(result, host, N * sizeof *result);
    (void)d->memory_free(d);
    (void)d->resident(d, SN_KERNEL_MAKE, 128, 1024);
    d->free_graph(d, g);
  }
  d->release_host(d, host);
  d->release(d, memory);
  d->free_stream(d, s);
}

static void work_is_done(void **state) {
  (void)state;
  sn_real result[N];
  fake = fake_default();
  SnDevice *d = open_device();
  const int left = fake.left;
  fake.busy = 3;
  work(d, result);
  assert_false(d->lost);
  assert_int_equal(fake.left, left);
  assert_int_equal(fake.runs, 2);
  assert_int_equal(fake.launches, 3);
  assert_false(fake.capture_broken);
  for (int i = 0; i < N; ++i) {
    const sn_real iterated = (sn_real)(i + 2);  // kernel 1 adds 2, kernel 0 then twice 1
    assert_true(result[i] == (i == 2 ? 2 * 3 : iterated) + 2);
  }
  d->close(d);
  assert_int_equal(fake.left, 0);
}

static void memory_is_zero(void **state) {
  (void)state;
  fake = fake_default();
  SnDevice *d = open_device();
  const unsigned char *p = d->alloc(d, 100), *q = d->alloc_host(d, 100);
  for (int i = 0; i < 100; ++i) assert_true(p[i] == 0 && q[i] == 0);
  assert_null(d->alloc(d, (size_t)1 << 40));  // does not fit: no loss
  assert_null(d->alloc_host(d, (size_t)1 << 40));
  assert_false(d->lost);
  d->release(d, (void *)(uintptr_t)p);
  d->release_host(d, (void *)(uintptr_t)q);
  d->close(d);
  assert_int_equal(fake.left, 0);
}

// Fails every call of the work in turn: the device is lost, names the call, and calls nothing more.
static void every_failed_call_loses_the_device(void **state) {
  (void)state;
  sn_real result[N];
  fake = fake_default();
  SnDevice *d = open_device();
  const int opened = fake.calls;
  work(d, result);
  const int all = fake.calls - opened;
  d->close(d);
  assert_true(all > 40);
  for (int n = 1; n <= all; ++n) {
    fake = fake_default();
    d = open_device();
    fake.fail = fake.calls + n;
    work(d, result);
    assert_true(d->lost);
    char call[100];
    snprintf(call, sizeof call, "%s", fake.failed);
    if (!strstr(d->reason, call) || !strstr(d->reason, "cuda/device/device_cuda.c:") || !strstr(d->reason, "fake"))
      fail_msg("%s failed: \"%s\"", fake.failed, d->reason);
    // What may follow the failed call within one operation is the tidying up of a graph.
    assert_true(fake.calls <= fake.fail + 1);
    const int calls = fake.calls;
    work(d, result);
    assert_int_equal(fake.calls, calls);
    d->close(d);
  }
}

static void full_memory_loses_nothing(void **state) {
  (void)state;
  for (int n = 1; n <= 60; ++n) {
    sn_real result[N];
    fake = fake_default();
    SnDevice *d = open_device();
    const int left = fake.left;
    fake.fail = fake.calls + n;
    fake.code = cudaErrorMemoryAllocation;
    work(d, result);
    const bool allocates =
        fake.failed && (strcmp(fake.failed, "cudaMalloc") == 0 || strcmp(fake.failed, "cudaHostAlloc") == 0);
    if (allocates) {
      assert_false(d->lost);
      assert_int_equal(fake.left, left);
    }
    d->close(d);
  }
}

static sn_real sample(unsigned *seed) {
  *seed = *seed * 1664525u + 1013904223u;
  return (sn_real)((double)(*seed >> 8) / (1 << 23) - 1.0);
}

// Row-major products by way of column-major ones.
static void products_are_row_major(void **state) {
  (void)state;
  enum { M = 3, K = 4, L = 5, COUNT = 2, A = M * K + 1, B = K * L + 2, C = M * L + 3 };
  for (int kind = 0; kind < 4; ++kind) {
    const int transpose = kind & 1, add = kind >> 1;
    fake = fake_default();
    SnDevice *d = open_device();
    SnDeviceStream *s = d->stream(d);
    sn_real a[COUNT * A], b[COUNT * B], c[COUNT * C], before[COUNT * C];
    unsigned seed = 3;
    for (int i = 0; i < COUNT * A; ++i) a[i] = sample(&seed);
    for (int i = 0; i < COUNT * B; ++i) b[i] = sample(&seed);
    for (int i = 0; i < COUNT * C; ++i) before[i] = c[i] = sample(&seed);
    d->multiply(d, s,
                &(SnProducts){.m = M,
                              .n = L,
                              .k = K,
                              .count = COUNT,
                              .transpose_a = transpose,
                              .add = add,
                              .a = a,
                              .b = b,
                              .c = c,
                              .stride_a = A,
                              .stride_b = B,
                              .stride_c = C});
    assert_false(d->lost);
    for (int i = 0; i < COUNT; ++i)
      for (int row = 0; row < M; ++row)
        for (int col = 0; col < L; ++col) {
          double sum = add ? (double)before[i * C + row * L + col] : 0;
          for (int k = 0; k < K; ++k)
            sum += (double)a[i * A + (transpose ? k * M + row : row * K + k)] * (double)b[i * B + k * L + col];
          assert_true(fabs((double)c[i * C + row * L + col] - sum) < 20 * (double)SN_EPS);
        }
    for (int i = 0; i < COUNT; ++i) assert_memory_equal(c + i * C + M * L, before + i * C + M * L, 3 * sizeof *c);
    d->close(d);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_device_opens_and_closes),
      cmocka_unit_test(what_cannot_be_used_is_refused),
      cmocka_unit_test(whatever_fails_while_it_opens_is_told),
      cmocka_unit_test(work_is_done),
      cmocka_unit_test(memory_is_zero),
      cmocka_unit_test(every_failed_call_loses_the_device),
      cmocka_unit_test(full_memory_loses_nothing),
      cmocka_unit_test(products_are_row_major),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
