#include "tests/support/dynamics_models.h"

#include <stdio.h>

// Names and bodies of the models; an option element is put in front.
static const char *const inline_models[][2] = {
    {"pendulum",
     "<worldbody><body><joint axis='0 1 0'/><geom type='capsule' fromto='0 0 0 0 0 -.5' "
     "size='.05'/></body></worldbody>"},
    {"chain of all joints",
     "<worldbody><body name='table' pos='.1 .2 .3' euler='10 20 30'><geom size='.1'/><site name='t' pos='.1 0 0'/>"
     "<body pos='0 .1 .2' euler='0 30 0'><joint type='ball' pos='.01 .02 .03' damping='.1'/>"
     "<geom type='capsule' fromto='0 0 0 0 .1 -.5' size='.05'/><site name='a' pos='.1 .1 0' euler='5 6 7'/>"
     "<body pos='0 .1 -.5'><joint axis='1 2 3' pos='.1 0 0' ref='.3'/><joint type='slide' axis='1 1 0' pos='0 .1 .1' "
     "ref='.1'/>"
     "<joint axis='0 1 1' pos='0 0 .2' armature='.05'/><geom type='box' size='.1 .2 .1' pos='.1 0 0' euler='20 0 10'/>"
     "<body pos='.2 .1 0' euler='90 0 0'><geom type='cylinder' size='.05 .1' euler='0 30 0'/><site name='b' pos='0 .2 "
     "0'/>"
     "<body pos='0 .2 0' euler='0 0 45'><geom size='.1'/><body pos='.1 0 .1'><joint type='slide' axis='0 0 1'/>"
     "<joint type='ball' pos='0 .1 0'/><geom type='ellipsoid' size='.1 .05 .07'/></body></body></body>"
     "<body pos='-.2 0 0'><joint axis='1 0 0'/><geom size='.05' pos='0 .1 "
     ".1'/></body></body></body></body></worldbody>"},
    {"free bodies",
     "<worldbody><body pos='0 0 1'><freejoint/><geom type='box' size='.1 .2 .3'/></body>"
     "<body pos='1 0 1'><freejoint/><geom type='box' size='.1 .2 .3' pos='.1 .05 .02' euler='10 0 20'/></body>"
     "<body pos='2 0 1'><freejoint/><geom type='box' size='.1 .2 .3'/><body pos='.2 .1 0' euler='0 40 0'><geom "
     "size='.15' pos='.1 0 0'/></body></body>"
     "<body pos='3 0 1'><freejoint/><geom type='box' size='.1 .2 .3'/><body pos='.2 .1 0'><joint axis='0 1 1'/><geom "
     "size='.15' pos='.1 0 0'/></body></body>"
     "<body pos='4 0 1'><joint type='slide' axis='1 0 0'/><joint type='slide' axis='0 1 0'/><joint type='slide' "
     "axis='0 0 1'/><geom size='.1'/></body>"
     "</worldbody>"},
    {"mocap",
     "<worldbody><body name='m' mocap='true' pos='.1 .2 .3' euler='10 20 30'><geom size='.1' pos='.1 0 0'/><site "
     "name='s' pos='0 .1 0'/>"
     "<body pos='.1 0 .1' euler='0 10 0'><geom size='.1' pos='0 .1 0'/><site name='u' pos='0 .1 0'/></body></body>"
     "<body mocap='true' pos='0 1 0' euler='0 0 40'><body pos='.1 0 .1' euler='0 10 0'><body pos='0 .1 0'><joint "
     "axis='1 1 0' pos='.1 0 0'/><geom size='.1' pos='0 .1 .1'/></body></body></body><body pos='0 0 1'><joint axis='0 "
     "1 0'/><geom size='.1' pos='.2 0 0'/></body></worldbody>"},
    {"springs",
     "<worldbody><body pos='0 0 1'><joint type='free' stiffness='3 .5 .2' damping='.1 .2 .3' armature='.1'/><geom "
     "type='box' size='.1 .2 .3'/></body>"
     "<body pos='1 0 1'><joint type='ball' stiffness='2 1 .5' damping='.2 .05 .01' pos='0 .1 0'/><geom type='box' "
     "size='.1 .2 .3' pos='.2 0 0'/>"
     "<body pos='.5 0 0'><joint axis='0 1 0' stiffness='4 -1 2' springref='20' damping='.1'/><geom size='.1' pos='.1 "
     ".1 0'/>"
     "<body pos='.2 0 0'><joint type='slide' axis='0 1 1' stiffness='10 2 3' springref='.1' damping='1 2 3'/><geom "
     "size='.1'/></body></body></body></worldbody>"},
    {"tendons",
     "<worldbody><site name='w' pos='-.3 .1 .2'/><body><joint name='a' axis='0 1 0' damping='.1'/><geom type='capsule' "
     "fromto='0 0 0 .5 0 0' size='.05'/>"
     "<site name='a' pos='.3 .1 .1'/><body pos='.5 0 0'><joint name='b' axis='0 1 .2'/><geom type='capsule' fromto='0 "
     "0 0 .5 0 0' size='.05'/>"
     "<site name='b' pos='.2 .1 .1'/><body pos='.5 0 0'><joint name='c' type='ball'/><geom type='box' size='.1 .05 "
     ".1'/><site name='c' pos='.1 0 .1'/></body></body></body>"
     "<body pos='0 0 1'><freejoint/><geom type='box' size='.1 .1 .2' pos='.1 0 0'/><site name='d' pos='.1 .1 "
     ".1'/></body></worldbody>"
     "<tendon><fixed name='f' stiffness='5 1 1' springlength='0 .1' damping='.3 .1 .1' armature='.2'><joint joint='a' "
     "coef='1'/><joint joint='b' coef='-.7'/></fixed>"
     "<spatial name='s' stiffness='50 1 2' springlength='.2' damping='2 1 1' armature='.3'><site site='w'/><site "
     "site='a'/><site site='b'/><site site='c'/></spatial>"
     "<spatial name='p' damping='1' armature='.1'><site site='w'/><site site='b'/><pulley divisor='2'/><site "
     "site='a'/><site site='d'/><pulley divisor='3'/><site site='w'/><site site='c'/></spatial>"
     "<spatial name='q'><site site='w'/><site site='c'/></spatial></tendon>"
     "<actuator><general tendon='s' gear='2' damping='.1 .2' armature='.05'/><general tendon='f' damping='.2' "
     "armature='.1'/><general tendon='f' gear='3' damping='.1'/></actuator>"},
    {"gravity compensation",
     "<worldbody><body gravcomp='.5'><joint axis='0 1 0' actuatorgravcomp='true'/><geom size='.1' pos='.2 .1 0'/>"
     "<body pos='.4 0 0' gravcomp='1.2'><joint type='ball'/><geom size='.1' pos='.2 0 .1'/>"
     "<body pos='.1 .1 0' euler='0 30 0' gravcomp='-1'><geom size='.05' pos='.1 0 0'/></body></body></body>"
     "<body pos='0 0 1' gravcomp='1'><freejoint/><geom type='box' size='.1 .2 .1' pos='.05 0 0'/></body></worldbody>"},
    {"reflected actuators",
     "<worldbody><body><joint name='a' axis='0 1 0' damping='.1' armature='.1'/><geom size='.1' pos='.2 .1 0'/>"
     "<body pos='.4 0 0'><joint name='b' type='ball'/><geom size='.1' pos='.2 0 .1'/><body pos='.4 0 0'><joint "
     "name='c' type='slide'/><geom size='.1'/></body></body></body></worldbody>"
     "<actuator><general joint='a' gear='2' damping='.3 .1 .2' armature='.02'/><general joint='c' gear='3' "
     "damping='.1' armature='.01'/>"
     "<general joint='c' gear='.5' damping='.2 .3' armature='.03'/><general jointinparent='b' gear='1 2 3' "
     "damping='.1' armature='.02'/></actuator>"},
    {"equal sites",
     "<worldbody><body><joint name='a' axis='0 1 0'/><geom name='g' size='.1' pos='.2 .1 0' contype='0' "
     "conaffinity='0'/><site name='s' pos='.1 0 0' euler='10 20 0'/>"
     "<body pos='.4 0 0'><joint axis='0 0 1'/><geom size='.1' pos='.2 0 .1'/><site name='t' pos='0 .1 0' euler='0 0 "
     "30'/></body></body></worldbody>"
     "<equality><weld site1='s' site2='t'/></equality><actuator><general site='t' refsite='s' gear='1 2 3 4 5 "
     "6'/></actuator>"
     "<sensor><framepos objtype='geom' objname='g'/><framequat objtype='site' objname='s'/></sensor>"},
    {"nearly equal frames",  // off by less than the 1e-6 below which MuJoCo takes the body's frame or the inertia's
     "<worldbody><geom size='.1' pos='7e-7 0 0'/><site name='w' pos='0 -7e-7 0' quat='1 0 7e-7 0'/>"
     "<body pos='.1 0 .2' euler='10 0 20'><geom size='.05' pos='0 0 7e-7'/><site name='x' pos='.1 7e-7 0'/></body>"
     "<body name='a' pos='0 0 1'><joint axis='0 1 0'/><joint axis='1 0 1' pos='.1 0 0'/>"
     "<inertial pos='.2 .1 0' quat='.8 .6 0 0' mass='1' diaginertia='.1 .2 .25'/>"
     "<geom name='i' type='box' size='.1 .2 .1' pos='.2 .1000007 0' quat='.8 .6 0 7e-7'/>"
     "<geom type='box' size='.1 .1 .2' pos='.1 .2 0' quat='-.8 -.6 7e-7 0'/>"
     "<geom type='box' size='.1 .1 .1' pos='5e-7 0 0' quat='1 7e-7 0 0'/>"
     "<site name='s' pos='.2000007 .1 0' quat='.8 .6 7e-7 0'/><site name='t' pos='.1 0 .2' quat='.8 .6 7e-7 0'/>"
     "<site name='u' pos='.1 0 -.2' quat='-1 0 0 7e-7'/><site name='v' pos='0 7e-7 0' quat='1 0 7e-7 0'/>"
     "<body name='b' pos='.3 0 .1' euler='0 30 0'><inertial pos='7e-7 0 0' quat='1 0 7e-7 0' mass='2' "
     "diaginertia='.2 .1 .15'/>"
     "<geom name='g' type='cylinder' size='.02 .1' pos='0 0 7e-7'/><site name='k' pos='.1 0 0' quat='1 0 0 7e-7'/>"
     "<body name='c' pos='.3 .1 0'><joint type='ball'/><inertial pos='.1 0 0' quat='1 7e-7 0 0' mass='1' "
     "diaginertia='.1 .1 .1'/><geom type='capsule' size='.05 .1' pos='.1000007 0 0' quat='1 0 7e-7 0'/>"
     "<site name='l' pos='-7e-7 0 0'/></body></body></body></worldbody>"
     "<equality><connect site1='v' site2='l'/></equality>"
     "<tendon><spatial name='p' stiffness='20' damping='1'><site site='w'/><site site='s'/><geom geom='g' "
     "sidesite='k'/><site site='l'/></spatial></tendon>"
     "<actuator><general site='s' refsite='t' gear='1 2 3 4 5 6'/><general tendon='p'/></actuator>"
     "<sensor><framepos objtype='body' objname='b'/><framexaxis objtype='body' objname='a'/>"
     "<framequat objtype='site' objname='s'/></sensor>"},
    {"fluid",
     "<option density='900' viscosity='.3' wind='.5 .2 -.3'/><default><default class='e'><geom "
     "fluidshape='ellipsoid'/></default></default><worldbody>"
     "<body pos='0 0 1'><freejoint/><geom type='box' size='.1 .05 .03'/></body>"
     "<body pos='1 0 1'><freejoint/><geom class='e' type='ellipsoid' size='.1 .05 .02' pos='.03 0 0' euler='20 30 "
     "0'/><geom class='e' type='capsule' size='.02 .1' pos='-.1 0 0' fluidcoef='1 .3 .8 1.2 .7'/></body>"
     "<body pos='2 0 1'><joint type='slide' axis='1 0 0'/><joint type='slide' axis='0 1 0'/><joint type='slide' "
     "axis='0 0 1'/><joint axis='0 0 1'/><geom class='e' type='ellipsoid' size='.01 .015 .008'/></body>"
     "<body pos='3 0 1'><joint type='ball'/><geom class='e' type='ellipsoid' size='.1 .05 .08'/></body>"
     "<body pos='4 0 1'><joint axis='0 1 0' damping='.1'/><geom type='capsule' size='.02 .1' pos='.1 0 0'/>"
     "<body pos='.2 0 0'><joint type='ball'/><geom class='e' type='cylinder' size='.05 .02' pos='.1 .02 0' euler='0 40 "
     "20'/><geom size='.03'/><body pos='.1 0 .1' euler='10 0 0'><geom type='box' size='.1 .05 .02'/>"
     "<body pos='.1 0 .1'><joint axis='1 1 0'/><geom class='e' size='.03' pos='.02 0 0'/></body></body></body></body>"
     "</worldbody>"},
};

static const char *const myosuite[] = {"envs/myo/assets/hand/myohand_baoding.xml",
                                       "envs/myo/assets/hand/myohand_pen.xml",
                                       "envs/myo/assets/arm/myoarm_tabletennis.xml",
                                       "simhive/myo_sim/arm/myoarm.xml",
                                       "simhive/myo_sim/leg/myolegs.xml",
                                       "simhive/myo_sim/torso/myotorso.xml",
                                       "simhive/MPL_sim/scenes/left_arm.xml",
                                       "simhive/myo_sim/finger/myofinger_v0.xml"};

void sn_dynamics_sample(SnOracle *o, double speed) {
  sn_oracle_randomize(o, speed);
  for (int i = 0; i < 3 * o->mj->nmocap; ++i) o->d->mocap_pos[i] = sn_oracle_uniform(o);
  for (int i = 0; i < 4 * o->mj->nmocap; ++i) o->d->mocap_quat[i] = 2 * sn_oracle_uniform(o);
  mj_forward(o->mj, o->d);
  for (int stage = SN_STAGE_KINEMATICS; stage <= SN_STAGE_INTEGRATE; ++stage)
    sn_world_poison(o->m, &o->w, (SnStage)stage);
  sn_oracle_copy_state(o);
}

static void run_states(SnOracle *o, const char *name, int nstate, double speed,
                       void (*check)(SnOracle *o, const char *name)) {
  sn_model_need_all(o->m);
  for (int i = 0; i < nstate; ++i) {
    sn_dynamics_sample(o, speed);
    check(o, name);
  }
  sn_oracle_free(o);
}

bool sn_dynamics_load_inline(SnOracle *o, const char *option, int i, const char **name) {
  static char xml[20000];
  const int n = sizeof inline_models / sizeof *inline_models;
  if (i >= n) return false;
  snprintf(xml, sizeof xml, "<mujoco>%s%s</mujoco>", option, inline_models[i][1]);
  sn_oracle_load_string(o, xml);
  *name = inline_models[i][0];
  return true;
}

void sn_dynamics_for_inline(const char *option, int nstate, double speed,
                            void (*check)(SnOracle *o, const char *name)) {
  SnOracle o;
  const char *name;
  for (int i = 0; sn_dynamics_load_inline(&o, option, i, &name); ++i) run_states(&o, name, nstate, speed, check);
}

void sn_dynamics_for_models(int nstate, double speed, void (*check)(SnOracle *o, const char *name)) {
  sn_dynamics_for_inline("", nstate, speed, check);
  const char *dir = sn_oracle_myosuite();
  if (!dir) print_message("skipped: the MyoSuite models are not in the cache folder\n");
  for (size_t i = 0; dir && i < sizeof myosuite / sizeof *myosuite; ++i) {
    char path[5000];
    snprintf(path, sizeof path, "%s/%s", dir, myosuite[i]);
    SnOracle o;
    sn_oracle_load_file(&o, path);
    run_states(&o, myosuite[i], nstate, speed, check);
  }
}
