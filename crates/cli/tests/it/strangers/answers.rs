//! How the user allows a host or a home, and how long that lasts.

use std::fs;
use std::thread;

use super::{Outside, SECRETS};
use crate::exec::{exec, used};
use crate::test_folder::TestFolder;
use crate::upstream::{Reply, Upstream};

/// A tree that sends OpenAI's key to a server on this machine.
fn tree(stage: &TestFolder, server: &Upstream, goal: &str) -> String {
    let model = format!(
        "provider: openai_compatible, model: x, base_url: '{}', key_env: OPENAI_API_KEY, \
         price: {{ input_per_mtok_usd: 1, output_per_mtok_usd: 1 }}",
        server.url
    );
    let text = format!(
        "name: t\ngoal: {goal}\nbudget: {{ cost_usd: 1 }}\nmodels: {{ m: {{ {model} }} }}\nagents: {{ lead: {{ model: m }} }}\n"
    );
    stage.file("tree.yaml", &text)
}

/// G24: a yes at the terminal holds for this text of the file and this host.
#[test]
fn g24_an_answer_holds_for_one_text_of_a_file() {
    let (stage, server) = (TestFolder::stranger(), Upstream::new(vec![Reply::says("Done.", &[])]));
    let file = tree(&stage, &server, "Go.");
    let mut no = stage.terminal_in(&["run", &file, "--plain"], (100, 30), &SECRETS);
    no.until("Allow this for this file? [y/N]");
    no.send("n\r");
    let no = no.end();
    assert_eq!(no.code, Some(2), "{}", no.out);
    assert!(no.out.contains("Nothing was sent"), "{}", no.out);
    assert_eq!(server.asked().len(), 0);
    let mut yes = stage.terminal_in(&["run", &file, "--plain"], (100, 30), &SECRETS);
    yes.until("Allow this for this file? [y/N]");
    yes.send("y\r");
    assert_eq!(yes.end().code, Some(0));
    // From now on without a person.
    assert_eq!(stage.play_in(&["run", &file], &SECRETS).end().code, Some(0));
    assert_eq!(stage.play_in(&["doctor", &file], &SECRETS).end().code, Some(0));
    let checked = stage.play_in(&["check", &file], &SECRETS).end();
    assert!(checked.out.contains("no problems"), "{}", checked.out);
    let asked = server.asked().len();
    let file = tree(&stage, &server, "Go on.");
    let changed = stage.play_in(&["run", &file], &SECRETS).end();
    assert_eq!(changed.code, Some(2), "{}", changed.err);
    assert!(changed.err.contains("add --allow-host 127.0.0.1"), "{}", changed.err);
    assert_eq!(server.asked().len(), asked);
}

/// G24: a host that is allowed on the command line is allowed for this tree, also when it is resumed.
#[test]
fn g24_a_host_of_the_command_line_holds_for_the_tree() {
    let stage = TestFolder::stranger();
    let held = Reply::Held("HTTP/1.1 200 OK\r\n".to_owned());
    let server = Upstream::new(vec![held, Reply::says("Done.", &[])]);
    let file = tree(&stage, &server, "Go.");
    let host = server.url.trim_start_matches("http://").trim_end_matches("/v1");
    let other = stage.play_in(&["run", &file, "--allow-host", "127.0.0.1:1"], &SECRETS).end();
    assert_eq!(other.code, Some(2), "{}", other.err);
    let running = stage.play_in(&["run", &file, "--allow-host", host], &SECRETS);
    server.was_asked(1);
    running.kill();
    let resumed = stage.play_in(&["resume", "last"], &SECRETS).end();
    assert_eq!(resumed.code, Some(0), "{}", resumed.err);
}

/// G24: a base URL in the user's own environment allows its address for the key of that provider, and for nothing else.
#[test]
fn g24_a_base_url_of_the_environment_allows_its_address() {
    let (stage, server) = (TestFolder::stranger(), Upstream::new(vec![Reply::says("Done.", &[])]));
    let file = tree(&stage, &server, "Go.");
    let other_path = server.url.replace("/v1", "/v1/somebody-else");
    for (variable, url, code) in [
        ("ANTHROPIC_BASE_URL", server.url.as_str(), 2),
        ("OPENAI_BASE_URL", other_path.as_str(), 2),
        ("OPENAI_BASE_URL", server.url.as_str(), 0),
    ] {
        let ended = stage.play_in(&["run", &file], &[SECRETS[0], (variable, url)]).end();
        assert_eq!(ended.code, Some(code), "{variable} {url} {}", ended.err);
    }
    let text = fs::read_to_string(&file).unwrap().replace("OPENAI_API_KEY", "GITHUB_TOKEN");
    let file = stage.file("other.yaml", &text);
    let environment = [SECRETS[4], ("OPENAI_BASE_URL", server.url.as_str())];
    let refused = stage.play_in(&["run", &file], &environment).end();
    assert_eq!(refused.code, Some(2), "{}", refused.err);
}

/// G24: an answer covers the variables that were shown. A trial shows no inputs.
#[test]
fn g24_an_answer_covers_what_was_shown() {
    let (stage, server) = (TestFolder::stranger(), Upstream::new(vec![Reply::says("Done.", &[])]));
    let file = tree(&stage, &server, "'Read {{ inputs.repo }}.'\ninputs: { repo: { env: GITHUB_TOKEN } }");
    let mut trial = stage.terminal_in(&["doctor", &file], (100, 30), &SECRETS);
    trial.until("Allow this for this file? [y/N]");
    trial.send("y\r");
    assert_eq!(trial.end().code, Some(0));
    assert_eq!(stage.play_in(&["doctor", &file], &SECRETS).end().code, Some(0));
    let asked = server.asked().len();
    let refused = stage.play_in(&["run", &file], &SECRETS).end();
    assert_eq!(refused.code, Some(2), "{}", refused.err);
    assert!(refused.err.contains("GITHUB_TOKEN (input)"), "{}", refused.err);
    assert_eq!(server.asked().len(), asked);
    // What the command line gives is not read from the environment.
    assert_eq!(stage.play_in(&["run", &file, "--set", "repo=mine"], &SECRETS).end().code, Some(0));
}

/// One question names every host, and the refusal every option.
#[test]
fn several_hosts_are_one_question() {
    let stage = TestFolder::stranger();
    let model = |host: &str, more: &str| {
        format!(
            "{{ provider: openai, model: gpt-5, base_url: 'https://{host}/v1', price: {{ input_per_mtok_usd: 1, output_per_mtok_usd: 1 }}{more} }}"
        )
    };
    let text = format!(
        "name: t\ngoal: Go.\nbudget: {{ cost_usd: 1 }}\nmodels: {{ a: {}, b: {} }}\nagents: {{ lead: {{ model: a }} }}\n",
        model("one.example", ", fallback: [b]"),
        model("two.example", "")
    );
    let file = stage.file("tree.yaml", &text);
    let refused = stage.play_in(&["run", &file], &SECRETS).end();
    insta::assert_snapshot!(refused.err.replace(&file, "tree.yaml"), @"
    spinney: tree.yaml would send
      - OPENAI_API_KEY (key) to one.example for model `a`
      - OPENAI_API_KEY (key) to two.example for model `b`
      and you have not allowed that.
      Nothing was sent. If you trust this file and these hosts, add --allow-host one.example --allow-host two.example
    ");
}

/// Processes that make a home at the same time make one, and each of them knows it.
#[test]
fn a_home_that_several_processes_make_at_once_is_known_to_all() {
    for is_empty in [false, true] {
        let stage = TestFolder::stranger();
        if is_empty {
            fs::create_dir(stage.home()).unwrap();
        }
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let ended = stage.play_in(&["exec", "--", "true"], &SECRETS).end();
                    assert_eq!(ended.code, Some(0), "{}", ended.err);
                });
            }
        });
        let listed = fs::read_dir(stage.folder().join("user/state/spinney/homes")).unwrap().count();
        assert_eq!(listed, 1);
        let left: Vec<_> =
            fs::read_dir(stage.folder()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert!(!left.iter().any(|name| name.to_string_lossy().contains(".new-")), "{left:?}");
    }
}

/// Without a state folder everything works, and resuming needs `--trust-home` each time.
#[test]
fn without_a_state_folder_a_home_stays_foreign() {
    let stage = TestFolder::stranger();
    let server = Upstream::new(vec![used(10)]);
    fs::create_dir(stage.folder().join("user")).unwrap();
    fs::write(stage.folder().join("user/state"), "no folder").unwrap();
    let first = exec(&stage, &server, &["--budget-usd", "1"], "call 10 a\nexit 130").end();
    assert_eq!(first.code, Some(130), "{}", first.err);
    assert!(first.err.contains("could not be added to your list of homes"), "{}", first.err);
    let refused = exec(&stage, &server, &["--resume", "last"], "call 10 b").end();
    assert_eq!(refused.code, Some(2), "{}", refused.err);
    let trusted = exec(&stage, &server, &["--resume", "last", "--trust-home"], "call 10 b").end();
    assert_eq!(trusted.code, Some(0), "{}", trusted.err);
}

/// A journal whose end was removed passes every check of its own; what is remembered outside shows it.
#[test]
fn an_end_that_was_removed_fails_verification() {
    let (stage, server) = (TestFolder::stranger(), Upstream::new(vec![used(10)]));
    let (home, old) = (stage.home(), stage.folder().join("old"));
    for (options, script) in [(["--budget-usd", "1"], "one"), (["--resume", "last"], "two")] {
        let ended = exec(&stage, &server, &options, &format!("call 10 {script}\nexit 130")).end();
        assert_eq!(ended.code, Some(130), "{}", ended.err);
        if !old.exists() {
            super::homes::copy(home, &old);
        }
    }
    let verified = stage.spinney(&["replay", "last", "--verify"]);
    assert_eq!(verified.code, Some(0), "{}", verified.err);
    assert!(verified.out.contains("recorded on this machine"), "{}", verified.out);
    super::homes::restore(&super::homes::run_of(&old), &super::homes::run_of(home));
    for json in [&[][..], &["--json"]] {
        let cut = stage.spinney(&[&["replay", "last", "--verify"], json].concat());
        assert_eq!(cut.code, Some(1), "{}", cut.out);
        assert!(cut.err.contains("that were recorded on this machine"), "{}", cut.err);
    }
}

/// A home and its trees are listed for their owner only, and a tree that is removed is forgotten.
#[test]
fn what_is_remembered_is_private_and_goes_with_its_tree() {
    use std::os::unix::fs::PermissionsExt as _;
    let (stage, outside) = (TestFolder::stranger(), Outside::new());
    assert_eq!(outside.spinney(&stage, &["exec", "--", "true"]).code, Some(0));
    let homes = stage.folder().join("user/state/spinney/homes");
    let home = fs::read_dir(&homes).unwrap().next().unwrap().unwrap().path();
    let names = || -> Vec<String> {
        let entries = fs::read_dir(&home).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    };
    assert_eq!(names().len(), 2, "{:?}", names());
    for path in [stage.folder().join("user/state/spinney"), homes.clone(), home.clone()] {
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700, "{}", path.display());
    }
    for name in names() {
        assert_eq!(fs::metadata(home.join(name)).unwrap().permissions().mode() & 0o777, 0o600);
    }
    assert_eq!(stage.spinney(&["rm", "last"]).code, Some(0));
    assert_eq!(names(), ["home.json"]);
}

/// A host that was allowed for a tree stays allowed for it, also if no key goes there.
#[test]
fn an_allowed_host_is_remembered_for_a_model_without_a_key() {
    let (stage, server) =
        (TestFolder::stranger(), Upstream::new(vec![Reply::Held("HTTP/1.1 200 OK\r\n".to_owned())]));
    let model = format!(
        "provider: openai_compatible, model: x, base_url: '{}', price: {{ input_per_mtok_usd: 1, output_per_mtok_usd: 1 }}",
        server.url
    );
    let text = format!(
        "name: t\ngoal: Go.\nbudget: {{ cost_usd: 1 }}\nmodels: {{ m: {{ {model} }} }}\nagents: {{ lead: {{ model: m }} }}\n"
    );
    let file = stage.file("tree.yaml", &text);
    let running = stage.play(&["run", &file, "--allow-host", "127.0.0.1"]);
    server.was_asked(1);
    running.kill();
    let resumed = stage.play(&["resume", "last"]);
    server.was_asked(2);
    resumed.kill();
}

/// G12: a program with a key in its words is refused before anything is asked, and the key is in no error.
#[test]
fn g12_a_program_with_a_key_in_its_words_is_refused_before_a_question() {
    let (stranger, user) = (TestFolder::stranger(), TestFolder::stranger());
    assert_eq!(stranger.play_in(&["exec", "--", "true"], &SECRETS).end().code, Some(0));
    super::homes::copy(stranger.home(), user.home());
    let (_, key) = SECRETS[1];
    for trust in [&[][..], &["--trust-home"]] {
        let ended =
            user.play_in(&[&["exec", "--json"], trust, &["--", "true", key]].concat(), &SECRETS).end();
        assert_eq!(ended.code, Some(2), "{}", ended.err);
        assert!(ended.err.contains("argument 1 of the program"), "{}", ended.err);
        assert!(!ended.err.contains(key) && !ended.out.contains(key), "{} {}", ended.out, ended.err);
    }
}

/// A question shows the newest trees with all that they would do, and says how many it leaves out.
#[test]
fn a_question_shows_the_newest_trees_and_how_many_more_there_are() {
    let (stranger, user, server) =
        (TestFolder::stranger(), TestFolder::stranger(), Upstream::new(vec![used(10)]));
    for number in 0..10 {
        let budget = format!("{}", 100 + number);
        let options = ["--budget-usd", budget.as_str(), "--allow-field", "tool:x"];
        assert_eq!(exec(&stranger, &server, &options, "exit 130").end().code, Some(130));
    }
    super::homes::copy(stranger.home(), user.home());
    let asks = user.play_in(&["exec", "--", "true"], &SECRETS).end();
    assert_eq!(asks.code, Some(2), "{}", asks.err);
    assert!(
        asks.err.contains("spend up to $109.00 more") && asks.err.contains("spend up to $102.00 more"),
        "{}",
        asks.err
    );
    assert!(!asks.err.contains("spend up to $101.00 more"), "{}", asks.err);
    assert!(asks.err.contains("You will be asked about 2 more unfinished trees."), "{}", asks.err);
    assert_eq!(asks.err.matches("let it send, without a bound, tool:x").count(), 8, "{}", asks.err);
}
