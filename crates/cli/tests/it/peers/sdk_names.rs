//! Compares the gateway's list with the providers' SDKs: every field, type and beta that they declare must be on it, either
//! allowed or refused. A name that a newer SDK adds fails here first, and not for a user.

use std::collections::BTreeSet;
use std::fs;

use spinney_drivers::wire::NameKind;
use spinney_server::gateway::wire::{AllowList, CallFormat};

use super::peer::installed;

/// The declarations of an SDK's file, without comments.
struct Declarations(String);

impl Declarations {
    fn read(path: &str) -> Self {
        let path = installed().join("packages/node_modules").join(path);
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let mut plain = String::with_capacity(text.len());
        let mut rest = text.as_str();
        while let Some((before, comment)) = rest.split_once("/*") {
            plain.push_str(before);
            rest = comment.split_once("*/").map_or("", |(_, after)| after);
        }
        plain.push_str(rest);
        Self(plain)
    }

    /// The text between the braces of a declaration.
    fn body(&self, declared: &str) -> Option<&str> {
        let at = self.0.find(&format!("{declared} "))?;
        let start = at + self.0[at..].find('{')? + 1;
        let mut depth = 1;
        let end = self.0[start..].find(|letter| {
            depth += i32::from(letter == '{') - i32::from(letter == '}');
            depth == 0
        })?;
        Some(&self.0[start..start + end])
    }

    /// The names of an interface's fields.
    fn fields(&self, interface: &str) -> BTreeSet<String> {
        let body = self.body(&format!("interface {interface}")).unwrap_or_else(|| panic!("{interface}"));
        let mut depth = 0;
        let mut names = BTreeSet::new();
        for line in body.lines() {
            let name = line.trim().split([':', '?']).next().unwrap_or_default();
            let is_name = name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
            if depth == 0 && is_name && !name.is_empty() && line.contains(':') {
                names.insert(name.to_owned());
            }
            depth += line.matches('{').count();
            depth -= line.matches('}').count();
        }
        assert!(names.len() > 5, "{interface}: {names:?}");
        names
    }

    /// The definition of a union type.
    fn union(&self, name: &str) -> &str {
        let (_, after) = self.0.split_once(&format!("type {name} = ")).unwrap_or_else(|| panic!("{name}"));
        after.split_once(';').unwrap().0
    }

    /// The values of `type` in the interfaces that a union names.
    fn types(&self, union: &str) -> BTreeSet<String> {
        let mut types = BTreeSet::new();
        for member in self.union(union).split('|').map(str::trim) {
            let body = match member.split_once('.') {
                // In a separate namespace.
                Some((space, name)) => {
                    let space = Self(self.body(&format!("namespace {space}")).unwrap().to_owned());
                    space.body(&format!("interface {name}")).map(str::to_owned)
                }
                None => self.body(&format!("interface {member}")).map(str::to_owned),
            };
            let Some(body) = body else { continue };
            let line = body
                .lines()
                .map(str::trim)
                .find(|line| line.starts_with("type:") || line.starts_with("type?:"));
            types.extend(line.into_iter().flat_map(quoted));
        }
        assert!(types.len() > 1, "{union}: {types:?}");
        types
    }
}

/// The texts in quotation marks.
fn quoted(text: &str) -> impl Iterator<Item = String> {
    text.split('\'').skip(1).step_by(2).map(str::to_owned)
}

fn unknown(format: CallFormat, kind: NameKind, names: impl IntoIterator<Item = String>) -> Vec<String> {
    let list = AllowList::get();
    names.into_iter().filter(|name| !list.knows(format, kind, name)).collect()
}

#[test]
fn the_list_knows_every_name_of_the_providers_sdks() {
    let (messages, chat, responses) = (CallFormat::Messages, CallFormat::Chat, CallFormat::Responses);
    let nothing: [String; 0] = [];
    let stable = Declarations::read("@anthropic-ai/sdk/resources/messages/messages.d.ts");
    let beta = Declarations::read("@anthropic-ai/sdk/resources/beta/messages/messages.d.ts");
    for sdk in [&stable, &beta] {
        assert_eq!(unknown(messages, NameKind::Field, sdk.fields("MessageCreateParamsBase")), nothing);
    }
    assert_eq!(unknown(messages, NameKind::Tool, stable.types("ToolUnion")), nothing);
    assert_eq!(unknown(messages, NameKind::Tool, beta.types("BetaToolUnion")), nothing);
    assert_eq!(unknown(messages, NameKind::Block, stable.types("ContentBlockParam")), nothing);
    assert_eq!(unknown(messages, NameKind::Block, beta.types("BetaContentBlockParam")), nothing);
    let betas = Declarations::read("@anthropic-ai/sdk/resources/beta/beta.d.ts");
    let betas: BTreeSet<String> = quoted(betas.union("AnthropicBeta")).collect();
    assert!(betas.len() > 20, "{betas:?}");
    assert_eq!(unknown(messages, NameKind::Beta, betas), nothing);

    let completions = Declarations::read("openai/resources/chat/completions/completions.d.ts");
    assert_eq!(unknown(chat, NameKind::Field, completions.fields("ChatCompletionCreateParamsBase")), nothing);
    assert_eq!(unknown(chat, NameKind::Block, completions.types("ChatCompletionContentPart")), nothing);
    let sdk = Declarations::read("openai/resources/responses/responses.d.ts");
    assert_eq!(unknown(responses, NameKind::Field, sdk.fields("ResponseCreateParamsBase")), nothing);
    assert_eq!(unknown(responses, NameKind::Item, sdk.types("ResponseInputItem")), nothing);
    assert_eq!(unknown(responses, NameKind::Tool, sdk.types("Tool")), nothing);
    assert_eq!(unknown(responses, NameKind::Block, sdk.types("ResponseInputContent")), nothing);

    let gemini = CallFormat::Gemini;
    let sdk = Declarations::read("@google/genai/dist/genai.d.ts");
    // What the SDK itself takes, of which nothing goes up.
    let local = ["httpOptions", "abortSignal", "automaticContinuation", "automaticFunctionCalling"];
    // What it refuses to send to Gemini.
    let vertex = ["modelArmorConfig", "generationOutputConfig"];
    let sent = |name: &String| !local.contains(&name.as_str()) && !vertex.contains(&name.as_str());
    let fields = sdk.fields("GenerateContentConfig").into_iter().filter(sent);
    assert_eq!(unknown(gemini, NameKind::Field, fields), nothing);
    assert_eq!(unknown(gemini, NameKind::Field, sdk.fields("GenerationConfig")), nothing);
    assert_eq!(unknown(gemini, NameKind::Tool, sdk.fields("Tool")), nothing);
    assert_eq!(unknown(gemini, NameKind::Block, sdk.fields("Part")), nothing);
}
