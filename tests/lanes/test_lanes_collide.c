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

static void compare_lanes(const char *path, int nstate) {
  SnOracle o;
  sn_oracle_load_file(&o, path);
  int contacts = 0;
  for (int i = 0; i < nstate; ++i) {
    sn_oracle_randomize(&o, 0);
    mj_kinematics(o.mj, o.d);
    SnWorld one, many;
    void *a = collide_on(&o, 1, &one);
    contacts += one.ncon[0];
    for (int n = 2; n <= 7; n += 5) {
      void *b = collide_on(&o, n, &many);
      assert_int_equal(one.ncon[0], many.ncon[0]);
      assert_memory_equal(one.contact, many.contact, sizeof(SnContact) * (size_t)one.ncon[0]);
      free(b);
    }
    free(a);
  }
  printf("%s: %d contacts\n", path, contacts);
  assert_true(contacts > 0);
  sn_oracle_free(&o);
}

static void hand_and_objects(void **state) {
  (void)state;
  const char *dir = sn_oracle_myosuite();
  if (!dir) {
    printf("MyoSuite is not in the cache folder: skipped\n");
    skip();
  }
  char path[5000];
  snprintf(path, sizeof path, "%s/envs/myo/assets/hand/myohand_die.xml", dir);
  compare_lanes(path, 2);
  snprintf(path, sizeof path, "%s/simhive/YCB_sim/ycb_objects.xml", dir);
  compare_lanes(path, 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(hand_and_objects)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
