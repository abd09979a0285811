// Distance of two geoms and its derivative: an arm turns towards a box that it does not collide with in the model.
//   cc distance.c $(pkg-config --cflags --libs sinew) && ./a.out
#include <sinew.h>
#include <stdio.h>
#include <string.h>

static const char *const arm =
    "<mujoco><worldbody><geom name='box' type='box' size='.1 .1 .1' pos='.4 0 -.3' contype='0' conaffinity='0'/>"
    "<body><joint name='hinge' axis='0 1 0'/><geom name='arm' type='capsule' size='.04' fromto='0 0 0 .5 0 0'/></body>"
    "</worldbody></mujoco>";

int main(void) {
  SinewError err;
  SinewModel *model = sinew_model_read(arm, strlen(arm), NULL, &err);
  SinewData *data = model ? sinew_data_create(model, &err) : NULL;
  if (!data) {
    fprintf(stderr, "%s\n", err.text);
    return 1;
  }
  const int box = sinew_model_find(model, SINEW_GEOM, "box"), tip = sinew_model_find(model, SINEW_GEOM, "arm");
  printf("angle [rad]  dist [m]   d dist / d angle  nearest point on the box [m]\n");
  for (int i = 1; i <= 8; ++i) {
    const double angle = 0.1 * i;
    double slope;
    SinewState state = {0};
    SinewDistance d;
    SinewDistanceJacobian jacobian = {0};
    state.qpos = &angle;
    jacobian.dist = &slope;
    if (sinew_data_set_state(data, &state, &err) != SINEW_OK || sinew_forward(data, &err) != SINEW_OK ||
        sinew_geom_distance_jacobian(data, tip, box, 10, &d, &jacobian, &err) != SINEW_OK) {
      fprintf(stderr, "%s\n", err.text);
      return 1;
    }
    printf("%11.1f  %8.5f  %17.5f  %7.4f %7.4f %7.4f\n", angle, d.dist, slope, d.to[0], d.to[1], d.to[2]);
  }
  sinew_data_free(data);
  sinew_model_free(model);
  return 0;
}
