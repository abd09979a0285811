// Jacobians of all steps of the rollouts that a batch keeps.
#include "clients/libsinew/batch_private.h"

static const ApiStruct linearization_type = {"SinewLinearization", "sinew_default_linearization",
                                             sizeof(SinewLinearization), API_END(SinewLinearization, status)};

static SinewStatus linearize(SinewBatch *b, const SinewLinearization *in, SinewError *err) {
  const char *const who = "sinew_batch_linearize";
  const SnBackend *backend = b->backend->backend;
  SinewLinearization out = sinew_default_linearization();
  SinewStatus status = api_take(&linearization_type, in, &out, err);
  if (status == SINEW_OK) status = api_check_kept(b, err);
  if (status == SINEW_OK) status = api_check_jacobians(b, who, err);
  if (status == SINEW_OK && !sn_backend_has(backend, SN_BACKEND_LINEARIZE))
    status =
        api_fail(err, SINEW_ERR_UNSUPPORTED, "%s: the backend '%s' gives no Jacobians", who, sn_backend_name(backend));
  if (status == SINEW_OK && (out.C || out.D)) status = api_check_sensors(b->m, NULL, who, err);
  if (status != SINEW_OK) return status;
  const ApiKept *k = b->kept;
  SnLinearization x = {
      .count = k->count, .nstep = k->steps, .A = out.A, .B = out.B, .C = out.C, .D = out.D, .status = k->linearized};
  if (b->cfd.use != SINEW_CFD_NONE) x.cfd = b->cfd.settings;
  api_interrupt_begin(&b->interrupt);
  const SnClock clock = api_interrupt_clock(&b->interrupt, false);
  const double until = api_interrupt_until(&b->interrupt);
  if (!sn_backend_linearize(b->backend->backend, b->loaded, &x, &clock, until) || api_interrupt_look(&b->interrupt))
    return api_batch_unfinished(b, err);
  for (int i = 0; out.status && i < k->count; ++i)
    out.status[i] = k->linearized[i] == SN_GRADIENT_DONE ? SINEW_OK : SINEW_ERR_DIVERGED;
  return api_ok(err);
}

SinewStatus sinew_batch_linearize(SinewBatch *batch, const SinewLinearization *out, SinewError *err) {
  if (!batch) return api_fail(err, SINEW_ERR_ARGUMENT, "sinew_batch_linearize: batch is NULL");
  const SinewStatus status = api_enter_pair(&batch->guard, "batch", batch->backend, err);
  if (status != SINEW_OK) return status;
  return api_leave_pair(&batch->guard, batch->backend, linearize(batch, out, err));
}
