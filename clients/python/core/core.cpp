// The module sinew._core: libsinew with Python's memory and exceptions, and nothing else. Shapes are checked, and
// arrays made, by the Python files on top of it; a call here takes contiguous arrays of doubles of the right size or
// refuses them, so that no call can crash the interpreter.
#include "clients/python/core/core_private.h"

#include <unistd.h>

namespace sinew_python {

bool interrupt(void *) {
  if (gettid() != getpid()) return false;
  nb::gil_scoped_acquire lock;
  return PyErr_CheckSignals() != 0;
}

void raise(SinewStatus status, const char *text) {
  nb::gil_scoped_acquire lock;
  if (status == SINEW_ERR_INTERRUPTED && PyErr_Occurred()) throw nb::python_error();
  const nb::object error = nb::module_::import_("sinew.errors").attr("from_status")(static_cast<int>(status), text);
  PyErr_SetObject(reinterpret_cast<PyObject *>(Py_TYPE(error.ptr())), error.ptr());
  throw nb::python_error();
}

Model own_model(SinewModel *handle, const SinewError &err) {
  if (!handle) raise(err.status, err.text);
  return Model{std::shared_ptr<const SinewModel>(handle, [](SinewModel *x) { sinew_model_free(x); })};
}

Backend::Backend(const std::string &name, int threads, int block_threads) {
  SinewError err;
  SinewBackendOptions options = sinew_default_backend();
  options.threads = threads;
  options.block_threads = block_threads;
  SinewBackend *opened = sinew_backend_open(name.c_str(), &options, &err);
  if (!opened) raise(err.status, err.text);
  handle = std::shared_ptr<SinewBackend>(opened, sinew_backend_close);
}

Cfd::Cfd(int use, const std::vector<double> &solimp, double softplus, bool friction, bool surrogate,
         std::optional<std::vector<std::string>> bodies, double smooth)
    : names(std::move(bodies)) {
  if (solimp.size() != 5) raise(SINEW_ERR_ARGUMENT, "solimp: five numbers are expected");
  settings.use = static_cast<SinewCfdUse>(use);
  for (size_t i = 0; i < 5; ++i) settings.solimp[i] = solimp[i];
  settings.softplus = softplus;
  settings.friction = friction;
  settings.surrogate = surrogate;
  settings.smooth = smooth;
  point();
}

void Cfd::point() {
  if (!names) return;
  for (const std::string &name : *names) pointers.push_back(name.c_str());
  pointers.push_back(nullptr);
  settings.bodies = pointers.data();
}

}  // namespace sinew_python

NB_MODULE(_core, m) {
  using namespace sinew_python;
  m.doc() = "libsinew with Python's memory and exceptions; use the package sinew.";
  // Objects that last to the end, as those of PyTorch's graphs do, are no mistake of whoever has them.
  nb::set_leak_warnings(false);
  m.def("version", &sinew_version, "Return the version of libsinew.");
  m.def(
      "status_name", [](int status) { return sinew_status_name(static_cast<SinewStatus>(status)); }, nb::arg("status"),
      "Return the name of a status.");
  nb::class_<Backend>(m, "Backend", "Threads of the CPU, or a device.")
      .def(nb::init<const std::string &, int, int>(), nb::arg("name"), nb::arg("threads"), nb::arg("block_threads") = 0)
      .def_prop_ro("description", [](const Backend &x) { return sinew_backend_description(x.handle.get()); });
  m.def(
      "backend_names",
      [] {
        std::vector<std::string> names;
        for (const char *const *x = sinew_backend_names(); *x; ++x) names.emplace_back(*x);
        return names;
      },
      "Return the names of the backends that could be opened.");
  nb::class_<Cfd>(m, "Cfd", "Settings of contacts from distance.")
      .def(nb::init<int, const std::vector<double> &, double, bool, bool, std::optional<std::vector<std::string>>,
                    double>(),
           nb::arg("use"), nb::arg("solimp"), nb::arg("softplus"), nb::arg("friction"), nb::arg("surrogate"),
           nb::arg("bodies").none(), nb::arg("smooth"));
  bind_model(m);
  bind_data(m);
  bind_planner(m);
  bind_batch(m);
  bind_bodies(m);
  bind_integrator(m);
  bind_nearest_points(m);
  bind_mujoco(m);
  bind_xla(m);
}
