//! Trimming: what to leave out when a window is full. Categories above their share give first, then all of them; the
//! least important first, and the oldest within it. Trimming goes down to 80 %, so the next packets keep an
//! identical prefix until the window is full again. Excess images become placeholders before any message is dropped.

pub(super) use crate::record::{Cut, ImageCut, Span};
use std::borrow::Cow;
use std::ops::Range;

use super::Window;
use crate::definition::{Compact, Preset, Shares};
use crate::primitives::{Category, limit};
use crate::record::{Header, Tie};

/// The limits of a packet, in the unit in which the window's messages are estimated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    pub size: u64,
    pub preset: Preset,
    pub images_max: u32,
    pub compact: Compact,
    /// The part of it that belongs to a thread with several readers.
    pub thread: Option<Slice>,
}

/// The context messages of a thread with several readers, and the most tokens of them in a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// The index of the thread's agent among those that shared something; `None` if the thread is the agent's own.
    pub teller: Option<u8>,
    pub tokens: u64,
}

impl Slice {
    #[must_use]
    pub fn has(&self, header: &Header) -> bool {
        self.teller.map_or_else(|| header.is_own_context(), |teller| header.tie == Tie::Shared(teller))
    }

    fn tokens_in(&self, headers: &[Header]) -> u64 {
        headers.iter().filter(|header| self.has(header)).map(|header| u64::from(header.estimate)).sum()
    }
}

impl Bounds {
    /// The most tokens of the digest of left-out messages.
    #[must_use]
    pub fn folded(&self) -> u32 {
        let tokens = match self.compact {
            Compact::Lines | Compact::Summary => share(self.size, limit::FOLDED_PERCENT),
            Compact::Count => 0,
        };
        u32::try_from(tokens.max(limit::FOLDED_TOKENS_MIN)).unwrap_or(u32::MAX)
    }
}

/// What must stay does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooSmall {
    /// Tokens that must stay.
    pub tokens: u64,
    /// The part of them in the first message.
    pub system: u64,
    /// Tokens available.
    pub size: u64,
}

/// What to leave out so that the window keeps within its bounds; `None` if everything fits.
///
/// # Errors
/// If what must stay does not fit: the first message, the newest one from a person or agent, and the unread ones.
pub fn trim(window: &Window, bounds: &Bounds) -> Result<Option<Cut>, TooSmall> {
    let (blank, size) = (old_images(window, bounds.images_max), bounds.size);
    let headers = without(window, &blank);
    let headers = headers.as_ref();
    let total = headers.iter().map(|header| u64::from(header.estimate)).sum::<u64>();
    let mut cut = Cut { drop: Vec::new(), blank: Vec::new(), folded: folded(headers) };
    let is_over = |slice: &Slice| slice.tokens_in(headers) > slice.tokens;
    let thread = bounds.thread.filter(is_over);
    if total > size || thread.is_some() {
        let mut units = Units::new(headers, window.unread());
        if cut.folded == 0 {
            cut.folded = bounds.folded();
            units.total += u64::from(cut.folded);
        }
        thread.iter().for_each(|slice| units.drop_shared(slice, headers));
        if units.total > size {
            units.drop_all(bounds);
        }
        if units.total > size {
            let system = headers.first().map_or(0, |header| header.estimate.into());
            return Err(TooSmall { tokens: units.total, system, size });
        }
        cut.drop = units.spans();
    }
    cut.blank = blank.into_iter().filter_map(|blank| among_staying(blank, &cut)).collect();
    Ok((!cut.drop.is_empty() || !cut.blank.is_empty()).then_some(cut))
}

/// Tokens of the digest of left-out messages, if there is one.
fn folded(headers: &[Header]) -> u32 {
    headers.get(1).filter(|header| header.tie == Tie::Folded).map_or(0, |header| header.tokens)
}

fn share(size: u64, percent: u64) -> u64 {
    size / 100 * percent + size % 100 * percent / 100
}

/// The excess images, by message position; the newest images are kept.
fn old_images(window: &Window, images_max: u32) -> Vec<ImageCut> {
    let images_max = usize::try_from(images_max).unwrap_or(usize::MAX);
    let mut over = window.images().saturating_sub(images_max);
    let mut blank = Vec::new();
    for (at, header) in (0..).zip(window.headers()).filter(|(_, header)| header.images > 0) {
        if over == 0 {
            break;
        }
        let images = u8::try_from(over).unwrap_or(u8::MAX).min(header.images);
        over -= usize::from(images);
        blank.push(ImageCut { at, images });
    }
    blank
}

/// Whether a person or an agent wrote it for this agent: not a system note, not shared context.
const fn is_written(header: &Header) -> bool {
    !matches!(header.category, Category::Internal) && !matches!(header.tie, Tie::Shared(_))
}

/// The headers without the tokens of these images, so no message is dropped for images that are not shown.
fn without<'w>(window: &'w Window, blank: &[ImageCut]) -> Cow<'w, [Header]> {
    let mut headers = Cow::Borrowed(window.headers());
    for ImageCut { at, images } in blank {
        let place = *at as usize;
        let tokens: u32 = window.images_at(place).iter().take((*images).into()).sum();
        if let Some(header) = headers.to_mut().get_mut(place) {
            header.estimate = header.estimate.saturating_sub(tokens);
        }
    }
    headers
}

/// With its position among the messages that stay; `None` if its message is dropped.
fn among_staying(ImageCut { at, images }: ImageCut, cut: &Cut) -> Option<ImageCut> {
    let before = Span::places(&cut.drop).take_while(|place| *place < at as usize).count();
    (!cut.drops(at)).then(|| ImageCut { at: at - before as u32, images })
}

/// Positions that are dropped or kept as a unit: one message, or one that asks for tools with all its answers.
pub(super) fn units(headers: &[Header]) -> impl Iterator<Item = Range<usize>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let from = at;
        let answers = headers.get(from + 1..)?.iter().take_while(|header| header.tie == Tie::Answers);
        at = from + 1 + answers.count();
        Some(from..at)
    })
}

struct Unit {
    from: u32,
    to: u32,
    tokens: u64,
    category: Category,
    is_pinned: bool,
    is_gone: bool,
}

struct Units {
    units: Vec<Unit>,
    total: u64,
    /// Tokens that stay, by category.
    of: [u64; Category::COUNT],
}

impl Units {
    fn new(headers: &[Header], unread: usize) -> Self {
        let newest = |tie, category| headers.iter().rposition(|h| h.tie == tie && h.category == category);
        let user = newest(Tie::Letter, Category::Dialog);
        // The unread messages, and the one that asked for them.
        let fresh = headers.len() - unread;
        let answered = headers.get(fresh).is_some_and(|header| header.tie == Tie::Answers);
        let fresh = if answered {
            headers[..fresh].iter().rposition(|header| header.tie == Tie::Asks).unwrap_or(fresh)
        } else {
            fresh
        };
        let pins = |place: usize| {
            let header = &headers[place];
            header.category == Category::System
                || header.tie == Tie::Folded
                || place >= fresh && is_written(header)
                || Some(place) == user
        };
        let unit = |places: Range<usize>| Unit {
            from: places.start as u32,
            to: places.end as u32,
            tokens: headers[places.clone()].iter().map(|header| u64::from(header.estimate)).sum(),
            // A tool exchange counts as output.
            category: if places.len() > 1 { Category::Output } else { headers[places.start].category },
            is_pinned: places.into_iter().any(pins),
            is_gone: false,
        };
        let units: Vec<Unit> = units(headers).map(unit).collect();
        let mut of = [0; Category::COUNT];
        units.iter().for_each(|unit| of[unit.category.place()] += unit.tokens);
        Self { units, total: of.iter().sum(), of }
    }

    /// Drops the oldest units of a category while `must` says so, given all remaining tokens and those of the
    /// category.
    fn drop_oldest(&mut self, category: Category, must: impl Fn(u64, u64) -> bool) {
        let of = &mut self.of[category.place()];
        let mine = |unit: &&mut Unit| unit.category == category && !unit.is_pinned && !unit.is_gone;
        for unit in self.units.iter_mut().filter(mine) {
            if !must(self.total, *of) {
                return;
            }
            unit.is_gone = true;
            self.total -= unit.tokens;
            *of -= unit.tokens;
        }
    }

    /// Drops down to the bounds: categories above their share first.
    fn drop_all(&mut self, bounds: &Bounds) {
        let target = share(bounds.size, limit::TRIM_PERCENT);
        let shares = Shares::new(bounds.preset, bounds.size);
        for category in Category::ALL.into_iter().rev() {
            self.drop_oldest(category, |total, of| total > target && of > shares.get(category));
        }
        for category in Category::ALL.into_iter().rev() {
            self.drop_oldest(category, |total, _| total > target);
        }
    }

    /// Drops the oldest messages of a thread until it is well below its bound; the newest only if it alone exceeds
    /// it. Unread ones are not protected, because a thread is trimmed for all its readers.
    fn drop_shared(&mut self, slice: &Slice, headers: &[Header]) {
        let mut left = slice.tokens_in(headers);
        let target = share(slice.tokens, limit::TRIM_PERCENT);
        let shared = |unit: &Unit| headers.get(unit.from as usize).is_some_and(|header| slice.has(header));
        let newest = self.units.iter().rposition(shared);
        for (place, unit) in self.units.iter_mut().enumerate().filter(|(_, unit)| shared(unit)) {
            if left <= target || left <= slice.tokens && Some(place) == newest {
                return;
            }
            unit.is_gone = true;
            left -= unit.tokens;
            self.total -= unit.tokens;
            self.of[unit.category.place()] -= unit.tokens;
        }
    }

    fn spans(&self) -> Vec<Span> {
        let mut spans: Vec<Span> = Vec::new();
        for unit in self.units.iter().filter(|unit| unit.is_gone) {
            Span::join(&mut spans, unit.from, unit.to);
        }
        spans
    }
}
