"""Reading several layers at once: the updates whose rows begin with each of many keys, one key after the other."""

from __future__ import annotations

from dlog.engine.kernels.core.jit import entry
from dlog.engine.kernels.machine_structs import Bytes, Numbers, Words
from dlog.engine.kernels.static.storage import behind
from dlog.engine.kernels.trace.layers import load_value
from dlog.engine.kernels.trace.seeking import seek
from dlog.engine.kernels.trace_structs import LayerHeader, Layers


@entry()
def seek_layers(layers: Layers, count, keys: Words, columns, probes, ranges: Words):
    """Writes for each of `count` layers where each probe's rows start, then where they end (`seek`); returns how many there are
    in all. `ranges` has room for 2 * `probes` words for each layer."""
    total = 0
    for k in range(count):
        starts = behind(ranges, 2 * probes * k)
        ends = behind(starts, probes)
        seek(layers[k], keys, columns, probes, starts, ends)
        for p in range(probes):
            total += ends[p] - starts[p]
    return total


@entry()
def gather_layers(layers: Layers, count, ranges: Words, probes, total, numbers: Words, fields: Words):
    """Writes the updates that `seek_layers` found, those of the first probe first: the number of the probe to `numbers`, and
    field by field, each `total` words long, to `fields`."""
    first = layers[0]
    width = first.arity + first.depth + 1
    at = 0
    for p in range(probes):
        for k in range(count):
            starts = behind(ranges, 2 * probes * k)
            low, high = starts[p], starts[probes + p]
            layer = layers[k]
            for row in range(low, high):
                numbers[at] = p
                for f in range(width):
                    fields[f * total + at] = load_value(layer, f, row)
                at += 1


@entry()
def keep_updates(fields: Words, count, rows, mask: Bytes, kept, found: Words):
    """Writes of so many fields, each one behind the other, the rows of a mask, of which there are `kept`."""
    for f in range(count):
        field, out, at = behind(fields, f * rows), behind(found, f * kept), 0
        for row in range(rows):
            if mask[row]:
                out[at] = field[row]
                at += 1


@entry()
def unpack_layer(layer: LayerHeader, fields: Words):
    """Writes all fields, one after the other, as words."""
    rows = layer.rows
    for f in range(layer.arity + layer.depth + 1):
        field, out = layer.fields[f], behind(fields, f * rows)
        data, width = field.data, field.width
        if width == 4:
            for row in range(rows):
                out[row] = Numbers(data)[row]
        elif width == 8:
            for row in range(rows):
                out[row] = Words(data)[row]
        else:
            for row in range(rows):
                out[row] = data
