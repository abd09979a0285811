#include <math.h>
#include <stdio.h>

#include "daemon/access/access.h"

// What may be used at once after a pause: that of so many seconds.
#define BURST 1.0

// What is used now: each second forgives `rate`.
static double level(SnMeter *meter, double rate, double now) {
  if (now > meter->at) meter->used = fmax(0, meter->used - rate * (now - meter->at));
  meter->at = now;
  return meter->used;
}

// Whether so much more may be used now. What is larger than a burst may be, once nothing is used.
static bool fits(SnMeter *meter, double rate, double amount, double now) {
  return isinf(rate) || level(meter, rate, now) + amount <= rate * BURST || meter->used == 0;
}

bool sn_quota_request(SnPeer *peer, size_t bytes, double now, char *why, size_t size) {
  const SnQuotas *q = &peer->quota;
  if (!fits(&peer->requests, q->requests, 1, now))
    snprintf(why, size, "this key may send %g requests a second; try again later", q->requests);
  else if (!fits(&peer->bytes, q->bytes, (double)bytes, now))
    snprintf(why, size, "this key may send %g bytes a second; try again later", q->bytes);
  else {
    peer->requests.used += 1;
    peer->bytes.used += (double)bytes;
    return true;
  }
  return false;
}

bool sn_quota_planning(SnPeer *peer, double now, char *why, size_t size) {
  const double rate = peer->quota.planning, planned = 1e-9 * (double)atomic_load(&peer->spent);
  if (isinf(rate)) return true;
  level(&peer->planning, rate, now);
  peer->planning.used += planned - peer->planned;
  peer->planned = planned;
  if (peer->planning.used <= rate * BURST) return true;
  snprintf(why, size, "this key may be planned for %g s a second; try again in %.3g s", rate,
           (peer->planning.used - rate * BURST) / rate);
  return false;
}

void sn_quota_spend(SnPeer *peer, double seconds) { atomic_fetch_add(&peer->spent, (int64_t)(1e9 * seconds)); }
