// Runs a fuzz target without a fuzz engine.
//
//   fuzz_NAME [--rounds N] [--seed S] [FILE|FOLDER...]   its seeds, each also N times damaged (200), then these files
//   fuzz_NAME --seconds N [--seed S]                     the same again and again, for so long
//   fuzz_NAME --write FOLDER                             writes its seeds into a folder, for an engine
//   fuzz_NAME --only FILE|FOLDER...                      these files alone: a crash by hand
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "physics/base/clock.h"
#include "tests/fuzz/fuzz.h"

static uint8_t seed[FUZZ_SEED_BYTES], damaged[2 * FUZZ_SEED_BYTES];

// xorshift64*: seeded, the same everywhere.
static uint64_t state = 20260711;
static size_t below(size_t n) {
  state ^= state >> 12;
  state ^= state << 25;
  state ^= state >> 27;
  return n ? (size_t)((state * 2685821657736338717ull) >> 16) % n : 0;
}

// A copy of a seed with some bytes changed, runs of them moved or left out, or its end.
static size_t damage(size_t n) {
  memcpy(damaged, seed, n);
  for (size_t k = 1 + below(4); k > 0 && n > 0; --k) {
    const size_t from = below(n), run = 1 + below(n - from < 32 ? n - from : 32);
    switch (below(5)) {
      case 0:
        damaged[from] ^= (uint8_t)(1u << below(8));
        break;
      case 1:
        damaged[from] = (uint8_t)below(256);
        break;
      case 2:
        memmove(damaged + from, damaged + from + run, n - from - run);
        n -= run;
        break;
      case 3:
        if (n + run > sizeof damaged) break;
        memmove(damaged + from + run, damaged + from, n - from);
        n += run;
        break;
      default:
        n = below(8) ? n : from;
        break;
    }
  }
  return n;
}

// What the target gets lies in memory of just its size: a sanitizer sees what is read beyond.
static void run(const uint8_t *data, size_t size) {
  uint8_t *copy = malloc(size ? size : 1);
  if (!copy) fuzz_fail("out of memory");
  memcpy(copy, data, size);
  fuzz_timed(copy, size);
  free(copy);
}

static long run_seeds(long rounds) {
  long n = 0;
  size_t size;
  for (int i = 0; (size = fuzz_seed(i, seed)) > 0; ++i) {
    run(seed, size);
    for (long k = 0; k < rounds; ++k) run(damaged, damage(size));
    n += 1 + rounds;
  }
  return n;
}

// Runs the seeds as they are: together they reach what the target is about.
static void check_seeds(void) {
  size_t size;
  for (int i = 0; (size = fuzz_seed(i, seed)) > 0; ++i) run(seed, size);
  const char *missing = fuzz_missing();
  if (missing) fuzz_fail("no seed reaches: %s", missing);
}

static int write_seeds(const char *folder) {
  size_t size;
  int i = 0;
  mkdir(folder, 0755);
  for (; (size = fuzz_seed(i, seed)) > 0; ++i) {
    char path[4096];
    snprintf(path, sizeof path, "%s/seed-%d", folder, i);
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(seed, 1, size, f) != size || fclose(f) != 0) fuzz_fail("%s cannot be written", path);
  }
  return i;
}

// Runs a file, or those of a folder by their names. A folder begins anew; each of its files goes on where the one
// before it ended. Returns the number of inputs run.
static int replay(const char *path) {
  struct dirent **entry;
  const int entries = scandir(path, &entry, NULL, alphasort);
  if (entries >= 0) {
    int n = 0;
    if (fuzz_anew) fuzz_anew();
    for (int i = 0; i < entries; ++i) {
      char child[4096];
      snprintf(child, sizeof child, "%s/%s", path, entry[i]->d_name);
      if (entry[i]->d_name[0] != '.') n += replay(child);
      free(entry[i]);
    }
    free(entry);
    return n;
  }
  FILE *f = fopen(path, "rb");
  if (!f) fuzz_fail("%s cannot be read", path);
  fseek(f, 0, SEEK_END);
  const long size = ftell(f);
  rewind(f);
  uint8_t *data = malloc(size > 0 ? (size_t)size : 1);
  const int ok = data && size >= 0 && fread(data, 1, (size_t)size, f) == (size_t)size;
  fclose(f);
  if (ok) run(data, (size_t)size);
  free(data);
  return ok;
}

int main(int argc, char **argv) {
  long rounds = 200, n = 0;
  double seconds = 0;
  int only = 0, i = 1;
  for (; i < argc && strncmp(argv[i], "--", 2) == 0; ++i) {
    const char *value = i + 1 < argc ? argv[i + 1] : "";
    if (!strcmp(argv[i], "--only")) {
      only = 1;
      continue;
    }
    ++i;
    if (!strcmp(argv[i - 1], "--write")) return printf("%d seeds\n", write_seeds(value)) < 0;
    if (!strcmp(argv[i - 1], "--rounds")) rounds = strtol(value, NULL, 10);
    if (!strcmp(argv[i - 1], "--seconds")) seconds = strtod(value, NULL);
    if (!strcmp(argv[i - 1], "--seed")) state = strtoull(value, NULL, 10) | 1;
  }
  if (!only) {
    printf("seed %llu, %ld rounds\n", (unsigned long long)state, rounds);
    fflush(stdout);
    check_seeds();
    const double until = sn_clock_now() + seconds;
    do n += run_seeds(rounds);
    while (sn_clock_now() < until);
  }
  for (; i < argc; ++i) n += replay(argv[i]);
  fuzz_tell_slowest();
  printf("%ld inputs\n", n);
  return n > 0 ? 0 : 1;
}
