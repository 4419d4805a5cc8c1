// libnvcuvid.so.1 without a decoder: GStreamer's nvcodec plug-in has no elements at all, also not those
// for memory, where it finds neither NVIDIA's decoders nor its encoders.
#define RIG_NO_DECODER(name) \
  extern "C" __attribute__((visibility("default"))) int name() { return 801; /* not supported */ }
RIG_NO_DECODER(cuvidCreateDecoder)
RIG_NO_DECODER(cuvidCreateVideoParser)
RIG_NO_DECODER(cuvidCtxLock)
RIG_NO_DECODER(cuvidCtxLockCreate)
RIG_NO_DECODER(cuvidCtxLockDestroy)
RIG_NO_DECODER(cuvidCtxUnlock)
RIG_NO_DECODER(cuvidDecodePicture)
RIG_NO_DECODER(cuvidDestroyDecoder)
RIG_NO_DECODER(cuvidDestroyVideoParser)
RIG_NO_DECODER(cuvidGetDecoderCaps)
RIG_NO_DECODER(cuvidMapVideoFrame64)
RIG_NO_DECODER(cuvidParseVideoData)
RIG_NO_DECODER(cuvidReconfigureDecoder)
RIG_NO_DECODER(cuvidUnmapVideoFrame64)
