/* The C interface, from C: the bundled detector finds a ball by every way in and out; what is wrong is refused. */
#include "engine/library/clinfer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures = 0;

#define EXPECT(condition)                                                                 \
  do {                                                                                    \
    if (!(condition)) {                                                                   \
      ++failures;                                                                         \
      fprintf(stderr, "%s:%d: %s is false; the last error is \"%s\"\n", __FILE__, __LINE__, \
              #condition, clinfer_last_error());                                          \
    }                                                                                     \
  } while (0)
#define GOOD(call) EXPECT((call) == CLINFER_OK)
#define REFUSED(call, status, text) \
  EXPECT((call) == (status) && strstr(clinfer_last_error(), (text)) != NULL)

enum { kWidth = 256, kHeight = 192, kPixels = kWidth * kHeight };

/* A white ball on black, as [1,3,192,256]. */
static float *ball_at(int x, int y) {
  float *const picture = calloc(3 * kPixels, sizeof *picture);
  for (int c = 0; c < 3; ++c)
    for (int i = 0; i < kPixels; ++i) {
      const int dx = i % kWidth - x, dy = i / kWidth - y;
      if (dx * dx + dy * dy < 16 * 16) picture[c * kPixels + i] = 255;
    }
  return picture;
}

/* Whether the best row of [1,1,N,7] is a ball there. */
static int found_at(const clinfer_tensor *rows, int x, int y) {
  if (rows->type != CLINFER_F32 || rows->rank != 4 || rows->shape[3] != 7) return 0;
  const float *const row = rows->data;
  const float got_x = (row[3] + row[5]) / 2 * kWidth, got_y = (row[4] + row[6]) / 2 * kHeight;
  return row[0] == 0 && row[1] == 1 && row[2] > 0.5f && got_x > (float)(x - 6) &&
         got_x < (float)(x + 6) && got_y > (float)(y - 6) && got_y < (float)(y + 6);
}

static clinfer_tensor tensor_of(const float *picture) {
  static const int64_t shape[] = {1, 3, kHeight, kWidth};
  const clinfer_tensor tensor = {picture, 3 * kPixels * sizeof *picture, shape, 4, CLINFER_F32};
  return tensor;
}

static int finds(clinfer_request *request, int x, int y) {
  clinfer_tensor rows;
  return clinfer_request_infer(request) == CLINFER_OK &&
         clinfer_request_output(request, 0, &rows) == CLINFER_OK && found_at(&rows, x, y);
}

/* Counts its calls and starts the request again until there were three. */
struct calls {
  int count;
  clinfer_status last;
  int right;
};

static void completed(void *user, clinfer_request *request, clinfer_status status) {
  struct calls *const calls = user;
  clinfer_tensor rows;
  calls->last = status;
  calls->right += status == CLINFER_OK &&
                  clinfer_request_output(request, 0, &rows) == CLINFER_OK && found_at(&rows, 60, 50);
  if (clinfer_request_wait(request, 0, NULL) != CLINFER_BAD_ARGUMENT) calls->right = -100;
  if (++calls->count < 3) clinfer_request_start(request);
}

static void *read_file(const char *folder, const char *name, size_t *size) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *const file = fopen(path, "rb");
  if (file == NULL) exit(2);
  fseek(file, 0, SEEK_END);
  *size = (size_t)ftell(file);
  rewind(file);
  void *const bytes = malloc(*size);
  if (fread(bytes, 1, *size, file) != *size) exit(2);
  fclose(file);
  return bytes;
}

static void test_requests(const clinfer_compiled *compiled) {
  clinfer_request *request = NULL, *other = NULL;
  GOOD(clinfer_request_create(compiled, &request));
  GOOD(clinfer_request_create(compiled, &other));
  float *const picture = ball_at(60, 50), *const elsewhere = ball_at(180, 120);
  clinfer_tensor tensor = tensor_of(picture), rows;
  REFUSED(clinfer_request_output(request, 0, &rows), CLINFER_BAD_ARGUMENT, "before an inference");
  GOOD(clinfer_request_set_input(request, 0, &tensor));
  EXPECT(finds(request, 60, 50));
  EXPECT(finds(request, 60, 50)); /* the input stays */

  int done = -1;
  GOOD(clinfer_request_start(request));
  REFUSED(clinfer_request_start(request), CLINFER_BAD_ARGUMENT, "in flight");
  REFUSED(clinfer_request_set_input(request, 0, &tensor), CLINFER_BAD_ARGUMENT, "in flight");
  GOOD(clinfer_request_wait(request, -1, &done));
  EXPECT(done == 1);

  void *memory = NULL;
  size_t bytes = 0;
  GOOD(clinfer_request_input_memory(request, 0, &memory, &bytes));
  EXPECT(bytes == tensor.bytes);
  memcpy(memory, elsewhere, bytes);
  EXPECT(finds(request, 180, 120));
  memcpy(memory, picture, bytes);
  EXPECT(finds(request, 60, 50));

  /* Twice the network's size, in grey bytes. */
  uint8_t *const pixels = calloc(4, kPixels);
  for (int i = 0; i < 4 * kPixels; ++i) {
    const int dx = i % (2 * kWidth) - 360, dy = i / (2 * kWidth) - 240;
    if (dx * dx + dy * dy < 32 * 32) pixels[i] = 255;
  }
  clinfer_picture frame = {.format = CLINFER_GREY8, .width = 2 * kWidth, .height = 2 * kHeight,
                           .planes = {pixels}, .strides = {2 * kWidth}};
  GOOD(clinfer_request_set_picture(request, 0, 0, &frame));
  EXPECT(finds(request, 180, 120));
  frame.strides[0] = kWidth;
  REFUSED(clinfer_request_set_picture(request, 0, 0, &frame), CLINFER_BAD_ARGUMENT, "stride");
  frame.strides[0] = 2 * kWidth;
  frame.planes[0] = NULL;
  REFUSED(clinfer_request_set_picture(request, 0, 0, &frame), CLINFER_BAD_ARGUMENT, "NULL");
  REFUSED(clinfer_request_set_picture(request, 0, 1, &frame), CLINFER_BAD_ARGUMENT, "");

  /* The output of one request is memory that another one reads. */
  struct _cl_mem *buffer = NULL;
  GOOD(clinfer_request_set_input(request, 0, &tensor));
  GOOD(clinfer_request_output_buffer(request, 0, &buffer));
  EXPECT(buffer != NULL);
  GOOD(clinfer_request_infer(request));
  REFUSED(clinfer_request_output(request, 0, &rows), CLINFER_BAD_ARGUMENT, "memory of the device");
  REFUSED(clinfer_request_set_input_buffer(other, 0, buffer, 0), CLINFER_BAD_ARGUMENT, "needs");
  GOOD(clinfer_request_set_output_buffer(request, 0, NULL, 0));
  EXPECT(finds(request, 60, 50));

  struct calls calls = {0, CLINFER_IO, 0};
  GOOD(clinfer_request_set_callback(request, completed, &calls));
  GOOD(clinfer_request_start(request));
  for (int n = 0; n < 1000 && calls.count < 3; ++n) GOOD(clinfer_request_wait(request, 100, NULL));
  GOOD(clinfer_request_wait(request, -1, NULL));
  EXPECT(calls.count == 3 && calls.last == CLINFER_OK && calls.right == 3);
  GOOD(clinfer_request_set_callback(request, NULL, NULL));
  EXPECT(finds(request, 60, 50));
  EXPECT(calls.count == 3);
  GOOD(clinfer_request_cancel(request));
  EXPECT(finds(request, 60, 50));

  tensor.bytes -= 4;
  REFUSED(clinfer_request_set_input(request, 0, &tensor), CLINFER_BAD_ARGUMENT, "no tensor");
  tensor.bytes += 4;
  tensor.type = (clinfer_type)77;
  REFUSED(clinfer_request_set_input(request, 0, &tensor), CLINFER_BAD_ARGUMENT, "type 77");
  const int64_t huge[] = {INT64_MAX, INT64_MAX};
  const clinfer_tensor impossible = {picture, 4, huge, 2, CLINFER_F32};
  REFUSED(clinfer_request_set_input(request, 0, &impossible), CLINFER_BAD_ARGUMENT, "no tensor");
  REFUSED(clinfer_request_set_input(request, 0, NULL), CLINFER_BAD_ARGUMENT, "NULL");
  REFUSED(clinfer_request_set_input(NULL, 0, &tensor), CLINFER_BAD_ARGUMENT, "NULL");
  tensor.type = CLINFER_F32;
  REFUSED(clinfer_request_set_input(request, 5, &tensor), CLINFER_BAD_ARGUMENT, "no input 5");
  EXPECT(finds(request, 60, 50)); /* what was refused has no effect */

  clinfer_request_start(request); /* in flight when it is destroyed */
  clinfer_request_destroy(request);
  clinfer_request_destroy(other);
  clinfer_request_destroy(NULL);
  free(pixels);
  free(picture);
  free(elsewhere);
}

int main(int argc, char **argv) {
  if (argc != 2) return 2;
  EXPECT(strcmp(clinfer_version(), CLINFER_VERSION) == 0);
  EXPECT(clinfer_api_version() == CLINFER_API_VERSION);
  EXPECT(clinfer_type_size(CLINFER_F16) == 2 && clinfer_type_size((clinfer_type)-1) == 0);
  EXPECT(strcmp(clinfer_type_name(CLINFER_U8), "u8") == 0);
  EXPECT(strcmp(clinfer_type_name(CLINFER_BOOLEAN), "boolean") == 0);

  clinfer_devices *devices = NULL;
  GOOD(clinfer_devices_list(&devices));
  EXPECT(clinfer_devices_count(devices) >= 1);
  EXPECT(clinfer_devices_text(devices, 0, CLINFER_DEVICE_NAME) != NULL);
  EXPECT(clinfer_devices_text(devices, 100, CLINFER_DEVICE_NAME) == NULL);
  EXPECT(clinfer_devices_memory(devices, 0) > 0);
  clinfer_devices_destroy(devices);

  char path[4096];
  snprintf(path, sizeof path, "%s/ball.xml", argv[1]);
  clinfer_model *model = NULL, *same = NULL, *none = NULL;
  GOOD(clinfer_model_read(path, NULL, &model));
  EXPECT(strcmp(clinfer_model_info(model, "model_info/labels"), "background ball") == 0);
  EXPECT(clinfer_model_info(model, "no/such") == NULL);
  REFUSED(clinfer_model_read("/nowhere/model.xml", NULL, &none), CLINFER_NOT_FOUND, "/nowhere/model.xml");
  REFUSED(clinfer_model_read(path, "what", &none), CLINFER_BAD_ARGUMENT, "what");
  REFUSED(clinfer_model_read(NULL, NULL, &none), CLINFER_BAD_ARGUMENT, "NULL");
  EXPECT(none == NULL);

  size_t size = 0, weights_size = 0;
  void *const text = read_file(argv[1], "ball.xml", &size),
             *const weights = read_file(argv[1], "ball.bin", &weights_size);
  GOOD(clinfer_model_read_bytes(text, size, weights, weights_size, "mine", "image=1,3,192,256;", &same));
  REFUSED(clinfer_model_read_bytes(text, size, NULL, 0, "mine", NULL, &none), CLINFER_BAD_MODEL, "mine");
  REFUSED(clinfer_model_read_bytes(NULL, size, NULL, 0, NULL, NULL, &none), CLINFER_BAD_ARGUMENT, "NULL");
  free(text);
  free(weights);

  clinfer_config *config = NULL;
  GOOD(clinfer_config_create(&config));
  GOOD(clinfer_config_set(config, "PERFORMANCE_HINT", "LATENCY"));
  REFUSED(clinfer_config_set(config, "NO_SUCH_KEY", "1"), CLINFER_BAD_ARGUMENT, "NO_SUCH_KEY");
  clinfer_compiled *compiled = NULL, *of_bytes = NULL;
  GOOD(clinfer_compile(model, "CPU", config, &compiled));
  GOOD(clinfer_compile(same, "CPU", NULL, &of_bytes));
  REFUSED(clinfer_compile(model, "TPU", NULL, NULL), CLINFER_BAD_ARGUMENT, "NULL");
  EXPECT(clinfer_compile(model, "GPU.77", NULL, &of_bytes) == CLINFER_NO_DEVICE);
  clinfer_config_destroy(config);
  clinfer_model_destroy(model);
  clinfer_model_destroy(same);

  EXPECT(strcmp(clinfer_compiled_device(compiled), "CPU.0") == 0);
  EXPECT(clinfer_compiled_optimal_requests(compiled) >= 1);
  EXPECT(clinfer_compiled_warning(compiled, 1000) == NULL);
  EXPECT(clinfer_compiled_count(compiled, CLINFER_INPUT) == 1);
  clinfer_port port;
  GOOD(clinfer_compiled_port(compiled, CLINFER_INPUT, 0, &port));
  EXPECT(strcmp(port.name, "image") == 0 && port.rank == 4 && port.shape[3] == kWidth && port.type == CLINFER_F32);
  REFUSED(clinfer_compiled_port(compiled, CLINFER_OUTPUT, 9, &port), CLINFER_BAD_ARGUMENT, "no output 9");
  size_t index = 77;
  GOOD(clinfer_compiled_find(compiled, CLINFER_INPUT, "image", &index));
  EXPECT(index == 0);
  REFUSED(clinfer_compiled_find(compiled, CLINFER_INPUT, "sound", &index), CLINFER_BAD_ARGUMENT, "image");
  struct _cl_context *context = NULL, *other = NULL;
  GOOD(clinfer_compiled_context(compiled, &context));
  GOOD(clinfer_compiled_context(of_bytes, &other));
  EXPECT(context != NULL && context == other);

  test_requests(compiled);
  test_requests(of_bytes);
  clinfer_compiled *shared = NULL;
  GOOD(clinfer_model_read(path, NULL, &model));
  GOOD(clinfer_compile_shared(model, context, NULL, NULL, NULL, &shared));
  clinfer_model_destroy(model);
  test_requests(shared);
  clinfer_compiled_destroy(shared);
  clinfer_compiled_destroy(compiled);
  clinfer_compiled_destroy(of_bytes);
  if (failures == 0) printf("ok   the C interface\n");
  return failures != 0;
}
