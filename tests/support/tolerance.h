// Tolerances of comparisons with MuJoCo, relative to the largest entry of a field: double, float. The float
// engine gets MuJoCo's double inputs rounded, so its errors are those of the rounding times the condition.
#ifndef SINEW_TESTS_SUPPORT_TOLERANCE_H_
#define SINEW_TESTS_SUPPORT_TOLERANCE_H_

#ifdef SN_SINGLE
#define SN_TOL(in_double, in_float) (in_float)
#else
#define SN_TOL(in_double, in_float) (in_double)
#endif

// Gives a tolerance by whether MuJoCo's library rounds as the engine does, which rounds a product before it is added to
// something, on every machine. The library for x86-64 does; the one for arm64 rounds the two at once. There choices
// that hang on last digits are others, as in float: which of several equally near points is taken, where a search
// stops.
#ifdef __x86_64__
#define SN_ALIKE(alike, otherwise) (alike)
#else
#define SN_ALIKE(alike, otherwise) (otherwise)
#endif

#define SN_TOL_TENDON SN_TOL(1e-10, 2e-5)    // tendon lengths, path points
#define SN_TOL_MOMENT SN_TOL(1e-10, 5e-4)    // moment arms: they change steeply where a wrap begins
#define SN_TOL_FORCES SN_TOL(1e-9, 5e-3)     // actuator forces, velocity and acceleration terms included
#define SN_TOL_CONTACT SN_TOL(1e-9, 1e-4)    // distance [m], point and frame of closed-form contacts, absolute
#define SN_TOL_SENSOR SN_TOL(1e-9, 2e-4)     // values of sensors, forces included
#define SN_TOL_ROWS SN_TOL(1e-9, 2e-4)       // J, pos, impedance, velocity, reference of constraint rows
#define SN_TOL_QACC SN_TOL(1e-8, 1e-2)       // solution of the constraint solver: acceleration
#define SN_TOL_FORCE SN_TOL(1e-7, 1e-2)      // solution of the constraint solver: forces
#define SN_TOL_GRADIENT SN_TOL(1e-7, 1e-2)   // rest of the solver's gradient, relative to its largest term
#define SN_TOL_FRAME SN_TOL(1e-12, 2e-6)     // frames of bodies, geoms, sites
#define SN_TOL_INERTIA SN_TOL(1e-11, 5e-4)   // inertia matrix, its factor
#define SN_TOL_BIAS SN_TOL(1e-10, 2e-3)      // velocities, bias and passive forces
#define SN_TOL_STEP SN_TOL(1e-9, 1e-3)       // state after a step, relative to the change that the step made
#define SN_TOL_MOMENTUM SN_TOL(1e-10, 1e-4)  // forces between bodies that ought to cancel
#define SN_TOL_FACTOR SN_TOL(1e-10, 1e-2)    // residual of a solve with the factor of the Hessian

#endif
