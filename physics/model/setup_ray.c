// On trees of triangles, for rays (collision/ray_mesh.c): balanced, with a number of triangles that differs by one at
// most between the leaves. Level l parts the n triangles of a mesh at n k / 2^l, k = 0 ... 2^l; a range is sorted along
// the longest side of the box about its middles and parted in half, so that it takes n log^2 n. Boxes are larger by a
// few units in the last place of the mesh's extent, so that rounding loses no triangle.
#include <stdlib.h>

#include "physics/base/vec.h"
#include "physics/model/model_private.h"

enum { RAY_LEAF = 4 };  // triangles of a leaf: as many, or one more

// A triangle on its way into the tree: where its middle lies along an axis, and its number.
typedef struct RayKey {
  sn_real at;
  int tri;
} RayKey;

static int ray_compare(const void *x, const void *y) {
  const RayKey *a = x, *b = y;
  if (a->at != b->at) return a->at < b->at ? -1 : 1;
  return a->tri < b->tri ? -1 : a->tri > b->tri;
}

// Corner k of a triangle.
static const sn_real *ray_corner(const SnModel *m, int mesh, int tri, int k) {
  return m->mesh_vert + 3 * (m->mesh_vertadr[mesh] + m->mesh_face[3 * (m->mesh_faceadr[mesh] + tri) + k]);
}

static sn_real ray_middle(const SnModel *m, int mesh, int tri, int axis) {
  return ray_corner(m, mesh, tri, 0)[axis] + ray_corner(m, mesh, tri, 1)[axis] + ray_corner(m, mesh, tri, 2)[axis];
}

// Longest side of the box about the middles of triangles.
static int ray_axis(const SnModel *m, int mesh, const RayKey *key, int n) {
  sn_real side[3];
  for (int e = 0; e < 3; ++e) {
    sn_real low = ray_middle(m, mesh, key[0].tri, e), high = low;
    for (int i = 1; i < n; ++i) {
      const sn_real x = ray_middle(m, mesh, key[i].tri, e);
      low = sn_min(low, x);
      high = sn_max(high, x);
    }
    side[e] = high - low;
  }
  return side[0] >= side[1] && side[0] >= side[2] ? 0 : side[1] >= side[2] ? 1 : 2;
}

// First triangle of node k of a level.
static int ray_first(const SnModel *m, int mesh, int level, int k) {
  return (int)(((int64_t)m->mesh_facenum[mesh] * k) >> level);
}

// Puts the triangles of a mesh into the order of its tree.
static void ray_order(SnModel *m, int mesh, RayKey *key) {
  const int n = m->mesh_facenum[mesh];
  for (int i = 0; i < n; ++i) key[i].tri = i;
  for (int level = 0; level < m->mesh_raylevels[mesh]; ++level) {
    for (int k = 0; k < 1 << level; ++k) {
      const int first = ray_first(m, mesh, level, k), count = ray_first(m, mesh, level, k + 1) - first;
      const int axis = ray_axis(m, mesh, key + first, count);
      for (int i = first; i < first + count; ++i) key[i].at = ray_middle(m, mesh, key[i].tri, axis);
      qsort(key + first, (size_t)count, sizeof *key, ray_compare);
    }
  }
  for (int i = 0; i < n; ++i) m->mesh_raytri[m->mesh_faceadr[mesh] + i] = key[i].tri;
}

static void ray_grow(sn_real *box, const sn_real *low, const sn_real *high) {
  for (int e = 0; e < 3; ++e) {
    box[e] = sn_min(box[e], low[e]);
    box[3 + e] = sn_max(box[3 + e], high[e]);
  }
}

// Boxes of a mesh: of the leaves from their triangles, of the others from the two below.
static void ray_boxes(SnModel *m, int mesh) {
  const int levels = m->mesh_raylevels[mesh], leaves = 1 << levels, face = m->mesh_faceadr[mesh];
  sn_real *boxes = m->mesh_raybox + 6 * (ptrdiff_t)m->mesh_rayadr[mesh], extent = 0;
  for (int k = 3 * m->mesh_vertadr[mesh]; k < 3 * (m->mesh_vertadr[mesh] + m->mesh_vertnum[mesh]); ++k)
    extent = sn_max(extent, sn_abs(m->mesh_vert[k]));
  const sn_real room = SN_R(16.0) * SN_EPS * extent;
  for (int k = 2 * leaves - 2; k >= 0; --k) {
    sn_real *box = boxes + 6 * (ptrdiff_t)k;
    sn_set3(box, SN_MAXVAL, SN_MAXVAL, SN_MAXVAL);
    sn_set3(box + 3, -SN_MAXVAL, -SN_MAXVAL, -SN_MAXVAL);
    if (k < leaves - 1) {
      const sn_real *below = boxes + 6 * (ptrdiff_t)(2 * k + 1);
      ray_grow(box, below, below + 3);
      ray_grow(box, below + 6, below + 9);
      continue;
    }
    const int leaf = k - (leaves - 1), end = ray_first(m, mesh, levels, leaf + 1);
    for (int i = ray_first(m, mesh, levels, leaf); i < end; ++i)
      for (int c = 0; c < 3; ++c) {
        const sn_real *p = ray_corner(m, mesh, m->mesh_raytri[face + i], c);
        ray_grow(box, p, p);
      }
    for (int e = 0; e < 6; ++e) box[e] += e < 3 ? -room : room;
  }
}

SnCode sn_setup_ray(SnModel *m, SnError *err) {
  int most = 1;
  int *levels = m->mesh_raylevels = sn_model_alloc(m, sizeof *levels * (size_t)m->nmesh);
  int *adr = m->mesh_rayadr = sn_model_alloc(m, sizeof *adr * (size_t)m->nmesh);
  m->mesh_raytri = sn_model_alloc(m, sizeof *m->mesh_raytri * (size_t)m->nmeshface);
  if (!levels || !adr || !m->mesh_raytri) return sn_fail(err, SN_ERR_MEMORY, "model: out of memory");
  m->nraybox = 0;
  for (int i = 0; i < m->nmesh; ++i) {
    const int n = m->mesh_facenum[i];
    most = sn_maxi(most, n);
    adr[i] = m->nraybox;
    while (levels[i] < SN_RAY_LEVELS && n >> levels[i] > RAY_LEAF) ++levels[i];
    if (n > 0) m->nraybox += (2 << levels[i]) - 1;
  }
  m->mesh_raybox = sn_model_alloc(m, sizeof *m->mesh_raybox * 6 * (size_t)m->nraybox);
  RayKey *key = malloc(sizeof *key * (size_t)most);
  const bool ok = m->mesh_raybox && key;
  for (int i = 0; ok && i < m->nmesh; ++i) {
    if (m->mesh_facenum[i] == 0) continue;
    ray_order(m, i, key);
    ray_boxes(m, i);
  }
  free(key);
  return ok ? SN_OK : sn_fail(err, SN_ERR_MEMORY, "model: out of memory");
}
