// The time grid of a planner. Plans, warm starts and predicted states are on the base step, whatever the grid, so that
// it may change between any two iterations. What iterations read and improve has the rows of the grid.
#include "planner/planner_private.h"

SnCode sn_planner_grid_check(const SnPlanner *p, const SnSettings *s, SnGrid *grid, SnError *err) {
  SnGrid own;
  SnGrid *const to = grid ? grid : &own;
  const SnCode code = sn_grid_parse(s->grid, s->horizon, to, err);
  return code == SN_OK && s->integrator == 0 ? sn_grid_check(to, p->m, err) : code;  // chosen steps follow any spring
}

static bool is_base(const SnPlanner *p) { return p->grid.grid.parts == 0; }

// Targets of the grid from those on the base step.
static void pick_targets(SnPlanner *p) {
  if (!is_base(p))
    sn_grid_pick(&p->grid.grid, p->horizon, p->in_force.cost->ntarget, p->progress.target, p->grid.target);
}

bool sn_planner_grid_take(SnPlanner *p) {
  const SnGrid before = p->grid.grid;
  sn_grid_parse(p->in_force.settings.grid, p->horizon, &p->grid.grid, NULL);  // settings in force were checked
  p->grid.steps = sn_grid_steps(&p->grid.grid, p->horizon);
  pick_targets(p);
  return !sn_grid_equal(&before, &p->grid.grid);
}

void sn_planner_grid_schedule(SnPlanner *p) {
  sn_cost_schedule(p->in_force.cost, p->progress.start.time, p->h, p->horizon + 1, p->progress.target);
  pick_targets(p);
}

const sn_real *sn_planner_grid_target(const SnPlanner *p) { return is_base(p) ? p->progress.target : p->grid.target; }

void sn_planner_grid_gather(SnPlanner *p) {
  if (!is_base(p)) sn_grid_gather(&p->grid.grid, p->horizon, p->m->nu, p->warm_start.ctrl, p->grid.ctrl);
}

void sn_planner_grid_keep(SnPlanner *p) {
  if (!is_base(p)) sn_grid_spread(&p->grid.grid, p->horizon, p->m->nu, p->grid.ctrl, p->warm_start.ctrl);
}
