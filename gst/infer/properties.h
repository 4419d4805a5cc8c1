// The properties of clinfer as a table: what gst-inspect shows, the member of Settings, and what
// the engine gets of it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/heads/decoder.h"
#include "gst/base/properties.h"
#include "gst/infer/settings.h"

namespace clinfer {

// Values of read-only properties that are not in Settings. The element implements it; any thread
// calls it.
class Readings {
 public:
  virtual DecodeSettings decode_settings_in_force() const = 0;
  virtual GstStructure* stats() const = 0;  // a new structure

 protected:
  ~Readings() = default;
};

struct ElementProperty : Property<Settings> {
  // The compiled model depends on it: elements of one model-instance-id must agree.
  bool of_engine = false;
  // The part that the element makes anew when the value changes while it runs.
  enum class Part { none, rules, tickers } part = Part::none;
  // Copies the value to the engine's configuration; null where that has no such key.
  void (*configure)(const Settings&, Config&) = nullptr;
  // Gives the value where `get` is null.
  void (*read)(const Readings&, const Settings&, GValue*) = nullptr;

  ElementProperty() = default;
  // Rows are written without it.
  template <typename Row>
  ElementProperty(const Row& row) : Property<Settings>(row) {}
};

// Null for null.
std::shared_ptr<const std::string> copy_of(GBytes* bytes);

// In the order in which gst-inspect shows them.
const std::vector<ElementProperty>& element_properties();

// The name of the first property of the engine in which `a` and `b` differ; "" when a model that
// was compiled for `a` serves `b`.
std::string engine_difference(const Settings& a, const Settings& b);

// Copies what the rows say to a configuration of the engine.
void configure(const Settings& settings, Config& config);

}  // namespace clinfer
