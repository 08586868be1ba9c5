//! Logins at servers elsewhere: a browser that does what it is told, tokens in a private file, and nowhere else.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;
use spinney_testkit::http_tool_server::HttpToolServer;

use crate::mcp::tree_elsewhere;
use crate::test_folder::TestFolder;

/// What a server on this machine answers.
fn get(url: &str) -> String {
    let (host, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    write!(stream, "GET /{path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n").unwrap();
    let mut text = vec![0; 4_096];
    let read = stream.read(&mut text).unwrap();
    String::from_utf8_lossy(&text[..read]).into_owned()
}

/// G24: after a login its token is sent to that server alone, renewed when it is time, and in no output, journal or file
/// that others read.
#[test]
fn g24_a_login_is_sent_to_its_server_and_shown_nowhere() {
    let (stage, server) = (TestFolder::new(), HttpToolServer::start("login"));
    let path = tree_elsewhere(&stage, &server, "");
    let host = format!("127.0.0.1:{}", server.port());
    let run =
        ["run", &path, "--json", "--allow-host", &host, "--allow-box", &format!("mcp:{}", server.url())];
    let before = stage.spinney(&run);
    assert!(before.code != Some(0) && before.err.contains("or a login"), "{}{}", before.out, before.err);

    let mut login = stage.play(&["mcp", "login", &server.url()]);
    let page = login.line().unwrap();
    assert!(page.contains("code_challenge_method=S256") && page.contains("scope=tools"), "{page}");
    // Somebody else comes first.
    let place = |page: &str| {
        let sent = get(page);
        let (_, rest) = sent.split_once("location: ").unwrap_or_else(|| panic!("{sent}"));
        rest.split('\r').next().unwrap().to_owned()
    };
    let back = place(&page);
    let (forged, _) = back.split_once("state=").unwrap();
    assert!(get(&format!("{forged}state=other")).starts_with("HTTP/1.1 404"));
    assert!(get(&back).contains("You are logged in"));
    let login = login.end();
    assert!(
        login.code == Some(0) && login.out.contains("logged in at http://127.0.0.1:"),
        "{}{}",
        login.out,
        login.err
    );

    let logins = stage.folder().join("user/state/spinney/logins");
    let file = fs::read_dir(&logins).unwrap().next().unwrap().unwrap();
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);

    let asked = stage.spinney(&["run", &path]);
    assert!(asked.err.contains("with your login"), "{}", asked.err);
    let ended = stage.spinney(&run);
    assert_eq!(
        (ended.code, &ended.result()["output"]),
        (Some(0), &json!("Bearer [key]")),
        "{}{}",
        ended.out,
        ended.err
    );
    let kept = fs::read_to_string(file.path()).unwrap();
    assert!(kept.contains("renewed-token-8") && kept.contains("refresh-token-7"));
    let journal: Vec<u8> = fs::read_dir(stage.home())
        .unwrap()
        .flatten()
        .filter_map(|entry| fs::read(entry.path()).ok())
        .flatten()
        .collect();
    for secret in ["first-token-7", "renewed-token-8", "refresh-token-7", "secret-code-7"] {
        let shown = [&login.out, &login.err, &ended.out, &ended.err].map(|text| text.contains(secret));
        assert_eq!(shown, [false; 4], "{secret}");
        assert!(!journal.windows(secret.len()).any(|part| part == secret.as_bytes()), "{secret}");
    }

    let removed = stage.spinney(&["mcp", "login", "--remove", &server.url()]);
    assert!(removed.out.contains("removed the login"), "{}{}", removed.out, removed.err);
    assert_eq!(fs::read_dir(&logins).unwrap().count(), 0);
}
