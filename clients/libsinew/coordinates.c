// Derivatives by the entries of a quaternion.
//
// The engine turns by u = q / |q|. A small turn t of its rotation, about axes of the body, as MuJoCo's mj_integratePos
// makes it, changes
//
//   u  by  u (0, t) / 2 = E(u) t / 2,    E(q) = | -x -y -z |    q = (w, x, y, z),    E'E = |q|^2 1,    E'q = 0.
//                                               |  w -z  y |
//                                               |  z  w -x |
//                                               | -y  x  w |
//
// The derivative t_bar of a number by t is that by u times E(u) / 2: t_bar = E(u)' u_bar / 2. As u_bar has no part
// along u, u_bar = 2 E(u) t_bar. A change of q moves u by (1 - u u') dq / |q|, so that
//
//   q_bar = 2 E(u) t_bar / |q| = 2 E(q) t_bar / |q|^2.
//
// Conversely, t changes q by E(q) t / 2 at the same length: t_bar = E(q)' q_bar / 2. A q_bar with a part along q, which
// no function of the rotation has, loses it there.
#include "clients/libsinew/coordinates_private.h"

// Row r of E(q).
static void row_of_turn(const double *q, int r, double row[3]) {
  const double E[4][3] = {{-q[1], -q[2], -q[3]}, {q[0], -q[3], q[2]}, {q[3], q[0], -q[1]}, {-q[2], q[1], q[0]}};
  for (int k = 0; k < 3; ++k) row[k] = E[r][k];
}

// A quaternion without a length stands for no turn, whatever its entries: zero.
static void quaternion_of_turn(const double *q, const double *turn_bar, double *q_bar) {
  const double square = q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3];
  for (int r = 0; r < 4; ++r) {
    double row[3];
    row_of_turn(q, r, row);
    q_bar[r] = square < (double)(SN_MINVAL * SN_MINVAL)
                   ? 0
                   : 2 / square * (row[0] * turn_bar[0] + row[1] * turn_bar[1] + row[2] * turn_bar[2]);
  }
}

static void turn_of_quaternion(const double *q, const double *q_bar, double *turn_bar) {
  for (int k = 0; k < 3; ++k) turn_bar[k] = 0;
  for (int r = 0; r < 4; ++r) {
    double row[3];
    row_of_turn(q, r, row);
    for (int k = 0; k < 3; ++k) turn_bar[k] += 0.5 * row[k] * q_bar[r];
  }
}

int api_plain_numbers(const SnModel *m, int j, bool *quaternion) {
  *quaternion = m->jnt_type[j] == SN_JNT_FREE || m->jnt_type[j] == SN_JNT_BALL;
  return m->jnt_type[j] == SN_JNT_FREE ? 3 : *quaternion ? 0 : 1;
}

void api_bar_of_array(const SnModel *m, const double *qpos, const double *tangent_bar, double *array_bar) {
  for (int j = 0; j < m->njnt; ++j) {
    const int q = m->jnt_qposadr[j], v = m->jnt_dofadr[j];
    bool quaternion;
    const int plain = api_plain_numbers(m, j, &quaternion);
    for (int k = 0; k < plain; ++k) array_bar[q + k] = tangent_bar[v + k];
    if (quaternion) quaternion_of_turn(qpos + q + plain, tangent_bar + v + plain, array_bar + q + plain);
  }
}

void api_bar_of_tangent(const SnModel *m, const double *qpos, const double *array_bar, double *tangent_bar) {
  for (int j = 0; j < m->njnt; ++j) {
    const int q = m->jnt_qposadr[j], v = m->jnt_dofadr[j];
    bool quaternion;
    const int plain = api_plain_numbers(m, j, &quaternion);
    for (int k = 0; k < plain; ++k) tangent_bar[v + k] = array_bar[q + k];
    if (quaternion) turn_of_quaternion(qpos + q + plain, array_bar + q + plain, tangent_bar + v + plain);
  }
}

void api_bar_of_mocap(const SnModel *m, const double *wrench, double *bar) {
  for (int i = 0; i < m->nmocap; ++i)
    for (int k = 6 * i; k < 6 * i + 3; ++k) {
      const double torque = wrench[k];
      bar[k] = wrench[k + 3];
      bar[k + 3] = torque;
    }
}
