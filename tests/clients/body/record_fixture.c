#include "tests/clients/body/record_fixture.h"

#include <stdlib.h>

static double *numbers(int n) {
  double *x = calloc((size_t)n, sizeof *x);
  assert_non_null(x);
  return x;
}

PlantRecord record_of(double early, double late, double during) {
  PlantRecord r;
  plant_record_init(&r, 1);
  plant_record_set_measure(&r, 0, "hand", 0.02, during);
  r.simulated = 1;
  r.wall = 2;
  r.sample = calloc(SAMPLES, sizeof *r.sample);
  assert_non_null(r.sample);
  r.nsample = r.sample_capacity = SAMPLES;
  for (int i = 0; i < SAMPLES; ++i) {
    PlantSample *s = r.sample + i;
    *s = (PlantSample){
        .time = 0.1 * i, .cost = 1.0 / (i + 1), .qpos = numbers(1), .ctrl = numbers(2), .measure = numbers(1)};
    s->qpos[0] = 10 + i;
    s->ctrl[0] = i;
    s->ctrl[1] = -i;
    s->measure[0] = i < 7 ? early : late;
  }
  return r;
}
