// Parts of every element's GObject shell for when memory is short: a lock that an exception releases,
// and a state that may be missing.
#pragma once

#include <gst/gst.h>

#include <exception>
#include <utility>

#include "kernels/base/error.h"

namespace clinfer {

// Holds the GstObject lock for a scope. Copies of settings are made under it, which takes memory:
// without a destructor an exception would leave the object locked, and the error message, which needs
// the object's name, would wait for it for ever.
class ObjectLock {
 public:
  explicit ObjectLock(gpointer object) : object_(GST_OBJECT_CAST(object)) {
    GST_OBJECT_LOCK(object_);
  }
  ~ObjectLock() { GST_OBJECT_UNLOCK(object_); }
  ObjectLock(const ObjectLock&) = delete;
  ObjectLock& operator=(const ObjectLock&) = delete;

 private:
  GstObject* const object_;
};

// The C++ part of an instance, for instance_init, which has no way to fail: null where there is not
// enough memory. Each function of the class then fails by state_of().
template <typename State, typename... Arguments>
State* make_state(Arguments&&... arguments) noexcept {
  try {
    return new State(std::forward<Arguments>(arguments)...);
  } catch (const std::exception&) {
    return nullptr;
  }
}

// Throws Error{out_of_memory} where make_state() gave null.
template <typename State>
State& state_of(State* state) {
  if (state == nullptr)
    throw Error(ErrorCode::out_of_memory, "there was not enough memory to make the element");
  return *state;
}

}  // namespace clinfer
