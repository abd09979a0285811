// Options of a model, and copies of it with others.
#include <math.h>
#include <string.h>

#include "clients/libsinew/model_private.h"

static const ApiStruct options_struct = {"SinewOptions", "sinew_default_options", sizeof(SinewOptions),
                                         API_END(SinewOptions, disableactuator)};

// Fills the options that are members of both structures: those of option_fields.inc.
static void get(const SnOption *from, SinewOptions *to) {
#define SN_OPTION(type, name, count) \
  for (int i = 0; i < (count); ++i) SN_AT(to->name, count, i) = SN_AT(from->name, count, i);
#define SN_AT(x, count, i) SN_AT_##count(x, i)
#define SN_AT_1(x, i) x
#define SN_AT_3(x, i) x[i]
#define SN_AT_5(x, i) x[i]
#define SN_AT_SN_NREF(x, i) x[i]
#define SN_AT_SN_NIMP(x, i) x[i]
#include "physics/model/option_fields.inc"
#undef SN_OPTION
  for (int i = 0; i < SN_NREF; ++i) to->contact_solref[i] = NAN;
  for (int i = 0; i < SN_NIMP; ++i) to->contact_solimp[i] = NAN;
}

static void set(const SinewOptions *from, SnOption *to) {
#define SN_OPTION(type, name, count) \
  for (int i = 0; i < (count); ++i) SN_AT(to->name, count, i) = (type)SN_AT(from->name, count, i);
#include "physics/model/option_fields.inc"
#undef SN_OPTION
}

SinewStatus sinew_model_get_options(const SinewModel *model, SinewOptions *options, SinewError *err) {
  if (!model) return api_fail(err, SINEW_ERR_ARGUMENT, "sinew_model_get_options: model is NULL");
  SinewOptions o = sinew_default_options();
  get(&model->model->opt, &o);
  return api_give(&options_struct, &o, options, err);
}

SinewStatus api_check_supported(const SnOption *o, SinewError *err) {
  const char *line[SN_OPTION_LINES];
  const int n = sn_option_unsupported(o->integrator, o->disableflags, o->enableflags, line);
  char text[1000] = "";
  for (int i = 0; i < n; ++i) {
    strcat(text, i ? "\n" : "");
    strcat(text, line[i]);
  }
  return n > 0 ? api_fail(err, SINEW_ERR_UNSUPPORTED, "%s", text) : SINEW_OK;
}

SinewModel *api_model_take(SnModel *m, SinewError *err) {
  for (int i = 0; i < m->ncpair; ++i) {
    const int a = m->cpair_geom[2 * i], b = m->cpair_geom[2 * i + 1];
    if (!sn_option_lacks_convex(m->opt.disableflags, m->geom_type[a], m->geom_type[b])) continue;
    api_fail(err, SINEW_ERR_UNSUPPORTED,
             "geom %d '%s' against geom %d '%s': convex collision without nativeccd (a disable flag) is not supported",
             a, sn_model_name(m, SN_NAME_GEOM, a), b, sn_model_name(m, SN_NAME_GEOM, b));
    sn_model_free(m);
    return NULL;
  }
  return api_model_wrap(m, err);
}

// Takes the numbers of all contacts, each of which may be NaN.
static SinewStatus take_contacts(const char *name, const double *from, int n, sn_real *to, SinewError *err) {
  for (int i = 0; i < n; ++i) {
    if (isinf(from[i]))
      return api_fail(err, SINEW_ERR_ARGUMENT, "option %s[%d] is %g: must be finite, or NaN for what the model has",
                      name, i, from[i]);
    to[i] = (sn_real)from[i];
  }
  return SINEW_OK;
}

SinewModel *sinew_model_with_options(const SinewModel *model, const SinewOptions *options, SinewError *err) {
  SinewOptions o = sinew_default_options();
  SnOption opt;
  SnError why;
  sn_real solref[SN_NREF], solimp[SN_NIMP];
  if (!model) {
    api_fail(err, SINEW_ERR_ARGUMENT, "sinew_model_with_options: model is NULL");
    return NULL;
  }
  get(&model->model->opt, &o);  // holds for what an older caller does not know
  if (api_take(&options_struct, options, &o, err) != SINEW_OK) return NULL;
  set(&o, &opt);
  if (api_check_supported(&opt, err) != SINEW_OK) return NULL;
  if (sn_option_check(&opt, &why) != SN_OK) {
    api_fail(err, SINEW_ERR_ARGUMENT, "%s", why.text);
    return NULL;
  }
  if (take_contacts("contact_solref", o.contact_solref, SN_NREF, solref, err) != SINEW_OK ||
      take_contacts("contact_solimp", o.contact_solimp, SN_NIMP, solimp, err) != SINEW_OK)
    return NULL;
  SnModel *m = sn_model_with_options(model->model, &opt, solref, solimp, &why);
  if (m) return api_model_take(m, err);
  api_hand_on(err, &why);
  return NULL;
}
