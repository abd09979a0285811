#include "clients/libsinew/cfd_private.h"

#include <stdlib.h>

static const ApiStruct CFD = {"SinewCfd", "sinew_default_cfd", sizeof(SinewCfd), API_END(SinewCfd, bodies)};

_Static_assert((int)SINEW_CFD_NONE == (int)SN_CFD_NONE && (int)SINEW_CFD_BACKWARD == (int)SN_CFD_BACKWARD &&
                   (int)SINEW_CFD_FORWARD == (int)SN_CFD_FORWARD,
               "uses of contacts from distance of a planner and of the library differ");

// The numbers of a caller among a planner's settings, which know their bounds; zeros keep the defaults.
static SinewStatus read_numbers(const SinewCfd *cfd, SnSettings *settings, SinewError *err) {
  const struct {
    const char *setting, *member;
    double value;
  } number[] = {{"cfd_far", "solimp[0]", cfd->solimp[0]},   {"cfd_touch", "solimp[1]", cfd->solimp[1]},
                {"cfd_reach", "solimp[2]", cfd->solimp[2]}, {"cfd_midpoint", "solimp[3]", cfd->solimp[3]},
                {"cfd_power", "solimp[4]", cfd->solimp[4]}, {"cfd_softplus", "softplus", cfd->softplus},
                {"cfd_smooth", "smooth", cfd->smooth}};
  *settings = sn_default_settings();
  settings->cfd = (int)cfd->use;
  settings->cfd_friction = cfd->friction;
  settings->contact_gradient = cfd->surrogate;
  for (size_t k = 0; k < sizeof number / sizeof *number; ++k) {
    SnError why;
    if (number[k].value == 0) continue;
    if (sn_settings_set(settings, sn_settings_find(number[k].setting), number[k].value, &why) != SN_OK)
      return api_fail(err, SINEW_ERR_ARGUMENT, "SinewCfd.%s: %s", number[k].member, why.text);
  }
  return SINEW_OK;
}

// Flags of the pairs of the named bodies; *pair stays NULL where all take part.
static SinewStatus read_bodies(const SnModel *m, const char *const *names, unsigned char **pair, SinewError *err) {
  int n = 0;
  while (names && names[n]) ++n;
  if (n == 0) return SINEW_OK;
  int *body = calloc((size_t)n, sizeof *body);
  if (!body) return api_fail(err, SINEW_ERR_MEMORY, "contacts from distance: out of memory");
  SinewStatus status = SINEW_OK;
  char text[SN_KNOWN_LIST];
  for (int k = 0; status == SINEW_OK && k < n; ++k) {
    body[k] = sn_model_find(m, SN_NAME_BODY, names[k]);
    if (body[k] < 0)
      status = api_fail(err, SINEW_ERR_NOT_FOUND, "SinewCfd.bodies[%d]: %s", k,
                        sn_model_no_name(m, SN_NAME_BODY, names[k], text, sizeof text));
  }
  SnError why;
  if (status == SINEW_OK) *pair = sn_cfd_pairs_of(m, body, n, &why);
  if (status == SINEW_OK && !*pair) status = api_hand_on(err, &why);
  free(body);
  return status;
}

SinewStatus api_cfd_read(const SinewModel *model, const SinewCfd *cfd, ApiCfd *out, SinewError *err) {
  SinewCfd known = sinew_default_cfd();
  SnSettings settings;
  unsigned char *pair = NULL;
  SinewStatus status = api_take(&CFD, cfd, &known, err);
  if (status != SINEW_OK) return status;
  if ((int)known.use < (int)SINEW_CFD_NONE || known.use > SINEW_CFD_FORWARD)
    return api_fail(err, SINEW_ERR_ARGUMENT, "SinewCfd.use is %d; allowed are SINEW_CFD_NONE, _BACKWARD, _FORWARD",
                    (int)known.use);
  status = read_numbers(&known, &settings, err);
  SnError why = {0};
  if (status == SINEW_OK && sn_cfd_check(model->model, &settings, &why) != SN_OK) status = api_hand_on(err, &why);
  if (status == SINEW_OK) status = read_bodies(model->model, known.bodies, &pair, err);
  if (status != SINEW_OK) return status;
  api_cfd_clear(out);
  *out = (ApiCfd){.use = known.use, .pair = pair};
  out->settings = sn_cfd_settings(&settings, pair, sn_cfd_backward(&settings));
  return SINEW_OK;
}

void api_cfd_clear(ApiCfd *cfd) {
  free(cfd->pair);
  *cfd = (ApiCfd){.use = SINEW_CFD_NONE};
}
