// Rollouts and the way back through them as functions that XLA calls, from threads of its own and without Python's
// lock. sinew/jax.py registers them and says what their arguments are.
#include <algorithm>
#include <array>
#include <cstring>
#include <initializer_list>
#include <list>
#include <map>
#include <mutex>
#include <new>

#include "clients/python/core/core_private.h"
#include "clients/python/core/xla_abi_private.h"

namespace sinew_python {

namespace {

struct Failure {
  xla::ErrorCode code;
  std::string text;
};

void require(SinewStatus status, const SinewError &err) {
  if (status == SINEW_OK) return;
  const xla::ErrorCode code = status == SINEW_ERR_ARGUMENT      ? xla::error_argument
                              : status == SINEW_ERR_MEMORY      ? xla::error_memory
                              : status == SINEW_ERR_STATE       ? xla::error_state
                              : status == SINEW_ERR_UNSUPPORTED ? xla::error_unsupported
                                                                : xla::error_other;
  throw Failure{code, err.text};
}

// ---- arrays ----

// Checks shape and type of an array of XLA, which sinew/jax.py has made; returns how many numbers it has.
size_t check_shape(const xla::Buffer &x, const char *name, std::initializer_list<int64_t> shape) {
  size_t size = 1;
  for (const int64_t n : shape) size *= static_cast<size_t>(n);
  if (x.rank != static_cast<int64_t>(shape.size()) || !std::equal(shape.begin(), shape.end(), x.dims))
    throw Failure{xla::error_argument, std::string(name) + ": not of the shape that belongs to this model"};
  if (x.type != xla::type_f32 && x.type != xla::type_f64)
    throw Failure{xla::error_argument, std::string(name) + ": neither float32 nor float64"};
  return size;
}

// Numbers that XLA hands over, as doubles.
class Input {
 public:
  Input() = default;
  Input(const xla::Buffer &x, const char *name, std::initializer_list<int64_t> shape)
      : size_(check_shape(x, name, shape)), data_(static_cast<const double *>(x.data)) {
    if (x.type == xla::type_f64) return;
    const float *from = static_cast<const float *>(x.data);
    copy_.assign(from, from + size_);
    data_ = copy_.data();
  }
  size_t size() const { return size_; }
  const double *data() const { return size_ > 0 ? data_ : nullptr; }
  // Returns part i of n; NULL where it is all zeros.
  const double *part(size_t i, size_t n) const {
    const size_t length = size_ / n;
    const double *from = data_ + i * length;
    return std::any_of(from, from + length, [](double y) { return y != 0; }) ? from : nullptr;
  }

 private:
  size_t size_ = 0;
  const double *data_ = nullptr;
  std::vector<double> copy_;
};

// Room for numbers that go to XLA, as doubles; give() rounds them where XLA wants floats.
class Output {
 public:
  Output(const xla::Buffer &x, const char *name, std::initializer_list<int64_t> shape)
      : size_(check_shape(x, name, shape)), to_(x.type == xla::type_f32 ? static_cast<float *>(x.data) : nullptr) {
    if (to_) copy_.resize(size_);
    data_ = to_ ? copy_.data() : static_cast<double *>(x.data);
  }
  double *data(size_t i = 0, size_t n = 1) { return size_ > 0 ? data_ + i * (size_ / n) : nullptr; }
  void give() const {
    if (to_) std::transform(copy_.begin(), copy_.end(), to_, [](double y) { return static_cast<float>(y); });
  }

 private:
  size_t size_;
  float *to_;
  double *data_;
  std::vector<double> copy_;
};

// ---- rollouts that are kept ----

enum { QPOS, QVEL, ACT, TIME, MOCAP, WARMSTART, CTRL, INPUTS };

// Initial states and controls of rollouts. An array without rows is as in the model.
struct Start {
  Start(const SinewSizes &s, const xla::CallFrame &frame, int64_t rollouts);
  int count, steps;
  bool one_state = true, one_ctrl = true;
  std::array<Input, INPUTS> x;
};

Start::Start(const SinewSizes &s, const xla::CallFrame &frame, int64_t rollouts) {
  static const char *const names[INPUTS] = {"qpos", "qvel", "act", "time", "mocap", "qacc_warmstart", "ctrl"};
  xla::Buffer *const *const in = frame.arguments.data;
  for (int i = 0; i < INPUTS; ++i) {
    const int64_t rows = in[i]->rank > 0 ? in[i]->dims[0] : -1;
    if (rows != rollouts && rows != 1 && (rows != 0 || i == CTRL))
      throw Failure{xla::error_argument, std::string(names[i]) + ": the number of rows is not that of rollouts"};
    if (rows == rollouts) (i == CTRL ? one_ctrl : one_state) = rollouts == 1;
  }
  const auto take = [&](int i, std::initializer_list<int64_t> shape) { x[i] = Input(*in[i], names[i], shape); };
  const auto rows = [&](int i) { return in[i]->dims[0]; };
  const int64_t t = in[CTRL]->rank > 1 ? in[CTRL]->dims[1] : 0;
  take(QPOS, {rows(QPOS), s.nq});
  take(QVEL, {rows(QVEL), s.nv});
  take(ACT, {rows(ACT), s.na});
  take(TIME, {rows(TIME)});
  take(MOCAP, {rows(MOCAP), s.nmocap, 7});
  take(WARMSTART, {rows(WARMSTART), s.nv});
  take(CTRL, {rows(CTRL), t, s.nu});
  for (int i = 0; i < CTRL; ++i)
    if (rows(i) == 1 && !one_state)
      throw Failure{xla::error_argument, std::string(names[i]) + ": one row, where other arrays of states have more"};
  count = static_cast<int>(rollouts);
  steps = static_cast<int>(t);
}

// A model and how derivatives are made.
struct Engine {
  Model model;
  std::optional<Cfd> cfd;  // contacts from distance
};

// A batch and what its latest rollouts were made of.
struct Kept {
  std::shared_ptr<const Engine> engine;
  std::shared_ptr<SinewBatch> batch;
  int capacity, steps;
  bool gradients;
  bool waiting = false;  // for the first way back through them
  std::array<int, 4> shape{};
  std::array<std::vector<double>, INPUTS> start;

  static std::array<int, 4> shape_of(const Start &s) { return {s.count, s.steps, s.one_state, s.one_ctrl}; }
  bool fits(const Engine *of, const Start &s, bool way_back) const {
    return engine.get() == of && gradients == way_back && capacity >= s.count && steps >= s.steps;
  }
  // Returns whether its rollouts are those of `s`, to the last bit.
  bool is_of(const Engine *of, const Start &s) const {
    if (engine.get() != of || !gradients || shape != shape_of(s)) return false;
    for (int i = 0; i < INPUTS; ++i) {
      const size_t size = start[i].size();
      if (size != s.x[i].size() || (size > 0 && memcmp(start[i].data(), s.x[i].data(), size * sizeof(double)) != 0))
        return false;
    }
    return true;
  }
  void remember(const Start &s) {
    shape = shape_of(s);
    for (int i = 0; i < INPUTS; ++i) start[i].assign(s.x[i].data(), s.x[i].data() + s.x[i].size());
  }
};

// The batches of a backend, which serves one call at a time: calls hold its lock.
class Device {
 public:
  explicit Device(const Backend &on) : backend_(on) {}
  std::mutex lock;
  // Returns the rollouts of `start`, which may be kept; NULL without.
  Kept *find(const Engine *engine, const Start &start);
  // Makes rollouts; results go where `r` says.
  Kept &roll(const std::shared_ptr<const Engine> &engine, const Start &start, bool gradients, SinewRollouts r);
  // Returns the number of batches.
  size_t batches() {
    const std::lock_guard<std::mutex> guard(lock);
    return kept_.size();
  }
  std::atomic<int> remade = 0;  // rollouts that a way back had to make again

 private:
  Kept &room(const std::shared_ptr<const Engine> &engine, const Start &start, bool gradients);
  static constexpr size_t most = 8;
  Backend backend_;
  std::list<Kept> kept_;  // latest used first
};

Kept *Device::find(const Engine *engine, const Start &start) {
  for (auto x = kept_.begin(); x != kept_.end(); ++x) {
    if (!x->is_of(engine, start)) continue;
    kept_.splice(kept_.begin(), kept_, x);
    return &kept_.front();
  }
  return nullptr;
}

// Returns a batch with room for rollouts: the one that was used longest ago among those nobody waits for, or a new one.
Kept &Device::room(const std::shared_ptr<const Engine> &engine, const Start &start, bool gradients) {
  const auto oldest = [this](auto &&suits) {
    auto x = kept_.end();
    while (x != kept_.begin())
      if (suits(*--x)) return x;
    return kept_.end();
  };
  auto found = oldest([&](const Kept &x) { return !x.waiting && x.fits(engine.get(), start, gradients); });
  if (found != kept_.end()) {
    kept_.splice(kept_.begin(), kept_, found);
    return kept_.front();
  }
  if (kept_.size() >= most) {
    found = oldest([](const Kept &x) { return !x.waiting; });
    kept_.erase(found != kept_.end() ? found : std::prev(kept_.end()));
  }
  SinewBatchDef def = sinew_default_batch();
  def.model = engine->model.handle.get();
  def.backend = backend_.handle.get();
  def.capacity = start.count;
  def.steps = start.steps;
  def.gradients = gradients;
  def.cfd = engine->cfd ? &engine->cfd->settings : nullptr;
  SinewError err;
  SinewBatch *batch = sinew_batch_create(&def, &err);
  if (!batch) require(err.status, err);
  Kept &kept = kept_.emplace_front();
  kept.engine = engine;
  kept.batch = std::shared_ptr<SinewBatch>(batch, sinew_batch_free);
  kept.capacity = start.count;
  kept.steps = start.steps;
  kept.gradients = gradients;
  return kept;
}

Kept &Device::roll(const std::shared_ptr<const Engine> &engine, const Start &start, bool gradients, SinewRollouts r) {
  Kept &kept = room(engine, start, gradients);
  kept.shape = {};
  kept.waiting = false;
  r.count = start.count;
  r.steps = start.steps;
  r.one_state = start.one_state;
  r.one_ctrl = start.one_ctrl;
  r.qpos = start.x[QPOS].data();
  r.qvel = start.x[QVEL].data();
  r.act = start.x[ACT].data();
  r.time = start.x[TIME].data();
  r.mocap = start.x[MOCAP].data();
  r.qacc_warmstart = start.x[WARMSTART].data();
  r.ctrl = start.x[CTRL].data();
  SinewError err;
  require(sinew_batch_rollout(kept.batch.get(), &r, &err), err);
  if (gradients) kept.remember(start);
  return kept;
}

// ---- what XLA calls ----

// What handlers find by name: for ever, for XLA may keep what it has compiled.
struct Target {
  std::shared_ptr<Device> device;
  std::shared_ptr<const Engine> engine;
};
std::mutex registry_lock;
std::map<std::string, Target> &registry() {
  static auto *all = new std::map<std::string, Target>;
  return *all;
}

Target target_of(const xla::Attributes &attributes) {
  if (attributes.size != 1 || attributes.types[0] != xla::attribute_string)
    throw Failure{xla::error_argument, "a call of another version of sinew"};
  const auto *text = static_cast<const xla::Text *>(attributes.data[0]);
  const std::lock_guard<std::mutex> guard(registry_lock);
  const auto found = registry().find(std::string(text->data, text->size));
  if (found == registry().end())
    throw Failure{xla::error_state, "the model of this compiled function is not in this process: trace it again"};
  return found->second;
}

void check_sizes(const xla::CallFrame &frame, int64_t arguments, int64_t results) {
  if (frame.arguments.size != arguments || frame.results.size != results)
    throw Failure{xla::error_argument, "a call of another version of sinew"};
}

// Returns the number of rollouts: that of a vector of statuses.
int64_t rollouts_of(const xla::Buffer &status) {
  if (status.rank != 1 || status.type != xla::type_s32)
    throw Failure{xla::error_argument, "status: not a vector of int32"};
  return status.dims[0];
}

void forward(const xla::CallFrame &frame, bool gradients) {
  check_sizes(frame, INPUTS, 5);
  const Target target = target_of(frame.attributes);
  const SinewSizes &s = *sinew_model_sizes(target.engine->model.handle.get());
  xla::Buffer *const *const to = frame.results.data;
  const int64_t n = rollouts_of(*to[4]);
  const Start start(s, frame, n);
  const int64_t rows = start.steps + 1;
  Output qpos(*to[0], "qpos", {n, rows, s.nq}), qvel(*to[1], "qvel", {n, rows, s.nv});
  Output act(*to[2], "act", {n, rows, s.na}), sensordata(*to[3], "sensordata", {n, rows, s.nsensordata});
  SinewRollouts r = sinew_default_rollouts();
  r.out_qpos = qpos.data();
  r.out_qvel = qvel.data();
  r.out_act = act.data();
  r.out_sensordata = sensordata.data();
  r.status = static_cast<int *>(to[4]->data);
  {
    const std::lock_guard<std::mutex> guard(target.device->lock);
    target.device->roll(target.engine, start, gradients, r).waiting = gradients;
  }
  for (const Output *x : {&qpos, &qvel, &act, &sensordata}) x->give();
}

void backward(const xla::CallFrame &frame) {
  check_sizes(frame, INPUTS + 5, 4);
  const Target target = target_of(frame.attributes);
  const SinewSizes &s = *sinew_model_sizes(target.engine->model.handle.get());
  xla::Buffer *const *const in = frame.arguments.data + INPUTS;
  xla::Buffer *const *const to = frame.results.data;
  const int64_t n = rollouts_of(*in[0]), m = in[1]->rank > 0 ? in[1]->dims[0] : 0;
  const Start start(s, frame, n);
  const int64_t rows = start.steps + 1;
  const Input qpos(*in[1], "qpos", {m, n, rows, s.nq}), qvel(*in[2], "qvel", {m, n, rows, s.nv});
  const Input act(*in[3], "act", {m, n, rows, s.na});
  const Input sensordata(*in[4], "sensordata", {m, n, rows, s.nsensordata});
  Output out_ctrl(*to[0], "ctrl", {m, n, start.steps, s.nu}), out_qpos(*to[1], "qpos", {m, n, s.nq});
  Output out_qvel(*to[2], "qvel", {m, n, s.nv}), out_act(*to[3], "act", {m, n, s.na});
  {
    const std::lock_guard<std::mutex> guard(target.device->lock);
    Kept *kept = target.device->find(target.engine.get(), start);
    if (!kept) {
      kept = &target.device->roll(target.engine, start, true, sinew_default_rollouts());
      ++target.device->remade;
    }
    kept->waiting = false;
    const size_t sets = static_cast<size_t>(m);
    for (size_t i = 0; i < sets; ++i) {
      SinewTrajectoryBars bars = sinew_default_bars();
      bars.coordinates = SINEW_ARRAY;
      bars.qpos = qpos.part(i, sets);
      bars.qvel = qvel.part(i, sets);
      bars.act = act.part(i, sets);
      bars.sensordata = sensordata.part(i, sets);
      SinewGradients out = sinew_default_gradients();
      out.ctrl = out_ctrl.data(i, sets);
      out.qpos = out_qpos.data(i, sets);
      out.qvel = out_qvel.data(i, sets);
      out.act = out_act.data(i, sets);
      SinewError err;
      require(sinew_batch_vjp(kept->batch.get(), &bars, &out, &err), err);
    }
  }
  for (const Output *x : {&out_ctrl, &out_qpos, &out_qvel, &out_act}) x->give();
}

void rollout(const xla::CallFrame &frame) { forward(frame, false); }
void rollout_kept(const xla::CallFrame &frame) { forward(frame, true); }

// Answers what XLA asks of a handler when it is registered: the version of the interface, XLA's own where it says that
// one and its layouts are known. The oldest that is known does not say it.
void describe(const xla::CallFrame &frame) {
  xla::Metadata *metadata = reinterpret_cast<xla::MetadataExtension *>(frame.extensions)->metadata;
  metadata->version.major = xla::version_major;
  metadata->version.minor =
      frame.api ? std::min<int>(xla::version_minor_newest, frame.api->version.minor) : xla::version_minor_oldest;
  metadata->traits = 0;
}

// Calls a function for XLA; what it throws becomes XLA's error.
template <void (*function)(const xla::CallFrame &)>
xla::Error *handler(xla::CallFrame *frame) {
  xla::ErrorCreate error = {sizeof error, nullptr, "out of memory", xla::error_memory};
  Failure failure;
  try {
    if (frame->extensions && frame->extensions->type == xla::extension_metadata)
      describe(*frame);
    else
      function(*frame);
    return nullptr;
  } catch (Failure &x) {
    failure = std::move(x);
    error.code = failure.code;
    error.message = failure.text.c_str();
  } catch (const std::bad_alloc &) {
  }
  return frame->api->create_error(&error);
}

template <void (*function)(const xla::CallFrame &)>
nb::capsule capsule() {
  return nb::capsule(reinterpret_cast<void *>(&handler<function>));
}

// A device as Python holds it: what is registered stays, Python's objects need not.
struct XlaDevice {
  explicit XlaDevice(const Backend &backend) : device(std::make_shared<Device>(backend)) {}
  std::shared_ptr<Device> device;
};

void add(const XlaDevice &x, const std::string &key, const Model &model, const Cfd *cfd) {
  auto engine = std::make_shared<Engine>();
  engine->model = model;
  if (cfd) engine->cfd.emplace(*cfd);
  const std::lock_guard<std::mutex> guard(registry_lock);
  registry().try_emplace(key, Target{x.device, engine});
}

}  // namespace

void bind_xla(nb::module_ &m) {
  nb::class_<XlaDevice>(m, "XlaDevice", "The batches of a backend that XLA's calls use.")
      .def(nb::init<const Backend &>(), nb::arg("backend"))
      .def("add", &add, nb::arg("key"), nb::arg("model"), nb::arg("cfd").none(),
           "Make rollouts of a model known to XLA's calls under a key of this model and these settings alone.")
      .def_prop_ro("batches", [](const XlaDevice &x) { return x.device->batches(); })
      .def_prop_ro("remade", [](const XlaDevice &x) { return x.device->remade.load(); });
  m.def("xla_rollout", &capsule<rollout>, "Return the function that makes rollouts for XLA.");
  m.def("xla_rollout_kept", &capsule<rollout_kept>, "Return the one that also keeps what the way back needs.");
  m.def("xla_rollout_vjp", &capsule<backward>, "Return the one that goes back.");
}

}  // namespace sinew_python
