// The tables of Runge-Kutta methods against the order conditions of J. C. Butcher: for every rooted tree t of at most
// as many nodes as the order, sum_i b_i phi_i(t) = 1 / gamma(t). Those of the embedded methods, one order less; those
// of interpolants at several parts of a step, of their own order.
#include "physics/step/tableau.h"
#include "tests/support/oracle.h"

enum { MOST = 8 };

// A tree: the level of each node in depth-first order, the root's is 0.
typedef struct Tree {
  int n, level[MOST];
} Tree;

// The nodes of the subtree that begins at node k.
static int subtree(const Tree *t, int k) {
  int n = 1;
  while (k + n < t->n && t->level[k + n] > t->level[k]) ++n;
  return n;
}

// gamma of the subtree at node k: the product of the sizes of all subtrees.
static double density(const Tree *t) {
  double product = 1;
  for (int k = 0; k < t->n; ++k) product *= subtree(t, k);
  return product;
}

// phi_i of the subtree at node k: the product over its children of sum_j a_ij phi_j.
static double weight(const SnTableau *rk, const Tree *t, int k, int i) {
  double product = 1;
  for (int child = k + 1; child < k + subtree(t, k); child += subtree(t, child)) {
    double sum = 0;
    for (int j = 0; j < i && j < rk->stages; ++j) {
      const double a = i < rk->stages ? rk->a[i][j] : rk->b[j];
      if (a != 0) sum += a * weight(rk, t, child, j);
    }
    product *= sum;
  }
  return product;
}

// The next level sequence with n nodes (T. Beyer, S. M. Hedetniemi, 1980), from the path to the star; false: there is
// none.
static bool next_tree(Tree *t) {
  int p = t->n - 1;
  while (p > 0 && t->level[p] == 1) --p;
  if (p <= 0) return false;
  int q = p - 1;
  while (t->level[q] != t->level[p] - 1) --q;
  for (int k = p; k < t->n; ++k) t->level[k] = t->level[k - (p - q)];
  return true;
}

// Checks weights b (n) up to an order at part theta of the step; returns how many trees there were.
static int check_order(const SnTableau *rk, const double *b, int n, int order, double theta, double tol) {
  int trees = 0;
  for (int size = 1; size <= order; ++size) {
    Tree t = {.n = size};
    for (int k = 0; k < size; ++k) t.level[k] = k;
    do {
      double sum = 0, wanted = 1 / density(&t);
      for (int k = 0; k < size; ++k) wanted *= theta;
      for (int i = 0; i < n; ++i) sum += b[i] == 0 ? 0 : b[i] * weight(rk, &t, 0, i);
      if (!(fabs(sum - wanted) < tol)) fail_msg("%s: a tree of %d nodes is off by %g", rk->name, size, sum - wanted);
      ++trees;
    } while (next_tree(&t));
  }
  return trees;
}

static void orders(void **state) {
  (void)state;
  static const int trees[] = {0, 1, 2, 4, 8, 17, 37, 85, 200};  // of at most as many nodes
  for (int k = 0; k < SN_RK_METHODS; ++k) {
    const SnTableau *rk = sn_tableau(k);
    double embedded[SN_RK_STAGES];
    assert_int_equal(check_order(rk, rk->b, rk->stages, rk->order, 1, 1e-13), trees[rk->order]);
    for (int i = 0; i < rk->stages; ++i) {
      double c = 0;
      for (int j = 0; j < i; ++j) c += rk->a[i][j];
      assert_true(fabs(c - rk->c[i]) < 1e-14);
    }
    if (!rk->error) continue;
    double largest = 0;
    for (int i = 0; i < rk->stages; ++i) {
      embedded[i] = rk->b[i] - rk->error[i];
      largest = sn_larger(largest, fabs(rk->error[i]));
    }
    assert_true(largest > 1e-3);
    check_order(rk, embedded, rk->stages, rk->order - 1, 1, 1e-13);
  }
}

// A last stage at the end of the step is moved there by the weights of the step.
static void last_stages(void **state) {
  (void)state;
  for (int k = 0; k < SN_RK_METHODS; ++k) {
    const SnTableau *rk = sn_tableau(k);
    bool same = rk->c[rk->stages - 1] == 1 && rk->b[rk->stages - 1] == 0;
    for (int j = 0; j + 1 < rk->stages; ++j) same &= fabs(rk->a[rk->stages - 1][j] - rk->b[j]) < 1e-16;
    assert_int_equal(same, rk->ends);
  }
}

static void interpolants(void **state) {
  (void)state;
  static const int order[SN_RK_METHODS] = {1, 2, 2, 2, 3, 3, 4, 4, 5};
  for (int k = 0; k < SN_RK_METHODS; ++k) {
    const SnTableau *rk = sn_tableau(k);
    double w[SN_RK_STAGES + 1];
    for (int part = 0; part <= 4; ++part) {
      sn_tableau_dense(rk, part / 4.0, w);
      check_order(rk, w, rk->stages + 1, order[k], part / 4.0, 1e-12);
    }
  }
}

static void names(void **state) {
  (void)state;
  for (int k = 0; k < SN_RK_METHODS; ++k) assert_int_equal(sn_tableau_find(sn_tableau(k)->name), k);
  assert_int_equal(sn_tableau_find("rk5"), -1);
  assert_null(sn_tableau(-1));
  assert_null(sn_tableau(SN_RK_METHODS));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(orders),
      cmocka_unit_test(last_stages),
      cmocka_unit_test(interpolants),
      cmocka_unit_test(names),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
