// How well backends agree: one row a kind of comparison. The tolerances are those that cuda/MEASURED.md documents.
#ifndef SINEW_TESTS_CUDA_AGREE_TABLE_H_
#define SINEW_TESTS_CUDA_AGREE_TABLE_H_

#include <stdbool.h>

// Lists AGREE(name, text, double, double of nineteen in twenty, float, float of nineteen in twenty). Errors are
// max|a - b| / max|b| over a vector. The median may be as large as the first tolerance, all but one in twenty as the
// second. The worst may be of any size, in double too. By rounding a contact, a limit or a wrap can be active for one
// backend and not for the other, which makes another state. (Fused products of a host, which are not rounded before
// they are added, do that.)
#define AGREE_ROWS(X)                                                                        \
  X(STEP, "state after a step, by kind of quantity", 1e-13, 1e-11, 2e-6, 2e-4)               \
  X(ADJOINT, "adjoint of a step: state, control and target bars", 1e-12, 1e-10, 1e-5, 2e-3)  \
  X(CFD, "adjoint of a step with contacts from distance", 1e-12, 1e-8, 1e-5, 2e-3)           \
  X(BATCH, "states and sensors of 4 steps from different states", 1e-12, 1e-8, 1e-5, 2e-3)   \
  X(BARS, "gradients of a caller's cost of these states", 1e-12, 1e-8, 1e-5, 1e-2)           \
  X(ROLLOUT, "costs and terms of rollouts of 32 steps with noise", 1e-12, 1e-10, 2e-6, 1e-4) \
  X(GRADIENT, "gradients of 32 steps", 1e-12, 1e-10, 1e-4, 1e-2)                             \
  X(MULTISTART, "cost and controls after four iterations of Adam with two starts", 1e-12, 1e-10, 1e-5, 1e-2)
typedef enum AgreeRow {
#define AGREE_ENUM_ROW(name, text, in_double, double_seldom, in_float, float_seldom) AGREE_ROW_##name,
  AGREE_ROWS(AGREE_ENUM_ROW)
#undef AGREE_ENUM_ROW
      AGREE_NROW
} AgreeRow;

// Selects the column that holds. The host in place of a device, in double, gives the cpu's bits.
typedef enum AgreeTolerance { AGREE_BITS, AGREE_DOUBLE, AGREE_FLOAT } AgreeTolerance;

// Holds what one backend makes of something: vectors of numbers, each of a row of the table and with a name.
typedef struct AgreeVector {
  AgreeRow row;  // AGREE_NROW: only a repetition must have the same
  double *number;
  int n;
  char name[300];
} AgreeVector;
typedef struct AgreeResult {
  AgreeVector *vector;
  int count;
} AgreeResult;

// Adds a vector to a result and returns its n numbers: those of `from`, or zeros where it is NULL. It lasts until
// agree_free.
double *agree_vector(AgreeResult *r, AgreeRow row, const double *from, int n, const char *name, ...)
    __attribute__((format(printf, 5, 6)));
void agree_free(AgreeResult *r);
// Notes the errors of one result beside another, of the same vectors. Errors up to `allowed` count as none.
void agree_compare(const AgreeResult *ours, const AgreeResult *ref, double allowed);
// Returns whether both have the same bits.
bool agree_same_bits(const AgreeResult *a, const AgreeResult *b);

// Prints the row, appends it as a line of JSON to the file `out` (NULL: nowhere), and says whether the backend is
// within its tolerances. Forgets the errors.
bool agree_row_holds(AgreeRow row, const char *backend, AgreeTolerance tolerance, const char *out);

#endif
