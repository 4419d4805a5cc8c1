// What the element keeps with a GstMemory for as long as that lives. Its address, and the surface
// id or descriptor behind it, come back with the next memory; what hangs on it does not.
#pragma once

#include <gst/gst.h>

#include <mutex>

namespace clinfer {

// The T of a memory under this name, made at the first call. Thread-safe; it goes with the memory.
template <typename T>
T& data_of(GstMemory* memory, const char* name) {
  static std::mutex mutex;
  const GQuark quark = g_quark_from_static_string(name);
  GstMiniObject* object = GST_MINI_OBJECT_CAST(memory);
  const std::lock_guard lock(mutex);
  if (auto* known = static_cast<T*>(gst_mini_object_get_qdata(object, quark))) return *known;
  auto* data = new T;
  gst_mini_object_set_qdata(object, quark, data, [](gpointer p) { delete static_cast<T*>(p); });
  return *data;
}

}  // namespace clinfer
