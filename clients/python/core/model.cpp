// Models: loading, sizes, arrays, names, options.
#include <climits>
#include <type_traits>

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
  const char *data = bytes.c_str();
  const size_t size = bytes.size();
  {
    nb::gil_scoped_release unlocked;
    model = sinew_model_read(data, size, folder ? folder->c_str() : nullptr, &err);
  }
  return own_model(model, err);
}

void save(const Model &model, const std::string &path) {
  SinewError err;
  nb::gil_scoped_release unlocked;
  check(sinew_model_save(model.handle.get(), path.c_str(), &err), err);
}

nb::typed<nb::dict, nb::str, int> sizes(const Model &model) {
  const SinewSizes *s = sinew_model_sizes(model.handle.get());
  nb::typed<nb::dict, nb::str, int> d;
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
  d["nhistory"] = s->nhistory;
  d["nplastic"] = s->nplastic;
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

SinewObject object_kind(int kind) {
  if (kind < SINEW_BODY || kind > SINEW_EQUALITY)
    raise(SINEW_ERR_ARGUMENT, ("kind " + std::to_string(kind) + ": there is none").c_str());
  return static_cast<SinewObject>(kind);
}

// Calls f(name, reference to the option) for each option that has one value in all of a model.
template <typename F>
void for_each_option(SinewOptions &o, F f) {
  f("timestep", o.timestep);
  f("impratio", o.impratio);
  f("tolerance", o.tolerance);
  f("ls_tolerance", o.ls_tolerance);
  f("ccd_tolerance", o.ccd_tolerance);
  f("gravity", o.gravity);
  f("o_margin", o.o_margin);
  f("o_solref", o.o_solref);
  f("o_solimp", o.o_solimp);
  f("o_friction", o.o_friction);
  f("integrator", o.integrator);
  f("cone", o.cone);
  f("iterations", o.iterations);
  f("ls_iterations", o.ls_iterations);
  f("ccd_iterations", o.ccd_iterations);
  f("disableflags", o.disableflags);
  f("enableflags", o.enableflags);
  f("disableactuator", o.disableactuator);
  f("noslip_iterations", o.noslip_iterations);
  f("noslip_tolerance", o.noslip_tolerance);
  f("density", o.density);
  f("viscosity", o.viscosity);
  f("wind", o.wind);
  f("magnetic", o.magnetic);
  f("sleep_tolerance", o.sleep_tolerance);
  f("contact", o.contact);
  f("contact_width", o.contact_width);
  f("contact_stiffness", o.contact_stiffness);
  f("contact_restitution", o.contact_restitution);
}

[[noreturn]] void refuse_option(const char *name, size_t expected) {
  raise(SINEW_ERR_ARGUMENT, (std::string("option ") + name + ": expected " + std::to_string(expected) +
                             (expected == 1 ? " number" : " numbers"))
                                .c_str());
}

template <typename T>
void take_option(nb::handle from, const char *name, T &to) {
  if constexpr (std::is_array_v<T>) {
    std::vector<double> values;
    if (!nb::try_cast(from, values) || values.size() != std::extent_v<T>) refuse_option(name, std::extent_v<T>);
    std::copy(values.begin(), values.end(), to);
  } else if (!nb::try_cast(from, to)) {
    refuse_option(name, 1);
  }
}

SinewOptions options_of(const Model &model) {
  SinewError err;
  SinewOptions o = sinew_default_options();
  check(sinew_model_get_options(model.handle.get(), &o, &err), err);
  return o;
}

nb::typed<nb::dict, nb::str, nb::any> options(const Model &model) {
  SinewOptions o = options_of(model);
  nb::typed<nb::dict, nb::str, nb::any> d;
  for_each_option(o, [&d](const char *name, auto &value) {
    using T = std::remove_reference_t<decltype(value)>;
    if constexpr (std::is_array_v<T>)
      d[name] = nb::tuple(nb::cast(std::vector<double>(std::begin(value), std::end(value))));
    else
      d[name] = value;
  });
  return d;
}

// Returns a copy of the model with the options that `changes` has.
Model with_options(const Model &model, nb::typed<nb::dict, nb::str, nb::any> changes) {
  SinewOptions o = options_of(model);
  const auto take = [&changes](const char *name, auto &to) {
    if (changes.contains(name)) take_option(changes[name], name, to);
  };
  for_each_option(o, take);
  take("contact_solref", o.contact_solref);
  take("contact_solimp", o.contact_solimp);
  SinewError err;
  SinewModel *changed;
  {
    nb::gil_scoped_release unlocked;
    changed = sinew_model_with_options(model.handle.get(), &o, &err);
  }
  return own_model(changed, err);
}

// Returns a copy of the model whose constants at qpos0 are made anew.
Model with_constants(const Model &model) {
  SinewError err;
  SinewModel *made;
  {
    nb::gil_scoped_release unlocked;
    made = sinew_model_with_constants(model.handle.get(), &err);
  }
  return own_model(made, err);
}

// Returns a copy of the model with other arrays. A vector has rows of one number.
Model with_arrays(const Model &model, const std::vector<std::pair<std::string, ConstNumbers>> &given) {
  std::vector<SinewArray> arrays;
  for (const auto &[name, x] : given) {
    if (x.ndim() < 1 || x.ndim() > 2 || x.size() > INT_MAX)
      raise(SINEW_ERR_ARGUMENT, (name + ": expected a vector or a matrix").c_str());
    const int rows = static_cast<int>(x.shape(0)), cols = x.ndim() == 1 ? 1 : static_cast<int>(x.shape(1));
    arrays.push_back({name.c_str(), x.data(), rows, cols});
  }
  SinewError err;
  SinewModel *changed;
  {
    nb::gil_scoped_release unlocked;
    changed = sinew_model_with_arrays(model.handle.get(), arrays.data(), static_cast<int>(arrays.size()), &err);
  }
  return own_model(changed, err);
}

// Runs a function of two arrays of the model's coordinates, `first` (nq) and `second` (n), that fills `out` (m).
template <typename Call>
void tangent_call(const ConstNumbers &first, size_t nq, const ConstNumbers &second, size_t n, const Numbers &out,
                  size_t m, Call call) {
  if (first.size() != nq || second.size() != n || out.size() != m)
    raise(SINEW_ERR_ARGUMENT, "qpos, tangent: a wrong size");
  SinewError err;
  check(call(first.data(), second.data(), out.data(), &err), err);
}

void integrate(const Model &model, const ConstNumbers &qpos, const ConstNumbers &tangent, double scale,
               const Numbers &moved) {
  const SinewSizes *s = sinew_model_sizes(model.handle.get());
  tangent_call(qpos, s->nq, tangent, s->nv, moved, s->nq,
               [&](const double *q, const double *t, double *to, SinewError *err) {
                 return sinew_model_integrate(model.handle.get(), q, t, scale, to, err);
               });
}

void difference(const Model &model, const ConstNumbers &qpos1, const ConstNumbers &qpos2, const Numbers &tangent) {
  const SinewSizes *s = sinew_model_sizes(model.handle.get());
  tangent_call(qpos1, s->nq, qpos2, s->nq, tangent, s->nv,
               [&](const double *a, const double *b, double *to, SinewError *err) {
                 return sinew_model_difference(model.handle.get(), a, b, to, err);
               });
}

}  // namespace

ModelTangents::ModelTangents(const Model &model, const std::vector<Model> &plus, const std::vector<Model> &minus,
                             const std::vector<double> &step) {
  if (plus.size() != step.size() || minus.size() != step.size())
    raise(SINEW_ERR_ARGUMENT, "plus, minus and steps: as many of each are expected");
  std::vector<const SinewModel *> up, down;
  for (const Model &x : plus) up.push_back(x.handle.get());
  for (const Model &x : minus) down.push_back(x.handle.get());
  SinewError err;
  SinewParameters *made = sinew_parameters_create(model.handle.get(), up.data(), down.data(), step.data(),
                                                  static_cast<int>(step.size()), &err);
  if (!made) raise(err.status, err.text);
  handle = std::shared_ptr<const SinewParameters>(
      made, [](const SinewParameters *x) { sinew_parameters_free(const_cast<SinewParameters *>(x)); });
}

void bind_model(nb::module_ &m) {
  nb::class_<ModelTangents>(m, "ModelTangents", "How parameters move a model.")
      .def(nb::init<const Model &, const std::vector<Model> &, const std::vector<Model> &,
                    const std::vector<double> &>(),
           nb::arg("model"), nb::arg("plus"), nb::arg("minus"), nb::arg("step"));
  nb::class_<Model>(m, "Model", "A model that libsinew has loaded.")
      .def_static("load", &load, nb::arg("path"))
      .def_static("read", &read, nb::arg("data"), nb::arg("folder").none())
      .def("save", &save, nb::arg("path"))
      .def("sizes", &sizes)
      .def("array", &array, nb::arg("name"),
           nb::sig("def array(self, name: str) -> numpy.typing.NDArray[typing.Any] | None"))
      .def("fields", &fields)
      .def(
          "ctrl_range",
          [](const Model &x) {
            return view(x, sinew_model_ctrl_range(x.handle.get()), sinew_model_sizes(x.handle.get())->nu, 2);
          },
          nb::sig("def ctrl_range(self) -> numpy.typing.NDArray[numpy.float64]"))
      .def(
          "find",
          [](const Model &x, int kind, const char *name) {
            return sinew_model_find(x.handle.get(), object_kind(kind), name);
          },
          nb::arg("kind"), nb::arg("name"))
      .def(
          "name",
          [](const Model &x, int kind, int id) { return sinew_model_name(x.handle.get(), object_kind(kind), id); },
          nb::arg("kind"), nb::arg("id"))
      .def(
          "count", [](const Model &x, int kind) { return sinew_model_count(x.handle.get(), object_kind(kind)); },
          nb::arg("kind"))
      .def(
          "sensor",
          [](const Model &x, int id) {
            const SinewSensorInfo info = sinew_model_sensor(x.handle.get(), id);
            return std::make_pair(info.supported, info.differentiable);
          },
          nb::arg("id"))
      .def("options", &options)
      .def("with_options", &with_options, nb::arg("changes"))
      .def("with_arrays", &with_arrays, nb::arg("arrays"))
      .def("with_constants", &with_constants)
      .def("integrate", &integrate, nb::arg("qpos"), nb::arg("tangent"), nb::arg("scale"), nb::arg("moved"))
      .def("difference", &difference, nb::arg("qpos1"), nb::arg("qpos2"), nb::arg("tangent"));
}

}  // namespace sinew_python
