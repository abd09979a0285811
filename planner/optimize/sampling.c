// Candidates of predictive sampling (Howell et al., "Predictive Sampling", arXiv 2212.00541): the best plan so far, and
// copies of it with noise that is interpolated between knots.
#include "planner/optimize/sampling.h"

#include <math.h>

int sn_noise_knots(int nstep, int spacing, int phase) { return (nstep - 1 + phase) / spacing + 2; }

static SnNoise host_noise(const SnNoiseSettings *s) {
  SnNoise noise = sn_noise(s);
  noise.deviation = s->deviation;
  return noise;
}

void sn_noise_candidate(const SnModel *m, const SnNoiseSettings *noise, int candidate, const sn_real *base, int nstep,
                        sn_real *scratch, sn_real *ctrl) {
  SnLaneShared shared;
  SnLane lane = {.n = 1, .shared = &shared};
  const SnNoise own = host_noise(noise);
  sn_candidate_controls(m, &own, candidate, &lane, base, nstep, scratch, ctrl);
}

int sn_best_candidate(const double *cost, const unsigned char *done, int n, int *used) {
  int best = -1, i = 0;
  for (; i < n && done[i]; ++i)
    if (best < 0 || cost[i] < cost[best]) best = i;
  *used = i;
  return best;
}

// ---- ranks ----

static bool comes_before(const double *cost, int a, int b) {
  const bool number = !isnan(cost[a]), other = !isnan(cost[b]);
  if (number != other) return number;
  return number && cost[a] != cost[b] ? cost[a] < cost[b] : a < b;
}

// Moves the index at place i of a heap of n, whose root comes last, down to where it belongs.
static void sift(const double *cost, int *heap, int n, int i) {
  for (;;) {
    int last = i;
    for (int child = 2 * i + 1; child <= 2 * i + 2 && child < n; ++child)
      if (comes_before(cost, heap[last], heap[child])) last = child;
    if (last == i) return;
    const int moved = heap[i];
    heap[i] = heap[last];
    heap[last] = moved;
    i = last;
  }
}

int sn_rank_candidates(const double *cost, int n, int *rank) {
  int finite = 0;
  for (int i = 0; i < n; ++i) {
    rank[i] = i;
    finite += isfinite(cost[i]) ? 1 : 0;
  }
  for (int i = n / 2 - 1; i >= 0; --i) sift(cost, rank, n, i);
  for (int left = n - 1; left > 0; --left) {
    const int last = rank[0];
    rank[0] = rank[left];
    rank[left] = last;
    sift(cost, rank, left, 0);
  }
  return finite;
}

// ---- means ----

// The means go along with the sum of weights (D. West, 1979), so that nothing is subtracted from a sum.
void sn_noise_moments(const SnNoiseSettings *noise, int control, const double *weight, int n, sn_real *scratch,
                      sn_real *mean, sn_real *variance) {
  const SnNoise own = host_noise(noise);
  const int knots = own.knots;
  sn_real *h = scratch, *white = scratch + knots, *z = white + knots;
  double sum = 0;
  sn_noise_filter(own.colour, knots, h);
  for (int j = 0; j < knots; ++j) mean[j] = variance[j] = 0;
  for (int c = 0; c < n; ++c) {
    if (!(weight[c] > 0)) continue;
    sum += weight[c];
    if (c > 0) sn_noise_column(&own, c, control, h, white, z);
    for (int j = 0; j < knots; ++j) {
      const sn_real off = (c > 0 ? z[j] : 0) - mean[j];
      mean[j] += off * (sn_real)(weight[c] / sum);
      variance[j] += (sn_real)weight[c] * off * ((c > 0 ? z[j] : 0) - mean[j]);
    }
  }
  for (int j = 0; j < knots; ++j) variance[j] /= (sn_real)sum;
}

void sn_noise_mean_controls(const SnModel *m, const SnNoiseSettings *noise, const sn_real *mean, const sn_real *base,
                            int nstep, sn_real *ctrl) {
  const SnNoise own = host_noise(noise);
  for (int k = 0; k < m->nu; ++k) sn_noise_add(m, &own, k, mean + k * own.knots, base, nstep, ctrl);
}
