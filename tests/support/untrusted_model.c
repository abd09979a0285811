#include "tests/support/untrusted_model.h"

#include <stdlib.h>

#include "physics/sensor/sensor.h"
#include "physics/step/step.h"

static void compute_sensors(const SnModel *m, SnWorld *w, SnLane *lane) {
  sn_real *data = malloc(sizeof *data * ((size_t)m->nsensordata + 1));
  sn_forward(m, w, lane);
  if (data) sn_sensor_data(m, w, lane, data);
  free(data);
}

static int take_steps(const SnModel *m, SnWorld *w, int n) {
  SnLaneShared shared;
  SnLane lane = {.id = 0, .n = 1, .shared = &shared, .team = NULL};
  compute_sensors(m, w, &lane);
  for (int k = 0; k < n; ++k) {
    for (int i = 0; i < m->nu; ++i) w->ctrl[i] = SN_R(0.5);
    sn_step(m, w, &lane);
  }
  return n;
}

int sn_untrusted_model_run(const SnModel *m, size_t max_bytes) {
  size_t letters = 0;
  for (int kind = SN_NAME_BODY; kind <= SN_NAME_EQ; ++kind)
    for (int i = 0; i < sn_model_count(m, (SnNameKind)kind); ++i)
      letters += strlen(sn_model_name(m, (SnNameKind)kind, i));
  const size_t size = sn_world_size(m);
  if (size > max_bytes || letters == SIZE_MAX) return 0;
  void *memory = aligned_alloc(64, (size + 63) / 64 * 64);
  if (!memory) return 0;
  SnWorld w;
  sn_world_init(m, &w, memory);
  int steps = take_steps(m, &w, 2);
  if (m->nkey > 0) {
    sn_world_reset_key(m, &w, 0);
    steps += take_steps(m, &w, 2);
  }
  free(memory);
  return steps;
}
