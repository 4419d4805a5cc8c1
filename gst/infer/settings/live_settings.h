// Gives all threads of an element its properties.
#pragma once

#include <memory>
#include <utility>

#include "gst/base/instance.h"
#include "gst/infer/settings/object_rules.h"
#include "gst/infer/settings/properties.h"
#include "gst/infer/settings/settings.h"

namespace clinfer {

// Immutable snapshots of the properties. A change replaces the snapshot, so that a thread that
// reads one for each frame only copies a pointer. Thread-safe; the GstObject lock guards the
// pointers.
class LiveSettings {
 public:
  explicit LiveSettings(GstElement* element) : element_(element) {}

  std::shared_ptr<const Settings> now() const {
    const ObjectLock lock(element_);
    return settings_;
  }
  // Sets a property and returns the new settings.
  std::shared_ptr<const Settings> set(guint id, const ElementProperty& property,
                                      const GValue* value) {
    const ObjectLock lock(element_);
    lost_.set(id, property, settings_, value);
    return settings_;
  }
  // Throws Error{out_of_memory} if a property could not be set.
  std::shared_ptr<const Settings> checked() const {
    const ObjectLock lock(element_);
    lost_.check(element_properties());
    return settings_;
  }
  // Returns the rules that follow from the properties, as they were last accepted.
  std::shared_ptr<const ObjectRules> rules() const {
    const ObjectLock lock(element_);
    return rules_;
  }
  void set_rules(std::shared_ptr<const ObjectRules> rules) {
    const ObjectLock lock(element_);
    rules_.swap(rules);
  }

 private:
  GstElement* const element_;
  std::shared_ptr<const Settings> settings_ = std::make_shared<const Settings>();
  std::shared_ptr<const ObjectRules> rules_ = std::make_shared<const ObjectRules>();
  LostProperties lost_;
};

}  // namespace clinfer
