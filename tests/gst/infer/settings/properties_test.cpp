// The table of properties: each row writes its own member and reads it back, and what the engine
// depends on is compared and configured by the row alone.
#include "gst/infer/settings/properties.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "engine/runtime/options.h"

namespace clinfer {
namespace {

// A value that is not the default.
void set_other_value(GValue* value, const GParamSpec* spec) {
  g_value_init(value, spec->value_type);
  if (G_IS_PARAM_SPEC_STRING(spec)) {
    g_value_set_string(value, "other");
  } else if (G_IS_PARAM_SPEC_UINT(spec)) {
    g_value_set_uint(value, G_PARAM_SPEC_UINT(spec)->default_value + 1);
  } else if (G_IS_PARAM_SPEC_INT(spec)) {
    g_value_set_int(value, G_PARAM_SPEC_INT(spec)->default_value + 1);
  } else if (G_IS_PARAM_SPEC_DOUBLE(spec)) {
    g_value_set_double(value, 0.9);
  } else if (G_IS_PARAM_SPEC_BOOLEAN(spec)) {
    g_value_set_boolean(value, !G_PARAM_SPEC_BOOLEAN(spec)->default_value);
  } else if (spec->value_type == G_TYPE_BYTES) {
    g_value_take_boxed(value, g_bytes_new_static("other", 5));
  } else if (G_IS_PARAM_SPEC_FLAGS(spec)) {
    g_value_set_flags(value, G_PARAM_SPEC_FLAGS(spec)->flags_class->mask);
  } else {
    ASSERT_TRUE(G_IS_PARAM_SPEC_ENUM(spec)) << spec->name;
    g_value_set_enum(value, G_PARAM_SPEC_ENUM(spec)->default_value + 1);
  }
}

struct NoModel : Readings {
  DecodeSettings decode_settings_in_force() const override { return {}; }
  GstStructure* stats() const override { return gst_structure_new_empty("none"); }
};

bool same(const GParamSpec* spec, const GValue& a, const GValue& b) {
  if (spec->value_type == G_TYPE_BYTES)
    return g_bytes_equal(g_value_get_boxed(&a), g_value_get_boxed(&b));
  return g_param_values_cmp(const_cast<GParamSpec*>(spec), &a, &b) == 0;
}

void read_property(const ElementProperty& property, const Settings& settings, GValue* value) {
  g_value_init(value, property.spec->value_type);
  if (property.get != nullptr)
    property.get(settings, value);
  else
    property.read(NoModel(), settings, value);
}

TEST(Properties, EachIsReadBackAsItWasSet) {
  std::set<std::string> names;
  for (const ElementProperty& property : element_properties()) {
    EXPECT_TRUE(names.insert(property.spec->name).second) << property.spec->name;
    Settings settings;
    GValue read = G_VALUE_INIT;
    read_property(property, settings, &read);
    if (property.set != nullptr) {
      EXPECT_TRUE(g_param_value_defaults(property.spec, &read)) << property.spec->name;
      GValue value = G_VALUE_INIT;
      set_other_value(&value, property.spec);
      property.set(settings, &value);
      g_value_unset(&read);
      read_property(property, settings, &read);
      EXPECT_TRUE(same(property.spec, read, value)) << property.spec->name;
      // Only this row's member has changed.
      for (const ElementProperty& other : element_properties()) {
        if (other.set == nullptr) continue;
        EXPECT_EQ(other.equal(settings, Settings{}), &other != &property)
            << property.spec->name << " " << other.spec->name;
      }
      g_value_unset(&value);
    }
    g_value_unset(&read);
  }
}

TEST(Properties, ThoseOfTheEngineAreComparedAndNamed) {
  std::set<std::string> compared;
  for (const ElementProperty& property : element_properties()) {
    if (property.set == nullptr) continue;
    Settings settings;
    GValue value = G_VALUE_INIT;
    set_other_value(&value, property.spec);
    property.set(settings, &value);
    g_value_unset(&value);
    const std::string difference = engine_difference(settings, Settings{});
    EXPECT_EQ(difference, property.of_engine ? property.spec->name : "");
    if (!difference.empty()) compared.insert(difference);
  }
  for (const char* name : {"model", "device", "nireq", "batch-size", "tuning-file", "config"})
    EXPECT_EQ(compared.count(name), 1u) << name;
  EXPECT_EQ(compared.count("threshold"), 0u);
}

TEST(Properties, ConfigurationOfTheEngineFollowsTheRows) {
  Settings settings;
  settings.device = "GPU.3";
  settings.throughput_streams = 4;
  settings.throttle = QueueHint::low;
  settings.cache_dir = "";
  settings.tuning_mode = TuningMode::create;
  Config config;
  configure(settings, config);
  EXPECT_EQ(config.device, "GPU.3");
  EXPECT_EQ(config.streams, 4u);
  EXPECT_EQ(config.throttle, QueueHint::low);
  EXPECT_EQ(config.cache_dir, "");
  EXPECT_EQ(config.tuning_mode, TuningMode::create);
}

TEST(Properties, OptionsOfTheEngineNameTheirs) {
  std::set<std::string_view> configuring;
  for (const ElementProperty& property : element_properties())
    if (property.configure != nullptr) configuring.insert(property.spec->name);
  EXPECT_EQ(configuring.erase("device"), 1u);  // no option: compile() takes it by itself
  for (const Option& option : options())
    EXPECT_TRUE(option.property.empty() || configuring.erase(option.property) == 1) << option.name;
  for (const std::string_view rest : configuring) ADD_FAILURE() << "no option names " << rest;
}

TEST(Properties, ThresholdsOfTheModelReadAsAPersonWroteThem) {
  struct ModelSays : NoModel {
    DecodeSettings decode_settings_in_force() const override { return {0.3f, 0.7f, 0}; }
  };
  std::map<std::string, double> read;
  for (const ElementProperty& property : element_properties()) {
    if (property.spec->value_type != G_TYPE_DOUBLE || property.read == nullptr) continue;
    GValue value = G_VALUE_INIT;
    g_value_init(&value, G_TYPE_DOUBLE);
    property.read(ModelSays(), Settings{}, &value);
    read[property.spec->name] = g_value_get_double(&value);
  }
  EXPECT_EQ(read["threshold"], 0.3);
  EXPECT_EQ(read["iou-threshold"], 0.7);
}

}  // namespace
}  // namespace clinfer
