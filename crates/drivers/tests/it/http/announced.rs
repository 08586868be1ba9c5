//! Rate limits that a provider announces, as the kernel's port tells them; and who shares them.

use std::sync::Arc;

use spinney_drivers::http::{LastAnnouncement, ModelKey, WireCall};
use spinney_drivers::providers::{ProviderClients, ProviderModel, ProviderSetup};
use spinney_drivers::wire::{WireFormat, WireParams};
use spinney_kernel::definition::ModelProvider;
use spinney_kernel::port::model::{Allowance, Announced, Model};

use super::super::wire::{KEY, stream};
use super::settling::{hello, setup};
use super::upstream::{Step, Upstream};
use super::{SHORT, ask, call};

fn model(setup: ProviderSetup) -> ProviderModel {
    ProviderModel::new(setup, &ProviderClients::new(SHORT).unwrap()).unwrap()
}

async fn announced_by(status: &str, headers: &str, body: Vec<u8>) -> Announced {
    let headers = format!("content-type: text/event-stream\r\n{headers}");
    let upstream = Upstream::respond(status, &headers, vec![Step::Send(body)]).await;
    let model = model(setup(ModelProvider::OpenAiCompatible, &upstream.url));
    assert_eq!(model.announced(), Announced::default(), "nothing was said yet");
    let _either = model.call(Arc::new(hello()), Arc::new(|_, _: &str| {})).await;
    model.announced()
}

const LIMITS: &str = "x-ratelimit-limit-requests: 60\r\nx-ratelimit-remaining-requests: 12\r\nx-ratelimit-reset-requests: 48s\r\n";

#[tokio::test]
async fn limits_are_read_from_answers_and_from_errors() {
    let expected = Announced {
        requests: Some(Allowance { limit: 60, remaining: 12, reset_ms: 48_000 }),
        ..Announced::default()
    };
    let answer = stream(WireFormat::OpenAiChat, "plain_text").bytes;
    assert_eq!(announced_by("200 OK", LIMITS, answer.clone()).await, expected);
    assert_eq!(announced_by("429 Too Many Requests", LIMITS, b"slow".to_vec()).await, expected);
    assert_eq!(announced_by("200 OK", "", answer).await, Announced::default());
}

#[tokio::test]
async fn an_answer_that_announces_nothing_takes_nothing_back() {
    let announcement = LastAnnouncement::default();
    let mut heard = Vec::new();
    for headers in [LIMITS, "", "x-ratelimit-limit-requests: many\r\n"] {
        let headers = format!("content-type: text/event-stream\r\n{headers}");
        let body = Step::Send(stream(WireFormat::OpenAiChat, "plain_text").bytes);
        let upstream = Upstream::respond("200 OK", &headers, vec![body]).await;
        let call =
            WireCall { announcement: announcement.clone(), ..call(WireFormat::OpenAiChat, &upstream.url) };
        ask(SHORT, call).await.0.unwrap();
        heard.push(announcement.read().requests.map(|requests| requests.remaining));
    }
    assert_eq!(heard, [Some(12); 3]);
}

#[test]
fn models_share_a_service_by_their_server_and_a_quota_by_their_key_as_well() {
    let at = |url: &str, name: &str, key: Option<&str>| {
        model(ProviderSetup {
            model: name.to_owned(),
            key: key.map(|key| ModelKey::new(key.to_owned())),
            ..setup(ModelProvider::OpenAiCompatible, url)
        })
    };
    let first = at("https://models.example/v1", "m", Some(KEY));
    assert_eq!(first.service(), Some("https://models.example"));
    let other_path = at("https://models.example:443/v2", "m", Some(KEY));
    assert_eq!((other_path.service(), other_path.quota()), (first.service(), first.quota()));
    let different = [
        at("https://models.example:8443/v1", "m", Some(KEY)),
        at("https://models.example/v1", "n", Some(KEY)),
        at("https://models.example/v1", "m", Some("another")),
        at("https://models.example/v1", "m", None),
    ];
    for model in &different {
        assert_ne!(model.quota(), first.quota(), "{model:?}");
    }
    assert!(!first.quota().unwrap().contains(KEY));
    let printed = format!("{first:?}");
    let fingerprint = first.quota().unwrap().rsplit(' ').next().unwrap();
    assert!(fingerprint.len() == 16 && !printed.contains(fingerprint), "{printed}");
    let own = ProviderModel::new(
        ProviderSetup {
            base_url: None,
            params: WireParams::default(),
            ..setup(ModelProvider::Anthropic, "unused")
        },
        &ProviderClients::new(SHORT).unwrap(),
    );
    assert_eq!(own.unwrap().service(), Some("https://api.anthropic.com"));
}
