// A body as libsinew holds it.
#ifndef SINEW_CLIENTS_LIBSINEW_DATA_PRIVATE_H_
#define SINEW_CLIENTS_LIBSINEW_DATA_PRIVATE_H_

#include "clients/libsinew/cfd_private.h"
#include "physics/step/growing_world.h"

struct SinewData {
  ApiGuard guard;
  const SinewModel *model;
  SnGrowingWorld *body;  // the world; calls of the engine on it take body->model
  SnModel *all;   // view of the model by which it is stepped once a field is asked for that steps leave out; or NULL
  bool computed;  // a step or forward has written the outputs
  bool sensors;   // the last step of a call computes sensordata, too
  bool listed;    // in a list of bodies, while it is checked
  ApiCfd cfd;

  // Arrays that MuJoCo keeps in its data and the world does not.
  double *sensordata;  // (nsensordata) of the last sinew_forward, or step with sensors; NaN before
  int *moment_rownnz;  // (nout) pattern of actuator_moment
  int *moment_rowadr;  // (nout)
  int *moment_colind;  // (nmom)

  double *mocap;      // (nmocap, 7) of sinew_data_state
  double *warmstart;  // (nv) kept while stages run without a step
  double *scratch;    // (nscratch) of derivatives
  size_t nscratch;
};

// Sets n numbers to NaN; x may be NULL.
static inline void api_fill_nan(double *x, size_t n) {
  for (size_t i = 0; x && i < n; ++i) x[i] = (double)NAN;
}

// ---- data_step.c ----

// Begins a call that cannot do without a body. `who` is the function that the user has called.
SinewStatus api_data_enter(SinewData *data, const char *who, SinewError *err);

// Holds a number that is NaN or beyond SN_MAXVAL.
typedef struct ApiBadNumber {
  const char *array;
  int index;
  double value;
} ApiBadNumber;

// Returns whether x[n] has such a number, and which; x may be NULL.
bool api_find_bad(ApiBadNumber *bad, const char *array, const double *x, int n);
// Refuses a NULL array of n > 0 numbers, and numbers that no body can have. Returns SINEW_ERR_ARGUMENT.
SinewStatus api_check_array(const char *who, const char *array, const double *x, int n, SinewError *err);
// Sets err to a text on a bad number, which begins with `place`. Returns SINEW_ERR_DIVERGED.
SinewStatus api_fail_diverged(const ApiBadNumber *bad, const char *place, SinewError *err);

// Keep the solver's warm start, and put it back: the stages leave their solution there, and a call that makes no step
// changes no input.
void api_data_keep_warmstart(SinewData *data);
void api_data_restore_warmstart(SinewData *data);

// Runs all stages at the present state. Returns SINEW_ERR_DIVERGED or SINEW_ERR_MEMORY on failure.
SinewStatus api_data_forward(SinewData *data, const char *who, SinewError *err);

// Takes step 0 <= step < steps of a call. Returns SINEW_ERR_DIVERGED or SINEW_ERR_MEMORY, the state being that before,
// on failure.
SinewStatus api_data_step(SinewData *data, int step, int steps, const char *who, SinewError *err);

// ---- data.c ----

// Puts a world into a state, without a warm start. Returns SINEW_ERR_DIVERGED, the world as it was, for a number that
// no body can have.
SinewStatus api_set_state(const SnModel *m, SnWorld *w, const SinewState *state, const char *who, SinewError *err);
// Lets contacts act from a distance, or not.
void api_data_use_cfd(SinewData *data, bool on);

#endif
