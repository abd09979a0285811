// The number type of the engine, its constants and functions. The function qualifiers let one text compile as C17 and,
// inside cuda/, as device code.
//
// Every constant goes through SN_R() and every call to libm through an sn_* name. A bare 0.5 or sin() would silently
// turn a float build into a double one.
#ifndef SINEW_PHYSICS_BASE_REAL_H_
#define SINEW_PHYSICS_BASE_REAL_H_

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

// Says what a function is: SN_FUNC a stage or another external function of the engine, SN_INLINE a helper in a header.
// SN_LOCAL is a helper private to one .c file. The name must still be unique across physics/, because cuda/ compiles
// all in one unit.
#if defined(__CUDACC__)
#define SN_FUNC static __device__ __noinline__
#define SN_INLINE static __device__ inline
#define SN_LOCAL static __device__
#define SN_RESTRICT __restrict__
#else
#define SN_FUNC
#define SN_INLINE static inline
#define SN_LOCAL static
#define SN_RESTRICT restrict
#endif

// Declares a pointer to what is in global memory, where the text runs on a device. The compiler then need not find out
// at each access which memory it is in.
#if defined(__CUDACC__)
template <typename T>
struct SnGlobal {
  T *pointer;
  __device__ __forceinline__ operator T *() const {
    size_t place;
    asm("cvta.to.global.u64 %0, %1;" : "=l"(place) : "l"(pointer));
    return (T *)__cvta_global_to_generic(place);
  }
  __device__ __forceinline__ T *operator->() const { return *this; }
};
#define SN_GLOBAL(type) SnGlobal<type>
#else
#define SN_GLOBAL(type) type *
#endif

#ifdef SN_SINGLE
typedef float sn_real;
#define SN_R(x) x##f
#define SN_EPS FLT_EPSILON
SN_INLINE sn_real sn_sqrt(sn_real x) { return sqrtf(x); }
SN_INLINE sn_real sn_sin(sn_real x) { return sinf(x); }
SN_INLINE sn_real sn_cos(sn_real x) { return cosf(x); }
SN_INLINE sn_real sn_tan(sn_real x) { return tanf(x); }
SN_INLINE sn_real sn_atan2(sn_real y, sn_real x) { return atan2f(y, x); }
SN_INLINE sn_real sn_exp(sn_real x) { return expf(x); }
SN_INLINE sn_real sn_log(sn_real x) { return logf(x); }
SN_INLINE sn_real sn_log1p(sn_real x) { return log1pf(x); }
SN_INLINE sn_real sn_pow(sn_real x, sn_real y) { return powf(x, y); }
SN_INLINE sn_real sn_abs(sn_real x) { return fabsf(x); }
SN_INLINE sn_real sn_floor(sn_real x) { return floorf(x); }
#else
typedef double sn_real;
#define SN_R(x) x
#define SN_EPS DBL_EPSILON
SN_INLINE sn_real sn_sqrt(sn_real x) { return sqrt(x); }
SN_INLINE sn_real sn_sin(sn_real x) { return sin(x); }
SN_INLINE sn_real sn_cos(sn_real x) { return cos(x); }
SN_INLINE sn_real sn_tan(sn_real x) { return tan(x); }
SN_INLINE sn_real sn_atan2(sn_real y, sn_real x) { return atan2(y, x); }
SN_INLINE sn_real sn_exp(sn_real x) { return exp(x); }
SN_INLINE sn_real sn_log(sn_real x) { return log(x); }
SN_INLINE sn_real sn_log1p(sn_real x) { return log1p(x); }
SN_INLINE sn_real sn_pow(sn_real x, sn_real y) { return pow(x, y); }
SN_INLINE sn_real sn_abs(sn_real x) { return fabs(x); }
SN_INLINE sn_real sn_floor(sn_real x) { return floor(x); }
#endif

// Holds the numbers that a program hands to a backend (planner/backend), which may compute in another type: doubles. A
// program built in float, which is for tests alone, has no backend but the CPU, and hands over floats.
#ifdef SN_SINGLE_PROGRAM
typedef float sn_number;
#else
typedef double sn_number;
#endif

// Sets MuJoCo's guards: the smallest denominator, the largest admissible state or acceleration.
#define SN_MINVAL SN_R(1e-15)
#define SN_MAXVAL SN_R(1e10)
#define SN_PI SN_R(3.14159265358979323846)

SN_INLINE sn_real sn_max(sn_real a, sn_real b) { return a > b ? a : b; }
SN_INLINE sn_real sn_min(sn_real a, sn_real b) { return a < b ? a : b; }
SN_INLINE int sn_maxi(int a, int b) { return a > b ? a : b; }
SN_INLINE int sn_mini(int a, int b) { return a < b ? a : b; }
SN_INLINE sn_real sn_clip(sn_real x, sn_real lo, sn_real hi) { return sn_max(lo, sn_min(hi, x)); }
SN_INLINE sn_real sn_sign(sn_real x) { return x > 0 ? SN_R(1.0) : (x < 0 ? SN_R(-1.0) : SN_R(0.0)); }
// Returns true for NaN, infinity and anything beyond SN_MAXVAL: the test MuJoCo applies to states.
SN_INLINE bool sn_is_bad(sn_real x) { return !(x <= SN_MAXVAL && x >= -SN_MAXVAL); }

#endif
