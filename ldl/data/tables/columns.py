"""Tables with columns of several kinds: numbers, categories, dates and text, encoded as numbers.

A *typed* frame is a pandas DataFrame with columns of four types: float64 with NaN for gaps (numbers and truth values),
datetime64 with NaT (dates), objects with None (categories), and pandas' ``string`` with NA (text). :func:`typed` finds
the kinds of a table. :class:`Encoding` learns from training rows how typed columns become numbers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from ldl.data.text import USUAL_TEXT, TextEncoding, TextOptions, count_cut, download_encoder, text_vectors, token_limit
from ldl.errors import LDLError, some
from ldl.tables.entries import LARGEST, EntryError, as_text, is_date, is_text, map_distinct, read_number, to_numbers

ColumnKind = Literal["number", "date", "category", "text"]
MOST_CATEGORIES = 30
"""Categories of a column with a feature each; the others share one."""
UNIQUE_ROWS = 50
"""Rows from which a column of mostly distinct text is an error."""
PARTS = {"year": "year", "month": "month", "day": "day", "weekday": "day_of_week"}
"""Features of a date, and the attributes of pandas that hold them. Monday is 0."""
TEXT = "OUS"
"""Kinds of dtypes of columns with text: of Python's objects, and of pyarrow's texts and bytes."""
ZONE = re.compile(r"(:\d\d(?:\.\d+)?) ?(?:Z|[+-]\d\d(?::?\d\d)?)$")
"""The end of a time of day in text, and its time zone. Features are those of the local time, as of other dates."""
DATE = re.compile(r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d+)?)?)?")
"""A date in text."""
FOREIGN = {
    re.compile(r"\d{1,2}([./-])\d{1,2}\1(\d\d|\d{4})|\d{4}([./])\d{1,2}\3\d{1,2}"): "dates; write them as 2024-05-31",
    re.compile(r"[+-]?\d+,\d+"): "numbers with a comma; write them with a point, and without marks of thousands",
}
"""Text that other programs write for dates and numbers, with the name and the fix."""


@dataclass(frozen=True)
class ColumnEncoding:
    """How one column becomes features, which are float64.

    A category is a feature of zeros and ones for each entry of ``categories``, for other text if ``other``, and for
    gaps if ``missing``. A number is itself, and a date its :data:`PARTS`. Gaps of both are filled if ``fill`` is known,
    and marked by one more feature if ``missing``. Text is the vector of its encoder, which is zero for gaps, also
    marked if ``missing``.

    Attributes:
        name: Name of the column.
        kind: ``number``, ``date``, ``category`` or ``text``.
        categories: The texts with a feature of their own, sorted.
        other: Whether all other texts share a feature; otherwise they are zeros.
        missing: Whether there is a feature for gaps.
        fill: Medians of the training rows, for a number (1) or a date (4); None keeps gaps as NaN.
        text: The encoding of text; None for other kinds.
    """

    name: str
    kind: ColumnKind
    categories: Sequence[str] = ()
    other: bool = False
    missing: bool = False
    fill: Sequence[float] | None = None
    text: TextEncoding | None = None

    @classmethod
    def fit(cls, name: str, entries: Any, fill: bool, weight: np.ndarray, text: TextOptions) -> ColumnEncoding:
        """Learn a column from the typed entries of training rows with weights; ``fill`` learns medians for gaps."""
        import pandas

        kind, missing = column_kind(entries), bool(entries.isna().any())
        if kind == "text":
            return cls(name, kind, missing=missing, text=TextEncoding(*text, download_encoder(text.encoder).width))
        if kind == "category":
            counts = pandas.Series(weight, entries.index).groupby(entries).sum()
            # The most frequent first, and the alphabet decides between equals.
            kept = sorted(counts.index, key=lambda text: (-counts[text], text))[:MOST_CATEGORIES]
            return cls(name, kind, sorted(kept), len(counts) > len(kept), missing)
        if not fill:
            return cls(name, kind)
        present = entries.notna().to_numpy()
        medians = [_median(numbers, weight[present]) for numbers in _parts(kind, entries[present])]
        return cls(name, kind, missing=missing, fill=medians)

    @property
    def names(self) -> list[str]:
        """Names of the features."""
        if self.kind == "category":
            texts = [*self.categories, *["other"] * self.other, *["missing"] * self.missing]
            return [f"{self.name}={text}" for text in texts]
        if self.text is not None:
            vector = [f"{self.name}[{number}]" for number in range(self.text.width)]
            return vector + [f"{self.name} missing"] * self.missing
        names = [self.name] if self.kind == "number" else [f"{self.name} {unit}" for unit in PARTS]
        return names + [f"{self.name} missing"] * self.missing

    def transform(self, entries: Any) -> Iterator[np.ndarray]:
        """Yield the features (N,) of typed entries. Raises LDLError for entries of another kind."""
        gaps = entries.isna().to_numpy()
        if self.kind == "category":
            codes = {text: number for number, text in enumerate(self.categories)}
            code_of = np.array([codes.get(text, -1) for text in entries], np.int64)
            yield from (code_of == number for number in range(len(codes)))
            if self.other:
                yield (code_of < 0) & ~gaps
        elif self.text is not None:
            yield from self._vectors(entries, self.text).T
        else:
            for numbers, median in zip(_parts(self.kind, entries), self.fill or [np.nan] * len(PARTS)):
                yield np.where(gaps, median, numbers)
        if self.missing:
            yield gaps

    def _vectors(self, texts: Any, encoding: TextEncoding) -> np.ndarray:
        """Return the vectors (N, width) of texts. Raises LDLError if the encoder has vectors of another width."""
        vectors = text_vectors(texts.fillna(""), encoding.options)
        if vectors.shape[1] != encoding.width:
            raise LDLError(
                f"column {self.name!r} was encoded by {encoding.encoder} with {encoding.width} features in training, "
                f"and the encoder of this name has {vectors.shape[1]}; install the version of training"
            )
        return vectors


@dataclass(frozen=True)
class Encoding:
    """How the columns of a typed frame become features; checkpoints hold it as plain values."""

    columns: Sequence[ColumnEncoding]

    @classmethod
    def fit(cls, frame: Any, fill: bool, weight: np.ndarray | None = None, text: TextOptions = USUAL_TEXT) -> Encoding:
        """Learn from training rows.

        Args:
            frame: The rows, a typed frame.
            fill: Whether to fill gaps of numbers and dates with medians.
            weight: (N,) weights of the rows; None weighs them equally.
            text: Options of the columns of text.
        """
        weight = np.ones(len(frame)) if weight is None else np.asarray(weight, np.float64)
        return cls([ColumnEncoding.fit(str(name), entries, fill, weight, text) for name, entries in frame.items()])

    @classmethod
    def of_numbers(cls, names: Sequence[str]) -> Encoding:
        """Return the encoding of numbers as they are."""
        return cls([ColumnEncoding(name, "number") for name in names])

    @classmethod
    def from_state(cls, state: Sequence[dict[str, Any]]) -> Encoding:
        """Return the encoding of a checkpoint, whose form ``ldl.validation.checkpoint`` has checked."""
        texts = [column.get("text") for column in state]
        encodings = [None if text is None else TextEncoding(**text) for text in texts]
        return cls([ColumnEncoding(**{**column, "text": text}) for column, text in zip(state, encodings)])

    def state(self) -> list[dict[str, Any]]:
        """Return plain values."""
        state = [asdict(column) for column in self.columns]
        for column in state:
            if column["text"] is None:  # as in checkpoints from before there were columns of text
                del column["text"]
        return state

    @property
    def inputs(self) -> list[str]:
        """Names of the columns."""
        return [column.name for column in self.columns]

    @property
    def places(self) -> dict[str, int]:
        """Position of the first feature of each column."""
        ends = np.cumsum([0, *(len(column.names) for column in self.columns)])
        return dict(zip(self.inputs, ends.tolist()))

    @property
    def flags(self) -> np.ndarray:
        """Which features are 0 or 1: those of categories, and marks of gaps. (F,) bool."""
        flags: list[bool] = []
        for column in self.columns:
            flags += [column.kind == "category"] * (len(column.names) - column.missing) + [True] * column.missing
        return np.array(flags, bool)

    @property
    def names(self) -> list[str]:
        """Names of the features."""
        return [name for column in self.columns for name in column.names]

    def notes(self, frame: Any, source: str) -> list[str]:
        """Return a line for each column of text with rows that are cut; ``source`` is the origin of the frame."""
        notes = []
        for column in self.columns:
            if column.text is None:
                continue
            options = column.text.options
            if cut := count_cut(list(map(full_text, frame[column.name])), options):
                notes.append(
                    f"{source}: column {column.name!r}: {cut} of {len(frame)} rows cut after {token_limit(options)} "
                    "tokens"
                )
        return notes

    def transform(self, frame: Any, source: str) -> np.ndarray:
        """Return the features (N, F), float64.

        Args:
            frame: A DataFrame with these columns, typed or not.
            source: Its origin, for messages.

        Raises:
            LDLError: An entry is not of the kind of its column.
        """
        features = np.empty((len(frame), len(self.names)))
        position = 0
        for column in self.columns:
            entries = as_kind(column.kind, frame[column.name], f"{source}: column {column.name!r} is")
            for feature in column.transform(entries):
                features[:, position] = feature
                position += 1
        return features


def column_kind(entries: Any) -> ColumnKind:
    """Return the kind of a column of a typed frame."""
    if entries.dtype.name == "string":
        return "text"
    return "number" if entries.dtype.kind == "f" else "date" if entries.dtype.kind == "M" else "category"


def is_plain(frame: Any, fill: bool) -> bool:
    """Return whether all columns of a typed frame are numbers, without gaps if ``fill``."""
    return all(column_kind(column) == "number" and not (fill and column.isna().any()) for _, column in frame.items())


def typed(
    frame: Any, source: str, option: str = "", text_columns: Collection[str] = (), instances: int | None = None
) -> Any:
    """Find the kind of each column of a DataFrame, and return the typed frame.

    A column of text, or of pandas' type ``category``, is a category. Text of which all entries are dates, such as
    2024-05-31, is a date. Text that mostly spells numbers, dates in another form, numbers with a comma, text that
    differs in most rows, and all else are errors.

    Args:
        frame: The table.
        source: Its origin, for messages.
        option: Option that leaves a column out, for messages.
        text_columns: Names of the columns of text.
        instances: Number of instances; None if each row is one. A table with one row a vote has several rows of each.

    Raises:
        LDLError: See above.
    """
    import pandas

    columns = {}
    instances = len(frame) if instances is None else instances
    for position, name in enumerate(frame.columns):
        subject = f"{source}: column {str(name)!r} is"
        column = frame.iloc[:, position]
        entries = as_kind("text" if name in text_columns else found_kind(column), column, subject)
        by_text = column_kind(entries) == "category" and column.dtype.name != "category"
        out = f"leave it out with {option} {name}" if option else "leave it out"
        as_text_column = f"--data.text_columns {name}" if option else f"text_columns={[str(name)]}"
        if by_text and (meaning := _foreign(entries)) is not None:
            codes = f"--data.category_columns {name}" if option else ".astype('category')"
            raise LDLError(
                f"{subject} {entries[entries.notna()].iloc[0]!r}, and its texts look like {meaning}, {out}, or "
                f"make it a category with {codes}"
            )
        if by_text and instances >= UNIQUE_ROWS and 2 * entries.nunique() > instances:
            rows = f"{instances} rows" if instances == len(frame) else f"{instances} items"
            raise LDLError(
                f"{source}: column {str(name)!r} holds {entries.nunique()} different texts in {rows}, too "
                f"many for categories; {out}, or read it as text with {as_text_column}"
            )
        columns[str(name)] = entries.reset_index(drop=True)
    return pandas.DataFrame(columns, index=range(len(frame)), copy=False)


def found_kind(entries: Any) -> ColumnKind:
    """Return the kind of a column of any type, by its entries; text is a category."""
    import pandas

    if entries.dtype.kind == "M":
        return "date"
    if entries.dtype.name == "category":
        return "category"
    if entries.dtype.kind not in TEXT:
        return "number"
    present = entries[entries.notna()].to_numpy(object)
    if len(present) and all(map(is_date, present)):
        return "date"
    if not len(present) or not all(isinstance(entry, str) for entry in present):
        return "number"
    texts = map_distinct(as_text, present)
    texts = texts[texts != ""]
    if len(texts) and all(DATE.fullmatch(ZONE.sub(r"\1", text)) for text in pandas.unique(texts)):
        return "date"
    return "category" if is_text(map_distinct(read_number, texts).astype(np.float64)) else "number"


def _foreign(texts: Any) -> str | None:
    present = texts[texts.notna()].unique()
    return next(
        (meaning for form, meaning in FOREIGN.items() if len(present) and all(map(form.fullmatch, present))), None
    )


def as_kind(kind: ColumnKind, entries: Any, subject: str) -> Any:
    """Return a column as typed entries of a kind.

    Args:
        kind: The kind.
        entries: A pandas column of any type.
        subject: Its name in messages, such as ``films.csv: column 'year' is``.

    Raises:
        LDLError: An entry is not of this kind.
    """
    import pandas

    if isinstance(entries.dtype, np.dtype) and entries.dtype.kind == {"number": "f", "date": "M"}.get(kind):
        column = entries.astype(np.float64) if kind == "number" else entries
    elif kind == "number":
        column = pandas.Series(to_numbers(entries, subject), entries.index)
    elif kind == "date":
        column = _dates(entries, subject)
    elif kind == "text":
        return _texts(entries, full_text, f"{subject} {{}}, no text").astype(pandas.StringDtype("python"))
    else:
        return _texts(entries, as_text, f"{subject} {{}}, no category")
    if kind == "number" and (wrong := column.abs() > LARGEST).any():
        row = int(wrong.to_numpy().argmax())
        raise EntryError(f"{subject} {column.iloc[row]} in row {row}; every entry must be a finite number")
    return column


def _texts(entries: Any, spell: Callable[[Any], str], problem: str) -> Any:
    """Return the text of each entry, None if it is missing. Raises LDLError for an object that has no text."""
    import pandas

    entries = entries.astype(object)
    are_texts = all(type(entry) is str for entry in entries[entries.notna()])  # other entries may have no hash
    spelled = map_distinct(spell, entries) if are_texts else map(spell, entries)
    texts = pandas.Series([text or None for text in spelled], entries.index, dtype=object)
    odd = entries[texts.isna() & entries.notna()].map(lambda entry: not isinstance(entry, str | bytes))
    if odd.any():
        first = entries[odd.idxmax()]
        entry = f"{type(first).__name__} {str(first)[:40]!r}"
        raise EntryError(f"{problem.format(entry)}; convert it with .astype(str)")
    return texts


def full_text(entry: Any) -> str:
    """Return an entry of a column of text; empty if it is missing or has no text. The word "none" is text here."""
    if isinstance(entry, bytes):
        entry = entry.decode(errors="replace")
    if not isinstance(entry, str):
        return as_text(entry)
    return entry.strip().encode(errors="replace").decode()  # tokenizers cannot read lone surrogates


def _dates(entries: Any, subject: str) -> Any:
    import pandas

    if entries.dtype.kind not in f"M{TEXT}" and entries.notna().any():
        raise EntryError(f"{subject} {entries.dtype}, not dates as in training; give dates such as 2024-05-31")
    if entries.dtype.kind != "M":
        entries = entries.map(_date_text)
    dates = pandas.to_datetime(entries, errors="coerce", format=None if entries.dtype.kind == "M" else "ISO8601")
    if (wrong := dates.isna() & entries.notna()).any():
        raise EntryError(
            f"{subject} {entries[wrong].iloc[0]!r}, not a date as in training; give dates such as 2024-05-31"
        )
    return dates.dt.tz_localize(None)


def _date_text(entry: Any) -> str | None:
    """Return the text of a date, or of the start of a period of pandas; None if it is missing."""
    start = entry.to_timestamp() if hasattr(entry, "to_timestamp") else entry
    return ZONE.sub(r"\1", as_text(start)) or None


def _median(numbers: np.ndarray, weight: np.ndarray) -> float:
    """Return the weighted median, the lower one of two; 0 of no numbers."""
    return float(np.quantile(numbers, 0.5, weights=weight, method="inverted_cdf")) if len(numbers) else 0.0


def _parts(kind: ColumnKind, entries: Any) -> list[np.ndarray]:
    series = [entries] if kind == "number" else [getattr(entries.dt, each) for each in PARTS.values()]
    return [each.to_numpy(np.float64, na_value=np.nan) for each in series]


def describe(frame: Any, fill: bool, text: TextOptions = USUAL_TEXT) -> str:
    """Return the columns of a typed frame that are encoded, for the user; empty if there are none."""
    kinds = {str(name): column_kind(column) for name, column in frame.items()}
    gaps = [name for name, kind in kinds.items() if kind in ("number", "date") and frame[name].isna().any()]
    texts = [(f"{kind} {some([name for name in kinds if kinds[name] == kind])}", kind) for kind in ("category", "date")]
    phrases = [text for text, kind in texts if kind in kinds.values()]
    phrases += [_describe_text(name, frame[name], text) for name, kind in kinds.items() if kind == "text"]
    return ", ".join(phrases + [f"gaps of {some(gaps)} filled with medians and marked"] * bool(fill and gaps))


def _describe_text(name: str, entries: Any, text: TextOptions) -> str:
    facts = [f"{download_encoder(text.encoder).width} features by {text.encoder}"]
    if cut := count_cut(entries.dropna(), text):
        facts.append(f"{cut} rows cut after {token_limit(text)} tokens")
    if missing := int(entries.isna().sum()):
        facts.append(f"{missing} rows without text")
    return f"text {name!r} ({', '.join(facts)})"
