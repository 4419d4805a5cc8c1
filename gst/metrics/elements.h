// Walks the elements of a pipeline and reads fields of their statistics.
#pragma once

#include <gst/gst.h>

#include <functional>
#include <string>

namespace clinfer {

// Reads a field of any numeric type into `number`; returns false if it is missing.
bool number_of(const GstStructure* structure, const char* field, double& number);
// Returns a field that is a string; "" if it is missing.
std::string string_of(const GstStructure* structure, const char* field);
// Returns the name of a GstObject.
std::string name_of(gpointer object);

// Calls `visit` once for each element of an iterator, which it frees, after the walk is complete:
// the walk starts again if the bin changes meanwhile, and no element is visited twice.
void for_each(GstIterator* iterator, const std::function<void(gpointer)>& visit);

// Returns the name of the source element whose frames `element` gets (by its first input, if it has
// several); "" if there is none.
std::string camera_of(GstElement* element);

}  // namespace clinfer
