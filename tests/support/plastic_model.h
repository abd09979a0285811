// A model of springs that yield: of hinges, a slide and a ball joint, one without stiffness, and of tendons that are
// pulled and pushed.
#ifndef SINEW_TESTS_SUPPORT_PLASTIC_MODEL_H_
#define SINEW_TESTS_SUPPORT_PLASTIC_MODEL_H_

#define SN_PLASTIC_BODIES                                                                                             \
  "<worldbody><body pos='0 0 1'><joint name='bend' axis='0 1 0' stiffness='8' springyield='.15' damping='.05'/>"      \
  "<geom type='capsule' size='.05 .2' pos='0 0 -.2'/><site name='a' pos='0 .1 -.3'/><body pos='0 0 -.4'><joint "      \
  "name='fold' axis='1 1 0' stiffness='3' springref='20' springyield='.1'/><geom type='capsule' size='.04 .2' "       \
  "pos='0 0 -.2'/></body></body><body pos='1 0 1'><joint name='push' type='slide' axis='0 0 1' stiffness='60' "       \
  "springyield='.03'/><geom size='.1'/></body><body pos='2 0 1'><joint name='twist' type='ball' stiffness='2' "       \
  "springyield='.05' damping='.01'/><geom type='capsule' size='.05 .2' pos='.1 0 -.2'/><site name='b' pos='.1 0 "     \
  "-.3'/>"                                                                                                            \
  "</body><body pos='3 0 1'><joint name='soft' type='slide' axis='1 0 0' springyield='.02'/><geom size='.1'/></body>" \
  "</worldbody><tendon><fixed name='both' springlength='-.05 .05' stiffness='5' springyield='.08'><joint "            \
  "joint='bend' coef='1'/><joint joint='fold' coef='-.5'/></fixed><fixed name='rope' springlength='0 .02' "           \
  "stiffness='20' springyield='.05'><joint joint='push' coef='1'/></fixed><spatial name='band' stiffness='10' "       \
  "springyield='.03' damping='.2'><site site='a'/><site site='b'/></spatial></tendon>"
#define SN_PLASTIC_ACTUATORS                                                                                     \
  "<actuator><motor joint='bend' gear='4'/><motor joint='fold' gear='2'/><motor joint='push' gear='40'/><motor " \
  "joint='twist' gear='2 0 0'/><motor joint='twist' gear='0 1 2'/><motor joint='soft' gear='5'/></actuator>"
// Makes the model with an integrator ("Euler") and elements of its options.
#define SN_PLASTIC_MODEL(integrator, extra)                                                         \
  "<mujoco><compiler autolimits='true'/><option timestep='.004' integrator='" integrator "'>" extra \
  "</option>" SN_PLASTIC_BODIES SN_PLASTIC_ACTUATORS                                                \
  "<keyframe><key time='.5' qpos='.1 .2 0 1 0 0 0 .01'/></keyframe></mujoco>"

#endif
