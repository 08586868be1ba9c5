//! Files that are sent with a message: read within a size limit, with the type from their first bytes, or else from
//! their extension.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use spinney_kernel::primitives::{Enclosure, IdError, MediaType, PartName, limit};

use crate::system::private_files::{self, Links};

/// Why a file cannot be sent.
#[derive(Debug, thiserror::Error)]
#[error("cannot send {}{}", file.display(), if matches!(.why, UnfitFile::Name(_)) { ": rename it" } else { "" })]
pub struct Unsendable {
    /// The file.
    pub file: PathBuf,
    /// What is wrong with it.
    #[source]
    pub why: UnfitFile,
}

/// What is wrong with a file that is to be sent.
#[derive(Debug, thiserror::Error)]
pub enum UnfitFile {
    /// It cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// A message has no room for it.
    #[error("it has {bytes} bytes and the limit is {}: make it smaller", limit::PART_BYTES_MAX)]
    TooLarge {
        /// Its size.
        bytes: u64,
    },
    /// Its name would not be read as one.
    #[error(transparent)]
    Name(IdError),
    /// It is not what its name says.
    #[error("it has the extension of {0} but other contents: rename it")]
    OtherContents(&'static str),
}

/// Magic bytes of images.
const BEGINNINGS: [(&[u8], &str); 4] = [
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
];

/// Extensions of types without magic bytes.
const ENDINGS: [(&str, &str); 16] = [
    ("png", "image/png"),
    ("jpg", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("gif", "image/gif"),
    ("webp", "image/webp"),
    ("svg", "image/svg+xml"),
    ("pdf", "application/pdf"),
    ("json", "application/json"),
    ("txt", "text/plain"),
    ("log", "text/plain"),
    ("md", "text/markdown"),
    ("csv", "text/csv"),
    ("html", "text/html"),
    ("xml", "text/xml"),
    ("yaml", "text/yaml"),
    ("yml", "text/yaml"),
];

const ANYTHING: &str = "application/octet-stream";

/// Reads a file as a part of a message.
pub fn read(path: &Path) -> Result<Enclosure, Unsendable> {
    let read = || -> Result<Enclosure, UnfitFile> {
        let bytes = bytes(path)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name: PartName = name.parse().map_err(UnfitFile::Name)?;
        let media: MediaType = media(name.as_str(), &bytes)?.parse().map_err(UnfitFile::Name)?;
        Ok(Enclosure::new(media, name, bytes))
    };
    read().map_err(|why| Unsendable { file: path.to_owned(), why })
}

fn bytes(path: &Path) -> Result<Vec<u8>, UnfitFile> {
    let file = private_files::plain(path, Links::Follow)?;
    let about = file.metadata()?;
    let mut bytes = Vec::new();
    file.take(limit::PART_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit::PART_BYTES_MAX {
        let size = about.len().max(bytes.len() as u64);
        return Err(UnfitFile::TooLarge { bytes: size });
    }
    Ok(bytes)
}

/// The type of some bytes. Refuses a file with an image's extension that is not an image.
fn media(name: &str, bytes: &[u8]) -> Result<&'static str, UnfitFile> {
    let is_webp = bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP");
    let begins = BEGINNINGS.iter().find(|(beginning, _)| bytes.starts_with(beginning));
    let begins = begins.map(|(_, media)| *media).or(is_webp.then_some("image/webp"));
    let ending = name.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
    let ends = ENDINGS.iter().find(|(known, _)| ending.as_deref() == Some(*known)).map(|(_, media)| *media);
    match (begins, ends) {
        (Some(media), _) => Ok(media),
        (None, Some(media))
            if BEGINNINGS.iter().any(|(_, image)| *image == media) || media == "image/webp" =>
        {
            Err(UnfitFile::OtherContents(media))
        }
        (None, Some(media)) => Ok(media),
        (None, None) => Ok(ANYTHING),
    }
}
