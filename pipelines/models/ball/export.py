"""From weights to an OpenVINO IR with a DetectionOutput head."""
import os

import numpy as np

from ball.network import LEVELS, VARIANCE, load_network
from ball.scenes import NET_H, NET_W


def command_convert(args):
    import torch
    import openvino as ov
    from openvino import opset8 as op
    network = load_network(args.weights)
    with torch.no_grad():
        converted = ov.convert_model(network, example_input=torch.zeros(1, 3, NET_H, NET_W),
                                     input=[1, 3, NET_H, NET_W])
    # the head: [N, C, H, W] of each level -> [N, H*W*C], priors, DetectionOutput
    nhwc = lambda: op.constant(np.array([0, 2, 3, 1], np.int64))
    rows = lambda: op.constant(np.array([0, -1], np.int64))
    maps = [r.input_value(0) for r in converted.get_results()]
    flat = [op.reshape(op.transpose(m, nhwc()), rows(), special_zero=True) for m in maps]
    loc = op.concat(flat[0::2], 1)
    pairs = op.reshape(op.concat(flat[1::2], 1), op.constant(np.array([0, -1, 2], np.int64)), True)
    conf = op.reshape(op.softmax(pairs, 2), rows(), True)
    boxes = []
    image_size = op.constant(np.array([NET_H, NET_W], np.int64))
    for stride, sizes in LEVELS:
        boxes.append(op.prior_box_clustered(
            op.constant(np.array([NET_H // stride, NET_W // stride], np.int64)), image_size,
            {'width': np.array([w for w, _ in sizes], np.float32),
             'height': np.array([h for _, h in sizes], np.float32), 'clip': False,
             'step_widths': float(stride), 'step_heights': float(stride), 'offset': 0.5,
             'variance': np.array(VARIANCE, np.float32)}))
    priors = op.unsqueeze(op.concat(boxes, 1), op.constant(np.array([0], np.int64)))
    detection = op.detection_output(
        loc, conf, priors,
        {'background_label_id': 0, 'top_k': 100, 'keep_top_k': [20], 'nms_threshold': 0.3,
         'confidence_threshold': 0.1, 'code_type': 'caffe.PriorBoxParameter.CENTER_SIZE',
         'share_location': True, 'variance_encoded_in_target': False, 'normalized': True,
         'clip_before_nms': True, 'clip_after_nms': False})
    model = ov.Model([op.result(detection)], converted.get_parameters(), 'ball')
    # short names: a third of the file
    numbers = {}
    for node in model.get_ordered_ops():
        kind = node.get_type_name()
        numbers[kind] = numbers.get(kind, 0) + 1
        node.set_friendly_name(f'{kind}_{numbers[kind]}')
        for key in list(node.get_rt_info().keys()):
            del node.get_rt_info()[key]
        for output in node.outputs():
            output.get_tensor().set_names(set())
    model.inputs[0].get_node().set_friendly_name('image')
    model.inputs[0].get_tensor().set_names({'image'})
    detection.set_friendly_name('detection_out')
    detection.output(0).get_tensor().set_names({'detection_out'})
    for key, value in (('model_type', 'ssd'), ('labels', 'background ball'),
                       ('confidence_threshold', '0.5'), ('resize_type', 'standard'),
                       ('reverse_input_channels', 'False')):
        model.set_rt_info(value, ['model_info', key])
    ov.save_model(model, args.out, compress_to_fp16=not args.f32)
    size = [os.path.getsize(p) for p in (args.out, args.out[:-4] + '.bin')]
    print(f'{args.out}: {len(model.get_ops())} ops, .xml {size[0]} + .bin {size[1]} = {sum(size)} '
          f'bytes, input {model.inputs[0].partial_shape}, output {model.outputs[0].partial_shape}')
