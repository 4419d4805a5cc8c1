// Properties that change while frames flow: controlled ones follow the stream, a model is
// exchanged, and what cannot change says so.
#include <gst/controller/gstdirectcontrolbinding.h>
#include <gst/controller/gstinterpolationcontrolsource.h>

#include <functional>
#include <set>

#include "gst/infer/settings/properties.h"
#include "tests/gst/harness.h"

namespace clinfer {
namespace {

using testing_models::color_model;

// Messages of the element in a harness.
class Messages {
 public:
  explicit Messages(const Harness& harness) : bus_(harness.bus()) {}
  // The text of the next warning within `wait`, "" without one. The one that is there wherever no GPU
  // is does not count.
  std::string warning(GstClockTime wait = 0) {
    std::string text;
    const auto is_stand_in = [&] { return text.rfind("there is no GPU: ", 0) == 0; };
    do {
      text.clear();
      GstMessage* message = gst_bus_timed_pop_filtered(bus_, wait, GST_MESSAGE_WARNING);
      if (message == nullptr) break;
      GError* error = nullptr;
      gst_message_parse_warning(message, &error, nullptr);
      text = error->message;
      g_error_free(error);
      gst_message_unref(message);
    } while (is_stand_in());
    return text;
  }
  // Field `field` of the next element message of this name.
  std::string field_of(const char* name, const char* field) {
    std::string text;
    while (GstMessage* message = gst_bus_timed_pop_filtered(bus_, kPatience, GST_MESSAGE_ELEMENT)) {
      const GstStructure* structure = gst_message_get_structure(message);
      const bool found = gst_structure_has_name(structure, name);
      if (found) text = gst_structure_get_string(structure, field);
      gst_message_unref(message);
      if (found) break;
    }
    return text;
  }

 private:
  GstBus* bus_;  // the harness's
};

std::string model_of(GstBuffer* buffer) {
  const auto results = read_results(buffer);
  return results.empty() ? "none" : results[0].model;
}

// From 0.2 of the range at 0 s to 0.7 at 1 s.
void bind(GstElement* element, const char* property) {
  GstControlSource* source = gst_interpolation_control_source_new();
  g_object_set(source, "mode", GST_INTERPOLATION_MODE_LINEAR, nullptr);
  auto* timed = GST_TIMED_VALUE_CONTROL_SOURCE(source);
  gst_timed_value_control_source_set(timed, 0, 0.2);
  gst_timed_value_control_source_set(timed, GST_SECOND, 0.7);
  gst_object_add_control_binding(
      GST_OBJECT(element), gst_direct_control_binding_new(GST_OBJECT(element), property, source));
  gst_object_unref(source);
}

TEST(Controlled, ThresholdFollowsTheStreamTime) {
  Harness harness;
  harness.set_caps("NV12", 64, 48);
  bind(harness.clinfer(), "threshold");
  for (const int frame : {0, 5, 20}) {
    ASSERT_EQ(harness.push(kRed, frame), GST_FLOW_OK);
    harness.pull();
    double threshold = 0;
    g_object_get(harness.clinfer(), "threshold", &threshold, nullptr);
    EXPECT_NEAR(threshold, 0.2 + 0.5 * frame * 0.04, 1e-6) << frame;
  }
}

TEST(Controlled, TheOtherElementsFollowTheStreamTime) {
  struct Case {
    const char *element, *property;
    double range;
    bool is_number;
  };
  for (const Case& c :
       {Case{"cloverlay", "line-width", 1000, true}, Case{"cltrack", "high-threshold", 1, false},
        Case{"clcrop", "margin", 10, false}}) {
    Harness harness(std::string(c.element) + " name=it");
    harness.set_caps("NV12", 64, 48);
    const Handle<GstElement> it(gst_bin_get_by_name(GST_BIN(harness.get()->element), "it"));
    bind(it.get(), c.property);
    for (const int frame : {0, 5, 20}) {
      ASSERT_EQ(harness.push(kRed, frame), GST_FLOW_OK);
      guint number = 0;
      double share = 0;
      if (c.is_number)
        g_object_get(it.get(), c.property, &number, nullptr);
      else
        g_object_get(it.get(), c.property, &share, nullptr);
      EXPECT_NEAR(c.is_number ? number : share, c.range * (0.2 + 0.5 * frame * 0.04),
                  c.is_number ? 1.01 : 1e-6)
          << c.element << " at frame " << frame;
    }
  }
}

TEST(Changes, ThresholdsReadAsTheyWereSet) {
  Harness harness;
  g_object_set(harness.clinfer(), "threshold", 0.9, "iou-threshold", 0.35, nullptr);
  double threshold = 0, iou = 0;
  g_object_get(harness.clinfer(), "threshold", &threshold, "iou-threshold", &iou, nullptr);
  EXPECT_EQ(threshold, 0.9);
  EXPECT_EQ(iou, 0.35);
}

TEST(Changes, WhatCannotChangeNowSaysWhatIsInForce) {
  Harness harness(Harness::clinfer_launch("nireq=3"));
  Messages messages(harness);
  harness.set_caps("NV12", 64, 48);
  ASSERT_EQ(harness.push(kRed, 0), GST_FLOW_OK);
  harness.pull();
  while (messages.warning() != "") continue;
  g_object_set(harness.clinfer(), "nireq", 5, nullptr);
  EXPECT_EQ(messages.warning(),
            "nireq cannot change now; in force until the element starts again or takes another "
            "model: 3");
  g_object_set(harness.clinfer(), "nireq", 3, nullptr);
  EXPECT_EQ(messages.warning(), "");
  g_object_set(harness.clinfer(), "labels-file", "other.txt", nullptr);
  EXPECT_NE(messages.warning().find("unset"), std::string::npos);
  g_object_set(harness.clinfer(), "labels-file", nullptr, "overload-policy", 1, "object-class", "x",
               "threshold", 0.1, "share", 3, nullptr);
  EXPECT_EQ(messages.warning(), "");
  ASSERT_EQ(harness.push(kBlue, 1), GST_FLOW_OK);
  EXPECT_EQ(answer_of(harness.pull().get()), "blue");
}

TEST(Changes, EachPropertyTellsWhenItTakesEffect) {
  // A property that is read with each frame must say so.
  const std::set<std::string> with_each_frame = {
      "batch-timeout",   "threshold",        "iou-threshold", "max-detections",
      "overload-policy", "inference-region", "object-class",  "inference-interval",
      "share",           "hold-results",     "qos",           "model"};
  for (const ElementProperty& property : element_properties()) {
    const bool playing = (property.spec->flags & GST_PARAM_MUTABLE_PLAYING) != 0;
    EXPECT_TRUE(playing || with_each_frame.count(property.spec->name) == 0) << property.spec->name;
    EXPECT_TRUE(playing || property.set == nullptr ||
                (property.spec->flags & GST_PARAM_MUTABLE_READY) != 0)
        << property.spec->name;
  }
}

// Another value of the property's type; false for one that has none that can be told apart.
bool change(GObject* object, const GParamSpec* spec) {
  GValue value = G_VALUE_INIT;
  g_value_init(&value, spec->value_type);
  g_object_get_property(object, spec->name, &value);
  bool changed = true;
  if (G_VALUE_HOLDS_BOOLEAN(&value)) {
    g_value_set_boolean(&value, !g_value_get_boolean(&value));
  } else if (G_VALUE_HOLDS_ENUM(&value)) {
    const auto* values = static_cast<GEnumClass*>(g_type_class_ref(spec->value_type));
    changed = values->n_values > 1;
    const guint at = values->values[0].value == g_value_get_enum(&value) ? 1 : 0;
    if (changed) g_value_set_enum(&value, values->values[at].value);
    g_type_class_unref(const_cast<GEnumClass*>(values));
  } else if (G_VALUE_HOLDS_UINT(&value)) {
    const auto* range = reinterpret_cast<const GParamSpecUInt*>(spec);
    const guint now = g_value_get_uint(&value);
    g_value_set_uint(&value, now < range->maximum ? now + 1 : now - 1);
  } else if (G_VALUE_HOLDS_INT(&value)) {
    const auto* range = reinterpret_cast<const GParamSpecInt*>(spec);
    const gint now = g_value_get_int(&value);
    g_value_set_int(&value, now < range->maximum ? now + 1 : now - 1);
  } else if (G_VALUE_HOLDS_STRING(&value)) {
    g_value_set_string(&value, "another");
  } else {
    changed = false;
  }
  if (changed) g_object_set_property(object, spec->name, &value);
  g_value_unset(&value);
  return changed;
}

// All elements: what is not marked as changeable while playing warns, what is says nothing about it.
TEST(Changes, EachFixedPropertyOfEachElementWarns) {
  const std::string lines = testing_models::folder() / "fixed.jsonl";
  const std::pair<std::string, std::string> kElements[] = {
      {"clinfer", Harness::clinfer_launch("name=it")},
      {"clinferfilter", "clinferfilter name=it model=" + testing_models::same_picture(3, 64, 64)},
      {"cloverlay", "cloverlay name=it"},
      {"clpublish", "clpublish name=it file-path=" + lines},
      {"cltrack", "cltrack name=it"},
      {"clzones", "clzones name=it zones=door:0.1,0.1,0.5,0.1,0.5,0.5"},
      {"clcrop", "clcrop name=it"}};
  for (const auto& [name, launch] : kElements) {
    Harness harness("identity ! " + launch);
    Messages messages(harness);
    harness.set_caps("I420", 64, 64);
    ASSERT_EQ(harness.push(kRed, 0), GST_FLOW_OK) << name;
    const Handle<GstElement> it(gst_bin_get_by_name(GST_BIN(harness.get()->element), "it"));
    while (messages.warning() != "") continue;
    unsigned count = 0;
    GParamSpec** specs = g_object_class_list_properties(G_OBJECT_GET_CLASS(it.get()), &count);
    for (guint i = 0; i < count; ++i) {
      const GParamSpec* spec = specs[i];
      const bool own = spec->owner_type == G_OBJECT_TYPE(it.get());
      if (!own || (spec->flags & G_PARAM_WRITABLE) == 0 || std::string(spec->name) == "model")
        continue;
      if (!change(G_OBJECT(it.get()), spec)) continue;
      const std::string warning = messages.warning();
      const std::string fixed = std::string(spec->name) + " cannot change now; in force ";
      const bool playing = (spec->flags & GST_PARAM_MUTABLE_PLAYING) != 0;
      if (playing)
        EXPECT_EQ(warning.find("cannot change now"), std::string::npos) << name << ": " << warning;
      else
        EXPECT_EQ(warning.rfind(fixed, 0), 0u) << name << " " << spec->name << ": " << warning;
      while (messages.warning() != "") continue;
    }
    g_free(specs);
  }
}

TEST(Changes, AnotherModelTakesOverBetweenTwoFrames) {
  for (const char* id : {"", "model-instance-id=swapped "}) {
    Harness harness(Harness::clinfer_launch(std::string(id) + "nireq=4"));
    Messages messages(harness);
    harness.set_caps("NV12", 64, 48);
    ASSERT_EQ(harness.push(kRed, 0), GST_FLOW_OK);
    EXPECT_EQ(model_of(harness.pull().get()), "color");
    const std::string other = color_model("other", 24);
    g_object_set(harness.clinfer(), "model", other.c_str(), nullptr);
    // Frames go on while it compiles.
    int frame = 1;
    std::string answers;
    for (; frame < 200 && answers != "other"; ++frame) {
      ASSERT_EQ(harness.push(kGreen, frame), GST_FLOW_OK);
      const auto buffer = harness.pull();
      EXPECT_EQ(answer_of(buffer.get()), "green");
      answers = model_of(buffer.get());
      EXPECT_TRUE(answers == "color" || answers == "other") << answers;
      g_usleep(10000);
    }
    EXPECT_EQ(answers, "other");
    EXPECT_EQ(messages.field_of("clinfer-model", "model"), other);
    // And back, with frames in flight.
    for (int i = 0; i < 3; ++i) ASSERT_EQ(harness.push(kBlue, frame++), GST_FLOW_OK);
    g_object_set(harness.clinfer(), "model", color_model().c_str(), nullptr);
    EXPECT_EQ(messages.field_of("clinfer-model", "previous"), other);
    ASSERT_EQ(harness.push(kBlue, frame++), GST_FLOW_OK);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(model_of(harness.pull().get()), "other");
    EXPECT_EQ(model_of(harness.pull().get()), "color");
  }
}

TEST(Changes, AModelThatCannotBeReadLeavesTheOldOne) {
  Harness harness;
  Messages messages(harness);
  harness.set_caps("NV12", 64, 48);
  ASSERT_EQ(harness.push(kRed, 0), GST_FLOW_OK);
  harness.pull();
  while (messages.warning() != "") continue;
  g_object_set(harness.clinfer(), "model", "/nowhere/at-all.xml", nullptr);
  const std::string warning = messages.warning(kPatience);
  EXPECT_NE(warning.find("model=/nowhere/at-all.xml is not taken"), std::string::npos) << warning;
  ASSERT_EQ(harness.push(kRed, 1), GST_FLOW_OK);
  EXPECT_EQ(answer_of(harness.pull().get()), "red");
}

TEST(Changes, ManyModelsInARowEndWithTheLast) {
  Harness harness;
  Messages messages(harness);
  harness.set_caps("NV12", 64, 48);
  ASSERT_EQ(harness.push(kRed, 0), GST_FLOW_OK);
  harness.pull();
  std::string last;
  for (int i = 0; i < 6; ++i) {
    last = color_model("many" + std::to_string(i), 20 + 2 * i);
    g_object_set(harness.clinfer(), "model", last.c_str(), nullptr);
  }
  while (messages.field_of("clinfer-model", "model") != last) continue;
  ASSERT_EQ(harness.push(kRed, 1), GST_FLOW_OK);
  EXPECT_EQ(model_of(harness.pull().get()), "many5");
}

}  // namespace
}  // namespace clinfer
