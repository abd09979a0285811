#include "tests/support/small_models.h"

// An arm with muscles around geoms, limits, friction loss, equalities, sensors, keyframes.
static const char arm[] =
    "<mujoco model='arm'><compiler autolimits='true'/><option timestep='0.002'/>"
    "<worldbody><site name='a0' pos='0 .1 .3'/><site name='a1' pos='0 -.1 .3'/><geom name='floor' type='plane' size='2 "
    "2 1' pos='0 0 -.6'/>"
    " <body name='upper'><joint name='shoulder' axis='0 1 0' range='-1 1' damping='.1' stiffness='1' "
    "frictionloss='.05'/>"
    "  <geom name='humerus' type='capsule' size='.03' fromto='0 0 0 0 0 -.3'/><geom name='wrapper' type='cylinder' "
    "size='.05 .1' "
    "   contype='0' conaffinity='0' pos='0 0 -.3' euler='90 0 0'/>"
    "  <geom name='ballwrap' type='sphere' size='.04' contype='0' conaffinity='0' pos='0 0 -.1'/><site name='u0' "
    "pos='.04 0 -.1'/>"
    "  <site name='side' pos='.1 0 -.3'/>"
    "  <body name='lower' pos='0 0 -.3' gravcomp='.5'><joint name='elbow' axis='0 1 0' range='-2 .1' armature='.01'/>"
    "   <geom name='ulna' type='capsule' size='.025' fromto='0 0 0 0 0 -.25'/><site name='l0' pos='.03 0 -.1'/><site "
    "name='l1' pos='0 .02 -.2'/>"
    "   <body name='hand' pos='0 0 -.25'><joint name='wrist' type='ball' stiffness='.2' damping='.02'/><geom "
    "name='palm' type='box' size='.04 .02 .05'/>"
    "    <site name='tip' pos='0 0 -.05'/><body name='finger' pos='0 0 -.05'><joint name='slider' type='slide' axis='0 "
    "0 1' range='-.02 .02'/>"
    "     <geom name='nail' size='.02'/></body></body></body></body></worldbody>"
    "<tendon><spatial name='biceps' range='0 1'><site site='a0'/><geom geom='ballwrap'/><site site='u0'/><geom "
    "geom='wrapper' sidesite='side'/>"
    "  <site site='l0'/></spatial>"
    " <spatial name='split' stiffness='10' damping='1' springlength='.1 .2'><site site='a1'/><site site='u0'/><pulley "
    "divisor='2'/>"
    "  <site site='u0'/><site site='l0'/><pulley divisor='2'/><site site='u0'/><site site='l1'/></spatial>"
    " <fixed name='sum' range='-1 1' frictionloss='.01' armature='.01'><joint joint='shoulder' coef='1'/><joint "
    "joint='elbow' coef='-.5'/></fixed>"
    " <fixed name='other'><joint joint='slider' coef='3'/></fixed></tendon>"
    "<equality><joint name='coupled' joint1='slider' joint2='elbow' polycoef='0 .01 0 0 0'/><tendon tendon1='other' "
    "tendon2='sum' "
    " polycoef='0 .1 0 0 0'/></equality>"
    "<actuator><muscle name='flexor' tendon='biceps' lengthrange='.2 .6'/><motor name='motor' joint='wrist' gear='1 0 "
    "0 0 1 0' ctrlrange='-1 1'/>"
    " <position name='servo' joint='elbow' kp='5' kv='.1' ctrlrange='-1 1'/><general name='lag' joint='shoulder' "
    "dyntype='filterexact' dynprm='.05' "
    " gainprm='2' ctrlrange='-1 1' actlimited='true' actrange='-1 1' actearly='true'/><general name='sum' tendon='sum' "
    "dyntype='integrator' "
    " ctrlrange='-1 1' gaintype='affine' gainprm='1 1 .1' biastype='affine' biasprm='0 -1 -.1'/>"
    " <general name='push' site='tip' refsite='a0' gear='1 0 0 0 1 0' ctrlrange='-1 1' forcerange='-2 2'/>"
    " <general name='filter' joint='slider' dyntype='filter' dynprm='.1' ctrlrange='-1 1'/><general name='inparent' "
    "jointinparent='wrist' gear='0 0 1 0 0 0' ctrlrange='-1 1'/>"
    " <general name='crank' cranksite='u0' slidersite='a0' cranklength='.4' ctrlrange='-1 1'/></actuator>"
    "<sensor><jointpos joint='elbow'/><framepos objtype='site' objname='tip'/><tendonpos tendon='sum'/><framequat "
    "objtype='body' objname='hand' "
    " reftype='site' refname='a0'/></sensor>"
    "<keyframe><key name='bent' qpos='.3 -1 1 0 0 0 0' ctrl='.5 0 0 0 0 0 0 0 0'/></keyframe></mujoco>";

// Free bodies of every shape on a plane, pairs, excludes, mocap, connect and weld.
static const char pile[] =
    "<mujoco model='pile'><option timestep='0.005' cone='elliptic' impratio='2'/>"
    "<asset><mesh name='wedge' vertex='-.1 -.1 -.1 .1 -.1 -.1 .1 .1 -.1 -.1 .1 -.1 -.1 0 .1 .1 0 .1'/></asset>"
    "<worldbody><geom name='floor' type='plane' size='2 2 1'/><body name='lift' mocap='true' pos='1 0 .2'><geom "
    "name='plate' type='box' size='.2 .2 .02'/></body>"
    " <body name='b0' pos='0 0 .08'><freejoint/><geom name='g0' size='.1'/></body>"
    " <body name='b1' pos='.3 0 .1'><freejoint/><geom name='g1' type='capsule' size='.05 .1' condim='6' friction='1 "
    ".01 .001'/></body>"
    " <body name='b2' pos='0 .3 .1'><freejoint/><geom name='g2' type='ellipsoid' size='.1 .08 .12' condim='4' "
    "margin='.01' gap='.002'/></body>"
    " <body name='b3' pos='.3 .3 .1'><freejoint/><geom name='g3' type='cylinder' size='.1 .1' solref='-100 "
    "-10'/></body>"
    " <body name='b4' pos='-.3 0 .1'><freejoint/><geom name='g4' type='box' size='.1 .1 .1' priority='1' "
    "condim='1'/></body>"
    " <body name='b5' pos='-.3 .3 .1'><freejoint/><geom name='g5' type='mesh' mesh='wedge'/></body>"
    " <body name='b6' pos='-.3 .3 .28'><freejoint/><geom name='g6' type='mesh' mesh='wedge' euler='0 0 30'/><site "
    "name='s6' pos='.1 0 0'/></body>"
    " <body name='b7' pos='1 0 .3'><freejoint/><geom name='g7' type='box' size='.05 .05 .05'/><site "
    "name='s7'/></body></worldbody>"
    "<contact><pair geom1='g0' geom2='g4' margin='.3' friction='1 2 .1 .2 .3'/><exclude body1='b1' "
    "body2='b3'/></contact>"
    "<equality><connect name='rope' body1='b0' body2='b1' anchor='.1 0 0'/><weld name='glue' body1='b2' body2='b4'/>"
    " <weld name='hold' site1='s6' site2='s7'/></equality>"
    "</mujoco>";

// Runge-Kutta, rows of chains in two trees, body transmission.
static const char chains[] =
    "<mujoco model='chains'><option integrator='RK4' timestep='0.01'/><worldbody>"
    " <body><joint name='j0' axis='1 0 0'/><joint name='j1' axis='0 1 0'/><geom size='.05' pos='0 0 -.2'/>"
    "  <body pos='0 0 -.3'><joint name='j2' axis='1 0 0'/><geom size='.05' pos='0 0 -.2'/></body>"
    "  <body pos='.1 0 -.3'><joint name='j3' type='slide' axis='0 0 1' stiffness='50'/><geom size='.05'/></body></body>"
    " <body pos='1 0 0'><joint name='j4' type='ball'/><geom type='box' size='.1 .2 .3'/></body></worldbody>"
    "<equality><joint joint1='j0'/></equality>"
    "<actuator><velocity joint='j1' kv='1'/><cylinder joint='j3' timeconst='.1' bias='0 0 0' "
    "area='1'/></actuator></mujoco>";

// Friction that the noslip solver solves once more: losses, elliptic contacts of two islands. Exact diagonals.
static const char slipping[] =
    "<mujoco><option timestep='0.004' cone='elliptic' noslip_iterations='4'><flag "
    "diagexact='enable'/></option><worldbody><geom type='plane' size='3 3 "
    "1' "
    "friction='.6'/>"
    "<body pos='0 0 .2'><joint name='a' axis='0 1 0' frictionloss='.05' damping='.01'/><geom type='capsule' size='.03' "
    "fromto='0 0 0 .2 0 0'/><body pos='.2 0 0'><joint name='b' axis='0 1 0' frictionloss='.02'/><geom type='capsule' "
    "size='.03' fromto='0 0 0 .1 0 -.16'/></body></body>"
    "<body pos='.42 0 .079'><freejoint/><geom type='box' size='.08 .08 .08' condim='4' friction='.5 .02'/></body>"
    "<body pos='0 1 .099'><freejoint/><geom size='.1' condim='6' friction='.7 .02 .01'/></body></worldbody>"
    "<actuator><motor joint='a' gear='2' ctrlrange='-1 1'/><motor joint='b' ctrlrange='-1 1'/></actuator></mujoco>";

const char *sn_slipping_model(void) { return slipping; }

// Trees that sleep: a box and a ball from the start, a slide and a box soon; a ball that wakes the first two.
static const char sleeping[] =
    "<mujoco><option timestep='.004'><flag sleep='enable'/></option><worldbody><geom type='plane' size='5 5 1'/>"
    "<body pos='0 0 .0995' sleep='init'><freejoint/><geom type='box' size='.1 .1 .1'/></body>"
    "<body pos='0 0 .296' sleep='init'><freejoint/><geom size='.1'/></body>"
    "<body pos='1 0 .0995'><freejoint/><geom type='box' size='.1 .1 .1'/></body>"
    "<body pos='2 0 1'><joint type='slide' axis='1 0 0' frictionloss='.1'/><geom size='.1'/></body>"
    "<body pos='.02 .01 .9'><freejoint/><geom size='.1'/></body></worldbody></mujoco>";

const char *sn_sleeping_model(void) { return sleeping; }

// Tendons that branch with armature, damping and muscles, gravity compensation of joints at their limits, a free body.
static const char branches[] =
    "<mujoco><compiler autolimits='true'/><worldbody><site name='w' pos='-.3 .1 .2'/><body gravcomp='.5'><joint "
    "name='a' axis='0 1 0' damping='1' actuatorgravcomp='true' actuatorfrcrange='-.1 .1'/><geom size='.1' pos='.1 0 "
    "0'/><body pos='.5 0 0' gravcomp='.7'><joint axis='0 1 .2' actuatorgravcomp='true' actuatorfrcrange='-.1 "
    ".1'/><geom "
    "size='.1'/><site name='b' pos='.2 .1 .1'/></body><body pos='0 .3 0'><joint type='ball' stiffness='1'/><geom "
    "size='.1' pos='0 0 .2'/><site name='c' pos='.1 0 .2'/></body></body><body pos='0 0 1'><freejoint/><geom "
    "type='box' "
    "size='.1 .1 .2' pos='.1 0 0'/><site name='d' pos='.1 .1 .1'/></body></worldbody>"
    "<tendon><spatial armature='.2' damping='3'><site site='w'/><site site='b'/><site site='c'/></spatial>"
    "<spatial name='m' armature='.4' damping='1'><site site='c'/><site site='d'/></spatial></tendon>"
    "<actuator><muscle tendon='m' lengthrange='.1 2' force='20'/><velocity joint='a' kv='1'/></actuator></mujoco>";

// Bodies of every convex shape on hills, one of them held by a hinge; hills that nothing can touch.
static const char terrain[] =
    "<mujoco model='terrain'><option timestep='0.004'/><asset><mesh name='wedge' vertex='-.1 -.1 -.1 .1 -.1 -.1 .1 .1 "
    "-.1 -.1 .1 -.1 -.1 0 .1 .1 0 .1'/><hfield name='sky' nrow='2' ncol='3' size='1 1 1 1' elevation='1 2 3 4 5 6'/>"
    "<hfield name='hills' nrow='5' ncol='6' size='.8 .6 .15 .1' elevation='3 1 4 1 5 9 2 6 5 3 5 8 9 7 9 3 2 3 8 4 6 2 "
    "6 4 3 3 8 3 2 7'/></asset><worldbody><geom type='hfield' hfield='hills' euler='3 -4 5'/><geom type='hfield' "
    "hfield='sky' contype='0' conaffinity='0' pos='0 0 2'/>"
    " <body pos='-.5 -.3 .22'><freejoint/><geom size='.08' margin='.01'/></body>"
    " <body pos='0 -.3 .22' euler='60 20 0'><freejoint/><geom type='capsule' size='.04 .1'/></body>"
    " <body pos='.5 -.3 .22' euler='10 20 0'><freejoint/><geom type='ellipsoid' size='.06 .08 .1'/></body>"
    " <body pos='-.5 .3 .24' euler='30 20 0'><freejoint/><geom type='cylinder' size='.06 .08'/></body>"
    " <body pos='0 .3 .22' euler='30 20 50'><freejoint/><geom type='box' size='.06 .08 .05' condim='4'/></body>"
    " <body pos='.5 .3 .25' euler='20 0 0'><freejoint/><geom type='mesh' mesh='wedge'/></body>"
    " <body pos='0 0 .3'><joint axis='0 1 0'/><geom type='capsule' size='.03' fromto='0 0 0 .3 0 -.05'/></body>"
    "</worldbody></mujoco>";

// Rays of a site and of two cameras at a mesh, at hills and at a box that nothing can touch; a zone that is a mesh.
static const char rays[] =
    "<mujoco model='rays'><asset><mesh name='wedge' vertex='-.1 -.1 -.1 .1 -.1 -.1 .1 .1 -.1 -.1 .1 -.1 -.1 0 .1 .1 0 "
    ".1'/><hfield name='hills' nrow='3' ncol='4' size='.8 .6 .15 .1' elevation='3 1 4 1 5 9 2 6 5 3 5 8'/></asset>"
    "<worldbody><geom type='hfield' hfield='hills' contype='0' conaffinity='0'/><geom type='box' size='.1 .1 .1' "
    "pos='.5 0 .2' contype='0' conaffinity='0'/><camera name='flat' pos='0 0 1' projection='orthographic' fovy='.5' "
    "resolution='3 2'/><body pos='0 0 .4'><freejoint/><geom type='mesh' mesh='wedge' contype='0' conaffinity='0'/>"
    "</body><body pos='0 0 .9'><joint axis='0 1 0'/><geom size='.05'/><site name='s' zaxis='.1 0 -1'/><site name='z' "
    "type='mesh' mesh='wedge'/><camera name='wide' resolution='4 3'/></body></worldbody><sensor><rangefinder site='s' "
    "data='dist normal'/><rangefinder camera='wide'/><rangefinder camera='flat' data='point depth'/><insidesite "
    "objtype='xbody' objname='world' site='z'/><user dim='3'/></sensor></mujoco>";

const char *sn_branching_model(void) { return branches; }

const char *sn_terrain_model(void) { return terrain; }

const char *sn_ray_model(void) { return rays; }

const char *sn_small_model(int i) {
  static const char *const models[SN_SMALL_MODELS] = {arm, pile, chains};
  return models[i];
}
