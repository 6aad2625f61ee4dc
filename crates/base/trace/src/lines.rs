//! Lines of a text trace, without an allocation per line.
//!
//! Units: bytes; line numbers from 1. Invariant: memory is one buffer, whatever the input; a longer
//! line than [`LONGEST_LINE_BYTES`] is reported by its beginning and passed over.

use crate::TraceError;
use crate::source::ByteStream;
use memchr::memchr;

/// Longest line that is handed out, in bytes. The longest known records (FIU, with one checksum per
/// sector) need 33 KiB for a request of 512 KiB.
pub const LONGEST_LINE_BYTES: usize = 64 << 10;
const BUFFER_BYTES: usize = 256 << 10;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// One line, without its end.
pub(crate) enum Line<'a> {
    /// All of it.
    Whole(&'a [u8]),
    /// The beginning of one that is too long.
    TooLong(&'a [u8]),
}

/// Cuts a stream into lines.
pub(crate) struct LineScanner {
    stream: ByteStream,
    buffer: Vec<u8>,
    /// The unread part of `buffer` is `start..end`.
    start: usize,
    end: usize,
    /// Lines handed out.
    number: u64,
    /// The stream has no more bytes.
    ended: bool,
    /// The rest of a line that was too long is still to be passed over.
    discarding: bool,
}

impl LineScanner {
    /// Reads lines of `stream` from its first byte on.
    pub(crate) fn new(stream: ByteStream) -> LineScanner {
        LineScanner {
            stream,
            buffer: vec![0; BUFFER_BYTES],
            start: 0,
            end: 0,
            number: 0,
            ended: false,
            discarding: false,
        }
    }

    /// The 1-based number of the line handed out last.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// The stream, for its path.
    pub(crate) fn stream(&self) -> &ByteStream {
        &self.stream
    }

    /// The next line, or nothing at the end. Errors: those of the stream.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<Option<Line<'_>>, TraceError> {
        if !self.discarding {
            let unread = &self.buffer[self.start..self.end];
            if let Some(length) = memchr(b'\n', unread)
                && length <= LONGEST_LINE_BYTES
            {
                let from = self.start;
                self.start += length + 1;
                self.number += 1;
                return Ok(Some(Line::Whole(without_return(&self.buffer[from..from + length]))));
            }
        }
        self.next_after_refill()
    }

    /// The next line when the buffer does not hold a complete one of bearable length.
    #[cold]
    fn next_after_refill(&mut self) -> Result<Option<Line<'_>>, TraceError> {
        if self.discarding && !self.discard()? {
            return Ok(None);
        }
        loop {
            let unread = &self.buffer[self.start..self.end];
            let found = memchr(b'\n', unread);
            let length = found.unwrap_or(unread.len());
            let from = self.start;
            if length > LONGEST_LINE_BYTES {
                self.discarding = true;
                self.number += 1;
                return Ok(Some(Line::TooLong(&self.buffer[from..from + LONGEST_LINE_BYTES])));
            }
            if found.is_none() && !self.ended {
                self.refill()?;
                continue;
            }
            if found.is_none() && length == 0 {
                return Ok(None);
            }
            self.start = self.end.min(from + length + 1);
            self.number += 1;
            return Ok(Some(Line::Whole(without_return(&self.buffer[from..from + length]))));
        }
    }

    /// Passes over the rest of a line; false at the end of the stream.
    fn discard(&mut self) -> Result<bool, TraceError> {
        loop {
            if let Some(length) = memchr(b'\n', &self.buffer[self.start..self.end]) {
                self.start += length + 1;
                self.discarding = false;
                return Ok(true);
            }
            self.start = self.end;
            if self.ended {
                return Ok(false);
            }
            self.refill()?;
        }
    }

    fn refill(&mut self) -> Result<(), TraceError> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        let free = self.buffer.len() - self.end;
        let count = self.stream.fill(&mut self.buffer[self.end..])?;
        let at_beginning = self.end == 0 && self.number == 0;
        self.end += count;
        self.ended = count < free;
        if at_beginning && self.buffer[..self.end].starts_with(BYTE_ORDER_MARK) {
            self.start = BYTE_ORDER_MARK.len();
        }
        Ok(())
    }
}

#[inline]
fn without_return(line: &[u8]) -> &[u8] {
    match line {
        [text @ .., b'\r'] => text,
        _ => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ByteSource;

    fn lines_of(bytes: &[u8]) -> Vec<(u64, String)> {
        let stream = ByteSource::from_bytes("memory", bytes).expect("in memory").into_stream();
        let mut scanner = LineScanner::new(stream);
        let mut lines = Vec::new();
        while let Some(line) = scanner.next().expect("in memory") {
            let text = match line {
                Line::Whole(text) => String::from_utf8_lossy(text).into_owned(),
                Line::TooLong(text) => format!("too long: {}", text.len()),
            };
            lines.push((scanner.number(), text));
        }
        lines
    }

    #[test]
    fn line_ends_may_be_mixed_and_the_last_may_lack() {
        let expected = [(1, "a"), (2, ""), (3, "b"), (4, "c")].map(|(n, t)| (n, t.to_owned()));
        assert_eq!(lines_of(b"a\n\r\nb\r\nc"), expected);
        assert_eq!(lines_of(b"\xef\xbb\xbfa\n\nb\nc\r\n"), expected, "after a byte order mark");
        assert_eq!(lines_of(b""), []);
    }

    #[test]
    fn a_line_without_end_is_bounded_and_the_next_is_not_lost() {
        for length in [LONGEST_LINE_BYTES + 1, 300 << 10, 2 << 20] {
            let mut bytes = b"first\n".to_vec();
            bytes.resize(bytes.len() + length, b'x');
            let cut = format!("too long: {LONGEST_LINE_BYTES}");
            let expected = [(1, "first".to_owned()), (2, cut.clone())];
            assert_eq!(lines_of(&bytes), expected, "{length}, at the end");
            bytes.extend_from_slice(b"\nlast\n");
            let expected = [(1, "first".to_owned()), (2, cut), (3, "last".to_owned())];
            assert_eq!(lines_of(&bytes), expected, "{length}, in the middle");
        }
        let mut bytes = vec![b'x'; LONGEST_LINE_BYTES];
        assert_eq!(lines_of(&bytes), [(1, "x".repeat(LONGEST_LINE_BYTES))], "the longest allowed");
        bytes.push(b'\n');
        assert_eq!(lines_of(&bytes).len(), 1);
    }

    #[test]
    fn lines_across_buffers_are_whole() {
        let text: Vec<String> = (0..60_000).map(|n| format!("{n:0>11}")).collect();
        let lines = lines_of(text.join("\n").as_bytes());
        assert_eq!(lines.len(), text.len());
        assert!(lines.iter().zip(&text).all(|((_, line), text)| line == text));
    }
}
