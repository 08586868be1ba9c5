//! The file that trees move in: a line that names the format, and records. It is read as a stream, so only the size of each
//! record is bounded.
//!
//! ```text
//! spinney-trees 1\n
//! record: kind (1 byte), length (8 bytes, little endian), content
//!   T  JSON: a tree, whether it moves, its last event and the hash there; what follows belongs to it
//!   L  a blob that the next batch is the first to refer to
//!   B  the event before it (8 bytes, little endian), and a batch as it is stored
//!   E  the end, without content
//! ```

use std::io::{self, ErrorKind, Read, Write};

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use spinney_journal::{ChainHash, Head};
use spinney_kernel::primitives::{Seq, TreeId, limit};

use super::export::ExportKind;

pub(super) const FORMAT: &[u8] = b"spinney-trees 1\n";
const TREE: u8 = b'T';
const BLOB: u8 = b'L';
const BATCH: u8 = b'B';
const END: u8 = b'E';

/// Longer than any record of a tree.
const TREE_BYTES_MAX: usize = 4_096;
const SEQ_BYTES: usize = 8;

/// Why a file of trees cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum UnreadTreesFile {
    /// The system reports an error.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It has another format.
    #[error("it is not a file of exported trees")]
    OtherFormat,
    /// It ends in the middle.
    #[error("it is incomplete: copy it again")]
    Cut,
    /// It is damaged, or was not written by an export.
    #[error("it is damaged: {0}")]
    Damaged(String),
}

/// A tree in a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TransferredTree {
    pub(super) tree: TreeId,
    #[serde(rename = "as")]
    pub(super) kind: ExportKind,
    /// The tree whose start seeds its hash chain.
    pub(super) seed: TreeId,
    /// Its last event.
    pub(super) events: Seq,
    /// The hash over all of it.
    #[serde(serialize_with = "write_hash", deserialize_with = "read_hash")]
    pub(super) hash: ChainHash,
}

fn write_hash<S: Serializer>(hash: &ChainHash, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(hash)
}

fn read_hash<'de, D: Deserializer<'de>>(from: D) -> Result<ChainHash, D::Error> {
    String::deserialize(from)?.parse().map_err(D::Error::custom)
}

impl TransferredTree {
    pub(super) fn new(head: &Head, kind: ExportKind) -> Self {
        Self { tree: head.tree, kind, seed: head.seed, events: head.seq, hash: head.hash }
    }

    /// Whether a batch is its last one.
    pub(super) fn ends_at(&self, end: Seq, hash: &ChainHash) -> bool {
        (end, hash) == (self.events, &self.hash)
    }
}

pub(super) enum Record {
    Tree(TransferredTree),
    Blob(Vec<u8>),
    Batch { after: Seq, bytes: Vec<u8> },
    End,
}

pub(super) struct TreesFileWriter<W> {
    to: W,
}

impl<W: Write> TreesFileWriter<W> {
    pub(super) fn begin(mut to: W) -> io::Result<Self> {
        to.write_all(FORMAT)?;
        Ok(Self { to })
    }

    pub(super) fn tree(&mut self, tree: &TransferredTree) -> io::Result<()> {
        self.record(TREE, &[&serde_json::to_vec(tree)?])
    }

    pub(super) fn blob(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.record(BLOB, &[bytes])
    }

    pub(super) fn batch(&mut self, after: Seq, bytes: &[u8]) -> io::Result<()> {
        self.record(BATCH, &[&after.0.to_le_bytes(), bytes])
    }

    /// Ends the file, and returns its writer.
    pub(super) fn end(mut self) -> io::Result<W> {
        self.record(END, &[])?;
        self.to.flush()?;
        Ok(self.to)
    }

    fn record(&mut self, kind: u8, content: &[&[u8]]) -> io::Result<()> {
        let length: usize = content.iter().map(|part| part.len()).sum();
        self.to.write_all(&[kind])?;
        self.to.write_all(&(length as u64).to_le_bytes())?;
        content.iter().try_for_each(|part| self.to.write_all(part))
    }
}

pub(super) struct TreesFileReader<R> {
    from: R,
}

impl<R: Read> TreesFileReader<R> {
    pub(super) fn begin(mut from: R) -> Result<Self, UnreadTreesFile> {
        let mut format = Vec::new();
        (&mut from).take(FORMAT.len() as u64).read_to_end(&mut format)?;
        match format == FORMAT {
            true => Ok(Self { from }),
            false => Err(UnreadTreesFile::OtherFormat),
        }
    }

    /// The next record; none comes after the end.
    pub(super) fn next(&mut self) -> Result<Record, UnreadTreesFile> {
        let (mut kind, mut length) = ([0], [0; 8]);
        self.fill(&mut kind)?;
        self.fill(&mut length)?;
        let [kind] = kind;
        let most = match kind {
            TREE => TREE_BYTES_MAX,
            BLOB => limit::BLOB_BYTES_MAX,
            BATCH => SEQ_BYTES + limit::BATCH_BYTES_MAX,
            END => 0,
            other => return Err(UnreadTreesFile::Damaged(format!("a record of kind {other}"))),
        };
        let length = u64::from_le_bytes(length);
        if length > most as u64 {
            return Err(UnreadTreesFile::Damaged(format!(
                "a record of {length} bytes, at most {most} are valid"
            )));
        }
        let mut content = Vec::new();
        (&mut self.from).take(length).read_to_end(&mut content)?;
        if content.len() as u64 != length {
            return Err(UnreadTreesFile::Cut);
        }
        self.record(kind, content)
    }

    fn record(&mut self, kind: u8, content: Vec<u8>) -> Result<Record, UnreadTreesFile> {
        match kind {
            TREE => match serde_json::from_slice(&content) {
                Ok(tree) => Ok(Record::Tree(tree)),
                Err(error) => Err(UnreadTreesFile::Damaged(error.to_string())),
            },
            BLOB => Ok(Record::Blob(content)),
            BATCH => match content.split_first_chunk::<SEQ_BYTES>() {
                Some((after, bytes)) => {
                    Ok(Record::Batch { after: Seq(u64::from_le_bytes(*after)), bytes: bytes.to_vec() })
                }
                None => Err(UnreadTreesFile::Damaged("a batch without its place".to_owned())),
            },
            _ => match self.from.read(&mut [0])? {
                0 => Ok(Record::End),
                _ => Err(UnreadTreesFile::Damaged("there is data after its end".to_owned())),
            },
        }
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), UnreadTreesFile> {
        self.from.read_exact(bytes).map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => UnreadTreesFile::Cut,
            _ => error.into(),
        })
    }
}
