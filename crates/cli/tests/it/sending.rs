//! Sending images and files with a message, whether or not a process runs the tree.

use serde_json::{Value, json};

use crate::scripts::{ASKS, BUSY};
use crate::test_folder::{Ended, TestFolder, steady};

/// The beginning of an image, and bytes that must not be shown.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\nPIXELS";

fn put(stage: &TestFolder, name: &str, bytes: &[u8]) -> String {
    let path = stage.folder().join(name);
    std::fs::write(&path, bytes).unwrap();
    path.display().to_string()
}

fn noted(ended: &Ended) -> String {
    assert_eq!((ended.code, ended.out.as_str()), (Some(0), ""), "{}", ended.err);
    steady(&ended.err)
}

fn said(stage: &TestFolder, args: &[&str]) -> String {
    let ended = stage.spinney(args);
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""), "{}", ended.out);
    ended.out
}

#[test]
fn files_are_sent_with_a_message_to_a_running_and_to_a_stopped_tree() {
    let stage = TestFolder::new();
    let (image, table) = (put(&stage, "chart.bin", PNG), put(&stage, "rows.csv", b"ROWS\n"));
    let large = put(&stage, "large.dat", &vec![7; 8 * 1024 * 1024]);
    let mut running = stage.play(&["run", &stage.tree("ask_human, hang", BUSY)]);
    running.until("asks a person (question 2)");
    let sent = stage
        .spinney(&["send", "last", "lead", "See.", "--file", &image, "--file", &table, "--file", &large]);
    insta::assert_snapshot!(noted(&sent), @"sent to `lead` with 3 files");
    let printed = running.until("gets a message");
    assert!(printed.ends_with("See. (with image chart.bin, file rows.csv, file large.dat)"), "{printed}");
    running.kill();
    let sent = stage.spinney(&["send", "last", "lead", "", "--file", &image]);
    insta::assert_snapshot!(noted(&sent), @"sent to `lead` with 1 file; continue with: spinney resume [id]");
    let shown = said(&stage, &["show", "lead"]);
    let lines: Vec<&str> =
        shown.lines().filter(|line| line.contains("[image") || line.contains("[file")).collect();
    insta::assert_snapshot!(lines.join("\n"), @"
    [image chart.bin, image/png, 14 bytes, blob 19d5b8bb81073993]
    [file rows.csv, text/csv, 5 bytes, blob 0e4610f65fba6ec0]
    [file large.dat, application/octet-stream, 8388608 bytes, blob a65735da151caa93]
    [image chart.bin, image/png, 14 bytes, blob 19d5b8bb81073993]
    ");
    let messages: Vec<Value> = said(&stage, &["show", "lead", "--json"])
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let parts = messages.iter().filter_map(|message| message["parts"].as_array()).map(Vec::len);
    assert_eq!(parts.collect::<Vec<_>>(), [3, 1]);
    assert_eq!(messages.last().unwrap()["parts"][0]["is_left_out"], json!(false));
    let window = said(&stage, &["window", "lead"]);
    assert!(window.contains(" with 2 images"), "{window}");
    let events = said(&stage, &["events", "last", "--json"]);
    assert!(
        events.contains("\"name\":\"chart.bin\"") && !events.contains("PIXELS") && !events.contains("ROWS"),
        "{events}"
    );
}

#[test]
fn what_cannot_be_sent_says_why_and_nothing_is_sent() {
    let stage = TestFolder::new();
    let mut running = stage.play(&["run", &stage.tree("ask_human, hang", BUSY)]);
    running.until("asks a person");
    let refused = |path: &str| {
        let ended = stage.spinney(&["send", "last", "lead", "See.", "--file", path]);
        assert!(ended.code != Some(0) && ended.out.is_empty(), "{ended:?}");
        ended.err.replace(&stage.folder().display().to_string(), "[folder]")
    };
    let empty = put(&stage, "empty.txt", b"");
    let huge = put(&stage, "huge.bin", &vec![0; 8 * 1024 * 1024 + 1]);
    let none = put(&stage, "none.png", b"words");
    let odd = put(&stage, "odd\\.txt", b"words");
    let missing = stage.folder().join("missing.txt").display().to_string();
    let folder = stage.folder().display().to_string();
    let printed: Vec<String> =
        [empty, huge, none, odd, missing, folder].iter().map(|path| refused(path)).collect();
    insta::assert_snapshot!(printed.concat(), @r"
    spinney: `empty.txt` is empty: send something, or leave it out
    spinney: cannot send [folder]/huge.bin: it has 8388609 bytes and the limit is 8388608: make it smaller
    spinney: cannot send [folder]/none.png: it has the extension of image/png but other contents: rename it
    spinney: cannot send [folder]/odd\.txt: rename it: `odd\.txt` is not a valid name of a part: 1 to 128 bytes without `/`, `\` and characters that cannot be printed, not `.` or `..`, no space at an end
    spinney: cannot send [folder]/missing.txt: No such file or directory (os error 2)
    spinney: cannot send [folder]: it is a folder: name a file in it
    ");
    let many = put(&stage, "a.txt", b"a");
    let mut args = vec!["send", "last", "lead", "See."];
    args.extend((0..17).flat_map(|_| ["--file", &many]));
    insta::assert_snapshot!(stage.spinney(&args).err, @"spinney: 17 parts are too many, the limit is 16: send them in several messages");
    running.kill();
    assert!(!said(&stage, &["events", "last"]).contains("gets a message"));
}

/// P5: the tree file limits how many images a packet shows, and `window` shows what became of the others.
#[test]
fn p5_a_tree_file_bounds_the_images_of_a_packet() {
    let stage = TestFolder::new();
    let image = put(&stage, "chart.png", PNG);
    let file = stage.tree("ask_human", ASKS);
    let text = std::fs::read_to_string(&file).unwrap();
    let text = text.replacen("tools: [ask_human]", "window: { images: 1 }, tools: [ask_human]", 1);
    assert!(text.contains("images: 1"), "{text}");
    std::fs::write(&file, text).unwrap();
    assert_eq!(stage.spinney(&["run", &file]).code, Some(5));
    for _ in 0..3 {
        noted(&stage.spinney(&["send", "last", "lead", "See.", "--file", &image]));
    }
    noted(&stage.spinney(&["answer", "last", "2", "blue"]));
    assert_eq!(stage.spinney(&["resume", "last"]).code, Some(0));
    let window = said(&stage, &["window", "lead"]);
    assert!(window.contains(" with 1 image\n") && window.contains(", and 2 images; last cut"), "{window}");
    let shown = said(&stage, &["show", "lead"]);
    assert_eq!(shown.matches(": left out, only newer images are shown]").count(), 2, "{shown}");
    assert_eq!(shown.matches("[image chart.png").count(), 3, "{shown}");
}
