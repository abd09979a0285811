// A digest of the text of the task and of MuJoCo's model, so that cells of a task or a model that has been edited since
// are not taken for those of this comparison.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "clients/base/api.h"
#include "clients/bench/bench_user_private.h"
#include "clients/bench/compare_private.h"

// Adds the compiled model to a digest.
static SinewStatus add_model(const mjModel *m, uint64_t *digest, SinewError *err) {
  const mjtSize size = mj_sizeModel(m);
  unsigned char *image = malloc((size_t)size);
  if (!image) return api_fail(err, SINEW_ERR_MEMORY, "out of memory");
  mj_saveModel(m, NULL, image, (int)size);
  *digest = XXH3_64bits_withSeed(image, (size_t)size, *digest);
  free(image);
  return SINEW_OK;
}

SinewStatus compare_find_subject(Compare *x, SinewError *err) {
  SinewTask *task = bench_user_task(&x->c, err);
  if (!task) return err->status;
  PlantBody body = {0};
  char text[4000];
  const char *said = sinew_task_text(task);
  uint64_t digest = XXH3_64bits(said, strlen(said));
  const SinewStatus status = plant_body_open(&body, &x->c.places, NULL, sinew_task_model(task), text, sizeof text)
                                 ? add_model(body.m, &digest, err)
                                 : api_fail(err, SINEW_ERR_NOT_FOUND, "task %s: %s", x->c.task, text);
  snprintf(x->subject, sizeof x->subject, "%016" PRIx64, digest);
  plant_body_free(&body);
  sinew_task_free(task);
  return status;
}
