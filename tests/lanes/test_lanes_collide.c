// Collision on several lanes, forwards and backwards: contacts and wrenches have the bits of one lane.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "physics/collision/collision.h"
#include "physics/world/adjoint.h"
#include "tests/support/lanes.h"
#include "tests/support/oracle.h"

typedef struct Job {
  const SnModel *m;
  SnWorld *w;
  SnAdjoint *a;
} Job;

static void run_collision(SnLane *lane, void *arg) {
  Job *job = arg;
  sn_collision(job->m, job->w, lane);
}

static void run_adjoint(SnLane *lane, void *arg) {
  Job *job = arg;
  sn_adjoint_clear(job->m, job->a, lane);
  sn_collision_vjp(job->m, job->w, job->a, lane);
}

// Collides the frames that MuJoCo computed on n lanes; returns the memory of the world, which the caller frees.
static void *collide_on(SnOracle *o, int n, SnWorld *w) {
  void *memory = aligned_alloc(64, sn_world_size(o->m));
  sn_world_init(o->m, w, memory);
  for (int i = 0; i < 3 * o->m->ngeom; ++i) w->geom_xpos[i] = (sn_real)o->d->geom_xpos[i];
  for (int i = 0; i < 9 * o->m->ngeom; ++i) w->geom_xmat[i] = (sn_real)o->d->geom_xmat[i];
  for (int i = 0; i < 3 * o->m->nbody; ++i) w->subtree_com[i] = (sn_real)o->d->subtree_com[i];
  for (int i = 0; i < 6 * o->m->nv; ++i) w->cdof[i] = (sn_real)o->d->cdof[i];
  for (int i = 0; i < o->m->nv; ++i) w->qvel[i] = (sn_real)o->d->qvel[i];
  Job job = {o->m, w, NULL};
  sn_lanes_run(n, run_collision, &job);
  return memory;
}

// Wrenches of bars that are different at each contact, and zero at some; the caller frees the memory.
static void *back_on(SnOracle *o, int n, SnWorld *w, SnAdjoint *a) {
  void *memory = aligned_alloc(64, (sn_adjoint_size(o->m) + 63) / 64 * 64);
  sn_adjoint_init(o->m, a, memory);
  for (int i = 0; i < w->ncon[0]; ++i) {
    if (i % 5 == 2) continue;
    a->con_dist_bar[i] = (sn_real)sin(1 + i);
    for (int k = 0; k < 3; ++k) a->con_pos_bar[3 * i + k] = (sn_real)sin(2 + 3 * i + k);
    for (int k = 0; k < 9; ++k) a->con_frame_bar[9 * i + k] = (sn_real)sin(3 + 9 * i + k);
  }
  Job job = {o->m, w, a};
  sn_lanes_run(n, run_adjoint, &job);
  return memory;
}

// A pile of bodies of all closed-form types in a walled corner: several chunks of near pairs.
static const char *pile(char *xml, size_t size, const char *flags) {
  static const char *type[] = {"box", "capsule", "sphere", "cylinder"};
  size_t n = (size_t)snprintf(
      xml, size,
      "<mujoco><option timestep='.01'><flag %s/></option><default><geom margin='.02'/></default><worldbody>"
      "<geom type='plane' size='1 1 1'/><geom type='plane' size='1 1 1' euler='0 90 0'/>"
      "<geom type='box' size='1 .1 1'/>",
      flags);
  for (int i = 0; i < 16; ++i)
    n += (size_t)snprintf(xml + n, size - n,
                          "<body pos='%g %g %g'><freejoint/><geom type='%s' size='.07 .08 .06'/>"
                          "<geom type='%s' size='.05 .06 .04' pos='.1 0 0'/></body>",
                          .1 * (i % 3), .1 * (i / 3 % 3), .1 * (i / 9), type[i % 3], type[i % 2]);
  snprintf(xml + n, size - n, "<body><joint/><geom type='%s' size='.1 .1'/></body></worldbody></mujoco>", type[3]);
  return xml;
}

static void check_bits(const char *flags, double speed) {
  char xml[8000];
  SnOracle o;
  sn_oracle_load_string(&o, pile(xml, sizeof xml, flags));
  for (int i = 0; i < 3; ++i) {
    sn_oracle_randomize(&o, speed);
    mj_kinematics(o.mj, o.d);
    mj_comPos(o.mj, o.d);
    SnWorld one, many;
    SnAdjoint back_one, back_many;
    void *a = collide_on(&o, 1, &one), *back_a = back_on(&o, 1, &one, &back_one);
    sn_real largest = 0;
    for (int k = 0; k < 6 * o.m->nbody; ++k) largest = sn_max(largest, sn_abs(back_one.wrench[k]));
    assert_true(largest > 1);
    printf("%d pairs, %d contacts\n", o.m->ncpair, one.ncon[0]);
    assert_true(one.ncon[0] > SN_COLLIDE_CHUNK);
    for (int n = 2; n <= 7; n += 5) {
      void *b = collide_on(&o, n, &many);
      assert_int_equal(one.ncon[0], many.ncon[0]);
      assert_memory_equal(one.contact, many.contact, sizeof(SnContact) * (size_t)one.ncon[0]);
      void *back_b = back_on(&o, n, &many, &back_many);
      assert_memory_equal(back_one.wrench, back_many.wrench, sizeof(sn_real) * 6 * (size_t)o.m->nbody);
      assert_memory_equal(back_one.twist_bar, back_many.twist_bar,
                          sizeof(sn_real) * 6 * SN_NMOTION * (size_t)o.m->nbody);
      free(b);
      free(back_b);
    }
    free(a);
    free(back_a);
  }
  sn_oracle_free(&o);
}

static void same_bits(void **state) {
  (void)state;
  check_bits("energy='disable'", 0);
}

// Contacts before impact, too.
static void foreseen(void **state) {
  (void)state;
  check_bits("speculative='enable'", 40);
}

// Many bodies: the broad phase sweeps, on one lane, and the others go on from what it finds.
static void swept(void **state) {
  (void)state;
  static char xml[60000];
  size_t n = (size_t)snprintf(xml, sizeof xml, "<mujoco><worldbody><geom type='plane' size='1 1 1'/>");
  for (int i = 0; i < 210; ++i)
    n += (size_t)snprintf(xml + n, sizeof xml - n, "<body pos='%g %g .04'><freejoint/><geom size='.05'/></body>",
                          .09 * (i % 15), .09 * (i / 15));
  snprintf(xml + n, sizeof xml - n, "</worldbody></mujoco>");
  SnOracle o;
  sn_oracle_load_string(&o, xml);
  assert_true(o.m->nsweep > 0);
  mj_kinematics(o.mj, o.d);
  mj_comPos(o.mj, o.d);
  SnWorld one, many;
  void *a = collide_on(&o, 1, &one), *b = collide_on(&o, 5, &many);
  assert_true(one.ncon[0] > 400);
  assert_int_equal(one.ncon[0], many.ncon[0]);
  assert_memory_equal(one.contact, many.contact, sizeof(SnContact) * (size_t)one.ncon[0]);
  free(a);
  free(b);
  sn_oracle_free(&o);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(same_bits), cmocka_unit_test(foreseen), cmocka_unit_test(swept)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
