// Task files: what is read, and every mistake with its place.
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

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
    "options: {timestep: 0.004, iterations: 7, solref: [0.01, 1], solimp: [0.1, 0.95, 0.001, 0.5, 2], contact: "
    "sigmoid, "
    "contact_stiffness: 0.3}\n"
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
  assert_true(t->options.has_contact && t->options.contact == SN_CONTACT_SIGMOID && !t->options.has_contact_width &&
              t->options.contact_stiffness == 0.3);
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
  mistake(text, "reach.yaml:2:1: task: unknown field 'horizon', allowed is base, description, model, options");
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
  snprintf(text, sizeof text, HEAD "plan: keyframe\n%s", ok);
  mistake(text, "reach.yaml:2:7: plan: the controls of a keyframe want initial.keyframe");
  snprintf(text, sizeof text, HEAD "plan: keyframes\n%s", ok);
  mistake(text, "reach.yaml:2:7: plan: 'keyframes' is not a finite number");
  snprintf(text, sizeof text, HEAD "initial: {joint_velocities: 3}\n%s", ok);
  mistake(text, "reach.yaml:2:29: joint_velocities: a map of names and numbers is wanted");
  snprintf(text, sizeof text, HEAD "options: {integrator: leapfrog}\n%s", ok);
  mistake(text,
          "reach.yaml:2:23: integrator: 'leapfrog' is unknown, allowed is Euler|RK4|implicit|implicitfast|discrete");
  snprintf(text, sizeof text, HEAD "options: {contact: soft}\n%s", ok);
  mistake(text, "reach.yaml:2:20: contact: 'soft' is unknown, allowed is mujoco|sigmoid");
  snprintf(text, sizeof text, HEAD "options: {contact: sigmoid, contact_width: 0}\n%s", ok);
  mistake(text, "contact_width: 0 is out of bounds");
}

// A measure counts what its term counts, unless it says something else itself.
static void measures_of_terms(void **state) {
  (void)state;
  SnTask *t =
      parse(TERMS
            "  - {name: foot, residual: {position: {site: s}}, target: [0, 0, 1], side: below, weights: [0, 0, 1]}\n"
            "success:\n"
            "  - {name: up, term: foot, below: 0.01}\n"
            "  - {name: there, term: foot, side: above, weights: [1, 2, 3], below: 0.01}\n");
  if (!t) fail_msg("%s", err.text);
  const SnTerm *up = &t->measure[0], *there = &t->measure[1];
  assert_true(up->side == SN_TERM_BELOW && up->neach == 3 && up->each[0] == 0 && up->each[2] == 1);
  assert_true(there->side == SN_TERM_ABOVE && there->neach == 3 && there->each[2] == 3);
  sn_task_free(t);
}

static void term_mistakes(void **state) {
  (void)state;
  mistake(TERMS "  - {name: a, residual: {colour: x}}\n",
          "reach.yaml:3:25: residual: a map with one of position, orientation");
  mistake(TERMS "  - {name: a}\n", "term: field 'residual' is missing");
  mistake(TERMS "  - {residual: {control: all}}\n", "term: field 'name' is missing");
  mistake(TERMS "  - {name: a, residual: {position: hand}}\n",
          "position: a map with one of site, body, geom is wanted");
  mistake(TERMS "  - {name: a, residual: {position: {site: s}, axis: q}}\n",
          "axis: 'q' is unknown, allowed is x, y, z");
  // what the second one leaves out is not looked for in the first one
  mistake("options: {solref: [0.02]}\noptions: {timestep: 0.01}\n" TERMS "  - {name: a, residual: {control: all}}\n",
          "'options' is given twice");
  mistake(TERMS "  - {name: a, residual: {position: {site: s}, axis: [x, x]}}\n", "axis: 'x' stands twice");
  mistake(TERMS "  - {name: a, residual: {position: {site: s}, axis: []}}\n", "axis: one of x, y, z or a list");
  mistake(TERMS "  - {name: a, residual: {orientation: {site: s}, axis: x}}\n",
          "axis: orientation has none; allowed is");
  mistake(TERMS "  - {name: a, residual: {position: {sites: []}}}\n", "sites: a list of 1 to 64 names is wanted");
  mistake(TERMS "  - {name: a, residual: {orientation: {sites: [s, t]}}}\n", "orientation: sites have no mean of it");
  mistake(TERMS "  - {name: a, residual: {axis: x}}\n", "residual: a map with one of position, orientation, velocity");
  mistake(TERMS "  - {name: a, residual: {control: all}, target: {value: 1, axis: x}}\n",
          "'axis' needs another element");
  mistake(TERMS "  - {name: a, residual: {distance: [{site: a}]}}\n", "distance: a list of two objects is wanted");
  mistake(TERMS "  - {name: a, residual: {control: all}, norm: cubic}\n",
          "norm: 'cubic' is unknown, allowed is squared|euclidean|smooth_abs");
  mistake(TERMS "  - {name: a, residual: {control: all}, norm: smooth_abs}\n", "smooth_abs needs a width above 0");
  mistake(TERMS "  - {name: a, residual: {control: all}, width: 1}\n", "the squared norm has none");
  mistake(TERMS "  - {name: a, residual: {control: all}, side: left}\n",
          "side: 'left' is unknown, allowed is both|above|below");
  mistake(TERMS "  - {name: a, residual: {control: all}, weights: [1, -2]}\n", "weights: -2 is out of bounds");
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

// ---- tasks that begin from others ----

static char folder[] = "/tmp/sinew-tasks.XXXXXX";

static const char *path_of(const char *name) {
  static char path[64];
  snprintf(path, sizeof path, "%s/%s.yaml", folder, name);
  return path;
}

static void write_file(const char *name, const char *text) {
  FILE *f = fopen(path_of(name), "w");
  assert_non_null(f);
  assert_true(fputs(text, f) >= 0 && fclose(f) == 0);
}

static SnTask *load(const char *name) {
  err = (SnError){0};
  return sn_task_load(path_of(name), &err);
}

static int make_folder(void **state) {
  (void)state;
  return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state) {
  (void)state;
  static const char *const names[] = {"first", "second", "third", "whole", "loop", "b0", "b1", "b2",
                                      "b3",    "b4",     "b5",    "b6",    "b7",   "b8", "b9"};
  for (size_t i = 0; i < sizeof names / sizeof *names; ++i) remove(path_of(names[i]));
  return rmdir(folder);
}

static const char *const first =
    "description: the first\nmodel: m.xml\noptions: {timestep: 0.002, iterations: 7, solref: [0.02, 1]}\n"
    "initial: {joints: {elbow: 0.5, wrist: -1}, settle: 0.3}\nplan: 0.1\ncfd_bodies: [a, b]\n"
    "settings: {horizon: 64, knots: 8, noise: brown}\n"
    "terms:\n  - {name: \"a: 1, b\", residual: {position: {site: hand}}, target: [1, 2, 3], weight: 2}\n"
    "  - {name: effort, residual: {control: all}}\nsuccess: [{name: there, term: effort, below: 0.02}]\n";

// What begins from others is what one file says that has it all; so is its text.
static void tasks_from_others(void **state) {
  (void)state;
  write_file("first", first);
  write_file("second",
             "base: first\nsettings: {knots: 4, grid: [32x1, 16x2]}\noptions: {timestep: 0.004}\nplan: {up: 1}\n");
  write_file("third",
             "description: \"it's \\\"so\\\": 3\"\nbase: second\noptions: {solref: [0.01, 2]}\n"
             "initial: {joints: {wrist: 2}}\ncfd_bodies: [c]\nsuccess: [{name: slow, term: effort, below: 1}]\n");
  for (int round = 0; round < 2; ++round) {
    SnTask *t = load(round ? "whole" : "third");
    if (!t) fail_msg("%s", err.text);
    assert_string_equal(t->name, round ? "whole" : "third");
    assert_string_equal(t->description, "it's \"so\": 3");
    assert_true(t->options.timestep == 0.004 && t->options.iterations == 7 && t->options.solref[0] == 0.01 &&
                t->options.nsolref == 2 && t->options.solref[1] == 2);
    assert_true(t->njoint == 2 && t->joint[0].value == 2 && t->joint[1].value == 0.5 && t->settle == 0.3);
    assert_string_equal(t->joint[0].name, "wrist");
    assert_true(t->nplan == 1 && t->plan_initial == 0 && t->ncfd_body == 1 && t->cfd_body[0].name[0] == 'c');
    assert_true(t->settings.horizon == 64 && t->settings.knots == 4 && t->settings.noise == SN_NOISE_BROWN);
    assert_string_equal(t->settings.grid, "32x1,16x2");
    assert_true(t->nterm == 2 && t->nmeasure == 1 && t->measure[0].below == 1 && t->term[0].weight == 2);
    assert_string_equal(t->term[0].name, "a: 1, b");
    assert_true(t->term[0].target.nvalue == 3 && t->term[0].place.line == (round ? t->term[0].place.line : 9));
    if (!round) assert_string_equal(t->term[0].place.file, path_of("first"));
    assert_null(strstr(t->text, "base"));
    if (!round) write_file("whole", t->text);
    sn_task_free(t);
  }
  SnTask *t = load("first");
  assert_non_null(t);
  assert_string_equal(t->text, first);  // what begins from nothing is its file, comments and all
  sn_task_free(t);
}

static void wrong(const char *name, const char *text, const char *wanted) {
  char all[5000];
  write_file(name, text);
  SnTask *t = load(name);
  if (t) fail_msg("taken, wanted '%s':\n%s", wanted, text);
  snprintf(all, sizeof all, "%s", err.text);
  for (char *at; (at = strstr(all, folder));) memmove(at, at + strlen(folder) + 1, strlen(at + strlen(folder) + 1) + 1);
  if (!strstr(all, wanted)) fail_msg("wanted '%s', got:\n%s", wanted, all);
}

// Terms and measures by name change those of the base, add to them and take them away; the others stay as they are.
static void terms_by_name(void **state) {
  (void)state;
  write_file("first",
             "model: m.xml\nterms:\n  - {name: a, residual: {control: all}, norm: euclidean, weight: 2}\n"
             "  - {name: b, residual: {position: {site: hand}}, target: 3}\n  - {name: c, residual: {control: all}}\n"
             "success: {there: {term: a, below: 1}, still: {term: b, below: 2}}\n");
  write_file("second",
             "base: first\nterms:\n  b: {target: [1, 2, 3], weight: 5}\n  d: {residual: {activation: all}}\n"
             "  a: ~\n  $e: {residual: {tendon_length: t}}\nsuccess: {there: ~, late: {term: d, below: 3}}\n");
  write_file("third", "base: second\nterms: {a: {residual: {sensor: s}}, d: {residual: {position: {body: x}}}}\n");
  static const char *const names[] = {"b", "c", "d", "$e", "a"};
  for (int round = 0; round < 2; ++round) {
    SnTask *t = load(round ? "whole" : "third");
    if (!t) fail_msg("%s", err.text);
    assert_int_equal(t->nterm, 5);
    for (int i = 0; i < 5; ++i) assert_string_equal(t->term[i].name, names[i]);
    assert_true(t->term[0].target.nvalue == 3 && t->term[0].weight == 5);
    assert_string_equal(t->term[0].residual.name[0], "hand");
    assert_true(t->term[2].residual.quantity == SN_QTY_POSITION && t->term[2].residual.object[0] == SN_OBJECT_BODY);
    assert_true(t->term[4].weight == 1 && t->term[4].norm == SN_NORM_SQUARED);
    assert_true(t->nmeasure == 2 && t->measure[0].below == 2 && t->measure[1].below == 3);
    if (!round) write_file("whole", t->text);
    sn_task_free(t);
  }
  // A list replaces all of them.
  write_file("third", "base: second\nterms: [{name: z, residual: {control: all}}]\nsuccess: {still: ~, late: ~}\n");
  assert_null(load("third"));
  assert_non_null(strstr(err.text, "third.yaml:3:10: success: a list of 1 to 256 entries is wanted"));
}

// Variables stand for numbers, texts and lists, those of the base for all that it does not have itself.
static void variables(void **state) {
  (void)state;
  write_file("first",
             "variables: {hand: tip, goal: [1, 2, 3], heavy: 7, noise: brown, spare: 1}\nmodel: m.xml\nplan: $spare\n"
             "settings: {horizon: 64, noise: $noise}\nterms:\n"
             "  - {name: a, residual: {position: {site: $hand}}, target: $goal, weight: $heavy, terminal: $heavy}\n"
             "  - {name: b, residual: {joint_position: [elbow, $hand]}, target: [$heavy, '5']}\n");
  wrong("second", "base: first\n", "first.yaml:7:76: value: '5' is not a finite number");
  write_file("first",
             "variables: {hand: tip, goal: [1, 2, 3], heavy: 7, noise: brown, spare: 1}\nmodel: m.xml\nplan: $spare\n"
             "settings: {horizon: 64, noise: $noise}\nterms:\n"
             "  - {name: a, residual: {position: {site: $hand}}, target: $goal, weight: $heavy, terminal: $heavy}\n"
             "  - {name: b, residual: {joint_position: [elbow, $hand]}, target: [$heavy, 5], weight: 2}\n");
  write_file("second",
             "base: first\nvariables: {heavy: 9, goal: 4, side: above}\nplan: 0\nterms: {b: {side: $side}}\n");
  for (int round = 0; round < 2; ++round) {
    SnTask *t = load(round ? "whole" : "second");
    if (!t) fail_msg("%s", err.text);
    assert_true(t->nterm == 2 && t->term[0].weight == 9 && t->term[0].terminal == 9 && t->term[1].weight == 2);
    assert_true(t->term[0].target.nvalue == 1 && t->term[0].target.value[0] == 4);
    assert_true(t->term[1].target.nvalue == 2 && t->term[1].target.value[0] == 9 && t->term[1].target.value[1] == 5);
    assert_true(t->settings.noise == SN_NOISE_BROWN && t->plan_initial == 0 && t->term[1].side == SN_TERM_ABOVE);
    assert_string_equal(t->term[0].residual.name[0], "tip");
    assert_string_equal(t->term[1].residual.name[1], "tip");
    assert_null(strchr(t->text, '$'));
    if (!round) write_file("whole", t->text);
    sn_task_free(t);
  }
  wrong("second", "base: first\nvariables: {heavy: -1}\n", "second.yaml:2:20: weight: -1 is out of bounds");
  wrong("second", "base: first\nvariables: {sapre: 2}\n", "second.yaml:2:13: variables: 'sapre' is not used");
  // A variable of many numbers, often used, is no way to a task without an end.
  char large[40000] = "variables: {x: [0";
  for (int i = 0; i < 1500; ++i) strcat(large, ", 0");
  strcat(large, "]}\nmodel: m.xml\nterms:\n");
  for (int i = 0; i < 3; ++i)
    sprintf(large + strlen(large), "  - {name: t%d, residual: {control: all}, target: $x}\n", i);
  wrong("second", large, "second.yaml:1:1: too many entries");
}

// A model that is not there is told with its place, in the file of the base where it stands there.
static void missing_models(void **state) {
  (void)state;
  SnError why = {0};
  SnTask *t = parse("description: d\nmodel: hand.xml\nterms: [{name: a, residual: {control: all}}]\n");
  if (!t) fail_msg("%s", err.text);
  assert_int_equal(sn_task_model_fault(t, SN_ERR_NOT_FOUND, "no 'hand.xml'", &why), SN_ERR_NOT_FOUND);
  assert_string_equal(why.text, "some/dir/reach.yaml:2:8: model: no 'hand.xml'");
  sn_task_free(t);
  char text[200];
  write_file("first", "model: foot.xml\nterms: [{name: a, residual: {control: all}}]\n");
  write_file("second", "base: first\n");
  if (!(t = sn_task_load(path_of("second"), &err))) fail_msg("%s", err.text);
  sn_task_model_fault(t, SN_ERR_NOT_FOUND, "none", &why);
  snprintf(text, sizeof text, "%s:1:8: model: none", path_of("first"));
  assert_string_equal(why.text, text);
  sn_task_free(t);
}

static void wrong_bases(void **state) {
  (void)state;
  write_file("first", first);
  assert_null(load("fist"));
  assert_int_equal(err.code, SN_ERR_NOT_FOUND);
  assert_non_null(strstr(err.text, "/fist.yaml: No such file or directory; there are first"));
  assert_non_null(strstr(err.text, "; did you mean 'first'?"));
  wrong("second", "plan: 0\nbase: none\n",
        "second.yaml:2:7: base: none.yaml: No such file or directory; there are first, second");
  wrong("second", "base: ../first\n", "second.yaml:1:7: base: '../first' is not the name of a task beside this file");
  wrong("second", "base: .first\n", "base: '.first' is not the name of a task");
  wrong("second", "base: ''\n", "base: '' is not the name of a task");
  wrong("second", "base: [first]\n", "second.yaml:1:7: base: '' is not the name of a task");
  wrong("second", "base: second\n", "second.yaml:1:7: base: 'second' is this task itself");
  write_file("second", "plan: 1\nbase: loop\n");
  write_file("third", "base: second\n");
  wrong("loop", "base: third\n", "second.yaml:2:7: base: 'loop' begins from this task");
  for (int i = 0; i < 9; ++i) {
    char name[] = "b0", text[] = "base: b1\n";
    name[1] = (char)('0' + i);
    text[7] = (char)('1' + i);
    write_file(name, text);
  }
  write_file("b9", first);
  wrong("b0", "base: b1\n", "b8.yaml:1:7: base: 'b9' is one too many, one begun from the other: 8 are allowed");
  SnTask *t = load("b1");
  if (!t) fail_msg("%s", err.text);
  sn_task_free(t);
  // Mistakes are told where they are, in the file that has them.
  write_file("first",
             "model: m.xml\nsettings: {knots: many}\nhands: 2\nterms: [{name: a, residual: {control: all}}]\n");
  wrong("second", "plan: up\nbase: first\n", "first.yaml:2:19: knots: 'many' is not a finite number");
  wrong("second", "plan: up\nbase: first\n",
        "first.yaml:3:1: task: unknown field 'hands', allowed is base, description");
  wrong("second", "plan: up\nbase: first\n", "second.yaml:1:7: plan: ");
  write_file("first", "model: [\n");
  wrong("second", "base: first\n", "first.yaml:2:1: not YAML");
  write_file("first", "- 1\n");
  wrong("second", "base: first\n", "first.yaml:1:1: a base is a map");
  write_file("first", "{}\n");
  wrong("second", "base: first\n", "second.yaml:1:1: task: field 'model' is missing");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(full_file),         cmocka_unit_test(mistakes),    cmocka_unit_test(measures_of_terms),
      cmocka_unit_test(term_mistakes),     cmocka_unit_test(all_at_once), cmocka_unit_test(damaged),
      cmocka_unit_test(tasks_from_others), cmocka_unit_test(wrong_bases), cmocka_unit_test(missing_models),
      cmocka_unit_test(terms_by_name),     cmocka_unit_test(variables)};
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
