// Calls of a body that are wrong: null pointers, indices and settings out of range. Each is refused with a text that
// names the function, and harms nothing.
#include "tests/clients/libsinew/pair_fixture.h"

typedef SinewStatus Call(BodyPair *b, SinewError *err);

// Calls without a body, each refused as an argument.
static SinewStatus reset(BodyPair *b, SinewError *err) { return (void)b, sinew_data_reset(NULL, err); }
static SinewStatus keyframe(BodyPair *b, SinewError *err) { return (void)b, sinew_data_reset_keyframe(NULL, 0, err); }
static SinewStatus set_state(BodyPair *b, SinewError *err) {
  const SinewState s = {.time = 0};
  return (void)b, sinew_data_set_state(NULL, &s, err);
}
static SinewStatus no_state(BodyPair *b, SinewError *err) { return sinew_data_set_state(b->data, NULL, err); }
static SinewStatus copy_to(BodyPair *b, SinewError *err) { return sinew_data_copy_state(NULL, b->data, err); }
static SinewStatus copy_from(BodyPair *b, SinewError *err) { return sinew_data_copy_state(b->data, NULL, err); }
static SinewStatus forward(BodyPair *b, SinewError *err) { return (void)b, sinew_forward(NULL, err); }
static SinewStatus step(BodyPair *b, SinewError *err) { return (void)b, sinew_step(NULL, 1, err); }
static SinewStatus steps(BodyPair *b, SinewError *err) { return sinew_step(b->data, -7, err); }
static SinewStatus contact(BodyPair *b, SinewError *err) {
  SinewContact c;
  return (void)b, sinew_data_contact(NULL, 0, &c, err);
}
static SinewStatus no_contact(BodyPair *b, SinewError *err) { return sinew_data_contact(b->data, 0, NULL, err); }
static SinewStatus below(BodyPair *b, SinewError *err) {
  SinewContact c;
  return sinew_data_contact(b->data, -1, &c, err);
}
static SinewStatus beyond(BodyPair *b, SinewError *err) {
  SinewContact c;
  return sinew_data_contact(b->data, sinew_data_ncon(b->data), &c, err);
}
static SinewStatus jacobian(BodyPair *b, SinewError *err) {
  return (void)b, sinew_step_jacobian(NULL, NULL, NULL, NULL, NULL, err);
}
static SinewStatus product(BodyPair *b, SinewError *err) {
  return (void)b, sinew_step_vjp(NULL, SINEW_TANGENT, NULL, NULL, NULL, NULL, err);
}
static SinewStatus cfd(BodyPair *b, SinewError *err) {
  const SinewCfd s = sinew_default_cfd();
  return (void)b, sinew_data_set_cfd(NULL, &s, err);
}
static SinewStatus no_cfd(BodyPair *b, SinewError *err) { return sinew_data_set_cfd(b->data, NULL, err); }
static SinewStatus cfd_size(BodyPair *b, SinewError *err) {
  const SinewCfd s = {.use = SINEW_CFD_BACKWARD};
  return sinew_data_set_cfd(b->data, &s, err);
}
static SinewStatus cfd_use(BodyPair *b, SinewError *err) {
  SinewCfd s = sinew_default_cfd();
  s.use = (SinewCfdUse)3;
  return sinew_data_set_cfd(b->data, &s, err);
}
static SinewStatus cfd_solimp(BodyPair *b, SinewError *err) {
  SinewCfd s = sinew_default_cfd();
  s.solimp[1] = 1;
  return sinew_data_set_cfd(b->data, &s, err);
}
static SinewStatus cfd_softplus(BodyPair *b, SinewError *err) {
  SinewCfd s = sinew_default_cfd();
  s.softplus = (double)NAN;
  return sinew_data_set_cfd(b->data, &s, err);
}
static SinewStatus cfd_smooth(BodyPair *b, SinewError *err) {
  SinewCfd s = sinew_default_cfd();
  s.smooth = 2;
  return sinew_data_set_cfd(b->data, &s, err);
}

static void wrong_calls(void **state) {
  (void)state;
  static const struct {
    Call *call;
    const char *text;
  } list[] = {{reset, "sinew_data_reset: data is NULL"},
              {keyframe, "sinew_data_reset_keyframe: data is NULL"},
              {set_state, "sinew_data_set_state: data is NULL"},
              {no_state, "sinew_data_set_state: state is NULL"},
              {copy_to, "sinew_data_copy_state: data is NULL"},
              {copy_from, "sinew_data_copy_state: from is NULL"},
              {forward, "sinew_forward: data is NULL"},
              {step, "sinew_step: data is NULL"},
              {steps, "sinew_step: steps is -7"},
              {contact, "sinew_data_contact: data is NULL"},
              {no_contact, "sinew_data_contact: contact is NULL"},
              {below, "there is no contact -1"},
              {beyond, "there is no contact "},
              {jacobian, "sinew_step_jacobian: data is NULL"},
              {product, "sinew_step_vjp: data is NULL"},
              {cfd, "sinew_data_set_cfd: data is NULL"},
              {no_cfd, "SinewCfd is NULL"},
              {cfd_size, "SinewCfd.size is 0"},
              {cfd_use, "SinewCfd.use is 3"},
              {cfd_solimp, "SinewCfd.solimp[1]: "},
              {cfd_softplus, "SinewCfd.softplus: "},
              {cfd_smooth, "SinewCfd.smooth: "}};
  BodyPair b;
  body_open(&b, 4);
  body_ok(&b, sinew_data_reset_keyframe(b.data, 0, &b.err));
  body_ok(&b, sinew_step(b.data, 1, &b.err));
  const double before = sinew_data_state(b.data).qpos[2];
  for (size_t i = 0; i < sizeof list / sizeof *list; ++i) {
    SinewError err = {.status = SINEW_OK};
    assert_int_equal(list[i].call(&b, &err), SINEW_ERR_ARGUMENT);
    assert_int_equal(err.status, SINEW_ERR_ARGUMENT);
    if (!strstr(err.text, list[i].text)) fail_msg("'%s' does not say '%s'", err.text, list[i].text);
    assert_int_equal(list[i].call(&b, NULL), SINEW_ERR_ARGUMENT);
    assert_true(sinew_data_state(b.data).qpos[2] == before);
  }
  body_ok(&b, sinew_step(b.data, 1, &b.err));
  assert_true(b.err.status == SINEW_OK && b.err.text[0] == 0);
  body_close(&b);
}

// Functions that cannot fail give nothing for a body that is NULL.
static void nothing(void **state) {
  (void)state;
  int grown = 7;
  SinewError err;
  assert_null(sinew_data_create(NULL, &err));
  assert_int_equal(err.status, SINEW_ERR_ARGUMENT);
  sinew_data_free(NULL);
  sinew_data_clear_warnings(NULL);
  assert_null(sinew_data_model(NULL));
  assert_null(sinew_data_state(NULL).qpos);
  assert_true(sinew_data_time(NULL) == 0 && sinew_data_ncon(NULL) == 0 && sinew_data_warnings(NULL) == 0);
  assert_true(sinew_data_memory(NULL, &grown) == 0 && grown == 0);
}

// Contacts act from a distance for the bodies that are named alone; a name that is none changes nothing.
static void named_bodies(void **state) {
  (void)state;
  BodyPair b;
  body_open(&b, 4);
  body_ok(&b, sinew_data_reset_keyframe(b.data, 0, &b.err));
  int ncon[3];
  for (int i = 0; i < 3; ++i) {
    const char *const nut[] = {"nut", NULL};
    SinewCfd s = sinew_default_cfd();
    s.use = SINEW_CFD_FORWARD;
    s.bodies = i == 1 ? nut : NULL;
    if (i > 0) body_ok(&b, sinew_data_set_cfd(b.data, &s, &b.err));
    body_ok(&b, sinew_forward(b.data, &b.err));
    ncon[i] = sinew_data_ncon(b.data);
  }
  assert_true(ncon[0] < ncon[1] && ncon[1] < ncon[2]);
  const char *const wrong[] = {"nut", "pear", NULL};
  SinewCfd s = sinew_default_cfd();
  s.bodies = wrong;
  assert_int_equal(sinew_data_set_cfd(b.data, &s, &b.err), SINEW_ERR_NOT_FOUND);
  assert_non_null(strstr(b.err.text, "SinewCfd.bodies[1]: the model has no body 'pear'"));
  body_ok(&b, sinew_forward(b.data, &b.err));
  assert_int_equal(sinew_data_ncon(b.data), ncon[2]);
  body_close(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(wrong_calls), cmocka_unit_test(nothing),
                                     cmocka_unit_test(named_bodies)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
