// Shapes of launches, on a device that is nothing but a rule of what it can run at once.
#include "cuda/host/launch_shape_private.h"

#include "cuda/kernels/kernels.h"
#include "tests/support/oracle.h"

enum { MULTIPROCESSORS = 6 };

// A multiprocessor has the registers of most_blocks blocks of 128 threads.
typedef struct Rule {
  SnDevice device;
  int most_blocks;
} Rule;

static int resident(SnDevice *d, SnKernel kernel, int threads) {
  const Rule *r = (const Rule *)d;
  (void)kernel;
  return r->most_blocks * 128 / threads;
}

static Rule make_rule(int most_blocks) {
  Rule r = {.most_blocks = most_blocks};
  r.device.name = "rule";
  r.device.multiprocessors = MULTIPROCESSORS;
  r.device.resident = resident;
  return r;
}

// A block has room for its head, and for what it works on by itself, one behind the other.
static void shapes(void **state) {
  (void)state;
  SnOracle o;
  Rule r = make_rule(4);
  sn_oracle_load_file(&o, SN_TEST_SOURCE_DIR "/../physics/models/arm_reach.xml");
  SnLayout world, adjoint;
  assert_int_equal(sn_world_place(o.m, SN_LAYOUT_LINE, &world, NULL), SN_OK);
  assert_int_equal(sn_adjoint_place(o.m, &adjoint, NULL), SN_OK);
  for (int k = 0; k < SN_NKERNEL; ++k)
    for (int threads = 4; threads <= 256; threads *= 2) {
      SnKernelShape s;
      SnError err = {0};
      if (sn_shape_choose(&r.device, o.m, (SnKernel)k, threads, &s, &err) != SN_OK) fail_msg("%s", err.text);
      const bool has_world = k == SN_KERNEL_ROLLOUT || k == SN_KERNEL_FORWARD || k == SN_KERNEL_JACOBIAN;
      const bool has_adjoint = k == SN_KERNEL_SWEEP || k == SN_KERNEL_JACOBIAN;
      assert_int_equal(s.threads, threads);
      assert_int_equal(s.resident, MULTIPROCESSORS * 4 * 128 / threads);
      assert_int_equal(s.slot.world.bytes, has_world ? world.bytes : 0);
      assert_int_equal(s.slot.adjoint.bytes, has_adjoint ? adjoint.bytes : 0);
      assert_int_equal(s.slot.stride, SN_KERNEL_HEAD + s.slot.world.bytes + s.slot.adjoint.bytes);
      assert_int_equal(s.slot.stride % 64, 0);
    }
  sn_oracle_free(&o);
}

static void cannot_run(void **state) {
  (void)state;
  SnOracle o;
  SnError err = {0};
  SnKernelShape s;
  Rule none = make_rule(0);
  sn_oracle_load_file(&o, SN_TEST_SOURCE_DIR "/../physics/models/arm_reach.xml");
  assert_int_equal(sn_shape_choose(&none.device, o.m, SN_KERNEL_ROLLOUT, 32, &s, &err), SN_ERR_LIMIT);
  assert_non_null(strstr(err.text, "rule: kernel ROLLOUT does not run on this device with 32 threads"));
  sn_oracle_free(&o);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(shapes), cmocka_unit_test(cannot_run)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
