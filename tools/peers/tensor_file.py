"""Tensors by name in safetensors files: with the `safetensors` package where it is, else by the few lines below.

The format: the length of a header (8 bytes, little endian), the header (JSON: {name: {dtype, shape, data_offsets}, and
strings under __metadata__}), then the bytes of all tensors, row-major, little endian, without gaps.
"""
import json
import os
import struct

import torch

try:
    import safetensors
    import safetensors.torch
except ImportError:
    safetensors = None

DTYPES = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "I64": torch.int64,
          "I32": torch.int32, "U8": torch.uint8, "BOOL": torch.bool}
MOST_HEADER = 100 << 20


def read(path, own=False):
    """({name: tensor} in the order of the file, {key: text} of its metadata). ValueError for what is no such file."""
    if safetensors is None or own:
        return read_by_hand(path)
    try:
        with safetensors.safe_open(path, "pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}
    except safetensors.SafetensorError as error:
        raise ValueError(f"{path} is no whole safetensors file: {error}") from None


def read_by_hand(path):
    def broken(why):
        return ValueError(f"{path} is no whole safetensors file: {why}")

    with open(path, "rb") as file:
        start = file.read(8)
        if len(start) < 8:
            raise broken(f"it has {len(start)} bytes")
        (length,) = struct.unpack("<Q", start)
        if length > MOST_HEADER:
            raise broken(f"its header would have {length} bytes")
        text = file.read(length)
        if len(text) < length:
            raise broken(f"its header ends after {len(text)} of {length} bytes")
        try:
            header = json.loads(text)
            metadata = header.pop("__metadata__", {})
            entries = [(name, DTYPES[entry["dtype"]], entry["shape"], *entry["data_offsets"])
                       for name, entry in header.items()]
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise broken(f"its header cannot be read ({error})") from None
        data = bytearray(file.read())
    end = 0
    for name, dtype, shape, first, last in sorted(entries, key=lambda entry: entry[3]):
        elements = 1
        for size in shape:
            elements *= size
        if first != end or last - first != elements * torch.empty(0, dtype=dtype).element_size():
            raise broken(f"'{name}' does not lie where it should")
        end = last
    if end != len(data):
        raise broken(f"it has {len(data)} bytes of tensors, its header speaks of {end}")
    return {name: torch.frombuffer(data, dtype=dtype, offset=first, count=(last - first) // torch.empty(
        0, dtype=dtype).element_size()).reshape(shape) if last > first else torch.empty(shape, dtype=dtype)
            for name, dtype, shape, first, last in entries}, metadata


def write(path, tensors, metadata=None, own=False):
    """Whole or not at all. Tensors are brought to the host, where they must fit; metadata holds texts."""
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    partial = f"{path}.partial"
    try:
        if safetensors is None or own:
            write_by_hand(partial, tensors, metadata or {})
        else:
            safetensors.torch.save_file(tensors, partial, metadata or None)
        os.replace(partial, path)
    finally:
        if os.path.exists(partial):
            os.unlink(partial)


def write_by_hand(path, tensors, metadata):
    names = {dtype: name for name, dtype in DTYPES.items()}
    header, offset = {"__metadata__": metadata} if metadata else {}, 0
    for name, tensor in tensors.items():
        end = offset + tensor.numel() * tensor.element_size()
        header[name] = {"dtype": names[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)  # so that the tensors begin aligned
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for tensor in tensors.values():
            file.write(tensor.reshape(-1).view(torch.uint8).numpy().tobytes() if tensor.numel() > 0 else b"")
