// Reads a body: a ball rolls off a lifted plate. Keyframe, mocap pose, arrays by name, contacts, sensors, warnings.
#include <sinew.h>
#include <stdio.h>
#include <string.h>

static const char *const scene =
    "<mujoco><option timestep='.002'/><worldbody><geom name='floor' type='plane' size='2 2 .1'/>"
    "<body name='plate' mocap='true' pos='0 0 .3'><geom name='plate' type='box' size='.2 .2 .01'/></body>"
    "<body name='ball' pos='0 0 .36'><freejoint/><geom name='ball' size='.05'/></body></worldbody>"
    "<sensor><framelinvel objtype='body' objname='ball'/></sensor>"
    "<keyframe><key name='resting' qpos='0 0 .36 1 0 0 0'/></keyframe></mujoco>";

static int fail(const SinewError *err) { return fprintf(stderr, "%s\n", err->text), 1; }

// Prints where the ball is, how fast, and what it touches.
static int show(SinewData *data, int ball, SinewError *err) {
  const double *pos = sinew_data_array(data, "xpos", NULL, NULL) + 3 * ball;
  if (sinew_forward(data, err) != SINEW_OK) return fail(err);  // outputs at this state, sensordata among them
  const double *velocity = sinew_data_array(data, "sensordata", NULL, NULL);
  printf("time %.2f s: ball at (%.3f, %.3f) m, sinks with %.3f m/s,", sinew_data_time(data), pos[0], pos[2],
         -velocity[2]);
  for (int i = 0; i < sinew_data_ncon(data); ++i) {
    SinewContact c;
    if (sinew_data_contact(data, i, &c, err) != SINEW_OK) return fail(err);
    const char *first = sinew_model_name(sinew_data_model(data), SINEW_GEOM, c.geom[0]);
    const char *name = sinew_model_name(sinew_data_model(data), SINEW_GEOM, c.geom[strcmp(first, "ball") == 0]);
    printf(" presses the %s with %.2f N", name, c.force[0]);
  }
  printf("%s\n", sinew_data_ncon(data) ? "" : " touches nothing");
  return 0;
}

int main(void) {
  SinewError err;
  SinewModel *model = sinew_model_read(scene, strlen(scene), NULL, &err);
  SinewData *data = model ? sinew_data_create(model, &err) : NULL;
  if (!data) return fail(&err);
  const int ball = sinew_model_find(model, SINEW_BODY, "ball");
  const int key = sinew_model_find(model, SINEW_KEYFRAME, "resting");
  if (sinew_data_reset_keyframe(data, key, &err) != SINEW_OK) return fail(&err);
  double *mocap_quat = sinew_data_array(data, "mocap_quat", NULL, NULL);
  int failed = 0;
  for (int i = 0; i < 5 && !failed; ++i) {
    mocap_quat[2] = i == 0 ? 0 : 0.2;  // tilts the plate about y; any length will do
    failed = sinew_step(data, 150, &err) != SINEW_OK ? fail(&err) : show(data, ball, &err);
  }
  if (sinew_data_warnings(data)) printf("warnings: %u\n", sinew_data_warnings(data));
  int grown;
  printf("the body takes %zu bytes\n", sinew_data_memory(data, &grown));
  sinew_data_free(data);
  sinew_model_free(model);
  return failed;
}
