// Thresholds and the engine's configuration, from the element's properties.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "engine/heads/network.h"
#include "gst/infer/settings.h"

namespace clinfer {

// The value of reshape with which the network gets the frame's own size: it is read once that is known.
inline constexpr char kFollowsFrame[] = "frame";
inline bool follows_frame(const ModelOptions& options) { return options.reshape == kFollowsFrame; }

// Thresholds in force: a property that was set wins.
DecodeSettings decode_settings(const Network& network, const Settings& settings);

// A CONFIG_FILE in Settings::config takes the place of config_file. Throws as Config::set().
void settle_config_file(const std::string& config, ModelOptions& options);

Config engine_config(const Network& network, const Settings& settings);

// The blurb of the property `config`; it lives as long as the process.
const char* config_blurb();

}  // namespace clinfer
