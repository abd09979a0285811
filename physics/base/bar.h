// The number type of derivatives, `sn_bar`: of bars and of all that is made of lambda (physics/world/adjoint.h).
//
// Makes one text of the adjoint serve one row of a Jacobian and several. It is compiled twice. In the first a bar is a
// number. With SN_PACK it is a pack of SN_COLUMNS numbers, for as many adjoints of the same world side by side.
// Computes what depends on the world alone once for all of them, and what is done to bars by vector instructions. Gives
// each number of a pack the bits that it has alone. Leaves nothing out because a bar is zero unless all columns are
// (sn_any).
//
// Takes numbers and bars alike in the functions of vec.h. Gives the functions that take bars other names with SN_PACK
// (bar_names.inc). A file leaves its other external functions out then.
#ifndef SINEW_PHYSICS_BASE_BAR_H_
#define SINEW_PHYSICS_BASE_BAR_H_

#include "physics/base/real.h"

#if defined(SN_PACK)

#define SN_PACK_BYTES 32
typedef sn_real sn_bar __attribute__((vector_size(SN_PACK_BYTES)));
enum { SN_COLUMNS = SN_PACK_BYTES / sizeof(sn_real) };

// Returns x in all columns. Subtracts nothing, which keeps the sign of zero.
SN_INLINE sn_bar sn_bar_of(sn_real x) { return x - (sn_bar){0}; }
// Returns true when a column is not zero.
SN_INLINE bool sn_any(sn_bar x) {
  bool any = false;
  for (int c = 0; c < SN_COLUMNS; ++c) any |= x[c] != 0;
  return any;
}
// Returns one column, or sets it.
SN_INLINE sn_real sn_column(sn_bar x, int c) { return x[c]; }
SN_INLINE void sn_set_column(sn_bar *x, int c, sn_real value) { (*x)[c] = value; }

#define SN_BAR_NAME(name) name##_columns
#include "physics/base/bar_names.inc"

#else

typedef sn_real sn_bar;
enum { SN_COLUMNS = 1 };
SN_INLINE sn_bar sn_bar_of(sn_real x) { return x; }
SN_INLINE bool sn_any(sn_bar x) { return x != 0; }
SN_INLINE sn_real sn_column(sn_bar x, int c) {
  (void)c;
  return x;
}
SN_INLINE void sn_set_column(sn_bar *x, int c, sn_real value) {
  (void)c;
  *x = value;
}

#endif
#endif
