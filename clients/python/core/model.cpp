// Models: loading, sizes, arrays, names, options.
#include "clients/python/core/core_private.h"

namespace sinew_python {

namespace {

Model load(const std::string &path) {
  SinewError err;
  SinewModel *model;
  {
    nb::gil_scoped_release unlocked;
    model = sinew_model_load(path.c_str(), &err);
  }
  return own_model(model, err);
}

Model read(nb::bytes bytes, std::optional<std::string> folder) {
  SinewError err;
  SinewModel *model;
  {
    nb::gil_scoped_release unlocked;
    model = sinew_model_read(bytes.c_str(), bytes.size(), folder ? folder->c_str() : nullptr, &err);
  }
  return own_model(model, err);
}

void save(const Model &model, const std::string &path) {
  SinewError err;
  nb::gil_scoped_release unlocked;
  check(sinew_model_save(model.handle.get(), path.c_str(), &err), err);
}

nb::dict sizes(const Model &model) {
  const SinewSizes *s = sinew_model_sizes(model.handle.get());
  nb::dict d;
  d["nq"] = s->nq;
  d["nv"] = s->nv;
  d["na"] = s->na;
  d["nu"] = s->nu;
  d["nbody"] = s->nbody;
  d["njnt"] = s->njnt;
  d["ngeom"] = s->ngeom;
  d["nsite"] = s->nsite;
  d["ntendon"] = s->ntendon;
  d["nactuator"] = s->nactuator;
  d["neq"] = s->neq;
  d["nmocap"] = s->nmocap;
  d["nkey"] = s->nkey;
  d["nsensor"] = s->nsensor;
  d["nsensordata"] = s->nsensordata;
  d["nstate"] = s->nstate;
  return d;
}

// A view of an array that the model owns, read-only, which keeps the model alive.
template <typename T>
nb::object view(const Model &model, const T *x, int rows, int cols) {
  auto *owner = new std::shared_ptr<const SinewModel>(model.handle);
  const nb::capsule keep(owner, [](void *p) noexcept { delete static_cast<std::shared_ptr<const SinewModel> *>(p); });
  return nb::cast(nb::ndarray<nb::numpy, const T>(x, {static_cast<size_t>(rows), static_cast<size_t>(cols)}, keep));
}

nb::object array(const Model &model, const char *name) {
  int rows, cols;
  if (const double *x = sinew_model_array(model.handle.get(), name, &rows, &cols)) return view(model, x, rows, cols);
  if (const int *x = sinew_model_int_array(model.handle.get(), name, &rows, &cols)) return view(model, x, rows, cols);
  return nb::none();
}

std::vector<std::string> fields(const Model &model) {
  std::vector<std::string> names;
  SinewField field;
  for (int i = 0; sinew_model_field(model.handle.get(), i, &field); ++i) names.emplace_back(field.name);
  return names;
}

}  // namespace

void bind_model(nb::module_ &m) {
  nb::class_<Model>(m, "Model", "A model that libsinew has loaded.")
      .def_static("load", &load, nb::arg("path"))
      .def_static("read", &read, nb::arg("bytes"), nb::arg("folder").none())
      .def("save", &save, nb::arg("path"))
      .def("sizes", &sizes)
      .def("array", &array, nb::arg("name"))
      .def("fields", &fields)
      .def("ctrl_range",
           [](const Model &x) {
             return view(x, sinew_model_ctrl_range(x.handle.get()), sinew_model_sizes(x.handle.get())->nu, 2);
           })
      .def(
          "find",
          [](const Model &x, int kind, const char *name) {
            return sinew_model_find(x.handle.get(), static_cast<SinewObject>(kind), name);
          },
          nb::arg("kind"), nb::arg("name"))
      .def(
          "name",
          [](const Model &x, int kind, int id) {
            return sinew_model_name(x.handle.get(), static_cast<SinewObject>(kind), id);
          },
          nb::arg("kind"), nb::arg("id"))
      .def(
          "count",
          [](const Model &x, int kind) { return sinew_model_count(x.handle.get(), static_cast<SinewObject>(kind)); },
          nb::arg("kind"))
      .def(
          "sensor",
          [](const Model &x, int id) {
            const SinewSensorInfo info = sinew_model_sensor(x.handle.get(), id);
            return nb::make_tuple(info.supported, info.differentiable);
          },
          nb::arg("id"));
}

}  // namespace sinew_python
