// Steps one model in MuJoCo and here, from the same state under the same controls, and prints how far they are apart.
//   compare_mujoco MODEL.xml [STEPS]
#include <math.h>
#include <mujoco/mujoco.h>
#include <sinew.h>
#include <stdio.h>
#include <stdlib.h>

// Returns the largest difference of positions after `steps` steps, or -1.
static double compare(const mjModel *m, mjData *d, SinewData *data, int steps, SinewError *err) {
  double *ctrl = sinew_data_array(data, "ctrl", NULL, NULL);
  const double *qpos = sinew_data_array(data, "qpos", NULL, NULL);
  double worst = 0;
  for (int step = 0; step < steps; ++step) {
    for (int i = 0; i < m->nu; ++i) {
      const double *range = m->actuator_ctrlrange + 2 * i, wave = 0.5 + 0.5 * sin(0.01 * step + i);
      d->ctrl[i] = ctrl[i] = m->actuator_ctrllimited[i] ? range[0] + (range[1] - range[0]) * wave : wave;
    }
    mj_step(m, d);
    if (sinew_step(data, 1, err) != SINEW_OK) return -1;
    for (int i = 0; i < m->nq; ++i) worst = fmax(worst, fabs(qpos[i] - d->qpos[i]));
  }
  return worst;
}

int main(int argc, char **argv) {
  const char *path = argc > 1 ? argv[1] : "model.xml";
  const int steps = argc > 2 ? atoi(argv[2]) : 500;
  char text[1000] = "";
  SinewError err;
  SinewModel *model = sinew_model_load(path, &err);
  SinewData *data = model ? sinew_data_create(model, &err) : NULL;
  mjModel *m = data ? mj_loadXML(path, NULL, text, sizeof text) : NULL;
  mjData *d = m ? mj_makeData(m) : NULL;
  if (!d) return fprintf(stderr, "%s\n", data ? text : err.text), 1;
  const double worst = compare(m, d, data, steps, &err);
  if (worst < 0) return fprintf(stderr, "%s\n", err.text), 1;
  printf("%d steps: positions differ by at most %.1e\n", steps, worst);
  mj_deleteData(d);
  mj_deleteModel(m);
  sinew_data_free(data);
  sinew_model_free(model);
  return 0;
}
