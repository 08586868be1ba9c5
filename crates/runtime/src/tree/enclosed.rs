//! The bytes that come with a request: each part and source file that it names must have its own. So no request reaches another
//! tree's blobs by naming their hash.

use std::collections::BTreeMap;

use spinney_kernel::definition::Refusal;
use spinney_kernel::primitives::{BadPart, BadSources, BlobHash, SourceFile, check_parts};
use spinney_kernel::rules::request::{Request, Verb as _};

use crate::drivers::Drivers;

/// Selects the bytes that a request needs, and counts its parts' tokens by them.
pub(super) fn enclosed(
    drivers: &Drivers,
    request: &mut Request,
    bytes: Vec<Vec<u8>>,
) -> Result<Vec<Vec<u8>>, Refusal> {
    let sources = request.sources().to_vec();
    let parts: Vec<_> = request.parts_mut().collect();
    if parts.is_empty() && sources.is_empty() {
        return Ok(Vec::new());
    }
    check_parts(parts.iter().map(|part| &**part))?;
    let mut given: BTreeMap<BlobHash, (Vec<u8>, bool)> =
        bytes.into_iter().map(|bytes| (BlobHash::digest(&bytes), (bytes, false))).collect();
    for part in parts {
        let found = given.get_mut(&part.blob().hash);
        let Some((bytes, is_used)) = found.filter(|(bytes, _)| bytes.len() as u64 == part.blob().bytes)
        else {
            return Err(BadPart::NoBytes { name: part.name().clone() }.into());
        };
        *is_used = true;
        drivers.count_part(part, bytes);
    }
    for SourceFile { name, blob } in sources {
        let found = given.get_mut(&blob.hash).filter(|(bytes, _)| bytes.len() as u64 == blob.bytes);
        let Some((_, is_used)) = found else { return Err(BadSources::NoBytes { name }.into()) };
        *is_used = true;
    }
    Ok(given.into_values().filter(|(_, is_used)| *is_used).map(|(bytes, _)| bytes).collect())
}
