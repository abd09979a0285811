// What a planner takes of a budget: about what it takes of the heap, and nothing where it is refused.
#include <malloc.h>

#include "planner/backend/backend_impl.h"
#include "planner/base/budget.h"
#include "tests/planner/planner_fixture.h"
#include "tests/support/slow.h"

enum { HORIZON = 1500, SMALL = 1 << 17 };

static double heap(void) {
  const struct mallinfo2 x = mallinfo2();
  return (double)x.uordblks + (double)x.hblkhd;
}

static SnPlannerDef long_plans(const Fixture *x, SnPlannerKind kind, SnBudget *budget) {
  SnPlannerDef def = sn_default_planner_def();
  def.model = body.m;
  def.task = task;
  def.backend = x->backend;
  def.settings = task->settings;
  def.settings.horizon = HORIZON;
  def.settings.planner = (int)kind;
  def.settings.candidates = 5000;
  def.settings.adam_starts = 16;
  def.budget = budget;
  return def;
}

// The sum of all parts, after an evaluation with its gradient, is what the heap has grown by: never less, for the
// system's pages and small things are within a tenth, and not half as much again.
static void as_the_heap(void **state) {
  (void)state;
  Fixture *x = make_fixture(2, false, 0);
  static sn_real ctrl[HORIZON * 3];
  for (int kind = 0; kind < SN_PLANNER_KINDS; ++kind) {
    SnBudget budget;
    SnError err = {0};
    sn_budget_init(&budget, 0, 0);
    const SnPlannerDef def = long_plans(x, (SnPlannerKind)kind, &budget);
    const double before = heap();
    SnPlanner *p = sn_planner_create(&def, &err);
    if (!p) fail_msg("%s", err.text);
    const double created = heap() - before, counted = sn_planner_bytes(p);
    const SnState *initial = sn_planner_initial(p);
    const SnEvaluateRequest r = {.qpos = initial->qpos,
                                 .qvel = initial->qvel,
                                 .act = initial->act,
                                 .ctrl = ctrl,
                                 .nstep = HORIZON,
                                 .gradient = true};
    SnEvaluation result;
    assert_int_equal(sn_planner_evaluate(p, &r, INFINITY, &result, &err), SN_OK);
    const double evaluated = heap() - before;
    print_message("planner %d: %.2f MB counted, %.2f in the heap; with an evaluation %.2f and %.2f\n", kind,
                  counted / 1e6, created / 1e6, sn_planner_bytes(p) / 1e6, evaluated / 1e6);
    if (!SN_SLOW) {
      assert_true(counted + SMALL > 0.9 * created && counted < 1.5 * created);
      assert_true(sn_planner_bytes(p) > 0.9 * evaluated && sn_planner_bytes(p) < 1.5 * evaluated);
    }
    assert_true(sn_budget_taken(&budget) == sn_planner_bytes(p));
    sn_planner_free(p);
    assert_true(sn_budget_taken(&budget) == 0);
    sn_budget_free(&budget);
  }
  free_fixture(x);
}

// A planner of long plans by Adam under a budget that has no bounds yet.
typedef struct Bounded {
  Fixture *x;
  SnBudget budget;
  SnPlannerDef def;
  SnPlanner *p;
} Bounded;

static void bounded_open(Bounded *b, int starts) {
  SnError err = {0};
  b->x = make_fixture(2, false, 0);
  sn_budget_init(&b->budget, 0, 0);
  b->def = long_plans(b->x, SN_PLANNER_ADAM, &b->budget);
  b->def.settings.adam_starts = starts;
  b->p = sn_planner_create(&b->def, &err);
  if (!b->p) fail_msg("%s", err.text);
}

// All that planners have taken of the budget is given back.
static void bounded_close(Bounded *b) {
  sn_planner_free(b->p);
  assert_true(sn_budget_taken(&b->budget) == 0);
  sn_budget_free(&b->budget);
  free_fixture(b->x);
}

static SnCode no_memory(SnBackend *b, SnBackendModel *model, int starts, SnError *err) {
  (void)b, (void)model, (void)starts;
  return sn_fail(err, SN_ERR_MEMORY, "out of memory");
}

// So they are while iterations are under way; and where a plan goes on by another planner than they name.
static void refused_meanwhile(SnPlanner *p, const SnSettings *more, SnBudget *budget) {
  SnError err = {0};
  const double needs = sn_planner_bytes(p);
  const SnState *initial = sn_planner_initial(p);
  SnPlanRequest request = sn_default_plan_request();
  request.qpos = initial->qpos;
  request.qvel = initial->qvel;
  request.act = initial->act;
  request.max_iterations = 100;
  assert_int_equal(sn_planner_begin(p, &request, &err), SN_OK);
  SnSettings other = *more;
  other.planner = SN_PLANNER_LBFGS;
  for (int k = 0; k < 3; ++k) {
    assert_int_equal(sn_planner_configure(p, more, &err), SN_ERR_LIMIT);
    assert_int_equal(sn_planner_configure(p, &other, &err), SN_ERR_LIMIT);
    assert_int_equal(sn_planner_settings(p)->adam_starts, 16);
    assert_true(sn_budget_taken(budget) == needs && sn_planner_bytes(p) == needs);
    sn_planner_slice(p, sn_clock_now() + 1e-3);
  }
  sn_planner_drop(p);
}

// One byte less than a planner needs is too little, of its own and of all; the text has what is asked for and allowed.
static void refused(void **state) {
  (void)state;
  Bounded b;
  SnError err = {0};
  bounded_open(&b, 16);
  SnPlanner *const p = b.p;
  SnBackend *const backend = b.x->backend;
  const double needs = sn_planner_bytes(p);
  char bytes[64];
  snprintf(bytes, sizeof bytes, "needs %.0f bytes", needs);
  b.budget.each = needs - 1;
  assert_null(sn_planner_create(&b.def, &err));
  assert_int_equal(err.code, SN_ERR_LIMIT);
  assert_non_null(strstr(err.text, bytes));
  b.budget.each = 0;
  b.budget.all = 2 * needs - 1;
  assert_null(sn_planner_create(&b.def, &err));
  assert_int_equal(err.code, SN_ERR_LIMIT);
  assert_non_null(strstr(err.text, "for all planners"));
  assert_true(sn_budget_taken(&b.budget) == needs);

  // Settings that need more are refused while it runs, and change nothing.
  SnSettings more = *sn_planner_settings(p);
  more.adam_starts = 64;
  b.budget.all = 2 * needs;
  assert_int_equal(sn_planner_configure(p, &more, &err), SN_ERR_LIMIT);
  assert_int_equal(sn_planner_settings(p)->adam_starts, 16);
  assert_true(sn_budget_taken(&b.budget) == needs);

  refused_meanwhile(p, &more, &b.budget);

  // What cannot be allocated after all is given back.
  b.budget.all = 0;
  SnCode (*const reserve)(SnBackend *, SnBackendModel *, int, SnError *) = backend->reserve_multistart;
  backend->reserve_multistart = no_memory;
  assert_int_equal(sn_planner_configure(p, &more, &err), SN_ERR_MEMORY);
  backend->reserve_multistart = reserve;
  assert_true(sn_budget_taken(&b.budget) == needs && sn_planner_bytes(p) == needs);
  SnPlanner *second = sn_planner_create(&b.def, &err);
  assert_non_null(second);
  sn_planner_free(second);
  bounded_close(&b);
}

// What a planner had room for, its snapshot has: also where Adam, which made a plan once, would have none by now.
static void of_a_snapshot(void **state) {
  (void)state;
  Bounded b;
  SnError err = {0};
  bounded_open(&b, 1);
  SnPlanner *const p = b.p;
  assert_int_equal(sn_planner_reset(p, b.def.seed, &err), SN_OK);
  b.def.settings.planner = SN_PLANNER_SAMPLING;
  b.def.settings.candidates = 2;
  assert_int_equal(sn_planner_configure(p, &b.def.settings, &err), SN_OK);
  b.def.settings.adam_starts = 64;
  assert_int_equal(sn_planner_configure(p, &b.def.settings, &err), SN_OK);
  b.budget.each = sn_planner_bytes(p);
  SnPlannerSnapshot snapshot;
  assert_int_equal(sn_planner_snapshot(p, &snapshot, &err), SN_OK);
  assert_true(snapshot.adam.used);
  SnPlanner *second = sn_planner_create(&b.def, &err);
  assert_non_null(second);
  if (sn_planner_restore(second, &snapshot, &err) != SN_OK) fail_msg("%s", err.text);
  sn_planner_free(second);
  bounded_close(&b);
}

// A planner that takes another one's place has the room of the settings that it takes over, which the other one gave.
static void of_a_successor(void **state) {
  (void)state;
  Bounded b;
  SnError err = {0};
  bounded_open(&b, 16);
  const double before = sn_planner_bytes(b.p);
  SnSettings more = *sn_planner_settings(b.p);
  more.adam_starts = 64;
  assert_int_equal(sn_planner_configure(b.p, &more, &err), SN_OK);
  const double needs = sn_planner_bytes(b.p);
  assert_true(needs > before);
  SnPlanner *next = sn_planner_create(&b.def, &err);
  assert_non_null(next);
  sn_planner_take_over(next, b.p);
  sn_planner_free(b.p);
  b.p = next;
  assert_int_equal(sn_planner_settings(next)->adam_starts, 64);
  assert_true(sn_budget_taken(&b.budget) == needs && sn_planner_bytes(next) == needs);
  b.budget.all = needs;
  assert_int_equal(sn_planner_configure(next, &more, &err), SN_OK);
  bounded_close(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(as_the_heap), cmocka_unit_test(refused),
                                     cmocka_unit_test(of_a_snapshot), cmocka_unit_test(of_a_successor)};
  return cmocka_run_group_tests(tests, body_setup, body_teardown);
}
