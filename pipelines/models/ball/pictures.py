"""Pictures of frames with their truth and their detections."""
import struct
import zlib

import numpy as np


def annotate(image, truth, boxes):
    """[3, H, W] BGR -> [H, W, 3] RGB u8, twice as large, truth green, detections red."""
    canvas = np.repeat(np.repeat(image[::-1].transpose(1, 2, 0), 2, 0), 2, 1).round().astype(np.uint8)
    h, w = canvas.shape[:2]
    for rows, colour, grow in ((truth, (0, 255, 0), 2), (boxes, (255, 0, 0), 4)):
        for x0, y0, x1, y1 in rows:
            x0, x1 = (int(np.clip(v, 0, w - 1)) for v in (x0 * w - grow, x1 * w + grow))
            y0, y1 = (int(np.clip(v, 0, h - 1)) for v in (y0 * h - grow, y1 * h + grow))
            canvas[[y0, y1], x0:x1 + 1] = colour
            canvas[y0:y1 + 1, [x0, x1]] = colour
    return canvas


def write_sheet(path, tiles, columns=6):
    """Tiles [H, W, 3] RGB u8 -> one PNG."""
    while len(tiles) % columns:
        tiles.append(np.full_like(tiles[0], 128))
    tiles = [np.pad(t, ((1, 1), (1, 1), (0, 0)), constant_values=255) for t in tiles]
    sheet = np.concatenate([np.concatenate(tiles[i:i + columns], 1)
                            for i in range(0, len(tiles), columns)], 0)
    raw = np.concatenate([np.zeros((sheet.shape[0], 1), np.uint8),
                          sheet.reshape(sheet.shape[0], -1)], 1).tobytes()
    chunk = lambda kind, data: (struct.pack('>I', len(data)) + kind + data
                                + struct.pack('>I', zlib.crc32(kind + data)))
    with open(path, 'wb') as file:
        file.write(b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', struct.pack(
            '>IIBBBBB', sheet.shape[1], sheet.shape[0], 8, 2, 0, 0, 0))
            + chunk(b'IDAT', zlib.compress(raw, 6)) + chunk(b'IEND', b''))
