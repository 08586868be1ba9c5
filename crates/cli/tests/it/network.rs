//! Hosts in whole trees: a file that names one is asked about, and every view shows it.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

use serde_json::{Value, json};

use crate::test_folder::TestFolder;

const HOSTS: &str = "[docs.example.org, '*.example.net:8443']";
/// Requests that a test does not take.
const REQUESTS_MAX: usize = 64;

fn tree(stage: &TestFolder) -> String {
    let script = "rules:\n  - { say: done }\n";
    let tree = stage.tree("read_file", script);
    let text = fs::read_to_string(&tree).unwrap();
    let with = text.replacen("tools: [read_file]", &format!("tools: [read_file], network: {HOSTS}"), 1);
    assert_ne!(text, with, "{text}");
    fs::write(&tree, with).unwrap();
    tree
}

/// G26 (what a file says): a file alone connects to nothing, and the refusal shows every host with its remedy.
#[test]
fn g26_hosts_of_a_file_are_asked_for_first() {
    let stage = TestFolder::new();
    let tree = tree(&stage);
    let refused = stage.spinney(&["run", &tree]);
    assert_ne!(refused.code, Some(0));
    for said in [
        "let tools of `lead` connect to *.example.net:8443",
        "let tools of `lead` connect to docs.example.org",
        "--allow-host docs.example.org --allow-host '*.example.net:8443'",
    ] {
        assert!(refused.err.contains(said), "{said}: {}", refused.err);
    }
    let one = stage.spinney(&["run", &tree, "--allow-host", "docs.example.org"]);
    assert_ne!(one.code, Some(0));
    assert!(!one.err.contains("docs.example.org"), "{}", one.err);
    for allowed in ["*.example.net", "*.example.net:8443"] {
        let run = stage.spinney(&["run", &tree, "--allow-host", "docs.example.org", "--allow-host", allowed]);
        assert_eq!(run.code, Some(0), "{}", run.err);
    }
    let prompt = stage.spinney(&["show", "lead"]).out;
    assert!(prompt.contains("- *.example.net:8443") && prompt.contains("- docs.example.org"), "{prompt}");
    assert_eq!(stage.spinney(&["replay", "last", "--verify"]).code, Some(0));
}

/// What the configuration allows, and what `check` and `--explain` show.
#[test]
fn hosts_are_allowed_in_the_configuration_and_shown() {
    let stage = TestFolder::new();
    let tree = tree(&stage);
    let check = stage.spinney(&["check", &tree]);
    assert!(check.out.contains("connects to: docs.example.org, *.example.net:8443"), "{}", check.out);
    assert!(format!("{}{}", check.out, check.err).contains("--allow-host docs.example.org"), "{}", check.err);
    let explained = stage.spinney(&["run", &tree, "--explain"]);
    assert!(explained.out.contains("docs.example.org"), "{}", explained.out);
    for host in ["docs.example.org:80", "docs.example.org:443"] {
        assert_eq!(stage.spinney(&["config", "add", "allow_hosts", host]).code, Some(0));
        assert_ne!(stage.spinney(&["run", &tree]).code, Some(0), "{host} is one of two ports");
    }
    let config = ["config", "add", "allow_hosts", "docs.example.org", "*.example.net"];
    assert_eq!(stage.spinney(&config).code, Some(0));
    let run = stage.spinney(&["run", &tree]);
    assert_eq!(run.code, Some(0), "{}", run.err);
}

/// A server that tells the path of each request. It answers none for `/held` the first time.
fn site() -> (u16, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (paths, requested) = sync_channel(REQUESTS_MAX);
    thread::spawn(move || {
        let mut held = Vec::new();
        for client in listener.incoming() {
            let mut client = client.unwrap();
            let mut bytes = [0; 4_096];
            let count = client.read(&mut bytes).unwrap();
            let request = String::from_utf8_lossy(&bytes[..count]).into_owned();
            let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
            let is_held = path == "/held" && held.is_empty();
            if paths.send(path).is_err() {
                return;
            }
            if is_held {
                held.push(client);
            } else {
                let page = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 4\r\nConnection: close\r\n\r\noaks";
                client.write_all(page.as_bytes()).unwrap();
            }
        }
    });
    (port, requested)
}

/// A tree whose agent fetches these addresses, one after another.
fn fetching(stage: &TestFolder, approvals: &str, urls: &[String]) -> String {
    let call = |(turn, url): (usize, &String)| {
        format!(
            "  - {{ when: {{ turn: {} }}, call: [ {{ tool: fetch, args: {{ url: '{url}' }} }} ] }}\n",
            turn + 1
        )
    };
    let calls: String = urls.iter().enumerate().map(call).collect();
    let tree = stage.tree("fetch", &format!("rules:\n{calls}  - {{ say: done }}\n"));
    let text = fs::read_to_string(&tree).unwrap();
    fs::write(&tree, text.replace("tools: [fetch]", &format!("tools: [fetch]{approvals}"))).unwrap();
    tree
}

const ASK: &str = ", approvals: { network: ask }";

/// G26 (asking), G15: a person sees the host and the port, and what was allowed survives a kill: the call that it was
/// allowed for is made again with it, and what is remembered needs no other question.
#[test]
fn g26_a_person_allows_a_host_and_that_survives_a_kill() {
    let (stage, (port, requested)) = (TestFolder::new(), site());
    let urls = ["/held", "/again"].map(|path| format!("http://127.0.0.1:{port}{path}"));
    let run = stage.spinney(&["run", &fetching(&stage, ASK, &urls)]);
    assert_eq!(run.code, Some(5), "{}", run.err);
    for said in [
        format!(
            "lead asks: May `lead` connect to `127.0.0.1:{port}` and call `fetch` with this? Answer yes, or say why not."
        ),
        format!("!! `127.0.0.1:{port}` IS THIS MACHINE"),
        format!(
            "`always for this agent` or `always for this tree` allows calls of `fetch` to connect to `127.0.0.1:{port}`, from now on\n"
        ),
    ] {
        assert!(run.out.contains(&said), "{said}: {}", run.out);
    }
    let question = stage.spinney(&["questions", "--json"]).result();
    let host = format!("127.0.0.1:{port}");
    assert_eq!(question["approves"]["hosts"], json!([host]));
    assert_eq!(question["approves"]["always"], json!(host));
    let wider = stage.spinney(&["answer", "last", "always for this tree: 127.0.0.1"]);
    assert!(wider.code != Some(0) && wider.err.contains("is not within"), "{}", wider.err);
    assert!(requested.try_recv().is_err(), "nothing is connected to before the answer");
    let answered = stage.spinney(&["answer", "last", "always for this agent"]);
    assert_eq!(answered.code, Some(0), "{}", answered.err);
    let resumed = stage.play(&["resume", "last"]);
    assert_eq!(requested.recv().unwrap(), "/held");
    resumed.kill();
    let resumed = stage.spinney(&["resume", "last"]);
    assert_eq!(resumed.code, Some(0), "{} {}", resumed.out, resumed.err);
    assert_eq!([requested.recv().unwrap(), requested.recv().unwrap()], ["/held", "/again"]);
    let events = stage.spinney(&["events", "last"]).out;
    let remembered = format!("may call `fetch` to connect to `127.0.0.1:{port}` from now on, for this agent");
    assert!(events.contains(&remembered), "{events}");
    let calls = stage.spinney(&["events", "last", "--json"]).json();
    let had = |call: &&Value| call["work"]["network"] == json!({ "hosts": [host] });
    assert_eq!(calls.iter().filter(|event| event["type"] == "call_asked").filter(had).count(), 2);
    let verified = stage.spinney(&["replay", "last", "--verify"]);
    assert_eq!(verified.code, Some(0), "{}", verified.err);
}

/// G26 (asking): the agent reads a no, and nothing is connected to. G26 (journal): a connection as `events --json` has it.
#[test]
fn g26_a_no_is_what_the_agent_reads_and_each_connection_is_in_the_events() {
    let (stage, (port, requested)) = (TestFolder::new(), site());
    let urls = ["/a", "/b"].map(|path| format!("http://127.0.0.1:{port}{path}"));
    let run = stage.spinney(&["run", &fetching(&stage, ASK, &urls)]);
    assert_eq!(run.code, Some(5), "{}", run.err);
    assert_eq!(stage.spinney(&["answer", "last", "not this machine"]).code, Some(0));
    let resumed = stage.spinney(&["resume", "last"]);
    assert_eq!(resumed.code, Some(5), "the second call is asked about again: {}", resumed.err);
    let said =
        "a person refused your call of `fetch`: not this machine; do without it, or ask for something else";
    let events = stage.spinney(&["events", "last"]).out;
    assert!(events.contains(said), "{events}");
    assert_eq!(stage.spinney(&["answer", "last", "yes"]).code, Some(0));
    assert_eq!(stage.spinney(&["resume", "last"]).code, Some(0));
    assert_eq!(requested.try_iter().collect::<Vec<_>>(), ["/b"]);
    let events = stage.spinney(&["events", "last", "--json"]).json();
    let ended = events.iter().find(|event| event["type"] == "connection_ended").unwrap();
    let mut shown = ended.clone();
    for key in ["tree", "thread", "at", "seq", "start"] {
        shown[key] = json!(0);
    }
    for key in ["port", "started", "duration_ms", "sent_bytes"] {
        assert!(shown["connection"][key].is_u64(), "{ended}");
        shown["connection"][key] = json!(0);
    }
    insta::assert_snapshot!(shown.to_string(), @r#"{"type":"connection_ended","tree":0,"seq":0,"at":0,"path":"lead","topic":"tool.call","thread":0,"correlation":"call-5","start":0,"agent":"lead","call":5,"connection":{"host":"127.0.0.1","port":0,"address":"127.0.0.1","started":0,"duration_ms":0,"sent_bytes":0,"received_bytes":4,"end":"closed"}}"#);
}

/// `check` warns of a `fetch` that reaches nothing, and says what an agent may ask for.
#[test]
fn check_warns_of_a_fetch_without_hosts_and_shows_who_may_ask() {
    let stage = TestFolder::new();
    let check = |more: &str| {
        let checked = stage.spinney(&["check", &fetching(&stage, more, &[])]);
        format!("{}{}", checked.out, checked.err)
    };
    let warning = "`lead` has `fetch` but no host to fetch from";
    assert!(check("").contains(warning), "{}", check(""));
    assert!(check("").contains("list hosts in its `network`, or write `approvals: { network: ask }`"));
    for (more, line) in [(ASK, "asks a person for other hosts"), (", network: [a.org]", "connects to: a.org")]
    {
        let checked = check(more);
        assert!(!checked.contains(warning) && checked.contains(line), "{checked}");
    }
    let allow = check(", approvals: { network: allow }");
    assert!(allow.contains("hosts are not allowed without a question here"), "{allow}");
    let tree = stage.tree("network", "rules: [ { say: done } ]\ntools: { network: { say: ok } }\n");
    let text = fs::read_to_string(&tree).unwrap();
    fs::write(&tree, text.replace("tools: [network]", &format!("tools: [network]{ASK}"))).unwrap();
    let both = stage.spinney(&["check", &tree]);
    let both = format!("{}{}", both.out, both.err);
    assert!(both.contains("`network` is about hosts here, and there is a tool of that name"), "{both}");
}

/// X6 (network): an agent whose parent may not ask for hosts cannot be started, and `check` says what to write.
#[test]
fn x6_check_names_a_parent_that_may_not_ask() {
    let stage = TestFolder::new();
    let tree = stage.tree("spawn_agent", "rules: [ { say: done } ]\n");
    let text = fs::read_to_string(&tree).unwrap();
    let reader = format!("entry: lead\n{text}  reader: {{ model: fast, tools: []{ASK} }}\n");
    fs::write(&tree, reader).unwrap();
    let checked = stage.spinney(&["check", &tree]);
    let said = "`reader` can never be started: `lead` may not ask for hosts";
    assert!(format!("{}{}", checked.out, checked.err).contains(said), "{} {}", checked.out, checked.err);
}

/// A server that counts its connections. It redirects `/away` to the other one.
fn counting_site(away: u16) -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    thread::spawn(move || {
        for client in listener.incoming() {
            counted.fetch_add(1, Ordering::SeqCst);
            let mut client = client.unwrap();
            let mut bytes = [0; 4_096];
            let read = client.read(&mut bytes).unwrap_or_default();
            let is_away = String::from_utf8_lossy(&bytes[..read]).contains("/away");
            let head = if is_away {
                format!("302 Found\r\nLocation: http://127.0.0.1:{away}/")
            } else {
                "200 OK\r\nContent-Type: text/plain".to_owned()
            };
            let page = format!("HTTP/1.1 {head}\r\nContent-Length: 4\r\nConnection: close\r\n\r\noaks");
            let _ = client.write_all(page.as_bytes());
        }
    });
    (port, count)
}

/// Tries to reach each of these through the proxy, by a tunnel and without either, and says what was.
fn tries(hosts: &[String], port: u16) -> String {
    let hosts = hosts.join(" ");
    format!(
        r#"ask() {{ exec 3<>/dev/tcp/127.0.0.1/61080; printf "$1" >&3; head -c 4000 <&3; exec 3>&-; }}
said() {{ grep -q oaks && echo "$1 reached" || echo "$1 stopped"; }}
for host in {hosts}; do
ask "GET http://$host/ HTTP/1.1\r\nHost: $host\r\n\r\n" | said "$host"
ask "CONNECT $host HTTP/1.1\r\nHost: $host\r\n\r\nGET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" | said "tunnel $host"
done
(exec 4<>/dev/tcp/127.0.0.1/{port}) 2> /dev/null && echo direct reached || echo direct stopped
(exec 4<>/dev/udp/127.0.0.1/53 && printf x >&4 && printf x >&4) 2> /dev/null && echo udp reached || echo udp stopped"#
    )
}

/// G26, X6: an agent, its child and its grandchild reach exactly the hosts and ports that each was granted, by commands and
/// by `fetch`: by no other address, name, port or redirect, not through a tunnel, and not past the proxy. A child whose file
/// grants more than its parent has is not started. Names that change are tried by `attempts ways`, with its own resolver.
#[test]
fn g26_each_agent_of_a_tree_reaches_its_hosts_and_nothing_else() {
    let stage = TestFolder::new();
    let (never, never_count) = counting_site(0);
    let (of_lead, _) = counting_site(never);
    let (of_all, _) = counting_site(never);
    let host = |port: u16| format!("127.0.0.1:{port}");
    let all = [
        host(of_all),
        // Another way to write the same address.
        format!("[::ffff:127.0.0.1]:{of_all}"),
        host(of_lead),
        host(never),
        format!("localhost:{of_all}"),
        format!("[::ffff:127.0.0.1]:{never}"),
        format!("127.1:{of_all}"),
        format!("0.0.0.0:{of_all}"),
    ];
    let line = tries(&all, of_all);
    let run = json!({ "tool": "run_command", "args": { "command": ["bash", "-c", line] } });
    let fetch = |url: String| json!({ "tool": "fetch", "args": { "url": url } });
    let away = fetch(format!("http://{}/away", host(of_all)));
    let past = fetch(format!("http://{}/", host(never)));
    let spawn = |role: &str| json!({ "tool": "spawn_agent", "args": { "agent": role, "goal": "Try it." } });
    let mut rules = String::from("rules:\n");
    for (agent, calls) in [
        ("lead", vec![run.clone(), away.clone(), past.clone(), spawn("child")]),
        ("child", vec![run.clone(), away.clone(), past.clone(), spawn("wide"), spawn("leaf")]),
        ("leaf", vec![run, away, past]),
    ] {
        for (turn, call) in (1..).zip(calls) {
            rules += &format!("  - {{ when: {{ agent: {agent}, turn: {turn} }}, call: [ {call} ] }}\n");
        }
    }
    stage.file("tree.script.yaml", &(rules + "  - { say: done }\n"));
    let tools = "[run_command, fetch, spawn_agent]";
    let tree = format!(
        "name: test\ngoal: Try it.\nentry: lead\nmodels: {{ fast: {{ provider: scripted, script: tree.script.yaml }} }}\nagents:\n  \
         lead: {{ model: fast, tools: {tools}, network: ['{0}', '{1}'] }}\n  \
         child: {{ model: fast, tools: {tools}, network: ['{0}'] }}\n  \
         leaf: {{ model: fast, tools: {tools}, network: ['{0}'] }}\n  \
         wide: {{ model: fast, tools: {tools}, network: ['{1}'] }}\n",
        host(of_all),
        host(of_lead)
    );
    let tree = stage.file("tree.yaml", &tree);
    let ended = stage.spinney(&["run", &tree, "--allow-host", &host(of_all), "--allow-host", &host(of_lead)]);
    assert_eq!(ended.code, Some(0), "{} {}", ended.out, ended.err);
    let events = stage.spinney(&["events", "last", "--json"]).json();
    let mut tried = 0;
    for path in ["lead", "lead/child", "lead/child/leaf"] {
        let here = |event: &&Value| event["path"].as_str().is_some_and(|at| is_agent(at, path));
        let texts: Vec<String> = events
            .iter()
            .filter(here)
            .filter(|event| event["type"] == "call_ended" && event["topic"] == "tool.call")
            .map(ToString::to_string)
            .collect();
        let all_texts = texts.join("\n");
        let reached: Vec<&str> = all
            .iter()
            .map(String::as_str)
            .filter(|host| all_texts.contains(&format!("{host} reached")))
            .collect();
        let granted = if path == "lead" { &all[..3] } else { &all[..2] };
        assert_eq!(reached, granted, "{path}: {all_texts}");
        let tunnels = all.iter().map(|host| format!("tunnel {host}"));
        for stopped in tunnels.chain(["direct", "udp"].map(str::to_owned)) {
            assert!(all_texts.contains(&format!("{stopped} stopped")), "{path} {stopped}: {all_texts}");
            assert!(!all_texts.contains(&format!("{stopped} reached")), "{path} {stopped}: {all_texts}");
        }
        let refused = format!("the connection to {} was refused", host(never));
        assert!(texts.iter().filter(|text| text.contains(&refused)).count() >= 2, "{path}: {all_texts}");
        tried += texts.len();
    }
    assert!(tried >= 9, "{tried}");
    assert_eq!(never_count.load(Ordering::SeqCst), 0);
    let told = stage.spinney(&["events", "last"]).out;
    assert!(told.contains(&format!("`{}`", host(of_lead))), "{told}");
    assert!(
        !events
            .iter()
            .any(|event| event["type"] == "agent_spawned" && event.to_string().contains("\"wide\""))
    );
}

/// Whether a path is the agent at this one, whose last part may have a number.
fn is_agent(at: &str, path: &str) -> bool {
    let (at, path): (Vec<&str>, Vec<&str>) = (at.split('/').collect(), path.split('/').collect());
    at.len() == path.len() && at.iter().zip(path).all(|(at, name)| at.starts_with(name))
}
