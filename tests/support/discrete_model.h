// A model for tests of the integrator `discrete`.
#ifndef SINEW_TESTS_SUPPORT_DISCRETE_MODEL_H_
#define SINEW_TESTS_SUPPORT_DISCRETE_MODEL_H_

// Has springs of all kinds of joints, with higher powers and negative slopes, tendons, servos, muscles. It has rows
// that the step resolves and that it does not, and bodies that stand alone, are tied, touch.
#define SN_DISCRETE_SCENE                                                                                            \
  "<worldbody><geom name='floor' type='plane' size='9 9 1' condim='4'/><body pos='0 0 3'><joint type='free' "        \
  "damping='.3' stiffness='20 3 -1'/><geom type='box' size='.1 .2 .3' pos='.1 0 0' mass='2'/></body><body pos='2 0 " \
  ".29'><freejoint/><geom type='box' size='.1 .2 .3' mass='9' solref='.003 .8'/><site name='s' pos='.1 .1 "          \
  ".1'/></body><body pos='4 0 .6'><joint type='ball' damping='.1 .02 .03' stiffness='1 2 1' range='0 .1' "           \
  "solreflimit='.002 1'/><geom type='capsule' fromto='0 0 0 .4 0 0' size='.05' mass='1'/><body pos='.4 0 0'><joint " \
  "axis='0 1 0' range='-.3 .3' solreflimit='.004 .5' damping='.2 .3 .1' stiffness='2 -1 5'/><joint axis='1 0 0' "    \
  "frictionloss='.05' type='slide' solreffriction='.001 1'/><geom type='capsule' fromto='0 0 0 .4 0 0' size='.05' "  \
  "mass='1'/><site name='u' pos='.3 0 0'/></body></body><body pos='6 0 1'><joint name='q' axis='0 1 0'/><geom "      \
  "type='capsule' fromto='0 0 0 .4 0 0' size='.05' mass='1'/><body name='e' pos='.4 0 0'><joint name='r' axis='0 1 " \
  "0'/><geom type='capsule' fromto='0 0 0 .4 0 0' size='.05' mass='1'/></body></body><body pos='8 0 .35' euler='20 " \
  "30 0'><freejoint/><geom type='box' size='.1 .2 .3' mass='2'/></body></worldbody><tendon><spatial name='w' "       \
  "stiffness='50 10 3' damping='2 .1 .3' springlength='.2' range='0 1.9'><site site='s'/><site "                     \
  "site='u'/></spatial><fixed name='f' stiffness='5' damping='.2' frictionloss='.1'><joint joint='q' "               \
  "coef='1.2'/><joint joint='r' coef='-.5'/></fixed></tendon><equality><connect body1='e' anchor='.4 0 0' "          \
  "solref='.004 1'/><joint joint1='q' joint2='r' polycoef='0 .3 .5 0 0'/></equality><actuator><position joint='q' "  \
  "kp='30' kv='2' forcerange='-20 20'/><general tendon='w' gaintype='affine' gainprm='3 -2 -.5' biastype='affine' "  \
  "biasprm='0 -3 -.1'/><general joint='q' biastype='affine' biasprm='0 5 1'/><muscle joint='r' lengthrange='-1 1' "  \
  "force='30'/></actuator></mujoco>"

// Makes the model with a time step [s] and a cone ("elliptic").
#define SN_DISCRETE_MODEL(timestep, cone)                                                                  \
  "<mujoco><compiler autolimits='true'/><option integrator='discrete' timestep='" timestep "' cone='" cone \
  "'/>" SN_DISCRETE_SCENE

#endif
