//! An answer that is an image is passed on to the model as one. Its first bytes decide what it is: providers refuse a whole
//! request for an image that is not what it claims to be.

use spinney_kernel::primitives::{Enclosure, PartKind};

use super::get::Fetched;

/// The image that was fetched, if all of it is there and models accept its type.
pub(super) fn image(fetched: &Fetched) -> Option<Enclosure> {
    if fetched.is_cut {
        return None;
    }
    let (media, name) = kind(&fetched.body)?;
    let declared = fetched.content_type.split(';').next().unwrap_or_default().trim();
    if !declared.eq_ignore_ascii_case(media) {
        return None;
    }
    let (media, name) = (media.parse().ok()?, name.parse().ok()?);
    Some(Enclosure { kind: PartKind::Image, media, name, bytes: fetched.body.clone() })
}

fn kind(bytes: &[u8]) -> Option<(&'static str, &'static str)> {
    match bytes {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some(("image/png", "image.png")),
        [0xff, 0xd8, 0xff, ..] => Some(("image/jpeg", "image.jpg")),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some(("image/gif", "image.gif")),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => {
            Some(("image/webp", "image.webp"))
        }
        _ => None,
    }
}
