// A small body, a task for it, and inputs of rollouts that differ in everything. The body has a sled on the floor, a
// ball joint, muscles and motors, and sensors of every part of the step.
#ifndef SINEW_TESTS_PLANNER_SENSING_BODY_H_
#define SINEW_TESTS_PLANNER_SENSING_BODY_H_

#include "planner/backend/backend.h"
#include "tests/support/oracle.h"

static const char *const sensing_xml =
    "<mujoco><compiler angle='radian'/><option timestep='0.004'/><worldbody>"
    "<geom name='floor' type='plane' size='2 2 1'/><site name='base' pos='.06 .02 .8'/>"
    "<body name='goal' mocap='true' pos='.3 0 .5'><site name='goal'/></body>"
    "<body name='upper' pos='0 0 .7'><joint name='shoulder' type='ball' damping='.2' stiffness='1'/>"
    "<geom type='capsule' fromto='0 0 0 0 0 -.25' size='.03'/><site name='anchor' pos='.04 0 -.1'/>"
    "<body name='lower' pos='0 0 -.25'><joint name='elbow' axis='0 1 .1' range='-1 1' limited='true' damping='.1'/>"
    "<geom type='capsule' fromto='0 0 0 .02 0 -.2' size='.02'/><site name='tip' pos='.02 0 -.2' euler='.1 .2 .3'/>"
    "<site name='pull' pos='.03 0 -.1'/></body></body>"
    "<body name='sled' pos='.6 0 .0493'><freejoint name='sled'/><geom type='ellipsoid' size='.09 .07 .05' mass='.5'/>"
    "<site name='sled' pos='.02 .01 .03' euler='.3 .2 .1'/></body></worldbody>"
    "<tendon><spatial name='flexor' stiffness='3' armature='.01' springlength='.05'><site site='anchor'/><site "
    "site='pull'/></spatial>"
    "<spatial name='lifter' armature='.02' stiffness='3' damping='.2' frictionloss='.1'><site site='base'/><site "
    "site='anchor'/></spatial></tendon>"
    "<actuator><muscle name='flexor' tendon='flexor' lengthrange='.05 .4' force='30'/>"
    "<muscle name='lifter' tendon='lifter' lengthrange='.05 .4' force='20'/>"
    "<motor name='elbow' joint='elbow' ctrlrange='-1 1' ctrllimited='true'/>"
    "<position name='turn' joint='shoulder' gear='0 0 1' kp='2' kv='.1' ctrlrange='-1 1' ctrllimited='true'/>"
    "</actuator><sensor>"
    "<clock name='clock'/><accelerometer name='accelerometer' site='tip'/><ballquat name='ballquat' joint='shoulder'/>"
    "<framequat name='quat' objtype='site' objname='tip' reftype='site' refname='sled'/>"
    "<framepos name='pos' objtype='site' objname='tip'/><framelinvel objtype='body' objname='sled'/>"
    "<framequat objtype='body' objname='sled'/><gyro site='tip'/><velocimeter site='sled'/>"
    "<framexaxis objtype='geom' objname='floor' reftype='site' refname='sled'/><subtreecom body='upper'/>"
    "<jointpos joint='elbow' cutoff='.3'/><jointvel joint='elbow'/><ballangvel joint='shoulder'/>"
    "<tendonpos tendon='flexor'/><tendonvel tendon='lifter'/><actuatorpos actuator='elbow'/>"
    "<actuatorvel actuator='elbow'/><actuatorfrc name='force' actuator='elbow'/><actuatorfrc actuator='flexor'/>"
    "<tendonactuatorfrc tendon='lifter'/><jointlimitpos joint='elbow'/><jointlimitfrc name='limit' joint='elbow'/>"
    "<insidesite name='inside' objtype='site' objname='tip' site='sled'/><user name='user' dim='1'/>"
    "<jointactuatorfrc name='moment' joint='elbow'/><force name='bears' site='tip'/><torque name='twists' site='tip'/>"
    "</sensor></mujoco>";

static const char *const sensing_task =
    "model: sensing.xml\n"
    "settings: {horizon: 20}\n"
    "terms:\n"
    "  - {name: reach, residual: {position: {site: tip}}, target: {position: {site: goal}}, weight: 1, terminal: 2}\n"
    "  - {name: elbow, residual: {joint_position: elbow}, target: {sinusoid: {center: -0.3, amplitude: 0.2, period: "
    "1}}, weight: 0.1}\n"
    "  - {name: sled, residual: {position: {body: sled}}, target: [0.5, 0, 0.1], norm: euclidean, width: "
    "0.1}\n"
    "  - {name: speed, residual: {joint_velocity: all}, weight: 0.01, terminal: 0.02}\n"
    "  - {name: moment, residual: {sensor: moment}, weight: 0.01}\n"
    "  - {name: bears, residual: {sensor: bears}, weight: 0.01, gate: {residual: {sensor: twists}, norm: squared}}\n"
    "  - {name: effort, residual: {control: all}, norm: smooth_abs, width: 0.1, weight: 0.01}\n";

enum { SENSING_STEPS = 20, SENSING_NQ = 12, SENSING_NV = 10, SENSING_NA = 2, SENSING_NU = 4, SENSING_TARGETS = 28 };

// Holds the inputs of one rollout.
typedef struct SensingInput {
  sn_real qpos[SENSING_NQ], qvel[SENSING_NV], act[SENSING_NA], mocap_pos[3], mocap_quat[4];
  sn_real ctrl[SENSING_STEPS * SENSING_NU], target[(SENSING_STEPS + 1) * SENSING_TARGETS];
} SensingInput;

typedef struct SensingBody {
  SnOracle o;
  SnTask *task;
  SnModel *m;
  SnCost *cost;
} SensingBody;

static inline SensingBody *sensing_open(void) {
  SnError err = {0};
  SensingBody *x = calloc(1, sizeof *x);
  sn_oracle_load_string(&x->o, sensing_xml);
  x->task = sn_task_parse(sensing_task, strlen(sensing_task), "sensing.yaml", &err);
  if (!x->task) fail_msg("%s", err.text);
  x->m = sn_task_model(x->task, x->o.m, &err);
  x->cost = sn_cost_create(x->task, x->m, &err);
  if (!x->cost) fail_msg("%s", err.text);
  const SnModel *m = x->m;
  assert_true(m->nq == SENSING_NQ && m->nv == SENSING_NV && m->na == SENSING_NA && m->nu == SENSING_NU);
  assert_int_equal(x->cost->ntarget, SENSING_TARGETS);
  return x;
}

static inline void sensing_close(SensingBody *x) {
  sn_cost_free(x->cost);
  sn_model_free(x->m);
  sn_task_free(x->task);
  sn_oracle_free(&x->o);
  free(x);
}

static inline double sensing_time(int k) { return 0.05 * k; }

// Writes the inputs of rollout k, which differ from those of the others; the state's arrays are theirs.
static inline SnState sensing_input(const SensingBody *x, SensingInput *in, int k) {
  SnOracle draw = {.rng = (uint64_t)(77 + k)};
  sn_real turn[4] = {1, 0, 0, 0};
  memcpy(in->qpos, x->m->qpos0, sizeof in->qpos);
  for (int i = 0; i < 3; ++i) turn[i + 1] = SN_R(0.2) * (sn_real)sn_oracle_uniform(&draw);
  const sn_real norm = sn_sqrt(1 + turn[1] * turn[1] + turn[2] * turn[2] + turn[3] * turn[3]);
  for (int i = 0; i < 4; ++i) in->qpos[i] = turn[i] / norm;
  in->qpos[4] = SN_R(0.1) + SN_R(0.3) * (sn_real)sn_oracle_uniform(&draw);
  for (int i = 0; i < SENSING_NV; ++i) in->qvel[i] = SN_R(0.5) * (sn_real)sn_oracle_uniform(&draw);
  for (int i = 6; i < SENSING_NV; ++i) in->qvel[i] *= SN_R(0.3);  // the sled stays on the floor
  for (int i = 0; i < SENSING_NA; ++i) in->act[i] = SN_R(0.4) + SN_R(0.3) * (sn_real)sn_oracle_uniform(&draw);
  for (int i = 0; i < 3; ++i) in->mocap_pos[i] = SN_R(0.3) + SN_R(0.1) * (sn_real)sn_oracle_uniform(&draw);
  memcpy(in->mocap_quat, (sn_real[4]){1, 0, 0, 0}, sizeof in->mocap_quat);
  for (int i = 0; i < SENSING_STEPS * SENSING_NU; ++i)
    in->ctrl[i] = SN_R(0.4) + SN_R(0.4) * (sn_real)sn_oracle_uniform(&draw);
  sn_cost_schedule(x->cost, sensing_time(k), (double)x->m->opt.timestep, SENSING_STEPS + 1, in->target);
  return (SnState){.time = sensing_time(k),
                   .qpos = in->qpos,
                   .qvel = in->qvel,
                   .act = in->act,
                   .mocap_pos = in->mocap_pos,
                   .mocap_quat = in->mocap_quat};
}

#endif
