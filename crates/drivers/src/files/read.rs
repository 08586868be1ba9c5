//! `read_file`: a part of a text file, and where to continue.

use serde::Deserialize;

use super::advice::Refused;
use super::handle;
use super::place::Reach;

pub(super) const DESCRIPTION: &str = "read a text file of your own folder {path, offset?, bytes?}: `outputs/` is what you wrote, `history/` what you did, `offload/` long tool outputs in full; use it to look into an output that was shown only in part";
pub(super) const SCHEMA: &str = r#"{"type":"object","properties":{"path":{"type":"string","description":"such as outputs/notes.md or a file that an output names"},"offset":{"type":"integer","minimum":0,"description":"the byte to begin at, 0 if left out"},"bytes":{"type":"integer","minimum":1,"maximum":16000,"description":"how many to read at most, 4000 if left out"}},"required":["path"],"additionalProperties":false}"#;

/// The most bytes of one answer, and the default.
const BYTES_MAX: u64 = 16_000;
const BYTES: u64 = 4_000;
/// This much is shown in full, with a line that says where to continue.
pub(super) const SHOWN_BYTES: u32 = 16_384;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    path: String,
    #[serde(default)]
    offset: u64,
    bytes: Option<u64>,
}

pub(super) fn act(args: &Args, reach: &Reach<'_>) -> Result<String, Refused> {
    let path = reach.place(&args.path)?;
    let bytes_max = args.bytes.unwrap_or(BYTES).clamp(1, BYTES_MAX);
    let part = handle::read(reach, &path, args.offset, bytes_max)?;
    if args.offset > 0 && args.offset >= part.whole {
        let whole = part.whole;
        return Err(Refused::new(format!("`{path}` has {whole} bytes: begin before byte {whole}")));
    }
    let text = text(&part.bytes, args.offset == 0).ok_or_else(|| {
        Refused::new(format!("`{path}` is not a text file: it has {} bytes of other data", part.whole))
    })?;
    let end = args.offset + text.end;
    if end >= part.whole {
        return Ok(text.shown.to_owned());
    }
    let (shown, whole) = (text.shown, part.whole);
    Ok(format!("{shown}\n[bytes {} to {end} of {whole}; continue with offset {end}]", args.offset))
}

/// Text, and the byte behind it.
struct Text<'a> {
    shown: &'a str,
    end: u64,
}

/// The bytes as text, without the parts of characters that a cut left at either end. None if they are not text.
fn text(bytes: &[u8], is_start: bool) -> Option<Text<'_>> {
    let is_rest = |byte: &u8| byte & 0b1100_0000 == 0b1000_0000;
    let skipped = if is_start { 0 } else { bytes.iter().take(3).take_while(|byte| is_rest(byte)).count() };
    let shown = match std::str::from_utf8(&bytes[skipped..]) {
        Ok(shown) => shown,
        // The last character continues past the end.
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(&bytes[skipped..skipped + error.valid_up_to()]).ok()?
        }
        Err(_) => return None,
    };
    let is_text = !shown.contains('\0') && (!shown.is_empty() || bytes.is_empty());
    is_text.then_some(Text { shown, end: (skipped + shown.len()) as u64 })
}
