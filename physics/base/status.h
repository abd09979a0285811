// Errors and the outcomes of a computation.
//
// An error says that a request could not be carried out: SnError carries its code and a text. The text names the place,
// the value and what is allowed. An outcome (SN_WARN_* bits) is data in a result: overflow of a buffer, divergence. The
// library never prints, exits or aborts.
#ifndef SINEW_PHYSICS_BASE_STATUS_H_
#define SINEW_PHYSICS_BASE_STATUS_H_

#define SN_ERRORS(X)                                           \
  X(SN_OK, "ok")                                               \
  X(SN_ERR_ARGUMENT, "bad argument")                           \
  X(SN_ERR_MEMORY, "out of memory")                            \
  X(SN_ERR_IO, "input or output failed")                       \
  X(SN_ERR_FORMAT, "malformed input")                          \
  X(SN_ERR_UNSUPPORTED, "the model uses unsupported features") \
  X(SN_ERR_LIMIT, "a documented limit is exceeded")            \
  X(SN_ERR_NOT_FOUND, "no such name")                          \
  X(SN_ERR_TIMEOUT, "took too long")                           \
  X(SN_ERR_STATE, "not possible in this state")

typedef enum SnCode {
#define SN_ERROR_ENUM(code, text) code,
  SN_ERRORS(SN_ERROR_ENUM)
#undef SN_ERROR_ENUM
} SnCode;

typedef struct SnError {
  SnCode code;
  char text[4000];  // one or more lines; empty when code is SN_OK
} SnError;

// Name the bits of SnWorld.warn. A stage sets them, sn_step's caller clears them.
enum {
  SN_WARN_CONTACT_FULL = 1,   // more contacts than nconmax; the last ones were dropped
  SN_WARN_EFC_FULL = 2,       // more rows than nefcmax; the last ones were dropped
  SN_WARN_FULL = 3,           // both bits
  SN_WARN_BAD_STATE = 4,      // qpos, qvel or qacc is NaN or beyond SN_MAXVAL: the world stands still
  SN_WARN_NOT_CONVERGED = 8,  // the solver used all its iterations
  SN_WARN_INERTIA = 16,       // a pivot of the mass matrix was not positive
};

// Sets err (which may be NULL) and returns code. Text is formatted like printf.
#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
SnCode
sn_fail(SnError *err, SnCode code, const char *format, ...);

// Returns the fixed text of a code, from SN_ERRORS.
const char *sn_code_text(SnCode code);

#endif
