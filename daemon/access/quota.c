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

// What is used without a bound is not owed once there is one.
static void use(SnMeter *meter, double rate, double amount) {
  if (isfinite(rate)) meter->used += amount;
}

bool sn_quota_request(SnPeer *peer, size_t bytes, double now, char *why, size_t size) {
  const SnQuotas *q = &peer->quota;
  if (!fits(&peer->requests, q->requests, 1, now))
    snprintf(why, size, "this key may send %g requests a second; try again later", q->requests);
  else if (!fits(&peer->bytes, q->bytes, (double)bytes, now))
    snprintf(why, size, "this key may send %g bytes a second; try again later", q->bytes);
  else {
    use(&peer->requests, q->requests, 1);
    use(&peer->bytes, q->bytes, (double)bytes);
    return true;
  }
  return false;
}

static double planned_so_far(const SnPeer *peer) { return 1e-9 * (double)atomic_load(&peer->spent); }

void sn_quota_set(SnPeer *peer, const SnQuotas *quota) {
  if (isinf(peer->quota.planning)) peer->planned = planned_so_far(peer);  // see use()
  peer->quota = *quota;
}

// Takes what the planner has done for a peer by now into account.
static void settle(SnPeer *peer, double now) {
  const double planned = planned_so_far(peer);
  level(&peer->planning, peer->quota.planning, now);
  peer->planning.used += planned - peer->planned;
  peer->planned = planned;
}

// The planner works for one plan at a time: all plans that are under way take no longer than until the last of them is
// due. That is charged beforehand; afterwards what they took.
bool sn_quota_planning(SnPeer *peer, double allowed, double now, bool *charged, char *why, size_t size) {
  const double rate = peer->quota.planning;
  if (isinf(rate)) return true;
  settle(peer, now);
  if (now >= peer->due) peer->under_way = 0;  // also of one whose answer was lost
  const double due = fmax(peer->under_way > 0 ? peer->due : 0, now + allowed), coming = due - now;
  const double used = peer->planning.used, above = used + coming - rate * BURST;
  const bool only = used == 0 && peer->under_way == 0;  // longer than a burst, it is paid for afterwards
  if (above <= 0 || only) {
    *charged = allowed > 0;
    peer->under_way += *charged;
    peer->due = due;
    return true;
  }
  // Where nothing is used yet what is under way is waited for.
  const double wait = used > 0 ? fmin(used, above) / rate : coming;
  snprintf(why, size, "this key may be planned for %g s a second; try again in %.3g s", rate, wait);
  return false;
}

void sn_quota_answered(SnPeer *peer, double now) {
  peer->under_way -= peer->under_way > 0;
  if (isfinite(peer->quota.planning)) settle(peer, now);
}

void sn_quota_spend(SnPeer *peer, double seconds) { atomic_fetch_add(&peer->spent, (int64_t)(1e9 * seconds)); }
