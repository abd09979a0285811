// Contacts and rows of constraints in the arena of an MjData.
#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

#include "clients/python/core/mujoco_private.h"

namespace sinew_python {

namespace {

// Room in the arena, from its beginning on.
class Arena {
 public:
  explicit Arena(mjData *d) : d_(d) {}
  template <typename T>
  bool take(T **to, size_t n) {
    const size_t begin = (d_->parena + alignof(T) - 1) / alignof(T) * alignof(T), end = begin + n * sizeof(T);
    *to = nullptr;
    if (end > d_->narena - d_->pstack) return false;
    d_->parena = end;
    *to = reinterpret_cast<T *>(static_cast<char *>(d_->arena) + begin);
    return true;
  }

 private:
  mjData *d_;
};

// Forgets all that the arena has.
void clear_arena(mjData *d) {
#define X(type, name, nr, nc) d->name = nullptr;
  MJDATA_ARENA_POINTERS
#undef X
  d->ncon = d->ne = d->nf = d->nl = d->nefc = d->nJ = d->nY = d->nA = d->nisland = d->nidof = 0;
  d->efm_active = d->nefmK = d->nefmcon = d->nefmT = d->nefmA = d->nefmdof = d->nefmL = 0;
  d->parena = 0;
}

void write_contact(const SinewContact &from, mjContact &to) {
  std::memset(&to, 0, sizeof to);
  to.dist = from.dist;
  std::copy_n(from.pos, 3, to.pos);
  std::copy_n(from.frame, 9, to.frame);
  std::copy_n(from.friction, 5, to.friction);
  to.dim = from.dim;
  to.geom1 = to.geom[0] = from.geom[0];
  to.geom2 = to.geom[1] = from.geom[1];
  for (int k = 0; k < 2; ++k) to.flex[k] = to.elem[k] = to.vert[k] = -1;
  to.exclude = from.efc_address < 0;
  to.efc_address = from.efc_address;
}

bool write_contacts(SinewData *body, mjData *d, Arena &arena) {
  const int n = sinew_data_ncon(body);
  if (n == 0) return true;
  if (!arena.take(&d->contact, static_cast<size_t>(n))) return false;
  for (int i = 0; i < n; ++i) {
    SinewContact contact;
    sinew_data_contact(body, i, &contact, nullptr);
    write_contact(contact, d->contact[i]);
  }
  d->ncon = n;
  return true;
}

const double *rows_of(SinewData *body, const char *name, const double *) {
  return sinew_data_array(body, name, nullptr, nullptr);
}
const int *rows_of(SinewData *body, const char *name, const int *) {
  return sinew_data_int_array(body, name, nullptr, nullptr);
}

// Writes an array of n numbers about the rows.
template <typename T>
bool write_rows(SinewData *body, const char *name, Arena &arena, T **to, int n) {
  if (!arena.take(to, static_cast<size_t>(n))) return false;
  if (const T *from = rows_of(body, name, *to))
    std::copy_n(from, n, *to);
  else
    std::fill_n(*to, n, std::numeric_limits<T>::has_quiet_NaN ? std::numeric_limits<T>::quiet_NaN() : T(0));
  return true;
}

bool is_sparse(const mjModel *m) {
  return m->opt.jacobian == mjJAC_SPARSE || (m->opt.jacobian == mjJAC_AUTO && m->nv >= 60);
}

// Writes the Jacobian of the rows, dense or with its non-zeros, as MuJoCo has it for this model.
bool write_jacobian(SinewData *body, const mjModel *m, mjData *d, Arena &arena) {
  const int n = d->nefc;
  int entries;
  const double *J = sinew_data_array(body, "efc_J", &entries, nullptr);
  const int *nnz = sinew_data_int_array(body, "efc_J_rownnz", nullptr, nullptr);
  const int *adr = sinew_data_int_array(body, "efc_J_rowadr", nullptr, nullptr);
  const int *col = sinew_data_int_array(body, "efc_J_colind", nullptr, nullptr);
  d->nJ = is_sparse(m) ? entries : n * m->nv;
  const size_t rows = static_cast<size_t>(n), numbers = static_cast<size_t>(d->nJ);
  if (!arena.take(&d->efc_J, numbers)) return false;
  if (!is_sparse(m)) {
    std::fill_n(d->efc_J, numbers, 0.0);
    for (int i = 0; i < n; ++i)
      for (int k = adr[i]; k < adr[i] + nnz[i]; ++k) d->efc_J[i * m->nv + col[k]] = J[k];
    return true;
  }
  if (!arena.take(&d->efc_J_rownnz, rows) || !arena.take(&d->efc_J_rowadr, rows) ||
      !arena.take(&d->efc_J_rowsuper, rows) || !arena.take(&d->efc_J_colind, numbers))
    return false;
  std::fill_n(d->efc_J_rowsuper, n, 0);
  for (int i = 0, to = 0; i < n; to += nnz[i], ++i) {
    d->efc_J_rownnz[i] = nnz[i];
    d->efc_J_rowadr[i] = to;
    std::copy_n(J + adr[i], nnz[i], d->efc_J + to);
    std::copy_n(col + adr[i], nnz[i], d->efc_J_colind + to);
  }
  return true;
}

// Writes the first row of each tendon, -1: none.
bool write_tendon_rows(const mjModel *m, mjData *d, Arena &arena) {
  if (!arena.take(&d->tendon_efcadr, static_cast<size_t>(m->ntendon))) return false;
  std::fill_n(d->tendon_efcadr, m->ntendon, -1);
  for (int i = d->nefc - 1; i >= 0; --i) {
    const int type = d->efc_type[i], id = d->efc_id[i];
    if (type == mjCNSTR_FRICTION_TENDON || type == mjCNSTR_LIMIT_TENDON) d->tendon_efcadr[id] = i;
    if (type != mjCNSTR_EQUALITY || m->eq_type[id] != mjEQ_TENDON) continue;
    d->tendon_efcadr[m->eq_obj1id[id]] = i;
    if (m->eq_obj2id[id] >= 0) d->tendon_efcadr[m->eq_obj2id[id]] = i;
  }
  return true;
}

bool write_constraints(SinewData *body, const mjModel *m, mjData *d, Arena &arena) {
  const auto count = [body](const char *name) { return *sinew_data_int_array(body, name, nullptr, nullptr); };
  const int n = count("nefc");
  if (n == 0) return true;
  d->nefc = n;
  d->ne = count("ne");
  d->nf = count("nf");
  d->nl = count("nl");
#define ROWS(name, cols) write_rows(body, #name, arena, &d->name, (cols)*n)
  if (!ROWS(efc_type, 1) || !ROWS(efc_id, 1) || !ROWS(efc_pos, 1) || !ROWS(efc_margin, 1) ||
      !ROWS(efc_frictionloss, 1) || !ROWS(efc_diagA, 1) || !ROWS(efc_KBIP, 4) || !ROWS(efc_D, 1) || !ROWS(efc_R, 1) ||
      !ROWS(efc_vel, 1) || !ROWS(efc_aref, 1) || !ROWS(efc_b, 1) || !ROWS(efc_state, 1) || !ROWS(efc_force, 1))
    return false;
#undef ROWS
  for (int i = 0; i < d->ncon; ++i)
    if (d->contact[i].efc_address >= 0) d->contact[i].includemargin = d->efc_margin[d->contact[i].efc_address];
  return write_tendon_rows(m, d, arena) && write_jacobian(body, m, d, arena);
}

}  // namespace

bool write_arena(SinewData *body, const mjModel *m, mjData *d) {
  clear_arena(d);
  Arena arena(d);
  if (write_contacts(body, d, arena) && write_constraints(body, m, d, arena)) return true;
  clear_arena(d);
  return false;
}

}  // namespace sinew_python
