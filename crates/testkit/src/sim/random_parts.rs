//! Images and files of simulated messages: only references, no bytes.

use spinney_kernel::primitives::{BlobHash, BlobRef, Body, Part, PartKind, limit};

use super::dice::Dice;
use crate::fixture::parse;

/// A text that sometimes has images and files, and sometimes too many.
pub(super) fn body(dice: &mut Dice, text: &str) -> Body {
    let count = match dice.below(12) {
        0..4 => 0,
        4..11 => dice.between(1, 4),
        _ => dice.between(5, limit::PARTS_MAX as u64 + 1),
    };
    Body::text(text).with_parts((0..count).filter_map(|_| part(dice)).collect())
}

fn part(dice: &mut Dice) -> Option<Part> {
    let (kind, media) =
        if dice.once_in(4) { (PartKind::File, "text/csv") } else { (PartKind::Image, "image/png") };
    let (number, bytes) = (dice.below(1_000), dice.between(1, 60));
    let blob = BlobRef { hash: BlobHash::digest(&number.to_le_bytes()), bytes };
    let mut part = Part::new(kind, parse(media), parse(&format!("part-{number}")), blob).ok()?;
    if !dice.once_in(20) {
        part.count(dice.below(8).into());
    }
    Some(part)
}
