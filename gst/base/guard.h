// The border between C++ and GStreamer's C: every vfunc, pad function and thread body runs inside
// guard(), which turns an exception into an error message on the bus.
#pragma once

#include <gst/gst.h>

#include <exception>
#include <new>
#include <string>
#include <type_traits>
#include <utility>

#include "kernels/base/error.h"
#include "kernels/base/files.h"

namespace clinfer {

// Posts `what` as an error of `element`; `code` decides its domain and code.
void post_error(GstElement* element, ErrorCode code, const char* what);

// Calls tell(), once more where telling itself ran out of memory. The caller fails in any case.
template <typename Tell>
void report(Tell& tell, ErrorCode code, const char* what) noexcept {
  for (int attempt = 0; attempt < 2; ++attempt) try {
      return tell(code, what);
    } catch (const std::exception&) {
      what = "not enough memory";
    }
}

// Returns the value of `body`. If it throws, calls tell(ErrorCode, const char*) and returns `failed`.
template <typename Tell, typename Body, typename Result>
Result guard(Tell&& tell, Result failed, Body&& body) noexcept {
  try {
    return std::forward<Body>(body)();
  } catch (const Error& error) {
    report(tell, error.code(), error.what());
  } catch (const std::bad_alloc&) {
    report(tell, ErrorCode::out_of_memory, "not enough memory");
  } catch (const std::exception& error) {
    std::string text;
    try {
      text = explain(error);
    } catch (const std::exception&) {
      // Nor is there memory for the text.
    }
    report(tell, ErrorCode::device_failed, text.empty() ? "not enough memory" : text.c_str());
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
