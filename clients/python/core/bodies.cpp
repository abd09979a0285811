// Many bodies of one kind, whose states and outputs are rows of the caller's arrays. A thread moves one after the other
// in a body of its own, which stays in the processor's cache; a simulation with a model of its own has its own body.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <tuple>
#include <utility>

#include "clients/python/core/core_private.h"
#include "clients/python/core/threads_private.h"

namespace sinew_python {

namespace {

// An array of doubles or of ints.
using Rows = nb::ndarray<nb::c_contig, nb::device::cpu>;

// A number or an array of a body that has a row for each simulation.
struct Field {
  std::string name;
  bool integer, input;
  int rows, cols;
  size_t bytes() const { return static_cast<size_t>(rows) * cols * (integer ? sizeof(int) : sizeof(double)); }
};

// A body that threads move, and where its arrays lie.
struct Body {
  explicit Body(const Model &of) : model(of) {
    SinewError err;
    SinewData *made = sinew_data_create(model.handle.get(), &err);
    if (!made) raise(err.status, err.text);
    handle = std::shared_ptr<SinewData>(made, sinew_data_free);
  }
  void *find(const Field &field) const {
    return field.integer ? static_cast<void *>(sinew_data_int_array(handle.get(), field.name.c_str(), nullptr, nullptr))
                         : sinew_data_array(handle.get(), field.name.c_str(), nullptr, nullptr);
  }
  Model model;
  std::shared_ptr<SinewData> handle;
  std::vector<char *> at;  // of each bound field
};

std::vector<Field> fields_of(const SinewData *data) {
  std::vector<Field> fields;
  SinewField field;
  for (int i = 0; sinew_data_field(data, i, &field); ++i)
    // Those of rows of constraints change their sizes.
    if (std::strncmp(field.name, "efc_", 4) != 0)
      fields.push_back({field.name, field.integer, field.input, field.rows, field.cols});
  return fields;
}

// A field whose rows are bound.
struct Bound {
  Field field;
  Rows rows;
};

// What the simulations of a call do.
struct Call {
  const int *ids;  // (count), NULL: all
  int count;
  int steps;           // 0: forward
  const double *ctrl;  // (count or 1, steps, nu); NULL: as it is
  bool one_ctrl;
  bool sensors_last = false, sensors_always = false;  // whether the last step computes sensordata, or each does
  std::vector<std::pair<size_t, char *>> records;     // bound field, and where its rows (count, steps, .) go
  std::atomic<int> next{0}, failed{0};
  std::atomic<bool> stop{false};
};

class Bodies {
 public:
  Bodies(const Model &model, int count, int threads);
  std::vector<std::tuple<std::string, bool, bool, int, int>> fields() const;
  void bind(const std::string &name, const Rows &rows);
  void set_model(int sim, const Model *model);
  int run(const std::optional<Integers> &ids, int steps, const std::optional<ConstNumbers> &ctrl, bool one_ctrl,
          const std::vector<std::pair<std::string, Rows>> &records);
  const std::string &error(int sim) const { return errors_.at(check_sim(sim)); }
  int threads() const { return threads_.count(); }

  std::vector<int> status, warnings;

 private:
  int check_sim(int sim) const;
  const Field &field(const std::string &name) const;
  char *data_of_rows(const Rows &rows, const Field &field, size_t count) const;
  size_t bound(const std::string &name) const;
  void point(Body &body) const;
  void work(Call &call, int thread);
  void move(Call &call, int k, int thread);
  SinewStatus steps(Call &call, int k, int thread, Body &body, SinewError *err);
  void record(const Call &call, int k, int t, const Body &body) const;
  void copy(const Body &body, int sim, bool store) const;

  Model model_;
  int count_;
  Threads threads_;
  std::vector<Field> fields_;
  std::vector<Bound> bound_;
  std::vector<Body> shared_;                // one of each thread
  std::vector<std::unique_ptr<Body>> own_;  // of simulations with a model of their own
  std::vector<std::string> errors_;
  std::atomic_flag busy_ = ATOMIC_FLAG_INIT;
  std::chrono::steady_clock::time_point asked_;  // when signals were last looked at
};

Bodies::Bodies(const Model &model, int count, int threads)
    : status(count), warnings(count), model_(model), count_(count), threads_(threads), own_(count), errors_(count) {
  for (int i = 0; i < threads_.count(); ++i) shared_.emplace_back(model);
  fields_ = fields_of(shared_[0].handle.get());
}

std::vector<std::tuple<std::string, bool, bool, int, int>> Bodies::fields() const {
  std::vector<std::tuple<std::string, bool, bool, int, int>> all;
  for (const Field &x : fields_) all.emplace_back(x.name, x.integer, x.input, x.rows, x.cols);
  return all;
}

int Bodies::check_sim(int sim) const {
  if (sim < 0 || sim >= count_)
    raise(SINEW_ERR_ARGUMENT,
          ("simulation " + std::to_string(sim) + ", allowed is 0 to " + std::to_string(count_ - 1)).c_str());
  return sim;
}

const Field &Bodies::field(const std::string &name) const {
  for (const Field &x : fields_)
    if (x.name == name) return x;
  raise(SINEW_ERR_NOT_FOUND, ("a body has no array " + name + " of a size that stays").c_str());
}

// Returns where `count` rows of a field lie.
char *Bodies::data_of_rows(const Rows &rows, const Field &field, size_t count) const {
  const bool right = rows.dtype() == (field.integer ? nb::dtype<int>() : nb::dtype<double>());
  if (!right || rows.nbytes() != count * field.bytes())
    raise(SINEW_ERR_ARGUMENT, (field.name + ": wrong type or number of rows").c_str());
  return static_cast<char *>(rows.data());
}

size_t Bodies::bound(const std::string &name) const {
  for (size_t i = 0; i < bound_.size(); ++i)
    if (bound_[i].field.name == name) return i;
  raise(SINEW_ERR_STATE, (name + " is not bound").c_str());
}

// Looks up where the bound fields of a body lie.
void Bodies::point(Body &body) const {
  for (size_t i = body.at.size(); i < bound_.size(); ++i) {
    void *at = body.find(bound_[i].field);
    if (!at && bound_[i].field.bytes() > 0) raise(SINEW_ERR_MEMORY, "batch: out of memory");
    body.at.push_back(static_cast<char *>(at));
  }
}

void Bodies::bind(const std::string &name, const Rows &rows) {
  Use use(busy_, "batch");
  const Field &of = field(name);
  data_of_rows(rows, of, count_);
  bound_.push_back({of, rows});
  for (Body &body : shared_) point(body);
  for (const std::unique_ptr<Body> &body : own_)
    if (body) point(*body);
}

void Bodies::set_model(int sim, const Model *model) {
  Use use(busy_, "batch");
  check_sim(sim);
  if (!model) {
    own_[sim].reset();
    return;
  }
  auto body = std::make_unique<Body>(*model);
  const std::vector<Field> theirs = fields_of(body->handle.get());
  for (size_t i = 0; i < fields_.size(); ++i)
    if (theirs[i].rows != fields_[i].rows || theirs[i].cols != fields_[i].cols)
      raise(SINEW_ERR_ARGUMENT, ("the model of simulation " + std::to_string(sim) + " has another size of " +
                                 fields_[i].name + " than that of the batch")
                                    .c_str());
  point(*body);
  own_[sim] = std::move(body);
}

// ---- calls ----

// Copies the rows of a simulation: its inputs to the body, or all that is bound from it.
void Bodies::copy(const Body &body, int sim, bool store) const {
  for (size_t i = 0; i < bound_.size(); ++i) {
    const size_t bytes = bound_[i].field.bytes();
    char *row = static_cast<char *>(bound_[i].rows.data()) + bytes * static_cast<size_t>(sim);
    if (bytes == 0) continue;
    if (store)
      std::memcpy(row, body.at[i], bytes);
    else if (bound_[i].field.input)
      std::memcpy(body.at[i], row, bytes);
  }
}

void Bodies::record(const Call &call, int k, int t, const Body &body) const {
  for (const auto &[i, to] : call.records) {
    const size_t bytes = bound_[i].field.bytes();
    if (bytes > 0) std::memcpy(to + bytes * (static_cast<size_t>(k) * call.steps + t), body.at[i], bytes);
  }
}

SinewStatus Bodies::steps(Call &call, int k, int thread, Body &body, SinewError *err) {
  const int nu = sinew_model_sizes(body.model.handle.get())->nu;
  double *ctrl = sinew_data_array(body.handle.get(), "ctrl", nullptr, nullptr);
  SinewStatus status = SINEW_OK;
  for (int t = 0; t < call.steps; ++t) {
    if (call.ctrl && nu > 0 && status == SINEW_OK)
      std::memcpy(ctrl, call.ctrl + (static_cast<size_t>(call.one_ctrl ? 0 : k) * call.steps + t) * nu,
                  nu * sizeof *ctrl);
    sinew_data_set_sensors(body.handle.get(), call.sensors_always || (call.sensors_last && t == call.steps - 1));
    if (status == SINEW_OK) status = sinew_step(body.handle.get(), 1, err);
    if (status != SINEW_OK && call.records.empty()) break;
    record(call, k, t, body);
    if (thread == 0 && std::chrono::steady_clock::now() - asked_ > std::chrono::milliseconds(10)) {
      call.stop = call.stop || interrupt(nullptr);
      asked_ = std::chrono::steady_clock::now();
    }
    if (call.stop) return SINEW_ERR_INTERRUPTED;
  }
  return status;
}

// Moves simulation k of a call. One that fails, or is interrupted, stays as it was; but a record goes up to its last
// good state, and so does its simulation.
void Bodies::move(Call &call, int k, int thread) {
  const int sim = call.ids ? call.ids[k] : k;
  Body &body = own_[sim] ? *own_[sim] : shared_[thread];
  SinewError err;
  copy(body, sim, false);
  sinew_data_clear_warnings(body.handle.get());
  const SinewStatus done = call.steps > 0 ? steps(call, k, thread, body, &err) : sinew_forward(body.handle.get(), &err);
  if (done == SINEW_ERR_INTERRUPTED) return;
  status[sim] = done;
  warnings[sim] = static_cast<int>(sinew_data_warnings(body.handle.get()));
  errors_[sim] = done == SINEW_OK ? "" : err.text;
  if (done != SINEW_OK) ++call.failed;
  if (done == SINEW_OK || !call.records.empty()) copy(body, sim, true);
}

void Bodies::work(Call &call, int thread) {
  for (int k; !call.stop && (k = call.next++) < call.count;) move(call, k, thread);
}

int Bodies::run(const std::optional<Integers> &ids, int steps, const std::optional<ConstNumbers> &ctrl, bool one_ctrl,
                const std::vector<std::pair<std::string, Rows>> &records) {
  Use use(busy_, "batch");
  if (!threads_.here()) raise(SINEW_ERR_STATE, "the batch was made before a fork(); make one in this process");
  Call call;
  call.ids = ids ? ids->data() : nullptr;
  call.count = ids ? static_cast<int>(ids->size()) : count_;
  for (int i = 0; ids && i < call.count; ++i) {
    check_sim(call.ids[i]);
    if (i > 0 && call.ids[i] <= call.ids[i - 1]) raise(SINEW_ERR_ARGUMENT, "ids: not sorted, or not unique");
  }
  if (steps < 0) raise(SINEW_ERR_ARGUMENT, ("nstep: " + std::to_string(steps) + ", allowed is at least 0").c_str());
  const size_t n = static_cast<size_t>(call.count), t = static_cast<size_t>(steps);
  call.steps = steps;
  call.one_ctrl = one_ctrl;
  call.ctrl = data_of(ctrl, "ctrl", (one_ctrl ? 1 : n) * t * sinew_model_sizes(model_.handle.get())->nu);
  for (const auto &[name, rows] : records)
    call.records.emplace_back(bound(name), data_of_rows(rows, field(name), n * t));
  for (const Bound &x : bound_) call.sensors_last = call.sensors_last || x.field.name == "sensordata";
  for (const auto &record : records) call.sensors_always = call.sensors_always || record.first == "sensordata";
  asked_ = std::chrono::steady_clock::now();
  {
    nb::gil_scoped_release unlocked;
    threads_.run([&](int thread) { work(call, thread); }, [&] { call.stop = call.stop || interrupt(nullptr); });
  }
  if (call.stop) raise(SINEW_ERR_INTERRUPTED, "interrupted");
  return call.failed;
}

// A view of what the bodies hold, which keeps them alive.
nb::ndarray<nb::numpy, const int, nb::ndim<1>> view(nb::handle self, const std::vector<int> &x) {
  return {x.data(), {x.size()}, self};
}

}  // namespace

void bind_bodies(nb::module_ &m) {
  nb::class_<Bodies>(m, "Bodies", "Many bodies, whose arrays are rows of the caller's.")
      .def(
          "__init__",
          [](Bodies *self, const Model &model, int count, int threads) {
            if (count < 1 || count > 1 << 20)
              raise(SINEW_ERR_ARGUMENT, ("nsim: " + std::to_string(count) + ", allowed is 1 to 1048576").c_str());
            if (threads < 0 || threads > 1024)
              raise(SINEW_ERR_ARGUMENT, ("threads: " + std::to_string(threads) + ", allowed is 0 to 1024").c_str());
            new (self) Bodies(model, count, threads);
          },
          nb::arg("model"), nb::arg("nsim"), nb::arg("threads"))
      .def("fields", &Bodies::fields, "Return name, whether of ints, whether an input, rows and columns of each array.")
      .def("bind", &Bodies::bind, nb::arg("name"), nb::arg("rows"),
           nb::sig("def bind(self, name: str, rows: numpy.typing.NDArray[typing.Any]) -> None"))
      .def("set_model", &Bodies::set_model, nb::arg("sim"), nb::arg("model").none())
      .def("run", &Bodies::run, nb::arg("ids").none(), nb::arg("steps"), nb::arg("ctrl").none(), nb::arg("one_ctrl"),
           nb::arg("records"),
           nb::sig("def run(self, ids: numpy.typing.NDArray[numpy.int32] | None, steps: int, "
                   "ctrl: numpy.typing.NDArray[numpy.float64] | None, one_ctrl: bool, "
                   "records: list[tuple[str, numpy.typing.NDArray[typing.Any]]]) -> int"))
      .def("error", &Bodies::error, nb::arg("sim"))
      .def_prop_ro("threads", &Bodies::threads)
      .def_prop_ro("status", [](nb::handle_t<Bodies> self) { return view(self, nb::cast<Bodies &>(self).status); })
      .def_prop_ro("warnings", [](nb::handle_t<Bodies> self) { return view(self, nb::cast<Bodies &>(self).warnings); });
}

}  // namespace sinew_python
