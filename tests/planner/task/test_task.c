// Task files: what is read, and every mistake with its place.
#include <stdio.h>

#include "planner/task/task.h"
#include "tests/support/oracle.h"

static SnError err;

static SnTask *parse(const char *text) {
  err = (SnError){0};
  return sn_task_parse(text, strlen(text), "some/dir/reach.yaml", &err);
}

static const char *full =
    "description: a test\n"
    "model: hand/hand.xml\n"
    "options: {timestep: 0.004, iterations: 7, solref: [0.01, 1], solimp: [0.1, 0.95, 0.001, 0.5, 2]}\n"
    "initial: {keyframe: home, joints: {elbow: 0.5, wrist: -1}, activation: 0.2, settle: 0.3}\n"
    "perturb: {joints: {elbow: 0.1}, plan: 0.2}\n"
    "plan: {biceps: 0.3}\n"
    "settings: {horizon: 32, knots: 5, noise: brown, noise_scale: 0.7, grid: [16x1, 8x2]}\n"
    "terms:\n"
    "  - name: reach\n"
    "    residual: {position: {site: hand}}\n"
    "    target: {position: {body: ball}, at: start, frame: palm}\n"
    "    norm: smooth_abs\n"
    "    width: 0.01\n"
    "    weight: 2\n"
    "    terminal: 3\n"
    "  - name: pose\n"
    "    residual: {joint_position: [elbow, wrist]}\n"
    "    target: {keyframes: {times: [0, 1, 3], values: [[0, 1], [2, 3], [4, 5]], interpolation: cubic, repeat: "
    "true}}\n"
    "  - name: gap\n"
    "    residual: {distance: [{site: a}, {geom: b}]}\n"
    "    target: 0.05\n"
    "  - name: effort\n"
    "    residual: {control: all}\n"
    "  - name: wave\n"
    "    residual: {tendon_length: t1}\n"
    "    target: {sinusoid: {center: 1, amplitude: 0.5, period: 2}}\n"
    "success:\n"
    "  - {name: there, term: reach, below: 0.02, during: 1}\n"
    "  - {name: slow, residual: {joint_velocity: all}, norm: squared, below: 4}\n";

static void full_file(void **state) {
  (void)state;
  SnTask *t = parse(full);
  if (!t) fail_msg("%s", err.text);
  assert_string_equal(t->name, "reach");
  assert_string_equal(t->model, "hand/hand.xml");
  assert_true(t->options.has_timestep && t->options.timestep == 0.004 && t->options.has_iterations &&
              !t->options.has_tolerance);
  assert_true(t->options.nsolref == 2 && t->options.nsolimp == 5 && t->options.solimp[3] == 0.5);
  assert_string_equal(t->keyframe, "home");
  assert_true(t->njoint == 2 && t->joint[1].value == -1 && t->settle == 0.3 && t->activation == 0.2);
  assert_true(t->nperturb == 1 && t->perturb_plan == 0.2 && t->nplan == 1 && t->plan[0].value == 0.3);
  assert_string_equal(t->settings.grid, "16x1,8x2");
  assert_true(t->settings.horizon == 32 && t->settings.noise == SN_NOISE_BROWN && t->settings.candidates == 64);
  assert_int_equal(t->nterm, 5);
  const SnTerm *reach = &t->term[0];
  assert_true(reach->residual.quantity == SN_QTY_POSITION && reach->residual.object[0] == SN_OBJECT_SITE);
  assert_true(reach->target.kind == SN_TARGET_ELEMENT && reach->target.at_start && reach->norm == SN_NORM_SMOOTH_ABS);
  assert_string_equal(reach->target.frame, "palm");
  assert_true(reach->width == 0.01 && reach->weight == 2 && reach->terminal == 3);
  const SnTarget *keys = &t->term[1].target;
  assert_true(keys->kind == SN_TARGET_KEYFRAMES && keys->ntime == 3 && keys->nvalue == 2 && keys->key[5] == 5 &&
              keys->repeat);
  assert_true(t->term[1].weight == 1 && t->term[1].norm == SN_NORM_SQUARED && t->term[1].place.line == 16);
  assert_true(t->term[2].target.nvalue == 1 && t->term[2].residual.object[1] == SN_OBJECT_GEOM);
  assert_true(t->term[3].residual.all);
  assert_true(t->term[4].target.kind == SN_TARGET_SINUSOID && t->term[4].target.period == 2 &&
              t->term[4].residual.nname == 1);
  assert_true(t->nmeasure == 2 && t->measure[0].below == 0.02 && t->measure[0].during == 1);
  assert_string_equal(t->measure[0].residual.name[0], "hand");
  assert_true(t->measure[1].norm == SN_NORM_SQUARED && t->measure[0].norm == SN_NORM_EUCLIDEAN);
  sn_task_free(t);
  sn_task_free(NULL);
}

// A file that has one mistake: the message must contain `wanted`.
static void mistake(const char *text, const char *wanted) {
  SnTask *t = parse(text);
  if (t) fail_msg("taken, wanted '%s':\n%s", wanted, text);
  if (!strstr(err.text, wanted)) fail_msg("wanted '%s', got:\n%s", wanted, err.text);
}

#define HEAD "model: m.xml\n"
#define TERMS HEAD "terms:\n"

static void mistakes(void **state) {
  (void)state;
  const char *ok = "terms: [{name: a, residual: {control: all}}]\n";
  char text[600];
  mistake("{}", "task: field 'model' is missing");
  mistake(HEAD, "task: field 'terms' is missing");
  mistake(HEAD "terms: []\n", "reach.yaml:2:8: terms: a list of 1 to 256 entries is wanted");
  snprintf(text, sizeof text, HEAD "horizon: 3\n%s", ok);
  mistake(text, "reach.yaml:2:1: task: unknown field 'horizon', allowed is description, model, options");
  snprintf(text, sizeof text, HEAD "settings: {horizont: 3}\n%s", ok);
  mistake(text, "reach.yaml:2:12: settings: unknown field 'horizont', allowed is planner, horizon");
  snprintf(text, sizeof text, HEAD "settings: {candidates: 0}\n%s", ok);
  mistake(text, "reach.yaml:2:24: candidates: 0 is out of bounds");
  snprintf(text, sizeof text, HEAD "settings: {noise: blue}\n%s", ok);
  mistake(text, "allowed is white|pink|brown");
  snprintf(text, sizeof text, HEAD "settings: {horizon: 8}\n%s", ok);
  mistake(text, "knots: 16 is more than the 8 steps of the horizon");
  snprintf(text, sizeof text, HEAD "settings: {grid: [64x1, 32x2]}\n%s", ok);
  mistake(text, "grid: '64x1,32x2' lasts 128 base steps, allowed is the horizon, 256");
  snprintf(text, sizeof text, HEAD "settings: {grid: {a: 1}}\n%s", ok);
  mistake(text, "reach.yaml:2:18: grid: a name is wanted, this is a map");
  snprintf(text, sizeof text, HEAD "options: {solimp: [1, 2]}\n%s", ok);
  mistake(text, "reach.yaml:2:19: solimp: 5 numbers are wanted");
  snprintf(text, sizeof text, HEAD "options: {timestep: -1}\n%s", ok);
  mistake(text, "timestep: -1 is out of bounds");
  snprintf(text, sizeof text, HEAD "initial: {joints: [1]}\n%s", ok);
  mistake(text, "joints: a map of names and numbers is wanted");
}

static void term_mistakes(void **state) {
  (void)state;
  mistake(TERMS "  - {name: a, residual: {colour: x}}\n",
          "reach.yaml:3:25: residual: a map with one of position, orientation");
  mistake(TERMS "  - {name: a}\n", "term: field 'residual' is missing");
  mistake(TERMS "  - {residual: {control: all}}\n", "term: field 'name' is missing");
  mistake(TERMS "  - {name: a, residual: {position: hand}}\n",
          "position: a map with one of site, body, geom is wanted");
  mistake(TERMS "  - {name: a, residual: {distance: [{site: a}]}}\n", "distance: a list of two objects is wanted");
  mistake(TERMS "  - {name: a, residual: {control: all}, norm: cubic}\n",
          "norm: 'cubic' is unknown, allowed is squared|euclidean|smooth_abs");
  mistake(TERMS "  - {name: a, residual: {control: all}, norm: smooth_abs}\n", "smooth_abs needs a width above 0");
  mistake(TERMS "  - {name: a, residual: {control: all}, width: 1}\n", "the squared norm has none");
  mistake(TERMS "  - {name: a, residual: {control: all}, weight: -1}\n", "weight: -1 is out of bounds");
  mistake(TERMS "  - {name: a, residual: {control: all}}\n  - {name: a, residual: {control: all}}\n",
          "the name 'a' is taken");
  mistake(TERMS "  - {name: a, residual: {control: all}, target: {frame: b}}\n",
          "target: exactly one of value, sinusoid, keyframes");
  mistake(TERMS "  - {name: a, residual: {control: all}, target: {value: 1, at: start}}\n",
          "'at: start' needs another element");
  mistake(TERMS "  - {name: a, residual: {position: {site: s}}, target: {position: {site: b}, frame: c}}\n",
          "has no frame");
  mistake(TERMS "  - {name: a, residual: {control: all}, target: {keyframes: {times: [1, 0], values: [1, 2]}}}\n",
          "times must ascend");
  mistake(TERMS "  - {name: a, residual: {control: all}, target: {keyframes: {times: [0, 1], values: [1]}}}\n",
          "2 times but 1 values");
  mistake(TERMS
          "  - {name: a, residual: {control: all}, target: {keyframes: {times: [0, 1], values: [[1, 2], [1]]}}}\n",
          "values: 1 entries, the first row has 2");
  mistake(TERMS "  - {name: a, residual: {control: all}, target: {sinusoid: {center: 1, amplitude: 1}}}\n",
          "field 'period' is missing");
  mistake(TERMS "  - {name: a, residual: {control: all}}\nsuccess:\n  - {name: b, term: c, below: 1}\n",
          "the task has no term 'c'");
  mistake(TERMS "  - {name: a, residual: {control: all}}\nsuccess:\n  - {name: b, term: a}\n",
          "field 'below' is missing");
}

// Several mistakes are all reported.
static void all_at_once(void **state) {
  (void)state;
  assert_null(
      parse("modell: x\noptions: {timestep: fast}\nterms:\n  - {name: a, residual: {control: all}, weight: heavy}\n"));
  assert_non_null(strstr(err.text, "reach.yaml:1:1: task: unknown field 'modell'"));
  assert_non_null(strstr(err.text, "reach.yaml:2:21: timestep: 'fast' is not a finite number"));
  assert_non_null(strstr(err.text, "reach.yaml:4:49: weight: 'heavy' is not a finite number"));
  assert_non_null(strstr(err.text, "field 'model' is missing"));
}

// Damaged files give an error or a task, never a crash.
static void damaged(void **state) {
  (void)state;
  uint64_t rng = 99;
  const size_t n = strlen(full);
  for (int i = 0; i < 3000; ++i) {
    char text[4000];
    memcpy(text, full, n);
    for (int k = 0; k < 4; ++k) {
      rng = rng * 6364136223846793005u + 1442695040888963407u;
      text[(rng >> 33) % n] = "x:[]{},\n -0#'\"&*!"[(rng >> 20) % 17];
    }
    sn_task_free(sn_task_parse(text, i % 2 ? n : (size_t)(rng >> 40) % n, "x.yaml", &err));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(full_file), cmocka_unit_test(mistakes),
                                     cmocka_unit_test(term_mistakes), cmocka_unit_test(all_at_once),
                                     cmocka_unit_test(damaged)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
