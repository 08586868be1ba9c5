//! Untrusted input: the socket of a running home, and files that are not plain files.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixStream;
use std::process::Command;

use serde_json::json;

use crate::rewritten::into_older;
use crate::scripts::{HANGS, SAYS};
use crate::test_folder::TestFolder;

/// A reference to a blob that any tree of the home may hold.
fn reference() -> serde_json::Value {
    json!({ "hash": "ab".repeat(32), "bytes": 5 })
}

#[test]
fn a_request_may_refer_only_to_what_it_brings_along() {
    let stage = TestFolder::new();
    let mut running = stage.play(&["run", &stage.tree("", HANGS)]);
    running.until("starts");
    let listed = stage.spinney(&["ps", "--json"]).result();
    let (tree, events) = (listed["tree"].clone(), listed["events"].clone());
    let part = json!({ "kind": "file", "media": "text/plain", "name": "a.txt", "blob": reference() });
    let requests = [
        json!({ "verb": "send", "to": "lead", "body": { "text": "x", "rest": reference() } }),
        json!({ "verb": "publish", "body": { "text": "x", "rest": reference() }, "envelope": { "topic": "news" } }),
        json!({ "verb": "publish", "body": { "text": "x", "parts": [part] }, "envelope": { "topic": "news" } }),
        json!({ "verb": "answer", "question": 1, "answer": { "text": "x", "rest": reference() } }),
    ];
    for request in requests {
        let mut stream = UnixStream::connect(stage.home().join("control")).unwrap();
        writeln!(
            stream,
            "{}",
            json!({ "version": 2, "body": { "kind": "apply", "tree": tree, "request": request } })
        )
        .unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        assert!(reply.contains(r#""kind":"refused""#), "{request} {reply}");
        assert!(reply.contains("may only refer to images and files of its message"), "{request} {reply}");
    }
    assert_eq!(stage.spinney(&["ps", "--json"]).result()["events"], events);
    running.kill();
}

/// A request line names its version. Another version is refused by that number, whatever else the line contains, and so
/// is a line without a version.
#[test]
fn a_request_of_another_version_is_refused_by_its_number() {
    let stage = TestFolder::new();
    let mut running = stage.play(&["run", &stage.tree("", HANGS)]);
    running.until("starts");
    let tree = stage.spinney(&["ps", "--json"]).result()["tree"].clone();
    let reply = |line: serde_json::Value| {
        let mut stream = UnixStream::connect(stage.home().join("control")).unwrap();
        writeln!(stream, "{line}").unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        serde_json::from_str::<serde_json::Value>(&reply).unwrap()
    };
    let ask = json!({ "kind": "apply", "tree": tree, "request": { "verb": "pause", "agent": "lead" } });
    let newer = reply(json!({ "version": 3, "body": ask, "more": true }));
    assert_eq!(
        newer["body"]["message"],
        "this process uses request version 2 and the other one version 3: use the same release of Spinney for both"
    );
    let bare = reply(ask.clone());
    assert!(bare["body"]["message"].as_str().unwrap().contains("missing field `version`"), "{bare}");
    let ours = reply(json!({ "version": 2, "body": ask }));
    let done = json!({ "kind": "done", "continues": "now", "reply": { "reply": "accepted" } });
    assert_eq!(ours, json!({ "version": 2, "body": done }));
    running.kill();
}

/// Clients that connect and send nothing, or only the start of a request, do not block others.
#[test]
fn idle_connections_do_not_delay_a_request() {
    let stage = TestFolder::new();
    let mut running = stage.play(&["run", &stage.tree("", HANGS)]);
    running.until("starts");
    let connect = |half: bool| {
        let mut stream = UnixStream::connect(stage.home().join("control")).unwrap();
        if half {
            let _ = stream.write_all(br#"{"kind":"#);
        }
        stream
    };
    let mut idle: Vec<UnixStream> = (0..100).map(|number| connect(number % 2 == 0)).collect();
    let paused = stage.spinney(&["pause", "last"]);
    assert_eq!(paused.code, Some(0), "{}", paused.err);
    // It did not wait for their timeout: the last one is still connected.
    let last = idle.last_mut().unwrap();
    last.set_nonblocking(true).unwrap();
    let read = last.read(&mut [0]).map_err(|error| error.kind());
    assert_eq!(read, Err(std::io::ErrorKind::WouldBlock));
    assert_eq!(stage.spinney(&["cancel", "last"]).code, Some(0));
    assert_eq!(running.end().code, Some(4));
}

fn pipe(stage: &TestFolder, name: &str) -> String {
    let path = stage.folder().join(name);
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    path.display().to_string()
}

/// Reading a pipe would block until its other end is opened.
#[test]
fn pipes_and_devices_are_refused_without_waiting() {
    let stage = TestFolder::new();
    let tree = stage.tree("", SAYS);
    assert_eq!(stage.spinney(&["run", &tree]).code, Some(0));
    let refused = |args: &[&str]| {
        let refused = stage.spinney(args);
        assert_eq!(refused.code, Some(2), "{args:?} {}", refused.err);
        assert!(refused.err.contains("it is not a regular file"), "{args:?} {}", refused.err);
    };
    refused(&["run", &pipe(&stage, "pipe.yaml")]);
    let device = stage.folder().join("device.yaml");
    symlink("/dev/zero", &device).unwrap();
    refused(&["run", device.to_str().unwrap()]);
    refused(&["send", "last", "lead", "look", "--file", &pipe(&stage, "sent.txt")]);
    refused(&["send", "last", "lead", "look", "--file", "/dev/zero"]);
    fs::remove_file(stage.folder().join("tree.script.yaml")).unwrap();
    pipe(&stage, "tree.script.yaml");
    refused(&["run", &tree]);
    refused(&["run", &tree, "--allow-outside"]);
}

/// Files of a home of an older release that were replaced by something else, or by a link.
#[test]
fn a_kept_file_that_is_not_a_plain_file_is_refused_without_blocking() {
    let stage = TestFolder::new();
    let mut running = stage.play(&["run", &stage.tree("", HANGS)]);
    running.until("starts");
    running.kill();
    into_older(&stage);
    let id = stage.spinney(&["ps", "--json"]).result()["tree"].as_str().unwrap().to_owned();
    let script = stage.home().join("trees").join(id).join("script-1.yaml");
    let copy = stage.folder().join("copy.yaml");
    fs::rename(&script, &copy).unwrap();
    symlink(&copy, &script).unwrap();
    let linked = stage.spinney(&["resume", "last"]);
    assert_eq!(linked.code, Some(2), "{}", linked.err);
    assert!(linked.err.contains("it is a link"), "{}", linked.err);
    fs::remove_file(&script).unwrap();
    pipe(&stage, script.strip_prefix(stage.folder()).unwrap().to_str().unwrap());
    let piped = stage.spinney(&["resume", "last"]);
    assert_eq!(piped.code, Some(2), "{}", piped.err);
    assert!(piped.err.contains("it is not a regular file"), "{}", piped.err);
}

/// A tree file from elsewhere must not choose which files of this machine are read.
#[test]
fn a_script_lies_below_the_folder_of_its_tree_file() {
    let stage = TestFolder::new();
    let folder = stage.folder().join("project");
    fs::create_dir_all(folder.join("scripts")).unwrap();
    let outside = stage.file("outside.yaml", SAYS);
    fs::write(folder.join("scripts/inside.yaml"), SAYS).unwrap();
    symlink(&outside, folder.join("link.yaml")).unwrap();
    symlink("scripts/inside.yaml", folder.join("near.yaml")).unwrap();
    let run = |script: &str, more: &[&str]| {
        let text = format!(
            "name: test\ngoal: Try it.\nmodels:\n  fast: {{ provider: scripted, script: {script} }}\nagents:\n  lead: {{ model: fast }}\n"
        );
        stage.file("project/tree.yaml", &text);
        stage.spinney(&[&["run", "project/tree.yaml"], more].concat())
    };
    for script in ["../outside.yaml", outside.as_str(), "link.yaml", "scripts/../../outside.yaml"] {
        let refused = run(script, &[]);
        assert_eq!(refused.code, Some(2), "{script} {}", refused.err);
        assert!(refused.err.contains("project/tree.yaml:4:"), "{script} {}", refused.err);
        assert!(refused.err.contains("or use --allow-outside"), "{script} {}", refused.err);
        assert!(!stage.home().exists(), "{script}");
    }
    for script in ["scripts/inside.yaml", "near.yaml", "./scripts/inside.yaml"] {
        assert_eq!(run(script, &[]).code, Some(0), "{script}");
    }
    for script in ["../outside.yaml", outside.as_str(), "link.yaml"] {
        assert_eq!(run(script, &["--allow-outside"]).code, Some(0), "{script}");
    }
}
