// Parses JSON.
#include "engine/heads/files/json_text.h"

#include <json-glib/json-glib.h>

#include "kernels/base/error.h"
#include "kernels/base/json_limits.h"

namespace clinfer {

JsonRoot parse_json(const std::string& text) {
  if (const std::string why = json_excess(text); !why.empty())
    throw Error{ErrorCode::bad_argument, why};
  GError* problem = nullptr;
  const std::unique_ptr<JsonParser, void (*)(gpointer)> parser(json_parser_new(), g_object_unref);
  if (!json_parser_load_from_data(parser.get(), text.data(), static_cast<gssize>(text.size()),
                                  &problem)) {
    const std::string why = problem != nullptr ? problem->message : "is no JSON";
    g_clear_error(&problem);
    throw Error{ErrorCode::bad_argument, why};
  }
  JsonNode* const root = json_parser_steal_root(parser.get());
  if (root == nullptr) throw Error{ErrorCode::bad_argument, "is empty"};
  return {root, json_node_unref};
}

}  // namespace clinfer
