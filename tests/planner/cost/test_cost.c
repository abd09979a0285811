// Costs: every quantity, target and norm against values by hand or by MuJoCo; names that do not exist.
#include <stdio.h>

#include "planner/cost/cost.h"
#include "tests/support/oracle.h"

static const char *xml =
    "<mujoco><compiler angle='radian'/><option timestep='0.01'/><worldbody>"
    "<body name='arm' pos='0 0 1'><joint name='hinge' axis='0 1 0' range='-2 2' limited='true'/>"
    "  <geom name='bar' type='capsule' fromto='0 0 0 0 0 -.4' size='.03'/>"
    "  <site name='tip' pos='.1 .2 -.4' quat='.8 .6 0 0'/>"
    "  <body name='wrist' pos='0 0 -.4'><joint name='ball' type='ball'/><geom size='.05'/><site name='palm' pos='0 .1 "
    "0'/>"
    "    <body name='plate' pos='.05 0 0' quat='.5 .5 .5 .5'><geom name='plate' type='box' size='.02 .02 .02' pos='0 0 "
    ".1'/></body>"
    "  </body></body>"
    "<body name='cube' pos='.5 0 1'><joint name='free' type='free'/><geom name='cube' type='box' size='.1 .1 "
    ".1'/><site name='corner' pos='.1 .1 .1'/></body>"
    "</worldbody>"
    "<tendon><spatial name='cord'><site site='tip'/><site site='corner'/></spatial><fixed name='sum'><joint "
    "joint='hinge' coef='2'/></fixed></tendon>"
    "<actuator><muscle name='flexor' tendon='cord' lengthrange='.1 2' force='1'/><motor name='motor' joint='hinge' "
    "ctrlrange='-3 3'/></actuator>"
    "<sensor><framepos name='where' objtype='site' objname='palm'/><framequat name='turned' objtype='body' "
    "objname='plate'/>"
    "<jointvel name='speed' joint='hinge'/><user name='touch' dim='1'/><actuatorfrc name='push' "
    "actuator='motor'/></sensor>"
    "</mujoco>";

static SnOracle o;
static SnError err;

static int setup(void **state) {
  (void)state;
  sn_oracle_load_string(&o, xml);
  sn_oracle_randomize(&o, 1.0);
  mj_forward(o.mj, o.d);
  sn_oracle_fill(&o);
  return 0;
}

static int teardown(void **state) {
  (void)state;
  sn_oracle_free(&o);
  return 0;
}

// A task of one term; NULL with err.
static SnCost *bind(const char *term, SnTask **task) {
  char text[2000];
  snprintf(text, sizeof text, "model: x\nterms:\n  - {name: a, %s}\n", term);
  *task = sn_task_parse(text, strlen(text), "t.yaml", &err);
  if (!*task) fail_msg("%s", err.text);
  SnCost *c = sn_cost_create(*task, o.m, &err);
  if (!c) sn_task_free(*task);
  return c;
}

// Residual of a term at time t, in the oracle's state; its size.
static int residual(const char *term, double t, sn_real res[64]) {
  SnTask *task;
  SnCost *c = bind(term, &task);
  if (!c) fail_msg("%s", err.text);
  sn_real target[64];
  assert_true(c->ntarget <= 64 && c->nres <= 64);
  sn_cost_capture(c, o.m, &o.w, &o.lane);
  sn_oracle_fill(&o);
  sn_cost_schedule(c, t, 0.01, 1, target);
  sn_cost_residual(c, o.m, &o.w, &o.lane, (SnCostInput){.target = target}, 0, 1, res);
  const int n = c->nres;
  sn_cost_free(c);
  sn_task_free(task);
  return n;
}

static const double tolerance = sizeof(sn_real) == 4 ? 2e-5 : 1e-12;

static void expect(const char *term, double t, int n, const double *wanted) {
  sn_real res[64];
  const int size = residual(term, t, res);
  if (size != n) fail_msg("%s: %d entries, wanted %d", term, size, n);
  for (int i = 0; i < n; ++i)
    if (!(fabs((double)res[i] - wanted[i]) < tolerance * (1 + fabs(wanted[i]))))
      fail_msg("%s: entry %d is %.15g, wanted %.15g", term, i, (double)res[i], wanted[i]);
}

static const double *site(const char *name) { return o.d->site_xpos + 3 * mj_name2id(o.mj, mjOBJ_SITE, name); }
static int body(const char *name) { return mj_name2id(o.mj, mjOBJ_BODY, name); }

static void positions(void **state) {
  (void)state;
  const double *palm = site("palm"), *corner = site("corner");
  expect("residual: {position: {site: palm}}", 0, 3, palm);
  expect("residual: {position: {body: plate}}", 0, 3, o.d->xpos + 3 * body("plate"));
  expect("residual: {position: {geom: plate}}", 0, 3, o.d->geom_xpos + 3 * mj_name2id(o.mj, mjOBJ_GEOM, "plate"));
  const double fixed[3] = {palm[0] - 1, palm[1] - 2, palm[2] - 3};
  expect("residual: {position: {site: palm}}, target: [1, 2, 3]", 0, 3, fixed);
  double gap[3], distance = 0;
  for (int k = 0; k < 3; ++k) {
    gap[k] = palm[k] - corner[k];
    distance += gap[k] * gap[k];
  }
  distance = sqrt(distance);
  expect("residual: {position: {site: palm}}, target: {position: {site: corner}}", 0, 3, gap);
  expect("residual: {distance: [{site: palm}, {site: corner}]}", 0, 1, &distance);
  const double shorter = distance - 0.25;
  expect("residual: {distance: [{site: palm}, {site: corner}]}, target: 0.25", 0, 1, &shorter);
}

// Components of points, in the order of the file; a target point has those of the residual.
static void components(void **state) {
  (void)state;
  const double *palm = site("palm"), *corner = site("corner"), *tip = site("tip");
  const double height = palm[2] - 0.25, two[2] = {palm[2] - 1, palm[0] - 2};
  expect("residual: {position: {site: palm}, axis: z}, target: 0.25", 0, 1, &height);
  expect("residual: {axis: [z, x], position: {site: palm}}, target: [1, 2]", 0, 2, two);
  const double gap[2] = {palm[0] - corner[0], palm[2] - corner[2]}, cross = palm[0] - corner[1];
  expect("residual: {position: {site: palm}, axis: [x, z]}, target: {position: {site: corner}}", 0, 2, gap);
  expect("residual: {position: {site: palm}, axis: x}, target: {axis: y, position: {site: corner}}", 0, 1, &cross);
  const double other = tip[1] - o.d->qpos[0], sensed = o.d->sensordata[1];
  expect("residual: {position: {site: tip}, axis: y}, target: {joint_position: hinge}", 0, 1, &other);
  expect("residual: {sensor: where, axis: y}", 0, 1, &sensed);
}

// Means of points and of velocities, also as a target that is captured at the start.
static void means(void **state) {
  (void)state;
  const double *palm = site("palm"), *tip = site("tip"), *corner = site("corner"), zero[3] = {0, 0, 0};
  double middle[3], v[6], u[6], mean[3];
  for (int k = 0; k < 3; ++k) middle[k] = (palm[k] + tip[k] + corner[k]) / 3;
  expect("residual: {position: {sites: [palm, tip, corner]}}", 0, 3, middle);
  expect("residual: {position: {sites: [palm, corner, tip]}, axis: z}, target: 1", 0, 1,
         (const double[]){middle[2] - 1});
  expect("residual: {position: {sites: [palm]}}, target: {position: {site: palm}}", 0, 3, zero);
  expect("residual: {position: {sites: [palm, tip]}}, target: {position: {sites: [tip, palm]}, at: start}", 0, 3, zero);
  mj_objectVelocity(o.mj, o.d, mjOBJ_XBODY, body("cube"), v, 0);
  mj_objectVelocity(o.mj, o.d, mjOBJ_XBODY, body("plate"), u, 0);
  for (int k = 0; k < 3; ++k) mean[k] = (v[3 + k] + u[3 + k]) / 2;
  expect("residual: {velocity: {bodies: [cube, plate]}}", 0, 3, mean);
  double goal[3], wanted[3];
  mju_mulMatVec3(goal, o.d->xmat + 9 * body("cube"), (const double[]){0.1, -0.2, 0.3});
  mju_sub3(wanted, mean, goal);
  expect("residual: {velocity: {bodies: [cube, plate]}}, target: {value: [0.1, -0.2, 0.3], frame: cube}", 0, 3, wanted);
  expect("residual: {velocity: {site: palm}}, target: {velocity: {site: palm}, at: start, frame: cube}", 0, 3, zero);
  expect("residual: {velocity: {sites: [palm, tip]}}, target: {velocity: {sites: [palm, tip]}, at: start, frame: cube}",
         0, 3, zero);
  expect("residual: {position: {site: palm}, axis: [z, x]}, target: {position: {site: palm}, at: start}", 0, 2, zero);
}

// Velocities as MuJoCo's mj_objectVelocity has them, in the world's axes; a target in a frame turns with it.
static void velocities(void **state) {
  (void)state;
  const int id[3] = {mj_name2id(o.mj, mjOBJ_SITE, "palm"), body("plate"), mj_name2id(o.mj, mjOBJ_GEOM, "plate")};
  static const int type[3] = {mjOBJ_SITE, mjOBJ_XBODY, mjOBJ_GEOM};
  static const char *const name[3] = {"site: palm", "body: plate", "geom: plate"};
  for (int k = 0; k < 3; ++k) {
    char text[200];
    double v[6];
    mj_objectVelocity(o.mj, o.d, type[k], id[k], v, 0);
    snprintf(text, sizeof text, "residual: {velocity: {%s}}", name[k]);
    expect(text, 0, 3, v + 3);
    snprintf(text, sizeof text, "residual: {angular_velocity: {%s}}", name[k]);
    expect(text, 0, 3, v);
    snprintf(text, sizeof text, "residual: {velocity: {%s}, axis: [z, y]}, target: [0, 1]", name[k]);
    expect(text, 0, 2, (const double[]){v[5], v[4] - 1});
    double goal[3], wanted[3];
    mju_mulMatVec3(goal, o.d->xmat + 9 * body("cube"), (const double[]){0.1, -0.2, 0.3});
    mju_sub3(wanted, v + 3, goal);
    snprintf(text, sizeof text, "residual: {velocity: {%s}}, target: {value: [0.1, -0.2, 0.3], frame: cube}", name[k]);
    expect(text, 0, 3, wanted);
  }
}

// A point given in a body's frame.
static void frames(void **state) {
  (void)state;
  const double local[3] = {0.1, -0.2, 0.3}, *palm = site("palm");
  double world[3], wanted[3];
  mju_mulMatVec3(world, o.d->xmat + 9 * body("plate"), local);
  mju_addTo3(world, o.d->xpos + 3 * body("plate"));
  mju_sub3(wanted, palm, world);
  expect("residual: {position: {site: palm}}, target: {value: [0.1, -0.2, 0.3], frame: plate}", 0, 3, wanted);
}

static void orientations(void **state) {
  (void)state;
  double q[4], goal[4], back[4], diff[4], wanted[3];
  mju_mulQuat(q, o.d->xquat + 4 * body("arm"), (const double[]){0.8, 0.6, 0, 0});
  mju_quat2Vel(wanted, q, 1);
  expect("residual: {orientation: {site: tip}}", 0, 3, wanted);
  mju_copy4(goal, o.d->xquat + 4 * body("cube"));
  mju_negQuat(back, goal);
  mju_mulQuat(diff, back, q);
  mju_quat2Vel(wanted, diff, 1);
  expect("residual: {orientation: {site: tip}}, target: {orientation: {body: cube}}", 0, 3, wanted);
  // A constant in a frame: the site in its own body is turned by exactly that.
  const double zero[3] = {0, 0, 0};
  expect("residual: {orientation: {site: tip}}, target: {value: [0.8, 0.6, 0, 0], frame: arm}", 0, 3, zero);
}

static void joints(void **state) {
  (void)state;
  const double *qpos = o.d->qpos, *qvel = o.d->qvel;
  double ball[3];
  mju_quat2Vel(ball, qpos + 1, 1);
  const double wanted[4] = {qpos[0] - 0.5, ball[0], ball[1], ball[2]};
  expect("residual: {joint_position: hinge}, target: 0.5", 0, 1, wanted);
  expect("residual: {joint_position: [hinge, ball]}, target: [0.5, 1, 0, 0, 0]", 0, 4, wanted);
  expect("residual: {joint_position: all}, target: [0.5, 1, 0, 0, 0]", 0, 4, wanted);
  expect("residual: {joint_velocity: all}", 0, 10, qvel);
  expect("residual: {joint_velocity: [free]}", 0, 6, qvel + 4);
  const double other = qpos[0] - 2 * qpos[0];
  expect("residual: {joint_position: hinge}, target: {tendon_length: sum}", 0, 1, &other);
}

static void actuators(void **state) {
  (void)state;
  expect("residual: {activation: flexor}", 0, 1, o.d->act);
  expect("residual: {activation: all}", 0, 1, o.d->act);
  expect("residual: {control: [motor, flexor]}", 0, 2, (const double[]){o.d->ctrl[1], o.d->ctrl[0]});
  expect("residual: {control: all}", 0, 2, o.d->ctrl);
  expect("residual: {tendon_length: [cord, sum]}", 0, 2, o.d->ten_length);
}

// The change from the controls of the step before, per second; 0 where these are not known.
static void rates(void **state) {
  (void)state;
  SnTask *task;
  SnCost *c = bind("residual: {control_rate: [motor, flexor]}, target: [0, 0.5]", &task);
  if (!c) fail_msg("%s", err.text);
  sn_real target[2], res[2], before[2] = {SN_R(0.75), SN_R(-0.25)};
  sn_cost_schedule(c, 0, 0.01, 1, target);
  const SnCostInput known = {.target = target, .before = before, .since = SN_R(0.125)};
  sn_cost_residual(c, o.m, &o.w, &o.lane, known, 0, 1, res);
  assert_true(fabs((double)res[0] - (o.d->ctrl[1] + 0.25) * 8) < 8 * tolerance);
  assert_true(fabs((double)res[1] - ((o.d->ctrl[0] - 0.75) * 8 - 0.5)) < 8 * tolerance);
  sn_cost_residual(c, o.m, &o.w, &o.lane, (SnCostInput){.target = target}, 0, 1, res);
  assert_true(res[0] == 0 && res[1] == SN_R(-0.5));
  assert_int_equal(sn_cost_check_weight(c, 0, 1, 1, &err), SN_ERR_ARGUMENT);
  sn_cost_free(c);
  sn_task_free(task);
}

static void sensors(void **state) {
  (void)state;
  double turned[3];
  expect("residual: {sensor: where}", 0, 3, o.d->sensordata);
  mju_quat2Vel(turned, o.d->sensordata + 3, 1);
  expect("residual: {sensor: turned}", 0, 3, turned);
  expect("residual: {sensor: speed}, target: 0.5", 0, 1, (const double[]){o.d->sensordata[7] - 0.5});
}

static void schedules(void **state) {
  (void)state;
  const char *wave =
      "residual: {position: {site: palm}}, target: {sinusoid: {center: [1, 2, 3], amplitude: [0.1, 0, 0.2], phase: [0, "
      "0, 0.5], period: 4}}";
  const double *palm = site("palm"), pi = (double)SN_PI;
  for (int i = 0; i < 5; ++i) {
    const double t = 0.7 * i, w = 2 * pi * t / 4;
    const double wanted[3] = {palm[0] - 1 - 0.1 * sin(w), palm[1] - 2, palm[2] - 3 - 0.2 * sin(w + 0.5)};
    expect(wave, t, 3, wanted);
  }
  const double q = o.d->qpos[0];
  const char *keys =
      "residual: {joint_position: hinge}, target: {keyframes: {times: [1, 2, 4], values: [10, 20, 0], interpolation: "
      "%s, repeat: %s}}";
  const struct {
    const char *interpolation, *repeat;
    double t, value;
  } cases[] = {{"linear", "false", 0, 10},  {"linear", "false", 1.5, 15}, {"linear", "false", 3, 10},
               {"linear", "false", 9, 0},   {"zero", "false", 1.99, 10},  {"zero", "false", 2, 20},
               {"linear", "true", 4.5, 15}, {"linear", "true", 0.5, 5},   {"cubic", "false", 2, 20},
               {"cubic", "false", 4, 0},    {"zero", "true", 7.5, 10}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
    char text[300];
    snprintf(text, sizeof text, keys, cases[i].interpolation, cases[i].repeat);
    expect(text, cases[i].t, 1, (const double[]){q - cases[i].value});
  }
}

// Where the palm was at the start, fixed in the frame of the cube: the cube then moves.
static void captured(void **state) {
  (void)state;
  SnTask *task;
  SnCost *c =
      bind("residual: {position: {site: palm}}, target: {position: {site: palm}, at: start, frame: cube}", &task);
  sn_cost_capture(c, o.m, &o.w, &o.lane);
  sn_oracle_fill(&o);
  sn_real target[3], res[3];
  sn_cost_schedule(c, 0, 0.01, 1, target);
  sn_cost_residual(c, o.m, &o.w, &o.lane, (SnCostInput){.target = target}, 0, 1, res);
  for (int k = 0; k < 3; ++k) assert_true(fabs((double)res[k]) < tolerance);
  const int cube = body("cube");
  double before[3], local[3], after[3], moved[3] = {0.3, -0.1, 0.2}, turn[4] = {0.6, 0, 0.8, 0}, q[4], x[3];
  mju_copy3(before, site("palm"));
  mju_sub3(x, before, o.d->xpos + 3 * cube);
  mju_mulMatTVec3(local, o.d->xmat + 9 * cube, x);
  for (int k = 0; k < 3; ++k) o.d->qpos[5 + k] += moved[k];
  mju_mulQuat(q, turn, o.d->qpos + 8);
  mju_copy4(o.d->qpos + 8, q);
  mj_forward(o.mj, o.d);
  sn_oracle_fill(&o);
  mju_mulMatVec3(after, o.d->xmat + 9 * cube, local);
  mju_addTo3(after, o.d->xpos + 3 * cube);
  sn_cost_residual(c, o.m, &o.w, &o.lane, (SnCostInput){.target = target}, 0, 1, res);
  for (int k = 0; k < 3; ++k) assert_true(fabs((double)res[k] - (site("palm")[k] - after[k])) < tolerance * 10);
  sn_cost_free(c);
  sn_task_free(task);
}

static sn_real norm_of(int norm, int side, sn_real width, const sn_real r[3]) {
  static const sn_real ones[3] = {1, 1, 1};
  return sn_norm_value((SnPenalty){norm, side, width, ones}, r, 3);
}

static void norms(void **state) {
  (void)state;
  const sn_real r[3] = {3, 0, -4}, zero[3] = {0, 0, 0};
  assert_true(norm_of(SN_NORM_SQUARED, 0, 0, r) == 25);
  assert_true(norm_of(SN_NORM_EUCLIDEAN, 0, 0, r) == 5);
  assert_true(norm_of(SN_NORM_EUCLIDEAN, 0, 12, r) == 1);
  assert_true(fabs((double)norm_of(SN_NORM_SMOOTH_ABS, 0, 4, r) - (1 + sqrt(32) - 4)) < 1e-5);
  for (int n = 0; n < 3; ++n) assert_true(norm_of(n, 0, SN_R(0.1), zero) == 0);
}

// By hand: of (3, 0, -4) the 3 counts above, the -4 below.
static void sides(void **state) {
  (void)state;
  const sn_real r[3] = {3, 0, -4};
  assert_true(norm_of(SN_NORM_SQUARED, 1, 0, r) == 9 && norm_of(SN_NORM_SQUARED, -1, 0, r) == 16);
  assert_true(norm_of(SN_NORM_EUCLIDEAN, 1, 4, r) == 1 && norm_of(SN_NORM_EUCLIDEAN, -1, 3, r) == 2);
  assert_true(norm_of(SN_NORM_SMOOTH_ABS, 1, 4, r) == 1 && norm_of(SN_NORM_SMOOTH_ABS, -1, 3, r) == 2);
}

// The cost of one term, from its line.
static sn_real cost_of(const char *term) {
  SnTask *task;
  SnCost *c = bind(term, &task);
  if (!c) fail_msg("%s", err.text);
  sn_real target[64], res[64], value[1];
  sn_cost_schedule(c, 0, 0.01, 1, target);
  sn_cost_residual(c, o.m, &o.w, &o.lane, (SnCostInput){.target = target}, 0, 1, res);
  sn_cost_norm(c, &o.lane, res, 0, 1, value);
  sn_cost_free(c);
  sn_task_free(task);
  return value[0];
}

// Weights of the entries multiply their squares, and their absolute values; a list of one component has one.
static void entry_weights(void **state) {
  (void)state;
  const double *p = site("palm"), a[3] = {p[0] - 10, p[1] + 10, p[2] - 10};
  const char *term = "residual: {position: {site: palm}}, target: [10, -10, 10], weights: [2, 0, 0.5]";
  const double square = 2 * a[0] * a[0] + a[2] * a[2] / 2, root = 2 * (sqrt(a[0] * a[0] + 1) - 1);
  char text[300];
  assert_true(fabs((double)cost_of(term) / square - 1) < 10 * tolerance);
  snprintf(text, sizeof text, "%s, norm: euclidean", term);
  assert_true(fabs((double)cost_of(text) / sqrt(square) - 1) < 10 * tolerance);
  snprintf(text, sizeof text, "%s, side: above", term);
  assert_true(cost_of(text) == 0);
  snprintf(text, sizeof text, "%s, norm: smooth_abs, width: 1, side: below", term);
  assert_true(fabs((double)cost_of(text) / (root + 0.5 * (sqrt(a[2] * a[2] + 1) - 1)) - 1) < 10 * tolerance);
  assert_true(
      fabs((double)cost_of("residual: {position: {site: palm}, axis: x}, target: 10, weights: 3") / (3 * a[0] * a[0]) -
           1) < 10 * tolerance);
}

// The cost of a term, from its line, is near to a number.
static void cost_is(const char *term, double wanted) {
  const double got = (double)cost_of(term);
  if (!(fabs(got - wanted) <= 10 * tolerance * fabs(wanted))) fail_msg("%s: %.15g, wanted %.15g", term, got, wanted);
}

// A gate multiplies a norm: by a sigmoid of a number or of a norm, or by the norm itself; live weights stay outside.
static void gates(void **state) {
  (void)state;
  const double *palm = site("palm"), *tip = site("tip");
  const double z = tip[2], open = 1 / (1 + exp(-(z - 0.5) / 0.2)), x = palm[0] - 3, q = o.d->qpos[0];
  const double far = sqrt((tip[0] - 1) * (tip[0] - 1) + tip[1] * tip[1] + z * z);
  cost_is(
      "residual: {position: {site: palm}, axis: x}, target: 3, gate: {residual: {position: {site: tip}, axis: z}, "
      "above: 0.5, width: 0.2}",
      open * x * x);
  cost_is(
      "residual: {position: {site: palm}, axis: x}, target: 3, gate: {residual: {position: {site: tip}, axis: z}, "
      "target: 0.1, below: 0.4, width: 0.2}",
      (1 - open) * x * x);
  cost_is(
      "residual: {position: {site: palm}, axis: x}, target: 3, gate: {residual: {position: {site: tip}}, target: "
      "[1, 0, 0], norm: euclidean, below: 1, width: 0.5}",
      x * x / (1 + exp((far - 1) / 0.5)));
  cost_is(
      "residual: {position: {site: palm}, axis: x}, target: 3, norm: euclidean, gate: {residual: {joint_position: "
      "hinge}, target: 9, norm: squared, side: below, weights: 2}",
      fabs(x) * 2 * (q - 9) * (q - 9));
  cost_is(
      "residual: {position: {site: palm}, axis: x}, target: 3, gate: {residual: {joint_position: hinge}, above: 99, "
      "width: 0.01}",
      0);
}

// Targets of gates move and are taken at the start as those of terms; a live target of the term is that of the term.
static void gate_targets(void **state) {
  (void)state;
  SnTask *task;
  SnCost *c = bind(
      "residual: {position: {site: palm}, axis: x}, gate: {residual: {position: {site: tip}, axis: z}, target: "
      "{sinusoid: {center: 0, amplitude: 1, period: 4}}, above: 0, width: 1}}\n"
      "  - {name: b, residual: {position: {site: palm}, axis: x}, gate: {residual: {position: {site: tip}}, target: "
      "{position: {site: tip}, at: start, frame: arm}, norm: euclidean}}\nsuccess:\n  - {name: c, term: a, below: 1",
      &task);
  if (!c) fail_msg("%s", err.text);
  const double goal = 2, palm = site("palm")[0], z = site("tip")[2];
  sn_real target[16], res[16], value[3];
  sn_cost_capture(c, o.m, &o.w, &o.lane);
  sn_oracle_fill(&o);
  assert_int_equal(sn_cost_target_size(c, 0), 1);
  assert_int_equal(sn_cost_set_target(c, 0, &goal, 1, &err), SN_OK);
  assert_int_equal(sn_cost_set_weight(c, 0, 5, 6, &err), SN_OK);
  sn_cost_schedule(c, 1, 0.01, 1, target);
  sn_cost_residual(c, o.m, &o.w, &o.lane, (SnCostInput){.target = target}, 0, 2, res);
  sn_cost_norm(c, &o.lane, res, 0, 2, value);
  const double wanted = (palm - 2) * (palm - 2) / (1 + exp(-(z - 1)));
  assert_true(fabs((double)value[0] - wanted) <= 10 * tolerance * wanted && fabs((double)value[1]) <= 10 * tolerance);
  // A measure has the norm of its term without the gate.
  sn_cost_residual(c, o.m, &o.w, &o.lane, (SnCostInput){.target = target}, 2, 3, res);
  sn_cost_norm(c, &o.lane, res, 2, 3, value);
  assert_true(fabs((double)value[2] - fabs(palm)) <= 10 * tolerance * fabs(palm));
  sn_cost_free(c);
  sn_task_free(task);
}

static void bad_names(void **state) {
  (void)state;
  const char *cases[][2] = {
      {"residual: {position: {site: thumb}}", "t.yaml:3:25: the model has no site 'thumb', it has tip, palm, corner"},
      {"residual: {joint_position: [hinge, elbow]}", "the model has no joint 'elbow', it has hinge, ball, free"},
      {"residual: {joint_position: free}", "'free' is a free joint"},
      {"residual: {activation: motor}", "actuator 'motor' has none"},
      {"residual: {sensor: sight}", "the model has no sensor 'sight'"},
      {"residual: {sensor: touch}", "sensor 'touch' is of the type user, which the engine does not compute"},
      {"residual: {position: {site: palm}}, target: [1, 2]", "target: 2 numbers, the residual needs 3"},
      {"residual: {joint_position: all}, target: 0", "the residual needs 5 (unit quaternions w x y z)"},
      {"residual: {position: {site: palm}}, target: {orientation: {site: palm}}",
       "target: orientation has another unit than position of the residual"},
      {"residual: {control: all}, target: {value: 0, frame: cube}",
       "frame: only positions, orientations and velocities"},
      {"residual: {position: {site: palm}, axis: z}, target: {value: 0, frame: cube}", "frame: not with 'axis'"},
      {"residual: {position: {site: palm}, axis: z}, target: [1, 2, 3]", "target: 3 numbers, the residual needs 1"},
      {"residual: {sensor: speed, axis: z}", "t.yaml:3:25: axis: 'speed' is no point of three numbers"},
      {"residual: {position: {site: palm}}, weights: [1, 2]", "weights of 'a': 2 numbers, the residual has 3"},
      {"residual: {position: {sites: [palm, thumb]}}", "t.yaml:3:25: the model has no site 'thumb'"},
      {"residual: {velocity: {site: thumb}}", "the model has no site 'thumb'"},
      {"residual: {position: {site: palm}}, target: {value: 0, frame: moon}", "the model has no body 'moon'"},
      {"residual: {control: all}, terminal: 1",
       "term 'a' depends on the control, and none acts at the end of the horizon"},
      {"residual: {control_rate: all}, terminal: 1", "term 'a' depends on the control"},
      {"residual: {control: all}}\nsuccess:\n  - {name: b, below: 1, residual: {control_rate: all}",
       "success: 'b' looks at control_rate, which a state alone does not have"},
      {"residual: {sensor: push}, terminal: 1", "term 'a' depends on the control"},
      {"residual: {sensor: speed}, terminal: 1, gate: {residual: {sensor: push}, above: 1, width: 1}",
       "terminal: gate of 'a' depends on the control"}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
    SnTask *task;
    assert_null(bind(cases[i][0], &task));
    if (!strstr(err.text, cases[i][1])) fail_msg("%s: wanted '%s', got '%s'", cases[i][0], cases[i][1], err.text);
  }
  const char *text =
      "model: x\ninitial: {keyframe: home, joints: {free: 1}, joint_velocities: {ball: 1, elbow: 2}}\nplan: {x: "
      "1}\nterms:\n  - {name: a, residual: {control: all}}\n";
  SnTask *task = sn_task_parse(text, strlen(text), "t.yaml", &err);
  assert_null(sn_cost_create(task, o.m, &err));
  assert_non_null(strstr(err.text, "t.yaml:2:21: the model has no keyframe 'home', it has none"));
  assert_non_null(strstr(err.text, "t.yaml:2:36: joint 'free' is no hinge or slide joint"));
  assert_non_null(strstr(err.text, "joint 'ball' is no hinge or slide joint"));
  assert_non_null(strstr(err.text, "the model has no joint 'elbow', it has hinge, ball, free"));
  assert_non_null(strstr(err.text, "t.yaml:3:8: the model has no actuator 'x', it has flexor, motor"));
  sn_task_free(task);
}

// What settles keeps its velocities, but for those of the file.
static void initial_velocities(void **state) {
  (void)state;
  const char *text =
      "model: x\noptions: {integrator: RK4}\ninitial: {settle: 0.05, joints: {hinge: 0.5}, joint_velocities: {hinge: "
      "-1.25}}\nterms:\n  - {name: a, residual: {control: all}}\n";
  SnTask *task = sn_task_parse(text, strlen(text), "t.yaml", &err);
  if (!task) fail_msg("%s", err.text);
  SnModel *m = sn_task_model(task, o.m, &err);
  if (!m) fail_msg("%s", err.text);
  assert_true(o.m->opt.integrator == SN_INT_EULER && m->opt.integrator == SN_INT_RK4);
  sn_real with[10], qpos[12];
  assert_int_equal(sn_task_reset(task, m, &o.w, &o.lane, 0, NULL, (double)INFINITY, &err), SN_OK);
  memcpy(with, o.w.qvel, sizeof with);
  memcpy(qpos, o.w.qpos, sizeof qpos);
  task->nvelocity = 0;
  assert_int_equal(sn_task_reset(task, m, &o.w, &o.lane, 0, NULL, (double)INFINITY, &err), SN_OK);
  assert_memory_equal(qpos, o.w.qpos, sizeof qpos);
  assert_true(with[0] == SN_R(-1.25) && o.w.qvel[0] != with[0]);
  assert_memory_equal(with + 1, o.w.qvel + 1, 9 * sizeof *with);
  sn_oracle_fill(&o);
  sn_model_free(m);
  sn_task_free(task);
}

// The initial plan: of a keyframe MuJoCo's own numbers, clamped to ranges, and changed by the seed; of nobody 0, and
// where a control is a quaternion the one that turns nothing; of somebody what it says.
static void initial_plans(void **state) {
  (void)state;
  SnOracle other;
  sn_oracle_load_string(&other,
                        "<mujoco><worldbody><body><joint name='j' type='ball'/><geom size='.1'/></body></worldbody>"
                        "<actuator><motor joint='j' gear='1 0 0' ctrlrange='-1 1'/><motor joint='j' gear='0 1 0' "
                        "ctrlrange='0 2'/><orientation name='to' joint='j' input='quat'/></actuator>"
                        "<keyframe><key name='rest'/><key name='held' ctrl='.25 5 .1 .2 .3 .4'/></keyframe></mujoco>");
  static const char *const text[] = {"initial: {keyframe: held}, perturb: {plan: 0.1}, plan: keyframe, ", "",
                                     "plan: 0.5, ", "plan: {to: 0.25}, "};
  const double *held = other.mj->key_ctrl + 6;
  const sn_real wanted[][6] = {{SN_R(.25), 2, (sn_real)held[2], (sn_real)held[3], (sn_real)held[4], (sn_real)held[5]},
                               {0, 0, 1},
                               {SN_R(.5), SN_R(.5), SN_R(.5), SN_R(.5), SN_R(.5), SN_R(.5)},
                               {0, 0, SN_R(.25), SN_R(.25), SN_R(.25), SN_R(.25)}};
  for (int k = 0; k < 4; ++k) {
    char all[200];
    sn_real ctrl[6], moved[6];
    snprintf(all, sizeof all, "{model: x, %sterms: [{name: a, residual: {control: all}}]}", text[k]);
    SnTask *task = sn_task_parse(all, strlen(all), "t.yaml", &err);
    if (!task) fail_msg("%s", err.text);
    sn_task_initial_plan(task, other.m, 0, ctrl);
    assert_memory_equal(ctrl, wanted[k], sizeof ctrl);
    sn_task_initial_plan(task, other.m, 7, moved);
    assert_true((moved[0] != ctrl[0]) == (k == 0) && fabs((double)(moved[0] - ctrl[0])) <= 0.1);
    sn_task_free(task);
  }
  sn_oracle_free(&other);
}

static void live(void **state) {
  (void)state;
  SnTask *task;
  SnCost *c = bind("residual: {position: {site: palm}}, target: {position: {site: corner}}", &task);
  assert_int_equal(sn_cost_find(c, "a"), 0);
  assert_int_equal(sn_cost_find(c, "b"), -1);
  const double goal[3] = {1, 2, 3};
  assert_int_equal(sn_cost_set_target(c, 0, goal, 2, &err), SN_ERR_ARGUMENT);
  assert_string_equal(err.text, "target of 'a': 2 numbers, allowed is 3, or none for the task's own");
  assert_int_equal(sn_cost_set_target(c, 0, goal, 3, &err), SN_OK);
  sn_real target[3], res[3];
  sn_cost_schedule(c, 0, 0.01, 1, target);
  sn_cost_residual(c, o.m, &o.w, &o.lane, (SnCostInput){.target = target}, 0, 1, res);
  for (int k = 0; k < 3; ++k) assert_true(fabs((double)res[k] - (site("palm")[k] - goal[k])) < tolerance * 10);
  assert_int_equal(sn_cost_set_target(c, 0, NULL, 0, &err), SN_OK);
  sn_cost_residual(c, o.m, &o.w, &o.lane, (SnCostInput){.target = target}, 0, 1, res);
  for (int k = 0; k < 3; ++k)
    assert_true(fabs((double)res[k] - (site("palm")[k] - site("corner")[k])) < tolerance * 10);
  assert_int_equal(sn_cost_set_weight(c, 0, (double)NAN, 0, &err), SN_ERR_ARGUMENT);
  assert_int_equal(sn_cost_set_weight(c, 0, 5, 6, &err), SN_OK);
  assert_true(c->weight[0] == 5 && c->terminal[0] == 6);
  sn_cost_free(c);
  sn_task_free(task);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(positions),     cmocka_unit_test(frames),
                                     cmocka_unit_test(orientations),  cmocka_unit_test(joints),
                                     cmocka_unit_test(actuators),     cmocka_unit_test(sensors),
                                     cmocka_unit_test(schedules),     cmocka_unit_test(captured),
                                     cmocka_unit_test(norms),         cmocka_unit_test(bad_names),
                                     cmocka_unit_test(initial_plans), cmocka_unit_test(live),
                                     cmocka_unit_test(rates),         cmocka_unit_test(components),
                                     cmocka_unit_test(velocities),    cmocka_unit_test(initial_velocities),
                                     cmocka_unit_test(sides),         cmocka_unit_test(entry_weights),
                                     cmocka_unit_test(means),         cmocka_unit_test(gates),
                                     cmocka_unit_test(gate_targets)};
  return cmocka_run_group_tests(tests, setup, teardown);
}
