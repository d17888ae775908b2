"""What Kafka lets pass and the strict decoder refuses, by name.

A lenient decode takes all of these as Kafka does and appends the name of each to the list it was given, once
for every time it came to it. Strict and lenient agree on every message that Kafka itself writes.
"""

from __future__ import annotations

from enum import StrEnum


class Leniency(StrEnum):
    """The rules in which the strict decoder is stricter than Kafka's generated classes."""

    INVALID_UTF8 = "invalid_utf8"
    """Malformed UTF-8 reads as U+FFFD, one for each malformed sequence as Java counts them."""

    NEGATIVE_LENGTH = "negative_length"
    """Any negative length or count reads as null, not only -1."""

    VARINT_BITS = "varint_bits"
    """Bits above the 32 of an unsigned varint are dropped."""

    STRUCT_MARKER = "struct_marker"
    """A nullable struct is null for every negative marker, present for every other one (in a tag: null up to
    zero)."""

    TAG_SIZE = "tag_size"
    """The declared size of a known tag is not looked at."""

    REPEATED_TAG = "repeated_tag"
    """Of a known tag that is there twice the last one wins; an unknown one is kept twice."""

    TAG_ORDER = "tag_order"
    """Tags stand in any order."""

    TAG_NUMBER = "tag_number"
    """An unknown tag has a number that cannot be written again: 2147483647, or one that reads as negative."""

    TAG_COUNT = "tag_count"
    """A count of tags above 2147483647 is negative to Kafka and reads as zero tags; what follows stays
    unread."""

    TRAILING_BYTES = "trailing_bytes"
    """Bytes after the end of the message are left alone."""
