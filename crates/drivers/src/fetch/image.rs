//! An answer that is an image is passed on to the model as one. Providers refuse a whole request for an image that is not
//! what it claims to be, is cut, or is too large; so an image whose form or size says that is not passed on.

use spinney_kernel::primitives::{Enclosure, PartKind};

use super::get::Fetched;

/// The smallest bound among providers is 5 MiB in base64.
const IMAGE_BYTES_MAX: usize = 3_900_000;
/// The smallest bound among providers, for each side.
const IMAGE_PIXELS_MAX: u32 = 8_000;

/// What follows the last row of a PNG: an empty chunk with its checksum.
const PNG_END: &[u8] = b"\0\0\0\0IEND\xae\x42\x60\x82";
const JPEG_END: &[u8] = b"\xff\xd9";
/// Cameras write a little behind the end.
const JPEG_TAIL_BYTES_MAX: usize = 1 << 10;

/// The image that was fetched, if models accept it.
pub(super) fn image(fetched: &Fetched) -> Option<Enclosure> {
    if fetched.is_cut || fetched.body.len() > IMAGE_BYTES_MAX {
        return None;
    }
    let (media, name, sides) = whole_image(&fetched.body)?;
    let is_sane = sides.into_iter().all(|side| (1..=IMAGE_PIXELS_MAX).contains(&side));
    let declared = fetched.content_type.split(';').next().unwrap_or_default().trim();
    if !is_sane || !declared.eq_ignore_ascii_case(media) {
        return None;
    }
    let (media, name) = (media.parse().ok()?, name.parse().ok()?);
    Some(Enclosure { kind: PartKind::Image, media, name, bytes: fetched.body.clone() })
}

/// The type, a name, and width and height of bytes that begin and end like an image.
fn whole_image(bytes: &[u8]) -> Option<(&'static str, &'static str, [u32; 2])> {
    match bytes {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', chunks @ ..] => {
            Some(("image/png", "image.png", png_sides(chunks)?))
        }
        [0xff, 0xd8, segments @ ..] => Some(("image/jpeg", "image.jpg", jpeg_sides(segments)?)),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', width @ .., b';'] => {
            let [w0, w1, h0, h1, ..] = *width else { return None };
            let sides = [u16::from_le_bytes([w0, w1]).into(), u16::from_le_bytes([h0, h1]).into()];
            Some(("image/gif", "image.gif", sides))
        }
        [b'R', b'I', b'F', b'F', l0, l1, l2, l3, b'W', b'E', b'B', b'P', chunk @ ..] => {
            let length = u32::from_le_bytes([*l0, *l1, *l2, *l3]);
            let is_whole = usize::try_from(length).ok()? + 8 == bytes.len();
            Some(("image/webp", "image.webp", webp_sides(chunk).filter(|_| is_whole)?))
        }
        _ => None,
    }
}

fn png_sides(chunks: &[u8]) -> Option<[u32; 2]> {
    let (header, rest) = chunks.split_first_chunk::<16>()?;
    let [0, 0, 0, 13, b'I', b'H', b'D', b'R', w0, w1, w2, w3, h0, h1, h2, h3] = *header else { return None };
    let sides = [u32::from_be_bytes([w0, w1, w2, w3]), u32::from_be_bytes([h0, h1, h2, h3])];
    rest.ends_with(PNG_END).then_some(sides)
}

/// Those of the first frame.
fn jpeg_sides(mut segments: &[u8]) -> Option<[u32; 2]> {
    let tail = &segments[segments.len().saturating_sub(JPEG_TAIL_BYTES_MAX)..];
    if !tail.windows(JPEG_END.len()).any(|word| word == JPEG_END) {
        return None;
    }
    loop {
        let [0xff, marker, rest @ ..] = segments else { return None };
        match marker {
            // It may be filled up.
            0xff => segments = &segments[1..],
            // A frame; three of the numbers between are something else.
            0xc0..=0xcf if !matches!(marker, 0xc4 | 0xc8 | 0xcc) => {
                let [_, _, _, h0, h1, w0, w1, ..] = *rest else { return None };
                return Some([u16::from_be_bytes([w0, w1]).into(), u16::from_be_bytes([h0, h1]).into()]);
            }
            _ => {
                let [l0, l1, ..] = *rest else { return None };
                segments = rest.get(usize::from(u16::from_be_bytes([l0, l1])).max(2)..)?;
            }
        }
    }
}

fn webp_sides(chunk: &[u8]) -> Option<[u32; 2]> {
    let (kind, data) = chunk.split_first_chunk::<4>()?;
    let data = data.get(4..)?;
    match kind {
        b"VP8 " => {
            let [_, _, _, 0x9d, 0x01, 0x2a, w0, w1, h0, h1, ..] = *data else { return None };
            let side = |low, high| u32::from(u16::from_le_bytes([low, high]) & 0x3fff);
            Some([side(w0, w1), side(h0, h1)])
        }
        b"VP8L" => {
            let [0x2f, a, b, c, d, ..] = *data else { return None };
            let bits = u32::from_le_bytes([a, b, c, d]);
            Some([(bits & 0x3fff) + 1, (bits >> 14 & 0x3fff) + 1])
        }
        b"VP8X" => {
            let [_, _, _, _, w0, w1, w2, h0, h1, h2, ..] = *data else { return None };
            Some([u32::from_le_bytes([w0, w1, w2, 0]) + 1, u32::from_le_bytes([h0, h1, h2, 0]) + 1])
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn png(side: u32) -> Vec<u8> {
        let side = side.to_be_bytes();
        let header = [&b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR"[..], &side, &side, b"\x08\x02\0\0\0rest"].concat();
        [&header, PNG_END].concat()
    }

    fn sides(bytes: &[u8]) -> Option<(&'static str, [u32; 2])> {
        whole_image(bytes).map(|(media, _, sides)| (media, sides))
    }

    #[test]
    fn an_image_is_known_by_its_beginning_and_its_end() {
        assert_eq!(sides(&png(3)), Some(("image/png", [3, 3])));
        let jpeg =
            b"\xff\xd8\xff\xe0\0\x04ab\xff\xff\xc2\0\x0b\x08\0\x02\0\x05\x01\x01\x11\0\xff\xda..\xff\xd9";
        assert_eq!(sides(jpeg), Some(("image/jpeg", [5, 2])));
        assert_eq!(sides(b"GIF89a\x02\0\x01\0\x80\0\0;"), Some(("image/gif", [2, 1])));
        let webp = |chunk: &[u8]| {
            let length = u32::try_from(4 + chunk.len()).unwrap().to_le_bytes();
            [b"RIFF", &length[..], b"WEBP", chunk].concat()
        };
        let lossless = webp(b"VP8L\x05\0\0\0\x2f\x01\x40\0\0");
        assert_eq!(sides(&lossless), Some(("image/webp", [2, 2])));
        let lossy = webp(b"VP8 \x0a\0\0\0abc\x9d\x01\x2a\x07\0\x09\0");
        assert_eq!(sides(&lossy), Some(("image/webp", [7, 9])));
        let extended = webp(b"VP8X\x0a\0\0\0\0\0\0\0\x06\0\0\x08\0\0");
        assert_eq!(sides(&extended), Some(("image/webp", [7, 9])));
    }

    #[test]
    fn what_a_provider_would_refuse_is_no_image() {
        let fetched = |body: Vec<u8>| Fetched {
            url: "https://a.org/x".parse().unwrap(),
            status: reqwest::StatusCode::OK,
            content_type: "image/png".to_owned(),
            body,
            is_cut: false,
        };
        assert!(image(&fetched(png(3))).is_some());
        let cut = png(3);
        for body in [b"\x89PNG\r\n\x1a\nrest".to_vec(), cut[..cut.len() - 1].to_vec(), png(0), png(8_001)] {
            assert!(image(&fetched(body)).is_none());
        }
        let mut large = png(3);
        large.splice(33..33, vec![0; IMAGE_BYTES_MAX]);
        assert!(image(&fetched(large)).is_none());
        assert!(image(&Fetched { content_type: "image/gif".to_owned(), ..fetched(png(3)) }).is_none());
    }
}
