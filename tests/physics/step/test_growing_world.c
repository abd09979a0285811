// A world that grows: each of its steps has the bits of a world with all of the model's capacities, whatever had to
// grow in it and when. Memory that cannot be had leaves the state as it was.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "physics/step/growing_world.h"
#include "physics/step/step.h"
#include "physics/world/layout.h"
#include "tests/support/oracle.h"

// Allocations that the test lets pass before it refuses one, by the linker's --wrap; -1: it refuses none.
static long allowed = -1;
void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size) {
  if (allowed == 0) return NULL;
  if (allowed > 0) --allowed;
  return __real_aligned_alloc(alignment, size);
}

// A world of each kind, of the model of an oracle.
typedef struct Pair {
  SnOracle *o;
  SnWorld *whole;  // the oracle's own
  SnGrowingWorld *g;
} Pair;

static Pair make_pair(SnOracle *o) {
  SnError err;
  Pair p = {o, &o->w, sn_growing_world_create(o->m, &err)};
  if (!p.g) fail_msg("%s", err.text);
  sn_world_reset(o->m, p.whole);
  return p;
}

static void free_pair(Pair *p) {
  sn_growing_world_free(p->g);
  sn_oracle_free(p->o);
}

static void same(const char *what, long step, const void *a, const void *b, size_t bytes) {
  if (bytes > 0 && memcmp(a, b, bytes) != 0) fail_msg("step %ld: %s differs", step, what);
}

// The fields of a world in the order of sn_world_field: where they are, and which stage writes them.
typedef struct Fields {
  const void *at[SN_LAYOUT_FIELDS];
  SnStage stage[SN_LAYOUT_FIELDS];
} Fields;

static Fields fields_of(const SnWorld *w) {
  Fields f;
  int n = 0;
#define SN_WORLD_FIELD(stage_of, type, name, rows, cols) \
  f.at[n] = w->name;                                     \
  f.stage[n++] = SN_STAGE_##stage_of;
#include "physics/world/world_fields.inc"
#undef SN_WORLD_FIELD
  f.at[n] = w->warn;
  f.stage[n] = SN_STAGE_CFD;
  return f;
}

// All but scratch of solver and integrator, which may hold what earlier steps left there.
static bool is_output(SnStage stage, const char *name) {
  if (strncmp(name, "col_", 4) == 0) return false;  // of fewer pairs at a time
  if (stage == SN_STAGE_SOLVER)
    return strcmp(name, "qacc") == 0 || strcmp(name, "qfrc_constraint") == 0 || strcmp(name, "solver_niter") == 0;
  return stage != SN_STAGE_INTEGRATE;
}

// Compares all fields that do not depend on the capacities; contacts and rows, as many as there are.
static void check_same(const Pair *p, long step) {
  const SnWorld *a = p->whole, *b = &p->g->world;
  const Fields ours = fields_of(b), theirs = fields_of(a);
  SnLayout layout;
  SnLayoutField f;
  assert_int_equal(sn_world_place_growing(p->o->m, &layout, NULL), SN_OK);
  for (int i = 0; sn_world_field(p->o->m, i, &f); ++i)
    if (!(layout.place[i] & 1u) && is_output(ours.stage[i], f.name))
      same(f.name, step, theirs.at[i], ours.at[i], f.bytes);
  const size_t ncon = (size_t)a->ncon[0], nefc = (size_t)a->nefc[0];
  same("contact", step, a->contact, b->contact, ncon * sizeof *a->contact);
  same("efc_force", step, a->efc_force, b->efc_force, nefc * sizeof *a->efc_force);
  same("efc_state", step, a->efc_state, b->efc_state, nefc * sizeof *a->efc_state);
  same("efc_aref", step, a->efc_aref, b->efc_aref, nefc * sizeof *a->efc_aref);
}

static void step_pair(Pair *p) {
  SnError err;
  sn_step(p->o->m, p->whole, &p->o->lane);
  if (sn_growing_world_step(p->g, &err) != SN_OK) fail_msg("%s", err.text);
}

static void set_controls(Pair *p) {
  for (int i = 0; i < p->o->m->nu; ++i)
    p->whole->ctrl[i] = p->g->world.ctrl[i] = (sn_real)(0.5 + 0.5 * sn_oracle_uniform(p->o));
}

// Rolls both out and compares after each step; then prints what grew. Returns how often it grew.
static int roll(Pair *p, const char *name, int steps) {
  int most = 0, rows = 0;
  for (long k = 0; k < steps; ++k) {
    if (k % 20 == 0) set_controls(p);
    step_pair(p);
    check_same(p, k);
    most = sn_maxi(most, p->whole->ncon[0]);
    rows = sn_maxi(rows, p->whole->nefc[0]);
  }
  const SnModel *m = &p->g->model, *whole = p->o->m;
  printf("%s: at most %d contacts, %d rows; grew %d times, to %d of %d contacts, %d of %d rows, %d of %d entries\n",
         name, most, rows, p->g->grown, m->nconmax, whole->nconmax, m->nefcmax, whole->nefcmax, m->nJmax, whole->nJmax);
  return p->g->grown;
}

static void set_cfd(Pair *p, int friction) {
  const SnCfd cfd = {
      .on = 1, .friction = friction, .solimp = {0, SN_R(0.9), SN_R(0.05), SN_R(0.5), 2}, .width = SN_R(0.001)};
  *p->whole->cfd = *p->g->world.cfd = cfd;
}

// A heap of boxes that fall on each other from several heights, with joints that have friction and limits beside it.
static void load_heap(SnOracle *o, const char *option, int boxes) {
  static char text[20000];
  int n = snprintf(text, sizeof text,
                   "<mujoco><option %s/><worldbody><geom type='plane' size='5 5 1'/>"
                   "<body pos='3 0 1'><joint axis='0 1 0' frictionloss='.1' limited='true' range='-30 30'/>"
                   "<geom type='capsule' size='.05' fromto='0 0 0 .5 0 0'/></body>",
                   option);
  for (int i = 0; i < boxes; ++i)
    n += snprintf(text + n, sizeof text - (size_t)n,
                  "<body pos='%g %g %g'><freejoint/><geom type='box' size='.1 .1 .05' condim='%d'/></body>",
                  .03 * (i % 3), .25 * (i % 4), .06 + .13 * (i / 4), i % 2 ? 3 : 4);
  snprintf(text + n, sizeof text - (size_t)n, "</worldbody></mujoco>");
  sn_oracle_load_string(o, text);
}

static void heaps(void **state) {
  (void)state;
  static const char *const option[] = {"timestep='.005'", "timestep='.005' cone='elliptic' integrator='implicitfast'",
                                       "timestep='.005' integrator='RK4'"};
  for (int i = 0; i < 3; ++i) {
    SnOracle o;
    load_heap(&o, option[i], 16);
    Pair p = make_pair(&o);
    assert_true(roll(&p, option[i], 100) >= 3);
    free_pair(&p);
  }
}

// Contacts at a distance are many from the first step on.
static void far_contacts(void **state) {
  (void)state;
  for (int friction = 0; friction < 2; ++friction) {
    SnOracle o;
    load_heap(&o, "timestep='.005'", 12);
    Pair p = make_pair(&o);
    set_cfd(&p, friction);
    assert_true(roll(&p, friction ? "from a distance, friction" : "from a distance", 60) >= 2);
    free_pair(&p);
  }
}

static void muscles(void **state) {
  (void)state;
  static const char *const file[] = {"envs/myo/assets/hand/myohand_baoding.xml", "envs/myo/assets/hand/myohand_die.xml",
                                     "envs/myo/assets/arm/myoarm_relocate.xml"};
  for (int i = 0; i < 3; ++i)
    for (int cfd = 0; cfd < 2; ++cfd) {
      SnOracle o;
      sn_oracle_load_myosuite(&o, file[i]);
      Pair p = make_pair(&o);
      if (cfd) set_cfd(&p, 0);
      const int grown = roll(&p, file[i], 60);
      if (cfd && i < 2) assert_true(grown >= 1);
      free_pair(&p);
    }
}

// Where the model's own capacity ends, both worlds leave out the same and say so, once for as long as nobody clears it.
static void limits_of_the_model(void **state) {
  (void)state;
  for (int kind = 0; kind < 3; ++kind) {
    SnOracle o;
    load_heap(&o, "timestep='.005'", 16);
    if (kind == 0) o.m->nconmax = 40;
    if (kind == 1) o.m->nefcmax = 150;
    if (kind == 2) o.m->nJmax = 1100;
    Pair p = make_pair(&o);
    roll(&p, kind == 0 ? "few contacts" : kind == 1 ? "few rows" : "few entries", 60);
    assert_int_equal(*p.whole->warn, kind == 0 ? SN_WARN_CONTACT_FULL : SN_WARN_EFC_FULL);
    assert_true(p.g->model.nconmax <= o.m->nconmax && p.g->model.nefcmax <= o.m->nefcmax);
    assert_true(p.g->model.nJmax <= o.m->nJmax);
    sn_world_reset(o.m, p.whole);
    sn_world_reset(&p.g->model, &p.g->world);
    assert_int_equal(*p.g->world.warn, 0);
    const int grown = p.g->grown;
    roll(&p, "again", 60);
    assert_int_equal(p.g->grown, grown);
    free_pair(&p);
  }
}

// A warning that nobody has cleared stays, whether the world grows or not; a bad state changes nothing.
static void warnings(void **state) {
  (void)state;
  SnOracle o;
  load_heap(&o, "timestep='.005'", 16);
  Pair p = make_pair(&o);
  *p.whole->warn = *p.g->world.warn = SN_WARN_CONTACT_FULL | SN_WARN_INERTIA;
  assert_true(roll(&p, "warned", 60) > 0);
  assert_int_equal(*p.g->world.warn, SN_WARN_CONTACT_FULL | SN_WARN_INERTIA);
  p.whole->qvel[0] = p.g->world.qvel[0] = (sn_real)NAN;
  step_pair(&p);
  assert_true(*p.g->world.warn & SN_WARN_BAD_STATE);
  assert_int_equal(*p.whole->warn, *p.g->world.warn);
  free_pair(&p);
}

// The state is one block, and nothing else lies in it: what a step keeps.
static void check_block(const SnGrowingWorld *g) {
  const Fields f = fields_of(&g->world);
  const char *begin = (const char *)g->world.time, *end = begin + g->kept_bytes;
  SnLayoutField field;
  for (int i = 0; sn_world_field(&g->model, i, &field); ++i) {
    const char *at = f.at[i];
    if (field.bytes > 0) assert_int_equal(f.stage[i] == SN_STAGE_STATE, at >= begin && at + field.bytes <= end);
  }
}

// What does not depend on the capacities stays where it is; contacts and rows move.
static void views(void **state) {
  (void)state;
  SnOracle o;
  load_heap(&o, "timestep='.005'", 16);
  Pair p = make_pair(&o);
  check_block(p.g);
  const Fields before = fields_of(&p.g->world);
  const SnModel begun = p.g->model;
  assert_true(roll(&p, "views", 60) > 0);
  const Fields after = fields_of(&p.g->world);
  SnLayoutField f, larger;
  int stay = 0, grew = 0;
  for (int i = 0; sn_world_field(&begun, i, &f) && sn_world_field(&p.g->model, i, &larger); ++i) {
    if (f.bytes == larger.bytes) assert_ptr_equal(before.at[i], after.at[i]);
    ++*(f.bytes == larger.bytes ? &stay : &grew);
  }
  printf("%d fields stay, %d grew\n", stay, grew);
  assert_true(stay > 100 && grew > 20);
  free_pair(&p);
}

// Spheres above a floor that a step takes into it all at once: what the state itself does not touch yet.
static void load_rain(SnOracle *o, const char *integrator) {
  static char text[20000];
  int n = snprintf(text, sizeof text,
                   "<mujoco><option timestep='.01' integrator='%s'/><worldbody>"
                   "<geom type='plane' size='5 5 1'/>",
                   integrator);
  for (int i = 0; i < 40; ++i)
    n += snprintf(text + n, sizeof text - (size_t)n,
                  "<body pos='%g %g .12'><joint type='slide' axis='0 0 1'/><geom type='sphere' size='.1'/></body>",
                  .3 * (i % 8), .3 * (i / 8));
  snprintf(text + n, sizeof text - (size_t)n, "</worldbody></mujoco>");
  sn_oracle_load_string(o, text);
}

// The Jacobian of a step whose later evaluations alone do not fit.
static void jacobians(void **state) {
  (void)state;
  static const char *const integrator[] = {"Euler", "RK4"};
  for (int i = 0; i < 2; ++i) {
    SnOracle o;
    SnError err;
    load_rain(&o, integrator[i]);
    Pair p = make_pair(&o);
    const int nv = o.m->nv, n = 2 * nv;
    for (int k = 0; k < nv; ++k) p.whole->qvel[k] = p.g->world.qvel[k] = -3;
    SnAdjoint a, *ours;
    void *memory = aligned_alloc(64, sn_adjoint_size(o.m));
    sn_adjoint_init(o.m, &a, memory);
    sn_real *A[2] = {calloc((size_t)(n * n), sizeof **A), calloc((size_t)(n * n), sizeof **A)}, none[1];
    sn_forward(o.m, p.whole, &o.lane);
    sn_step_jacobian(o.m, p.whole, &a, &o.lane, A[0], none);
    assert_int_equal(sn_growing_world_forward(p.g, &err), SN_OK);
    assert_int_equal(p.g->grown, 0);
    bool again = true;
    int runs = 0;
    for (; again; ++runs) {
      ours = sn_growing_world_adjoint(p.g, &err);
      assert_non_null(ours);
      sn_step_jacobian(&p.g->model, &p.g->world, ours, &p.g->lane, A[1], none);
      assert_int_equal(sn_growing_world_settle(p.g, &again, &err), SN_OK);
    }
    printf("%s: %d runs, %d contacts\n", integrator[i], runs, p.g->model.nconmax);
    assert_true(i == 0 ? runs == 1 : runs > 1);
    same("A", i, A[0], A[1], sizeof **A * (size_t)(n * n));
    step_pair(&p);
    check_same(&p, i);
    free(A[0]);
    free(A[1]);
    free(memory);
    free_pair(&p);
  }
}

// One product by the adjoint of a step, as far as the state.
static void product(const SnModel *m, SnWorld *w, SnAdjoint *a, SnLane *lane) {
  sn_adjoint_clear(m, a, lane);
  for (int i = 0; i < m->nv; ++i) a->qvel_next_bar[i] = 1;
  sn_step_vjp(m, w, a, lane);
  sn_position_vjp(m, w, a, lane);
}

// A heap that is thrown together. The world that grows in the midst of an adjoint is evaluated anew from the start that
// the solver had before: the last digits of its solution depend on it.
static void products(void **state) {
  (void)state;
  int grown = 0;
  for (int seed = 0; seed < 40; ++seed) {
    SnOracle o;
    SnError err;
    load_heap(&o, "timestep='.01' integrator='RK4'", 4);
    o.rng = (uint64_t)seed;
    Pair p = make_pair(&o);
    SnAdjoint a, *ours;
    void *memory = aligned_alloc(64, sn_adjoint_size(o.m));
    sn_adjoint_init(o.m, &a, memory);
    for (int i = 0; i < o.m->nv; ++i) p.whole->qvel[i] = p.g->world.qvel[i] = (sn_real)(4 * sn_oracle_uniform(&o));
    for (long k = 0; k < 6; ++k) {
      sn_forward(o.m, p.whole, &o.lane);
      product(o.m, p.whole, &a, &o.lane);
      assert_int_equal(sn_growing_world_forward(p.g, &err), SN_OK);
      for (bool again = true; again; grown += again) {
        ours = sn_growing_world_adjoint(p.g, &err);
        product(&p.g->model, &p.g->world, ours, &p.g->lane);
        assert_int_equal(sn_growing_world_settle(p.g, &again, &err), SN_OK);
      }
      same("qpos_bar", k, a.qpos_bar, ours->qpos_bar, sizeof(sn_real) * (size_t)o.m->nv);
      same("qvel_bar", k, a.qvel_bar, ours->qvel_bar, sizeof(sn_real) * (size_t)o.m->nv);
      step_pair(&p);
      check_same(&p, k);
    }
    free(memory);
    free_pair(&p);
  }
  printf("grew %d times behind an adjoint\n", grown);
  assert_true(grown > 0);
}

// No memory: the state is that before the call, and with memory all goes on as if nothing had been.
static void no_memory(void **state) {
  (void)state;
  SnOracle o;
  SnError err;
  load_heap(&o, "timestep='.005' integrator='RK4'", 16);
  for (allowed = 0;; ++allowed) {
    const long n = allowed;
    SnGrowingWorld *g = sn_growing_world_create(o.m, &err);
    allowed = n;
    if (g) {
      sn_growing_world_free(g);
      break;
    }
    assert_int_equal(err.code, SN_ERR_MEMORY);
  }
  assert_int_equal(allowed, 3);
  allowed = -1;
  Pair p = make_pair(&o);
  assert_non_null(sn_growing_world_adjoint(p.g, &err));
  int refused = 0;
  for (long k = 0; k < 100; ++k) {
    *p.g->world.warn |= SN_WARN_INERTIA;
    *p.whole->warn |= SN_WARN_INERTIA;
    const int nconmax = p.g->model.nconmax;
    allowed = 0;
    const SnCode code = sn_growing_world_step(p.g, &err);
    allowed = -1;
    if (code != SN_OK) {
      ++refused;
      assert_int_equal(code, SN_ERR_MEMORY);
      assert_int_equal(nconmax, p.g->model.nconmax);
      assert_int_equal(*p.g->world.warn, SN_WARN_INERTIA);
      same("time", k, p.whole->time, p.g->world.time, sizeof(sn_real));
      same("qpos", k, p.whole->qpos, p.g->world.qpos, sizeof(sn_real) * (size_t)o.m->nq);
      same("qvel", k, p.whole->qvel, p.g->world.qvel, sizeof(sn_real) * (size_t)o.m->nv);
      same("qacc_warmstart", k, p.whole->qacc_warmstart, p.g->world.qacc_warmstart, sizeof(sn_real) * (size_t)o.m->nv);
      assert_int_equal(sn_growing_world_step(p.g, &err), SN_OK);
      allowed = 0;
      assert_null(sn_growing_world_adjoint(p.g, &err));
      allowed = -1;
      assert_int_equal(err.code, SN_ERR_MEMORY);
      assert_non_null(sn_growing_world_adjoint(p.g, &err));
    }
    sn_step(o.m, p.whole, &o.lane);
    check_same(&p, k);
  }
  assert_true(refused >= 3);
  free_pair(&p);
}

// What a world of the hand takes, against one of the model's capacities.
static void bytes(void **state) {
  (void)state;
  SnOracle o;
  SnError err;
  sn_oracle_load_myosuite(&o, "simhive/myo_sim/hand/myohand.xml");
  Pair p = make_pair(&o);
  const size_t whole = sn_world_size(o.m), begun = sn_growing_world_bytes(p.g);
  roll(&p, "hand", 60);
  const size_t after = sn_growing_world_bytes(p.g);
  assert_non_null(sn_growing_world_adjoint(p.g, &err));
  const size_t with_adjoint = sn_growing_world_bytes(p.g);
  printf("hand: %zu bytes, at first %zu, then %zu, with an adjoint %zu\n", whole, begun, after, with_adjoint);
  assert_true(begun <= after && 3 * after < whole && after < with_adjoint);
  assert_int_equal(with_adjoint - after, sn_adjoint_size(&p.g->model));
  free_pair(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(heaps),     cmocka_unit_test(far_contacts),
      cmocka_unit_test(muscles),   cmocka_unit_test(limits_of_the_model),
      cmocka_unit_test(warnings),  cmocka_unit_test(views),
      cmocka_unit_test(jacobians), cmocka_unit_test(products),
      cmocka_unit_test(no_memory), cmocka_unit_test(bytes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
