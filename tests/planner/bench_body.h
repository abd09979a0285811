// A small body and a task for it.
#ifndef SINEW_TESTS_PLANNER_BENCH_BODY_H_
#define SINEW_TESTS_PLANNER_BENCH_BODY_H_

#include <stdio.h>

#include "planner/planner.h"
#include "tests/planner/counting_clock.h"
#include "tests/support/oracle.h"

// Describes two links, a motor and two muscles that pull on a tendon, and one mocap body. The joints' limits are soft
// enough for steps of five times the time step.
static const char *const body_xml =
    "<mujoco><compiler angle='radian'/><option timestep='0.01'/><worldbody>"
    "<body name='goal' mocap='true' pos='.3 0 .2'><site name='goal'/></body>"
    "<body name='upper'><joint name='shoulder' axis='0 1 0' range='-2 2' limited='true' solreflimit='.1 1' "
    "damping='.1'/>"
    "<geom type='capsule' fromto='0 0 0 0 0 -.3' size='.03'/><site name='anchor' pos='.04 0 -.1'/>"
    "<body name='lower' pos='0 0 -.3'><joint name='elbow' axis='0 1 0' range='-2 2' limited='true' solreflimit='.1 1' "
    "damping='.1'/>"
    "<geom type='capsule' fromto='0 0 0 0 0 -.3' size='.02'/><site name='tip' pos='0 0 -.3'/><site name='pull' "
    "pos='.03 0 -.1'/></body></body>"
    "<site name='base' pos='.05 0 .1'/></worldbody>"
    "<tendon><spatial name='flexor'><site site='anchor'/><site site='pull'/></spatial>"
    "<spatial name='lifter'><site site='base'/><site site='anchor'/></spatial></tendon>"
    "<actuator><motor name='motor' joint='shoulder' ctrlrange='-3 3' ctrllimited='true'/>"
    "<muscle name='flexor' tendon='flexor' lengthrange='.1 .4' force='60'/>"
    "<muscle name='lifter' tendon='lifter' lengthrange='.1 .4' force='40'/></actuator></mujoco>";

static const char *const body_task =
    "model: body.xml\n"
    "initial: {joints: {shoulder: 0.2, elbow: 0.1}, activation: 0.05}\n"
    "perturb: {joints: 0.1, plan: 0.2}\n"
    "plan: {flexor: 0.1, lifter: 0.1}\n"
    "settings: {horizon: 40, candidates: 12, iterations: 2, knots: 5, noise_scale: 0.5}\n"
    "terms:\n"
    "  - {name: reach, residual: {position: {site: tip}}, target: {position: {site: goal}}, norm: euclidean, weight: "
    "1, terminal: 2}\n"
    "  - {name: elbow, residual: {joint_position: elbow}, target: {sinusoid: {center: -0.3, amplitude: 0.2, period: "
    "1}}, weight: 0.1}\n"
    "  - {name: speed, residual: {joint_velocity: all}, norm: squared, weight: 0.001}\n"
    "  - {name: effort, residual: {control: all}, norm: smooth_abs, width: 0.1, weight: 0.01}\n"
    "success:\n"
    "  - {name: there, term: reach, below: 0.05, during: 0.1}\n";

// Hold model and task of the test program.
static SnOracle body;
static SnTask *task;

static inline int body_setup(void **state) {
  (void)state;
  SnError err = {0};
  sn_oracle_load_string(&body, body_xml);
  task = sn_task_parse(body_task, strlen(body_task), "body.yaml", &err);
  if (!task) fail_msg("%s", err.text);
  return 0;
}

static inline int body_teardown(void **state) {
  (void)state;
  sn_task_free(task);
  sn_oracle_free(&body);
  return 0;
}

#endif
