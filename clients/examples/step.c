// Steps a body for a second of its time.
//   step MODEL.xml
#include <sinew.h>
#include <stdio.h>

int main(int argc, char **argv) {
  SinewError err;
  SinewModel *model = sinew_model_load(argc > 1 ? argv[1] : "model.xml", &err);
  SinewData *data = model ? sinew_data_create(model, &err) : NULL;
  SinewStatus status = data ? SINEW_OK : err.status;
  while (status == SINEW_OK && sinew_data_time(data) < 1) {
    double *ctrl = sinew_data_array(data, "ctrl", NULL, NULL);  // a view: valid as long as the body
    for (int i = 0; i < sinew_model_sizes(model)->nu; ++i) ctrl[i] = 0.5;
    status = sinew_step(data, 1, &err);
  }
  if (status == SINEW_OK)
    printf("time %.3f s, qpos[0] %.4f\n", sinew_data_time(data), sinew_data_state(data).qpos[0]);
  else
    fprintf(stderr, "%s\n", err.text);
  sinew_data_free(data);
  sinew_model_free(model);
  return status == SINEW_OK ? 0 : 1;
}
