// Derives thresholds and the engine's configuration from the element's properties.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "engine/heads/network.h"
#include "gst/infer/settings/settings.h"

namespace clinfer {

// The value of reshape with which the network gets the frame's own size. The network is read once
// that is known.
inline constexpr char kFollowsFrame[] = "frame";
inline bool follows_frame(const ModelOptions& options) { return options.reshape == kFollowsFrame; }

// Returns the thresholds in force: those of properties that were set, else those of the model.
DecodeSettings decode_settings(const Network& network, const Settings& settings);

// Replaces config_file by a CONFIG_FILE in Settings::config. Throws as Config::set() does.
void settle_config_file(const std::string& config, ModelOptions& options);

Config engine_config(const Network& network, const Settings& settings);

// Returns the description of the property `config`, which lives as long as the process.
const char* config_blurb();

}  // namespace clinfer
