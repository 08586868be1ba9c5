//! Certificates: a provider is called only if its certificate is trusted and its own. Nothing is sent otherwise, and nothing
//! is tried again.

use std::io::Write as _;
use std::net::TcpListener;
use std::thread;

use serde_json::{Value, json};

use crate::test_folder::{Ended, TestFolder};
use crate::tls_upstream::{AUTHORITY, Certificate, Response, TlsUpstream};

const SAYS: &str = include_str!("../../../drivers/corpus/open_ai_chat/plain_text.sse");

fn run(url: &str, environment: &[(&str, &str)]) -> Ended {
    let stage = TestFolder::new();
    let file = stage.file(
        "tree.yaml",
        &format!(
            "name: test\ngoal: Try it.\nbudget: {{ cost_usd: 1, retries: 3 }}\nmodels:\n  fast: {{ provider: openai_compatible, \
             model: m, base_url: '{url}', price: {{ input_per_mtok_usd: 1, output_per_mtok_usd: 1 }} }}\n\
             agents:\n  lead: {{ model: fast }}\n"
        ),
    );
    stage.play_in(&["run", &file, "--json"], environment).end()
}

fn upstream(certificate: Certificate) -> TlsUpstream {
    let response = Response { status: 200, media: "text/event-stream", body: SAYS.to_owned() };
    TlsUpstream::new(certificate, response)
}

/// The fault of the last call.
fn fault(ended: &Ended) -> Value {
    let events = ended.json();
    let end = events.iter().rev().find(|event| event["type"] == "call_ended");
    end.unwrap_or_else(|| panic!("{}", ended.out))["outcome"]["fault"].clone()
}

#[test]
fn a_provider_whose_certificate_is_trusted_answers() {
    let upstream = upstream(Certificate::Here);
    let ended = run(&format!("https://127.0.0.1:{}/v1", upstream.port), &[("SSL_CERT_FILE", AUTHORITY)]);
    assert_eq!(ended.code, Some(0), "{} {}", ended.out, ended.err);
    assert_eq!(upstream.headers().len(), 1);
}

#[test]
fn a_certificate_that_is_unknown_or_another_s_ends_the_call_before_anything_is_sent() {
    let trusted = [("SSL_CERT_FILE", AUTHORITY)];
    let table: [(_, &[(&str, &str)]); 2] = [(Certificate::Here, &[]), (Certificate::Elsewhere, &trusted)];
    for (certificate, environment) in table {
        let upstream = upstream(certificate);
        let ended = run(&format!("https://127.0.0.1:{}/v1", upstream.port), environment);
        let (result, fault) = (ended.result(), fault(&ended));
        assert_eq!((ended.code, &fault["kind"]), (Some(1), &json!("invalid")), "{}", ended.out);
        let message = fault["message"].as_str().unwrap();
        assert!(message.contains("certificate") && message.contains("SSL_CERT_FILE"), "{message}");
        assert_eq!((&result["spent"]["tokens"], &result["spent"]["retries"]), (&json!(0), &json!(0)));
        assert_eq!(upstream.headers(), [""; 0]);
    }
}

/// Plain HTTP at a TLS port is a failure of the server, and TLS at a plain port one of the address.
#[test]
fn a_scheme_that_is_not_the_server_s_is_a_fault() {
    let upstream = upstream(Certificate::Here);
    let ended = run(&format!("http://127.0.0.1:{}/v1", upstream.port), &[("SSL_CERT_FILE", AUTHORITY)]);
    assert_eq!((ended.code, &fault(&ended)["kind"]), (Some(1), &json!("server")), "{}", ended.out);
    let mail = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = mail.local_addr().unwrap().port();
    thread::spawn(move || {
        mail.incoming().flatten().try_for_each(|mut one| one.write_all(b"220 mail ready\r\n"))
    });
    let ended = run(&format!("https://127.0.0.1:{port}/v1"), &[]);
    assert_eq!(fault(&ended)["kind"], json!("invalid"), "{}", ended.out);
    assert_eq!(ended.code, Some(1), "{}", ended.out);
    assert_eq!(ended.result()["spent"]["tokens"], json!(0));
}
