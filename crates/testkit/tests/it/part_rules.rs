//! The rules of parts: what is valid, how it is stored, and how windows count and blank them.

use proptest::prelude::*;
use spinney_kernel::budget::Used;
use spinney_kernel::context::{Contexts, Message};
use spinney_kernel::definition::{Compact, GivenMessage, Preset, WindowSpec};
use spinney_kernel::primitives::{
    AgentId, BadPart, BlobHash, BlobRef, Body, CallId, Category, Envelope, MediaType, Part, PartKind,
    PartName, RoleName, check_parts,
};
use spinney_kernel::record::{Header, OnTimeout, Outcome, Question, Tie, ToolAsk};
use spinney_kernel::rules::report::Done;
use spinney_kernel::rules::request::{Answer, Ask, Broadcast, Collect, Finish, Publish, Send, Spawn};
use spinney_kernel::window::trim;
use spinney_kernel::window::{Bounds, Window};

use spinney_kernel::definition::Refusal;
use spinney_kernel::primitives::{TokenCount, limit};
use spinney_kernel::record::Event;
use spinney_kernel::rules::InputKind;
use spinney_kernel::rules::report::Report;
use spinney_kernel::rules::request::Request;
use spinney_testkit::Scenario;

use crate::observed::{events, name, person, refused};

fn part(called: &str) -> Part {
    let blob = BlobRef { hash: BlobHash::digest(called.as_bytes()), bytes: 9 };
    Part::new(PartKind::Image, name("image/png"), name(called), blob).unwrap()
}

fn sized(bytes: u64) -> Result<Part, BadPart> {
    let blob = BlobRef { hash: BlobHash::digest(b"x"), bytes };
    Part::new(PartKind::File, name("text/plain"), name("x.txt"), blob)
}

#[test]
fn a_body_and_a_message_take_no_more_room_than_before_parts() {
    assert!(size_of::<Body>() <= 56, "{}", size_of::<Body>());
    assert!(size_of::<Message>() <= 80, "{}", size_of::<Message>());
    assert_eq!(size_of::<Header>(), 12);
}

#[test]
fn a_name_of_a_part_is_no_path_and_can_be_printed() {
    for good in ["a", "chart.png", "été 2024 (1).csv", &"x".repeat(128)] {
        assert!(good.parse::<PartName>().is_ok(), "{good}");
    }
    let long = "x".repeat(129);
    for bad in [
        "",
        " ",
        ".",
        "..",
        "a/b",
        "/",
        "a\\b",
        "a\0b",
        "a\nb",
        "\u{7f}",
        " a",
        "a ",
        "a\u{202e}gnp.exe",
        "\u{feff}a",
        &long,
    ] {
        assert!(bad.parse::<PartName>().is_err(), "{bad:?}");
    }
    insta::assert_snapshot!("a/b".parse::<PartName>().unwrap_err(), @r"`a/b` is not a valid name of a part: 1 to 128 bytes without `/`, `\` and characters that cannot be printed, not `.` or `..`, no space at an end");
}

#[test]
fn a_media_type_is_two_plain_words() {
    for good in ["image/png", "image/svg+xml", "application/vnd.ms-excel", "a/b"] {
        assert!(good.parse::<MediaType>().is_ok(), "{good}");
    }
    let long = format!("a/{}", "x".repeat(99));
    for bad in [
        "",
        "image",
        "/png",
        "image/",
        "image/png/x",
        "Image/png",
        "text/plain; charset=utf-8",
        "a b/c",
        "image/\0",
        &long,
    ] {
        assert!(bad.parse::<MediaType>().is_err(), "{bad:?}");
    }
    insta::assert_snapshot!("png".parse::<MediaType>().unwrap_err(), @"`png` is not a valid media type: two words of a-z, 0-9 and `.+-` with one `/` between, at most 100 characters, such as `image/png`");
}

#[test]
fn a_part_keeps_its_bounds_wherever_it_comes_from() {
    assert!(sized(1).is_ok() && sized(limit::PART_BYTES_MAX).is_ok());
    insta::assert_snapshot!(sized(0).unwrap_err(), @"`x.txt` is empty: send something, or leave it out");
    insta::assert_snapshot!(sized(limit::PART_BYTES_MAX + 1).unwrap_err(), @"`x.txt` has 8388609 bytes and the limit is 8388608: make it smaller, or pass it in pieces");
    let tiff = Part::new(PartKind::Image, name("image/tiff"), name("x.tiff"), part("a").blob().clone());
    insta::assert_snapshot!(tiff.unwrap_err(), @"`x.tiff` is not an image type that models accept (image/tiff): use one of image/png, image/jpeg, image/gif, image/webp, or send it as a file");
    // What a journal holds is checked again.
    let json = serde_json::to_string(&part("a.png")).unwrap();
    insta::assert_snapshot!(json, @r#"{"kind":"image","media":"image/png","name":"a.png","blob":{"hash":"05ddb15114285aef3e5c222ba682ca3dec83ebb74da59e25dfd22604b6d1e019","bytes":9}}"#);
    assert_eq!(serde_json::from_str::<Part>(&json).unwrap(), part("a.png"));
    for (from, to) in [
        ("9}", "0}"),
        ("9}", "8388609}"),
        ("image/png", "text/plain"),
        ("a.png", "a/png"),
        ("\"kind\"", "\"more\":1,\"kind\""),
    ] {
        let bad = json.replace(from, to);
        assert!(serde_json::from_str::<Part>(&bad).is_err(), "{bad}");
    }
    let eight: Vec<Part> = (0..5).map(|_| sized(limit::PART_BYTES_MAX).unwrap()).collect();
    assert_eq!(check_parts(eight[..4].iter()), Ok(()));
    insta::assert_snapshot!(check_parts(eight.iter()).unwrap_err(), @"the parts have 41943040 bytes together and the limit is 33554432: send them in several messages");
}

/// A body without parts is stored as before, and one with parts is read back unchanged.
#[test]
fn a_body_is_written_as_before_with_parts_at_its_end() {
    let rest = BlobRef { hash: BlobHash::digest(b"x"), bytes: 9 };
    let plain = Body { tokens: Some(TokenCount::exact(1)), ..Body::text("aöb") }.with_rest(rest, Some(1));
    let json = serde_json::to_string(&plain).unwrap();
    let hash = BlobHash::digest(b"x");
    assert_eq!(json, format!(r#"{{"text":"aöb","rest":{{"hash":"{hash}","bytes":9}},"tokens":1,"gap":1}}"#));
    assert_eq!(serde_json::to_string(&Body::text("a")).unwrap(), r#"{"text":"a"}"#);
    let mut counted = part("a.png");
    counted.count(TokenCount::exact(7));
    for body in [
        plain.clone(),
        plain.with_parts(vec![part("b.png"), counted]),
        Body::text("").with_parts(vec![part("c")]),
    ] {
        let json = serde_json::to_string(&body).unwrap();
        assert_eq!(serde_json::from_str::<Body>(&json).unwrap(), body, "{json}");
    }
    assert!(serde_json::from_str::<Body>(r#"{"text":"a","more":1}"#).is_err());
    assert_eq!(serde_json::from_str::<Body>(r#"{"text":"a","parts":[]}"#).unwrap(), Body::text("a"));
}

/// Only messages may carry images and files, no other request of a person or an agent.
#[test]
fn parts_where_only_text_belongs_are_refused() {
    let mut play = Scenario::grow("root $9.00 turns=9 / b later turns=9");
    play.run("said #1 | ask_human {\"question\":\"A?\"}");
    let body = || Body::text("x").with_parts(vec![part("a.png")]);
    let question = Question::new("Q?", OnTimeout::Default(Box::new(body())));
    let envelope = Envelope { topic: Some(name("news")), ..Default::default() };
    let all = [
        Request::Publish(Publish { body: body(), envelope }),
        Request::Answer(Answer { answer: body(), ..Answer::new(CallId(2), "") }),
        Request::Finish(Finish { agent: name("root"), result: body() }),
        Request::Ask(Ask { agent: name("root"), question, timeout_ms: None }),
    ];
    let recorded: Vec<String> =
        all.into_iter().map(|request| refused(&mut play, person(request)).to_string()).collect();
    insta::assert_snapshot!(recorded.join("\n"), @"
    the published message holds text only: leave the parts out, or send them as a message
    the answer holds text only: leave the parts out, or send them as a message
    the result holds text only: leave the parts out, or send them as a message
    the default answer holds text only: leave the parts out, or send them as a message
    ");
    let many = |count: usize| Body::text("").with_parts(vec![part("a.png"); count]);
    let nothing = Request::Send(Send::plain(name("root"), many(0)));
    assert!(matches!(refused(&mut play, person(nothing)), Refusal::TextEmpty { .. }));
    let too_many = Refusal::Part { part: BadPart::TooMany { count: 17, count_max: limit::PARTS_MAX } };
    let send = Request::Send(Send::plain(name("root"), many(17)));
    assert_eq!(refused(&mut play, person(send)), too_many);
    // Each message of a child has few; all of them together have too many.
    let given = |count| GivenMessage { category: Category::Context, body: many(count) };
    let messages = vec![given(9), given(8)];
    let spawn = Request::Spawn(Spawn { messages, ..Scenario::spawn("root", "b") });
    assert_eq!(refused(&mut play, person(spawn)), too_many);
    assert!(play.ask(Request::Send(Send::plain(name("root"), many(16)))).is_ok());
}

/// A model's images are dropped; a tool's are limited to what a message may have.
#[test]
fn reports_are_cut_to_what_a_message_may_have() {
    let mut play = Scenario::grow("root $9.00 turns=9");
    let many = Body::text("x").with_parts(vec![part("a.png"); 20]);
    let done =
        |call, asks| Report::Done(Done { asks, ..Done::new(CallId(call), 1, Used::Unknown, many.clone()) });
    let ask = ToolAsk {
        id: "1".to_owned(),
        tool: "read".to_owned(),
        args: "{}".to_owned(),
        tokens: None,
        told_tokens: None,
    };
    play.report(done(1, vec![ask]));
    play.report(done(2, Vec::new()));
    let ended = events(&play).into_iter().filter_map(|event| {
        let Event::CallEnded { outcome: Outcome::Done { body, .. }, .. } = event else { return None };
        Some(body.parts().len())
    });
    assert_eq!(ended.collect::<Vec<_>>(), [0, 16]);
}

/// The images of each message in an agent's next packet: the world's count, and the texts' count.
fn counted(play: &Scenario, agent: &str) -> (Vec<usize>, Vec<usize>) {
    let mut contexts = Contexts::new(play.world().tree());
    events(play).iter().for_each(|event| contexts.apply(event));
    let ix = play.world().agents().find(&name::<AgentId>(agent)).unwrap();
    let window = &play.world().agents().living(ix).unwrap().progress.window;
    let world = window.headers().iter().map(|header| usize::from(header.images)).collect();
    let agent = name(agent);
    let read = contexts.messages(&agent).unwrap().iter().map(|message| message.images());
    (world, read.chain(contexts.unread(&agent).map(Message::images)).collect())
}

/// P5: tool results are in request order, whichever was faster, and messages that arrive meanwhile come before: so the
/// oldest image becomes a placeholder.
#[test]
fn p5_headers_have_the_order_of_their_messages_whatever_comes_first() {
    let mut play = Scenario::grow_as("root $9.00 turns=9 / b later turns=9", |plan| {
        let turns =
            plan.roles.get_mut(&name::<RoleName>("root")).and_then(|role| role.turns.as_mut()).unwrap();
        turns.window = Some(WindowSpec { images: 2, ..WindowSpec::default() });
    });
    play.must(Request::Spawn(Spawn {
        id: Some(name("b")),
        collect: Collect::Detached,
        ..Scenario::spawn("root", "b")
    }));
    let fact = GivenMessage {
        category: Category::Context,
        body: Body::text("A fact.").with_parts(vec![part("fact.png")]),
    };
    let envelope = Envelope { category: fact.category, ..Default::default() };
    play.must(Request::Send(Send { envelope, ..Send::plain(name("b"), fact.body) }));
    play.run("said #1 | read {} | read {} | read {}");
    let calls: Vec<CallId> = play.world().calls().all().map(|(id, _)| id).filter(|id| id.0 > 2).collect();
    let [first, second, third] = calls.as_slice() else { panic!("{calls:?}") };
    let done = |play: &mut Scenario, call: CallId, images: usize| {
        let body =
            Body::text("x").with_parts((0..images).map(|nth| part(&format!("{}-{nth}", call.0))).collect());
        play.input(InputKind::Report(Report::Done(Done::new(call, 1, Used::Unknown, body)))).unwrap();
    };
    done(&mut play, *third, 3);
    let (world, texts) = counted(&play, "root");
    assert_eq!((world.as_slice(), texts.as_slice()), (&[0, 0, 3][..], &[0, 0, 3][..]));
    play.must(Request::Broadcast(Broadcast {
        from: name("b"),
        to: vec![name("root")],
        categories: vec![Category::Context],
    }));
    done(&mut play, *first, 1);
    let (world, texts) = counted(&play, "root");
    assert_eq!((world.as_slice(), texts.as_slice()), (&[0, 0, 1, 3, 1][..], &[0, 0, 1, 3, 1][..]));
    done(&mut play, *second, 0);
    // In the next call the two newest of five images are shown: the last of the third tool, and that of the message.
    let (world, texts) = counted(&play, "root");
    assert_eq!((world.as_slice(), texts.as_slice()), (&[0, 0, 0, 0, 1, 1][..], &[0, 0, 0, 0, 1, 1][..]));
}

/// A message with images in a window: its total tokens, and those of each image.
fn any_message() -> impl Strategy<Value = (u64, usize, Vec<u32>)> {
    let images = proptest::collection::vec(0_u32..400, 0..4);
    (1_u64..60, 1_usize..4, images)
}

proptest! {
    /// P5: never more images than allowed are shown, they are the newest, each that is dropped frees its tokens, and a
    /// placeholder stays one.
    #[test]
    fn p5_random_images_keep_to_their_limit_and_the_newest_stay(
        messages in proptest::collection::vec(any_message(), 1..40),
        images_max in 0_u32..7,
        size in prop_oneof![Just(u64::MAX), 600_u64..4_000],
    ) {
        let bounds = Bounds { size, preset: Preset::Tools, images_max, compact: Compact::Count, thread: None };
        let mut window = Window::new(vec![Header::new(TokenCount::exact(40), Category::System, Tie::Free)], 0);
        for (words, category, images) in messages {
            let tokens = words + images.iter().copied().map(u64::from).sum::<u64>();
            window.push_with(Header::new(tokens.into(), Category::ALL[category], Tie::Free), &images);
            let before = window.clone();
            let Ok(cut) = trim(&window, &bounds) else { return Ok(()) };
            window.read();
            let Some(cut) = cut else {
                prop_assert!(window.images() <= images_max as usize);
                continue
            };
            window.cut(&cut);
            prop_assert!(window.images() <= images_max as usize);
            prop_assert!(window.tokens() <= size);
            // Among the messages that stay, all images after the first shown one are shown, and as many as allowed.
            let stay: Vec<usize> = (0..before.headers().len()).filter(|place| !cut.drops(*place as u32)).collect();
            let folded = usize::from(window.headers().get(1).is_some_and(|header| header.tie == Tie::Folded));
            let had = usize::from(before.headers().get(1).is_some_and(|header| header.tie == Tie::Folded));
            let mut old: Vec<u32> = Vec::new();
            for (nth, place) in stay.iter().enumerate() {
                old.extend(before.images_at(*place));
                let now = if nth == 0 { nth } else { nth + folded - had };
                let (was, is) = (before.headers()[*place], window.headers()[now]);
                let gone = before.images_at(*place).len() - window.images_at(now).len();
                prop_assert!(before.images_at(*place).ends_with(window.images_at(now)));
                let back: u32 = before.images_at(*place)[..gone].iter().sum();
                if was.tie != Tie::Folded {
                    prop_assert_eq!(is.tokens, was.tokens - back);
                }
            }
            let shown: Vec<u32> = (0..window.headers().len()).flat_map(|place| window.images_at(place).to_vec()).collect();
            prop_assert!(old.ends_with(&shown), "{old:?} {shown:?}");
            if cut.drop.is_empty() {
                prop_assert_eq!(shown.len(), old.len().min(images_max as usize));
            }
        }
    }
}
