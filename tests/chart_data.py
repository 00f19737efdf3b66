"""What a chart holds, for tests that read it."""


def rows(chart, layer):
    """The data of one layer."""
    spec = chart.to_dict()
    data = spec.get("data") or spec["layer"][layer]["data"]
    return spec["datasets"][data["name"]]


def titles(chart, channel):
    """The titles that the layers give to an axis."""
    layers = chart.to_dict()["layer"]
    return {layer["encoding"].get(channel, {}).get("title") for layer in layers} - {None}
