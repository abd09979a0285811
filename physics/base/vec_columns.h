// The products and sums of vec.h with SN_PACK (bar.h): for numbers (r) and bars (b). Chooses the function that stands
// for a name by the types of the arguments.
#ifndef SINEW_PHYSICS_BASE_VEC_COLUMNS_H_
#define SINEW_PHYSICS_BASE_VEC_COLUMNS_H_

#include "physics/base/bar.h"

// Turns a number or a bar into a bar.
#define SN_AS_BAR(x) ((x) - (sn_bar){0})

#define SN_OP(name) name##_rrr
#define SN_R_TYPE sn_real
#define SN_A_TYPE sn_real
#define SN_B_TYPE sn_real
#define SN_TO_R(x) (x)
#include "physics/base/vec_ops.inc"

#define SN_OP(name) name##_brb
#define SN_R_TYPE sn_bar
#define SN_A_TYPE sn_real
#define SN_B_TYPE sn_bar
#define SN_TO_R(x) SN_AS_BAR(x)
#include "physics/base/vec_ops.inc"

#define SN_OP(name) name##_bbr
#define SN_R_TYPE sn_bar
#define SN_A_TYPE sn_bar
#define SN_B_TYPE sn_real
#define SN_TO_R(x) SN_AS_BAR(x)
#include "physics/base/vec_ops.inc"

#define SN_OP(name) name##_bbb
#define SN_R_TYPE sn_bar
#define SN_A_TYPE sn_bar
#define SN_B_TYPE sn_bar
#define SN_TO_R(x) SN_AS_BAR(x)
#include "physics/base/vec_ops.inc"

#define SN_OP(name) name##_brr
#define SN_R_TYPE sn_bar
#define SN_A_TYPE sn_real
#define SN_B_TYPE sn_real
#define SN_TO_R(x) SN_AS_BAR(x)
#include "physics/base/vec_ops.inc"

// clang-format off
// Names the function f for a result and two arguments of the types of r, a and b.
#define SN_PICK(f, r, a, b)                                                                             \
  _Generic((r),                                                                                         \
      sn_bar: _Generic((a),                                                                             \
          sn_bar: _Generic((b), sn_bar: f##_bbb, default: f##_bbr),                                     \
          default: _Generic((b), sn_bar: f##_brb, default: f##_brr)),                                   \
      default: f##_rrr)
// Does the same where the result has the type that follows from the arguments.
#define SN_PICK_PRODUCT(f, a, b)                                    \
  _Generic((a),                                                     \
      sn_bar: _Generic((b), sn_bar: f##_bbb, default: f##_bbr),     \
      default: _Generic((b), sn_bar: f##_brb, default: f##_rrr))
// clang-format on

#define sn_zero(r, n) SN_PICK(sn_zero, (r)[0], (r)[0], (r)[0])(r, n)
#define sn_copy(r, a, n) SN_PICK(sn_copy, (r)[0], (a)[0], (a)[0])(r, a, n)
#define sn_copy3(r, a) SN_PICK(sn_copy3, (r)[0], (a)[0], (a)[0])(r, a)
#define sn_set3(r, x, y, z) SN_PICK(sn_set3, (r)[0], (r)[0], (r)[0])(r, x, y, z)
#define sn_dot3(a, b) SN_PICK_PRODUCT(sn_dot3, (a)[0], (b)[0])(a, b)
#define sn_add3(r, a, b) SN_PICK(sn_add3, (r)[0], (a)[0], (b)[0])(r, a, b)
#define sn_sub3(r, a, b) SN_PICK(sn_sub3, (r)[0], (a)[0], (b)[0])(r, a, b)
#define sn_addto3(r, a) SN_PICK(sn_addto3, (r)[0], (a)[0], (a)[0])(r, a)
#define sn_subfrom3(r, a) SN_PICK(sn_subfrom3, (r)[0], (a)[0], (a)[0])(r, a)
#define sn_scale3(r, a, s) SN_PICK(sn_scale3, (r)[0], (a)[0], (s))(r, a, s)
#define sn_addscl3(r, x, a, s) SN_PICK(sn_addscl3, (r)[0], (a)[0], (s))(r, x, a, s)
#define sn_addtoscl3(r, a, s) SN_PICK(sn_addtoscl3, (r)[0], (a)[0], (s))(r, a, s)
#define sn_cross(r, a, b) SN_PICK(sn_cross, (r)[0], (a)[0], (b)[0])(r, a, b)
#define sn_addcross(r, a, b) SN_PICK(sn_addcross, (r)[0], (a)[0], (b)[0])(r, a, b)
#define sn_reject3(r, a, n) SN_PICK(sn_reject3, (r)[0], (a)[0], (n)[0])(r, a, n)
#define sn_dot(a, b, n) SN_PICK_PRODUCT(sn_dot, (a)[0], (b)[0])(a, b, n)
#define sn_mulmatvec3(r, mat, a) SN_PICK(sn_mulmatvec3, (r)[0], (mat)[0], (a)[0])(r, mat, a)
#define sn_mulmattvec3(r, mat, a) SN_PICK(sn_mulmattvec3, (r)[0], (mat)[0], (a)[0])(r, mat, a)
#define sn_mulquat(r, a, b) SN_PICK(sn_mulquat, (r)[0], (a)[0], (b)[0])(r, a, b)
#define sn_negquat(r, a) SN_PICK(sn_negquat, (r)[0], (a)[0], (a)[0])(r, a)

#endif
