//! The window: shares, what is dropped first, what stays, and how packets follow each other.

use proptest::prelude::*;
use spinney_kernel::definition::{Compact, Preset, Shares};
use spinney_kernel::record::{Cut, Header, Span, Tie};
use spinney_kernel::window::trim;

use spinney_kernel::primitives::{Category, TokenCount, limit};
use spinney_kernel::window::{Bounds, Slice, TooSmall, Window, covers};

const TOOLS: Bounds =
    Bounds { size: 1_000, preset: Preset::Tools, images_max: 5, compact: Compact::Count, thread: None };

fn header(tokens: u64, category: Category) -> Header {
    Header::new(tokens.into(), category, Tie::Free)
}

fn system(tokens: u64) -> Header {
    header(tokens, Category::System)
}

/// A model's text that calls tools, and their results.
fn unit(said: u64, results: &[u64]) -> Vec<Header> {
    let answers = results.iter().map(|tokens| Header::new((*tokens).into(), Category::Output, Tie::Answers));
    std::iter::once(Header::new(said.into(), Category::Dialog, Tie::Asks)).chain(answers).collect()
}

fn dropped(headers: &[Header], bounds: &Bounds) -> Vec<usize> {
    let cut = trim(&Window::new(headers.to_vec(), 0), bounds).unwrap().unwrap_or_default();
    Span::places(&cut.drop).collect()
}

/// P1 (the rule): shares are exactly those of the preset, never exceed the whole, and follow the size at once.
#[test]
fn shares_follow_preset_and_size() {
    let of = |preset, size| Category::ALL.map(|category| Shares::new(preset, size).get(category));
    assert_eq!(of(Preset::Tools, 100_000), [10_000, 30_000, 40_000, 20_000, 0, 0, 0]);
    assert_eq!(of(Preset::Dialog, 100_000), [10_000, 35_000, 50_000, 5_000, 0, 0, 0]);
    assert_eq!(of(Preset::Tools, 50_000), [5_000, 15_000, 20_000, 10_000, 0, 0, 0]);
    for size in [0, 1, 99, 101, 12_345, u64::from(u32::MAX)] {
        assert!(of(Preset::Dialog, size).iter().sum::<u64>() <= size);
        assert!(of(Preset::Tools, size).iter().sum::<u64>() <= size);
    }
}

/// P2 (the rule): the system message stays, whatever its size; if it alone is too large, both numbers are named.
#[test]
fn the_first_message_stays_and_is_named_when_it_is_too_large() {
    let mut headers = vec![system(700)];
    headers.extend((0..10).map(|_| header(40, Category::Dialog)));
    let window = Window::new(headers, 0);
    let mut after = window.clone();
    after.cut(&trim(&window, &TOOLS).unwrap().unwrap());
    assert!(after.tokens() <= TOOLS.size, "{}", after.tokens());
    assert_eq!(after.headers()[0], system(700));
    let too_large = trim(&Window::new(vec![system(1_001)], 0), &TOOLS);
    let folded = limit::FOLDED_TOKENS_MIN;
    assert_eq!(too_large, Err(TooSmall { tokens: 1_001 + folded, system: 1_001, size: 1_000 }));
}

/// P3 (the rule): unknown categories are dropped first and context last, the oldest of each first; the rest keeps its
/// order.
#[test]
fn the_least_important_goes_first_and_the_oldest_of_it() {
    // Five messages of each category, in turns, so each exceeds its share of a thousand.
    let kinds = &Category::ALL[1..];
    let mut headers = vec![system(10)];
    headers.extend((0..5).flat_map(|_| kinds).map(|kind| header(100, *kind)));
    let gone = |size| {
        let gone = dropped(&headers, &Bounds { size, ..TOOLS });
        let of = |category: &Category| {
            let of_it: Vec<usize> =
                (1..headers.len()).filter(|at| headers[*at].category == *category).collect();
            let count = of_it.iter().filter(|place| gone.contains(place)).count();
            assert!(of_it[..count].iter().all(|place| gone.contains(place)), "not the oldest {category:?}");
            format!("{} {count}", category.as_str())
        };
        kinds.iter().rev().map(of).collect::<Vec<_>>().join(", ")
    };
    let recorded = [3_000, 2_500, 2_000, 1_500, 1_000, 500].map(gone).join("\n");
    insta::assert_snapshot!(recorded, @"
    unknown 5, internal 2, error 0, output 0, dialog 0, context 0
    unknown 5, internal 5, error 1, output 0, dialog 0, context 0
    unknown 5, internal 5, error 5, output 0, dialog 0, context 0
    unknown 5, internal 5, error 5, output 3, dialog 0, context 1
    unknown 5, internal 5, error 5, output 5, dialog 1, context 2
    unknown 5, internal 5, error 5, output 5, dialog 3, context 4
    ");
}

/// P4 (the rule): a call is never without its results, and the last message from a person is kept although it exceeds
/// its share.
#[test]
fn pairs_stay_together_and_the_newest_word_of_a_person_stays() {
    let mut headers = vec![system(50)];
    headers.push(Header::new(TokenCount::exact(600), Category::Dialog, Tie::Letter));
    headers.extend(unit(20, &[100, 100]));
    headers.extend(unit(20, &[100]));
    headers.extend(unit(20, &[50, 50]));
    let gone = dropped(&headers, &TOOLS);
    assert!(!gone.contains(&1));
    for unit in [2..5, 5..7, 7..10] {
        let of_it = unit.clone().filter(|place| gone.contains(place)).count();
        assert!(of_it == 0 || of_it == unit.len(), "{unit:?} of {gone:?}");
    }
    assert!(gone.contains(&2), "{gone:?}");
}

/// P5: of seven images in a window for five the two oldest become placeholders.
#[test]
fn p5_the_oldest_images_become_placeholders() {
    let images = |count| header(10, Category::Dialog).with_images(count);
    let window = Window::new(vec![system(10), images(1), images(3), images(2), images(1)], 0);
    let cut = trim(&window, &TOOLS).unwrap().unwrap();
    assert!(cut.drop.is_empty());
    let blank: Vec<(u32, u8)> = cut.blank.iter().map(|blank| (blank.at, blank.images)).collect();
    assert_eq!(blank, [(1, 1), (2, 1)]);
    let mut after = window;
    after.cut(&cut);
    assert_eq!(after.headers().iter().map(|header| header.images).sum::<u8>(), 5);
    assert_eq!(trim(&after, &TOOLS), Ok(None));
}

/// P6 (the rule): context above its share is not cut while dialog is idle, and the next packet returns to the shares.
#[test]
fn what_is_idle_is_borrowed_for_one_request() {
    let mut headers = vec![system(50)];
    headers.extend((0..8).map(|_| header(100, Category::Context)));
    assert_eq!(dropped(&headers, &TOOLS), [0_usize; 0]);
    let mut later = headers;
    later.extend((0..3).map(|_| header(100, Category::Dialog)));
    // Dialog keeps to its share of 400, so context gives back what it borrowed.
    assert_eq!(dropped(&later, &TOOLS), [1, 2, 3, 4, 5]);
}

fn any_headers() -> impl Strategy<Value = Vec<Header>> {
    let single = (0_u64..200, 1_usize..7, any::<bool>()).prop_map(|(tokens, category, is_letter)| {
        let category = Category::ALL[category];
        let tie = if is_letter { Tie::Letter } else { Tie::Free };
        vec![Header::new(tokens.into(), category, tie)]
    });
    let pair = (0_u64..100, proptest::collection::vec(0_u64..150, 1..4))
        .prop_map(|(said, results)| unit(said, &results));
    let messages = proptest::collection::vec(prop_oneof![single, pair], 0..60);
    (1_u64..150, messages)
        .prop_map(|(first, rest)| std::iter::once(system(first)).chain(rest.into_iter().flatten()).collect())
}

proptest! {
    /// P2 (the rule), P3 (the rule), P4 (the rule): a packet never exceeds its window, splits no pair, loses nothing
    /// pinned and keeps its order; what is stored does not change.
    #[test]
    fn random_windows_are_cut_by_the_rules(
        headers in any_headers(),
        unread in 0_usize..4,
        size in 256_u64..6_000,
        lines in any::<bool>(),
    ) {
        let compact = if lines { Compact::Lines } else { Compact::Count };
        let bounds = Bounds { size, compact, ..TOOLS };
        // Unread messages do not begin between a call and its results.
        let unread = (unread..headers.len()).find(|count| {
            headers.get(headers.len() - count).is_none_or(|header| header.tie != Tie::Answers)
        });
        let unread = unread.unwrap_or(0);
        let window = Window::new(headers.clone(), unread);
        let total: u64 = window.tokens();
        match trim(&window, &bounds) {
            Ok(None) => prop_assert!(total <= size),
            Ok(Some(cut)) => check_cut(&window, &cut, size)?,
            Err(too_small) => {
                prop_assert!(too_small.tokens > size);
                prop_assert!(total + u64::from(bounds.folded()) > size);
            }
        }
    }

    /// P14 (the rule): no packet holds more of a thread than its limit; only context messages are dropped for that, the
    /// oldest first, while there is room for everything.
    #[test]
    fn random_windows_keep_to_the_bound_of_their_thread(
        headers in any_headers(),
        unread in 0_usize..4,
        tokens in 0_u64..2_000,
    ) {
        let thread = Slice { teller: None, tokens };
        let bounds = Bounds { size: 20_000, thread: Some(thread), ..TOOLS };
        let mut window = Window::new(headers.clone(), unread);
        let cut = trim(&window, &bounds).unwrap_or_default().unwrap_or_default();
        let mine: Vec<usize> = (0..headers.len()).filter(|place| thread.has(&headers[*place])).collect();
        let gone: Vec<usize> = Span::places(&cut.drop).collect();
        prop_assert_eq!(&gone, &mine[..gone.len()]);
        window.cut(&cut);
        let left = |headers: &[Header]| -> u64 {
            headers.iter().filter(|header| thread.has(header)).map(|header| u64::from(header.tokens)).sum()
        };
        prop_assert!(left(window.headers()) <= tokens);
        prop_assert!(!gone.is_empty() || left(&headers) <= tokens);
    }

    /// A summary's packet fits the window by construction: it shows only messages that were read and will be dropped,
    /// splits no pair, and contains all of them that fit.
    #[test]
    fn a_packet_that_asks_for_a_summary_never_exceeds_its_window(
        headers in any_headers(),
        unread in 0_usize..4,
        size in 256_u32..6_000,
        asking in 0_u64..400,
        is_folded in any::<bool>(),
    ) {
        let mut headers = headers;
        if is_folded {
            headers.insert(1, Header::new(TokenCount::exact(u64::from(size) / 10), Category::Context, Tie::Folded));
        }
        let unread = (unread..headers.len()).find(|count| {
            headers.get(headers.len() - count).is_none_or(|header| header.tie != Tie::Answers)
        });
        let window = Window::new(headers.clone(), unread.unwrap_or(0));
        let bounds = Bounds { size: size.into(), compact: Compact::Summary, ..TOOLS };
        let Ok(Some(cut)) = trim(&window, &bounds) else { return Ok(()) };
        let Some((covers, tokens)) = covers(&window, &cut, size.into(), asking.into()) else { return Ok(()) };
        let tokens = tokens.bound();
        let shown: Vec<usize> = Span::places(&covers.spans).collect();
        prop_assert!(shown.is_sorted() && !shown.is_empty());
        let always = headers.iter().take(1 + usize::from(is_folded)).map(|header| u64::from(header.tokens));
        let sum = shown.iter().map(|place| u64::from(headers[*place].tokens)).chain(always).sum::<u64>() + asking;
        prop_assert_eq!(sum, tokens);
        prop_assert!(tokens <= u64::from(size), "{} of {}", tokens, size);
        let read = headers.len() - window.unread();
        for (place, header) in headers.iter().enumerate() {
            let is_shown = shown.contains(&place);
            prop_assert!(!is_shown || place < read && cut.drops(place as u32));
            if header.tie == Tie::Answers {
                prop_assert_eq!(is_shown, shown.contains(&(place - 1)), "a pair is split at {}", place);
            }
            let is_single = header.tie != Tie::Asks && header.tie != Tie::Answers;
            if is_single && place < read && cut.drops(place as u32) && !is_shown {
                prop_assert!(tokens + u64::from(header.tokens) > u64::from(size), "{} has room", place);
            }
        }
    }

    /// P9 (the rule): between two cuts packets only grow at their end, and a cut leaves a fifth free.
    #[test]
    fn packets_share_their_beginning_until_the_window_is_full_again(
        tokens in proptest::collection::vec(1_u64..120, 1..200),
        size in 512_u64..3_000,
    ) {
        let bounds = Bounds { size, ..TOOLS };
        let mut window = Window::new(vec![system(40)], 0);
        let mut packet = window.headers().to_vec();
        for tokens in tokens {
            window.push(header(tokens, Category::Dialog));
            let cut = trim(&window, &bounds).unwrap_or_default();
            window.read();
            match cut {
                None => prop_assert_eq!(&window.headers()[..packet.len()], packet.as_slice()),
                Some(cut) => {
                    window.cut(&cut);
                    prop_assert!(window.tokens() * 100 <= size * limit::TRIM_PERCENT);
                }
            }
            packet = window.headers().to_vec();
        }
    }
}

fn check_cut(window: &Window, cut: &Cut, size: u64) -> Result<(), TestCaseError> {
    let headers = window.headers();
    let mut after = window.clone();
    after.cut(cut);
    prop_assert!(after.tokens() <= size, "{} of {size}", after.tokens());
    let gone: Vec<usize> = Span::places(&cut.drop).collect();
    prop_assert!(gone.is_sorted());
    let newest = headers.iter().rposition(|h| h.tie == Tie::Letter && h.category == Category::Dialog);
    for place in gone.iter().copied() {
        prop_assert!(headers[place].category != Category::System);
        prop_assert!(Some(place) != newest);
        let is_note = headers[place].category == Category::Internal;
        prop_assert!(is_note || place < headers.len() - window.unread());
    }
    let goes = |place: usize| gone.contains(&place);
    for (place, header) in headers.iter().enumerate() {
        if header.tie == Tie::Answers {
            prop_assert_eq!(goes(place), goes(place - 1), "a pair is split at {}", place);
        }
    }
    let stay: Vec<Header> =
        headers.iter().enumerate().filter(|(place, _)| !goes(*place)).map(|(_, header)| *header).collect();
    let kept: Vec<Header> =
        after.headers().iter().filter(|header| header.tie != Tie::Folded).copied().collect();
    prop_assert_eq!(kept, stay);
    let left: u32 = after.left_out().map(|(_, left)| left.messages).sum();
    prop_assert_eq!(left as usize, gone.len());
    Ok(())
}
