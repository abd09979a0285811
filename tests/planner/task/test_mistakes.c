// What a user sees: typical mistakes in a task file, each with the whole message. A task without mistakes of its own
// is bound to a model.
#include <stdio.h>

#include "planner/cost/cost.h"
#include "tests/support/oracle.h"

static const char *const xml =
    "<mujoco><worldbody><site name='still'/><body name='arm'><joint name='hinge' axis='0 1 0'/><geom size='.1'/><site "
    "name='tip'/>"
    "</body><body name='cube'><freejoint name='free'/><geom size='.1'/></body></worldbody>"
    "<actuator><motor name='motor' joint='hinge'/></actuator>"
    "<sensor><user name='skin' dim='1'/><user name='eye' dim='1'/><framepos name='where' objtype='site' "
    "objname='tip'/><framelinvel name='fast' objtype='site' objname='tip'/><torque name='ground' "
    "site='still'/></sensor><keyframe><key name='home' "
    "ctrl='1'/></keyframe></mujoco>";

static SnOracle o;

static int setup(void **state) {
  (void)state;
  sn_oracle_load_string(&o, xml);
  return 0;
}

static int teardown(void **state) {
  (void)state;
  sn_oracle_free(&o);
  return 0;
}

#define TERM(text) "model: m.xml\nterms:\n  - {name: a, " text "}\n"
#define AFTER(text) "model: m.xml\nterms: [{name: a, residual: {control: all}}]\n" text "\n"
#define POSITION "residual: {position: {site: tip}}"
#define NAME_50 \
  "\xc3\xa4"    \
  "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define NAME_200 NAME_50 NAME_50 NAME_50 NAME_50
#define POLICY ", allowed is the name of a file beside this one that ends with .onnx"
#define SENSORS                                                                                                        \
  "which the engine does not compute, allowed is clock, jointpos, jointvel, ballquat, ballangvel, tendonpos, "         \
  "tendonvel, actuatorpos, actuatorvel, actuatorfrc, jointactuatorfrc, tendonactuatorfrc, jointlimitpos, -vel, -frc, " \
  "tendonlimitpos, -vel, -frc, velocimeter, gyro, subtreecom, subtreelinvel, subtreeangmom, magnetometer, "            \
  "e_potential, e_kinetic, accelerometer, force, torque, touch, insidesite, rangefinder, distance, normal, contact, "  \
  "and framepos, framequat, framexaxis, -yaxis, -zaxis, framelinvel, frameangvel, framelinacc, frameangacc of "        \
  "bodies, "                                                                                                           \
  "geoms, sites and fixed cameras"

// Each row: what somebody writes, and what he is told.
static const char *const rows[][2] = {
    {TERM("residual: {sensor: skin}"), "tasks/my.yaml:3:25: sensor 'skin' is of the type user, " SENSORS},
    {TERM("residual: {sensor: skim}, weights: [1, 2, 3], target: [1, 2, 3]"),
     "tasks/my.yaml:3:25: the model has no sensor 'skim', it has skin, eye, where, fast, ground; did you mean "
     "'skin'?"},
    {TERM("residual: {sensor: ground}"),
     "tasks/my.yaml:3:25: sensor 'ground' is of the type torque, which the engine does not compute there: "
     "planner/tasks/README.md says where"},
    {TERM("residual: {joint_position: \"all\"}"),
     "tasks/my.yaml:3:25: the model has no joint 'all', it has hinge, free; without quotes, all stands for every one"},
    // What a measure looks at through a term is told once.
    {TERM("residual: {position: {site: tap}}") "success: [{name: there, term: a, below: 1}]\n",
     "tasks/my.yaml:3:25: the model has no site 'tap', it has still, tip; did you mean 'tip'?"},
    {TERM("residual: {sensor: [where, fast], axis: z}"),
     "tasks/my.yaml:3:34: sensor: the name of one sensor is wanted, several need a term each"},
    {TERM("residual: {sensor: fast}, target: {position: {site: tip}}"),
     "tasks/my.yaml:3:49: target: position has another unit than sensor 'fast' (framelinvel) of the residual, allowed "
     "is velocity, joint_velocity, activation, control, control_rate, sensor"},
    {TERM(POSITION ", target: {velocity: {site: tip}}"),
     "tasks/my.yaml:3:58: target: velocity has another unit than position of the residual, allowed is position, "
     "distance, joint_position, activation, control, control_rate, tendon_length, sensor"},
    {TERM(POSITION ", target: {sensor: fast}"),
     "tasks/my.yaml:3:58: target: sensor 'fast' (framelinvel) has another unit than position of the residual, allowed "
     "is position, distance, joint_position, activation, control, control_rate, tendon_length, sensor"},
    {TERM("residual: {velocity: {site: tip}}, target: {angular_velocity: {site: tip}}"),
     "tasks/my.yaml:3:58: target: angular_velocity has another unit than velocity of the residual, allowed is "
     "velocity, joint_velocity, activation, control, control_rate, sensor"},
    {TERM(POSITION ", target: {joint_position: hinge}"),
     "tasks/my.yaml:3:58: target: its quantity has not the size of the residual"},
    {TERM("residual: {orientation: {site: tip}}, target: [0, 0, 0]"),
     "tasks/my.yaml:3:61: target: 3 numbers, the residual needs 4 (unit quaternions w x y z)"},
    {TERM("residual: {position: {sight: tip}}"),
     "tasks/my.yaml:3:36: position: a map with one of site, body, geom is wanted, as {site: NAME}"},
    {TERM("residual: {torque: all}"),
     "tasks/my.yaml:3:25: residual: a map with one of position, orientation, velocity, angular_velocity, distance, "
     "joint_position, joint_velocity, activation, control, control_rate, tendon_length, sensor is wanted, and axis "
     "where one component counts"},
    {TERM("residual: {control: all}, weigth: 2"),
     "tasks/my.yaml:3:41: term: unknown field 'weigth', allowed is name, residual, target, norm, side, weights, width, "
     "weight, terminal, gate; did you mean 'weight' or 'weights' or 'width'?"},
    {TERM("residual: {control: all}, weight: '2'"), "tasks/my.yaml:3:49: weight: '2' is not a finite number"},
    {TERM("residual: {control: all}, terminal: 1"),
     "tasks/my.yaml:3:5: terminal: term 'a' depends on the control, and none acts at the end of the horizon"},
    {TERM(POSITION ", axis: z"),
     "tasks/my.yaml:3:50: term: unknown field 'axis', allowed is name, residual, target, norm, side, weights, width, "
     "weight, terminal, gate"},
    {TERM("residual: {postion: {site: tip}}"),
     "tasks/my.yaml:3:25: residual: a map with one of position, orientation, velocity, angular_velocity, distance, "
     "joint_position, joint_velocity, activation, control, control_rate, tendon_length, sensor is wanted, and axis "
     "where one component counts; did you mean 'position'?"},
    {TERM("residual: {position: {bdoy: cube}}"),
     "tasks/my.yaml:3:36: position: a map with one of site, body, geom is wanted, as {site: NAME}; did you mean "
     "'body'?"},
    {TERM("residual: {position: {body: cub}}, target: {position: {site: Tip}}"),
     "tasks/my.yaml:3:25: the model has no body 'cub', it has world, arm, cube; did you mean 'cube'?\n"
     "tasks/my.yaml:3:59: the model has no site 'Tip', it has still, tip; did you mean 'tip'?"},
    {TERM("residual: {joint_position: hinge}, target: {sinusiod: {center: 0, amplitude: 1, period: 1}}"),
     "tasks/my.yaml:3:59: target: unknown field 'sinusiod', allowed is value, sinusoid, keyframes, frame, at, axis, "
     "position, orientation, velocity, angular_velocity, distance, joint_position, joint_velocity, activation, "
     "control, "
     "control_rate, tendon_length, sensor; did you mean 'sinusoid'?"},
    {TERM("residual: {joint_position: hing}"),
     "tasks/my.yaml:3:25: the model has no joint 'hing', it has hinge, free; did you mean 'hinge'?"},
    {TERM(POSITION ", target: {sinusoid: {center: [0, 0, 0], amplitud: [1, 0, 0], period: 1}}"),
     "tasks/my.yaml:3:89: sinusoid: unknown field 'amplitud', allowed is center, amplitude, phase, period; did you "
     "mean "
     "'amplitude'?\ntasks/my.yaml:3:69: sinusoid: field 'amplitude' is missing"},
    {TERM(POSITION ", norm: euclidian"),
     "tasks/my.yaml:3:56: norm: 'euclidian' is unknown, allowed is squared|euclidean|smooth_abs; did you mean "
     "'euclidean'?"},
    {TERM(POSITION ", side: abov"),
     "tasks/my.yaml:3:56: side: 'abov' is unknown, allowed is both|above|below; did you mean 'above'?"},
    {AFTER("initial: {joints: {hinges: 1}, bodies: {cubes: {position: [0, 0, 1]}}}\nplan: {moter: 0.5}"),
     "tasks/my.yaml:3:20: the model has no joint 'hinges', it has hinge, free; did you mean 'hinge'?\n"
     "tasks/my.yaml:3:41: the model has no body 'cubes', it has world, arm, cube; did you mean 'cube'?\n"
     "tasks/my.yaml:4:8: the model has no actuator 'moter', it has motor; did you mean 'motor'?"},
    {AFTER("initial: {keyframe: hom}"),
     "tasks/my.yaml:3:21: the model has no keyframe 'hom', it has home; did you mean 'home'?"},
    {"model: m.xml\nterms: [{name: grasp, residual: {control: all}}]\nsuccess: [{name: there, term: grap, below: 1}]\n",
     "tasks/my.yaml:3:11: measure: the task has no term 'grap', it has grasp; did you mean 'grasp'?"},
    {"model: m.xml\nterms: {grasp: {residual: {control: all}}, grap: ~}\n",
     "tasks/my.yaml:2:44: terms: there is no 'grap' that ~ could take away; did you mean 'grasp'?"},
    {AFTER("variables: {high: 1}\nplan: $hihg"),
     "tasks/my.yaml:4:7: there is no variable 'hihg', there is high; did you mean 'high'?\n"
     "tasks/my.yaml:3:13: variables: 'high' is not used; write $high for a value"},
    {"terms: [{name: a, residual: {control: all}}]\n", "tasks/my.yaml:1:1: task: field 'model' is missing"},
    {"model: m.xml\nterms:\n  - {name: \"a\\x1b[2J\", residual: {control: all}}\n",
     "tasks/my.yaml:3:12: name: byte 1 begins a control character, allowed is what can be printed"},
    {"model: m.xml\nterms: {\"\\u009bm\": {residual: {control: all}}}\n",
     "tasks/my.yaml:2:9: name: byte 0 begins a control character, allowed is what can be printed"},
    {AFTER("success: [{name: " NAME_200 "x, term: a, below: 1}]"),
     "tasks/my.yaml:3:18: name: 201 bytes, allowed are 200"},
    {"base: none\n", "tasks/my.yaml:1:7: base: tasks/none.yaml: No such file or directory"},
    {AFTER("settings: {horizon: 64.5}"),
     "tasks/my.yaml:3:21: horizon: 64.5 is out of bounds, allowed is a whole number from 2 to 4096"},
    {AFTER("settings: {planer: adam}"),
     "tasks/my.yaml:3:12: settings: unknown field 'planer', allowed is planner, horizon, grid, candidates, iterations, "
     "knots, interpolation, noise, noise_scale, adam_iterations, adam_rate, adam_beta1, adam_beta2, adam_epsilon, "
     "adam_clip, adam_clip_norm, adam_moments, adam_warm_start, adam_knots, adam_interpolation, adam_starts, "
     "ilqg_iterations, ilqg_regularization, ilqg_alphas, lbfgs_iterations, lbfgs_memory, lbfgs_trials, lbfgs_first, "
     "lbfgs_longest, mppi_temperature, mppi_relative, cem_elites, cem_keep, cem_least, hybrid_refined, "
     "hybrid_gradients, gradient, contact_gradient, tail, warm_start, shift, patience, max_velocity, integrator, rtol, "
     "atol, max_steps, cfd, cfd_far, cfd_touch, cfd_reach, cfd_midpoint, cfd_power, cfd_softplus, cfd_friction, "
     "cfd_smooth; "
     "did you mean 'planner'?"},
    {AFTER("settings: {integrator: tsit4}"),
     "tasks/my.yaml:3:24: integrator: 'tsit4' is unknown, allowed is "
     "step|heun|midpoint|ralston|bosh3|tsit5|dopri5|dopri8; did you mean 'tsit5'?"},
    {AFTER("settings: {integrator: tsit5, rtol: 0}"),
     "tasks/my.yaml:3:37: rtol: 0 is out of bounds, allowed is 1e-15 to 1"},
    {AFTER("settings: {planner: adams}"),
     "tasks/my.yaml:3:21: planner: 'adams' is unknown, allowed is sampling|adam|ilqg|lbfgs|mppi|cem|hybrid; did "
     "you mean 'adam'?"},
    {AFTER("initial: {bodies: {arm: {position: [0, 0, 1]}}}"), "tasks/my.yaml:3:20: body 'arm' has no free joint"},
    {AFTER("initial: {bodies: {cube: {position: [0, 1]}}}"), "tasks/my.yaml:3:26: position: 2 numbers, 3 are wanted"},
    {AFTER("options: {timestep: 5 ms}"), "tasks/my.yaml:3:21: timestep: '5 ms' is not a finite number"},
    {TERM("residual: {control: all}, gate: 0.5"),
     "tasks/my.yaml:3:47: gate: a map with the fields residual, target, norm, side, weights, above, below, width is "
     "wanted, this is text"},
    {TERM("residual: {control: all}, gate: {residual: {joint_position: hinge}, above: 1}"),
     "tasks/my.yaml:3:47: gate: 'above' needs the 'width' in which the gate opens"},
    {TERM("residual: {control: all}, gate: {residual: {joint_position: hinge}, above: 1, below: 2, width: 0}"),
     "tasks/my.yaml:3:47: gate: either 'above' or 'below'\ntasks/my.yaml:3:110: width: 0 is out of bounds, allowed is "
     "1e-09 to 1e+09"},
    {TERM("residual: {control: all}, gate: {residual: {joint_position: hinge}, norm: squared, width: 1}"),
     "tasks/my.yaml:3:105: gate: 'width' is that of 'above' or 'below'"},
    {TERM("residual: {control: all}, gate: {residual: {joint_position: hinge}, side: above}"),
     "tasks/my.yaml:3:47: gate: 'above', 'below' or 'norm' is missing\ntasks/my.yaml:3:47: gate: 'side' and 'weights' "
     "need a 'norm'"},
    {TERM("residual: {control: all}, gate: {above: 1, width: 1}"),
     "tasks/my.yaml:3:47: gate: field 'residual' is missing"},
    {TERM("residual: {control: all}, gate: {" POSITION ", above: 1, width: 1}"),
     "tasks/my.yaml:3:47: gate of 'a': its residual has 3 numbers, 'norm' or 'axis' makes one of them"},
    {TERM("residual: {control: all}, gate: {residual: {sensor: eye}, above: 1, width: 1}"),
     "tasks/my.yaml:3:58: sensor 'eye' is of the type user, " SENSORS},
    {AFTER("success: [{name: there, term: a, below: 1, gate: {residual: {joint_position: hinge}, norm: squared}}]"),
     "tasks/my.yaml:3:44: measure: unknown field 'gate', allowed is name, residual, target, norm, side, weights, "
     "width, term, below, during"},
    {AFTER("success: 3"), "tasks/my.yaml:3:10: success: a list of 1 to 256 entries is wanted"},
    {AFTER("success: {name: there}"),
     "tasks/my.yaml:3:17: success: 'name': a map of its fields is wanted, or ~ to take it away"},
    {AFTER("success: {there: {name: there, term: a, below: 1}}"),
     "tasks/my.yaml:3:19: success: 'there': its name stands before it"},
    {AFTER("policy: .net.onnx"), "tasks/my.yaml:3:9: policy: '.net.onnx'" POLICY},
    {AFTER("policy: ../net.onnx"), "tasks/my.yaml:3:9: policy: '../net.onnx'" POLICY},
    {AFTER("policy: net.onn"), "tasks/my.yaml:3:9: policy: 'net.onn'" POLICY},
    {"model: m.xml\nterms: {a: {residual: {control: all}}, b: ~}\n",
     "tasks/my.yaml:2:40: terms: there is no 'b' that ~ could take away"},
    {"model: m.xml\nterms: {}\n", "tasks/my.yaml:2:8: terms: a list of 1 to 256 entries is wanted"},
    {AFTER("plan: $up"), "tasks/my.yaml:3:7: there is no variable 'up', there is none"},
    {AFTER("variables: {down: 1, low: 2}\nplan: {motor: $up}\nsettings: {horizon: $low}"),
     "tasks/my.yaml:4:15: there is no variable 'up', there is down, low\ntasks/my.yaml:3:13: variables: 'down' is not "
     "used; write $down for a value"},
    {AFTER("variables: {up: 1}"), "tasks/my.yaml:3:13: variables: 'up' is not used; write $up for a value"},
    {AFTER("variables: 3"), "tasks/my.yaml:3:12: variables: a map from names to numbers, texts or lists is wanted"},
    {AFTER("variables: {up: {motor: 1}}\nplan: $up"),
     "tasks/my.yaml:3:17: variables: 'up': a number, a text or a list of these is wanted"},
    {AFTER("variables: {up: [1, $low], low: 1}\nplan: $up"),
     "tasks/my.yaml:3:17: variables: 'up': a number, a text or a list of these is wanted\ntasks/my.yaml:3:28: "
     "variables: 'low' is not used; write $low for a value"},
    {AFTER("variables: {up.to: 1}\nplan: $up.to"),
     "tasks/my.yaml:3:13: variables: 'up.to' is no name, allowed are letters, digits and '_'"},
    {AFTER("variables:\n  rate: fast\nplan: $rate\nsettings: {adam_rate: $rate}"),
     "tasks/my.yaml:4:9: plan: 'fast' is not a finite number\ntasks/my.yaml:4:9: adam_rate: 'fast' is not a finite "
     "number"},
    {AFTER("variables: {up: 1}\nplan: '$up'\noptions: {timestep: $up$up}"),
     "tasks/my.yaml:5:21: there is no variable 'up$up', there is up\ntasks/my.yaml:3:13: variables: 'up' is not used; "
     "write $up for a value"},
    {AFTER("success: [{name: there, term: b, below: 1}]"),
     "tasks/my.yaml:3:11: measure: the task has no term 'b', it has a"},
    {AFTER("plan: &x 1"), "tasks/my.yaml:3:7: anchors and aliases are not taken"},
    {AFTER("plan: [1"), "tasks/my.yaml:4:1: not YAML: did not find expected ',' or ']'"},
    {AFTER("\tplan: 1"), "tasks/my.yaml:3:1: not YAML: found character that cannot start any token"},

};

static int count(const char *text, const char *word) {
  int n = 0;
  for (const char *at = text; (at = strstr(at, word)); at += strlen(word)) n++;
  return n;
}

// Names alone that the model has not are not found; everything else is a mistake of the file.
static SnCode code_of(const char *text) {
  return count(text, "the model has no ") == count(text, "\n") + 1 ? SN_ERR_NOT_FOUND : SN_ERR_FORMAT;
}

static void mistakes(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
    SnError err = {0};
    SnTask *task = sn_task_parse(rows[i][0], strlen(rows[i][0]), "tasks/my.yaml", &err);
    SnCost *cost = task ? sn_cost_create(task, o.m, &err) : NULL;
    if (cost) fail_msg("taken:\n%s", rows[i][0]);
    if (strcmp(err.text, rows[i][1]) != 0) fail_msg("%s\nwanted '%s', got\n'%s'\n\n", rows[i][0], rows[i][1], err.text);
    if (err.code != code_of(err.text)) fail_msg("code %d of '%s'", (int)err.code, err.text);
    sn_task_free(task);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(mistakes)};
  return cmocka_run_group_tests(tests, setup, teardown);
}
