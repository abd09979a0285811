// The adjoint of whole steps, all integrators, against central differences of our own step. (Against MuJoCo's
// transition differences: test_step_vjp_mujoco.c.)
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "physics/actuator/actuator.h"
#include "physics/base/vec.h"
#include "physics/constraint/constraint.h"
#include "physics/dynamics/dynamics.h"
#include "physics/step/step.h"
#include "tests/support/constraint_models.h"
#include "tests/support/gradcheck.h"
#include "tests/support/slow.h"
#include "tests/support/small_models.h"
#include "tests/support/step_fixture.h"

// What must be the same at both ends of a difference: a step is smooth only between its switches.
enum { BRANCH = 2000 };
typedef struct Branch {
  int n, value[BRANCH];
} Branch;

static void branch_add(Branch *b, const int *x, int n) {
  for (int i = 0; i < n && b->n < BRANCH; ++i) b->value[b->n++] = x[i];
}

static Branch branch_of(const SnModel *m, const SnWorld *w) {
  Branch b = {0};
  branch_add(&b, w->nefc, 1);
  branch_add(&b, w->ncon, 1);
  branch_add(&b, w->efc_type, w->nefc[0]);
  branch_add(&b, w->efc_id, w->nefc[0]);
  branch_add(&b, sn_has_noslip(m) ? w->slip_state : w->efc_state, w->nefc[0]);
  branch_add(&b, w->wseg_on, m->nwseg);
  for (int i = 0; i < w->ncon[0]; ++i) branch_add(&b, w->contact[i].geom, 2);
  return b;
}

static bool branch_same(const Branch *a, const Branch *b) {
  return a->n == b->n && memcmp(a->value, b->value, sizeof(int) * (size_t)a->n) == 0;
}

typedef struct Step {
  SnGradWorld g;
  double speed;
  double *next;                  // qpos after the step from the base state
  Branch branch;                 // there
  void (*draw)(struct Step *s);  // MuJoCo's data at a random state
} Step;

static bool sample(void *context) {
  Step *s = context;
  SnGradWorld *g = &s->g;
  s->draw(s);
  sn_grad_world_sample(g);
  sn_grad_world_move(g, NULL);
  sn_step_full(g);
  for (int i = 0; i < g->m->nq; ++i) s->next[i] = (double)g->w.qpos[i];
  s->branch = branch_of(g->m, &g->w);
  return true;
}

static bool forward(void *context, const double *dx, double *y) {
  Step *s = context;
  SnGradWorld *g = &s->g;
  const SnModel *m = g->m;
  sn_grad_world_move(g, dx);
  sn_step_full(g);
  double *qpos = malloc(sizeof *qpos * (size_t)(m->nq + 1));
  for (int i = 0; i < m->nq; ++i) qpos[i] = (double)g->w.qpos[i];
  mj_differentiatePos(g->o->mj, y, 1, s->next, qpos);
  free(qpos);
  for (int i = 0; i < m->nv; ++i) y[m->nv + i] = (double)g->w.qvel[i];
  for (int i = 0; i < m->na; ++i) y[2 * m->nv + i] = (double)g->w.act[i];
  const Branch branch = branch_of(g->m, &g->w);
  return branch_same(&branch, &s->branch);
}

static void adjoint(void *context, const double *ybar, double *xbar) {
  Step *s = context;
  sn_grad_world_move(&s->g, NULL);
  sn_forward(s->g.m, &s->g.w, &s->g.lane);
  sn_step_full_vjp(&s->g, ybar);
  sn_grad_world_result(&s->g, xbar);
}

static void draw_random(Step *s) { sn_oracle_randomize(s->g.o, s->speed); }
static void draw_state(Step *s) { sn_constraint_sample(s->g.o, s->speed); }

static void step_init(Step *s, SnOracle *o) {
  sn_grad_world_init(&s->g, o);
  s->next = calloc((size_t)o->m->nq + 1, sizeof *s->next);
  if (!s->next) fail_msg("out of memory");
}

static void step_free(Step *s) {
  free(s->next);
  sn_grad_world_free(&s->g);
}

// Our own differences.
static void check(SnOracle *o, const char *name, int integrator, double speed, void (*draw)(Step *), int samples,
                  double step, double tolerance) {
  static Step s;
  char text[200];
  snprintf(text, sizeof text, "%s, %s", name, sn_integrator_name[integrator]);
  sn_step_integrator(o, integrator);
  step_init(&s, o);
  s.speed = speed;
  s.draw = draw;
  const SnGradCase c = {.name = text,
                        .nx = sn_grad_world_nx(&s.g),
                        .ny = 2 * o->m->nv + o->m->na,
                        .context = &s,
                        .sample = sample,
                        .forward = forward,
                        .adjoint = adjoint,
                        .samples = sn_draws(samples),
                        .step = step,
                        .tolerance = tolerance};
  sn_gradcheck(&c, 1);
  step_free(&s);
}

static void models(void **state) {
  (void)state;
  for (int i = 0; i < SN_SMALL_MODELS; ++i)
    for (int k = 0; k < SN_STEP_INTEGRATORS; ++k) {
      SnOracle o;
      char name[32];
      snprintf(name, sizeof name, "small model %d", i);
      sn_step_model(&o, i);
      // convex contacts move by 1e-9 and more by rounding: a wider step
      const bool convex = i == 1;
      check(&o, name, k, 1, draw_random, 8, convex ? 1e-5 : 1e-6, convex ? 3e-4 : 1e-5);
      sn_oracle_free(&o);
    }
}

// Rows of tendons that branch, joints whose actuators are at their limits.
static void branches(void **state) {
  (void)state;
  for (int k = 0; k < SN_STEP_INTEGRATORS; ++k) {
    SnOracle o;
    sn_oracle_load_string(&o, sn_branching_model());
    check(&o, "branches", k, 1, draw_random, 10, 1e-6, 1e-5);
    sn_oracle_free(&o);
  }
}

// Free bodies that nothing touches, with springs and dampers of their own: implicit integrators take the bias force
// into their equations. Once more in a fluid as heavy as they are.
static void spinning(void **state) {
  (void)state;
  static const char *const fluid[] = {"", "density='1000' viscosity='9'"};
  for (int k = 0; k < 2 * SN_STEP_INTEGRATORS; ++k) {
    SnOracle o;
    char xml[1000];
    snprintf(xml, sizeof xml,
             "<mujoco><option integrator='%s' timestep='.01' %s/><worldbody><body><joint type='free' damping='.3 .1 0' "
             "stiffness='20 3 "
             "1'/><geom type='box' size='.1 .2 .3' pos='.1 0 0'/></body><body pos='2 0 0'><freejoint/><geom type='box' "
             "size='.1 .2 .15' pos='0 .1 .1'/></body><body pos='4 0 0'><freejoint/><geom type='ellipsoid' size='.1 .2 "
             ".15' fluidshape='ellipsoid' contype='0' conaffinity='0'/></body></worldbody></mujoco>",
             sn_integrator_name[k % SN_STEP_INTEGRATORS], fluid[k / SN_STEP_INTEGRATORS]);
    sn_oracle_load_string(&o, xml);
    check(&o, "spinning", k % SN_STEP_INTEGRATORS, 5, draw_random, 10, 1e-6, 1e-5);
    sn_oracle_free(&o);
  }
}

// Bodies in a fluid that touch a floor or are at a limit, and servos at a ball joint and a site: drag and servos are in
// the impedances of `discrete`. Some bodies are simple, with a drag that is not a diagonal in their axes.
static void touching_in_fluid(void **state) {
  (void)state;
  for (int k = 0; k < SN_STEP_INTEGRATORS; ++k) {
    SnOracle o;
    char xml[3000];
    snprintf(
        xml, sizeof xml,
        "<mujoco><option integrator='%s' timestep='.01' density='1000' viscosity='9' wind='3 -2 1'/><default><geom "
        "type='ellipsoid' "
        "size='.1 .2 .15' fluidshape='ellipsoid'/></default><worldbody><geom type='plane' size='9 9 1'/><body pos='0 0 "
        ".13'><freejoint/><geom/></body><body pos='2 0 .16' euler='20 30 40'><freejoint/><geom pos='.02 .01 0' "
        "euler='10 20 0'/></body><body pos='4 0 .13'><joint type='slide' axis='1 0 0'/><joint type='slide' axis='0 1 "
        "0'/><joint "
        "type='slide' axis='0 0 1'/><geom euler='0 0 40'/></body><body pos='6 0 .6'><joint axis='0 1 .2' damping='.1' "
        "range='-.01 .01'/><joint axis='1 0 0' pos='.1 .1 0'/><geom pos='.1 .05 .1' euler='20 30 40'/><body pos='.3 0 "
        "0'><joint name='b' type='ball' range='0 .1'/><site name='s' pos='.1 .1 .1'/><geom pos='0 .1 0' euler='1 2 "
        "50'/></body><body pos='-.3 0 0'><joint "
        "type='slide' axis='1 1 0' frictionloss='.3'/><geom fluidshape='none' type='box'/></body></body></worldbody>"
        "<actuator><general jointinparent='b' gear='1 .5 .2' biastype='affine' biasprm='0 -900 -90'/><general site='s' "
        "gear='1 2 3 .1 .2 .3' biastype='affine' biasprm='0 -900 -90'/></actuator></mujoco>",
        sn_integrator_name[k]);
    sn_oracle_load_string(&o, xml);
    check(&o, "touching in a fluid", k, 0.1, draw_state, 8, 1e-6, 1e-5);
    sn_oracle_free(&o);
  }
}

// Contacts that pull between bodies of two trees, one of which is also at rest on a floor.
static void pulling(void **state) {
  (void)state;
  for (int k = 0; k < 2 * SN_STEP_INTEGRATORS; ++k) {
    SnOracle o;
    char xml[2000];
    snprintf(
        xml, sizeof xml,
        "<mujoco><option integrator='%s' cone='%s' timestep='.005'/><worldbody><geom type='plane' size='3 3 1' "
        "adhesion='5'/><body pos='0 0 .099'><freejoint/><geom name='a' size='.1' adhesion='8'/><body pos='.05 0 "
        ".12'><joint axis='0 1 0' damping='.2' stiffness='3'/><geom type='capsule' size='.03' fromto='0 0 0 .1 0 "
        ".1' contype='0' conaffinity='0'/></body></body><body pos='.199 0 .099'><joint type='ball' damping='.3' "
        "pos='0 0 .1'/><joint name='s' type='slide' axis='1 0 0' damping='.5' stiffness='20'/><geom name='b' "
        "size='.1' adhesion='12' contype='2' conaffinity='2'/></body></worldbody><contact><pair geom1='a' geom2='b' "
        "adhesion='9' condim='3'/></contact><actuator><position joint='s' kp='5' kv='.5'/></actuator></mujoco>",
        sn_integrator_name[k / 2], k % 2 ? "elliptic" : "pyramidal");
    sn_oracle_load_string(&o, xml);
    check(&o, "pulling", k / 2, 0.1, draw_state, 10, 1e-6, 1e-5);
    sn_oracle_free(&o);
  }
}

// The noslip solver, whose own switches test_noslip.c looks at.
static void slipping(void **state) {
  (void)state;
  for (int k = 0; k < SN_STEP_INTEGRATORS - 1; ++k) {
    SnOracle o;
    sn_oracle_load_string(&o, sn_slipping_model());
    check(&o, "slipping", k, 0.1, draw_state, 10, 1e-6, 1e-4);
    sn_oracle_free(&o);
  }
}

// Rows of every kind, both cones: every 13th case, near and far states, each integrator in turn.
static void over_rows(void (*load)(SnOracle *, const SnConstraintCase *), const char *name) {
  enum { MAXCASE = 200 };
  static SnConstraintCase cases[MAXCASE];
  const int n = sn_constraint_cases(cases, MAXCASE);
  for (int i = 0, k = 0; i < n; i += 13, ++k) {
    SnOracle o;
    char text[100];
    load(&o, cases + i);
    snprintf(text, sizeof text, "%s %d (%s)", name, i, cases[i].cone);
    check(&o, text, k % SN_STEP_INTEGRATORS, k % 2 ? 2 : 0.1, draw_state, 6, 1e-6, 1e-5);
    sn_oracle_free(&o);
  }
}

static void joint_rows(void **state) {
  (void)state;
  over_rows(sn_constraint_load_joints, "joints");
}

static void contact_rows(void **state) {
  (void)state;
  over_rows(sn_constraint_load_contacts, "contacts");
}

enum { MOCAP_NV = 12 };

// ybar times the next state, relative to `next`, when the mocap body is turned (e < 3) or displaced by h.
static double mocap_step(SnGradWorld *g, int e, double h, const sn_real *next, const double *ybar) {
  const int nv = g->m->nv, nq = g->m->nq;
  const sn_real turn[3] = {e == 0, e == 1, e == 2};
  sn_real dq[4], quat[4];
  sn_grad_world_move(g, NULL);
  if (e >= 3) g->w.mocap_pos[e - 3] += (sn_real)h;
  sn_axisangle2quat(dq, turn, (sn_real)h);
  sn_mulquat(quat, dq, g->w.mocap_quat);
  if (e < 3) sn_copy4(g->w.mocap_quat, quat);
  sn_step(g->m, &g->w, &g->lane);
  if (!next) return 0;
  double from[MOCAP_NV + 1], to[MOCAP_NV + 1], tangent[MOCAP_NV], s = 0;
  for (int i = 0; i < nq; ++i) {
    from[i] = (double)next[i];
    to[i] = (double)g->w.qpos[i];
  }
  mj_differentiatePos(g->o->mj, tangent, 1, from, to);
  for (int i = 0; i < nv; ++i) s += ybar[i] * tangent[i] + ybar[nv + i] * (double)g->w.qvel[i];
  return s;
}

static void check_mocap(const char *xml, bool simple) {
  SnOracle o;
  sn_oracle_load_string(&o, xml);
  assert_true(o.m->nv <= MOCAP_NV && (!simple || o.m->dof_simplenum[0] > 0));
  for (int k = 0; k < SN_STEP_INTEGRATORS; ++k) {
    sn_step_integrator(&o, k);
    SnGradWorld g;
    sn_grad_world_init(&g, &o);
    for (int j = 0; j < 5; ++j) {
      mj_resetData(o.mj, o.d);
      for (int i = 0; i < o.m->nv; ++i) o.d->qvel[i] = sn_oracle_uniform(&o);
      sn_grad_world_sample(&g);
      double ybar[2 * MOCAP_NV], difference[6], largest = 0;
      sn_real next[MOCAP_NV + 1];
      for (int i = 0; i < 2 * o.m->nv; ++i) ybar[i] = sn_oracle_uniform(&o);
      mocap_step(&g, 0, 0, NULL, NULL);
      sn_copy(next, g.w.qpos, o.m->nq);
      for (int e = 0; e < 6; ++e) {
        difference[e] = (mocap_step(&g, e, 1e-6, next, ybar) - mocap_step(&g, e, -1e-6, next, ybar)) / 2e-6;
        largest = sn_larger(largest, fabs(difference[e]));
      }
      sn_grad_world_move(&g, NULL);
      sn_forward(o.m, &g.w, &g.lane);
      sn_step_full_vjp(&g, ybar);
      assert_true(largest > 1e-3);
      for (int e = 0; e < 6; ++e)
        if (!(fabs((double)g.a.mocap_bar[e] - difference[e]) < 1e-5 * largest))
          fail_msg("%s: mocap_bar[%d] = %g, difference %g", sn_integrator_name[k], e, (double)g.a.mocap_bar[e],
                   difference[e]);
    }
    sn_grad_world_free(&g);
  }
  sn_oracle_free(&o);
}

// The derivative by the poses of mocap bodies: displacement and turn in world axes.
static void mocap(void **state) {
  (void)state;
  sn_needs_doubles();
  check_mocap(
      "<mujoco><worldbody><body mocap='true' pos='.1 .2 .3' euler='10 20 30'><geom type='box' size='.1 .2 .05'/><site "
      "name='s' pos='.1 .1 0'/><body pos='.3 0 0'><joint axis='0 1 1' damping='.1'/><geom name='g' size='.05' "
      "pos='.1 0 0'/></body></body><body pos='.1 .2 .42'><freejoint/><geom size='.1'/><site name='t' pos='.1 0 0'/>"
      "</body></worldbody><tendon><spatial stiffness='10' damping='1' springlength='.05'><site site='s'/><site "
      "site='t'/></spatial>"
      "</tendon></mujoco>",
      false);
}

// A simple body on a mocap body, an ellipsoid in a fluid whose slides turn with what carries it.
static void mocap_in_fluid(void **state) {
  (void)state;
  sn_needs_doubles();
  check_mocap(
      "<mujoco><option density='900' viscosity='.5' wind='.3 -.2 .5' timestep='.01'/><worldbody>"
      "<body mocap='true' pos='.1 .2 .3' euler='10 20 30'><body pos='.3 0 0'><joint type='slide' axis='1 0 0'/>"
      "<joint type='slide' axis='0 1 0'/><joint type='ball'/><geom type='ellipsoid' size='.1 .07 .03' "
      "fluidshape='ellipsoid'/></body></body></worldbody></mujoco>",
      true);
}

// The state of the world, warm start too, is what it was; the first half adds to what is there.
static void leaves_the_world(void **state) {
  (void)state;
  for (int k = 0; k < SN_STEP_INTEGRATORS; ++k) {
    SnOracle o;
    SnGradWorld g;
    sn_oracle_load_string(&o, sn_small_model(0));
    sn_step_integrator(&o, k);
    sn_grad_world_init(&g, &o);
    sn_oracle_randomize(&o, 1);
    sn_grad_world_sample(&g);
    sn_grad_world_move(&g, NULL);
    g.w.time[0] = SN_R(0.25);
    sn_forward(o.m, &g.w, &g.lane);
    void *memory = aligned_alloc(64, sn_world_size(o.m));
    SnWorld before;
    sn_world_init(o.m, &before, memory);
    sn_world_copy_state(o.m, &before, &g.w);
    double ybar[200];
    for (int i = 0; i < 200; ++i) ybar[i] = 1;
    sn_step_full_vjp(&g, ybar);
#define SAME(field, n) assert_memory_equal(before.field, g.w.field, sizeof(sn_real) * (size_t)(n))
    SAME(time, 1);
    SAME(qpos, o.m->nq);
    SAME(qvel, o.m->nv);
    SAME(act, o.m->na);
    SAME(ctrl, o.m->nu);
    SAME(qacc_warmstart, o.m->nv);
#undef SAME
    free(memory);
    sn_grad_world_free(&g);
    sn_oracle_free(&o);
  }
}

// What an earlier step left in the scratch of an adjoint does not matter: filled with NaN, the results have the same
// bits, with and without CFD. (What the CPU alone has lies behind the fields. The twists of link 0 are zero for good.)
static void scratch_is_written(void **state) {
  (void)state;
  static const SnCfd kCfd = {
      .on = 1, .friction = 1, .solimp = {0, SN_R(0.1), 1, 1, 4}, .width = SN_R(0.005), .pair = NULL};
  int contacts = 0;
  for (int model = 0; model <= SN_SMALL_MODELS; ++model)
    for (int k = 0; k < 2 * SN_STEP_INTEGRATORS; ++k) {
      SnOracle o;
      SnGradWorld g;
      if (model == SN_SMALL_MODELS && sn_integrators[k % SN_STEP_INTEGRATORS] == SN_INT_DISCRETE) continue;
      sn_oracle_load_string(&o, model < SN_SMALL_MODELS ? sn_small_model(model) : sn_slipping_model());
      sn_step_integrator(&o, k % SN_STEP_INTEGRATORS);
      sn_grad_world_init(&g, &o);
      if (k >= SN_STEP_INTEGRATORS) *g.w.cfd = kCfd;
      const int n = sn_grad_world_nx(&g);
      double *ybar = calloc((size_t)(2 * o.m->nv + o.m->na) + 1, sizeof *ybar);
      double *x[2] = {calloc((size_t)n + 1, sizeof *x[0]), calloc((size_t)n + 1, sizeof *x[1])};
      for (int i = 0; i < 2 * o.m->nv + o.m->na; ++i) ybar[i] = sn_oracle_uniform(&o);
      sn_oracle_randomize(&o, 1);
      sn_grad_world_sample(&g);
      for (int filled = 0; filled < 2; ++filled) {
        if (filled) {
          memset(g.adjoint_memory, 0xff, (size_t)((char *)g.a.host - (char *)g.adjoint_memory));
          sn_zero(g.a.twist, 6 * SN_NMOTION);
        }
        sn_grad_world_move(&g, NULL);
        sn_forward(o.m, &g.w, &g.lane);
        contacts += *g.w.ncon;
        sn_step_full_vjp(&g, ybar);
        sn_grad_world_result(&g, x[filled]);
      }
      for (int i = 0; i < n; ++i)
        if (memcmp(x[0] + i, x[1] + i, sizeof(double)))
          fail_msg("small model %d, %s%s: [%d] = %g, with NaN in scratch %g", model,
                   k >= SN_STEP_INTEGRATORS ? "CFD, " : "", sn_integrator_name[k % SN_STEP_INTEGRATORS], i, x[0][i],
                   x[1][i]);
      free(ybar);
      free(x[0]);
      free(x[1]);
      sn_grad_world_free(&g);
      sn_oracle_free(&o);
    }
  assert_true(contacts > 0);
}

// A cost of the state alone, without a step: the height of every link's frame and its velocity there.
static void rest(void **state) {
  (void)state;
  sn_needs_doubles();
  SnOracle o;
  SnGradWorld g;
  sn_oracle_load_string(&o, sn_small_model(0));
  sn_grad_world_init(&g, &o);
  sn_oracle_randomize(&o, 1);
  sn_grad_world_sample(&g);
  const int nv = o.m->nv;
  double up = 0, down = 0;
  for (int i = -1; i < 2 * nv; ++i) {
    double *value[] = {&up, &down};
    for (int side = 0; side < (i < 0 ? 1 : 2); ++side) {
      double dx[200] = {0};
      if (i >= 0) dx[i] = side ? -1e-6 : 1e-6;
      sn_grad_world_move(&g, dx);
      sn_kinematics(o.m, &g.w, &g.lane);
      sn_com_pos(o.m, &g.w, &g.lane);
      sn_tendon(o.m, &g.w, &g.lane);
      sn_transmission(o.m, &g.w, &g.lane);
      sn_velocity(o.m, &g.w, &g.lane);
      *value[side] = 0;
      for (int b = 1; b < o.m->nbody; ++b) {
        sn_real arm[3], v[3];
        sn_sub3(arm, g.w.xpos + 3 * b, sn_twist_origin(o.m, &g.w, b));
        sn_cross(v, g.w.cvel + 6 * b, arm);
        *value[side] += (double)(g.w.xpos[3 * b + 2] + g.w.cvel[6 * b + 5] + v[2]);
      }
    }
    if (i >= 0) {
      const double got = (double)(i < nv ? g.a.qpos_bar[i] : g.a.qvel_bar[i - nv]), difference = (up - down) / 2e-6;
      if (!(fabs(got - difference) < 1e-6)) fail_msg("rest: gradient[%d] = %g, difference %g", i, got, difference);
      continue;
    }
    sn_adjoint_clear(o.m, &g.a, &g.lane);
    sn_motion_rest(o.m, &g.w, &g.a, &g.lane);
    for (int b = 1; b < o.m->nbody; ++b) {
      const sn_real z[3] = {0, 0, 1}, *twist = sn_twist(o.m, &g.a, b, SN_VEL);
      sn_real arm[3], t[3], force[3], *bar = sn_twist_bar(o.m, &g.a, b, SN_VEL), *wrench = sn_body_wrench(o.m, &g.a, b);
      sn_sub3(arm, g.w.xpos + 3 * b, sn_twist_origin(o.m, &g.w, b));
      sn_cross(t, arm, z);
      sn_addto3(bar, t);
      sn_addto3(bar + 3, z);
      sn_cross(force, z, twist);
      sn_addto3(force, z);
      sn_cross(t, arm, force);
      sn_addto3(wrench, t);
      sn_addto3(wrench + 3, force);
    }
    sn_position_vjp(o.m, &g.w, &g.a, &g.lane);
  }
  sn_grad_world_free(&g);
  sn_oracle_free(&o);
}

// Joints to three times their range, velocities to 100, and none at all: finite, as far as the step itself is.
static void always_finite(void **state) {
  (void)state;
  int steps = 0;
  for (int model = 0; model <= SN_SMALL_MODELS; ++model) {
    SnOracle o;
    const char *name = "small model";
    bool missing = false;
    if (model < SN_SMALL_MODELS)
      sn_oracle_load_string(&o, sn_small_model(model));
    else
      sn_constraint_load_real(&o, 0, 0, &name, &missing);
    if (missing) continue;
    const SnModel *m = o.m;
    for (int k = 0; k < SN_STEP_INTEGRATORS; ++k) {
      SnGradWorld g;
      sn_step_integrator(&o, k);
      sn_grad_world_init(&g, &o);
      double *ybar = malloc(sizeof *ybar * (size_t)(2 * m->nv + m->na + 1));
      double *xbar = malloc(sizeof *xbar * (size_t)(sn_grad_world_nx(&g) + 1));
      for (int j = 0; j < 30; ++j) {
        sn_oracle_randomize(&o, j % 3 == 0 ? 0 : 100);
        for (int i = 0; i < m->njnt && j % 3; ++i) {
          double *q = o.d->qpos + m->jnt_qposadr[i];
          if (m->jnt_type[i] >= SN_JNT_SLIDE) q[0] *= 3;
        }
        if (j == 0) mj_resetData(o.mj, o.d);
        sn_grad_world_sample(&g);
        for (int i = 0; i < 2 * m->nv + m->na; ++i) ybar[i] = sn_oracle_uniform(&o);
        sn_grad_world_move(&g, NULL);
        sn_forward(m, &g.w, &g.lane);
        sn_step_full_vjp(&g, ybar);
        memset(xbar, 0, sizeof *xbar * (size_t)sn_grad_world_nx(&g));
        sn_grad_world_result(&g, xbar);
        sn_step(m, &g.w, &g.lane);
        if (*g.w.warn & SN_WARN_BAD_STATE) {
          *g.w.warn = 0;
          continue;
        }
        ++steps;
        for (int i = 0; i < sn_grad_world_nx(&g); ++i)
          if (!isfinite(xbar[i]))
            fail_msg("%s %d, %s, state %d: [%d] = %g", name, model, sn_integrator_name[k], j, i, xbar[i]);
      }
      free(ybar);
      free(xbar);
      sn_grad_world_free(&g);
    }
    sn_oracle_free(&o);
  }
  printf("%d steps\n", steps);
  assert_true(steps > 200);
  sn_oracle_needs_myosuite();
}

int main(void) {
  printf("seed 1\n");
  const struct CMUnitTest tests[] = {cmocka_unit_test(models),
                                     cmocka_unit_test(branches),
                                     cmocka_unit_test(spinning),
                                     cmocka_unit_test(touching_in_fluid),
                                     cmocka_unit_test(pulling),
                                     cmocka_unit_test(slipping),
                                     cmocka_unit_test(joint_rows),
                                     cmocka_unit_test(contact_rows),
                                     cmocka_unit_test(mocap),
                                     cmocka_unit_test(mocap_in_fluid),
                                     cmocka_unit_test(leaves_the_world),
                                     cmocka_unit_test(scratch_is_written),
                                     cmocka_unit_test(rest),
                                     cmocka_unit_test(always_finite)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
