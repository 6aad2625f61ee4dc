//! Streams of several members: gzip, bzip2 and LZ4 frames, one behind the other.
//!
//! For: what their own tools read. Must never know: paths, formats. Zeroes behind a member are
//! padding of tapes and blocks, which gzip and bzip2 pass over; anything else there is refused.

use bzip2::bufread::BzDecoder;
use flate2::bufread::GzDecoder;
use lz4_flex::frame::FrameDecoder;
use std::io::{self, BufRead, BufReader, Read};

const BUFFER_BYTES: usize = 32 << 10;

/// Bytes as they stand in a file.
pub(super) type Packed = Box<dyn Read + Send>;

/// A decoder of one member, which leaves what is behind it.
pub(super) trait Member: Read + Sized {
    /// Begins a member.
    fn begin(packed: BufReader<Packed>) -> Self;

    /// What is behind the member.
    fn rest(self) -> BufReader<Packed>;
}

impl Member for GzDecoder<BufReader<Packed>> {
    fn begin(packed: BufReader<Packed>) -> Self {
        GzDecoder::new(packed)
    }

    fn rest(self) -> BufReader<Packed> {
        self.into_inner()
    }
}

impl Member for BzDecoder<BufReader<Packed>> {
    fn begin(packed: BufReader<Packed>) -> Self {
        BzDecoder::new(packed)
    }

    fn rest(self) -> BufReader<Packed> {
        self.into_inner()
    }
}

/// The content of all members in order.
pub(super) struct Members<M> {
    /// Nothing once the end was met.
    member: Option<M>,
}

impl<M: Member> Members<M> {
    /// Reads from the first member on.
    pub(super) fn new(packed: Packed) -> Members<M> {
        let packed = BufReader::with_capacity(BUFFER_BYTES, packed);
        Members { member: Some(M::begin(packed)) }
    }
}

impl<M: Member> Read for Members<M> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.member {
            let count = member.read(buffer)?;
            if count > 0 || buffer.is_empty() {
                return Ok(count);
            }
            let Some(member) = self.member.take() else { break };
            let mut rest = member.rest();
            if pass_zeroes(&mut rest)? {
                self.member = Some(M::begin(rest));
            }
        }
        Ok(0)
    }
}

/// Passes over zeroes; whether something follows them.
fn pass_zeroes(packed: &mut BufReader<Packed>) -> io::Result<bool> {
    loop {
        let held = match packed.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            held => held?,
        };
        if held.is_empty() {
            return Ok(false);
        }
        let zeroes = held.iter().take_while(|byte| **byte == 0).count();
        let is_over = zeroes < held.len();
        packed.consume(zeroes);
        if is_over {
            return Ok(true);
        }
    }
}

/// Bytes of which is known whether their end was met.
struct Counted {
    packed: BufReader<Packed>,
    /// Bytes read since the last frame ended.
    count: u64,
    at_end: bool,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.packed.read(buffer)?;
        self.count += count as u64;
        self.at_end |= count == 0 && !buffer.is_empty();
        Ok(count)
    }
}

/// The content of LZ4 frames in order. The decoder takes a stream that breaks off between two
/// blocks for one that has ended, which is told apart here.
pub(super) struct Lz4Frames(FrameDecoder<Counted>);

impl Lz4Frames {
    /// Reads from the first frame on.
    pub(super) fn new(packed: Packed) -> Lz4Frames {
        let packed = BufReader::with_capacity(BUFFER_BYTES, packed);
        Lz4Frames(FrameDecoder::new(Counted { packed, count: 0, at_end: false }))
    }
}

impl Read for Lz4Frames {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let count = self.0.read(buffer)?;
            if count > 0 || buffer.is_empty() {
                return Ok(count);
            }
            let packed = self.0.get_mut();
            match (packed.at_end, packed.count) {
                (true, 0) => return Ok(0),
                (true, _) => return Err(io::ErrorKind::UnexpectedEof.into()),
                (false, _) => packed.count = 0,
            }
        }
    }
}
