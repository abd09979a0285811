// The emulated device: what it does, when, and what it refuses. The kernels here are the test's own.
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "cuda/device/device.h"
#include "cuda/kernels/kernels.h"
#include "physics/base/clock.h"

// A slot ends between two multiples of 256, which an allocation's size is one of. It has room for ROOM numbers.
enum { N = 64, SLOT = (SN_KERNEL_HEAD + N * (int)sizeof(sn_real) + 255) / 256 * 256 + 64 };
enum { ROOM = (SLOT - SN_KERNEL_HEAD) / (int)sizeof(sn_real) };

// The kernels write into work->scratch (blocks, N), through the first N numbers of a block's slot.
//   ROLLOUT   each number of a block's row: its place plus the block times 1000, through the slot
//   ITERATE   scratch[block] counts the launches' blocks in the order in which they ran
//   FORWARD   1 where all of these were NaN before, else 0
//   MAKE      adds 1 to every number
//   SELECT    writes behind the slot
static int order;

void sn_kernel_body(SnKernel kernel, const SnWork *work, int block, int blocks, SnLane *lane, void *memory) {
  sn_real *row = work->scratch + (size_t)block * (size_t)work->scratch_size;
  sn_real *numbers = (sn_real *)((unsigned char *)memory + SN_KERNEL_HEAD);
  assert_true(block >= 0 && block < blocks);
  switch ((int)kernel) {
    case SN_KERNEL_ROLLOUT:
      SN_FOR(i, N) numbers[i] = (sn_real)(1000 * block + i);
      SN_SYNC(lane);
      SN_FOR(i, N) row[N - 1 - i] = numbers[N - 1 - i] + 0 * numbers[i];
      break;
    case SN_KERNEL_ITERATE:
      SN_ONE(lane) row[0] = (sn_real)order++;
      break;
    case SN_KERNEL_FORWARD:
      SN_ONE(lane) {
        int nan = 0;
        for (int i = 0; i < N; ++i) nan += isnan(numbers[i]) != 0;
        row[0] = nan == N && isnan(lane->shared->part[SN_VLANES - 1]);
        numbers[N / 2] = 0;
      }
      break;
    case SN_KERNEL_SELECT:
      SN_ONE(lane) numbers[ROOM] = 1;
      break;
    default:
      SN_FOR(i, N) row[i] += 1;
      break;
  }
  SN_SYNC(lane);
}

typedef struct Fixture {
  SnDevice *d;
  SnDeviceStream *s;
  sn_real *memory, *host;  // (8, N)
  SnWork work;
} Fixture;

enum { BLOCKS = 8, BYTES = BLOCKS * N * (int)sizeof(sn_real) };

static Fixture open_fixture(const char *fault) {
  SnError err = {0};
  Fixture r = {.d = sn_device_open(0, fault, &err)};
  if (!r.d) fail_msg("%s", err.text);
  r.s = r.d->stream(r.d);
  r.memory = r.d->alloc(r.d, BYTES);
  r.host = r.d->alloc_host(r.d, BYTES);
  assert_non_null(r.host);
  r.work = (SnWork){.scratch = r.memory, .scratch_size = N};
  r.work.block = (SnSlots){.memory = r.d->alloc(r.d, BLOCKS * (size_t)SLOT), .stride = SLOT};
  r.work.block.world.bytes = SLOT - SN_KERNEL_HEAD;
  return r;
}

static void close_fixture(Fixture *r) { r->d->close(r->d); }

static void launch(Fixture *r, SnKernel kernel, int blocks) {
  r->d->launch(r->d, r->s, kernel, &(SnLaunchShape){blocks, 32}, &r->work);
}

static void fetch(Fixture *r) { r->d->copy_out(r->d, r->s, r->host, r->memory, BYTES); }

static void expect_lost(Fixture *r, const char *text) {
  assert_true(r->d->lost);
  if (!strstr(r->d->reason, text)) fail_msg("\"%s\" is not in \"%s\"", text, r->d->reason);
  // Nothing is done any more.
  assert_null(r->d->alloc(r->d, 64));
  assert_null(r->d->alloc_host(r->d, 64));
  assert_null(r->d->stream(r->d));
  assert_false(r->d->idle(r->d, r->s));
  assert_int_equal(r->d->resident(r->d, SN_KERNEL_MAKE, 32), 0);
  assert_int_equal(r->d->resident_threads(r->d, 1000), 0);
  assert_int_equal(r->d->memory_free(r->d), 0);
  launch(r, SN_KERNEL_MAKE, 1);
  r->d->wait(r->d, r->s);
  close_fixture(r);
}

static void blocks_and_lanes(const char *fault) {
  Fixture r = open_fixture(fault);
  launch(&r, SN_KERNEL_ROLLOUT, BLOCKS);
  fetch(&r);
  r.d->wait(r.d, r.s);
  assert_false(r.d->lost);
  for (int b = 0; b < BLOCKS; ++b)
    for (int i = 0; i < N; ++i) assert_true(r.host[b * N + i] == (sn_real)(1000 * b + i));
  launch(&r, SN_KERNEL_FORWARD, BLOCKS);
  fetch(&r);
  r.d->wait(r.d, r.s);
  for (int b = 0; b < BLOCKS; ++b) assert_true(r.host[b * N] == 1);
  close_fixture(&r);
}

static void a_launch_runs_every_block(void **state) {
  (void)state;
  blocks_and_lanes(NULL);
  blocks_and_lanes("blocks:3");
#ifdef SN_LANES
  blocks_and_lanes("lanes:4");
  blocks_and_lanes("lanes:5,blocks:2");
#else
  SnError err = {0};
  assert_null(sn_device_open(0, "lanes:2", &err));
  assert_int_equal(err.code, SN_ERR_ARGUMENT);
#endif
}

static void blocks_have_no_order(void **state) {
  (void)state;
  Fixture r = open_fixture("");
  order = 0;
  launch(&r, SN_KERNEL_ITERATE, BLOCKS);
  fetch(&r);
  r.d->wait(r.d, r.s);
  const sn_real first = r.host[0];
  launch(&r, SN_KERNEL_ITERATE, BLOCKS);
  fetch(&r);
  r.d->wait(r.d, r.s);
  assert_true(first == 0 && r.host[0] == (sn_real)(2 * BLOCKS - 1));
  close_fixture(&r);
}

static void work_waits_in_its_stream(void **state) {
  (void)state;
  Fixture r = open_fixture("");
  SnDeviceStream *other = r.d->stream(r.d);
  sn_real *out = r.d->alloc_host(r.d, BYTES);
  for (int i = 0; i < BLOCKS * N; ++i) r.host[i] = 5;
  r.d->copy_in(r.d, r.s, r.memory, r.host, BYTES);
  launch(&r, SN_KERNEL_MAKE, BLOCKS);
  r.d->copy_out(r.d, other, out, r.memory, BYTES);
  r.d->wait(r.d, other);  // does not wait for the first stream
  assert_true(out[0] == 0 && out[1] == 0);
  r.d->copy_out(r.d, r.s, out, r.memory, BYTES);
  assert_true(out[1] == 0);
  // idle does the oldest call, each time.
  assert_false(r.d->idle(r.d, r.s));
  assert_false(r.d->idle(r.d, r.s));
  assert_true(out[1] == 0);
  assert_true(r.d->idle(r.d, r.s));
  assert_true(r.d->idle(r.d, r.s));
  assert_true(out[0] == 6 && out[1] == 6);
  assert_false(r.d->lost);
  close_fixture(&r);
}

// A copy that waits reads what was there when it was asked for, or the device is lost: a GPU may read either.
static void what_waits_to_be_copied_stays(void **state) {
  (void)state;
  Fixture r = open_fixture("");
  r.host[3] = 5;
  r.d->copy_in(r.d, r.s, r.memory, r.host, BYTES);
  r.d->wait(r.d, r.s);
  r.host[3] = 7;  // it has been copied
  r.d->copy_in(r.d, r.s, r.memory, r.host, BYTES);
  r.d->wait(r.d, r.s);
  assert_false(r.d->lost);
  r.d->copy_in(r.d, r.s, r.memory, r.host, BYTES);
  r.host[3] = 8;
  r.d->wait(r.d, r.s);
  expect_lost(&r, "were written to while the copy waited");
}

static void memory_is_counted(void **state) {
  (void)state;
  Fixture r = open_fixture("memory:100000");
  const size_t before = r.d->memory_free(r.d);
  assert_int_equal(r.d->memory, 100000);
  assert_true(before <= 100000 - BYTES);
  assert_null(r.d->alloc(r.d, before + 1));  // does not fit: no failure of the device
  assert_null(r.d->alloc(r.d, SIZE_MAX));
  void *p = r.d->alloc(r.d, 1000);
  assert_non_null(p);
  assert_int_equal((uintptr_t)p % 256, 0);
  assert_int_equal(r.d->memory_free(r.d), before - 1024);
  r.d->release(r.d, p);
  r.d->release(r.d, NULL);
  assert_int_equal(r.d->memory_free(r.d), before);
  assert_false(r.d->lost);
  // Memory is zero, that of another allocation before too.
  for (int i = 0; i < BLOCKS * N; ++i) r.host[i] = 5;
  r.d->copy_in(r.d, r.s, r.memory, r.host, BYTES);
  r.d->wait(r.d, r.s);
  r.d->release(r.d, r.memory);
  r.memory = r.d->alloc(r.d, BYTES);
  fetch(&r);
  r.d->wait(r.d, r.s);
  for (int i = 0; i < BLOCKS * N; ++i) assert_true(r.host[i] == 0);
  close_fixture(&r);
}

static void wrong_calls_lose_the_device(void **state) {
  (void)state;
  Fixture r = open_fixture("");
  r.d->copy_in(r.d, r.s, r.memory, r.host, BYTES + 1);
  expect_lost(&r, "copy_in: ");
  r = open_fixture("");
  r.d->copy_out(r.d, r.s, r.host, (char *)r.memory + 1, BYTES);
  expect_lost(&r, "of the device's memory");
  r = open_fixture("");
  r.d->copy_out(r.d, r.s, r.memory, r.host, BYTES);  // the wrong way round
  expect_lost(&r, "of the device's memory");
  r = open_fixture("");
  sn_real mine[N] = {0};
  r.d->copy_in(r.d, r.s, r.memory, mine, sizeof mine);
  expect_lost(&r, "host memory for copies");
  r = open_fixture("");
  r.d->release(r.d, (char *)r.memory + 256);
  expect_lost(&r, "release of");
  r = open_fixture("");
  r.d->release(r.d, r.host);
  expect_lost(&r, "release of");
  r = open_fixture("");
  r.d->release_host(r.d, r.memory);
  expect_lost(&r, "release_host of");
  r = open_fixture("");
  launch(&r, SN_KERNEL_MAKE, 1);
  r.d->release(r.d, r.work.block.memory);  // the launch still waits
  r.d->wait(r.d, r.s);
  expect_lost(&r, "no memory of the device has slots for 1 blocks");
  r = open_fixture("");
  fetch(&r);
  r.d->release(r.d, r.memory);  // the copy still waits
  r.d->wait(r.d, r.s);
  expect_lost(&r, "copy_out");
}

static void wrong_launches_lose_the_device(void **state) {
  (void)state;
  static const struct {
    SnKernel kernel;
    SnLaunchShape shape;
    const char *text;
  } wrong[] = {{SN_KERNEL_MAKE, {0, 32}, "launch of kernel MAKE: 0 blocks"},
               {SN_KERNEL_MAKE, {1, 0}, "launch of kernel MAKE: 0 threads a world, which it does not have"},
               {SN_KERNEL_MAKE, {1, 1}, "launch of kernel MAKE: 1 threads a world, which it does not have"},
               {SN_KERNEL_MAKE, {1, 8}, "launch of kernel MAKE: 8 threads a world, which it does not have"},
               {SN_KERNEL_MAKE, {1, 64}, "launch of kernel MAKE: 64 threads a world, which it does not have"},
               {SN_KERNEL_ROLLOUT, {1, 0}, "launch of kernel ROLLOUT: 0 threads a world, which it does not have"},
               {SN_KERNEL_ROLLOUT, {1, 16}, "launch of kernel ROLLOUT: 16 threads a world, which it does not have"},
               {SN_KERNEL_ROLLOUT, {1, 64}, "launch of kernel ROLLOUT: 64 threads a world, which it does not have"}};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
    Fixture r = open_fixture("");
    r.d->launch(r.d, r.s, wrong[i].kernel, &wrong[i].shape, &r.work);
    expect_lost(&r, wrong[i].text);
  }
  Fixture r = open_fixture("");
  r.work.block.world.bytes = SLOT;  // more than the slot has
  launch(&r, SN_KERNEL_MAKE, 1);
  expect_lost(&r, "a block needs");
  r = open_fixture("");
  launch(&r, SN_KERNEL_MAKE, BLOCKS + 1);
  expect_lost(&r, "no memory of the device has slots for 9 blocks");
  r = open_fixture("");
  r.work.block.world.bytes = (size_t)1 << 20;
  r.d->launch(r.d, r.s, SN_KERNEL_ROLLOUT, &(SnLaunchShape){1, 1}, &r.work);
  expect_lost(&r, "a block needs");
  r = open_fixture("");
  launch(&r, (SnKernel)SN_NKERNEL, 1);
  expect_lost(&r, "there is no kernel");
}

// Blocks run at the same time: two items, or candidates, that write to the same memory are found, whoever would win.
static void what_blocks_write_lies_apart(void **state) {
  (void)state;
  for (int k = 0; k < 6; ++k) {
    static const char *const what[] = {"states",  "terms", "derivatives", "derivatives of controls",
                                       "targets", "states"};
    Fixture r = open_fixture("");
    SnGradientItem *item = r.d->alloc(r.d, 3 * sizeof *item), *draft = r.d->alloc_host(r.d, 3 * sizeof *item);
    SnRolloutVjpState *states = r.d->alloc(r.d, 2 * sizeof *states), *some = r.d->alloc_host(r.d, 2 * sizeof *some);
    SnRollout *begin = r.d->alloc(r.d, 2 * sizeof *begin), *first = r.d->alloc_host(r.d, 2 * sizeof *begin);
    SnSample *sample = r.d->alloc(r.d, sizeof *sample), *one = r.d->alloc_host(r.d, sizeof *one);
    r.work.model.nu = r.work.model.nq = r.work.cost.nterm = r.work.cost.ntarget = 1;
    for (int i = 0; i < 3; ++i) {
      draft[i].active = i > 0;  // the first takes no part, and may hold anything
      draft[i].state = &states[i == 2];
      draft[i].rollout.out_time = k == 0 ? r.memory : NULL;
      draft[i].rollout.sum = k == 1 ? r.memory : NULL;
      draft[i].vjp.scratch = k == 2 ? r.memory : NULL;
      draft[i].vjp.ctrl_bar = k == 3 ? r.memory : NULL;
      some[i % 2].target_bar = k == 4 ? r.memory : NULL;
      first[i % 2].out_qpos = r.memory;
    }
    *one = (SnSample){.rollout = begin, .own = 1, .count = 2};
    r.work.gradient = item;
    r.work.ngradient = k == 5 ? 0 : 3;
    r.work.turn[0].sample = sample;
    r.work.nturn = k == 5;
    r.d->copy_in(r.d, r.s, item, draft, 3 * sizeof *item);
    r.d->copy_in(r.d, r.s, states, some, 2 * sizeof *states);
    r.d->copy_in(r.d, r.s, begin, first, 2 * sizeof *begin);
    r.d->copy_in(r.d, r.s, sample, one, sizeof *sample);
    launch(&r, SN_KERNEL_SWEEP, 1);
    r.d->wait(r.d, r.s);
    expect_lost(&r, what[k]);
  }
}

static void a_stream_in_use_is_not_freed(void **state) {
  (void)state;
  Fixture r = open_fixture("");
  launch(&r, SN_KERNEL_MAKE, 1);
  r.d->free_stream(r.d, r.s);
  expect_lost(&r, "not waited for");
}

static void faults_that_are_asked_for(void **state) {
  (void)state;
  SnError err = {0};
  SnDevice *d = sn_device_open(0, "alloc:2", &err);
  assert_non_null(d->alloc(d, 64));
  assert_null(d->alloc(d, 64));
  assert_non_null(d->alloc(d, 64));
  assert_false(d->lost);
  d->close(d);

  Fixture r = open_fixture("launch:3");
  launch(&r, SN_KERNEL_MAKE, 1);
  launch(&r, SN_KERNEL_MAKE, 1);
  r.d->wait(r.d, r.s);
  launch(&r, SN_KERNEL_MAKE, 1);
  fetch(&r);
  assert_false(r.d->lost);
  r.d->wait(r.d, r.s);
  assert_true(r.host[0] == 0);  // nothing after it was done
  expect_lost(&r, "launch number");

  static const char *const wrong[] = {"alloc",       "alloc:", "alloc:x", "other:1", "alloc:1;launch:2",
                                      "blocks:1000", "slow:-1"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
    assert_null(sn_device_open(0, wrong[i], &err));
    assert_int_equal(err.code, SN_ERR_ARGUMENT);
  }
  assert_null(sn_device_open(1, "", &err));
  assert_int_equal(err.code, SN_ERR_NOT_FOUND);
}

static void launches_may_be_slow(void **state) {
  (void)state;
  Fixture r = open_fixture("slow:0.02");
  launch(&r, SN_KERNEL_MAKE, 1);
  launch(&r, SN_KERNEL_MAKE, 1);
  const double begin = sn_clock_now();
  r.d->wait(r.d, r.s);
  assert_true(sn_clock_now() - begin >= 0.04);
  close_fixture(&r);
}

static void resident_blocks(void **state) {
  (void)state;
  Fixture r = open_fixture(""), few = open_fixture("resident:3");
  for (int k = 0; k < SN_NKERNEL; ++k) {
    const SnKernel kernel = (SnKernel)k;
    const bool parts = kernel == SN_KERNEL_ROLLOUT;  // are for it alone
    assert_int_equal(r.d->resident(r.d, kernel, 32), 32);
    assert_int_equal(r.d->resident(r.d, kernel, 8), parts ? 128 : 0);
    assert_int_equal(few.d->resident(few.d, kernel, 32), 3);
    assert_int_equal(few.d->resident(few.d, kernel, 8), parts ? 12 : 0);
    static const int none[] = {-8, 0, 1, 16, 33, 64, 256};
    for (size_t i = 0; i < sizeof none / sizeof *none; ++i) assert_int_equal(r.d->resident(r.d, kernel, none[i]), 0);
  }
  close_fixture(&r);
  close_fixture(&few);
}

// Nobody touches memory of the other side, nor what lies behind an allocation: a child process tries. Returns its
// signal.
typedef enum Touch { HOSTS, DEVICES, BEHIND, BY_PRODUCTS, BEHIND_BLOCK, BY_KERNEL, BY_COPY } Touch;
static int touch(Fixture *r, Touch what) {
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    signal(SIGSEGV, SIG_DFL);
    volatile sn_real *p = what == DEVICES ? r->memory : r->host + (what == BEHIND ? BLOCKS * N : 0);
    const SnProducts beyond = {.n = 4, .count = 1, .a = r->memory, .x = r->memory, .y = r->memory + BLOCKS * N - 3};
    if (what == BY_PRODUCTS) r->d->multiply(r->d, r->s, &beyond);
    if (what == BY_PRODUCTS) r->d->wait(r->d, r->s);
    if (what == BEHIND_BLOCK) launch(r, SN_KERNEL_SELECT, 1);
    if (what == BEHIND_BLOCK) r->d->wait(r->d, r->s);
    if (what == BY_KERNEL) r->work.scratch = r->host;
    if (what >= BY_KERNEL) launch(r, SN_KERNEL_MAKE, BLOCKS);
    if (what >= BY_KERNEL) fetch(r);
    if (what >= BY_KERNEL) r->d->wait(r->d, r->s);
    const sn_real x = *p;
    _exit(x == (what == BY_COPY ? 1 : 0) ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
}

static void memory_has_sides(void **state) {
  (void)state;
  Fixture r = open_fixture("");
  assert_int_equal(touch(&r, HOSTS), 0);
  assert_int_equal(touch(&r, DEVICES), SIGSEGV);
  assert_int_equal(touch(&r, BEHIND), SIGSEGV);
  assert_int_equal(touch(&r, BY_PRODUCTS), SIGSEGV);
  assert_int_equal(touch(&r, BEHIND_BLOCK), SIGSEGV);
  assert_int_equal(touch(&r, BY_KERNEL), SIGSEGV);
  assert_int_equal(touch(&r, BY_COPY), 0);
  launch(&r, SN_KERNEL_MAKE, 1);
  r.d->wait(r.d, r.s);
  assert_false(r.d->lost);
  assert_int_equal(touch(&r, DEVICES), SIGSEGV);
  close_fixture(&r);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_launch_runs_every_block),
      cmocka_unit_test(blocks_have_no_order),
      cmocka_unit_test(work_waits_in_its_stream),
      cmocka_unit_test(what_waits_to_be_copied_stays),
      cmocka_unit_test(memory_is_counted),
      cmocka_unit_test(wrong_calls_lose_the_device),
      cmocka_unit_test(wrong_launches_lose_the_device),
      cmocka_unit_test(what_blocks_write_lies_apart),
      cmocka_unit_test(a_stream_in_use_is_not_freed),
      cmocka_unit_test(faults_that_are_asked_for),
      cmocka_unit_test(launches_may_be_slow),
      cmocka_unit_test(resident_blocks),
      cmocka_unit_test(memory_has_sides),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
