//! Reads a WAL file to locate damage. It only locates: the count of commits tells whether anything is missing,
//! because a file that was cut or deleted leaves nothing to find.
//!
//! The format is SQLite's (<https://sqlite.org/fileformat2.html#walformat>): a header, then frames of one page each.
//! A frame is valid if it has the header's salts and its checksum continues from the frame before it. SQLite trusts
//! everything up to the last commit frame before the first invalid frame.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

const HEADER_BYTES: usize = 32;
const FRAME_HEADER_BYTES: usize = 24;
const MAGIC: u32 = 0x377f_0682;
const PAGE_BYTES_MAX: usize = 65_536;

/// The damage of a WAL file from which commits are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Damage {
    /// It does not exist or is empty.
    NoFile,
    /// Its header cannot be read, so nothing in it can.
    Header,
    /// This frame is invalid, and a complete commit follows it.
    Frame { number: u64, offset: u64 },
    /// Nothing follows the valid frames: the end was cut off, or never reached the disk.
    Cut { frames: u64 },
}

impl std::fmt::Display for Damage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoFile => write!(f, "there is no write-ahead file"),
            Self::Header => write!(f, "the header of the write-ahead file is damaged"),
            Self::Frame { number, offset } => {
                write!(f, "frame {number} of the write-ahead file, at byte {offset}, is damaged")
            }
            Self::Cut { frames } => write!(f, "the write-ahead file ends after frame {frames}"),
        }
    }
}

/// Finds the first invalid frame that has a complete commit after it.
pub(super) fn locate(path: &Path) -> io::Result<Damage> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Damage::NoFile),
        Err(error) => return Err(error),
    };
    let mut input = BufReader::with_capacity(1 << 20, file);
    let mut header = [0; HEADER_BYTES];
    if !fill(&mut input, &mut header)? {
        return Ok(Damage::NoFile);
    }
    let Some(header) = Header::read(&header) else { return Ok(Damage::Header) };
    let mut frame = vec![0; FRAME_HEADER_BYTES + header.page_bytes];
    let (mut number, mut before) = (0_u64, header.checksum);
    let mut first_bad = None;
    while fill(&mut input, &mut frame)? {
        number += 1;
        let stored = Checksum::stored(&frame[16..24]);
        let is_ours = frame[8..16] == header.salts;
        let continues = header.checksum_of(before, &frame[..8], &frame[FRAME_HEADER_BYTES..]) == stored;
        let is_commit = frame[4..8] != [0; 4];
        match first_bad {
            None if !(is_ours && continues) => first_bad = Some(number),
            // A damaged frame keeps its stored checksum, from which the next one continues.
            Some(bad) if is_ours && continues && is_commit => {
                let offset = HEADER_BYTES as u64 + (bad - 1) * frame.len() as u64;
                return Ok(Damage::Frame { number: bad, offset });
            }
            None | Some(_) => {}
        }
        before = stored;
    }
    Ok(Damage::Cut { frames: first_bad.map_or(number, |bad| bad - 1) })
}

/// Fills a buffer. Returns false if the file ends first.
fn fill(input: &mut impl Read, buffer: &mut [u8]) -> io::Result<bool> {
    match input.read_exact(buffer) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

struct Header {
    page_bytes: usize,
    salts: [u8; 8],
    /// The byte order of the words that checksums are computed over.
    is_big_endian: bool,
    checksum: Checksum,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Checksum(u32, u32);

impl Checksum {
    fn stored(bytes: &[u8]) -> Self {
        Self(big_endian(bytes, 0), big_endian(bytes, 4))
    }
}

impl Header {
    fn read(bytes: &[u8; HEADER_BYTES]) -> Option<Self> {
        let magic = big_endian(bytes, 0);
        let page_bytes = big_endian(bytes, 8) as usize;
        if magic & !1 != MAGIC
            || !page_bytes.is_power_of_two()
            || !(512..=PAGE_BYTES_MAX).contains(&page_bytes)
        {
            return None;
        }
        let salts = bytes[16..24].try_into().ok()?;
        let header = Self { page_bytes, salts, is_big_endian: magic & 1 == 1, checksum: Checksum(0, 0) };
        let checksum = header.checksum_of(Checksum(0, 0), &bytes[..24], &[]);
        (checksum == Checksum::stored(&bytes[24..])).then_some(Self { checksum, ..header })
    }

    /// SQLite's checksum over two pieces, continued from another.
    fn checksum_of(&self, from: Checksum, first: &[u8], second: &[u8]) -> Checksum {
        let word = |bytes: &[u8]| {
            let bytes = [bytes[0], bytes[1], bytes[2], bytes[3]];
            if self.is_big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
        };
        let step = |Checksum(one, two): Checksum, pair: &[u8]| {
            let one = one.wrapping_add(word(&pair[..4])).wrapping_add(two);
            let two = two.wrapping_add(word(&pair[4..])).wrapping_add(one);
            Checksum(one, two)
        };
        first.chunks_exact(8).chain(second.chunks_exact(8)).fold(from, step)
    }
}

fn big_endian(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}
