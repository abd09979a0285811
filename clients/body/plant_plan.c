#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "clients/body/body.h"

void plant_plan_copy(PlantPlan *to, const PlantPlan *from, int nu) {
  const size_t size = sizeof(double) * (size_t)from->steps * (size_t)nu;
  double *ctrl = to->ctrl;
  if (from->steps > to->steps && !(ctrl = realloc(ctrl, size ? size : 1))) abort();
  if (size) memcpy(ctrl, from->ctrl, size);
  *to = *from;
  to->ctrl = ctrl;
}

const double *plant_plan_row(const PlantPlan *plan, double time, int nu) {
  const double row = floor((time - plan->start) / plan->step + 1e-6);
  const int k = row < 0 ? 0 : row >= plan->steps ? plan->steps - 1 : (int)row;
  return plan->ctrl + (size_t)k * (size_t)nu;
}

double plant_plan_lead_end(const PlantPlan *plan) { return plan->start + plan->lead * plan->step; }

void plant_plan_free(PlantPlan *plan) {
  free(plan->ctrl);
  *plan = (PlantPlan){0};
}
