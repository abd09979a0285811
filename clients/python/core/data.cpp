// One body: its arrays, steps, derivatives.
#include <algorithm>
#include <array>
#include <cstring>

#include "clients/python/core/core_private.h"

namespace sinew_python {

namespace {

// Arrays that a step leaves out until they have been asked for: "LEAN" in clients/libsinew/data_fields.inc.
constexpr std::array<const char *, 11> left_out = {"xipos",     "ximat",       "geom_xpos",   "geom_xmat",
                                                   "site_xpos", "site_xmat",   "subtree_com", "ten_wrapadr",
                                                   "wrap_obj",  "ten_wrapnum", "wrap_xpos"};

struct Data {
  explicit Data(const Model &of);
  Model model;
  std::shared_ptr<SinewData> handle;
  std::atomic_flag busy = ATOMIC_FLAG_INIT;

  // The inputs of the latest call, to make it again: it has left out what is asked for only now.
  std::vector<std::pair<char *, size_t>> inputs;  // where they lie, bytes
  std::vector<char> before;
  int latest_steps = -1;                       // of the latest call; 0: a forward, -1: none that can be made again
  std::shared_ptr<const Cfd> cfd, cfd_before;  // NULL: MuJoCo's contacts
  bool all = false;                            // no frame is left out any more
  bool sensors = false;                        // nor sensordata
};

Data::Data(const Model &of) : model(of) {
  SinewError err;
  SinewData *made;
  {
    nb::gil_scoped_release unlocked;
    made = sinew_data_create(model.handle.get(), &err);
  }
  if (!made) raise(err.status, err.text);
  handle = std::shared_ptr<SinewData>(made, sinew_data_free);
  SinewField field;
  size_t bytes = 0;
  for (int i = 0; sinew_data_field(made, i, &field); ++i) {
    if (!field.input) continue;
    const size_t size = static_cast<size_t>(field.rows) * static_cast<size_t>(field.cols) *
                        (field.integer ? sizeof(int) : sizeof(double));
    void *const at = field.integer ? static_cast<void *>(sinew_data_int_array(made, field.name, nullptr, nullptr))
                                   : sinew_data_array(made, field.name, nullptr, nullptr);
    inputs.emplace_back(static_cast<char *>(at), size);
    bytes += size;
  }
  before.resize(bytes);
}

void save_inputs(const Data &data, std::vector<char> &to) {
  char *at = to.data();
  for (const auto &[x, n] : data.inputs) at = std::copy_n(x, n, at);
}

void restore_inputs(Data &data, const std::vector<char> &from) {
  const char *at = from.data();
  for (const auto &[x, n] : data.inputs) {
    std::copy_n(at, n, x);
    at += n;
  }
}

// Notes what a call of so many steps (0: a forward) begins with.
void begin_call(Data &data, int steps) {
  if (data.all && data.sensors) return;
  save_inputs(data, data.before);
  data.latest_steps = steps;
  data.cfd_before = data.cfd;
}

SinewStatus use_cfd(Data &data, const Cfd *cfd, SinewError *err) {
  const SinewCfd none = sinew_default_cfd();
  return sinew_data_set_cfd(data.handle.get(), cfd ? &cfd->settings : &none, err);
}

// Marks the latest call as one that cannot be made again when the current scope is left by an error.
class Attempt {
 public:
  Attempt(Data &data, int steps) : data_(data) { begin_call(data, steps); }
  ~Attempt() {
    if (!done_) data_.latest_steps = -1;
  }
  void done() { done_ = true; }
  Attempt(const Attempt &) = delete;
  Attempt &operator=(const Attempt &) = delete;

 private:
  Data &data_;
  bool done_ = false;
};

// Computes what the latest call has left out, unless that is done: makes it again, bit for bit, and puts the inputs
// back. Warnings that were cleared since stay so.
void compute_left_out(Data &data, bool &done) {
  if (done) return;
  done = true;
  if (data.latest_steps < 0) return;
  std::vector<char> present(data.before.size());
  save_inputs(data, present);
  const bool clear = sinew_data_warnings(data.handle.get()) == 0, other = data.cfd != data.cfd_before;
  SinewError err;
  if (other) check(use_cfd(data, data.cfd_before.get(), &err), err);
  restore_inputs(data, data.before);
  const SinewStatus status = data.latest_steps == 0 ? sinew_forward(data.handle.get(), &err)
                                                    : sinew_step(data.handle.get(), data.latest_steps, &err);
  SinewError ignored;  // of settings that were taken before
  if (other) use_cfd(data, data.cfd.get(), &ignored);
  if (clear) sinew_data_clear_warnings(data.handle.get());
  restore_inputs(data, present);
  check(status, err);
}

// Steps that are made before signals are looked at.
constexpr int steps_at_once = 64;

void step(Data &data, int steps) {
  Use use(data.busy, "data");
  int made = 0;
  do {
    const int now = std::min(steps - made, steps_at_once);
    if (made > 0 && PyErr_CheckSignals() != 0) throw nb::python_error();
    Attempt attempt(data, now);
    SinewError err;
    SinewStatus status;
    {
      nb::gil_scoped_release unlocked;
      status = sinew_step(data.handle.get(), now, &err);
    }
    if (status != SINEW_OK && made > 0)
      raise(status, ("after " + std::to_string(made) + " steps: " + err.text).c_str());
    check(status, err);
    attempt.done();
    made += now;
  } while (made < steps);
}

void forward(Data &data) {
  Use use(data.busy, "data");
  Attempt attempt(data, 0);
  SinewError err;
  nb::gil_scoped_release unlocked;
  check(sinew_forward(data.handle.get(), &err), err);
  attempt.done();
}

void reset(Data &data, std::optional<int> key) {
  Use use(data.busy, "data");
  SinewError err;
  check(key ? sinew_data_reset_keyframe(data.handle.get(), *key, &err) : sinew_data_reset(data.handle.get(), &err),
        err);
}

// A view of an array that the body owns, which keeps the body alive; of a copy when `own`.
template <typename T>
nb::object view(nb::handle self, T *x, int rows, int cols, bool own) {
  const nb::ndarray<nb::numpy, T> array(x, {static_cast<size_t>(rows), static_cast<size_t>(cols)}, self);
  return own ? nb::cast(array, nb::rv_policy::copy) : nb::cast(array);
}

// Returns an array of the body, None when it has none of this name: a view, or a copy of one that may move.
nb::object array(nb::handle self, const char *name, bool copy) {
  Data &data = nb::cast<Data &>(self);
  Use use(data.busy, "data");
  int rows, cols;
  double *numbers = sinew_data_array(data.handle.get(), name, &rows, &cols);
  int *whole = numbers ? nullptr : sinew_data_int_array(data.handle.get(), name, &rows, &cols);
  if (std::any_of(left_out.begin(), left_out.end(), [&](const char *x) { return std::strcmp(x, name) == 0; }))
    compute_left_out(data, data.all);
  if (std::strcmp(name, "sensordata") == 0) {
    sinew_data_set_sensors(data.handle.get(), true);
    compute_left_out(data, data.sensors);
  }
  if (numbers) return view(self, numbers, rows, cols, copy);
  if (whole) return view(self, whole, rows, cols, copy);
  return nb::none();
}

std::vector<std::pair<std::string, bool>> fields(const Data &data) {
  std::vector<std::pair<std::string, bool>> names;
  SinewField field;
  for (int i = 0; sinew_data_field(data.handle.get(), i, &field); ++i) names.emplace_back(field.name, field.input);
  return names;
}

using In = std::optional<ConstNumbers>;
using Out = std::optional<Numbers>;

void set_state(Data &data, double time, const In &qpos, const In &qvel, const In &act, const In &mocap) {
  Use use(data.busy, "data");
  const SinewSizes *s = sinew_model_sizes(data.model.handle.get());
  SinewState state = {};
  state.time = time;
  state.qpos = data_of(qpos, "qpos", s->nq);
  state.qvel = data_of(qvel, "qvel", s->nv);
  state.act = data_of(act, "act", s->na);
  state.mocap = data_of(mocap, "mocap", 7 * static_cast<size_t>(s->nmocap));
  SinewError err;
  check(sinew_data_set_state(data.handle.get(), &state, &err), err);
}

void copy_state(Data &data, Data &from) {
  Use use(data.busy, "data");
  SinewError err;
  if (&data == &from) return;
  Use use_other(from.busy, "data");
  check(sinew_data_copy_state(data.handle.get(), from.handle.get(), &err), err);
}

// Returns the bytes of all contacts, structures of the layout of SinewContact.
nb::bytes contacts(Data &data) {
  Use use(data.busy, "data");
  std::vector<SinewContact> all(static_cast<size_t>(sinew_data_ncon(data.handle.get())));
  SinewError err;
  for (size_t i = 0; i < all.size(); ++i)
    check(sinew_data_contact(data.handle.get(), static_cast<int>(i), &all[i], &err), err);
  return nb::bytes(all.data(), all.size() * sizeof(SinewContact));
}

void jacobian(Data &data, const Out &a, const Out &b, const Out &c, const Out &d) {
  Use use(data.busy, "data");
  const SinewSizes *s = sinew_model_sizes(data.model.handle.get());
  const size_t n = s->nstate, nu = s->nu, sensors = s->nsensordata;
  double *const to[4] = {data_of(a, "A", n * n), data_of(b, "B", n * nu), data_of(c, "C", sensors * n),
                         data_of(d, "D", sensors * nu)};
  Attempt attempt(data, 0);
  SinewError err;
  nb::gil_scoped_release unlocked;
  check(sinew_step_jacobian(data.handle.get(), to[0], to[1], to[2], to[3], &err), err);
  attempt.done();
}

// The library takes what it reads by the same structure as what it writes.
double *unconst(const double *x) { return const_cast<double *>(x); }

void vjp(Data &data, bool array_coordinates, const In &qpos, const In &qvel, const In &act, const In &sensordata,
         const Out &out_qpos, const Out &out_qvel, const Out &out_act, const Out &out_ctrl) {
  Use use(data.busy, "data");
  const SinewSizes *s = sinew_model_sizes(data.model.handle.get());
  const size_t nq = array_coordinates ? s->nq : s->nv;
  const SinewStateBar next = {unconst(data_of(qpos, "qpos", nq)), unconst(data_of(qvel, "qvel", s->nv)),
                              unconst(data_of(act, "act", s->na))};
  const SinewStateBar out = {data_of(out_qpos, "qpos", nq), data_of(out_qvel, "qvel", s->nv),
                             data_of(out_act, "act", s->na)};
  const double *sensor_bar = data_of(sensordata, "sensordata", s->nsensordata);
  double *ctrl = data_of(out_ctrl, "ctrl", s->nu);
  Attempt attempt(data, 0);
  SinewError err;
  nb::gil_scoped_release unlocked;
  check(sinew_step_vjp(data.handle.get(), array_coordinates ? SINEW_ARRAY : SINEW_TANGENT, &next, sensor_bar, &out,
                       ctrl, &err),
        err);
  attempt.done();
}

// Fills dist, from, to and normal (10 numbers), and of each its derivatives by nv coordinates.
void distance(Data &data, int geom1, int geom2, double limit, const Numbers &found, const Out &by) {
  Use use(data.busy, "data");
  const size_t nv = sinew_model_sizes(data.model.handle.get())->nv;
  if (found.size() != 10) raise(SINEW_ERR_ARGUMENT, "distance: 10 numbers are filled in");
  SinewDistanceJacobian jacobian = {};
  if (double *x = data_of(by, "jacobian", 10 * nv)) jacobian = {x, x + nv, x + 4 * nv, x + 7 * nv};
  SinewDistance distance;
  SinewError err;
  {
    nb::gil_scoped_release unlocked;
    check(by ? sinew_geom_distance_jacobian(data.handle.get(), geom1, geom2, limit, &distance, &jacobian, &err)
             : sinew_geom_distance(data.handle.get(), geom1, geom2, limit, &distance, &err),
          err);
  }
  double *to = found.data();
  *to = distance.dist;
  std::copy_n(distance.from, 3, to + 1);
  std::copy_n(distance.to, 3, to + 4);
  std::copy_n(distance.normal, 3, to + 7);
}

void set_cfd(Data &data, const Cfd *cfd) {
  Use use(data.busy, "data");
  SinewError err;
  check(use_cfd(data, cfd, &err), err);
  data.cfd = cfd ? std::make_shared<const Cfd>(*cfd) : nullptr;
}

}  // namespace

void bind_data(nb::module_ &m) {
  nb::class_<Data>(m, "Data", "A body.")
      .def(nb::init<const Model &>(), nb::arg("model"))
      .def("step", &step, nb::arg("nstep") = 1)
      .def("forward", &forward)
      .def("reset", &reset, nb::arg("key").none() = nb::none())
      .def("array", &array, nb::arg("name"), nb::arg("copy"),
           nb::sig("def array(self, name: str, copy: bool) -> numpy.typing.NDArray[typing.Any] | None"))
      .def("fields", &fields)
      .def("set_state", &set_state, nb::arg("time"), nb::arg("qpos").none(), nb::arg("qvel").none(),
           nb::arg("act").none(), nb::arg("mocap").none())
      .def("copy_state", &copy_state, nb::arg("data"))
      .def("contacts", &contacts)
      .def("jacobian", &jacobian, nb::arg("A").none(), nb::arg("B").none(), nb::arg("C").none(), nb::arg("D").none())
      .def("vjp", &vjp, nb::arg("array_coordinates"), nb::arg("qpos").none(), nb::arg("qvel").none(),
           nb::arg("act").none(), nb::arg("sensordata").none(), nb::arg("out_qpos").none(), nb::arg("out_qvel").none(),
           nb::arg("out_act").none(), nb::arg("out_ctrl").none())
      .def("distance", &distance, nb::arg("geom1"), nb::arg("geom2"), nb::arg("limit"), nb::arg("found"),
           nb::arg("jacobian").none())
      .def("set_cfd", &set_cfd, nb::arg("cfd").none())
      .def_prop_ro("warnings", [](const Data &x) { return sinew_data_warnings(x.handle.get()); })
      .def("clear_warnings", [](Data &x) { sinew_data_clear_warnings(x.handle.get()); })
      .def_prop_ro("memory", [](const Data &x) { return sinew_data_memory(x.handle.get(), nullptr); });
}

}  // namespace sinew_python
