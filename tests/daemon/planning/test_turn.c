// Whose turn it is, in simulated time: controllers that ask by the clock, plans whose iterations take as long as is
// said here, on the rules of the scheduler.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/planning/turn_private.h"

enum { MOST = 64, LEAST_ITERATIONS = 2 };

// What beginning and answering a plan take, and the way of an answer [s].
static const double BEGINNING = 2e-5, ANSWERING = 5e-5, WAY = 1e-4;

// A controller, and what has become of the plans that it asked for.
typedef struct Controller {
  double period, allowed, iteration, next;  // [s]; the next state is due
  double done;                              // part of the iteration under way [s]
  int iterations;                           // of the plan under way
  int asked, refined, warm, replaced, late, most;
  double all;  // iterations of all plans
} Controller;

typedef struct World {
  SnScheduler s;
  SnConfig config;
  SnSession session[MOST];
  Controller controller[MOST];
  int n;
} World;

static uint64_t draws = 88172645463325252u;
// A number in (0, 1), of xorshift.
static double uniform(void) {
  draws ^= draws << 13;
  draws ^= draws >> 7;
  draws ^= draws << 17;
  return ((double)(draws >> 11) + 0.5) * 0x1p-53;
}

static void add(World *w, double period, double allowed, double iteration) {
  SnSession *p = &w->session[w->n];
  w->controller[w->n++] =
      (Controller){.period = period, .allowed = allowed, .iteration = iteration, .next = uniform() * period};
  p->turn_due = INFINITY;
  p->next = w->s.sessions;
  w->s.sessions = p;
}

static SnJob *make_state(double now, double allowed) {
  SnJob *job = calloc(1, sizeof *job);
  job->route.arrived = now;
  job->due = now + allowed;
  job->request = calloc(1, sizeof *job->request);
  sinew__v1__request__init(job->request);
  job->request->body_case = SINEW__V1__REQUEST__BODY_PLAN;
  return job;
}

// States that have come by now.
static void fetch(World *w) {
  for (int i = 0; i < w->n; ++i) {
    Controller *c = &w->controller[i];
    SnSession *p = &w->session[i];
    for (; c->next <= w->s.now; c->next += c->period) {
      c->asked++;
      c->replaced += p->waiting != NULL;
      sn_job_free(p->waiting);
      sn_turn_take(p, make_state(c->next, c->allowed));
    }
  }
}

static void begin(World *w, int i) {
  SnSession *p = &w->session[i];
  p->active = p->waiting;
  p->waiting = NULL;
  p->active_due = sn_turn_deadline(&w->s, p->active);
  sn_turn_begin(p);
  w->controller[i].done = 0;
  w->controller[i].iterations = 0;
  w->s.now += BEGINNING;
}

static void finish(World *w, int i) {
  SnSession *p = &w->session[i];
  Controller *c = &w->controller[i];
  w->s.now += ANSWERING;
  sn_scheduler_sent(&w->s, ANSWERING);
  c->late += w->s.now + WAY > p->active->due;
  *(c->iterations > 0 ? &c->refined : &c->warm) += 1;
  c->all += c->iterations;
  sn_turn_end(p, p->active);
  sn_job_free(p->active);
  p->active = NULL;
}

static void slice(World *w, SnTurn turn) {
  const int i = (int)(turn.session - w->session);
  SnSession *p = turn.session;
  Controller *c = &w->controller[i];
  if (!p->active) begin(w, i);
  if (!turn.answers) {
    const double until = fmin(w->s.now + w->config.slice, p->active_due), left = c->iteration - c->done;
    const double took = fmax(0, fmin(until - w->s.now, left));
    w->s.now += took;
    p->served += took;
    c->done += took;
    if (c->done >= c->iteration - 1e-12) {
      c->iterations++;
      c->done = 0;
    }
    p->refined = c->iterations >= LEAST_ITERATIONS;
  }
  const bool in_vain = c->iterations > 0 && c->done == 0 && w->s.now + c->iteration > p->active_due;
  if (turn.answers || w->s.now >= p->active_due || in_vain) finish(w, i);
}

static void run(World *w, double seconds) {
  while (w->s.now < seconds) {
    fetch(w);
    const SnTurn turn = sn_turn_choose(&w->s);
    if (turn.session)
      slice(w, turn);
    else
      w->s.now += 1e-5;
  }
}

static World *make_world(void) {
  World *w = calloc(1, sizeof *w);
  w->config.slice = 1e-3;
  w->s.config = &w->config;
  return w;
}

static void free_world(World *w) {
  for (int i = 0; i < w->n; ++i) {
    sn_job_free(w->session[i].active);
    sn_job_free(w->session[i].waiting);
  }
  free(w);
}

// What has become of all plans.
typedef struct Sum {
  int asked, refined, warm, replaced, late, least, most;  // least, most: refined plans of a controller
  double iterations;
} Sum;

static Sum sum(const World *w) {
  Sum s = {.least = w->controller[0].refined};
  for (int i = 0; i < w->n; ++i) {
    const Controller *c = &w->controller[i];
    s.asked += c->asked;
    s.refined += c->refined;
    s.warm += c->warm;
    s.replaced += c->replaced;
    s.late += c->late;
    s.iterations += c->all;
    if (c->refined < s.least) s.least = c->refined;
    if (c->refined > s.most) s.most = c->refined;
  }
  return s;
}

// Equal controllers get equal shares at every load, plans are in time, and what can be planned is.
static void test_shares(void **state) {
  (void)state;
  static const double loads[] = {0.1, 0.3, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.2, 1.4, 2, 3, 5, 10};
  const double seconds = 6, iteration = 5e-4, rate = 1 / (iteration + BEGINNING + ANSWERING);
  for (size_t k = 0; k < 3 * sizeof loads / sizeof loads[0]; ++k) {
    World *w = make_world();
    for (int i = 0; i < MOST; ++i) add(w, MOST / (loads[k / 3] * rate), 0.05, iteration);
    run(w, seconds);
    const Sum s = sum(w);
    print_message(
        "load %4g: asked %6.0f, refined %5.0f, warm %5.1f, replaced %6.0f a second; late %.2f %%, share %.2f, "
        "%.2f iterations\n",
        loads[k / 3], s.asked / seconds, s.refined / seconds, s.warm / seconds, s.replaced / seconds,
        100.0 * s.late / (s.refined + s.warm), (double)s.most / s.least, s.iterations / s.refined);
    assert_true(s.refined > 0.95 * fmin(s.asked, seconds / (LEAST_ITERATIONS * iteration + 5e-4)));
    assert_true(s.late < 0.02 * (s.refined + s.warm));
    assert_true(s.most <= 1.5 * s.least);
    free_world(w);
  }
}

// Who wants plans within less time has them first: others that have long take what is left.
static void test_nearer_deadlines_first(void **state) {
  (void)state;
  World *w = make_world();
  for (int i = 0; i < 4; ++i) add(w, 0.02, 0.02, 5e-4);
  for (int i = 0; i < 4; ++i) add(w, 1, 1, 5e-4);
  run(w, 10);
  double quick = 0, slow = 0;
  for (int i = 0; i < 8; ++i) *(i < 4 ? &quick : &slow) += w->controller[i].all * w->controller[i].iteration;
  const Sum s = sum(w);
  print_message("planned for %.2f s for deadlines of 20 ms, %.2f s for 1 s\n", quick, slow);
  assert_true(quick > 6 * slow && s.refined >= s.asked - 8 && s.late == 0);
  free_world(w);
}

// Sessions that cannot be refined in their time leave the others theirs.
static void test_plans_that_nobody_can_make(void **state) {
  (void)state;
  World *w = make_world();
  for (int i = 0; i < 4; ++i) add(w, 0.02, 0.02, 5e-4);
  run(w, 4);
  const double alone = sum(w).iterations;
  for (int i = 0; i < 4; ++i) {
    add(w, 0.02, 0.02, 0.03);
    w->controller[w->n - 1].next = 4;
  }
  run(w, 8);
  const Sum s = sum(w);
  const double beside = s.iterations - alone;
  print_message("%.2f of the iterations beside sessions that get none\n", beside / alone);
  assert_true(beside > 0.4 * alone);  // four of eight sessions
  for (int i = 0; i < 4; ++i) assert_true(w->controller[i].warm <= 2 && w->controller[i].late <= 4);
  for (int i = 4; i < 8; ++i) assert_true(w->controller[i].refined == 0 && w->controller[i].warm > 150);
  free_world(w);
}

// A plan that waits for its predicted states is not refined until the end.
static void test_time_for_what_comes_after_iterations(void **state) {
  (void)state;
  World *w = make_world();
  add(w, 1, 0.05, 5e-4);
  add(w, 1, 0.05, 5e-4);
  SnSession *p = &w->session[0], *q = &w->session[1];
  sn_turn_take(p, make_state(0, 0.05));
  sn_turn_take(q, make_state(0.01, 0.06));
  begin(w, 0);
  begin(w, 1);
  p->refined = true;
  p->served = 1;
  p->rest = 0.01;
  w->s.now = p->active_due - p->rest - 1.1e-3;
  SnTurn turn = sn_turn_choose(&w->s);
  assert_true(turn.session == q && !turn.answers);
  w->s.now = p->active_due - p->rest - 0.9e-3;
  turn = sn_turn_choose(&w->s);
  assert_true(turn.session == p && turn.answers);
  q->refined = true;
  q->served = 2;
  turn = sn_turn_choose(&w->s);  // nobody else would have the time
  assert_true(turn.session == p && !turn.answers);
  free_world(w);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_shares),
      cmocka_unit_test(test_nearer_deadlines_first),
      cmocka_unit_test(test_plans_that_nobody_can_make),
      cmocka_unit_test(test_time_for_what_comes_after_iterations),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
