// Collision on several lanes: the contacts have the bits of one lane.
#include <stdio.h>
#include <stdlib.h>

#include "tests/harness/lanes.h"
#include "tests/harness/oracle.h"

typedef struct Job {
  const SnModel *m;
  SnWorld *w;
} Job;

static void run_collision(SnLane *lane, void *arg) {
  Job *job = arg;
  sn_collision(job->m, job->w, lane);
}

// Collides the frames that MuJoCo computed on n lanes; returns the memory of the world, which the caller frees.
static void *collide_on(SnOracle *o, int n, SnWorld *w) {
  void *memory = aligned_alloc(64, sn_world_size(o->m));
  sn_world_init(o->m, w, memory);
  for (int i = 0; i < 3 * o->m->ngeom; ++i) w->geom_xpos[i] = (sn_real)o->d->geom_xpos[i];
  for (int i = 0; i < 9 * o->m->ngeom; ++i) w->geom_xmat[i] = (sn_real)o->d->geom_xmat[i];
  Job job = {o->m, w};
  sn_lanes_run(n, run_collision, &job);
  return memory;
}

// A pile of bodies of all closed-form types in a walled corner: several chunks of near pairs.
static const char *pile(char *xml, size_t size) {
  static const char *type[] = {"box", "capsule", "sphere", "cylinder"};
  size_t n =
      (size_t)snprintf(xml, size,
                       "<mujoco><default><geom margin='.02'/></default><worldbody><geom type='plane' size='1 1 1'/>"
                       "<geom type='plane' size='1 1 1' euler='0 90 0'/><geom type='box' size='1 .1 1'/>");
  for (int i = 0; i < 16; ++i)
    n += (size_t)snprintf(xml + n, size - n,
                          "<body pos='%g %g %g'><freejoint/><geom type='%s' size='.07 .08 .06'/>"
                          "<geom type='%s' size='.05 .06 .04' pos='.1 0 0'/></body>",
                          .1 * (i % 3), .1 * (i / 3 % 3), .1 * (i / 9), type[i % 3], type[i % 2]);
  snprintf(xml + n, size - n, "<body><joint/><geom type='%s' size='.1 .1'/></body></worldbody></mujoco>", type[3]);
  return xml;
}

static void same_bits(void **state) {
  (void)state;
  char xml[8000];
  SnOracle o;
  sn_oracle_load_string(&o, pile(xml, sizeof xml));
  for (int i = 0; i < 3; ++i) {
    sn_oracle_randomize(&o, 0);
    mj_kinematics(o.mj, o.d);
    SnWorld one, many;
    void *a = collide_on(&o, 1, &one);
    printf("%d pairs, %d contacts\n", o.m->ncpair, one.ncon[0]);
    assert_true(one.ncon[0] > SN_COLLIDE_CHUNK);
    for (int n = 2; n <= 7; n += 5) {
      void *b = collide_on(&o, n, &many);
      assert_int_equal(one.ncon[0], many.ncon[0]);
      assert_memory_equal(one.contact, many.contact, sizeof(SnContact) * (size_t)one.ncon[0]);
      free(b);
    }
    free(a);
  }
  sn_oracle_free(&o);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(same_bits)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
