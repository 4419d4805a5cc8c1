// The rule for f16 and f32, in the words that help texts, the element's properties and the
// documentation share.
#pragma once

namespace clinfer {

inline constexpr const char* kPrecisionText =
    "INFERENCE_PRECISION=auto keeps values between layers in f16 on devices that compute f16, "
    "whatever type the file's weights have, else in f32; f16 and f32 decide for the whole network; "
    "bf16 keeps f32 values and multiplies in bf16 where the processor has instructions for it; "
    "CLDNN_ENABLE_FP16_FOR_QUANTIZED_MODELS=NO means f32 for quantised models, also those of "
    "FP32 weights";

}  // namespace clinfer
