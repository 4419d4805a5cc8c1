// Lines with the keys of DL Streamer 2026.2. The lines expected here were written by hand from the
// source code of its gvametaconvert.
#include "gst/publish/dl_streamer_line.h"

#include <gtest/gtest.h>

namespace clinfer {
namespace {

RegionView person() {
  RegionView region;
  region.x = 20, region.y = 10, region.width = 40, region.height = 40;
  region.id = 3;
  region.roi_type = region.label = "person";
  region.has_detection = true;
  region.box = {0.1f, 0.1f, 0.3f, 0.5f};
  region.confidence = 0.75;
  region.label_id = 1;
  region.model = "net";
  return region;
}

FrameFacts facts() {
  FrameFacts facts{7, 200, 100, 40000000};
  facts.source = "cam";
  return facts;
}

constexpr const char* kEnd =
    R"("resolution":{"width":200,"height":100},"source":"cam","timestamp":40000000)";
std::string line_of(const std::string& objects) {
  return std::string("{") + kEnd + ",\"objects\":[" + objects + "]}";
}

TEST(DlStreamerLine, HasNoLineForAFrameWithoutResults) {
  FrameFacts wanted = facts();
  EXPECT_EQ(dl_streamer_line(wanted, {}), "");
  FrameView skipped;
  skipped.results.emplace_back();
  EXPECT_EQ(dl_streamer_line(wanted, skipped), "");
  wanted.empty_results = true;
  EXPECT_EQ(dl_streamer_line(wanted, skipped), std::string("{") + kEnd + "}");
}

TEST(DlStreamerLine, HasObjectsWithTheirAttributes) {
  FrameView frame;
  RegionView region = person();
  region.parent_id = 2;
  region.track_id = 5;
  ClassificationView color;
  color.attribute = "color", color.label_id = 4, color.label = "red", color.confidence = 0.5f;
  color.model = "colors";
  ClassificationView id = color;  // its name is taken
  id.attribute = "id", id.label = "";
  TextView plate;
  plate.text = "A 1", plate.confidence = 1, plate.model = "reader";
  region.classifications = {color, id};
  region.texts = {plate};
  region.keypoints.resize(17);
  frame.regions = {region};
  EXPECT_EQ(
      dl_streamer_line(facts(), frame),
      line_of(
          R"({"x":20,"y":10,"w":40,"h":40,"region_id":3,"parent_id":2,"id":5,"roi_type":"person",)"
          R"("detection":{"bounding_box":{"x_min":0.1,"x_max":0.3,"y_min":0.1,"y_max":0.5},"confidence":0.75,"label_id":1,"label":"person"},)"
          R"("color":{"label":"red","model":{"name":"colors"},"confidence":0.5,"label_id":4},)"
          R"("id_2":{"label":"4","model":{"name":"colors"},"confidence":0.5,"label_id":4},)"
          R"("text":{"label":"A 1","model":{"name":"reader"},"confidence":1}})"));
}

TEST(DlStreamerLine, HasZonesLinesAndTimesOfAnObject) {
  FrameView frame;
  RegionView region = person();
  region.track_id = 5;
  region.zones = {"yard", "gate"};
  frame.regions = {region};
  EventView in{"cross", "door", "in", 5, "person", {}}, out = in, other = in, dwell = in;
  out.zone = "exit", out.direction = "out";
  other.track_id = 6;
  dwell.type = "dwell", dwell.zone = "yard", dwell.direction = "", dwell.seconds = 1.5;
  frame.events = {in, out, other, dwell};
  FrameFacts late = facts();
  late.timestamp = 3500000000;
  const std::string line = dl_streamer_line(late, frame);
  EXPECT_NE(
      line.find(
          R"("zone_violations":["yard","gate"],"tripwire_crossings":[{"tripwire_id":"door","direction":1},)"
          R"({"tripwire_id":"exit","direction":-1}],)"
          R"("dwell_times":[{"zone_id":"yard","dwell_time_sec":1.5,"first_seen_timestamp_sec":2}]})"),
      line.npos)
      << line;
}

TEST(DlStreamerLine, HasTheRectangleOfATurnedObjectBeforeItIsTurned) {
  FrameView frame;
  RegionView region = person();
  // 20 x 40 pixels around (100, 50), turned by a quarter.
  region.corners = {{{0.6f, 0.4f}, {0.6f, 0.6f}, {0.4f, 0.6f}, {0.4f, 0.4f}}};
  frame.regions = {region};
  const std::string line = dl_streamer_line(facts(), frame);
  EXPECT_NE(line.find(R"({"x":90,"y":30,"w":20,"h":40,)"), line.npos) << line;
  EXPECT_EQ(line.find("rotation"), line.npos) << line;
}

TEST(DlStreamerLine, HasAnswersAboutTheFrameByTheirModel) {
  FrameView frame;
  ResultView& result = frame.results.emplace_back();
  ClassificationView scene;
  scene.attribute = "prob", scene.label_id = 2, scene.label = "street", scene.confidence = 0.25f;
  scene.model = "places";
  result.classifications = {scene, scene};
  const std::string answer = R"({"label":"street","confidence":0.25,"label_id":2})";
  EXPECT_EQ(dl_streamer_line(facts(), frame),
            line_of(R"({"x":0,"y":0,"w":200,"h":100,"classification/places":)" + answer +
                    R"(,"classification/places_2":)" + answer + "}"));
}

TEST(DlStreamerLine, HasTensorsOnlyIfTheirDataIsWanted) {
  FrameView frame;
  RegionView region = person();
  region.box = {0.25f, 0.25f, 0.5f, 0.75f};
  region.skeleton = Skeleton::face5;
  region.landmarks = {{0.25f, 0.25f}, {0.5f, 0.25f}, {0.375f, 0.5f}, {0.25f, 0.75f}, {0.5f, 0.75f}};
  TensorView vector;
  vector.name = "id", vector.type = "f32", vector.model = "reid", vector.dims = {2};
  vector.data = bytes_of(std::vector<float>{0.5f, -1});
  region.embeddings = {vector};
  region.mask.emplace();
  region.mask->columns = region.mask->rows = 1;
  region.mask->area = region.box;
  region.mask->values = bytes_of(std::vector<float>{1});
  frame.regions = {region};
  ResultView& result = frame.results.emplace_back();
  TensorView raw = vector;
  raw.name = "out", raw.type = "i64", raw.dims = {1, 2};
  raw.data = bytes_of(std::vector<int64_t>{3, -4});
  result.tensors = {raw};
  MapView classes;
  classes.name = "map", classes.model = "roads", classes.columns = 2, classes.rows = 1;
  classes.values = bytes_of(std::vector<uint16_t>{3, kNoClass});
  result.maps = {classes};
  FrameFacts wanted = facts();
  EXPECT_EQ(dl_streamer_line(wanted, frame).find("tensors"), std::string::npos);
  wanted.tensor_data = true;
  const std::string line = dl_streamer_line(wanted, frame);
  for (
      const std::string part :
      {R"("tensors":[{"precision":"UNSPECIFIED","layout":"ANY","name":"detection","model_name":"net","confidence":0.75,"label_id":1})",
       R"({"precision":"FP32","layout":"ANY","name":"keypoints","dims":[5,2],"semantic_tag":"net/face-landmarks/centerface-5","format":"face-landmarks/centerface-5","type":"keypoints",)",
       R"("point_names":["eye_l","eye_r","nose_tip","mouth_l","mouth_r"]})",
       R"({"precision":"FP32","layout":"ANY","name":"segmentation","dims":[50,50],"semantic_tag":"net","format":"instance_segmentation","type":"segmentation","data":[1,1,)",
       R"({"precision":"FP32","layout":"ANY","name":"tensor","dims":[2],"semantic_tag":"reid","tensor_name":"id","dims_order":"row-major","type":"tensor","data":[0.5,-1]})",
       R"({"precision":"I64","layout":"ANY","name":"tensor","dims":[1,2],"semantic_tag":"reid","tensor_name":"out","dims_order":"row-major","type":"tensor","data":[3,-4]})",
       R"({"precision":"I64","layout":"ANY","name":"segmentation","dims":[1,1,2],"semantic_tag":"roads","format":"semantic_segmentation","type":"segmentation","data":[3,0]})"})
    EXPECT_NE(line.find(part), line.npos) << part << "\nis not in\n" << line;
  // Points are shares of the object's box.
  const size_t data = line.find(R"("data":[)", line.find("keypoints"));
  EXPECT_EQ(line.substr(data, 36), R"("data":[0,0,1,0,0.5,0.5,0,1,1,1],"po)") << line;
}

TEST(DlStreamerLine, NamesThePointsOfASkeletonAsItDoes) {
  FrameView frame;
  RegionView region = person();
  region.skeleton = Skeleton::coco17;
  region.keypoints.assign(17, {0.2f, 0.2f, 0.5f});
  frame.regions = {region};
  FrameFacts wanted = facts();
  wanted.tensor_data = true;
  std::string line = dl_streamer_line(wanted, frame);
  EXPECT_NE(line.find(R"("format":"body-pose/coco-17","type":"keypoints","confidence":0.5,)"),
            line.npos)
      << line;
  EXPECT_NE(line.find(R"("point_names":["nose","eye_l","eye_r","ear_l","ear_r","shoulder_l")"),
            line.npos)
      << line;
  EXPECT_NE(line.find(R"("point_connections":[0,1,)"), line.npos) << line;
  frame.regions[0].keypoints[1].confidence = 0.25f;
  line = dl_streamer_line(wanted, frame);
  EXPECT_NE(line.find(R"("confidence":[0.5,0.25,0.5,)"), line.npos) << line;
}

}  // namespace
}  // namespace clinfer
