// What a model is made of: loads one from a file, or from memory without one, prints its joints and actuators with
// their ranges, makes a copy with a finer time step, and saves that as an image.
//   model [MODEL.xml [IMAGE]]
#include <sinew.h>
#include <stdio.h>

static const char pendulum[] =
    "<mujoco><worldbody><body><joint name='hinge' axis='0 1 0' range='-90 90'/><geom size='.1' pos='0 0 -.5'/></body>"
    "</worldbody><actuator><motor name='motor' joint='hinge' ctrlrange='-1 1'/></actuator></mujoco>";

// Prints the objects of a kind with their ranges, n rows of 2.
static void print_ranges(const SinewModel *model, SinewObject kind, const char *title, const double *range, int n) {
  for (int i = 0; i < n; ++i)
    printf("%s %s: %g to %g\n", title, sinew_model_name(model, kind, i), range[2 * i], range[2 * i + 1]);
}

// Makes a copy with half the time step and the integrator implicitfast.
static SinewModel *refine(const SinewModel *model, SinewError *err) {
  enum { IMPLICITFAST = 3 };  // mjINT_IMPLICITFAST
  SinewOptions options = sinew_default_options();
  if (sinew_model_get_options(model, &options, err) != SINEW_OK) return NULL;
  options.timestep /= 2;
  options.integrator = IMPLICITFAST;
  return sinew_model_with_options(model, &options, err);
}

int main(int argc, char **argv) {
  SinewError err;
  SinewModel *model =
      argc > 1 ? sinew_model_load(argv[1], &err) : sinew_model_read(pendulum, sizeof pendulum - 1, NULL, &err);
  if (!model) return fprintf(stderr, "%s\n", err.text), 1;
  const SinewSizes *size = sinew_model_sizes(model);
  printf("nq %d  nv %d  na %d  nu %d  bodies %d  geoms %d\n", size->nq, size->nv, size->na, size->nu, size->nbody,
         size->ngeom);
  print_ranges(model, SINEW_JOINT, "joint", sinew_model_array(model, "jnt_range", NULL, NULL), size->njnt);
  if (size->nu == size->nactuator)  // else some actuators have several controls, or none
    print_ranges(model, SINEW_ACTUATOR, "actuator", sinew_model_ctrl_range(model), size->nu);
  SinewModel *fine = refine(model, &err);
  SinewStatus status = fine ? SINEW_OK : err.status;
  if (fine && argc > 2) status = sinew_model_save(fine, argv[2], &err);
  if (status != SINEW_OK) fprintf(stderr, "%s\n", err.text);
  sinew_model_free(fine);
  sinew_model_free(model);
  return status != SINEW_OK;
}
