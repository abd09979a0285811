// What a GPU would answer with an illegal address, or not at all: pointers of the host in a kernel's arguments, and
// memory that two of its blocks write to. Every field that is an array is listed here once.
#include "cuda/device/emulator_private.h"

#include <stdio.h>

typedef struct Check {
  const SnRegions *regions;
  char *text;
  size_t size;
} Check;

// An array of n bytes, or NULL.
static bool array(const Check *c, const char *owner, int index, const char *name, const void *p, size_t n) {
  if (!p || sn_regions_hold(c->regions, p, n, true)) return true;
  snprintf(c->text, c->size, "%s %d: %s: %zu bytes at %p are not memory of the device", owner, index, name, n, p);
  return false;
}

// A field of x, in the names of `owner` and `index`.
#define ARRAY(field, n) array(c, owner, index, #field, x->field, sizeof *x->field *(size_t)(n))

static bool check_model(const Check *c, const SnModel *m) {
#define SN_SIZE(name)       \
  const int name = m->name; \
  (void)name;
#include "physics/model/model_sizes.inc"
#include "physics/model/setup_sizes.inc"
#undef SN_SIZE
#define SN_MODEL_FIELD(type, name, rows, cols) \
  if (!array(c, "model", 0, #name, m->name, sizeof(type) * (size_t)(rows) * (size_t)(cols))) return false;
#include "physics/model/model_fields.inc"
#include "physics/model/setup_fields.inc"
#undef SN_MODEL_FIELD
  return true;
}

static bool check_cost(const Check *c, const SnCost *x) {
  const char *owner = "cost";
  const int index = 0, nall = x->nall, with = nall + x->ngate, nitem = x->nitem;
  return ARRAY(weight, x->nterm) && ARRAY(terminal, x->nterm) && ARRAY(term_norm, with) && ARRAY(term_width, with) &&
         ARRAY(term_side, with) && ARRAY(term_gate, nall) && ARRAY(gate_side, nall) && ARRAY(gate_value, nall) &&
         ARRAY(gate_width, nall) && ARRAY(res_weight, x->nres) && ARRAY(term_item, with + 1) &&
         ARRAY(term_res, with + 1) && ARRAY(term_target, with + 1) && ARRAY(term_follows, with) &&
         ARRAY(term_serial, with) && ARRAY(item_type, nitem) && ARRAY(item_term, nitem) && ARRAY(item_id, nitem) &&
         ARRAY(member, x->nmember) && ARRAY(item_other_type, nitem) && ARRAY(item_other_id, nitem) &&
         ARRAY(item_dof, 2 * nitem) && ARRAY(item_end, 8 * nitem) && ARRAY(item_frame, nitem) &&
         ARRAY(item_target, nitem) && ARRAY(item_res, nitem);
}

static bool check_rollout(const Check *c, const char *owner, int index, const SnWork *w, const SnRollout *x) {
  const SnModel *m = &w->model;
  const size_t rows = (size_t)x->nstep + 1, nterm = (size_t)w->cost.nterm;
  return ARRAY(qpos, m->nq) && ARRAY(qvel, m->nv) && ARRAY(act, m->na) && ARRAY(mocap_pos, 3 * m->nmocap) &&
         ARRAY(mocap_quat, 4 * m->nmocap) && ARRAY(qacc_warmstart, m->nv) && ARRAY(cfd.pair, m->ncpair) &&
         ARRAY(before, m->nu) && ARRAY(ctrl, (size_t)x->nstep * (size_t)m->nu) &&
         ARRAY(target, rows * (size_t)w->cost.ntarget) && ARRAY(running, nterm) && ARRAY(terminal, nterm) &&
         ARRAY(out_time, rows) && ARRAY(out_qpos, rows * m->nq) && ARRAY(out_qvel, rows * (size_t)m->nv) &&
         ARRAY(out_act, rows * (size_t)m->na) && ARRAY(out_qacc, rows * (size_t)m->nv) && ARRAY(out_cost, rows) &&
         ARRAY(out_sensordata, rows * (size_t)m->nsensordata) && ARRAY(out_qacc_warmstart, m->nv) &&
         ARRAY(sum, nterm) && ARRAY(saved, 1);
}

// The rollouts that candidates begin from. Blocks of different ones run at the same time: what they write lies apart.
static bool check_begins(const Check *c, const SnWork *w, int index, const SnSample *x) {
  const char *owner = "sample";
  const int n = x->own ? x->count : 1;
  if (!ARRAY(rollout, n)) return false;
  for (int i = 0; x->rollout && i < n; ++i) {
    const SnRollout *p = &x->rollout[i], *q = &x->rollout[sn_maxi(i - 1, 0)];
    const bool apart = i == 0 || !((p->out_qpos && p->out_qpos == q->out_qpos && w->model.nq > 0) ||
                                   (p->out_time && p->out_time == q->out_time));
    if (!check_rollout(c, "candidate of sample", index, w, p)) return false;
    if (p->nstep == x->nstep && apart) continue;
    snprintf(c->text, c->size, "sample %d: candidate %d %s", index, i,
             apart ? "has other steps" : "has the memory of the one before for its states");
    return false;
  }
  return true;
}

static bool check_sample(const Check *c, const SnWork *w, int index) {
  const char *owner = "sample";
  const SnSample *x = w->turn[index].sample;
  if (!x) {
    snprintf(c->text, c->size, "%s %d: none", owner, index);
    return false;
  }
  if (!array(c, owner, index, "itself", x, sizeof *x)) return false;
  const size_t n = (size_t)x->count, rows = (size_t)x->nstep, nu = (size_t)w->model.nu;
  return check_begins(c, w, index, x) && ARRAY(ctrl, n * rows * nu) && ARRAY(sum, n * (size_t)w->cost.nterm) &&
         ARRAY(total, n) && ARRAY(saved, n) && ARRAY(t, n) && ARRAY(status, n) && ARRAY(warn, n);
}

static bool check_vjp(const Check *c, int index, const SnWork *w, const SnRollout *rollout, const SnRolloutVjp *x) {
  const char *owner = "gradient";
  const SnModel *m = &w->model;
  const size_t rows = (size_t)rollout->nstep + 1, nterm = (size_t)w->cost.nterm, n = (size_t)sn_tangent_size(m);
  const bool bars = ARRAY(bar.qpos, rows * (size_t)m->nv) && ARRAY(bar.qvel, rows * (size_t)m->nv) &&
                    ARRAY(bar.act, rows * (size_t)m->na) && ARRAY(bar.sensordata, rows * (size_t)m->nsensordata) &&
                    ARRAY(bar.ctrl, (rows - 1) * (size_t)m->nu);
  return bars && ARRAY(cfd.pair, m->ncpair) && ARRAY(cfd_qacc, rows * (size_t)m->nv) && ARRAY(running, nterm) &&
         ARRAY(terminal, nterm) && ARRAY(state_bar, n) && ARRAY(scratch, n) &&
         ARRAY(ctrl_bar, (rows - 1) * (size_t)m->nu) && ARRAY(target_bar, rows * (size_t)w->cost.ntarget);
}

static bool check_start(const Check *c, int index, const SnWork *w, int nstep, const SnMultistartStart *x) {
  const char *owner = "start of gradient";
  const size_t nu = (size_t)w->model.nu, ctrl = (size_t)nstep * nu, knots = nu;  // at least one knot
  return ARRAY(base, ctrl) && ARRAY(offset, knots) && ARRAY(best, knots) && ARRAY(gradient, knots) &&
         ARRAY(moments.first, knots) && ARRAY(moments.second, knots) && ARRAY(ctrl, ctrl) && ARRAY(ctrl_bar, ctrl) &&
         ARRAY(term, w->cost.nterm);
}

static bool check_states(const Check *c, int index, const SnWork *w, const SnGradientItem *gradient) {
  const char *owner = "state of gradient";
  const bool sweep = gradient->method == SN_GRADIENT_SWEEP;
  const SnModel *m = &w->model;
  const size_t n = (size_t)sn_tangent_size(m);
  const int last = sweep ? 1 : sn_mini(w->to, gradient->rollout.nstep + 1);
  for (int t = 0; gradient->state && t < last; ++t) {
    const SnRolloutVjpState *x = &gradient->state[t];
    if (!(ARRAY(A, n * n) && ARRAY(B, n * (size_t)m->nu) && ARRAY(state_bar, n) && ARRAY(ctrl_bar, m->nu) &&
          ARRAY(before_bar, m->nu) && ARRAY(target_bar, w->cost.ntarget)))
      return false;
  }
  return true;
}

static bool check_gradient(const Check *c, const SnWork *w, int index) {
  const char *owner = "gradient";
  const SnGradientItem *x = &w->gradient[index];
  if (!x->active) return true;
  if (!check_rollout(c, owner, index, w, &x->rollout) || !check_vjp(c, index, w, &x->rollout, &x->vjp)) return false;
  if (!ARRAY(cfd_steps, 1) || !ARRAY(start, 1)) return false;
  if (!ARRAY(state, x->method == SN_GRADIENT_SWEEP ? 1 : sn_mini(w->to, x->rollout.nstep + 1))) return false;
  if (x->start && !check_start(c, index, w, x->rollout.nstep, x->start)) return false;
  return check_states(c, index, w, x);
}

// Blocks of different items run at the same time: what they write lies apart. States of the way back are written by
// kernels of it alone, which items go through in groups.
static bool check_apart(const Check *c, const SnWork *w, bool back, int i, int j) {
  const SnGradientItem *x = &w->gradient[i], *y = &w->gradient[j];
  const char *what = NULL;
  if (!x->active || !y->active) return true;
  if (x->rollout.out_qpos == y->rollout.out_qpos || x->rollout.out_time == y->rollout.out_time) what = "states";
  if (x->rollout.sum == y->rollout.sum && w->cost.nterm > 0) what = "terms";
  if (x->vjp.state_bar == y->vjp.state_bar || x->vjp.scratch == y->vjp.scratch) what = "derivatives";
  if (x->vjp.ctrl_bar == y->vjp.ctrl_bar && w->model.nu > 0) what = "derivatives of controls";
  if (back && x->state && x->state == y->state) what = "states of the way back";
  if (back && x->state && y->state && w->cost.ntarget > 0 && x->state->target_bar == y->state->target_bar)
    what = "targets";
  if (what) snprintf(c->text, c->size, "gradients %d and %d have the same memory for their %s", i, j, what);
  return !what;
}

static bool check_multistart(const Check *c, const SnWork *w, int index) {
  const char *owner = "multistart";
  if (!w->multistart[index].active) return true;
  if (!array(c, owner, index, "data", w->multistart[index].data, sizeof(SnMultistart))) return false;
  const SnMultistart *x = w->multistart[index].data;
  return !x || (ARRAY(initial_ctrl, w->model.nu) && ARRAY(nominal, (size_t)x->grid.nstep * (size_t)w->model.nu) &&
                ARRAY(best_term, w->cost.nterm));
}

// Room for the slots of a launch.
static bool check_slots(const Check *c, const char *name, const SnSlots *x, size_t slots) {
  const size_t each = x->world.global + x->adjoint.global;
  if (each > x->stride) {
    snprintf(c->text, c->size, "slots %s: a slot of %zu bytes has no room for %zu", name, x->stride, each);
    return false;
  }
  return array(c, "slots", 0, name, x->global, slots * x->stride);
}

bool sn_work_check(const SnRegions *r, SnKernel kernel, const SnWork *work, int blocks, char *text, size_t size) {
  const Check check = {r, text, size}, *c = &check;
  const SnWork *x = work;
  const char *owner = "work";
  const int index = 0;
  const size_t states = (size_t)sn_maxi(x->ngradient, 0) * (size_t)sn_maxi(x->to - x->from, 0);
  const bool made = kernel == SN_KERNEL_MAKE || kernel == SN_KERNEL_SWEEP;
  const bool back = kernel == SN_KERNEL_SWEEP || kernel == SN_KERNEL_JACOBIAN || kernel == SN_KERNEL_COLLECT;
  if (!check_model(c, &x->model) || !check_cost(c, &x->cost)) return false;
  if (!ARRAY(gradient, x->ngradient) || !ARRAY(multistart, x->nmultistart)) return false;
  if (!ARRAY(scratch, (size_t)blocks * (size_t)x->scratch_size) || !ARRAY(marks, (size_t)blocks * SN_NMARK))
    return false;
  if (!check_slots(c, "block", &x->block, (size_t)blocks)) return false;
  if (made && !check_slots(c, "state", &x->state, states)) return false;
  for (int i = 0; i < x->nturn; ++i)
    if (!check_sample(c, x, i)) return false;
  for (int i = 0; x->gradient && i < x->ngradient; ++i) {
    if (!check_gradient(c, x, i)) return false;
    for (int j = 0; j < i; ++j)
      if (!check_apart(c, x, back, i, j)) return false;
  }
  for (int i = 0; x->multistart && i < x->nmultistart; ++i)
    if (!check_multistart(c, x, i)) return false;
  return true;
}
