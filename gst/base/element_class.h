// Makes GObject classes of elements whose properties are a table (properties.h): the instance, the
// vfuncs for properties, and the description of the class.
//
//   using GstCltrack = clinfer::Instance<GstBaseTransform, TrackState>;
//   using GstCltrackClass = GstBaseTransformClass;
//   G_DEFINE_TYPE(GstCltrack, gst_cltrack, GST_TYPE_BASE_TRANSFORM)
//   using Class = clinfer::ElementClass<GstCltrack, properties>;
//
// gst_cltrack_class_init() calls Class::set_up(), gst_cltrack_init() Class::make_state().
#pragma once

#include <gst/gst.h>

#include <optional>

#include "gst/base/guard.h"
#include "gst/base/handle.h"
#include "gst/base/instance.h"
#include "gst/base/properties.h"

namespace clinfer {

// Caps of elements that do not look at pictures: video in any memory and format.
inline constexpr const char* kAnyVideo = "video/x-raw(ANY)";

struct ElementDescription {
  const char* long_name;
  const char* category;  // as in GStreamer's other elements: "Filter/Analyzer/Video"
  const char* text;
  const char* page;                   // URI of the documentation: CLINFER_DOCS "tracking.md"
  const char* sink_caps = kAnyVideo;  // null: the element has no such pad
  const char* src_caps = kAnyVideo;
};

// Sets the metadata, which must live as long as the process, and the templates of the pads `sink`
// and `src`, if the element has them.
void describe_element(GstElementClass* element, const ElementDescription& description);

// Returns a pad made from the template of that name. The caller adds it to the element.
GstPad* new_pad(GstElement* element, const char* name);

// The id of the property `stats`, outside of the table's ids.
inline constexpr guint kStatsId = 1000;
void install_stats(GObjectClass* object, const char* blurb);

// Statistics of the frames so far. The streaming thread writes them, the application reads them.
class FrameStats {
 public:
  void set(GstElement* element, Handle<GstStructure> stats) {
    const ObjectLock lock(element);
    std::swap(stats_, stats);
  }
  // Returns a copy; null before the first frame.
  GstStructure* copy(GstElement* element) const {
    const ObjectLock lock(element);
    return stats_ != nullptr ? gst_structure_copy(stats_.get()) : nullptr;
  }

 private:
  Handle<GstStructure> stats_;  // guarded by the object lock
};

template <typename ParentType, typename StateType>
struct Instance {
  using State = StateType;
  ParentType parent;
  State* state;  // null if there was no memory for it
};

// State has these members, guarded by the object lock:
//   settings  the members that Rows, the table of properties, names
//   lost      LostProperties
//   in_force  if properties are fixed from start to stop: std::optional of the settings from start to
//             stop. Changes that must wait are warned of
// and, if the element has the property `stats`:
//   GstStructure* copy_stats(GstElement*) const   called without the lock; null: nothing yet
template <typename InstanceType, auto Rows>
class ElementClass {
 public:
  using State = typename InstanceType::State;

  // `stats`: the description of that property.
  static void set_up(gpointer klass, const ElementDescription& description,
                     const char* stats = nullptr) {
    parent_class_ = static_cast<GObjectClass*>(g_type_class_peek_parent(klass));
    auto* object = static_cast<GObjectClass*>(klass);
    object->set_property = set_property;
    object->get_property = get_property;
    object->finalize = finalize;
    install_properties(object, Rows());
    if (stats != nullptr) install_stats(object, stats);
    describe_element(static_cast<GstElementClass*>(klass), description);
  }

  static void make_state(InstanceType* self) { self->state = clinfer::make_state<State>(); }

  // Returns null if there was no memory for the state.
  static State* find_state(gpointer object) { return static_cast<InstanceType*>(object)->state; }
  static State& state(gpointer object) { return state_of(find_state(object)); }

  // Returns a copy made under the object lock. Throws Error{out_of_memory} if a property could not
  // be set.
  static auto settings(gpointer object) {
    const State& own = state(object);
    const ObjectLock lock(object);
    own.lost.check(Rows());
    return own.settings;
  }

 private:
  static void set_property(GObject* object, guint id, const GValue* value, GParamSpec*) {
    guard(GST_ELEMENT(object), [&] {
      State& own = state(object);
      const auto& property = property_of(Rows(), id);
      if constexpr (requires { own.in_force; }) {
        decltype(own.in_force) wanted, in_force;
        {
          const ObjectLock lock(object);
          own.lost.set(id, property, own.settings, value);
          if (!own.in_force) return;
          wanted = own.settings;
          in_force = own.in_force;
        }
        warn_unless_in_force(GST_ELEMENT(object), property, *wanted, *in_force);
      } else {
        const ObjectLock lock(object);
        own.lost.set(id, property, own.settings, value);
      }
    });
  }

  static void get_property(GObject* object, guint id, GValue* value, GParamSpec*) {
    guard(GST_ELEMENT(object), [&] {
      const State& own = state(object);
      if constexpr (requires { own.copy_stats(GST_ELEMENT(object)); })
        if (id == kStatsId) return g_value_take_boxed(value, own.copy_stats(GST_ELEMENT(object)));
      const ObjectLock lock(object);
      property_of(Rows(), id).get(own.settings, value);
    });
  }

  static void finalize(GObject* object) {
    delete find_state(object);
    parent_class_->finalize(object);
  }

  static inline GObjectClass* parent_class_ = nullptr;
};

}  // namespace clinfer
