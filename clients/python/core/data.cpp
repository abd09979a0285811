// One body: its arrays, steps, derivatives.
#include "clients/python/core/core_private.h"

namespace sinew_python {

namespace {

struct Data {
  explicit Data(const Model &of) : model(of) {
    SinewError err;
    SinewData *made = sinew_data_create(model.handle.get(), &err);
    if (!made) raise(err.status, err.text);
    handle = std::shared_ptr<SinewData>(made, sinew_data_free);
  }
  Model model;
  std::shared_ptr<SinewData> handle;
  std::atomic_flag busy = ATOMIC_FLAG_INIT;
};

// Steps that are made before signals are looked at.
constexpr int steps_at_once = 64;

void step(Data &data, int steps) {
  Use use(data.busy, "data");
  SinewError err;
  for (int left = steps; left > 0 || steps < 0; left -= steps_at_once) {
    {
      nb::gil_scoped_release unlocked;
      check(sinew_step(data.handle.get(), left < steps_at_once ? left : steps_at_once, &err), err);
    }
    if (left > steps_at_once && PyErr_CheckSignals() != 0) throw nb::python_error();
  }
}

void forward(Data &data) {
  Use use(data.busy, "data");
  SinewError err;
  nb::gil_scoped_release unlocked;
  check(sinew_forward(data.handle.get(), &err), err);
}

void reset(Data &data, std::optional<int> key) {
  Use use(data.busy, "data");
  SinewError err;
  check(key ? sinew_data_reset_keyframe(data.handle.get(), *key, &err) : sinew_data_reset(data.handle.get(), &err),
        err);
}

// A view of an array that the body owns, which keeps the body alive.
template <typename T>
nb::object view(nb::handle self, T *x, int rows, int cols) {
  return nb::cast(nb::ndarray<nb::numpy, T>(x, {static_cast<size_t>(rows), static_cast<size_t>(cols)}, self));
}

nb::object array(nb::handle self, const char *name) {
  Data &data = nb::cast<Data &>(self);
  Use use(data.busy, "data");
  int rows, cols;
  if (double *x = sinew_data_array(data.handle.get(), name, &rows, &cols)) return view(self, x, rows, cols);
  if (int *x = sinew_data_int_array(data.handle.get(), name, &rows, &cols)) return view(self, x, rows, cols);
  return nb::none();
}

}  // namespace

void bind_data(nb::module_ &m) {
  nb::class_<Data>(m, "Data", "A body.")
      .def(nb::init<const Model &>(), nb::arg("model"))
      .def("step", &step, nb::arg("nstep") = 1)
      .def("forward", &forward)
      .def("reset", &reset, nb::arg("key").none() = nb::none())
      .def("array", &array, nb::arg("name"));
}

}  // namespace sinew_python
