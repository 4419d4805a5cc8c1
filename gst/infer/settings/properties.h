// The properties of clinfer as a table: what gst-inspect shows, the member of Settings, and what is
// passed to the engine.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/heads/base/decoder.h"
#include "gst/base/properties.h"
#include "gst/infer/settings/settings.h"

namespace clinfer {

// Values of read-only properties that are not in Settings. The element implements this; any thread
// may call it.
class Readings {
 public:
  virtual DecodeSettings decode_settings_in_force() const = 0;
  virtual GstStructure* stats() const = 0;  // a new structure

 protected:
  ~Readings() = default;
};

struct ElementProperty : Property<Settings> {
  // True if the compiled model depends on it, so that elements of one model-instance-id must agree.
  bool of_engine = false;
  // The part that the element renews when the value changes while it runs.
  enum class Part { none, rules, tickers } part = Part::none;
  // Copies the value to the engine's configuration; null if that has no such key.
  void (*configure)(const Settings&, Config&) = nullptr;
  // Reads the value if `get` is null.
  void (*read)(const Readings&, const Settings&, GValue*) = nullptr;

  ElementProperty() = default;
  // Converts a row of the table.
  template <typename Row>
  ElementProperty(const Row& row) : Property<Settings>(row) {}
};

// Returns null for null.
std::shared_ptr<const std::string> copy_of(GBytes* bytes);

// Returns the properties in the order in which gst-inspect shows them.
const std::vector<ElementProperty>& element_properties();

// Returns the name of the first property of the engine in which `a` and `b` differ; "" if a model
// that was compiled for `a` can be used for `b`.
std::string engine_difference(const Settings& a, const Settings& b);

// Copies the values to a configuration of the engine, as the rows define.
void configure(const Settings& settings, Config& config);

}  // namespace clinfer
