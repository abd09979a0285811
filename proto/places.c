#include "proto/places.h"

#include <stdio.h>
#include <string.h>

#include "physics/base/folders.h"

// Writes prefix, the installation's folder or the cache folder, and what lies below. False when it does not fit.
static bool write_place(char *place, size_t size, const char *prefix, const char *root, const char *below) {
  const int n = snprintf(place, size, "%s%s/%s", prefix, root, below);
  return n > 0 && (size_t)n < size;
}

// What setup fetches: how its names begin, and its folder below that of the cache. clients/setup.sh has the versions,
// too.
static const struct {
  const char *name, *folder;
} fetched[SN_PLACES_OF_MODELS - 1] = {{"myosuite=", "myosuite-2.12.2/myosuite"},
                                      {"dm_control=", "dm_control-1.0.50/dm_control"},
                                      {"gymnasium=", "gymnasium-1.4.0/gymnasium"}};

int sn_places_of_models(char place[SN_PLACES_OF_MODELS][SN_PLACE_SIZE]) {
  char root[SN_PLACE_SIZE];
  int n = 0;
  n += sn_program_folder(root, sizeof root) && write_place(place[n], SN_PLACE_SIZE, "", root, "../share/sinew/models");
  if (!sn_cache_folder(root, sizeof root)) return n;
  for (int i = 0; i < SN_PLACES_OF_MODELS - 1; ++i)
    n += write_place(place[n], SN_PLACE_SIZE, fetched[i].name, root, fetched[i].folder);
  return n;
}

bool sn_place_of_tasks(char *path, size_t size) {
  char root[SN_PLACE_SIZE];
  return sn_program_folder(root, sizeof root) && write_place(path, size, "", root, "../share/sinew/tasks");
}

bool sn_place_of_schema(char *path, size_t size) {
  char root[SN_PLACE_SIZE];
  return sn_program_folder(root, sizeof root) && write_place(path, size, "", root, "../share/sinew/sinew.desc");
}

const char *sn_place_folder(const char *entry, size_t *name) {
  *name = strcspn(entry, "=/");
  if (*name > 0 && entry[*name] == '=') return entry + *name + 1;
  *name = 0;
  return entry;
}
