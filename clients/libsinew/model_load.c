// Models from files and memory.
#include "clients/libsinew/model_private.h"
#include "physics/model/model_file.h"

SinewModel *sinew_model_load(const char *path, SinewError *err) {
  SnError why;
  if (!path) {
    api_fail(err, SINEW_ERR_ARGUMENT, "sinew_model_load: path is NULL");
    return NULL;
  }
  SnModel *m = sn_model_load_file(path, &why);
  if (!m) {
    api_hand_on(err, &why);
    return NULL;
  }
  return api_model_wrap(m, err);
}
