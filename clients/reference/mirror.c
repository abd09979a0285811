#include "clients/reference/mirror.h"

#include <stdlib.h>
#include <string.h>

SinewModel *sn_mirror_model(const mjModel *m, SinewError *err) {
  const mjtSize size = mj_sizeModel(m);
  void *bytes = malloc((size_t)size);
  if (!bytes) {
    if (err) *err = (SinewError){SINEW_ERR_MEMORY, "no memory for the bytes of the model"};
    return NULL;
  }
  mj_saveModel(m, NULL, bytes, size);
  SinewModel *model = sinew_model_read(bytes, (size_t)size, NULL, err);
  free(bytes);
  return model;
}

void sn_mirror_state(SinewData *data, const mjModel *m, const mjData *d) {
  const struct {
    const char *name;
    const mjtNum *value;
    mjtSize n;
  } inputs[] = {{"time", &d->time, 1},
                {"qpos", d->qpos, m->nq},
                {"qvel", d->qvel, m->nv},
                {"act", d->act, m->na},
                {"ctrl", d->ctrl, m->nu},
                {"history", d->history, m->nhistory},
                {"mocap_pos", d->mocap_pos, 3 * m->nmocap},
                {"mocap_quat", d->mocap_quat, 4 * m->nmocap},
                {"qacc_warmstart", d->qacc_warmstart, m->nv}};
  for (size_t i = 0; i < sizeof inputs / sizeof inputs[0]; ++i)
    if (inputs[i].n > 0)
      memcpy(sinew_data_array(data, inputs[i].name, NULL, NULL), inputs[i].value, sizeof(mjtNum) * (size_t)inputs[i].n);
  if (m->nplastic > 0)
    memcpy((double *)sinew_data_array(data, "history", NULL, NULL) + m->nhistory, d->plastic,
           sizeof(mjtNum) * (size_t)m->nplastic);
  if (!(m->opt.enableflags & mjENBL_SLEEP)) return;
  memcpy(sinew_data_int_array(data, "tree_asleep", NULL, NULL), d->tree_asleep, sizeof(int) * (size_t)m->ntree);
  memcpy(sinew_data_array(data, "sleep_qpos", NULL, NULL), d->qpos, sizeof(mjtNum) * (size_t)m->nq);
}
