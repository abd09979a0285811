// Tables of explicit Runge-Kutta methods. Stage i stands at c_i of the step, from its start by h sum_j a_ij k_j; the
// step ends at h sum_j b_j k_j. Host only: a run over a horizon (horizon.h) is a loop of the host over the engine's
// stages.
#ifndef SINEW_PHYSICS_STEP_TABLEAU_H_
#define SINEW_PHYSICS_STEP_TABLEAU_H_

#include <stdbool.h>
#include <stddef.h>

// Lists the methods. tableau.c has their sources.
typedef enum SnRkMethod {
  SN_RK_EULER,
  SN_RK_HEUN,
  SN_RK_MIDPOINT,
  SN_RK_RALSTON,
  SN_RK_BOSH3,
  SN_RK_RK4,
  SN_RK_TSIT5,
  SN_RK_DOPRI5,
  SN_RK_DOPRI8,
  SN_RK_METHODS
} SnRkMethod;

enum { SN_RK_STAGES = 14, SN_RK_DEGREE = 6 };  // most stages, highest power of an interpolant

typedef struct SnTableau {
  const char *name;
  int stages, order;
  bool ends;   // the last stage stands at the end of the step: it is the first one of the next step
  int degree;  // degree of the interpolant below; 0: cubic Hermite
  const double (*a)[SN_RK_STAGES];  // rows of stages, their first entries
  const double *b;
  const double *error;  // b less the weights of the embedded method; NULL: there is none
  const double *c;
  const double (
      *dense)[SN_RK_DEGREE];  // weight of a stage at part theta of the step: coefficients of theta, theta^2, ...
} SnTableau;

// Returns the table of a method, or NULL.
const SnTableau *sn_tableau(int method);
// Returns the method of this name, as tableau.c writes it ("tsit5"), or -1.
int sn_tableau_find(const char *name);

// Returns the stage that stands at the end of the step: the last one, or one more, which Hermite's interpolant needs.
static inline int sn_tableau_end(const SnTableau *t) { return t->ends ? t->stages - 1 : t->stages; }
// Writes the weights (stages + 1) of the interpolant at part theta of the step, 0 to 1.
void sn_tableau_dense(const SnTableau *t, double theta, double *w);

#endif
