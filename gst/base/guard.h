// The border between C++ and GStreamer's C: every vfunc, pad function and thread body runs inside
// guard(), which turns an exception into an error message on the bus.
#pragma once

#include <gst/gst.h>

#include <exception>
#include <new>
#include <type_traits>
#include <utility>

#include "kernels/base/error.h"
#include "kernels/base/files.h"

namespace clinfer {

// Posts `what` as an error of `element`; `code` decides its domain and code.
void post_error(GstElement* element, ErrorCode code, const char* what);

// Returns the value of `body`. If it throws, calls tell(ErrorCode, const char*) and returns `failed`.
template <typename Tell, typename Body, typename Result>
Result guard(Tell&& tell, Result failed, Body&& body) noexcept {
  try {
    return std::forward<Body>(body)();
  } catch (const Error& error) {
    tell(error.code(), error.what());
  } catch (const std::bad_alloc&) {
    tell(ErrorCode::out_of_memory, "not enough memory");
  } catch (const std::exception& error) {
    try {
      tell(ErrorCode::device_failed, explain(error).c_str());
    } catch (const std::bad_alloc&) {
      tell(ErrorCode::out_of_memory, "not enough memory");
    }
  }
  return failed;
}

template <typename Body, typename Result>
Result guard(GstElement* element, Result failed, Body&& body) noexcept {
  return guard([element](ErrorCode code, const char* what) { post_error(element, code, what); },
               failed, std::forward<Body>(body));
}

template <typename Body>
void guard(GstElement* element, Body&& body) noexcept {
  guard(element, false, [&] {
    std::forward<Body>(body)();
    return true;
  });
}

}  // namespace clinfer
