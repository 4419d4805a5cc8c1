// Replaces the reader in builds without ONNX.
#include "engine/onnx/onnx_reader.h"

namespace clinfer {

OnnxModel read_onnx(const std::string& path, const InputShapes&, const CustomLayers*) {
  throw Error(ErrorCode::unsupported,
              path +
                  ": built without ONNX, which needs libonnx-dev, libprotobuf-dev and "
                  "protobuf-compiler; or convert the model to OpenVINO IR");
}

OnnxModel read_onnx(std::span<const std::byte>, const std::string& where, const InputShapes& wanted,
                    const CustomLayers* custom) {
  return read_onnx(where, wanted, custom);
}

}  // namespace clinfer
