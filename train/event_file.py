"""TensorBoard's event file, written in the calling thread.

PyTorch's `SummaryWriter` writes from a thread of its own, where a full disk is noticed late or never; here a write that
fails raises at once. The records are TensorBoard's own, so that every viewer reads them.
Source: https://github.com/tensorflow/tensorboard, summary/writer/record_writer.py and compat/proto/event.proto.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt
from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.compat.proto.histogram_pb2 import HistogramProto
from tensorboard.compat.proto.summary_pb2 import Summary, SummaryMetadata
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
from tensorboard.plugins.custom_scalar import layout_pb2
from tensorboard.plugins.text.plugin_data_pb2 import TextPluginData
from tensorboard.summary.writer.record_writer import RecordWriter

from models.storage import naming_full_disk

HISTOGRAM_BINS = 40
RGBA = 4
Layout = Mapping[str, Mapping[str, tuple[str, ...]]]
"""Charts by section and title: tags, or `BAND` and the tags of an estimate and of its interval's ends."""
BAND = "band"


class EventFile:
    """One event file; every call of `write` is on its way to the disk when it returns."""

    def __init__(self, folder: Path, *, purge_from: int | None = None) -> None:
        """Start a file.

        Args:
            folder: Made if missing.
            purge_from: Viewers forget what earlier files of the folder say of this step and later ones.

        Raises:
            OSError: The file cannot be written; names it.
        """
        with naming_full_disk(folder):
            folder.mkdir(parents=True, exist_ok=True)
        name = f"events.out.tfevents.{int(time.time()):010d}.{socket.gethostname()}.{os.getpid()}.{time.time_ns()}"
        self.path = folder / name
        with naming_full_disk(self.path):
            self._file: IO[bytes] = self.path.open("wb")
        self._records = RecordWriter(self._file)
        self._write(Event(wall_time=time.time(), file_version="brain.Event:2"))
        if purge_from is not None:
            started = SessionLog(status=SessionLog.START)
            self._write(Event(wall_time=time.time(), step=purge_from, session_log=started))

    def write(self, step: int, values: Iterable[Any]) -> None:
        """Write what `scalar`, `histogram`, `picture`, `text` and `layout` return.

        Raises:
            OSError: The disk is full, or the file cannot be written; names it.
        """
        summary = Summary(value=list(values))
        if summary.value:
            self._write(Event(wall_time=time.time(), step=step, summary=summary))

    def close(self) -> None:
        """Close the file."""
        with naming(self.path):
            self._file.close()

    def _write(self, event: Any) -> None:
        with naming(self.path):
            self._records.write(event.SerializeToString())
            self._file.flush()


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Give an OSError of the block that names no file this one."""
    try:
        with naming_full_disk(path):
            yield
    except OSError as error:
        if error.filename is None:
            raise OSError(error.errno, error.strerror or str(error), str(path)) from error
        raise


def scalar(tag: str, number: float) -> Any:
    """Return a number."""
    return Summary.Value(tag=tag, simple_value=number)


def histogram(tag: str, values: npt.ArrayLike) -> Any:
    """Return the distribution of numbers (any shape, at least one, finite) in `HISTOGRAM_BINS` equal bins."""
    flat = np.asarray(values, np.float64).reshape(-1)
    counts, edges = np.histogram(flat, HISTOGRAM_BINS)
    proto = HistogramProto(
        min=float(flat.min()),
        max=float(flat.max()),
        num=float(flat.size),
        sum=float(flat.sum()),
        sum_squares=float(flat @ flat),
        bucket_limit=edges[1:].tolist(),
        bucket=counts.tolist(),
    )
    return Summary.Value(tag=tag, histo=proto)


def picture(tag: str, png: bytes, *, width: int, height: int) -> Any:
    """Return a picture."""
    image = Summary.Image(width=width, height=height, colorspace=RGBA, encoded_image_string=png)
    return Summary.Value(tag=tag, image=image)


def text(tag: str, markdown: str) -> Any:
    """Return a text."""
    shape = TensorShapeProto(dim=[TensorShapeProto.Dim(size=1)])
    tensor = TensorProto(dtype="DT_STRING", string_val=[markdown.encode()], tensor_shape=shape)
    metadata = _metadata("text", TextPluginData(version=0).SerializeToString())
    return Summary.Value(tag=f"{tag}/text_summary", metadata=metadata, tensor=tensor)


def layout(sections: Layout) -> Any:
    """Return the charts of the tab "Custom Scalars"."""
    categories = [
        layout_pb2.Category(title=title, chart=[_chart(name, tags) for name, tags in charts.items()])
        for title, charts in sections.items()
    ]
    content = layout_pb2.Layout(category=categories).SerializeToString()
    tensor = TensorProto(dtype="DT_STRING", string_val=[content], tensor_shape=TensorShapeProto())
    return Summary.Value(tag="custom_scalars__config__", metadata=_metadata("custom_scalars"), tensor=tensor)


def _chart(title: str, tags: tuple[str, ...]) -> Any:
    if tags[0] != BAND:
        return layout_pb2.Chart(title=title, multiline=layout_pb2.MultilineChartContent(tag=tags))
    series = layout_pb2.MarginChartContent.Series(value=tags[1], lower=tags[2], upper=tags[3])
    return layout_pb2.Chart(title=title, margin=layout_pb2.MarginChartContent(series=[series]))


def _metadata(plugin: str, content: bytes = b"") -> Any:
    return SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name=plugin, content=content))
