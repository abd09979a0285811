// Declares what the files of the module share: handles that own those of libsinew, and errors.
#ifndef SINEW_PYTHON_CORE_H_
#define SINEW_PYTHON_CORE_H_

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "clients/include/sinew.h"

namespace nb = nanobind;

namespace sinew_python {

// An array of numbers as callers pass it: contiguous, of any shape. Who uses it checks its size.
using Numbers = nb::ndarray<double, nb::c_contig, nb::device::cpu>;
using ConstNumbers = nb::ndarray<const double, nb::c_contig, nb::device::cpu>;
using Integers = nb::ndarray<int, nb::c_contig, nb::device::cpu>;

// Interrupts a call of the library when a signal's handler has raised, e.g. that of Ctrl-C. The exception stays set,
// and raise() throws it. Handlers run in the main thread alone.
bool interrupt(void *);

// Throws the exception of sinew.errors that belongs to a status.
[[noreturn]] void raise(SinewStatus status, const char *text);

// Throws when a call of the library has failed.
inline void check(SinewStatus status, const SinewError &err) {
  if (status != SINEW_OK) raise(status, err.text);
}

// Returns the numbers of an optional array, NULL without one; refuses one that has not `size` numbers.
template <typename Array>
auto data_of(const std::optional<Array> &array, const char *name, size_t size) -> decltype(array->data()) {
  if (!array) return nullptr;
  if (array->size() != size)
    raise(SINEW_ERR_ARGUMENT,
          (std::string(name) + ": " + std::to_string(array->size()) + " numbers, expected " + std::to_string(size))
              .c_str());
  return array->data();
}

// Marks a handle as used by a call, which may run without the interpreter's lock: a second thread is refused. Every
// call of a handle that belongs to one thread at a time begins with it.
class Use {
 public:
  Use(std::atomic_flag &flag, const char *what) : flag_(flag) {
    if (flag_.test_and_set(std::memory_order_acquire))
      raise(SINEW_ERR_STATE, (std::string(what) + " is in use by another thread").c_str());
  }
  ~Use() { flag_.clear(std::memory_order_release); }
  Use(const Use &) = delete;
  Use &operator=(const Use &) = delete;

 private:
  std::atomic_flag &flag_;
};

// A model; others keep it alive.
struct Model {
  std::shared_ptr<const SinewModel> handle;
};

// Returns a model that owns a handle, which may be NULL after a failure.
Model own_model(SinewModel *handle, const SinewError &err);

// How parameters move a model.
struct ModelTangents {
  ModelTangents(const Model &model, const std::vector<Model> &plus, const std::vector<Model> &minus,
                const std::vector<double> &step);
  std::shared_ptr<const SinewParameters> handle;
};

// Threads of the CPU, or a device.
struct Backend {
  Backend(const std::string &name, int threads, int block_threads);
  std::shared_ptr<SinewBackend> handle;
  std::shared_ptr<std::atomic_flag> busy = std::make_shared<std::atomic_flag>();  // one call at a time
};

struct Task {
  std::shared_ptr<SinewTask> handle;
};

// Settings of contacts from distance with the memory of their names.
struct Cfd {
  Cfd(int use, const std::vector<double> &solimp, double softplus, bool friction, bool surrogate,
      std::optional<std::vector<std::string>> bodies, double smooth);
  Cfd(const Cfd &other) : settings(other.settings), names(other.names) { point(); }
  Cfd &operator=(const Cfd &) = delete;
  SinewCfd settings = sinew_default_cfd();
  std::optional<std::vector<std::string>> names;
  std::vector<const char *> pointers;

 private:
  void point();  // lets the settings point at the names
};

void bind_model(nb::module_ &m);
void bind_data(nb::module_ &m);
void bind_planner(nb::module_ &m);
void bind_batch(nb::module_ &m);
void bind_bodies(nb::module_ &m);
void bind_integrator(nb::module_ &m);
void bind_nearest_points(nb::module_ &m);
void bind_mujoco(nb::module_ &m);
void bind_xla(nb::module_ &m);

}  // namespace sinew_python

#endif
