//! Pages compressed by gzip or brotli, unpacked to a bounded length.
//!
//! For: codecs whose decoders take no bound of their own: a page of some KiB may hold many GiB.
//! Must never know: columns. Source: the Apache Parquet format specification, compression.

use brotli_decompressor::Decompressor;
use bytes::Bytes;
use flate2::read::MultiGzDecoder;
use parquet::basic::Compression;
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use std::io::Read;

/// Longest page of these codecs; writers make them of about 1 MiB.
const PAGE_LIMIT_BYTES: u64 = 256 << 20;
const BROTLI_BUFFER_BYTES: usize = 4096;

/// A codec of which the pages are unpacked here.
#[derive(Clone, Copy)]
pub(super) enum PageCodec {
    Gzip,
    Brotli,
}

impl PageCodec {
    /// The codec if it is one of these.
    pub(super) fn new(compression: Compression) -> Option<PageCodec> {
        match compression {
            Compression::GZIP(_) => Some(PageCodec::Gzip),
            Compression::BROTLI(_) => Some(PageCodec::Brotli),
            _ => None,
        }
    }

    fn unpack(self, packed: &[u8], into: &mut Vec<u8>) -> Result<()> {
        let limit = PAGE_LIMIT_BYTES + 1;
        let count = match self {
            PageCodec::Gzip => MultiGzDecoder::new(packed).take(limit).read_to_end(into),
            PageCodec::Brotli => {
                Decompressor::new(packed, BROTLI_BUFFER_BYTES).take(limit).read_to_end(into)
            }
        };
        match count? as u64 > PAGE_LIMIT_BYTES {
            false => Ok(()),
            true => {
                let text = format!("a page of more than {} MiB", PAGE_LIMIT_BYTES >> 20);
                Err(ParquetError::NYI(text))
            }
        }
    }
}

/// The pages of a column, unpacked.
pub(super) struct UnpackedPages {
    packed: Box<dyn PageReader>,
    codec: PageCodec,
}

impl UnpackedPages {
    /// Unpacks the pages that `packed` gives as they stand in the file.
    pub(super) fn new(packed: Box<dyn PageReader>, codec: PageCodec) -> UnpackedPages {
        UnpackedPages { packed, codec }
    }

    /// `buf` with all bytes behind the first `plain` unpacked.
    fn unpacked(&self, buf: &Bytes, plain: usize) -> Result<Bytes> {
        let (Some(levels), Some(packed)) = (buf.get(..plain), buf.get(plain..)) else {
            return Err(ParquetError::General("a page shorter than its levels".to_owned()));
        };
        let mut bytes = levels.to_vec();
        // A page of nulls alone has no values, and nothing is compressed.
        if !packed.is_empty() {
            self.codec.unpack(packed, &mut bytes)?;
        }
        Ok(bytes.into())
    }
}

impl Iterator for UnpackedPages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Result<Page>> {
        self.get_next_page().transpose()
    }
}

impl PageReader for UnpackedPages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let Some(mut page) = self.packed.get_next_page()? else { return Ok(None) };
        match &mut page {
            Page::DataPage { buf, .. } | Page::DictionaryPage { buf, .. } => {
                *buf = self.unpacked(buf, 0)?;
            }
            Page::DataPageV2 {
                buf,
                def_levels_byte_len,
                rep_levels_byte_len,
                is_compressed,
                ..
            } => {
                if *is_compressed {
                    // Levels are never compressed in pages of version 2.
                    let levels = u64::from(*def_levels_byte_len) + u64::from(*rep_levels_byte_len);
                    let levels = usize::try_from(levels).unwrap_or(usize::MAX);
                    *buf = self.unpacked(buf, levels)?;
                    *is_compressed = false;
                }
            }
        }
        Ok(Some(page))
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.packed.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.packed.skip_next_page()
    }
}
