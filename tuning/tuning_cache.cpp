// Reads and writes tuning files as JSON: checks every type when reading, and writes one record in a
// line.
#include "tuning/tuning_cache.h"

#include <json-glib/json-glib.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <memory>

#include "kernels/base/error.h"
#include "kernels/base/json_limits.h"
#include "kernels/base/text.h"
#include "kernels/op.h"

namespace clinfer {

namespace {

// Allows for more than 20,000 records.
constexpr JsonLimits kLimits{.bytes = TuningCache::kLargest, .levels = 32, .values = 500000};

struct Unref {
  void operator()(JsonParser* parser) const { g_object_unref(parser); }
};

// Reports what is malformed and where.
struct Place {
  std::string file, within;
  [[noreturn]] void fail(const std::string& what, SourcePlace place = SourcePlace::here()) const {
    throw Error(ErrorCode::io,
                "tuning file " + file + ": " + (within.empty() ? "" : within + ": ") + what +
                    "; the file is left as it is: repair it, remove it or name another",
                place);
  }
};

bool is_text(JsonNode* node) {
  return JSON_NODE_HOLDS_VALUE(node) && json_node_get_value_type(node) == G_TYPE_STRING;
}

// Calls `visit` with names and members of an object, in its order.
template <typename Visit>
void for_each(JsonObject* object, const Visit& visit) {
  const std::unique_ptr<GList, void (*)(GList*)> names(json_object_get_members(object),
                                                       g_list_free);
  for (const GList* at = names.get(); at; at = at->next) {
    const auto* name = static_cast<const char*>(at->data);
    visit(std::string(name), json_object_get_member(object, name));
  }
}

// Formats JSON on one line, with the usual blanks.
std::string text_of(JsonNode* node, const Place& place) {
  std::string text;
  if (JSON_NODE_HOLDS_OBJECT(node)) {
    for_each(json_node_get_object(node), [&](const std::string& name, JsonNode* member) {
      text += (text.empty() ? "" : ", ") + json_quoted(name) + ": " + text_of(member, place);
    });
    return "{" + text + "}";
  }
  if (JSON_NODE_HOLDS_ARRAY(node)) {
    JsonArray* array = json_node_get_array(node);
    for (guint i = 0; i < json_array_get_length(array); ++i)
      text += (i ? ", " : "") + text_of(json_array_get_element(array, i), place);
    return "[" + text + "]";
  }
  if (is_text(node)) return json_quoted(json_node_get_string(node));
  if (JSON_NODE_HOLDS_VALUE(node) && json_node_get_value_type(node) == G_TYPE_DOUBLE) {
    const double number = json_node_get_double(node);
    if (!std::isfinite(number)) place.fail("a number is too large");
    char digits[40];
    std::snprintf(digits, sizeof digits, "%.17g", number);
    text = digits;
    std::erase(text, '+');  // json-glib does not read 1e+40
    return text;
  }
  const std::unique_ptr<char, void (*)(void*)> value(json_to_string(node, FALSE), g_free);
  return value.get();
}

int integer(JsonNode* node, const Place& place, const std::string& what) {
  if (!JSON_NODE_HOLDS_VALUE(node) || json_node_get_value_type(node) != G_TYPE_INT64)
    place.fail(what + " is not a whole number");
  const gint64 value = json_node_get_int(node);
  if (value < std::numeric_limits<int>::min() || value > std::numeric_limits<int>::max())
    place.fail(what + " is out of range");
  return static_cast<int>(value);
}

// Returns members of the record's object, or null.
struct Members {
  JsonObject* object;
  const Place& place;

  JsonNode* get(const char* name) const {
    return json_object_has_member(object, name) ? json_object_get_member(object, name) : nullptr;
  }
  std::string text(const char* name) const {
    JsonNode* node = get(name);
    if (!node) return "";
    if (!is_text(node)) place.fail(std::string("\"") + name + "\" is not a text");
    return json_node_get_string(node);
  }
  double number(const char* name) const {
    JsonNode* node = get(name);
    if (!node) return 0;
    const bool number =
        JSON_NODE_HOLDS_VALUE(node) && (json_node_get_value_type(node) == G_TYPE_INT64 ||
                                        json_node_get_value_type(node) == G_TYPE_DOUBLE);
    const double value = number ? json_node_get_double(node) : -1;
    if (!std::isfinite(value) || value < 0)
      place.fail(std::string("\"") + name + "\" is not a number from 0 on");
    return value;
  }
};

TuningPoint read_point(JsonNode* node, const Place& place) {
  if (!JSON_NODE_HOLDS_OBJECT(node)) place.fail("\"point\" is not an object");
  TuningPoint point;
  for_each(json_node_get_object(node), [&](const std::string& name, JsonNode* value) {
    point.values.emplace_back(name, integer(value, place, "the point's " + printable(name)));
  });
  return point;
}

void read_details(JsonNode* node, const Place& place, TuningRecord& record) {
  if (!JSON_NODE_HOLDS_OBJECT(node)) place.fail("the third element is not an object");
  const Members members{json_node_get_object(node), place};
  record.op = members.text("op");
  record.device = members.text("device");
  record.driver = members.text("driver");
  record.kind = members.text("kind");
  record.ns = members.number("ns");
  record.default_ns = members.number("default_ns");
  if (JsonNode* version = members.get("family_version"))
    record.family_version = integer(version, place, "\"family_version\"");
  if (JsonNode* point = members.get("point")) record.point = read_point(point, place);
  if (JsonNode* partial = members.get("partial")) {
    if (!JSON_NODE_HOLDS_VALUE(partial) || json_node_get_value_type(partial) != G_TYPE_BOOLEAN)
      place.fail("\"partial\" is neither true nor false");
    record.partial = json_node_get_boolean(partial);
  }
  if (JsonNode* failed = members.get("failed")) {
    if (!JSON_NODE_HOLDS_OBJECT(failed)) place.fail("\"failed\" is not an object");
    for_each(json_node_get_object(failed), [&](const std::string& name, JsonNode* why) {
      if (!is_text(why)) place.fail("a reason in \"failed\" is not a text");
      record.failed.emplace_back(name, json_node_get_string(why));
    });
  }
}

TuningRecord read_record(JsonNode* node, const Place& place) {
  if (!JSON_NODE_HOLDS_ARRAY(node)) place.fail("is not an array [kernel, index, {...}]");
  JsonArray* array = json_node_get_array(node);
  const guint length = json_array_get_length(array);
  if (length != 2 && length != 3)
    place.fail("has " + std::to_string(length) + " elements, not 2 or 3");
  if (!is_text(json_array_get_element(array, 0)))
    place.fail("the first element is not the name of a kernel");
  TuningRecord record;
  record.family = json_array_get_string_element(array, 0);
  record.index = integer(json_array_get_element(array, 1), place, "the second element");
  if (length == 3) read_details(json_array_get_element(array, 2), place, record);
  return record;
}

std::string write_record(const TuningRecord& record) {
  std::string text = "[" + json_quoted(record.family) + ", " + std::to_string(record.index);
  if (record.op.empty()) return text + "]";
  text += ", {\"op\": " + json_quoted(record.op);
  if (record.point) {
    text += ", \"point\": {";
    for (size_t i = 0; i < record.point->values.size(); ++i) {
      const auto& [name, value] = record.point->values[i];
      text += (i ? ", " : "") + json_quoted(name) + ": " + std::to_string(value);
    }
    text += "}";
  }
  if (record.family_version)
    text += ", \"family_version\": " + std::to_string(record.family_version);
  const std::pair<const char*, const std::string*> texts[] = {
      {"device", &record.device}, {"driver", &record.driver}, {"kind", &record.kind}};
  for (const auto& [name, value] : texts)
    if (!value->empty()) text += ", \"" + std::string(name) + "\": " + json_quoted(*value);
  if (record.ns > 0) text += ", \"ns\": " + std::to_string(std::llround(record.ns));
  if (record.default_ns > 0)
    text += ", \"default_ns\": " + std::to_string(std::llround(record.default_ns));
  if (record.partial) text += ", \"partial\": true";
  if (!record.failed.empty()) {
    text += ", \"failed\": {";
    for (size_t i = 0; i < record.failed.size(); ++i)
      text += (i ? ", " : "") + json_quoted(record.failed[i].first) + ": " +
              json_quoted(record.failed[i].second);
    text += "}";
  }
  return text + "}]";
}

// Counts records [kernel, index] anywhere below `node`. json_excess() limits the depth.
size_t count_records(JsonNode* node) {
  size_t count = 0;
  if (JSON_NODE_HOLDS_OBJECT(node))
    for_each(json_node_get_object(node),
             [&](const std::string&, JsonNode* member) { count += count_records(member); });
  if (JSON_NODE_HOLDS_ARRAY(node)) {
    JsonArray* array = json_node_get_array(node);
    count += json_array_get_length(array) >= 2 && is_text(json_array_get_element(array, 0));
  }
  return count;
}

// Returns whether a kernel of this engine has that name.
bool is_own_family(const std::string& name) {
  return std::any_of(op_registry().begin(), op_registry().end(), [&](const OpDef& op) {
    return std::any_of(op.families.begin(), op.families.end(),
                       [&](const KernelFamily* family) { return family->name == name; });
  });
}

bool is_number(const std::string& text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

TuningCache TuningCache::parse(const std::string& text, const std::string& where) {
  const Place file{where, ""};
  if (const std::string why = json_excess(text, kLimits); !why.empty()) file.fail(why);
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) return {};  // a new file
  const std::unique_ptr<JsonParser, Unref> parser(json_parser_new());
  GError* error = nullptr;
  if (!json_parser_load_from_data(parser.get(), text.c_str(), static_cast<gssize>(text.size()),
                                  &error)) {
    std::string why = error->message;
    g_error_free(error);
    if (why.rfind("<data>:", 0) == 0) why = "line " + why.substr(7);
    file.fail("is not JSON: " + printable(why));
  }
  JsonNode* root = json_parser_get_root(parser.get());
  if (!root || !JSON_NODE_HOLDS_OBJECT(root)) file.fail("is not a JSON object");
  TuningCache cache;
  for_each(json_node_get_object(root), [&](const std::string& units, JsonNode* section) {
    if (!is_number(units)) {
      cache.foreign_[units] = text_of(section, file);
      cache.within_foreign_ += count_records(section);
      return;
    }
    const Place place{where, "device \"" + printable(units) + "\""};
    if (!JSON_NODE_HOLDS_OBJECT(section)) place.fail("is not an object of records");
    auto& records = cache.devices_[units];
    for_each(json_node_get_object(section), [&](const std::string& hash, JsonNode* record) {
      const Place here{where, place.within + ", record \"" + printable(hash) + "\""};
      records[hash] = {read_record(record, here), text_of(record, here)};
    });
  });
  return cache;
}

const TuningRecord* TuningCache::find(unsigned compute_units, const std::string& hash) const {
  const auto device = devices_.find(std::to_string(compute_units));
  if (device == devices_.end()) return nullptr;
  const auto entry = device->second.find(hash);
  return entry == device->second.end() ? nullptr : &entry->second.record;
}

std::vector<std::pair<std::string, const TuningRecord*>> TuningCache::records() const {
  std::vector<std::pair<std::string, const TuningRecord*>> all;
  for (const auto& [units, records] : devices_)
    for (const auto& [hash, entry] : records)
      if (!entry.record.op.empty()) all.emplace_back(hash, &entry.record);
  return all;
}

void TuningCache::set(unsigned compute_units, const std::string& hash, TuningRecord record) {
  std::string text = write_record(record);
  devices_[std::to_string(compute_units)][hash] = {std::move(record), std::move(text)};
}

void TuningCache::erase(unsigned compute_units, const std::string& hash) {
  const auto device = devices_.find(std::to_string(compute_units));
  if (device == devices_.end()) return;
  device->second.erase(hash);
  if (device->second.empty()) devices_.erase(device);
}

size_t TuningCache::size() const {
  size_t records = 0;
  for (const auto& [units, section] : devices_) records += section.size();
  return records;
}

size_t TuningCache::foreign_records() const {
  size_t records = within_foreign_;
  for (const auto& [units, section] : devices_)
    for (const auto& [hash, entry] : section)
      records += entry.record.op.empty() && !is_own_family(entry.record.family);
  return records;
}

std::string TuningCache::to_text() const {
  std::string text = "{";
  const char* next = "\n";
  for (const auto& [name, json] : foreign_) {
    text += next + json_quoted(name) + ": " + json;
    next = ",\n";
  }
  for (const auto& [units, records] : devices_) {
    text += next + json_quoted(units) + ": {";
    next = ",\n";
    const char* next_record = "\n  ";
    for (const auto& [hash, entry] : records) {
      text += next_record + json_quoted(hash) + ": " + entry.text;
      next_record = ",\n  ";
    }
    text += "\n}";
  }
  return text + "\n}\n";
}

std::string device_kind(const DeviceTraits& traits) {
  static constexpr const char* kVendors[] = {"other", "intel", "nvidia", "amd", "arm", "pocl"};
  std::string kind = kVendors[static_cast<size_t>(traits.vendor)];
  kind += traits.is_cpu ? " cpu, vectors of " + std::to_string(traits.vector_width) : " gpu";
  return kind + (traits.fp16 ? ", f16" : "");
}

}  // namespace clinfer
