//! Files that are sent with a message: read within a size limit, with the type from their first bytes, or else from
//! their extension.

use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result, bail};
use spinney_kernel::words::{Enclosure, MediaType, PartName, limit};

use crate::home::private_files::{self, Links};
use crate::tree_file::source::plain;

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

pub(crate) fn read(path: &Path) -> Result<Enclosure> {
    let shown = path.display();
    let bytes = bytes(path).with_context(|| format!("cannot send {shown}"))?;
    let name: PartName = plain(path).parse().with_context(|| format!("cannot send {shown}: rename it"))?;
    let media: MediaType = media(name.as_str(), &bytes)?.parse()?;
    Ok(Enclosure::new(media, name, bytes))
}

fn bytes(path: &Path) -> Result<Vec<u8>> {
    let file = private_files::plain(path, Links::Follow)?;
    let about = file.metadata()?;
    let mut bytes = Vec::new();
    file.take(limit::PART_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit::PART_BYTES_MAX {
        let size = about.len().max(bytes.len() as u64);
        bail!("it has {size} bytes and the limit is {}: make it smaller", limit::PART_BYTES_MAX);
    }
    Ok(bytes)
}

/// The type of some bytes. Refuses a file with an image's extension that is not an image.
fn media(name: &str, bytes: &[u8]) -> Result<&'static str> {
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
            bail!("{name} has the extension of {media} but other contents: rename it")
        }
        (None, Some(media)) => Ok(media),
        (None, None) => Ok(ANYTHING),
    }
}
