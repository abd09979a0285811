// MuJoCo's own objects: an MjModel is watched for edits, an MjData is moved by our steps. Objects are handed over
// whole, and their class and version are looked at, so that no call reads memory that is not MuJoCo's.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>
#include <type_traits>

#include "clients/python/core/mujoco_private.h"

namespace sinew_python {

namespace {

// Returns the structure behind an object of the class mujoco.NAME.
template <typename T>
T *structure_of(nb::handle object, const char *name) {
  if (!nb::isinstance(object, nb::module_::import_("mujoco").attr(name)))
    raise(SINEW_ERR_ARGUMENT, (std::string("a mujoco.") + name + " is expected").c_str());
  return reinterpret_cast<T *>(nb::cast<uintptr_t>(object.attr("_address")));
}
const mjModel *mjmodel_of(nb::handle object) { return structure_of<const mjModel>(object, "MjModel"); }
mjData *mjdata_of(nb::handle object) { return structure_of<mjData>(object, "MjData"); }

// Refuses structures that are not those of the headers that this file was built with.
void check_version() {
  const int version = nb::cast<int>(nb::module_::import_("mujoco").attr("mj_version")());
  if (version == mjVERSION_HEADER) return;
  raise(SINEW_ERR_UNSUPPORTED,
        ("the package mujoco has version " + std::to_string(version) + "; expected " + std::to_string(mjVERSION_HEADER))
            .c_str());
}

// Whether MjData of two models have the same arrays.
bool same_sizes(const mjModel *a, const mjModel *b) {
#define X(name) \
  if (a->name != b->name) return false;
  MJMODEL_SIZES
#undef X
  return true;
}

void *pointer_in(const void *structure, size_t offset) {
  void *pointer;
  std::memcpy(&pointer, static_cast<const char *>(structure) + offset, sizeof pointer);
  return pointer;
}

// A copy of the numbers of an MjModel that the engine uses. Those of meshes are left out: they are large, and hardly
// ever change in place.
class Watch {
 public:
  Watch(nb::handle model, const Model &of) {
    check_version();
    const mjModel *m = mjmodel_of(model);
    MJMODEL_POINTERS_PREAMBLE(m)
#define X(type, name, nr, nc) \
  add(of, #name, offsetof(mjModel, name), sizeof(type) * static_cast<size_t>(m->nr) * static_cast<size_t>(nc));
    MJMODEL_POINTERS
#undef X
    for (const Part &part : parts_) std::memcpy(copy_.data() + part.at, pointer_in(m, part.pointer), part.bytes);
    option_ = m->opt;
  }

  // Returns the names of what has changed since the last call: of arrays, and of options ("opt.timestep").
  std::vector<std::string> changes(nb::handle model) {
    const mjModel *m = mjmodel_of(model);
    std::vector<std::string> names;
    for (const Part &part : parts_) {
      char *copy = copy_.data() + part.at;
      const void *now = pointer_in(m, part.pointer);
      if (std::memcmp(copy, now, part.bytes) == 0) continue;
      std::memcpy(copy, now, part.bytes);
      names.emplace_back(part.name);
    }
#define X(type, name, n) \
  if (std::memcmp(&option_.name, &m->opt.name, sizeof option_.name) != 0) names.emplace_back("opt." #name);
#define XVEC X
    MJOPTION_FIELDS
#undef XVEC
#undef X
    option_ = m->opt;
    return names;
  }

  // Returns the numbers that were there at the last call, as bytes.
  nb::bytes numbers() const {
    std::vector<char> all(copy_);
    const char *option = reinterpret_cast<const char *>(&option_);
    all.insert(all.end(), option, option + sizeof option_);
    return nb::bytes(all.data(), all.size());
  }

 private:
  struct Part {
    const char *name;
    size_t pointer, at, bytes;  // where the pointer is in mjModel, where the copy is
  };

  void add(const Model &of, const char *name, size_t pointer, size_t bytes) {
    const SinewModel *model = of.handle.get();
    if (bytes == 0 || std::strncmp(name, "mesh_", 5) == 0) return;
    if (!sinew_model_array(model, name, nullptr, nullptr) && !sinew_model_int_array(model, name, nullptr, nullptr))
      return;
    parts_.push_back({name, pointer, copy_.size(), bytes});
    copy_.resize(copy_.size() + bytes);
  }

  std::vector<Part> parts_;
  std::vector<char> copy_;
  mjOption option_;
};

void multiply_quaternions(const double *a, const double *b, double *ab) {
  ab[0] = a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3];
  ab[1] = a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2];
  ab[2] = a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1];
  ab[3] = a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0];
}

// Writes the orientations that a SinewData has as matrices alone.
void write_quaternions(const mjModel *m, mjData *d) {
  const auto write = [d](int n, const int *body, const double *local, const mjtByte *frame, double *to) {
    for (int i = 0; i < n; ++i) {
      const int b = body ? body[i] : i;
      const bool inertia = frame[i] == mjSAMEFRAME_INERTIA || frame[i] == mjSAMEFRAME_INERTIAROT;
      if (frame[i] == mjSAMEFRAME_NONE)
        multiply_quaternions(d->xquat + 4 * b, local + 4 * i, to + 4 * i);
      else
        std::copy_n((inertia ? d->xiquat : d->xquat) + 4 * b, 4, to + 4 * i);
    }
  };
  write(m->nbody, nullptr, m->body_iquat, m->body_sameframe, d->xiquat);
  write(m->ngeom, m->geom_bodyid, m->geom_quat, m->geom_sameframe, d->geom_xquat);
  write(m->nsite, m->site_bodyid, m->site_quat, m->site_sameframe, d->site_xquat);
}

// Steps that are made before signals are looked at.
constexpr int steps_at_once = 64;

// Moves an MjData by our steps. Two bodies do: `lean` computes what motion needs and makes all steps of a call but the
// last, `full` makes that one and computes all that an MjData has.
class Stepper {
 public:
  Stepper(const Model &of, nb::handle model, nb::handle data) : model_(of) {
    check_version();
    m_ = mjmodel_of(model);
    d_ = mjdata_of(data);
    if (!same_sizes(m_, mjmodel_of(data.attr("model"))))
      raise(SINEW_ERR_ARGUMENT, "the MjData was made of an MjModel of other sizes");
    lean_ = make();
    full_ = make();
#define X(type, name, nr, nc) \
  add<type>(#name, offsetof(mjData, name), static_cast<size_t>(m_->nr) * static_cast<size_t>(nc));
    MJDATA_POINTERS
#undef X
  }

  // Makes steps, at least one, and writes what the last one has computed. The MjData is then in the state before the
  // last step, and finish() brings it to the one after it. An exception leaves the MjData as it was.
  void step(nb::handle model, nb::handle data, int steps) { compute(model, data, steps, make_step); }

  // Makes all of these steps but the last, and writes what is computed at the state that the last one begins with.
  void evaluate(nb::handle model, nb::handle data, int steps) { compute(model, data, steps, sinew_forward); }

  // Makes steps and writes the state alone. An exception leaves the MjData as it was.
  void advance(nb::handle model, nb::handle data, int steps) {
    Use use(busy_, "data");
    begin(model, data, steps, true);
    step_lean(steps);
    write_state(true);
    count_warnings();
  }

  void finish(nb::handle model, nb::handle data) {
    Use use(busy_, "data");
    check_objects(model, data);
    write_state(false);
  }

  // Returns the names of the arrays that step() writes.
  std::vector<std::string> written() const {
    std::vector<std::string> names;
    for (const Array &array : outputs_) names.emplace_back(array.name);
    return names;
  }

 private:
  struct Array {
    const char *name;
    size_t pointer, bytes;  // where the pointer is in mjData
    void *lean, *full;      // arrays of the bodies
  };

  static SinewStatus make_step(SinewData *body, SinewError *err) { return sinew_step(body, 1, err); }

  // Checks the arguments and hands the state over to a body.
  void begin(nb::handle model, nb::handle data, int steps, bool lean) {
    check_objects(model, data);
    if (steps < 1) raise(SINEW_ERR_ARGUMENT, ("nstep is " + std::to_string(steps) + "; expected at least 1").c_str());
    refuse_forces();
    read_inputs(lean);
  }

  void compute(nb::handle model, nb::handle data, int steps, SinewStatus (*last)(SinewData *, SinewError *)) {
    Use use(busy_, "data");
    begin(model, data, steps, steps > 1);
    SinewError err;
    if (steps > 1) {
      step_lean(steps - 1);
      check(sinew_data_copy_state(full_.get(), lean_.get(), &err), err);
    }
    nb::gil_scoped_release unlocked;
    check(last(full_.get(), &err), err);
    if (steps > 1) write_state(true);
    write_outputs();
    count_warnings();
  }

  std::shared_ptr<SinewData> make() const {
    SinewError err;
    SinewData *made = sinew_data_create(model_.handle.get(), &err);
    if (!made) raise(err.status, err.text);
    return std::shared_ptr<SinewData>(made, sinew_data_free);
  }

  static void *array_of(SinewData *body, const SinewField &field) {
    if (field.integer) return sinew_data_int_array(body, field.name, nullptr, nullptr);
    return sinew_data_array(body, field.name, nullptr, nullptr);
  }

  // Notes an array of mjData, where the bodies have the like.
  template <typename T>
  void add(const char *name, size_t pointer, size_t n) {
    // The buffers of a body have its rests of springs behind them.
    const bool buffers = std::strcmp(name, "history") == 0, rests = std::strcmp(name, "plastic") == 0;
    const char *ours = rests ? "history" : name;
    SinewField field;
    int i = 0;
    while (sinew_data_field(lean_.get(), i, &field) && std::strcmp(field.name, ours) != 0) ++i;
    if (n == 0 || !sinew_data_field(lean_.get(), i, &field)) return;
    if (!(field.integer ? std::is_same_v<T, int> : std::is_same_v<T, double>)) return;
    const size_t has = static_cast<size_t>(field.rows) * static_cast<size_t>(field.cols);
    if (has == 0) return;  // sleep's, without the flag
    const size_t wanted = buffers || rests ? static_cast<size_t>(m_->nhistory + m_->nplastic) : n;
    if (has != wanted)
      raise(SINEW_ERR_ARGUMENT, (std::string(name) + ": the MjModel and the Model have other sizes").c_str());
    const auto place = [&](SinewData *body) -> void * {
      return static_cast<T *>(array_of(body, field)) + (rests ? m_->nhistory : 0);
    };
    Array array = {name, pointer, n * sizeof(T), nullptr, place(full_.get())};
    if (field.input) array.lean = place(lean_.get());
    if (std::strcmp(name, "sensordata") == 0) return;  // MuJoCo's functions compute it
    (field.input ? inputs_ : outputs_).push_back(array);
  }

  void check_objects(nb::handle model, nb::handle data) const {
    if (mjmodel_of(model) != m_ || mjdata_of(data) != d_)
      raise(SINEW_ERR_ARGUMENT, "this is not the MjModel and MjData that the steps were set up for");
  }

  // Refuses what the engine has no input for.
  void refuse_forces() const {
    const auto refuse = [](const char *text) { raise(SINEW_ERR_UNSUPPORTED, text); };
    for (int i = 0; i < m_->nv; ++i)
      if (d_->qfrc_applied[i] != 0) refuse("qfrc_applied is not zero: the engine has no input for it");
    for (int i = 0; i < 6 * m_->nbody; ++i)
      if (d_->xfrc_applied[i] != 0) refuse("xfrc_applied is not zero: the engine has no input for it");
    if (m_->neq > 0 && std::memcmp(d_->eq_active, m_->eq_active0, static_cast<size_t>(m_->neq)) != 0)
      refuse("eq_active differs from the model's eq_active0: the engine has no input for it");
  }

  void read_inputs(bool lean) {
    for (const Array &array : inputs_)
      std::memcpy(lean ? array.lean : array.full, pointer_in(d_, array.pointer), array.bytes);
    *sinew_data_array((lean ? lean_ : full_).get(), "time", nullptr, nullptr) = d_->time;
  }

  void step_lean(int steps) {
    SinewError err;
    for (int left = steps; left > 0; left -= steps_at_once) {
      {
        nb::gil_scoped_release unlocked;
        check(sinew_step(lean_.get(), left < steps_at_once ? left : steps_at_once, &err), err);
      }
      if (left > steps_at_once && PyErr_CheckSignals() != 0) throw nb::python_error();
    }
  }

  // Writes the state of one of the bodies.
  void write_state(bool lean) {
    for (const Array &array : inputs_)
      std::memcpy(pointer_in(d_, array.pointer), lean ? array.lean : array.full, array.bytes);
    d_->time = sinew_data_time((lean ? lean_ : full_).get());
  }

  void write_outputs() {
    for (const Array &array : outputs_) std::memcpy(pointer_in(d_, array.pointer), array.full, array.bytes);
    write_quaternions(m_, d_);
    const double nan = std::numeric_limits<double>::quiet_NaN();
    std::fill_n(d_->crb, 10 * m_->nbody, nan);
    std::fill_n(d_->qH, m_->nC, nan);
    std::fill_n(d_->qHDiagInv, m_->nv, nan);
    std::fill_n(d_->qDeriv, m_->nD, nan);
    std::fill_n(d_->qLU, m_->nD, nan);
    d_->flg_energypos = d_->flg_energyvel = d_->flg_subtreevel = d_->flg_rnepost = false;
    d_->solver_niter[0] = *sinew_data_int_array(full_.get(), "solver_niter", nullptr, nullptr);
    if (!write_arena(full_.get(), m_, d_)) ++d_->warning[mjWARN_CONTACTFULL].number;
  }

  void count_warnings() {
    unsigned warnings = 0;
    for (SinewData *body : {lean_.get(), full_.get()}) {
      warnings |= sinew_data_warnings(body);
      sinew_data_clear_warnings(body);
    }
    if (warnings & SINEW_WARN_CONTACTS) ++d_->warning[mjWARN_CONTACTFULL].number;
    if (warnings & SINEW_WARN_CONSTRAINTS) ++d_->warning[mjWARN_CNSTRFULL].number;
    if (warnings & SINEW_WARN_INERTIA) ++d_->warning[mjWARN_INERTIA].number;
  }

  Model model_;  // stays alive
  const mjModel *m_;
  mjData *d_;
  std::shared_ptr<SinewData> lean_, full_;
  std::vector<Array> inputs_, outputs_;
  std::atomic_flag busy_ = ATOMIC_FLAG_INIT;
};

}  // namespace

void bind_mujoco(nb::module_ &m) {
  nb::class_<Watch>(m, "MujocoWatch", "A copy of an MjModel's numbers, to notice edits.")
      .def(nb::init<nb::handle, const Model &>(), nb::arg("mjmodel"), nb::arg("model"))
      .def("changes", &Watch::changes, nb::arg("mjmodel"))
      .def("numbers", &Watch::numbers);
  nb::class_<Stepper>(m, "MujocoStepper", "Moves an MjData by our steps.")
      .def(nb::init<const Model &, nb::handle, nb::handle>(), nb::arg("model"), nb::arg("mjmodel"), nb::arg("mjdata"))
      .def("step", &Stepper::step, nb::arg("mjmodel"), nb::arg("mjdata"), nb::arg("nstep"))
      .def("evaluate", &Stepper::evaluate, nb::arg("mjmodel"), nb::arg("mjdata"), nb::arg("nstep"))
      .def("advance", &Stepper::advance, nb::arg("mjmodel"), nb::arg("mjdata"), nb::arg("nstep"))
      .def("finish", &Stepper::finish, nb::arg("mjmodel"), nb::arg("mjdata"))
      .def_prop_ro("written", &Stepper::written);
}

}  // namespace sinew_python
