// Gradients of a cost of the caller's own on the emulator, beside what holds of all jobs (test_jobs.c): rollouts alone,
// what he makes of their states, the way back. The bits of the CPU in double by both methods; divergence, a device that
// is lost between.
#include "tests/cuda/host/job_fixture.h"
#include "tests/planner/sensing_body.h"

// The same job on the CPU and on a device.
typedef struct Pair {
  SnBackend *b[2];
  SnBackendModel *d[2];
  Job *job[2];
} Pair;

// x without a cost: the job has none but the caller's.
static Pair pair_open(const Scene *x, SnBackend *b, SnGradientMethod method, bool with_cfd, bool with_cost) {
  Pair p = {.b = {x->cpu, b}};
  Scene bare = *x;
  if (!with_cost) bare.cost = NULL;
  for (int i = 0; i < 2; ++i) {
    Job *j = p.job[i] = job_make(x, JOB_BARS, with_cfd);
    p.d[i] = job_load(p.b[i], &bare, JOB_BARS);
    j->gradients.settings.method = method;
    for (int k = 0; k < JOB_ITEMS && !with_cost; ++k) j->item[k].target = NULL, j->item[k].target_bar = NULL;
    job_clear(j);
  }
  return p;
}

static void pair_close(Pair *p) {
  for (int i = 0; i < 2; ++i) {
    sn_backend_unload(p->b[i], p->d[i]);
    job_free(p->job[i]);
  }
}

// Computes both: rollouts alone, or all that is left after them; to the same bits.
static void pair_run(Pair *p, bool forward, SnGradientStatus from) {
  for (int i = 0; i < 2; ++i) {
    Job *j = p->job[i];
    j->gradients.forward = forward;
    for (int k = 0; k < JOB_ITEMS; ++k)
      if (from != SN_GRADIENT_ROLLED || j->item[k].status != SN_GRADIENT_DIVERGED) j->item[k].status = from;
    assert_true(job_until(p->b[i], p->d[i], j, steady_clock(), (double)INFINITY));
  }
  job_same(p->job[0], p->job[1]);
}

// Leaves one part of the bars (5: none), and `part` times the session's cost.
static void leave_part(Job *j, int part) {
  for (int k = 0; k < JOB_ITEMS; ++k) {
    SnTrajectoryBar *bar = &j->bar[k];
    const SnTrajectoryBar all = *bar;
    *bar = (SnTrajectoryBar){.cost = part};
    if (part == 0) bar->qpos = all.qpos;
    if (part == 1) bar->qvel = all.qvel;
    if (part == 2) bar->act = all.act;
    if (part == 3) bar->sensordata = all.sensordata;
    if (part == 4) bar->ctrl = all.ctrl;
  }
}

// Each part of the bar alone. In one go; rollouts alone, which leave all derivatives as they were, and then the way
// back, twice.
static void same_as_cpu(void **state) {
  (void)state;
  Scene x;
  scene_parse(&x, sensing_xml, sensing_task);
  SnBackend *b = open_library("emulator_double", 0, "blocks:2");
  for (int variant = 0; variant < 4; ++variant) {
    Pair p = pair_open(&x, b, (SnGradientMethod)(variant % 2), false, variant / 2);
    const Job *device = p.job[1];
    for (int part = 0; part < 6; ++part) {
      Pair one = pair_open(&x, b, (SnGradientMethod)(variant % 2), false, variant / 2);
      for (int i = 0; i < 2; ++i) leave_part(one.job[i], part);
      pair_run(&one, false, SN_GRADIENT_PENDING);
      for (int k = 0; k < JOB_ITEMS; ++k)
        assert_true(one.job[1]->item[k].status == SN_GRADIENT_DONE && (one.job[1]->item[k].norm > 0 || part == 5));
      pair_close(&one);
    }
    pair_run(&p, true, SN_GRADIENT_PENDING);
    for (int k = 0; k < JOB_ITEMS; ++k) assert_int_equal(device->item[k].status, SN_GRADIENT_ROLLED);
    const double before = device->item[1].ctrl_bar[0];
    for (int again = 0; again < 2; ++again) pair_run(&p, false, SN_GRADIENT_ROLLED);
    assert_true(device->item[1].ctrl_bar[0] != before && device->item[1].norm > 0);
    pair_close(&p);
  }
  sn_backend_free(b);
  scene_close(&x);
}

// Contacts from distance on the way back, whose solvers start from what the way back before has left: rollouts alone
// between two of them leave that as it is.
static void cfd_goes_on(void **state) {
  (void)state;
  Scene x;
  scene_parse(&x, sensing_xml, sensing_task);
  SnBackend *b = open_library("emulator_double", 0, NULL);
  for (int method = SN_GRADIENT_SWEEP; method <= SN_GRADIENT_PRODUCTS; ++method) {
    Pair p = pair_open(&x, b, (SnGradientMethod)method, true, true);
    pair_run(&p, false, SN_GRADIENT_PENDING);
    for (int i = 0; i < 2 * JOB_ITEMS; ++i) p.job[i % 2]->item[i / 2].continues = true;
    pair_run(&p, true, SN_GRADIENT_PENDING);
    pair_run(&p, false, SN_GRADIENT_ROLLED);
    pair_close(&p);
  }
  sn_backend_free(b);
  scene_close(&x);
}

// The bar of the motor's force at the last state is that of the control that still stands there, by both methods.
static void last_state(void **state) {
  (void)state;
  Scene x;
  scene_parse(&x, sensing_xml, sensing_task);
  const SnModel *m = x.m;
  const int at = m->sensor_adr[sn_model_find(m, SN_NAME_SENSOR, "force")];
  SnBackend *b = open_library("emulator_double", 0, NULL);
  for (int method = SN_GRADIENT_SWEEP; method <= SN_GRADIENT_PRODUCTS; ++method) {
    Pair p = pair_open(&x, b, (SnGradientMethod)method, false, false);
    double *force = calloc((JOB_MOST + 1) * (size_t)m->nsensordata, sizeof *force);
    const SnGradient *g = &p.job[1]->item[1];
    force[g->nstep * m->nsensordata + at] = 3;
    for (int i = 0; i < 2; ++i) p.job[i]->bar[1] = (SnTrajectoryBar){.sensordata = force};
    pair_run(&p, false, SN_GRADIENT_PENDING);
    for (int i = 0; i < g->nstep * m->nu; ++i)
      assert_true(g->ctrl_bar[i] == (i == (g->nstep - 1) * m->nu + 2 ? 3.0 : 0));
    pair_close(&p);
    free(force);
  }
  sn_backend_free(b);
  scene_close(&x);
}

// One diverges on its way forward, one later: it has no states from there on and no gradient, and nobody else knows.
static void divergence(void **state) {
  (void)state;
  Scene x;
  scene_parse(&x, sensing_xml, sensing_task);
  SnBackend *b = open_library("emulator_double", 0, NULL);
  Pair p = pair_open(&x, b, SN_GRADIENT_SWEEP, false, true);
  const SnGradient *early = &p.job[1]->item[0], *late = &p.job[1]->item[1], *other = &p.job[1]->item[2];
  for (int i = 0; i < 2; ++i) {
    p.job[i]->item[0].max_velocity = 1e-3;
    p.job[i]->item[1].max_velocity = 0.7;
  }
  pair_run(&p, true, SN_GRADIENT_PENDING);
  assert_true(early->status == SN_GRADIENT_DIVERGED && early->steps == 0);
  assert_true(late->status == SN_GRADIENT_DIVERGED && late->steps > 0);
  assert_true(isnan(late->out->qpos[x.m->nq * late->steps]));
  assert_int_equal(other->status, SN_GRADIENT_ROLLED);
  pair_run(&p, false, SN_GRADIENT_ROLLED);
  assert_int_equal(late->status, SN_GRADIENT_DIVERGED);
  assert_int_equal(other->status, SN_GRADIENT_DONE);
  pair_close(&p);
  sn_backend_free(b);
  scene_close(&x);
}

// The device goes between the phases, or on the way back: nothing of the call counts.
static void lost_on_the_way(void **state) {
  (void)state;
  const char *const faults[] = {"launch:1", "launch:3"};
  Scene x;
  scene_parse(&x, sensing_xml, sensing_task);
  for (int k = 0; k < 2; ++k) {
    SnBackend *b = open_library("emulator_double", 0, faults[k]);
    Job *j = job_make(&x, JOB_BARS, false);
    SnBackendModel *d = job_load(b, &x, JOB_BARS);
    char text[256];
    job_clear(j);
    const double before = j->item[1].ctrl_bar[0];
    j->gradients.forward = true;
    assert_int_equal(job_until(b, d, j, steady_clock(), (double)INFINITY), k);
    j->gradients.forward = false;
    assert_false(job_until(b, d, j, steady_clock(), (double)INFINITY));
    assert_true(sn_backend_lost(b, text, sizeof text));
    for (int i = 0; i < JOB_ITEMS; ++i) {
      assert_int_equal(j->item[i].status, k ? SN_GRADIENT_ROLLED : SN_GRADIENT_PENDING);
      assert_memory_equal(j->item[i].ctrl_bar, &before, sizeof before);
    }
    sn_backend_unload(b, d);
    sn_backend_free(b);
    job_free(j);
  }
  scene_close(&x);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(same_as_cpu), cmocka_unit_test(cfd_goes_on),
                                     cmocka_unit_test(last_state), cmocka_unit_test(divergence),
                                     cmocka_unit_test(lost_on_the_way)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
