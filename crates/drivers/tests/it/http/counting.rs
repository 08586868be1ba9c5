//! What counts the tokens of each provider's models.

use spinney_drivers::providers::{ProviderClients, ProviderModel, ProviderSetup};
use spinney_drivers::wire::WireParams;
use spinney_kernel::definition::ModelProvider;
use spinney_kernel::port::model::Model;

use super::SHORT;

/// The tokenizer of a model, and whether its counts are estimates.
fn counter(provider: ModelProvider, model: &str, base_url: Option<&str>) -> (String, bool) {
    let setup = ProviderSetup {
        provider,
        model: model.to_owned(),
        base_url: base_url.map(str::to_owned),
        key: None,
        headers: Vec::new(),
        params: WireParams::default(),
    };
    let model = ProviderModel::new(setup, &ProviderClients::new(SHORT).unwrap()).unwrap();
    (model.tokenizer().unwrap().to_owned(), model.estimate("a text").is_some())
}

/// A model of OpenAI that is newer than we are has the newest encoding. A server elsewhere may have any model under its
/// name, and other providers do not say what theirs have.
#[test]
fn a_new_model_of_openai_is_counted_by_the_newest_encoding() {
    let (o200k, cl100k) = (("o200k".to_owned(), false), ("cl100k".to_owned(), false));
    let unknown = ("bytes".to_owned(), true);
    for provider in [ModelProvider::OpenAi, ModelProvider::OpenAiChat] {
        assert_eq!(counter(provider, "gpt-5", None), o200k);
        assert_eq!(counter(provider, "gpt-17-nano", None), o200k);
        assert_eq!(counter(provider, "gpt-4", None), cl100k);
        assert_eq!(counter(provider, "gpt-5", Some("http://127.0.0.1:1/v1")), unknown);
    }
    assert_eq!(counter(ModelProvider::Anthropic, "claude-sonnet-4-5", None), unknown);
    assert_eq!(counter(ModelProvider::Gemini, "gpt-5", None), unknown);
    assert_eq!(counter(ModelProvider::Ollama, "gpt-oss", None), unknown);
}
