// Shapes of launches, on a device that is nothing but a rule of what it can run at once.
#include "cuda/host/launch_shape_private.h"

#include "cuda/kernels/kernels.h"
#include "tests/support/oracle.h"

enum { MULTIPROCESSORS = 6 };

// Of a multiprocessor: shared memory, and the registers of most_blocks blocks of 128 threads.
typedef struct Rule {
  SnDevice device;
  int most_blocks;
  size_t overhead;  // shared memory of a block that nobody has
} Rule;

static int resident(SnDevice *d, SnKernel kernel, int threads, size_t shared) {
  const Rule *r = (const Rule *)d;
  (void)kernel;
  if (shared > d->shared) return 0;
  return sn_mini(r->most_blocks * 128 / threads, (int)(d->shared_total / (shared + r->overhead)));
}

static Rule make_rule(size_t shared_total, int most_blocks) {
  Rule r = {.most_blocks = most_blocks, .overhead = 1024};
  r.device.name = "rule";
  r.device.multiprocessors = MULTIPROCESSORS;
  r.device.shared_total = shared_total;
  r.device.shared = shared_total - r.overhead;
  r.device.resident = resident;
  return r;
}

// Fewer worlds at once have more of their blocks in shared memory; all worlds run at once as long as any shape can.
static void few_and_many(void **state) {
  (void)state;
  SnOracle o;
  sn_oracle_load_file(&o, SN_TEST_SOURCE_DIR "/../physics/models/arm_reach.xml");
  for (size_t kilobytes = 16; kilobytes <= 256; kilobytes *= 4)
    for (int most = 1; most <= 16; most *= 4)
      for (int k = 0; k < SN_NKERNEL; ++k) {
        Rule r = make_rule(kilobytes << 10, most);
        SnKernelShapes s;
        SnError err = {0};
        if (sn_shapes_choose(&r.device, o.m, (SnKernel)k, NULL, &s, &err) != SN_OK) fail_msg("%s", err.text);
        assert_true(s.count >= 1 && s.count <= SN_KERNEL_SHAPES);
        for (int i = 0; i < s.count; ++i) {
          const SnKernelShape *x = &s.shape[i];
          assert_true(sn_shape_shared(x) <= r.device.shared);
          // of a Jacobian's block most is for the world, as long as that has use for it
          if (k == SN_KERNEL_JACOBIAN) assert_true(x->world.global == 0 || 3 * x->adjoint.shared <= r.device.shared);
          assert_int_equal(x->resident,
                           MULTIPROCESSORS * resident(&r.device, (SnKernel)k, x->threads, sn_shape_shared(x)));
          assert_true(x->resident >= MULTIPROCESSORS && x->threads % 32 == 0);
          assert_true(i == 0 || (x->resident > x[-1].resident && sn_shape_shared(x) <= sn_shape_shared(x - 1)));
          assert_ptr_equal(sn_shapes_pick(&s, x->resident), x);
          if (i + 1 < s.count) assert_ptr_equal(sn_shapes_pick(&s, x->resident + 1), x + 1);
        }
        assert_ptr_equal(sn_shapes_pick(&s, 1), &s.shape[0]);
        assert_ptr_equal(sn_shapes_pick(&s, 1 << 20), &s.shape[s.count - 1]);
      }
  // A multiprocessor with room for all of a world in shared memory uses it, and gives as many as it can less of it.
  Rule large = make_rule((size_t)160 << 10, 16);
  SnKernelShapes s;
  assert_int_equal(sn_shapes_choose(&large.device, o.m, SN_KERNEL_ROLLOUT, NULL, &s, NULL), SN_OK);
  assert_true(s.shape[0].world.global == 0 && s.shape[0].adjoint.shared == 0);
  assert_true(s.count > 1 && s.shape[s.count - 1].world.global > 0);
  // 32 threads a block: four times the blocks of 128.
  assert_int_equal(s.shape[0].threads, 32);
  assert_true(s.shape[s.count - 1].resident > 8 * MULTIPROCESSORS);
  sn_oracle_free(&o);
}

static void cannot_run(void **state) {
  (void)state;
  SnOracle o;
  SnError err = {0};
  SnKernelShapes s;
  Rule none = make_rule((size_t)64 << 10, 0);
  sn_oracle_load_file(&o, SN_TEST_SOURCE_DIR "/../physics/models/arm_reach.xml");
  assert_int_equal(sn_shapes_choose(&none.device, o.m, SN_KERNEL_ROLLOUT, NULL, &s, &err), SN_ERR_LIMIT);
  assert_non_null(strstr(err.text, "rule: kernel ROLLOUT does not run on this device with 32 threads"));
  sn_oracle_free(&o);
}

// What somebody who measures asks for holds in every shape.
static void by_order(void **state) {
  (void)state;
  SnOracle o;
  sn_oracle_load_file(&o, SN_TEST_SOURCE_DIR "/../physics/models/arm_reach.xml");
  Rule r = make_rule(200 << 10, 16);
  for (int threads = 32; threads <= 256; threads *= 2)
    for (size_t shared = 64; shared <= 4096; shared *= 4) {
      const SnShapeRule rule = {threads, shared};
      SnKernelShapes s;
      assert_int_equal(sn_shapes_choose(&r.device, o.m, SN_KERNEL_JACOBIAN, &rule, &s, NULL), SN_OK);
      for (int i = 0; i < s.count; ++i) {
        assert_int_equal(s.shape[i].threads, threads);
        assert_true(sn_shape_shared(&s.shape[i]) <= SN_KERNEL_HEAD + shared);
      }
    }
  sn_oracle_free(&o);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(few_and_many), cmocka_unit_test(by_order),
                                     cmocka_unit_test(cannot_run)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
