//! pip, npm and git in a box (`spinney exec --box`), through a host that was granted by its name. The host is a server of
//! this test, which has a package of each kind and a repository.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use serde_json::json;

use super::peer::installed;
use crate::test_folder::{Ended, TestFolder};

/// Files that are served, at a free port of this machine.
struct Mirror {
    port: u16,
    requests: Arc<AtomicUsize>,
}

impl Mirror {
    fn new(files: PathBuf) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::<AtomicUsize>::default();
        let count = Arc::clone(&requests);
        thread::spawn(move || {
            for client in listener.incoming() {
                count.fetch_add(1, Ordering::SeqCst);
                let files = files.clone();
                thread::spawn(move || answer(client.unwrap(), &files));
            }
        });
        Self { port, requests }
    }
}

fn answer(mut client: TcpStream, files: &Path) {
    let mut head = vec![0; 16_384];
    let count = client.read(&mut head).unwrap_or_default();
    let head = String::from_utf8_lossy(&head[..count]).into_owned();
    let target = head.split(' ').nth(1).unwrap_or_default();
    let path = target.split('?').next().unwrap_or_default().trim_start_matches('/');
    let file = files.join(path);
    let file = if file.is_dir() { file.join("index.html") } else { file };
    let kind = if file.extension().is_some_and(|kind| kind == "html") { "text/html" } else { "text/plain" };
    let (status, body) = match fs::read(&file) {
        Ok(bytes) => ("200 OK", bytes),
        Err(_) => ("404 Not Found", Vec::new()),
    };
    let length = body.len();
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    let _ = client.write_all(answer.as_bytes()).and_then(|()| client.write_all(&body));
}

fn run(program: impl AsRef<Path>, words: &[&str], folder: &Path) -> String {
    let program = program.as_ref();
    let ended = Command::new(program).args(words).current_dir(folder).output().unwrap();
    assert!(ended.status.success(), "{program:?} {words:?}: {}", String::from_utf8_lossy(&ended.stderr));
    String::from_utf8(ended.stdout).unwrap().trim().to_owned()
}

const WHEEL: &str = r"
import zipfile
with zipfile.ZipFile('simple/wood/wood-1.0-py3-none-any.whl', 'w') as wheel:
    wheel.writestr('wood.py', 'kind = \'oak\'\n')
    wheel.writestr('wood-1.0.dist-info/METADATA', 'Metadata-Version: 2.1\nName: wood\nVersion: 1.0\n')
    wheel.writestr('wood-1.0.dist-info/WHEEL', 'Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n')
    wheel.writestr('wood-1.0.dist-info/RECORD', '')
";

/// What pip, npm and git ask for, apart from what names the port.
fn packages(files: &Path, python: &Path) {
    fs::create_dir_all(files.join("simple/wood")).unwrap();
    fs::create_dir_all(files.join("package")).unwrap();
    run(python, &["-c", WHEEL], files);
    let link = r#"<a href="wood-1.0-py3-none-any.whl">wood-1.0-py3-none-any.whl</a>"#;
    fs::write(files.join("simple/wood/index.html"), link).unwrap();
    let package = json!({ "name": "wood", "version": "1.0.0" });
    fs::write(files.join("package/package.json"), package.to_string()).unwrap();
    run("tar", &["-czf", "wood-1.0.0.tgz", "package"], files);
    run("git", &["init", "-q", "source"], files);
    let source = files.join("source");
    fs::write(source.join("kind.txt"), "oak\n").unwrap();
    run("git", &["add", "."], &source);
    let commit = ["-c", "user.name=Test", "-c", "user.email=test@example.org", "commit", "-q", "-m", "Oak."];
    run("git", &commit, &source);
    run("git", &["clone", "-q", "--bare", "source", "wood.git"], files);
    run("git", &["update-server-info"], &files.join("wood.git"));
}

fn add_npm_package(files: &Path, port: u16) {
    let tarball = format!("http://localhost:{port}/wood-1.0.0.tgz");
    let version = json!({ "name": "wood", "version": "1.0.0", "dist": { "tarball": tarball } });
    let package =
        json!({ "name": "wood", "dist-tags": { "latest": "1.0.0" }, "versions": { "1.0.0": version } });
    fs::write(files.join("wood"), package.to_string()).unwrap();
}

/// X6, G26: what people install packages with works in a box through a granted host, and reaches no other.
#[test]
fn x6_pip_npm_and_git_work_through_a_granted_host() {
    let (stage, installed) = (TestFolder::new(), installed());
    let python = installed.join("python/bin/python");
    let (files, project) = (stage.folder().join("files"), stage.folder().join("home/project"));
    fs::create_dir_all(&files).unwrap();
    fs::create_dir_all(&project).unwrap();
    packages(&files, &python);
    let (mirror, other) = (Mirror::new(files.clone()), Mirror::new(files.clone()));
    add_npm_package(&files, mirror.port);
    let node = fs::canonicalize(installed.join("node")).unwrap();
    let npm = node.parent().and_then(Path::parent).unwrap().join("lib/node_modules/npm/bin/npm-cli.js");
    // The base of a virtual environment is elsewhere.
    let base = run(&python, &["-c", "import sys; print(sys.base_prefix)"], &files);
    let (url, elsewhere) = (format!("http://localhost:{}", mirror.port), other.port);
    let script = format!(
        "set -e\n\
         {python} -m pip install -q --disable-pip-version-check --no-cache-dir --target site --index-url {url}/simple wood\n\
         {node} {npm} install --silent --no-audit --no-fund --registry {url}/ --cache ./npm wood\n\
         git clone -q {url}/wood.git clone\n\
         git clone -q http://localhost:{elsewhere}/wood.git other && echo reached || echo refused\n",
        python = python.display(),
        node = node.display(),
        npm = npm.display(),
    );
    let mut command = Command::new(env!("CARGO_BIN_EXE_spinney"));
    command.args([
        "exec",
        "--box",
        "--budget-usd",
        "1",
        "--allow-host",
        &format!("localhost:{}", mirror.port),
    ]);
    command.args(["--read", &installed.display().to_string(), "--read", &base, "--", "sh", "-c", &script]);
    command.env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin").envs(stage.user_folders());
    command.env("ANTHROPIC_API_KEY", "sk-of-nobody").env("HOME", stage.folder().join("home"));
    command.current_dir(&project).stdin(Stdio::null());
    let Ended { code, out, err } = Ended::from(command.output().unwrap());
    assert_eq!(code, Some(0), "{out}{err}");
    assert_eq!(fs::read_to_string(project.join("site/wood.py")).unwrap(), "kind = 'oak'\n", "{err}");
    assert!(project.join("node_modules/wood/package.json").is_file(), "{err}");
    assert_eq!(fs::read_to_string(project.join("clone/kind.txt")).unwrap(), "oak\n", "{err}");
    assert_eq!(out.trim(), "refused", "{err}");
    assert!(err.contains(&format!("localhost:{elsewhere}")), "{err}");
    assert!(mirror.requests.load(Ordering::SeqCst) > 5);
    assert_eq!(other.requests.load(Ordering::SeqCst), 0);
}
