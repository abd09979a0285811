// Layouts in two memories: where fields lie, and that a world there, in memory that held anything before, is the same
// world.
#include <stdlib.h>

#include "tests/support/small_models.h"
#include "tests/support/oracle.h"

#include "physics/step/step.h"
#include "physics/world/layout.h"

enum { KIB = 1024 };
static const char hand_file[] = "envs/myo/assets/hand/myohand_baoding.xml";

// A world and its adjoint, bound by layouts, in memory full of NaN.
typedef struct Placed {
  SnLayout world, adjoint;
  unsigned char *shared_memory, *global_memory;
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

static void place(Placed *p, const SnModel *m, size_t shared_bytes) {
  SnError err;
  assert_int_equal(sn_world_place(m, shared_bytes, &p->world, &err), SN_OK);
  assert_true(p->world.shared <= shared_bytes);
  assert_int_equal(sn_adjoint_place(m, shared_bytes - p->world.shared, &p->adjoint, &err), SN_OK);
  assert_true(p->world.shared + p->adjoint.shared <= shared_bytes);
  p->shared_memory = nans(p->world.shared + p->adjoint.shared);
  p->global_memory = nans(p->world.global + p->adjoint.global);
  p->lane = (SnLane){.n = 1, .shared = &p->shared};
  sn_world_bind(&p->world, &p->w, p->shared_memory, p->global_memory);
  sn_adjoint_bind(&p->adjoint, &p->a, p->shared_memory + p->world.shared, p->global_memory + p->world.global);
  sn_world_begin(m, &p->w, &p->lane);
  sn_adjoint_begin(m, &p->a, &p->lane);
}

static void displace(Placed *p) {
  free(p->shared_memory);
  free(p->global_memory);
}

typedef bool Field(const SnModel *m, int i, SnLayoutField *field);

// Fields lie inside their memories, aligned, and none on another.
static void check_layout(const SnModel *m, const SnLayout *layout, Field *field) {
  unsigned char *used[2] = {calloc(layout->global + 1, 1), calloc(layout->shared + 1, 1)};
  const size_t size[2] = {layout->global, layout->shared};
  SnLayoutField f;
  for (int i = 0; field(m, i, &f); ++i) {
    const int in_shared = (int)(layout->place[i] & 1u);
    const size_t at = layout->place[i] & ~1u;
    assert_true(at + f.bytes <= size[in_shared]);
    assert_int_equal(at % 16, 0);
    for (size_t k = 0; k < f.bytes; ++k) assert_int_equal(used[in_shared][at + k]++, 0);
  }
  free(used[0]);
  free(used[1]);
}

static size_t padded(size_t bytes) { return (bytes + 15) / 16 * 16; }

// A field is outside only where those that come before it leave no room for it; each has a rank.
static void check_order(const SnModel *m, const SnLayout *layout, size_t capacity, Field *field) {
  SnLayoutField a, b;
  for (int i = 0; field(m, i, &a); ++i) {
    assert_in_range(a.rank, 0, 9);
    if (a.bytes == 0 || (layout->place[i] & 1u)) continue;
    size_t before = 0;
    for (int k = 0; field(m, k, &b); ++k) {
      const bool sooner = b.rank > a.rank || (b.rank == a.rank && (b.bytes < a.bytes || (b.bytes == a.bytes && k < i)));
      if (sooner && (layout->place[k] & 1u)) before += padded(b.bytes);
    }
    assert_true(before + padded(a.bytes) > capacity / 64 * 64);
  }
}

// Model i of all small ones.
static const char *small_text(int i) {
  if (i < SN_SMALL_MODELS) return sn_small_model(i);
  return i == SN_SMALL_MODELS ? sn_branching_model() : sn_slipping_model();
}

static void layouts(void **state) {
  (void)state;
  static const size_t shared_bytes[] = {0, 63, 64, 1000, 16 * KIB, 48 * KIB, 227 * KIB, (size_t)1 << 30};
  for (int i = 0; i <= SN_SMALL_MODELS + 1; ++i) {
    SnOracle o;
    sn_oracle_load_string(&o, small_text(i));
    for (size_t k = 0; k < sizeof shared_bytes / sizeof *shared_bytes; ++k) {
      Placed p;
      place(&p, o.m, shared_bytes[k]);
      check_layout(o.m, &p.world, sn_world_field);
      check_layout(o.m, &p.adjoint, sn_adjoint_field);
      check_order(o.m, &p.world, shared_bytes[k], sn_world_field);
      check_order(o.m, &p.adjoint, shared_bytes[k] - p.world.shared, sn_adjoint_field);
      assert_int_equal(shared_bytes[k] < 64, p.world.shared == 0);
      if (shared_bytes[k] > 1000 * KIB) assert_true(p.world.global == 0 && p.adjoint.global == 0);
      displace(&p);
    }
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
  assert_int_equal(sn_world_place(o.m, 0, &layout, NULL), SN_OK);
  assert_int_equal(layout.global, sn_world_size(o.m));
  sn_world_layout(o.m, &a, memory);
  sn_world_bind(&layout, &b, NULL, memory);
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
  assert_int_equal(sn_world_place(&big, 48 * KIB, &layout, &err), SN_ERR_LIMIT);
  assert_non_null(strstr(err.text, "4 GiB"));
  assert_int_equal(sn_adjoint_place(&big, 0, &layout, &err), SN_ERR_LIMIT);
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

static void compare(SnOracle *o, size_t shared_bytes, const SnCfd *cfd) {
  const SnModel *m = o->m;
  SnWorld w;
  SnAdjoint a;
  SnLaneShared shared;
  SnLane lane = {.n = 1, .shared = &shared};
  void *memory[] = {nans(sn_world_size(m)), nans(sn_adjoint_size(m))};
  sn_world_init(m, &w, memory[0]);
  sn_adjoint_init(m, &a, memory[1]);
  Placed p;
  place(&p, m, shared_bytes);
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
  static const size_t shared_bytes[] = {0, 20 * KIB, 227 * KIB};
  const SnCfd hard = {0};
  const SnCfd cfd = {.on = 1, .solimp = {0, SN_R(0.1), SN_R(0.3), SN_R(0.5), 2}, .width = SN_R(0.002)};
  for (int s = 0; s < states; ++s) {
    sn_oracle_randomize(o, 1);
    sn_oracle_copy_state(o);
    for (size_t k = 0; k < sizeof shared_bytes / sizeof *shared_bytes; ++k)
      compare(o, shared_bytes[k], s % 2 ? &cfd : &hard);
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

// For people: what fits.
static void hand_table(void **state) {
  (void)state;
  static const size_t shared_bytes[] = {0, 48 * KIB, 100 * KIB, 227 * KIB};
  SnOracle o;
  sn_oracle_load_myosuite(&o, hand_file);
  for (size_t k = 0; k < sizeof shared_bytes / sizeof *shared_bytes; ++k) {
    Placed p;
    SnLayoutField f;
    place(&p, o.m, shared_bytes[k]);
    print_message(
        "%zu KiB shared, sn_real of %zu bytes: world %zu + %zu, adjoint %zu + %zu bytes (shared + global)\n  global:",
        shared_bytes[k] / KIB, sizeof(sn_real), p.world.shared, p.world.global, p.adjoint.shared, p.adjoint.global);
    for (int i = 0; shared_bytes[k] && sn_world_field(o.m, i, &f); ++i)
      if (f.bytes && !(p.world.place[i] & 1u)) print_message(" %s %zu", f.name, f.bytes);
    for (int i = 0; shared_bytes[k] && sn_adjoint_field(o.m, i, &f); ++i)
      if (f.bytes && !(p.adjoint.place[i] & 1u)) print_message(" %s %zu", f.name, f.bytes);
    print_message("\n");
    displace(&p);
  }
  sn_oracle_free(&o);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(layouts),        cmocka_unit_test(one_memory),
                                     cmocka_unit_test(too_large),      cmocka_unit_test(small_models_from_nans),
                                     cmocka_unit_test(hand_from_nans), cmocka_unit_test(hand_table)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
