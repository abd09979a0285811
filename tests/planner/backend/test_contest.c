// Which of two backends is faster, and from how many at once: backends by a script, on a clock that only they move, so
// every figure is known. What is kept in a folder, and what of it is believed.
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "planner/backend/backend_impl.h"
#include "physics/model/model_file.h"
#include "planner/backend/contest.h"
#include "planner/cost/cost.h"
#include "tests/support/oracle.h"

// A backend whose call takes `start` and `each` for every one at once [s], up to `room` of them.
typedef struct Scripted {
  SnBackend table;  // first
  double start, each;
  int room, calls, loads;
  bool lost;
} Scripted;

static double now;
static double tell(void *context) {
  (void)context;
  return now;
}

static bool take(SnBackend *b, int n) {
  Scripted *x = (Scripted *)b;
  ++x->calls;
  now += x->start + x->each * n;
  return !x->lost;
}

static SnBackendModel *load(SnBackend *b, const SnModel *m, const SnCost *cost, int max_step, SnError *err) {
  (void)m, (void)cost, (void)max_step, (void)err;
  ++((Scripted *)b)->loads;
  return (SnBackendModel *)b;
}
static void unload(SnBackend *b, SnBackendModel *x) {
  (void)x;
  --((Scripted *)b)->loads;
}
static SnCode reserve(SnBackend *b, SnBackendModel *x, int n, SnError *err) {
  (void)x;
  return n <= ((Scripted *)b)->room ? SN_OK : sn_fail(err, SN_ERR_LIMIT, "no room for %d", n);
}
static bool rollouts(SnBackend *b, SnBackendModel *x, const SnBatch *batch, const SnClock *clock, double until) {
  (void)x, (void)clock, (void)until;
  assert_true(batch->count > 0 && batch->nstep == 8 && batch->cost && batch->done);
  return take(b, batch->count);
}
static bool gradients(SnBackend *b, SnBackendModel *x, SnGradientBatch *batch, const SnClock *clock, double until) {
  (void)x, (void)clock, (void)until;
  for (int i = 0; i < batch->count; ++i) {
    assert_int_equal(batch->item[i].status, SN_GRADIENT_PENDING);
    assert_true(batch->item[i].ctrl_bar != batch->item[(i + 1) % batch->count].ctrl_bar || batch->count == 1);
  }
  return take(b, batch->count);
}
static bool multistart(SnBackend *b, SnBackendModel *x, SnMultistartJob *job, const SnClock *clock, double until) {
  (void)x, (void)clock, (void)until;
  return take(b, job->count);
}
static void multistart_end(SnBackend *b, SnBackendModel *x, SnMultistartJob *job) { (void)b, (void)x, (void)job; }
static void describe(const SnBackend *b, char *text, int size) {
  snprintf(text, (size_t)size, "%s by a script", b->name);
}
static bool lost(const SnBackend *b, char *text, int size) {
  if (((const Scripted *)b)->lost) snprintf(text, (size_t)size, "the script says so");
  return ((const Scripted *)b)->lost;
}

static Scripted scripted(const char *name, double start, double each) {
  return (Scripted){.table = {.name = name,
                              .job_iterations = 1,
                              .describe = describe,
                              .lost = lost,
                              .load = load,
                              .unload = unload,
                              .reserve_rollouts = reserve,
                              .rollouts = rollouts,
                              .reserve_gradients = reserve,
                              .gradients = gradients,
                              .reserve_multistart = reserve,
                              .multistart = multistart,
                              .multistart_end = multistart_end},
                    .start = start,
                    .each = each,
                    .room = 1 << 20};
}

typedef struct Fixture {
  SnOracle o;
  sn_number *ctrl;
  SnContestDef def;
} Fixture;

static void open_fixture(Fixture *x, Scripted *cpu, Scripted *all, Scripted *device) {
  sn_oracle_load_string(&x->o,
                        "<mujoco><worldbody><body><joint name='x' type='slide'/><geom size='.1'/></body></worldbody>"
                        "<actuator><motor joint='x'/></actuator></mujoco>");
  sn_oracle_copy_state(&x->o);
  x->ctrl = calloc(8 * (size_t)x->o.m->nu + 1, sizeof *x->ctrl);
  x->def = (SnContestDef){.device = &device->table,
                          .cpu = {&cpu->table, all ? &all->table : NULL},
                          .ncpu = all ? 2 : 1,
                          .model = x->o.m,
                          .cost = sn_cost_none(),
                          .ctrl = x->ctrl,
                          .steps = 8,
                          .most = 4096,
                          .seconds = 1e6,
                          .clock = {tell, NULL}};
  now = 0;
}

static void close_fixture(Fixture *x) {
  free(x->ctrl);
  sn_oracle_free(&x->o);
}

// A device with a start of 1 s and 1 ms each; a CPU with 10 ms each: it wins from 112 on, that is 256 of what is tried.
static void wins_from(void **state) {
  (void)state;
  Fixture x;
  Scripted cpu = scripted("cpu", 0, 0.01), all = scripted("cpu", 0, 0.002), device = scripted("device", 1, 0.001);
  SnContest c;
  SnError err = {0};
  open_fixture(&x, &cpu, &all, &device);
  assert_int_equal(sn_contest_run(&x.def, &c, &err), SN_OK);
  for (int kind = 0; kind < SN_NCONTEST; ++kind) {
    assert_int_equal(c.rows[kind], 7);
    assert_int_equal(c.row[kind][6].count, 4096);
    assert_true(fabs(c.row[kind][3].device - 1.064) < 1e-9 && fabs(c.row[kind][3].cpu[0] - 0.64) < 1e-9);
    assert_int_equal(sn_contest_from(&c, (SnContestKind)kind, 0), 256);
    assert_int_equal(sn_contest_from(&c, (SnContestKind)kind, 1), 1024);  // 1 s / (2 ms - 1 ms) = 1000 < 1024
  }
  char text[200];
  sn_contest_text(&c, SN_CONTEST_GRADIENTS, 0, text, sizeof text);
  assert_non_null(strstr(text, "gradients: from 256 at once on (100/s on the CPU, "));
  assert_true(cpu.loads == 0 && all.loads == 0 && device.loads == 0);
  close_fixture(&x);
}

// A device that is slower at any count, one without room for many, and one that makes no gradients.
static void wins_nowhere(void **state) {
  (void)state;
  Fixture x;
  Scripted cpu = scripted("cpu", 0, 0.01), slow = scripted("device", 1, 0.02), small = scripted("device", 0, 0.001);
  SnContest c;
  open_fixture(&x, &cpu, NULL, &slow);
  assert_int_equal(sn_contest_run(&x.def, &c, NULL), SN_OK);
  assert_int_equal(sn_contest_from(&c, SN_CONTEST_STEPS, 0), 0);
  close_fixture(&x);
  small.room = 20;
  small.table.multistart = NULL;
  open_fixture(&x, &cpu, NULL, &small);
  assert_int_equal(sn_contest_run(&x.def, &c, NULL), SN_OK);
  assert_int_equal(c.rows[SN_CONTEST_STEPS], 3);
  assert_int_equal(sn_contest_from(&c, SN_CONTEST_STEPS, 0), 1);
  assert_int_equal(c.rows[SN_CONTEST_REFINEMENTS], 0);
  assert_int_equal(sn_contest_from(&c, SN_CONTEST_REFINEMENTS, 0), 0);
  close_fixture(&x);
}

// A number from which on it wins is one with no loss behind it; a tie is none.
static void no_loss_behind(void **state) {
  (void)state;
  SnContest c = {.steps = 8, .rows = {4, 1}};
  c.row[SN_CONTEST_STEPS][0] = (SnContestRow){.count = 1, .cpu = {2}, .device = 1};
  c.row[SN_CONTEST_STEPS][1] = (SnContestRow){.count = 4, .cpu = {2}, .device = 3};
  c.row[SN_CONTEST_STEPS][2] = (SnContestRow){.count = 16, .cpu = {4}, .device = 3};
  c.row[SN_CONTEST_STEPS][3] = (SnContestRow){.count = 64, .cpu = {9}, .device = 3};
  c.row[SN_CONTEST_GRADIENTS][0] = (SnContestRow){.count = 1, .cpu = {2}, .device = 2};
  assert_int_equal(sn_contest_from(&c, SN_CONTEST_STEPS, 0), 16);
  assert_int_equal(sn_contest_from(&c, SN_CONTEST_GRADIENTS, 0), 0);
  char text[200];
  sn_contest_text(&c, SN_CONTEST_GRADIENTS, 0, text, sizeof text);
  assert_non_null(strstr(text, "gradients: the CPU at any count"));
}

// It ends in about the time that it has; what the CPU has no time for is in proportion, and says so.
static void ends_in_time(void **state) {
  (void)state;
  Fixture x;
  Scripted cpu = scripted("cpu", 0, 0.01), device = scripted("device", 0.001, 1e-5);
  SnContest c;
  open_fixture(&x, &cpu, NULL, &device);
  x.def.seconds = 1.5;
  assert_int_equal(sn_contest_run(&x.def, &c, NULL), SN_OK);
  printf("%.3f s\n", now);
  assert_true(now < 2 * x.def.seconds);
  const SnContestRow *last = &c.row[SN_CONTEST_STEPS][c.rows[SN_CONTEST_STEPS] - 1];
  assert_int_equal(last->count, 4096);
  assert_true(last->scaled[0] && fabs(last->cpu[0] - 40.96) < 1e-9);
  assert_false(c.row[SN_CONTEST_STEPS][0].scaled[0]);
  close_fixture(&x);
}

static void lost_meanwhile(void **state) {
  (void)state;
  Fixture x;
  Scripted cpu = scripted("cpu", 0, 0.01), device = scripted("device", 0, 0.001);
  SnContest c;
  SnError err = {0};
  open_fixture(&x, &cpu, NULL, &device);
  device.lost = true;
  assert_int_equal(sn_contest_run(&x.def, &c, &err), SN_ERR_STATE);
  assert_non_null(strstr(err.text, "the script says so"));
  assert_true(cpu.loads == 0 && device.loads == 0);
  close_fixture(&x);
}

// ---- what is kept ----

static void write_file(const char *folder, const SnContestKey *key, const char *from, const char *to) {
  char path[300], text[9000] = "";
  snprintf(path, sizeof path, "%s/contest-%016llx-%d.txt", folder, (unsigned long long)key->model, key->threads);
  FILE *f = fopen(path, "r");
  assert_non_null(f);
  const size_t n = fread(text, 1, sizeof text - 1, f);
  fclose(f);
  text[n] = '\0';
  char *at = strstr(text, from);
  assert_non_null(at);
  f = fopen(path, "w");
  fprintf(f, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
  fclose(f);
}

static void kept(void **state) {
  (void)state;
  static const char *const damage[][2] = {{"sinew-contest 1", "sinew-contest 2"},
                                          {"by a script", "by another"},
                                          {"steps_each 8", "steps_each 0"},
                                          {"steps 16 ", "steps -16 "},
                                          {"gradients 64 ", "marbles 64 "},
                                          {"end\n", ""},
                                          {"steps 4 ", "steps nan "},
                                          {"refinements 1 ", "refinements 1 -"}};
  char folder[] = "/tmp/sinew-contest-XXXXXX", path[300];
  Fixture x;
  Scripted cpu = scripted("cpu", 0, 0.01), device = scripted("device", 1, 0.001);
  SnContest c, again;
  SnContestKey key;
  SnError err = {0};
  assert_non_null(mkdtemp(folder));
  open_fixture(&x, &cpu, NULL, &device);
  assert_int_equal(sn_contest_run(&x.def, &c, &err), SN_OK);
  sn_contest_key(&device.table, 3, &key);
  key.model = sn_model_checksum(x.o.m, &err);
  assert_true(key.model != 0 && strstr(key.device, "by a script") && strstr(key.library, "contest"));
  assert_false(sn_contest_kept(folder, &key, &again));
  for (size_t i = 0; i <= sizeof damage / sizeof *damage; ++i) {
    assert_int_equal(sn_contest_keep(folder, &key, &c, &err), SN_OK);
    assert_true(sn_contest_kept(folder, &key, &again));
    for (int k = 0; k < SN_NCONTEST; ++k) {
      assert_int_equal(c.rows[k], again.rows[k]);
      for (int r = 0; r < c.rows[k]; ++r) {
        const SnContestRow *a = &c.row[k][r], *b = &again.row[k][r];
        assert_true(a->count == b->count && a->device == b->device && a->cpu[0] == b->cpu[0] &&
                    a->scaled[0] == b->scaled[0]);
      }
    }
    if (i == sizeof damage / sizeof *damage) break;
    write_file(folder, &key, damage[i][0], damage[i][1]);
    if (sn_contest_kept(folder, &key, &again)) fail_msg("\"%s\" is believed", damage[i][1]);
  }
  // Another number of threads, another library: not measured yet.
  SnContestKey other = key;
  other.threads = 4;
  assert_false(sn_contest_kept(folder, &other, &again));
  other = key;
  strcat(other.library, "1");
  assert_false(sn_contest_kept(folder, &other, &again));
  snprintf(path, sizeof path, "%s/contest-%016llx-3.txt", folder, (unsigned long long)key.model);
  assert_int_equal(unlink(path), 0);
  assert_int_equal(rmdir(folder), 0);  // nothing else is left there
  assert_int_equal(sn_contest_keep(folder, &key, &c, &err), SN_ERR_IO);
  close_fixture(&x);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(wins_from),      cmocka_unit_test(wins_nowhere),
                                     cmocka_unit_test(no_loss_behind), cmocka_unit_test(ends_in_time),
                                     cmocka_unit_test(lost_meanwhile), cmocka_unit_test(kept)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
