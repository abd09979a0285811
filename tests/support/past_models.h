// Models with buffers: controls that act late, sensors that answer late or seldom, of every way to read a buffer.
#ifndef SINEW_TESTS_SUPPORT_PAST_MODELS_H_
#define SINEW_TESTS_SUPPORT_PAST_MODELS_H_

// Has two links, a tendon and a ball that falls on a plane, as MJCF.
#define SN_PAST_BODIES                                                                                              \
  "<worldbody><geom type='plane' size='2 2 .1'/><body pos='0 0 1'><joint name='j' axis='0 1 0' damping='.1'/>"      \
  "<geom type='capsule' size='.05 .2' pos='0 0 -.2'/><body pos='0 0 -.4'><joint name='k' axis='1 1 0' "             \
  "range='-60 60' limited='true'/><geom type='capsule' size='.04 .2' pos='0 0 -.2'/><site name='s' pos='0 0 -.4'/>" \
  "</body></body><body name='ball' pos='.5 0 .12'><freejoint/><geom size='.1'/></body></worldbody><tendon>"         \
  "<fixed name='t'><joint joint='j' coef='1'/><joint joint='k' coef='-.5'/></fixed></tendon>"

// Has actuators that are late, by each way to read a buffer and with several controls, and others.
#define SN_PAST_ACTUATORS                                                                                            \
  "<actuator><motor name='held' joint='j' delay='.012' nsample='5' gear='2'/>"                                       \
  "<position name='line' joint='k' kp='5' delay='.0071' nsample='4' interp='linear' ctrlrange='-1 1'/>"              \
  "<general name='cubic' tendon='t' dyntype='filter' dynprm='.05' gainprm='3' delay='.01' nsample='6' "              \
  "interp='cubic'/><general name='affine' joint='j' gaintype='affine' gainprm='1 .5 -.4' delay='.0045' nsample='6' " \
  "interp='linear'/><motor name='known' joint='k' nsample='3'/><pid name='pid' joint='j' kp='2' kv='.3' ki='.5' "    \
  "input='pos vel ff' delay='.006' nsample='3' interp='linear'/><motor name='now' joint='k'/></actuator>"

// Has sensors that are late, seldom or both, of positions, velocities, forces, accelerations, and others.
#define SN_PAST_SENSORS                                                                                        \
  "<sensor><jointpos joint='j' delay='.009' nsample='4'/><framepos objtype='site' objname='s' delay='.0075' "  \
  "nsample='5' interp='cubic'/><accelerometer site='s' delay='.004' nsample='3' interp='linear'/>"             \
  "<jointvel joint='k' interval='.01' nsample='2'/><actuatorfrc actuator='held' interval='.007 -.002' "        \
  "delay='.009' nsample='4' interp='linear'/><framequat objtype='site' objname='s' delay='.006' nsample='4' "  \
  "interp='linear'/><touch site='s' nsample='3'/><clock delay='.01' nsample='6'/><framelinvel objtype='site' " \
  "objname='s'/></sensor>"

// Makes a model with an integrator ("Euler") and the parts above, or without the sensors.
#define SN_PAST_MODEL(integrator, sensors)                                                                 \
  "<mujoco><option timestep='.003' integrator='" integrator "'/>" SN_PAST_BODIES SN_PAST_ACTUATORS sensors \
  "<keyframe><key time='.5' qpos='.1 .2 .5 0 .2 1 0 0 0' ctrl='1 0 0 0 0 0 0 0 0'/></keyframe></mujoco>"

#endif
