// Models for the tests of tendons and actuators, as MJCF texts.
#ifndef SINEW_TESTS_SUPPORT_ACTUATOR_MODELS_H_
#define SINEW_TESTS_SUPPORT_ACTUATOR_MODELS_H_

extern const char sn_tendon_xml[];       // every kind of path
extern const char sn_wrap_xml[];         // every kind of wrap between the same two free bodies
extern const char sn_actuator_xml[];     // every kind of transmission, activation, gain, bias and limit
extern const char sn_motor_xml[];        // every kind of electric motor
extern const char sn_orientation_xml[];  // every kind of orientation servo
extern const char sn_controller_xml[];   // every kind of controller
extern const char sn_passive_xml[];      // bodies and tendons of sn_actuator_xml without actuators
extern const char sn_adhesion_xml[];     // adhesion on a pile of bodies; a format: the cone

#endif
