// Attaches data to a GstMemory, with which it is freed. Neither the address of a memory nor its
// surface id or descriptor could serve as a key, because a later memory may have the same.
#pragma once

#include <gst/gst.h>

#include <mutex>

namespace clinfer {

// Returns the T that is attached to a memory under this name. It is made at the first call and
// freed with the memory. Thread-safe.
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
