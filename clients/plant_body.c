#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clients/plant.h"

// Joins folder and name when that file can be read.
static bool try_path(char *path, size_t size, const char *folder, const char *name) {
  return snprintf(path, size, "%s/%s", folder, name) < (int)size && access(path, R_OK) == 0;
}

// A model is name or name.xml in an entry "FOLDER", or, without its first part NAME/, in one "NAME=FOLDER".
static bool find_in(const char *entry, const char *model, char *path, size_t size) {
  const size_t n = strcspn(entry, "=/");
  if (n > 0 && entry[n] == '=') {
    if (strncmp(model, entry, n) != 0 || model[n] != '/') return false;
    model += n + 1;
    entry += n + 1;
  }
  char with_suffix[1024];
  snprintf(with_suffix, sizeof with_suffix, "%s.xml", model);
  return try_path(path, size, entry, model) || try_path(path, size, entry, with_suffix);
}

// The folders that sinewd looks through when it is told none: next to the program, and the MyoSuite wheel.
static bool find_by_default(const char *model, char *path, size_t size) {
  char self[1024], entry[2048];
  const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
  if (n > 0) {
    self[n] = '\0';
    *strrchr(self, '/') = '\0';
    snprintf(entry, sizeof entry, "%s/../share/sinew/models", self);
    if (find_in(entry, model, path, size)) return true;
  }
  const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  const bool has_cache = cache && *cache;
  snprintf(entry, sizeof entry, "myosuite=%s%s/sinew/myosuite-2.12.2/myosuite", has_cache ? cache : (home ? home : ""),
           has_cache ? "" : "/.cache");
  return find_in(entry, model, path, size);
}

static bool find_xml(const PlantOptions *opt, const char *model, char *path, size_t size) {
  for (int i = 0; i < opt->nmodels; ++i)
    if (find_in(opt->models[i], model, path, size)) return true;
  return opt->nmodels == 0 && find_by_default(model, path, size);
}

bool plant_body_open(PlantBody *body, const PlantOptions *opt, const char *model, char *error, size_t size) {
  char path[4096], text[1000] = "";
  memset(body, 0, sizeof *body);
  if (opt->xml) {
    snprintf(path, sizeof path, "%s", opt->xml);
  } else if (!find_xml(opt, model, path, sizeof path)) {
    snprintf(error, size, "model '%s' is in none of the %s; name its folder with --models", model,
             opt->nmodels ? "folders given with --models" : "default model folders");
    return false;
  }
  body->m = mj_loadXML(path, NULL, text, sizeof text);
  if (!body->m) {
    snprintf(error, size, "%s: %s", path, text);
    return false;
  }
  body->d = mj_makeData(body->m);
  body->mocap = calloc(7 * (size_t)body->m->nmocap + 1, sizeof(double));
  if (!body->d || !body->mocap) snprintf(error, size, "out of memory");
  return body->d && body->mocap;
}

bool plant_body_load(PlantBody *body, const PlantOptions *opt, const SinewSessionInfo *info, char *error, size_t size) {
  if (!plant_body_open(body, opt, info->model, error, size)) return false;
  const mjModel *m = body->m;
  if (m->nq != info->nq || m->nv != info->nv || m->na != info->na || m->nu != info->nu || m->nmocap != info->nmocap) {
    snprintf(error, size,
             "'%s' is not the model of the session: nq nv na nu nmocap are %d %d %d %d %d, not %d %d %d %d %d",
             opt->xml ? opt->xml : info->model, (int)m->nq, (int)m->nv, (int)m->na, (int)m->nu, (int)m->nmocap,
             info->nq, info->nv, info->na, info->nu, info->nmocap);
    return false;
  }
  body->m->opt.timestep = info->timestep;
  return true;
}

void plant_body_reset(PlantBody *body, const SinewSessionInfo *info) {
  mjData *d = body->d;
  mj_resetData(body->m, d);
  memcpy(d->qpos, info->qpos, sizeof(double) * (size_t)info->nq);
  memcpy(d->qvel, info->qvel, sizeof(double) * (size_t)info->nv);
  if (info->na) memcpy(d->act, info->act, sizeof(double) * (size_t)info->na);
  for (int i = 0; i < info->nmocap; ++i) {
    memcpy(d->mocap_pos + 3 * i, info->mocap + 7 * i, 3 * sizeof(double));
    memcpy(d->mocap_quat + 4 * i, info->mocap + 7 * i + 3, 4 * sizeof(double));
  }
  mj_forward(body->m, d);
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
