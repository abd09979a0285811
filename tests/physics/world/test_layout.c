// Layouts: where fields lie, and that a world there, in memory that held anything before, is the same world.
#include <stdlib.h>

#include "tests/support/small_models.h"
#include "tests/support/oracle.h"

#include "physics/step/step.h"
#include "physics/world/layout.h"

static const char hand_file[] = "envs/myo/assets/hand/myohand_baoding.xml";

// A world and its adjoint, bound by layouts, in memory full of NaN.
typedef struct Placed {
  SnLayout world, adjoint;
  unsigned char *memory;
  SnWorld w;
  SnAdjoint a;
  SnLaneShared shared;
  SnLane lane;
} Placed;

static void *nans(size_t bytes) {
  void *p = aligned_alloc(64, bytes + 64);
  assert_non_null(p);
  memset(p, 0xff, bytes + 64);
  return p;
}

static void place(Placed *p, const SnModel *m, size_t align) {
  SnError err;
  assert_int_equal(sn_world_place(m, align, &p->world, &err), SN_OK);
  assert_int_equal(sn_adjoint_place(m, &p->adjoint, &err), SN_OK);
  assert_true(p->world.growing == 0 && p->adjoint.growing == 0);
  p->memory = nans(p->world.bytes + p->adjoint.bytes);
  p->lane = (SnLane){.n = 1, .shared = &p->shared};
  sn_world_bind(&p->world, &p->w, p->memory, NULL);
  sn_adjoint_bind(&p->adjoint, &p->a, p->memory + p->world.bytes);
  sn_world_begin(m, &p->w, &p->lane);
  sn_adjoint_begin(m, &p->a, &p->lane);
}

static void displace(Placed *p) { free(p->memory); }

typedef bool Field(const SnModel *m, int i, SnLayoutField *field);

// Fields lie inside their memories, aligned, and none on another.
static void check_layout(const SnModel *m, const SnLayout *layout, size_t align, Field *field) {
  unsigned char *used[2] = {calloc(layout->bytes + 1, 1), calloc(layout->growing + 1, 1)};
  const size_t size[2] = {layout->bytes, layout->growing};
  SnLayoutField f;
  for (int i = 0; field(m, i, &f); ++i) {
    const int part = (int)(layout->place[i] & 1u);
    const size_t at = layout->place[i] & ~1u;
    assert_true(at + f.bytes <= size[part]);
    assert_int_equal(at % (part ? SN_LAYOUT_DENSE : align), 0);
    for (size_t k = 0; k < f.bytes; ++k) assert_int_equal(used[part][at + k]++, 0);
  }
  free(used[0]);
  free(used[1]);
}

// Model i of all small ones.
static const char *small_text(int i) {
  if (i < SN_SMALL_MODELS) return sn_small_model(i);
  return i == SN_SMALL_MODELS ? sn_branching_model() : sn_slipping_model();
}

static const size_t aligns[] = {SN_LAYOUT_LINE, SN_LAYOUT_DENSE};

static void layouts(void **state) {
  (void)state;
  for (int i = 0; i <= SN_SMALL_MODELS + 1; ++i) {
    SnOracle o;
    SnLayout world[2], growing, adjoint;
    sn_oracle_load_string(&o, small_text(i));
    for (int k = 0; k < 2; ++k) {
      assert_int_equal(sn_world_place(o.m, aligns[k], &world[k], NULL), SN_OK);
      check_layout(o.m, &world[k], aligns[k], sn_world_field);
    }
    assert_true(world[1].bytes < world[0].bytes);
    assert_int_equal(sn_world_place_growing(o.m, &growing, NULL), SN_OK);
    assert_true(growing.growing > 0 && growing.bytes < world[0].bytes);
    check_layout(o.m, &growing, SN_LAYOUT_LINE, sn_world_field);
    assert_int_equal(sn_adjoint_place(o.m, &adjoint, NULL), SN_OK);
    check_layout(o.m, &adjoint, SN_LAYOUT_LINE, sn_adjoint_field);
    assert_false(sn_world_field(o.m, -1, NULL));
    sn_oracle_free(&o);
  }
}

static void one_memory(void **state) {
  (void)state;
  SnOracle o;
  SnLayout layout;
  SnWorld a, b;
  sn_oracle_load_string(&o, sn_small_model(0));
  void *memory = nans(sn_world_size(o.m));
  assert_int_equal(sn_world_place(o.m, SN_LAYOUT_LINE, &layout, NULL), SN_OK);
  assert_int_equal(layout.bytes, sn_world_size(o.m));
  sn_world_layout(o.m, &a, memory);
  sn_world_bind(&layout, &b, memory, NULL);
  assert_ptr_equal(a.qpos, b.qpos);
  assert_ptr_equal(a.hessian, b.hessian);
  assert_ptr_equal(a.warn, b.warn);
  free(memory);
  sn_oracle_free(&o);
}

// A world of more than 4 GiB is refused, and no address space has what the one in one memory says that it takes.
static void too_large(void **state) {
  (void)state;
  SnOracle o;
  SnError err;
  SnLayout layout;
  sn_oracle_load_string(&o, sn_small_model(0));
  SnModel big = *o.m;
  big.nefcmax = 500 * 1000 * 1000;
  assert_int_equal(sn_world_place(&big, SN_LAYOUT_DENSE, &layout, &err), SN_ERR_LIMIT);
  assert_non_null(strstr(err.text, "4 GiB"));
  assert_int_equal(sn_adjoint_place(&big, &layout, &err), SN_ERR_LIMIT);
  assert_true(sn_world_size(&big) == SN_TOO_LARGE && sn_adjoint_size(&big) == SN_TOO_LARGE);
  assert_true(SN_TOO_LARGE > (size_t)1 << 57);
  sn_oracle_free(&o);
}

// Steps and the adjoint of the last one.
static void run(SnOracle *o, SnWorld *w, SnAdjoint *a, SnLane *lane, const SnCfd *cfd) {
  const SnModel *m = o->m;
  sn_world_copy_state(m, w, &o->w);
  *w->cfd = *cfd;
  for (int t = 0; t < 3; ++t) sn_step(m, w, lane);
  sn_forward(m, w, lane);
  for (int repeat = 0; repeat < 2; ++repeat) {
    sn_adjoint_clear(m, a, lane);
    for (int i = 0; i < m->nv; ++i) {
      a->qpos_next_bar[i] = (sn_real)(1 + i % 3);
      a->qvel_next_bar[i] = (sn_real)(2 - i % 5);
    }
    for (int i = 0; i < m->na; ++i) a->act_next_bar[i] = 1;
    sn_step_vjp(m, w, a, lane);
    sn_position_vjp(m, w, a, lane);
  }
}

static void same(const sn_real *a, const sn_real *b, int n) {
  if (n) assert_memory_equal(a, b, sizeof(sn_real) * (size_t)n);
}

static void compare(SnOracle *o, size_t align, const SnCfd *cfd) {
  const SnModel *m = o->m;
  SnWorld w;
  SnAdjoint a;
  SnLaneShared shared;
  SnLane lane = {.n = 1, .shared = &shared};
  void *memory[] = {nans(sn_world_size(m)), nans(sn_adjoint_size(m))};
  sn_world_init(m, &w, memory[0]);
  sn_adjoint_init(m, &a, memory[1]);
  Placed p;
  place(&p, m, align);
  run(o, &w, &a, &lane, cfd);
  run(o, &p.w, &p.a, &p.lane, cfd);
  assert_int_equal(*w.warn, *p.w.warn);
  assert_int_equal(*w.nefc, *p.w.nefc);
  same(w.qpos, p.w.qpos, m->nq);
  same(w.qvel, p.w.qvel, m->nv);
  same(w.act, p.w.act, m->na);
  same(w.qacc, p.w.qacc, m->nv);
  same(w.xpos, p.w.xpos, 3 * m->nbody);
  same(a.qpos_bar, p.a.qpos_bar, m->nv);
  same(a.qvel_bar, p.a.qvel_bar, m->nv);
  same(a.act_bar, p.a.act_bar, m->na);
  same(a.ctrl_bar, p.a.ctrl_bar, m->nu);
  same(a.mocap_bar, p.a.mocap_bar, 6 * m->nmocap);
  for (int i = 0; i < m->nv; ++i) assert_false(sn_is_bad(p.a.qpos_bar[i]));
  displace(&p);
  free(memory[0]);
  free(memory[1]);
}

static void compare_states(SnOracle *o, int states) {
  const SnCfd hard = {0};
  const SnCfd cfd = {.on = 1, .solimp = {0, SN_R(0.1), SN_R(0.3), SN_R(0.5), 2}, .width = SN_R(0.002)};
  for (int s = 0; s < states; ++s) {
    sn_oracle_randomize(o, 1);
    sn_oracle_copy_state(o);
    for (int k = 0; k < 2; ++k) compare(o, aligns[k], s % 2 ? &cfd : &hard);
  }
}

static void small_models_from_nans(void **state) {
  (void)state;
  static const int integrators[] = {SN_INT_EULER, SN_INT_IMPLICITFAST, SN_INT_RK4};
  for (int i = 0; i <= SN_SMALL_MODELS + 1; ++i) {
    SnOracle o;
    sn_oracle_load_string(&o, small_text(i));
    for (int k = 0; k < 3; ++k) {
      o.m->opt.integrator = integrators[k];
      compare_states(&o, 4);
    }
    sn_oracle_free(&o);
  }
}

static void hand_from_nans(void **state) {
  (void)state;
  SnOracle o;
  sn_oracle_load_myosuite(&o, hand_file);
  compare_states(&o, 2);
  sn_oracle_free(&o);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(layouts), cmocka_unit_test(one_memory),
                                     cmocka_unit_test(too_large), cmocka_unit_test(small_models_from_nans),
                                     cmocka_unit_test(hand_from_nans)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
