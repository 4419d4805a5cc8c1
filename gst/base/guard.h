// The border between C++ and GStreamer's C: every vfunc, pad function and thread body runs inside
// guard(), which turns an exception into an error message on the bus, and computes by the default
// settings of floating-point arithmetic.
#pragma once

#include <gst/gst.h>

#include <exception>
#include <new>
#include <string>
#include <type_traits>
#include <utility>

#include "kernels/base/default_floats.h"
#include "kernels/base/error.h"
#include "kernels/base/system/files.h"

namespace clinfer {

// An exception as it is reported to the application.
struct Failure {
  ErrorCode code;
  const char* what;
  // For an Error, the place of the throw; for other exceptions, the caller of guard().
  SourcePlace place;
};

// Posts the failure as an error of `element`. The code determines the error's domain and code.
void post_error(GstElement* element, const Failure& failure);

// Calls tell(), and once more if telling itself ran out of memory. The caller fails in any case.
template <typename Tell>
void report(Tell& tell, Failure failure) noexcept {
  for (int attempt = 0; attempt < 2; ++attempt) try {
      return tell(failure);
    } catch (const std::exception&) {
      failure.what = "not enough memory";
    }
}

// Returns the value of `body`. If it throws, calls tell(const Failure&) and returns `failed`.
template <typename Tell, typename Body, typename Result>
Result guard(Tell&& tell, Result failed, Body&& body,
             SourcePlace place = SourcePlace::here()) noexcept {
  const DefaultFloats floats;
  try {
    return std::forward<Body>(body)();
  } catch (const Error& error) {
    report(tell, {error.code(), error.what(), error.place()});
  } catch (const std::bad_alloc&) {
    report(tell, {ErrorCode::out_of_memory, "not enough memory", place});
  } catch (const std::exception& error) {
    std::string text;
    try {
      text = explain(error);
    } catch (const std::exception&) {
      // There is no memory for the text either.
    }
    report(tell,
           {ErrorCode::device_failed, text.empty() ? "not enough memory" : text.c_str(), place});
  }
  return failed;
}

template <typename Body, typename Result>
Result guard(GstElement* element, Result failed, Body&& body,
             SourcePlace place = SourcePlace::here()) noexcept {
  return guard([element](const Failure& failure) { post_error(element, failure); }, failed,
               std::forward<Body>(body), place);
}

template <typename Body>
void guard(GstElement* element, Body&& body, SourcePlace place = SourcePlace::here()) noexcept {
  guard(
      element, false,
      [&] {
        std::forward<Body>(body)();
        return true;
      },
      place);
}

}  // namespace clinfer
