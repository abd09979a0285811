// Time grids: a horizon in which steps last several base steps, the model's time step, each. Compiles for the GPU, but
// for what says otherwise.
//
// Plans and their warm starts have a row for each base step. Integrations, costs and derivatives have one for
// each step of the grid. A row of the grid is the mean of its base rows, and holds over all of them on the way back. So
// a constant stays one bit for bit, and rows that are constant over the steps come back as they were.
#ifndef SINEW_PLANNER_BASE_GRID_H_
#define SINEW_PLANNER_BASE_GRID_H_

#include <stddef.h>

#include "physics/base/status.h"
#include "physics/model/model.h"

// Limit the parts of a grid, and the characters of its text with the 0 at the end.
enum { SN_GRID_PARTS = 6, SN_GRID_TEXT = 64 };

// Holds a grid as data. Zeroed, every step is a base step, over any horizon.
typedef struct SnGrid {
  int parts;
  int count[SN_GRID_PARTS];   // steps of a part, >= 1
  int length[SN_GRID_PARTS];  // base steps that each of them lasts, >= 1
} SnGrid;

// Returns the base steps that step t >= 0 lasts; 1 behind the last part.
SN_INLINE int sn_grid_length(const SnGrid *g, int t) {
  for (int i = 0; i < g->parts; ++i) {
    if (t < g->count[i]) return g->length[i];
    t -= g->count[i];
  }
  return 1;
}

// Returns the base row at which step t >= 0 begins; at the number of steps it is the horizon.
SN_INLINE int sn_grid_begin(const SnGrid *g, int t) {
  int row = 0;
  for (int i = 0; i < g->parts; ++i) {
    if (t <= g->count[i]) return row + t * g->length[i];
    row += g->count[i] * g->length[i];
    t -= g->count[i];
  }
  return row + t;
}

// Returns the step that base row `row` >= 0 lies in.
SN_INLINE int sn_grid_step(const SnGrid *g, int row) {
  int t = 0;
  for (int i = 0; i < g->parts; ++i) {
    const int rows = g->count[i] * g->length[i];
    if (row < rows) return t + row / g->length[i];
    row -= rows;
    t += g->count[i];
  }
  return t + row;
}

// Returns the steps that a horizon of base steps has on the grid.
SN_INLINE int sn_grid_steps(const SnGrid *g, int horizon) { return sn_grid_step(g, horizon); }

// Returns whether two grids are the same.
bool sn_grid_equal(const SnGrid *a, const SnGrid *b);

// Reads a grid like "64x1, 32x2", 64 steps of 1 base step and 32 of 2 after them, over `horizon` base steps. Nothing,
// and a grid of steps of 1 alone, are the zeroed grid. Returns SN_ERR_ARGUMENT where it is no grid or does not fit the
// horizon; err says why, and the grid is as before. Runs on the host.
SnCode sn_grid_parse(const char *text, int horizon, SnGrid *grid, SnError *err);

// Writes a grid as sn_grid_parse reads it, "" for the zeroed one, into text[size], and returns text. Runs on the host.
const char *sn_grid_write(const SnGrid *grid, char *text, size_t size);

// Checks that steps longer than a base step are at most half of the smallest time constant in the model. Looks at
// positive solrefs of contacts, limits, equalities and friction: such a spring is too stiff for a longer step, but
// under the integrator `discrete`. Returns SN_ERR_ARGUMENT otherwise; err names the step, the constant and what has it.
// Runs on the host.
SnCode sn_grid_check(const SnGrid *grid, const SnModel *m, SnError *err);

// Writes the grid's rows of n numbers from `horizon` base rows: means over the steps. Both may be the same array. Runs
// on the host.
void sn_grid_gather(const SnGrid *g, int horizon, int n, const sn_real *base, sn_real *rows);
// Writes `horizon` base rows from the grid's: each held over its step. Both may be the same array. Runs on the host.
void sn_grid_spread(const SnGrid *g, int horizon, int n, const sn_real *rows, sn_real *base);
// Writes the grid's rows where its steps begin, and the last of horizon + 1 base rows: what belongs to moments in time,
// like targets. Both may be the same array. Runs on the host.
void sn_grid_pick(const SnGrid *g, int horizon, int n, const sn_real *base, sn_real *rows);

#endif
