// Every kind of work on a device that is not left alone, the host in its place: pauses, what runs between them and what
// is dropped leave no trace; a device that is lost at any launch.
#include "tests/cuda/host/device_behind.h"
#include "tests/cuda/host/job_fixture.h"
#include "tests/planner/sensing_body.h"

enum { SESSIONS = 4, UNDER_WAY = 3 };

// A session with candidates, gradients and a multistart under way at once.
typedef struct Session {
  SnBackendModel *d;
  Job *want[UNDER_WAY], *got[UNDER_WAY];
  bool done[UNDER_WAY];
} Session;

// Session i has jobs of its own length, number and noise.
static Job *make_unlike(const Scene *x, JobKind kind, int i) {
  Job *j = job_make(x, kind, false);
  j->batch.nstep -= 4 * i;
  j->batch.count -= i % 3;
  j->noise.knots = sn_noise_knots(j->batch.nstep, 8, 3);
  j->noise.seed += (uint64_t)i;
  j->adam.noise.seed += (uint64_t)i;
  j->adam.iterations -= i;
  j->adam.starts = j->adam.count = JOB_STARTS - i % 2;
  return j;
}

// Loads the session and submits what can be; the rest begins when it is asked for.
static void begin_session(const Scene *x, SnBackend *dev, Session *s) {
  if (!s->d) s->d = job_load(dev, x, s->got[0]->kind);
  for (int k = 0; k < UNDER_WAY; ++k) {
    assert_int_equal(job_reserve(dev, s->d, s->got[k]->kind, 0, NULL), SN_OK);
    job_clear(s->got[k]);
    s->done[k] = false;
  }
  job_submit(dev, s->d, s->got[0]);
  job_submit(dev, s->d, s->got[2]);
}

static bool all_done(const Session *s) {
  bool all = true;
  for (int i = 0; i < SESSIONS * UNDER_WAY; ++i) all = all && s[i / UNDER_WAY].done[i % UNDER_WAY];
  return all;
}

// Sessions of a model, each stopped by its clock wherever that can be, the others' work between. What one does is
// dropped on its way, and it begins others; one goes and comes back.
static void check_slices(const Scene *x) {
  static const JobKind kinds[SESSIONS][UNDER_WAY] = {{JOB_ROLLOUTS, JOB_SWEEP, JOB_ADAM},
                                                     {JOB_BATCH, JOB_PRODUCTS, JOB_ADAM_PRODUCTS},
                                                     {JOB_ROLLOUTS, JOB_BARS, JOB_ADAM_PRODUCTS},
                                                     {JOB_BATCH, JOB_TWO_CALLS, JOB_ADAM}};
  SnBackend *dev = open_library("emulator_double", 0, "blocks:3");
  Session sessions[SESSIONS] = {{0}};
  CountingClock count = {0};
  for (int i = 0; i < SESSIONS; ++i) {
    Session *s = &sessions[i];
    for (int k = 0; k < UNDER_WAY; ++k) {
      s->want[k] = make_unlike(x, kinds[i][k], i);
      s->got[k] = make_unlike(x, kinds[i][k], i == 1 ? 0 : i);
      job_alone(x->cpu, x, s->want[k]);
    }
    begin_session(x, dev, s);
  }
  int calls = 0;
  for (; !all_done(sessions); ++calls) {
    Session *s = &sessions[calls % SESSIONS];
    const int k = calls / SESSIONS % UNDER_WAY;
    assert_true(calls < 1000);
    if (!s->done[k]) s->done[k] = job_slice(dev, s->d, s->got[k], &count);
    if (calls == SESSIONS) {
      assert_true(!sessions[1].done[0] && !sessions[3].done[0]);
      sn_backend_abandon(dev, sessions[1].d);
      for (int j = 0; j < UNDER_WAY; ++j) {
        job_free(sessions[1].got[j]);
        sessions[1].got[j] = make_unlike(x, kinds[1][j], 1);
      }
      begin_session(x, dev, &sessions[1]);
      sn_backend_unload(dev, sessions[3].d);
      sessions[3].d = NULL;
      begin_session(x, dev, &sessions[3]);
    }
  }
  printf("%d jobs in %d slices\n", SESSIONS * UNDER_WAY, calls);
  for (int i = 0; i < SESSIONS; ++i) {
    for (int k = 0; k < UNDER_WAY; ++k) {
      job_same(sessions[i].want[k], sessions[i].got[k]);
      job_free(sessions[i].want[k]);
      job_free(sessions[i].got[k]);
    }
    sn_backend_unload(dev, sessions[i].d);
  }
  sn_backend_free(dev);
}

static void slices(void **state) { check_slices(*state); }

// There is no room for the contacts of the first steps alone: a job in slices says so at its end.
static void warnings_of_slices(void **state) {
  (void)state;
  Scene x;
  scene_pile(&x);
  SnModel *narrow = sn_model_copy(x.m, NULL);
  narrow->nconmax = 1;
  x.m = narrow;
  Job *j = job_make(&x, JOB_ROLLOUTS, false);
  job_alone(x.cpu, &x, j);
  assert_true(j->book[0].warn & SN_WARN_CONTACT_FULL);
  check_slices(&x);
  job_free(j);
  sn_model_free(narrow);
  scene_close(&x);
}

// A multistart comes while a longer one is under way, is taken along, ends in its launches and stands still from then
// on: later it goes on from where it was.
static void ended(void **state) {
  (void)state;
  Scene x;
  scene_parse(&x, sensing_xml, sensing_task);
  SnBackend *dev = open_library("emulator_double", 0, NULL);
  for (JobKind kind = JOB_ADAM; kind < JOB_KINDS; ++kind) {
    Job *want = job_make(&x, kind, true), *got = job_make(&x, kind, true), *longer = job_make(&x, kind, true);
    SnBackendModel *a = job_load(x.cpu, &x, kind), *d = job_load(dev, &x, kind), *e = job_load(dev, &x, kind);
    CountingClock count = {0};
    const SnClock clock = counting_clock(&count);
    want->adam.iterations = got->adam.iterations = 2;
    longer->adam.iterations = 9;
    want->adam.next = got->adam.next = NULL;  // else the step is done already when it ends
    job_clear(got);
    job_clear(longer);
    assert_false(job_slice(dev, e, longer, &count));
    sn_backend_multistart_submit(dev, d, &got->adam);
    assert_true(job_until(dev, e, longer, steady_clock(), (double)INFINITY));
    job_run(x.cpu, a, want);
    for (int again = 0; again < 2; ++again) {
      // At first there is nothing left to do, and no time is needed.
      assert_true(job_until(dev, d, got, again ? steady_clock() : &clock, again ? (double)INFINITY : -1));
      if (again) assert_true(job_until(x.cpu, a, want, steady_clock(), (double)INFINITY));
      job_same(want, got);
      want->adam.init = got->adam.init = false;
    }
    sn_backend_unload(x.cpu, a);
    sn_backend_unload(dev, d);
    sn_backend_unload(dev, e);
    job_free(want);
    job_free(got);
    job_free(longer);
  }
  sn_backend_free(dev);
  scene_close(&x);
}

// Begins a job with other controls, and stops it before its first launch or half way. Nothing of it counts.
static void stop_other(const Scene *x, SnBackend *dev, SnBackendModel *d, JobKind kind, bool half) {
  Job *other = job_make(x, kind, false);
  CountingClock count = {0};
  const SnClock clock = counting_clock(&count);
  other->ctrl[0] += 0.5;
  other->first[0] += 0.5;
  job_clear(other);
  const bool done = half ? job_slice(dev, d, other, &count) : job_until(dev, d, other, &clock, -1);
  assert_false(done);
  for (int i = 0; i < JOB_ITEMS; ++i) assert_true(!other->done[i] && other->item[i].status != SN_GRADIENT_DONE);
  if (job_is_adam(other)) sn_backend_multistart_end(dev, d, &other->adam);
  if (!job_is_adam(other)) sn_backend_abandon(dev, d);
  job_free(other);
}

// A job that is dropped, before its inputs have been read or half way, leaves nothing behind; nor does one whose
// session goes, and its model with it. (The emulator is lost where a host writes to what a copy has not read yet.)
static void dropped(void **state) {
  const Scene *x = *state;
  FOR_KINDS(kind) for (int half = 0; half < 2; ++half) {
    SnBackend *dev = open_library("emulator_double", 0, NULL);
    Job *want = job_make(x, kind, false), *got = job_make(x, kind, false), *late = job_make(x, kind, false);
    SnBackendModel *d = job_load(dev, x, kind);
    CountingClock count = {0};
    const SnClock clock = counting_clock(&count);
    char text[300] = "";
    job_alone(x->cpu, x, want);
    stop_other(x, dev, d, kind, half);
    job_run(dev, d, got);
    job_same(want, got);
    sn_backend_unload(dev, d);
    d = job_load(dev, x, kind);  // which has not measured yet what a step takes
    job_clear(late);
    assert_false(half ? job_slice(dev, d, late, &count) : job_until(dev, d, late, &clock, -1));
    sn_backend_unload(dev, d);
    if (sn_backend_lost(dev, text, sizeof text)) fail_msg("%s", text);
    job_alone(dev, x, got);
    job_same(want, got);
    sn_backend_free(dev);
    job_free(want);
    job_free(got);
    job_free(late);
  }
}

// ---- loss ----

// After a loss there is a reason, whatever is asked for returns at once, and there is no room for more.
static void expect_loss(const Scene *x, SnBackend *dev, SnBackendModel *d, Job *got) {
  char text[300] = "";
  SnError err = {0};
  assert_true(sn_backend_lost(dev, text, sizeof text));
  assert_non_null(strstr(text, "launch"));
  if (job_is_adam(got)) sn_backend_multistart_end(dev, d, &got->adam);
  assert_int_equal(got->adam.done, 0);
  job_submit(dev, d, got);
  assert_false(job_until(dev, d, got, steady_clock(), (double)INFINITY));
  sn_backend_abandon(dev, d);
  assert_int_equal(job_reserve(dev, d, got->kind, 50, &err), SN_ERR_STATE);
  assert_non_null(strstr(err.text, "the device is lost: "));
  assert_null(sn_backend_load(dev, x->m, x->cost, 2 * JOB_STEPS, &err));
  sn_backend_update(dev, d);
}

// Takes the place of calls of a device: it is lost by its last copy out, and nothing is launched then.
static struct {
  int copies;  // from now on
  void (*launch)(SnDevice *, SnDeviceStream *, SnKernel, const SnLaunchShape *, const SnWork *);
  void (*copy_out)(SnDevice *, SnDeviceStream *, void *, const void *, size_t);
} losing;

static void losing_launch(SnDevice *d, SnDeviceStream *s, SnKernel kernel, const SnLaunchShape *shape,
                          const SnWork *work) {
  assert_false(d->lost);
  losing.launch(d, s, kernel, shape, work);
}

static void losing_copy_out(SnDevice *d, SnDeviceStream *s, void *host, const void *device, size_t bytes) {
  losing.copy_out(d, s, host, device, bytes);
  if (--losing.copies != 0) return;
  snprintf(d->reason, sizeof d->reason, "the copy behind a launch");
  d->lost = true;
}

// Opens a device that is lost at launch n, or (copies) at copy n out of it.
static SnBackend *open_losing(bool copies, int n) {
  char fault[32];
  snprintf(fault, sizeof fault, "launch:%d", n);
  SnBackend *b = open_library("emulator_double", 0, copies ? NULL : fault);
  SnDevice *d = device_behind(b);
  losing.copies = copies ? n : 0;
  losing.launch = d->launch;
  losing.copy_out = d->copy_out;
  d->launch = losing_launch;
  d->copy_out = losing_copy_out;
  return b;
}

// The device of two sessions is lost at launch or copy n of their jobs, in slices or without a deadline: nothing of
// that call counts, and all memory is given back. Returns whether the jobs have fewer.
static bool lost_at(const Scene *x, const Job *want, bool slices, bool copies, int n) {
  char text[300];
  SnBackend *dev = open_losing(copies, n);
  SnBackendModel *d[2];
  Job *got[2], *was[2];
  bool done[2] = {false, false};
  CountingClock count = {0};
  for (int i = 0; i < 2; ++i) {
    got[i] = job_make(x, want->kind, false);
    was[i] = job_make(x, want->kind, false);
    d[i] = job_load(dev, x, want->kind);
    job_clear(got[i]);
  }
  for (int i = 0; i < 2; ++i) job_submit(dev, d[i], got[i]);
  for (int i = 0; (!done[0] || !done[1]) && !sn_backend_lost(dev, text, sizeof text); i = 1 - i) {
    if (done[i]) continue;
    for (int k = 0; k < 2; ++k) {
      memcpy(was[k]->number, got[k]->number, got[k]->nnumber * sizeof *got[k]->number);
      memcpy(was[k]->item, got[k]->item, sizeof got[k]->item);
    }
    done[i] =
        slices ? job_slice(dev, d[i], got[i], &count) : job_until(dev, d[i], got[i], steady_clock(), (double)INFINITY);
  }
  for (int i = 0; i < 2; ++i) {
    if (done[i]) job_same(want, got[i]);
    if (!done[i]) expect_loss(x, dev, d[i], got[i]);
    for (int k = 0; k < JOB_ITEMS && !done[i]; ++k)
      assert_true(!got[i]->done[k] && got[i]->item[k].status == was[i]->item[k].status);
    if (!done[i]) assert_memory_equal(got[i]->number, was[i]->number, got[i]->nnumber * sizeof *got[i]->number);
    sn_backend_unload(dev, d[i]);
    job_free(got[i]);
    job_free(was[i]);
  }
  sn_backend_free(dev);
  return done[0] && done[1];
}

// At every launch, and at every copy, in turn.
static void lost(void **state) {
  const Scene *x = *state;
  FOR_KINDS(kind) for (int variant = 0; variant < 4; ++variant) {
    const bool slices = variant % 2, copies = variant / 2;
    Job *want = job_make(x, kind, false);
    int n = 1;
    job_alone(x->cpu, x, want);
    while (!lost_at(x, want, slices, copies, n)) assert_true(++n < 1000);
    printf("%s: %d %s\n", job_names[kind], n - 1, copies ? "copies" : "launches");
    assert_true(n > (slices && !copies ? 3 : 1));
    job_free(want);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(slices), cmocka_unit_test(warnings_of_slices),
                                     cmocka_unit_test(ended), cmocka_unit_test(dropped), cmocka_unit_test(lost)};
  return cmocka_run_group_tests(tests, open_arm, close_arm);
}
