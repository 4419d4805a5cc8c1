// Defines names and bones of skeletons, in the order of the data sets.
#include "engine/heads/base/decoder.h"

namespace clinfer {

const SkeletonFacts& skeleton_of(Skeleton kind) {
  static const auto& kNone = *new const SkeletonFacts;
  static const auto& kCoco17 = *new const SkeletonFacts{
      "coco-17",
      {"nose", "left_eye", "right_eye", "left_ear", "right_ear", "left_shoulder", "right_shoulder",
       "left_elbow", "right_elbow", "left_wrist", "right_wrist", "left_hip", "right_hip",
       "left_knee", "right_knee", "left_ankle", "right_ankle"},
      {{0, 1},
       {0, 2},
       {1, 3},
       {2, 4},
       {5, 6},
       {5, 7},
       {7, 9},
       {6, 8},
       {8, 10},
       {5, 11},
       {6, 12},
       {11, 12},
       {11, 13},
       {13, 15},
       {12, 14},
       {14, 16}}};
  static const auto& kBody25 = *new const SkeletonFacts{
      "body-25",
      {"nose",           "neck",        "right_shoulder", "right_elbow",     "right_wrist",
       "left_shoulder",  "left_elbow",  "left_wrist",     "mid_hip",         "right_hip",
       "right_knee",     "right_ankle", "left_hip",       "left_knee",       "left_ankle",
       "right_eye",      "left_eye",    "right_ear",      "left_ear",        "left_big_toe",
       "left_small_toe", "left_heel",   "right_big_toe",  "right_small_toe", "right_heel"},
      {{1, 8},  {1, 2},   {1, 5},   {2, 3},   {3, 4},   {5, 6},   {6, 7},   {8, 9},
       {9, 10}, {10, 11}, {8, 12},  {12, 13}, {13, 14}, {1, 0},   {0, 15},  {15, 17},
       {0, 16}, {16, 18}, {14, 19}, {19, 20}, {14, 21}, {11, 22}, {22, 23}, {11, 24}}};
  static const auto& kBody18 = *new const SkeletonFacts{
      "body-18",
      {"nose", "neck", "right_shoulder", "right_elbow", "right_wrist", "left_shoulder",
       "left_elbow", "left_wrist", "right_hip", "right_knee", "right_ankle", "left_hip",
       "left_knee", "left_ankle", "right_eye", "left_eye", "right_ear", "left_ear"},
      {{1, 2},
       {1, 5},
       {2, 3},
       {3, 4},
       {5, 6},
       {6, 7},
       {1, 8},
       {8, 9},
       {9, 10},
       {1, 11},
       {11, 12},
       {12, 13},
       {1, 0},
       {0, 14},
       {14, 16},
       {0, 15},
       {15, 17}}};
  static const auto& kFace5 = *new const SkeletonFacts{
      "face-5", {"left_eye", "right_eye", "nose", "left_mouth", "right_mouth"}, {}};
  static const auto& kHand21 = *new const SkeletonFacts{
      "hand-21",
      {"wrist",      "thumb_cmc", "thumb_mcp", "thumb_ip",   "thumb_tip",  "index_mcp",
       "index_pip",  "index_dip", "index_tip", "middle_mcp", "middle_pip", "middle_dip",
       "middle_tip", "ring_mcp",  "ring_pip",  "ring_dip",   "ring_tip",   "pinky_mcp",
       "pinky_pip",  "pinky_dip", "pinky_tip"},
      {{0, 1},   {1, 2},   {2, 3},   {3, 4},   {0, 5},   {5, 6},   {6, 7},
       {7, 8},   {5, 9},   {9, 10},  {10, 11}, {11, 12}, {9, 13},  {13, 14},
       {14, 15}, {15, 16}, {13, 17}, {0, 17},  {17, 18}, {18, 19}, {19, 20}}};
  static const auto& kBody33 = *new const SkeletonFacts{
      "body-33",
      {"nose",        "left_eye_inner",  "left_eye",        "left_eye_outer", "right_eye_inner",
       "right_eye",   "right_eye_outer", "left_ear",        "right_ear",      "mouth_left",
       "mouth_right", "left_shoulder",   "right_shoulder",  "left_elbow",     "right_elbow",
       "left_wrist",  "right_wrist",     "left_pinky",      "right_pinky",    "left_index",
       "right_index", "left_thumb",      "right_thumb",     "left_hip",       "right_hip",
       "left_knee",   "right_knee",      "left_ankle",      "right_ankle",    "left_heel",
       "right_heel",  "left_foot_index", "right_foot_index"},
      {{0, 1},   {1, 2},   {2, 3},   {3, 7},   {0, 4},   {4, 5},   {5, 6},   {6, 8},   {9, 10},
       {11, 12}, {11, 13}, {13, 15}, {15, 17}, {15, 19}, {15, 21}, {17, 19}, {12, 14}, {14, 16},
       {16, 18}, {16, 20}, {16, 22}, {18, 20}, {11, 23}, {12, 24}, {23, 24}, {23, 25}, {25, 27},
       {27, 29}, {27, 31}, {29, 31}, {24, 26}, {26, 28}, {28, 30}, {28, 32}, {30, 32}}};
  switch (kind) {
    case Skeleton::coco17:
      return kCoco17;
    case Skeleton::body25:
      return kBody25;
    case Skeleton::body18:
      return kBody18;
    case Skeleton::face5:
      return kFace5;
    case Skeleton::hand21:
      return kHand21;
    case Skeleton::body33:
      return kBody33;
    case Skeleton::none:
    case Skeleton::other:
      break;
  }
  return kNone;
}

}  // namespace clinfer
