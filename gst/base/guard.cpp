// Maps error codes to GStreamer's error domains and codes.
#include "gst/base/guard.h"

namespace clinfer {
namespace {

struct DomainCode {
  GQuark domain;
  int code;
};

DomainCode domain_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::bad_model:
      return {GST_STREAM_ERROR, GST_STREAM_ERROR_DECODE};
    case ErrorCode::not_found:
      return {GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_NOT_FOUND};
    case ErrorCode::unsupported:
      return {GST_STREAM_ERROR, GST_STREAM_ERROR_NOT_IMPLEMENTED};
    case ErrorCode::bad_argument:
      return {GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_SETTINGS};
    case ErrorCode::no_device:
      return {GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_NOT_FOUND};
    case ErrorCode::out_of_memory:
      return {GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_NO_SPACE_LEFT};
    case ErrorCode::device_failed:
      return {GST_LIBRARY_ERROR, GST_LIBRARY_ERROR_FAILED};
    case ErrorCode::io:
      return {GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_WRITE};
    case ErrorCode::cancelled:
      return {GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_FAILED};
  }
  return {GST_CORE_ERROR, GST_CORE_ERROR_FAILED};
}

}  // namespace

void post_error(GstElement* element, const Failure& failure) {
  const DomainCode target = domain_of(failure.code);
  const SourcePlace& place = failure.place;
  gst_element_message_full(element, GST_MESSAGE_ERROR, target.domain, target.code,
                           g_strdup(failure.what), nullptr, place.file, place.function, place.line);
}

}  // namespace clinfer
