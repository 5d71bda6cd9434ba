//! The bytes of a trace, decompressed on the way: gzip and zstd by their first bytes.
//!
//! Both are read as a stream and to the end of the file: several gzip members or zstd frames one
//! behind the other are one text, as `cat` makes them. Checksums are checked. Left out: zstd
//! dictionaries, and windows beyond the decoder's own limit.

use std::io::{self, BufRead, BufReader, Cursor, ErrorKind, Read};

use flate2::read::MultiGzDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

/// Bytes that tell how a file is compressed.
const MAGIC_LEN: usize = 4;
const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

/// A source as it is, or through a decoder.
pub(super) enum Source<R> {
    Plain(Counted<R>),
    Gzip(Box<MultiGzDecoder<Counted<R>>>),
    Zstd(Box<Zstd<Counted<R>>>),
}

impl<R> std::fmt::Debug for Source<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Source").field(&self.compression()).finish()
    }
}

impl<R> Source<R> {
    /// How it is compressed.
    pub(super) fn compression(&self) -> Option<&'static str> {
        match self {
            Self::Plain(_) => None,
            Self::Gzip(_) => Some("gzip"),
            Self::Zstd(_) => Some("zstd"),
        }
    }
}

impl<R: Read> Source<R> {
    /// Looks at the first bytes of `source`, which may be compressed.
    pub(super) fn new(mut source: R) -> io::Result<Self> {
        let mut magic = Vec::with_capacity(MAGIC_LEN);
        source.by_ref().take(MAGIC_LEN as u64).read_to_end(&mut magic)?;
        let (is_gzip, is_zstd) = (magic.starts_with(GZIP), magic.starts_with(ZSTD));
        let counted = Counted { source: Cursor::new(magic).chain(source), count: 0 };
        Ok(match (is_gzip, is_zstd) {
            (true, _) => Self::Gzip(Box::new(MultiGzDecoder::new(counted))),
            (_, true) => Self::Zstd(Box::new(Zstd::new(counted))),
            _ => Self::Plain(counted),
        })
    }

    /// Bytes taken from the file so far, compressed or not.
    pub(super) fn bytes_taken(&self) -> u64 {
        match self {
            Self::Plain(counted) => counted.count,
            Self::Gzip(decoder) => decoder.get_ref().count,
            Self::Zstd(decoder) => decoder.source.get_ref().count,
        }
    }
}

impl<R: Read> Read for Source<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(counted) => counted.read(buffer),
            Self::Gzip(decoder) => decoder.read(buffer),
            Self::Zstd(decoder) => decoder.read(buffer),
        }
    }
}

/// A source, with the bytes that were looked at put back, and how much was taken from it.
pub(super) struct Counted<R> {
    source: io::Chain<Cursor<Vec<u8>>, R>,
    count: u64,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.source.read(buffer)?;
        self.count += read as u64;
        Ok(read)
    }
}

/// Frames of zstd, one behind the other.
pub(super) struct Zstd<R> {
    source: BufReader<R>,
    decoder: FrameDecoder,
    in_frame: bool,
}

impl<R: Read> Zstd<R> {
    fn new(source: R) -> Self {
        Self { source: BufReader::new(source), decoder: FrameDecoder::new(), in_frame: false }
    }

    /// Begins the next frame, past those that hold no data; false at the end of the file.
    fn next_frame(&mut self) -> io::Result<bool> {
        loop {
            if self.source.fill_buf()?.is_empty() {
                return Ok(false);
            }
            match self.decoder.init(&mut self.source) {
                Ok(()) => return Ok(true),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    let length = u64::from(length);
                    if io::copy(&mut self.source.by_ref().take(length), &mut io::sink())? < length {
                        return Err(ErrorKind::UnexpectedEof.into());
                    }
                }
                Err(error) => return Err(failed(&error)),
            }
        }
    }
}

impl<R: Read> Read for Zstd<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.in_frame && self.decoder.can_collect() > 0 {
                return self.decoder.read(buffer);
            }
            if self.in_frame && !self.decoder.is_finished() {
                let one = BlockDecodingStrategy::UptoBlocks(1);
                self.decoder.decode_blocks(&mut self.source, one).map_err(|error| failed(&error))?;
                continue;
            }
            if self.in_frame {
                let told = self.decoder.get_checksum_from_data();
                if told.is_some() && told != self.decoder.get_calculated_checksum() {
                    return Err(io::Error::new(ErrorKind::InvalidData, "its checksum is wrong"));
                }
            }
            self.in_frame = self.next_frame()?;
            if !self.in_frame {
                return Ok(0);
            }
        }
    }
}

/// The decoder keeps an early end of the file deep inside of its errors.
fn failed(error: &FrameDecoderError) -> io::Error {
    if format!("{error:?}").contains("UnexpectedEof") {
        return io::Error::new(ErrorKind::UnexpectedEof, "unexpected end of file");
    }
    io::Error::new(ErrorKind::InvalidData, error.to_string())
}
