//! Numbers in network byte order.
//!
//! For: reading a complete message and writing one. Must never know: what the numbers mean. A read
//! beyond the end is `None`, never a panic.

/// A message that is read from front to back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WireReader<'a>(pub(crate) &'a [u8]);

impl<'a> WireReader<'a> {
    /// The next `count` bytes.
    pub(crate) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    /// A string with its length in 32 bits in front; `None` if it is cut short or not UTF-8.
    pub(crate) fn string(&mut self) -> Option<&'a str> {
        let length = self.u32()? as usize;
        std::str::from_utf8(self.take(length)?).ok()
    }

    /// Whether everything has been read.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Appends numbers to a buffer.
pub(crate) trait Put {
    fn put_u16(&mut self, value: u16);
    fn put_u32(&mut self, value: u32);
    fn put_u64(&mut self, value: u64);
    /// A string with its length in 32 bits in front.
    fn put_string(&mut self, text: &str);
}

impl Put for Vec<u8> {
    fn put_u16(&mut self, value: u16) {
        self.extend_from_slice(&value.to_be_bytes());
    }

    fn put_u32(&mut self, value: u32) {
        self.extend_from_slice(&value.to_be_bytes());
    }

    fn put_u64(&mut self, value: u64) {
        self.extend_from_slice(&value.to_be_bytes());
    }

    fn put_string(&mut self, text: &str) {
        self.put_u32(text.len() as u32);
        self.extend_from_slice(text.as_bytes());
    }
}

/// Bytes of a message that came in pieces.
#[derive(Clone, Debug, Default)]
pub(crate) struct Partial(Vec<u8>);

impl Partial {
    /// Takes bytes from `input` until `size` are there; returns whether they are. At most `size`
    /// bytes are ever held.
    pub(crate) fn fill(&mut self, input: &mut &[u8], size: usize) -> bool {
        let count = size.saturating_sub(self.0.len()).min(input.len());
        let (taken, rest) = input.split_at(count);
        self.0.extend_from_slice(taken);
        *input = rest;
        self.0.len() >= size
    }

    /// The bytes so far.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Drops the bytes; a large buffer is given back.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
        self.0.shrink_to(256);
    }
}
