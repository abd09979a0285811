// iLQG: D. Jacobson, D. Mayne, "Differential dynamic programming", 1970, without second derivatives of the dynamics; E.
// Todorov, W. Li, 2005; regularisation: Y. Tassa, T. Erez, E. Todorov, 2012; limits: Y. Tassa, N. Mansard, E. Todorov,
// 2014.
//
// With the cost to go v'x + x'V x/2 behind a step, that of a state x and a change u of the controls before it is
//
//   q = (lx, lu) + J'v,   Q = ((lxx, lxu), (lux, luu)) + J'V J,   J = (A, B)
//   k = argmin u'(Quu + mu D) u/2 + qu'u within the limits
//   K = -(Quu + mu D)_ff^-1 Qux_f for the free controls f, 0 for those that a limit holds
//   v <- qx + K'(Quu k + qu) + Qux'k,   V <- Qxx + K'M + Qux'K,  M = Quu K + Qux
//
// D weighs the controls, so that mu does not depend on their units. V takes Quu without mu: it is what the change
// costs.
//
// Where the next position is q + h v' (semi-implicit Euler), its rows in J are unit vectors plus h times those of the
// velocity: J = T Z with T = 1 + h E. Then J'V J = Z'(T'V T)Z. T'V T takes O(n^2), and Z has unit rows, which cost
// nothing, where J has dense ones. So have the rows of activations, which depend on themselves and a control. Rows with
// few entries are added entry by entry.
#include "planner/optimize/ilqg.h"

#include <stdlib.h>
#include <string.h>

#include "planner/base/dense.h"
#include "planner/optimize/box_qp_private.h"

enum { ILQG_FEW = 6 };  // entries of a row that counts as sparse, at most
static const double mu_least = 1e-6, mu_most = 1e10, mu_factor = 2;

// An entry of Z in a row with few of them.
typedef struct Entry {
  int row, column;
  sn_number value;
} Entry;

struct SnIlqg {
  int n, nu, wide;    // wide: n + nu
  int *tie;           // (n)
  sn_number *v, *V;   // cost to go
  sn_number *Z;       // (n, wide)
  int *dense, count;  // its dense rows
  Entry *entry;       // those of the other rows
  int entries;
  sn_number *G;         // (wide, n) Z'V
  sn_number *Q;         // (wide, wide), only what is above the diagonal
  sn_number *q;         // (wide)
  sn_number *Quu, *H;   // (nu, nu); H with regularisation
  sn_number *Qux, *M;   // (nu, n)
  sn_number *free_row;  // (nu, n) rows of the free controls
  sn_number *guess;     // (nu) change of the step after, where the programme begins
  SnBoxQp qp;
  double first, second;  // parts of the change that is expected
  void *memory[20];
  int allocated;
};

static void *take(SnIlqg *w, size_t count, size_t size, bool *ok) {
  void *x = calloc(count + 1, size);
  *ok = *ok && x != NULL;
  return w->memory[w->allocated++] = x;
}

void sn_ilqg_free(SnIlqg *w) {
  if (!w) return;
  for (int i = 0; i < w->allocated; ++i) free(w->memory[i]);
  free(w);
}

// Memory of the pass itself, then that of its programme.
static bool allocate(SnIlqg *w) {
  const size_t n = (size_t)w->n, nu = (size_t)w->nu, wide = n + nu, number = sizeof(sn_number);
  bool ok = true;
  w->tie = take(w, n, sizeof *w->tie, &ok);
  w->v = take(w, n, number, &ok);
  w->V = take(w, n * n, number, &ok);
  w->Z = take(w, n * wide, number, &ok);
  w->dense = take(w, n, sizeof *w->dense, &ok);
  w->entry = take(w, n * ILQG_FEW, sizeof *w->entry, &ok);
  w->G = take(w, wide * n, number, &ok);
  w->Q = take(w, wide * wide, number, &ok);
  w->q = take(w, wide, number, &ok);
  w->Quu = take(w, nu * nu, number, &ok);
  w->H = take(w, nu * nu, number, &ok);
  w->Qux = take(w, nu * n, number, &ok);
  w->M = take(w, nu * n, number, &ok);
  w->free_row = take(w, nu * n, number, &ok);
  w->guess = take(w, nu, number, &ok);
  w->qp = (SnBoxQp){.n = w->nu,
                    .H = w->H,
                    .g = w->q + n,
                    .free = take(w, nu, sizeof(int), &ok),
                    .L = take(w, nu * nu, number, &ok),
                    .slope = take(w, nu, number, &ok),
                    .step = take(w, nu, number, &ok),
                    .trial = take(w, nu, number, &ok)};
  return ok;
}

SnIlqg *sn_ilqg_create(int n, int nu, const int *tie, SnError *err) {
  SnIlqg *w = calloc(1, sizeof *w);
  if (w) {
    w->n = n;
    w->nu = nu;
    w->wide = n + nu;
  }
  if (!w || !allocate(w)) {
    sn_ilqg_free(w);
    sn_fail(err, SN_ERR_MEMORY, "ilqg: out of memory");
    return NULL;
  }
  for (int i = 0; i < n; ++i) w->tie[i] = tie ? tie[i] : -1;
  return w;
}

void sn_ilqg_begin(SnIlqg *w, const sn_number *lx, const sn_number *lxx) {
  const size_t n = (size_t)w->n;
  memcpy(w->v, lx, n * sizeof *lx);
  memcpy(w->V, lxx, n * n * sizeof *lxx);
  memset(w->guess, 0, (size_t)w->nu * sizeof *w->guess);
  w->first = w->second = 0;
}

// ---- J = T Z ----

// Row i of Z as it is: among the dense ones, or entry by entry.
static void sort_row(SnIlqg *w, int i) {
  const sn_number *row = w->Z + (size_t)i * (size_t)w->wide;
  int found = 0;
  for (int j = 0; j < w->wide && found <= ILQG_FEW; ++j) found += row[j] != 0;
  if (found > ILQG_FEW) {
    w->dense[w->count++] = i;
    return;
  }
  for (int j = 0; j < w->wide; ++j)
    if (row[j] != 0) w->entry[w->entries++] = (Entry){i, j, row[j]};
}

static void make_Z(SnIlqg *w, const SnIlqgStep *s) {
  const size_t n = (size_t)w->n, nu = (size_t)w->nu, wide = (size_t)w->wide;
  w->count = w->entries = 0;
  for (size_t i = 0; i < n; ++i) {
    sn_number *row = w->Z + i * wide;
    if (w->tie[i] >= 0) {
      memset(row, 0, wide * sizeof *row);
      row[i] = 1;
    } else {
      memcpy(row, s->A + i * n, n * sizeof *row);
      memcpy(row + n, s->B + i * nu, nu * sizeof *row);
    }
    sort_row(w, (int)i);
  }
}

// V <- T'V T, v <- T'v.
static void fold_V(SnIlqg *w, sn_number h) {
  const size_t n = (size_t)w->n;
  for (size_t i = 0; i < n; ++i) {
    if (w->tie[i] < 0) continue;
    const size_t j = (size_t)w->tie[i];
    for (size_t k = 0; k < n; ++k) w->V[j * n + k] += h * w->V[i * n + k];
    w->v[j] += h * w->v[i];
  }
  for (size_t k = 0; k < n; ++k)
    for (size_t i = 0; i < n; ++i)
      if (w->tie[i] >= 0) w->V[k * n + (size_t)w->tie[i]] += h * w->V[k * n + i];
}

// ---- one step back ----

// G = Z'V, V being symmetric.
static void make_G(SnIlqg *w) {
  const size_t n = (size_t)w->n;
  memset(w->G, 0, (size_t)w->wide * n * sizeof *w->G);
  sn_dense_add_product(w->G, w->wide, w->n, false, (SnStrided){w->Z, 1, (size_t)w->wide}, w->V, w->dense, w->count);
  for (int e = 0; e < w->entries; ++e) {
    const Entry x = w->entry[e];
    sn_number *to = w->G + (size_t)x.column * n;
    const sn_number *from = w->V + (size_t)x.row * n;
    for (size_t k = 0; k < n; ++k) to[k] += x.value * from[k];
  }
}

// Q = L + G Z and q = l + Z'v, the upper half.
static void make_Q(SnIlqg *w, const SnIlqgStep *s) {
  const size_t n = (size_t)w->n, nu = (size_t)w->nu, wide = (size_t)w->wide;
  for (size_t i = 0; i < n; ++i) {
    memcpy(w->Q + i * wide, s->lxx + i * n, n * sizeof *w->Q);
    for (size_t j = 0; j < nu; ++j) w->Q[i * wide + n + j] = s->lux[j * n + i];
    w->q[i] = s->lx[i];
  }
  for (size_t i = 0; i < nu; ++i) {
    memcpy(w->Q + (n + i) * wide + n, s->luu + i * nu, nu * sizeof *w->Q);
    w->q[n + i] = s->lu[i];
  }
  sn_dense_add_product(w->Q, w->wide, w->wide, true, (SnStrided){w->G, n, 1}, w->Z, w->dense, w->count);
  for (int e = 0; e < w->entries; ++e) {
    const Entry x = w->entry[e];
    for (size_t i = 0; i <= (size_t)x.column; ++i)
      w->Q[i * wide + (size_t)x.column] += w->G[i * n + (size_t)x.row] * x.value;
    w->q[x.column] += x.value * w->v[x.row];
  }
  for (int d = 0; d < w->count; ++d) {
    const sn_number *row = w->Z + (size_t)w->dense[d] * wide, v = w->v[w->dense[d]];
    for (size_t j = 0; j < wide; ++j) w->q[j] += row[j] * v;
  }
}

// Blocks of the controls, and H with regularisation.
static void make_blocks(SnIlqg *w, const SnIlqgStep *s) {
  const size_t n = (size_t)w->n, nu = (size_t)w->nu, wide = (size_t)w->wide;
  for (size_t i = 0; i < nu; ++i) {
    for (size_t j = 0; j < n; ++j) w->Qux[i * n + j] = w->Q[j * wide + n + i];
    for (size_t j = i; j < nu; ++j) w->Quu[i * nu + j] = w->Quu[j * nu + i] = w->Q[(n + i) * wide + n + j];
  }
  memcpy(w->H, w->Quu, nu * nu * sizeof *w->H);
  for (size_t i = 0; i < nu; ++i) w->H[i * nu + i] += s->mu * s->weight[i];
}

// K = -H_ff^-1 Qux_f, 0 where a limit holds.
static void make_K(SnIlqg *w, sn_number *K) {
  const size_t n = (size_t)w->n;
  for (int a = 0; a < w->qp.nfree; ++a)
    memcpy(w->free_row + (size_t)a * n, w->Qux + (size_t)w->qp.free[a] * n, n * sizeof *K);
  sn_dense_solve(w->qp.L, w->qp.nfree, w->free_row, w->n);
  memset(K, 0, (size_t)w->nu * n * sizeof *K);
  for (int a = 0; a < w->qp.nfree; ++a)
    for (size_t j = 0; j < n; ++j) K[(size_t)w->qp.free[a] * n + j] = -w->free_row[(size_t)a * n + j];
}

// v and the change that is expected.
static void take_v(SnIlqg *w, const sn_number *k, const sn_number *K) {
  const size_t n = (size_t)w->n, nu = (size_t)w->nu;
  const sn_number *qu = w->q + n;
  memcpy(w->v, w->q, n * sizeof *w->v);
  for (size_t i = 0; i < nu; ++i) {
    sn_number sum = 0;
    for (size_t j = 0; j < nu; ++j) sum += w->Quu[i * nu + j] * k[j];
    w->first += (double)(qu[i] * k[i]);
    w->second += (double)(k[i] * sum) / 2;
    for (size_t j = 0; j < n; ++j) w->v[j] += K[i * n + j] * (sum + qu[i]) + w->Qux[i * n + j] * k[i];
  }
}

// V = Qxx + K'M + Qux'K.
static void take_V(SnIlqg *w, const sn_number *K) {
  const size_t n = (size_t)w->n, nu = (size_t)w->nu, wide = (size_t)w->wide;
  memcpy(w->M, w->Qux, nu * n * sizeof *w->M);
  sn_dense_add_product(w->M, w->nu, w->n, false, (SnStrided){w->Quu, nu, 1}, K, NULL, w->nu);
  for (size_t i = 0; i < n; ++i) memcpy(w->V + i * n, w->Q + i * wide, n * sizeof *w->V);
  sn_dense_add_product(w->V, w->n, w->n, true, (SnStrided){K, 1, n}, w->M, NULL, w->nu);
  sn_dense_add_product(w->V, w->n, w->n, true, (SnStrided){w->Qux, 1, n}, K, NULL, w->nu);
  sn_dense_mirror(w->V, w->n);
}

bool sn_ilqg_step(SnIlqg *w, const SnIlqgStep *s, sn_number *k, sn_number *K) {
  make_Z(w, s);
  fold_V(w, s->duration);
  make_G(w);
  make_Q(w, s);
  make_blocks(w, s);
  w->qp.lo = s->lo;
  w->qp.hi = s->hi;
  w->qp.x = k;
  memcpy(k, w->guess, (size_t)w->nu * sizeof *k);
  if (!sn_box_qp(&w->qp)) return false;
  memcpy(w->guess, k, (size_t)w->nu * sizeof *k);
  make_K(w, K);
  take_v(w, k, K);
  take_V(w, K);
  return true;
}

double sn_ilqg_expected(const SnIlqg *w, double alpha) { return alpha * w->first + alpha * alpha * w->second; }

// ---- regularisation ----

SnIlqgMu sn_ilqg_more(SnIlqgMu s) {
  const double factor = s.factor > 1 ? s.factor * mu_factor : mu_factor, mu = s.mu * factor;
  return (SnIlqgMu){mu > mu_least ? mu : mu_least, factor};
}

SnIlqgMu sn_ilqg_less(SnIlqgMu s) {
  const double factor = s.factor < 1 && s.factor > 0 ? s.factor / mu_factor : 1 / mu_factor, mu = s.mu * factor;
  return (SnIlqgMu){mu >= mu_least ? mu : 0, factor};
}

bool sn_ilqg_beyond(SnIlqgMu s) { return s.mu > mu_most; }
