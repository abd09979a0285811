#include "tests/golden/golden.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <xxhash.h>

#include <mujoco/mjxmacro.h>

enum { NAME = 96, LINES = 2000 };

typedef struct Line {
  char name[NAME];
  uint64_t hash;
  bool seen;
} Line;

static Line lines[LINES];
static int nline, nfailure, ncompared;
static FILE *written;  // where lines go instead of being compared

// ---- hashes ----

struct Hash {
  XXH3_state_t *state;
  bool used;
};

Hash *hash_new(void) {
  Hash *h = malloc(sizeof *h);
  if (!h || !(h->state = XXH3_createState())) fail_msg("out of memory");
  XXH3_64bits_reset(h->state);
  h->used = false;
  return h;
}

uint64_t hash_end(Hash *h) {
  const uint64_t hash = h->used ? XXH3_64bits_digest(h->state) : 0;
  XXH3_freeState(h->state);
  free(h);
  return hash;
}

void hash_doubles(Hash *h, const double *x, size_t n) {
  h->used |= n > 0;
  for (size_t i = 0; i < n; ++i) {
    const double v = isnan(x[i]) ? (double)NAN : x[i];
    XXH3_64bits_update(h->state, &v, sizeof v);
  }
}

void hash_ints(Hash *h, const int *x, size_t n) {
  h->used |= n > 0;
  XXH3_64bits_update(h->state, x, n * sizeof *x);
}

// ---- lines ----

bool golden_open(const char *path, FILE *out) {
  written = out;
  if (out) return true;
  FILE *f = fopen(path, "r");
  if (!f) print_error("%s: cannot be read\n", path);
  char text[200];
  while (f && fgets(text, sizeof text, f)) {
    unsigned long long hash;
    Line *l = lines + nline;
    if (text[0] == '#' || text[0] == '\n') continue;
    if (nline == LINES || sscanf(text, "%95s %16llx", l->name, &hash) != 2) {
      print_error("%s: not a line: %s", path, text);
      fclose(f);
      return false;
    }
    l->hash = hash;
    ++nline;
  }
  if (f) fclose(f);
  return f != NULL;
}

static Line *find(const char *name) {
  for (int i = 0; i < nline; ++i)
    if (strcmp(lines[i].name, name) == 0) return lines + i;
  return NULL;
}

void golden_line(uint64_t hash, const char *format, ...) {
  char name[NAME];
  va_list args;
  va_start(args, format);
  vsnprintf(name, sizeof name, format, args);
  va_end(args);
  if (hash == 0) return;
  Line *l = find(name);
  if (written && !l && nline < LINES) {
    fprintf(written, "%s %016llx\n", name, (unsigned long long)hash);
    l = lines + nline++;
    memcpy(l->name, name, sizeof name);
    l->hash = hash;
  }
  ++ncompared;
  if (l) l->seen = true;
  if (l && l->hash == hash) return;
  ++nfailure;
  if (l)
    print_error("%s: %016llx, expected %016llx\n", name, (unsigned long long)hash, (unsigned long long)l->hash);
  else
    print_error("%s: %016llx, not in the file of expected hashes\n", name, (unsigned long long)hash);
}

// Whether the second part of a line's name is this one.
static bool is_of(const char *name, const char *model) {
  const char *slash = strchr(name, '/');
  const size_t n = strlen(model);
  return slash && strncmp(slash + 1, model, n) == 0 && (slash[1 + n] == '/' || slash[1 + n] == 0);
}

void golden_skip(const char *model, const char *why) {
  print_message("skipped: %s: %s\n", model, why);
  for (int i = 0; i < nline; ++i)
    if (is_of(lines[i].name, model)) lines[i].seen = true;
}

int golden_failures(void) { return nfailure; }

int golden_close(void) {
  int missing = 0;
  for (int i = 0; i < nline && !written; ++i) {
    if (lines[i].seen) continue;
    ++missing;
    print_error("%s: expected %016llx, not computed\n", lines[i].name, (unsigned long long)lines[i].hash);
  }
  print_message("%d hashes compared, %d differ, %d were not computed\n", ncompared, nfailure, missing);
  return nfailure + missing;
}

// ---- what results depend on beside our own code ----

// The order of fields does not count: the hash is a sum.
static uint64_t field_hash(const void *data, size_t bytes) { return bytes ? XXH3_64bits(data, bytes) : 0; }

// All numbers of a model as MuJoCo compiled it: texts, colours and places of paths of files left out.
static uint64_t mujoco_hash(const mjModel *m) {
  uint64_t sum = 0;
  MJMODEL_POINTERS_PREAMBLE(m)
#define X(type, name, rows, cols)                    \
  if (sizeof(type) > 1 && !strstr(#name, "pathadr")) \
    sum += field_hash(m->name, sizeof(type) * (size_t)m->rows * (size_t)(cols));
#define XNV X
  MJMODEL_POINTERS
#undef X
#undef XNV
  return sum;
}

// The same as the engine took it over.
static uint64_t model_hash(const SnModel *m) {
  uint64_t sum = 0;
#define SN_SIZE(name)       \
  const int name = m->name; \
  sum += field_hash(&name, sizeof name);
#include "physics/model/model_sizes.inc"
#undef SN_SIZE
#define SN_MODEL_FIELD(type, name, rows, cols) \
  if (sizeof(type) > 1) sum += field_hash(m->name, sizeof(type) * (size_t)(rows) * (size_t)(cols));
#include "physics/model/model_fields.inc"
#undef SN_MODEL_FIELD
#define SN_OPTION_OWN(type, name, count)
#define SN_OPTION(type, name, count) sum += field_hash(&m->opt.name, sizeof(type) * (size_t)(count));
#include "physics/model/option_fields.inc"
#undef SN_OPTION
  return sum;
}

bool golden_model(const char *model, const SnOracle *o) {
  char name[NAME];
  const uint64_t hash = mujoco_hash(o->mj);
  snprintf(name, sizeof name, "mujoco/%s", model);
  const Line *l = find(name);
  if (!written && l && l->hash != hash) {
    golden_skip(model, "MuJoCo compiles it to other numbers than where the hashes were recorded");
    return false;
  }
  golden_line(hash, "%s", name);
  golden_line(model_hash(o->m), "model/%s", model);
  return true;
}

typedef struct Libm {
  const char *name;
  double (*one)(double);
  float (*one_float)(float);
  double (*two)(double, double);
  float (*two_float)(float, float);
} Libm;

// clang-format off
#define ONE(name) {#name, name, name##f, NULL, NULL}
#define TWO(name) {#name, NULL, NULL, name, name##f}
// clang-format on
static const Libm libm[] = {ONE(exp),  ONE(exp2), ONE(log),  ONE(log2),  ONE(log1p), ONE(expm1), ONE(sin),  ONE(cos),
                            ONE(tan),  ONE(asin), ONE(acos), ONE(atan),  ONE(sinh),  ONE(cosh),  ONE(tanh), ONE(sqrt),
                            ONE(cbrt), ONE(erf),  TWO(pow),  TWO(atan2), TWO(hypot), TWO(fmod)};

// Of values at seeded points of sizes from 1e-4 to 100.
static uint64_t libm_hash(const Libm *f) {
  enum { POINTS = 50000 };
  static const double scale[] = {1e-4, 0.1, 1, 1, 8, 100};
  SnOracle draw = {.rng = 7};
  Hash *h = hash_new();
  for (int i = 0; i < POINTS; ++i) {
    const double x = scale[i % 6] * sn_oracle_uniform(&draw), y = scale[i / 6 % 6] * sn_oracle_uniform(&draw);
    const float a = (float)x, b = (float)y;
    const double value[2] = {f->one ? f->one(x) : f->two(x, y),
                             (double)(f->one ? f->one_float(a) : f->two_float(a, b))};
    hash_doubles(h, value, 2);
  }
  return hash_end(h);
}

bool golden_libm(void) {
  bool same = true;
  for (size_t i = 0; i < sizeof libm / sizeof *libm; ++i) {
    char name[NAME];
    snprintf(name, sizeof name, "libm/%s", libm[i].name);
    const Line *l = find(name);
    const uint64_t hash = libm_hash(libm + i);
    if (!l || l->hash == hash) {
      golden_line(hash, "%s", name);
      continue;
    }
    print_message("skipped: %s of this machine's libm gives other bits than where the hashes were recorded\n",
                  libm[i].name);
    same = false;
  }
  return same;
}
