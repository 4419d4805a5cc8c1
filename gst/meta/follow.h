// Makes results follow the picture through elements that move it without telling metas, and that
// drop metas of the picture: videocrop where it copies, videoflip, videobox.
#pragma once

#include <gst/gst.h>

namespace clinfer {

// Looks for such elements downstream of a source pad, through queues, tees and bins, and makes the
// results of clinfer's frames pass each of them: boxes move as the picture does. To be called
// before frames pass, and again after the pipeline has changed. The probes stay as long as those
// elements live.
void follow_results(GstPad* source);

}  // namespace clinfer
