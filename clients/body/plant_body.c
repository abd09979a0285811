#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clients/body/body.h"
#include "proto/places.h"

static bool is_file(const char *path) {
  struct stat st;
  return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, R_OK) == 0;
}

// Joins folder and name when that file can be read.
static bool try_path(char *path, size_t size, const char *folder, const char *name) {
  return snprintf(path, size, "%s/%s", folder, name) < (int)size && is_file(path);
}

// A model is name or name.xml in an entry "FOLDER", or, without its first part NAME/, in one "NAME=FOLDER".
static bool find_in(const char *entry, const char *model, char *path, size_t size) {
  size_t n;
  const char *folder = sn_place_folder(entry, &n);
  if (n > 0) {
    if (strncmp(model, entry, n) != 0 || model[n] != '/') return false;
    model += n + 1;
  }
  char with_suffix[1024];
  snprintf(with_suffix, sizeof with_suffix, "%s.xml", model);
  return try_path(path, size, folder, model) || try_path(path, size, folder, with_suffix);
}

// Looks where the daemon has the file, and in the folders that sinewd looks through when it is told none.
static bool find_by_default(const char *file, const char *model, char *path, size_t size) {
  if (file && is_file(file) && snprintf(path, size, "%s", file) < (int)size) return true;
  char place[SN_PLACES_OF_MODELS][SN_PLACE_SIZE];
  const int n = sn_places_of_models(place);
  for (int i = 0; i < n; ++i)
    if (find_in(place[i], model, path, size)) return true;
  return false;
}

static bool find_xml(const PlantPlaces *places, const char *file, const char *model, char *path, size_t size) {
  for (int i = 0; i < places->nmodels; ++i)
    if (find_in(places->models[i], model, path, size)) return true;
  return places->nmodels == 0 && find_by_default(file, model, path, size);
}

static bool is_compiled(const char *path) {
  const size_t n = strlen(path);
  return n > 4 && strcmp(path + n - 4, ".mjb") == 0;
}

bool plant_body_open(PlantBody *body, const PlantPlaces *places, const char *file, const char *model, char *error,
                     size_t size) {
  char path[4096], text[1000] = "cannot be loaded";
  memset(body, 0, sizeof *body);
  if (places->xml) {
    snprintf(path, sizeof path, "%s", places->xml);
  } else if (!find_xml(places, file, model, path, sizeof path)) {
    const char *where = places->nmodels ? "in none of the folders given with --models"
                        : file          ? "neither where sinewd has it, nor in the default model folders"
                                        : "in none of the default model folders";
    snprintf(error, size, "model '%s' is %s; name its folder with --models", model, where);
    return false;
  }
  body->m = is_compiled(path) ? mj_loadModel(path, NULL) : mj_loadXML(path, NULL, text, sizeof text);
  if (!body->m) {
    snprintf(error, size, "%s: %s", path, text);
    return false;
  }
  body->d = mj_makeData(body->m);
  body->mocap = calloc(7 * (size_t)body->m->nmocap + 1, sizeof(double));
  if (!body->d || !body->mocap) snprintf(error, size, "out of memory");
  return body->d && body->mocap;
}

bool plant_body_load(PlantBody *body, const PlantPlaces *places, const SinewSessionInfo *info, char *error,
                     size_t size) {
  if (!plant_body_open(body, places, info->file, info->model, error, size)) return false;
  const mjModel *m = body->m;
  if (m->nq != info->nq || m->nv != info->nv || m->na != info->na || m->nu != info->nu || m->nmocap != info->nmocap) {
    snprintf(error, size,
             "'%s' is not the model of the session: nq nv na nu nmocap are %d %d %d %d %d, not %d %d %d %d %d",
             places->xml ? places->xml : info->model, (int)m->nq, (int)m->nv, (int)m->na, (int)m->nu, (int)m->nmocap,
             info->nq, info->nv, info->na, info->nu, info->nmocap);
    return false;
  }
  body->m->opt.timestep = info->timestep;
  return true;
}

// Writes x[n] over every row of a table, but for NaN. Returns whether there was any other number.
static bool set_rows(mjtNum *table, mjtSize rows, const double *x, int n) {
  bool any = false;
  for (int k = 0; k < n; ++k) {
    any = any || !isnan(x[k]);
    for (mjtSize i = 0; i < rows && !isnan(x[k]); ++i) table[n * i + k] = x[k];
  }
  return any;
}

bool plant_body_take_contacts(PlantBody *body, const SinewTaskPlant *plant) {
  mjModel *m = body->m;
  const bool ref = set_rows(m->geom_solref, m->ngeom, plant->solref, mjNREF);
  const bool imp = set_rows(m->geom_solimp, m->ngeom, plant->solimp, mjNIMP);
  set_rows(m->pair_solref, m->npair, plant->solref, mjNREF);
  set_rows(m->pair_solimp, m->npair, plant->solimp, mjNIMP);
  return ref || imp;
}

void plant_body_reset(PlantBody *body, const SinewState *initial) {
  const mjModel *m = body->m;
  mjData *d = body->d;
  mj_resetData(m, d);
  mju_copy(d->qpos, initial->qpos, (int)m->nq);
  mju_copy(d->qvel, initial->qvel, (int)m->nv);
  mju_copy(d->act, initial->act, (int)m->na);
  for (int i = 0; i < m->nmocap; ++i) {
    mju_copy(d->mocap_pos + 3 * i, initial->mocap + 7 * i, 3);
    mju_copy(d->mocap_quat + 4 * i, initial->mocap + 7 * i + 3, 4);
  }
  mj_forward(m, d);
}

bool plant_body_step(PlantBody *body, const double *ctrl) {
  mjData *d = body->d;
  const double before = d->time;
  memcpy(d->ctrl, ctrl, sizeof(double) * (size_t)body->m->nu);
  mj_step(body->m, d);
  return d->time > before;  // MuJoCo starts again at time 0 when the state is unusable
}

SinewState plant_body_state(PlantBody *body, bool hide_act) {
  const mjData *d = body->d;
  for (int i = 0; i < body->m->nmocap; ++i) {
    memcpy(body->mocap + 7 * i, d->mocap_pos + 3 * i, 3 * sizeof(double));
    memcpy(body->mocap + 7 * i + 3, d->mocap_quat + 4 * i, 4 * sizeof(double));
  }
  return (SinewState){.time = d->time,
                      .qpos = d->qpos,
                      .qvel = d->qvel,
                      .act = hide_act ? NULL : d->act,
                      .mocap = body->m->nmocap ? body->mocap : NULL};
}

void plant_body_free(PlantBody *body) {
  mj_deleteData(body->d);
  mj_deleteModel(body->m);
  free(body->mocap);
}
