#include "tests/support/actuator_models.h"

// Every kind of path: sites on one body, several wraps, pulleys, world and mocap ends, two trees, ball, slide and free
// joints, welded bodies, fixed tendons.
const char sn_tendon_xml[] =
    "<mujoco><worldbody><site name='w' pos='.3 0 1'/><site name='w2' pos='.35 .1 1'/>"
    "<body name='m' mocap='true' pos='0 .5 1'><site name='m' pos='.01 .02 .03'/><site name='m2' pos='.02 .03 "
    ".04'/></body>"
    "<body name='a' pos='0 0 1'><joint name='a' axis='0 1 .2' range='-60 60' limited='true'/>"
    "<joint name='a2' type='slide' axis='1 0 0'/>"
    "<geom name='ga' type='cylinder' size='.03 .1' euler='90 0 0'/>"
    "<site name='a' pos='.05 0 .02'/><site name='a2' pos='.08 .01 .03'/><site name='aside' pos='0 0 .05'/>"
    "<body name='weld' pos='.1 0 0' euler='10 20 30'><geom size='.01'/><site name='weld' pos='.01 .02 .01'/>"
    "<body name='b' pos='.1 0 0'><joint name='b' type='ball'/><geom name='gb' size='.025'/>"
    "<site name='b' pos='.06 0 .02'/><site name='bside' pos='0 .01 .05'/><site name='bin' pos='.002 0 .001'/>"
    "<body name='c' pos='.15 0 0'><joint name='c' axis='0 1 0'/><joint name='c2' axis='0 0 1'/>"
    "<geom name='gc' type='cylinder' size='.02 .1' euler='80 0 10'/><site name='c' pos='.1 .01 "
    ".01'/></body></body></body>"
    "<body name='d' pos='0 .2 0'><joint name='d'/><geom size='.02' pos='.05 0 0'/><site name='d' pos='.1 0 "
    "0'/></body></body>"
    "<body name='f' pos='.2 .2 1.2'><freejoint/><geom name='gf' size='.03'/><site name='f' pos='.03 .02 .01'/></body>"
    "</worldbody><tendon>"
    "<spatial><site site='w'/><site site='w2'/><site site='a'/><site site='a2'/><site site='weld'/><site "
    "site='b'/></spatial>"
    "<spatial><site site='w'/><geom geom='ga' sidesite='aside'/><site site='weld'/><geom geom='gb' "
    "sidesite='bside'/><site site='b'/>"
    "<geom geom='gc'/><site site='c'/></spatial>"
    "<spatial><site site='a'/><site site='b'/><pulley divisor='2'/><site site='b'/><geom geom='gc'/><site site='c'/>"
    "<pulley divisor='3'/><site site='d'/><site site='weld'/><site site='a2'/></spatial>"
    "<spatial><pulley divisor='.5'/><site site='d'/><geom geom='gb' sidesite='bin'/><site site='c'/></spatial>"
    "<spatial><site site='m'/><site site='m2'/><site site='d'/></spatial>"
    "<spatial><site site='c'/><geom geom='gf'/><site site='f'/><site site='d'/></spatial>"
    "<spatial><site site='f'/><site site='c'/></spatial>"
    "<spatial><site site='w'/><site site='m'/></spatial>"
    "<fixed><joint joint='a' coef='.3'/><joint joint='c2' coef='-2'/></fixed>"
    "<fixed><joint joint='d' coef='1.5'/></fixed>"
    "<spatial><site site='a'/><geom geom='ga'/><site site='weld'/></spatial>"
    "</tendon></mujoco>";

// A geom body and two bodies with an endpoint each; every kind of wrap between the same endpoints.
const char sn_wrap_xml[] =
    "<mujoco><worldbody>"
    "<body name='g' pos='0 0 1'><freejoint/><geom type='sphere' size='.01'/>"
    "<geom name='sphere' type='sphere' size='.05' pos='.01 0 0' euler='20 30 40'/>"
    "<geom name='cylinder' type='cylinder' size='.05 .1' pos='0 .01 0' euler='50 10 -40'/>"
    "<site name='out' pos='.1 .05 .02'/><site name='in' pos='.01 .005 .002'/><site name='axis' pos='0 .01 .2'/></body>"
    "<body name='a' pos='0.06 0 1'><freejoint/><geom size='.01'/><site name='a' pos='.01 .02 .03'/></body>"
    "<body name='c' pos='.01 0 1'><freejoint/><geom size='.01'/><site name='far' pos='0 0 .02'/></body>"
    "<body name='b' pos='-.06 0 1'><freejoint/><geom size='.01'/><site name='b' pos='-.01 .02 .03'/></body>"
    "</worldbody><tendon>"
    "<spatial><site site='a'/><geom geom='sphere'/><site site='b'/></spatial>"
    "<spatial><site site='a'/><geom geom='cylinder'/><site site='b'/></spatial>"
    "<spatial><site site='a'/><geom geom='sphere' sidesite='out'/><site site='b'/></spatial>"
    "<spatial><site site='a'/><geom geom='cylinder' sidesite='out'/><site site='b'/></spatial>"
    "<spatial><site site='a'/><geom geom='sphere' sidesite='in'/><site site='b'/></spatial>"
    "<spatial><site site='a'/><geom geom='cylinder' sidesite='in'/><site site='b'/></spatial>"
    "<spatial><site site='a'/><geom geom='cylinder' sidesite='axis'/><site site='b'/></spatial>"
    "<spatial><site site='a'/><geom geom='sphere' sidesite='far'/><site site='b'/></spatial>"
    "<spatial><site site='a'/><geom geom='cylinder' sidesite='far'/><site site='b'/></spatial>"
    "</tendon></mujoco>";

#define BODIES                                                                                                      \
  "<worldbody><site name='w' pos='.3 .1 1' euler='10 20 30'/>"                                                      \
  "<body name='a' pos='0 0 1' gravcomp='.7'><joint name='h' axis='0 1 .2' range='-60 60' actuatorfrcrange='-2 3'/>" \
  "<joint name='s' type='slide' axis='1 0 .1' actuatorgravcomp='true'/>"                                            \
  "<geom size='.05' pos='.1 0 0'/><site name='a' pos='.05 0 .02' euler='10 40 30'/>"                                \
  "<body name='b' pos='.2 0 0' gravcomp='1.2'><joint name='ball' type='ball' actuatorgravcomp='true'/>"             \
  "<geom size='.03' pos='.1 0 0'/><site name='b' pos='.06 0 .02' euler='-50 20 70'/>"                               \
  "<body name='c' pos='.15 0 0'><joint name='c' axis='0 1 0'/><geom size='.02' pos='.1 0 0'/>"                      \
  "<site name='c' pos='.1 .01 .01' euler='0 30 0'/></body></body>"                                                  \
  "<body name='d' pos='0 .3 0'><joint name='d' axis='0 0 1'/><geom size='.02' pos='.05 0 0'/>"                      \
  "<site name='d' pos='.1 0 0' euler='90 0 20'/></body></body>"                                                     \
  "<body name='f' pos='.2 .2 1.5'><freejoint name='f'/><geom size='.03' pos='.01 0 0'/>"                            \
  "<site name='f' pos='.02 .02 .01' euler='5 6 7'/></body></worldbody>"                                             \
  "<tendon><spatial name='t' actuatorfrcrange='-4 3'><site site='w'/><site site='a'/><site site='c'/></spatial>"    \
  "<spatial name='t2'><site site='b'/><site site='f'/></spatial>"                                                   \
  "<fixed name='x'><joint joint='h' coef='.3'/><joint joint='d' coef='-2'/></fixed></tendon>"

// Every kind of transmission, activation, gain, bias and limit.
const char sn_actuator_xml[] =
    "<mujoco><option timestep='.004'/>" BODIES
    "<actuator>"
    // transmissions
    "<motor joint='h' gear='2'/><motor joint='s'/><motor joint='ball' gear='1 2 3'/><motor jointinparent='ball' "
    "gear='3 1 -2'/>"
    "<motor joint='f' gear='1 2 3 4 5 6'/><motor jointinparent='f' gear='1 -2 3 4 -5 6'/><motor jointinparent='c' "
    "gear='-3'/>"
    "<motor tendon='t' gear='1.5'/><motor tendon='t' gear='-.5'/><motor tendon='t2'/><motor tendon='x' gear='4'/>"
    "<motor site='c' gear='1 2 3 .4 .5 .6'/><motor site='f' gear='0 0 1 0 0 0'/>"
    "<motor site='c' refsite='a' gear='1 2 3 0 0 0'/><motor site='c' refsite='d' gear='1 2 3 .3 .2 .1'/>"
    "<motor site='f' refsite='b' gear='0 0 0 1 2 3'/><motor site='d' refsite='w' gear='0 0 0 .5 0 0'/>"
    "<motor cranksite='b' slidersite='a' cranklength='.5' gear='3'/><motor cranksite='c' slidersite='d' "
    "cranklength='.05'/>"
    "<motor cranksite='f' slidersite='w' cranklength='2'/>"
    // activations, gains, biases
    "<general joint='h' dyntype='integrator' gainprm='3' actrange='-.2 .6'/>"
    "<general joint='h' dyntype='filter' dynprm='.03' gainprm='3' actearly='true'/>"
    "<general joint='h' dyntype='filterexact' dynprm='.02' gainprm='3' ctrlrange='-.3 .4'/>"
    "<general joint='s' dyntype='filterexact' dynprm='.02' gainprm='3' actearly='true' actrange='-.1 .1' "
    "forcerange='-.1 .2'/>"
    "<general joint='s' gaintype='affine' gainprm='1 2 3' biastype='affine' biasprm='.3 -2 .4'/>"
    "<position joint='c' kp='20' kv='.5' forcerange='-3 3'/><velocity joint='c' kv='2'/><intvelocity joint='d' kp='3' "
    "actrange='-1 1'/>"
    "<damper joint='d' kv='2' ctrlrange='0 1'/><cylinder joint='s' timeconst='.1' area='3' bias='.1 .2 .3'/>"
    "<muscle tendon='t' timeconst='.01 .04' range='.75 1.05' force='10' lengthrange='.4 1'/>"
    "<muscle tendon='t2' tausmooth='.3' scale='5' lengthrange='.1 1.5' ctrlrange='-1 2'/>"
    "<muscle joint='h' lengthrange='-1 1' lmin='.3' lmax='1.9' vmax='2' fpmax='1' fvmax='1.5'/>"
    // servos on rotations, whose setpoints are taken modulo a turn
    "<position joint='ball' kp='2' gear='0 .3 0'/><position jointinparent='ball' kp='2' gear='.1 .2 .1'/>"
    "<position site='c' refsite='a' kp='1' gear='0 0 0 .2 0 .1'/><intvelocity site='c' refsite='a' kp='1' gear='0 0 0 "
    "0 .1 .1'/>"
    "<general group='3' joint='d' dyntype='filter' dynprm='.1'/>"
    "</actuator></mujoco>";

// Controllers with every set of controls and activations, at bounds and within them, on a rotation, with limits.
const char sn_controller_xml[] =
    "<mujoco><option timestep='.004'/>" BODIES
    "<actuator>"
    "<pid joint='h' kp='3' kv='.4'/><pid joint='d' kp='3' kv='.4' input='pos'/><pid joint='c' kp='2' kv='.5' "
    "input='vel'/>"
    "<pid joint='s' kp='2' kv='.3' input='pos vel ff'/><pid joint='d' kp='2' ki='3' input='pos ff' ffrange='-.3 .4'/>"
    "<pid joint='h' kp='2' kv='.1' ki='4' imax='.2'/><pid joint='c' kp='2' slewmax='300' posrange='-.5 .6'/>"
    "<pid joint='c' kp='2' kv='.2' ki='1.5' imax='.4' slewmax='20'/><pid joint='ball' kp='2' ki='3' slewmax='30' "
    "gear='0 "
    ".3 .1'/><pid tendon='t' kp='2' kv='.2' ki='3' slewmax='200' forcerange='-1 1'/>"
    "<pid group='3' joint='h' kp='2' ki='1' slewmax='10'/><general joint='h' gaintype='pid' gainprm='2' dyntype='pid' "
    "biastype='affine' biasprm='.1 -3 -.2' actearly='true' input='pos vel' actrange='-.3 .4'/></actuator></mujoco>";

// Electric motors: every set of controls and activations, with limits that hold and do not, and passive ones.
const char sn_motor_xml[] =
    "<mujoco><option timestep='.001'/><default><dcmotor motorconst='.4' resistance='2'/></default>" BODIES
    "<actuator>"
    "<dcmotor joint='h'/><dcmotor joint='d' motorconst='.3 .5' gear='2' ctrlrange='-.4 .3' damping='.1'/>"
    "<dcmotor joint='c' inductance='.01'/><dcmotor joint='s' inductance='0 .003' saturation='.1 0 20'/>"
    "<dcmotor joint='h' thermal='3 5 0 .004 20 25'/><dcmotor joint='d' thermal='0 5 8 .02 20 70' inductance='.004'/>"
    "<dcmotor joint='c' cogging='.3 5 .4'/><dcmotor joint='d' lugre='40 .6 .2 .35 .1' saturation='.02'/>"
    "<dcmotor joint='h' lugre='30 .5 .1 .1 .2' input='none'/>"
    "<dcmotor joint='s' motorconst='0' input='none' cogging='.2 7 1'/>"
    "<dcmotor joint='h' input='pos vel' controller='3 0 .2'/>"
    "<dcmotor joint='d' input='pos vel ff voltage' controller='2 3 .1 30 .3 .8'/>"
    "<dcmotor joint='c' input='pos' controller='2 1.5 0 0 .2 0' inductance='.01'/>"
    "<dcmotor joint='h' input='vel ff' controller='0 0 .5 40 0 3'/><dcmotor joint='s' input='ff' inductance='.002'/>"
    "<dcmotor tendon='t' input='pos voltage' controller='1 .5 .2 200 0 0' thermal='2 1 0 .01 20 20' lugre='20 .3 .1 .2 "
    ".3' inductance='.006' cogging='.1 9 0' saturation='.4 0 30'/>"
    "<dcmotor group='3' joint='h' lugre='20 .3 .1 .2 .3' inductance='.006'/></actuator></mujoco>";

// Orientation servos on a ball joint and on sites of one branch and of two, by rotation vectors and quaternions, with
// activations and limits.
const char sn_orientation_xml[] =
    "<mujoco><option timestep='.004'/><default><geom type='box' size='.1 .06 .08' contype='0' conaffinity='0'/>"
    "</default><worldbody><site name='w' pos='.3 .1 1' euler='10 20 30'/>"
    "<body pos='0 0 1'><joint name='h' axis='0 1 .2'/><geom pos='.1 0 0'/><site name='a' pos='.05 0 .02' euler='10 40 "
    "30'/>"
    "<body pos='.2 0 0'><joint name='s' type='slide' axis='1 0 .1'/><joint name='ball' type='ball' pos='.02 0 .01'/>"
    "<geom pos='.1 0 .02'/><site name='b' pos='.06 0 .02' euler='-50 20 70'/>"
    "<body pos='.2 0 0' euler='20 0 10'><joint name='c' type='ball'/><geom pos='.1 0 0'/>"
    "<site name='c' pos='.1 .01 .01' euler='0 30 0'/></body></body>"
    "<body pos='0 .3 0'><joint name='d' axis='0 0 1'/><geom pos='.05 0 0'/><site name='d' pos='.1 0 0' euler='90 0 "
    "20'/></body></body>"
    "<body pos='.2 .2 1.5'><freejoint/><geom pos='.01 0 0'/><site name='f' pos='.02 .02 .01' euler='5 6 7'/></body>"
    "</worldbody><actuator><orientation name='turn' joint='ball' kp='2' kv='.1'/>"
    "<orientation joint='ball' kp='1' input='quat' ctrlrange='-.8 .7'/>"
    "<orientation joint='c' kp='3' kv='.2' forcerange='0 2'/><orientation site='c' refsite='a' kp='1.5' kv='.3'/>"
    "<orientation site='f' refsite='b' kp='2' kv='.1' input='quat' forcerange='0 1.5'/>"
    "<orientation site='d' refsite='w' kp='.7' ctrlrange='-.4 .9'/><motor joint='h'/>"
    "<general joint='ball' dyntype='integrator' gaintype='so3' biastype='so3' gainprm='2' biasprm='.1 -2 -.3'/>"
    "<general site='c' refsite='d' dyntype='integrator' gaintype='so3' biastype='so3' gainprm='1' biasprm='0 -1 -.1' "
    "actearly='true' actrange='-.9 1.1'/><orientation group='3' joint='c' kp='2' kv='.4'/></actuator>"
    "<sensor><actuatorpos actuator='turn'/><actuatorvel actuator='turn'/><actuatorfrc actuator='turn'/></sensor>"
    "</mujoco>";

const char sn_passive_xml[] = "<mujoco>" BODIES "</mujoco>";

// Contacts of every kind, some in the gap, one on a geom of the world.
const char sn_adhesion_xml[] =
    "<mujoco><option cone='%s'/><default><geom margin='.1' gap='.05'/></default><worldbody>"
    "<geom type='plane' size='1 1 1'/><body name='a' pos='0 0 .05'><freejoint/><geom size='.1' condim='4'/>"
    "<body name='b' pos='.19 0 0'><joint/><geom size='.1' condim='1'/></body></body>"
    "<body name='c' pos='0 0 .3'><joint type='slide' axis='0 .2 1'/><joint/><geom size='.1' condim='6'/></body>"
    "</worldbody><actuator><adhesion body='a' ctrlrange='0 1' gain='2'/><adhesion body='b' ctrlrange='0 1'/>"
    "<adhesion body='c' ctrlrange='0 2'/><adhesion body='world' ctrlrange='0 2'/></actuator></mujoco>";
