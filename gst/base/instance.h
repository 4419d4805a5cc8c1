// Parts of every element's GObject shell for when memory is short: a lock that is released if an
// exception is thrown, and a state that may be missing.
#pragma once

#include <gst/gst.h>

#include <exception>
#include <utility>

#include "kernels/base/error.h"

namespace clinfer {

// Holds the GstObject lock for a scope. Settings are copied under the lock, which may run out of
// memory. Without this destructor the exception would leave the object locked, and the error
// message, which needs the object's name, would wait for the lock for ever.
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

// Makes the C++ part of an instance. Returns null if there is not enough memory, because
// instance_init has no way to fail; each function of the class then fails in state_of().
template <typename State, typename... Arguments>
State* make_state(Arguments&&... arguments) noexcept {
  try {
    return new State(std::forward<Arguments>(arguments)...);
  } catch (const std::exception&) {
    return nullptr;
  }
}

// Throws Error{out_of_memory} if make_state() returned null.
template <typename State>
State& state_of(State* state) {
  if (state == nullptr)
    throw Error(ErrorCode::out_of_memory, "there was not enough memory to make the element");
  return *state;
}

}  // namespace clinfer
