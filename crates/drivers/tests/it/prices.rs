//! The price table of the binary: it can be read, names find their prices, and what no hold bounds has none.

use spinney_drivers::prices::{NoPrice, PriceTable, refused_param};
use spinney_kernel::budget::{Price, Rates};
use spinney_kernel::words::Time;

const TABLE: &str = r#"{"source":"test 1","date":"2026-01-02"}
{"provider":"acme"}
{"model":"Pro","context":1000,"price":{"input_per_mtok":1,"output_per_mtok":2}}
{"model":"mini","match":{"or":[{"starts_with":"mini-"},{"and":[{"contains":"small"},{"ends_with":"-latest"}]}]},"price":{"input_per_mtok":3,"output_per_mtok":4}}
{"model":"max","match":{"regex":"^max-\\d{4}-\\d{2}-\\d{2}$"},"price":{"input_per_mtok":5,"output_per_mtok":6}}
{"model":"any","match":{"starts_with":"any"},"price":{"input_per_mtok":7,"output_per_mtok":8}}
{"model":"voice","unpriced":"it is also billed by audio_hours"}
{"provider":"google"}
{"model":"gem","price":{"input_per_mtok":9,"output_per_mtok":10}}
"#;

/// The input rate of a model in the small table, or why it has none.
fn input(provider: &str, model: &str) -> Result<u64, String> {
    let table = PriceTable::read(TABLE).unwrap();
    table.price(provider, model).map(|price| price.input_per_mtok).map_err(|reason| reason.to_string())
}

#[test]
fn names_find_their_prices_by_the_rules_of_the_source() {
    assert_eq!(input("acme", "Pro"), Ok(1));
    assert_eq!(input("ACME", "PRO"), Ok(1), "case does not matter");
    assert_eq!(input("acme", "mini-3"), Ok(3));
    assert_eq!(input("acme", "a-small-one-latest"), Ok(3));
    assert_eq!(input("acme", "max-2026-01-02"), Ok(5));
    assert_eq!(input("acme", "max-20260102"), Ok(5), "a date without dashes is one, too");
    assert_eq!(input("gemini", "gem"), Ok(9), "our name of the provider");
}

#[test]
fn what_is_unknown_has_no_price() {
    let unknown = |model: &str| Err(format!("the price table has no model `{model}` of `acme`"));
    for model in ["", "pro-2", "mini", "small", "max-2026-01-02-x", "maxi", "gem"] {
        assert_eq!(input("acme", model), unknown(model));
    }
    for provider in ["", "my-acme", "acme2", "openai"] {
        assert_eq!(input(provider, "Pro"), Err(format!("the price table has no provider `{provider}`")));
    }
    assert_eq!(input("acme", &"x".repeat(100_000)), unknown(&"x".repeat(256)));
}

#[test]
fn what_no_hold_bounds_has_no_price_and_a_reason() {
    let reason = "what `voice` costs at most is unknown: it is also billed by audio_hours";
    assert_eq!(input("acme", "voice"), Err(reason.to_owned()));
    let searches = "it searches the web by itself, which is billed apart";
    for model in ["any-search-preview", "any:online", "any-deep-research"] {
        assert_eq!(input("acme", model), Err(format!("what `{model}` costs at most is unknown: {searches}")));
    }
}

#[test]
fn a_broken_table_is_an_error_with_its_line() {
    let told = |text: &str| PriceTable::read(text).map(|_| ()).unwrap_err().to_string();
    let head = r#"{"source":"s","date":"d"}"#;
    insta::assert_snapshot!(told(""), @"line 1 of the price table: the table is empty");
    insta::assert_snapshot!(told(&format!("{head}\n{{\"model\":\"m\",\"unpriced\":\"r\"}}")), @"line 2 of the price table: a model without a provider");
    insta::assert_snapshot!(told(&format!("{head}\n{{\"provider\":\"p\"}}\n{{\"model\":\"m\"}}")), @"line 3 of the price table: either a price or a reason");
    assert!(
        told(&format!("{head}\n{{\"provider\":\"p\"}}\n{{\"model\":\"m\",\"match\":{{\"regex\":\"(\"}}}}"))
            .contains("line 3")
    );
}

/// The embedded table is whole: every line can be read and every price is one that a tree may start with.
#[test]
fn the_embedded_table_is_whole() {
    let table = PriceTable::embedded().unwrap();
    let priced: Vec<&Price> = table.models().filter_map(|(_, model)| model.price().ok()).collect();
    assert!(
        table.models().count() > 2_000 && priced.len() > 1_000,
        "{} of {}",
        priced.len(),
        table.models().count()
    );
    for price in &priced {
        price.check().unwrap();
    }
    assert!(priced.iter().any(|price| !price.tiers.is_empty()));
    assert!(priced.iter().any(|price| price.is_dated()));
}

/// Prices that everybody can look up, so that a mistake in the conversion is seen.
#[test]
fn well_known_models_cost_what_their_providers_say() {
    let table = PriceTable::embedded().unwrap();
    let rates = |provider: &str, model: &str, input_tokens| {
        table.price(provider, model).unwrap().rates_at(Time(1_790_000_000_000), input_tokens)
    };
    let usd = |cents: u64| cents * 10_000_000;
    let sonnet = Rates {
        cached_input_per_mtok: Some(usd(30)),
        cache_write_per_mtok: Some(usd(375)),
        cache_write_1h_per_mtok: Some(usd(600)),
        ..Rates::flat(usd(300), usd(1_500))
    };
    assert_eq!(rates("anthropic", "claude-3-5-sonnet-20241022", 10), sonnet);
    assert_eq!(
        rates("openai", "gpt-4o-2024-08-06", 10),
        Rates { cached_input_per_mtok: Some(usd(125)), ..Rates::flat(usd(250), usd(1_000)) }
    );
    let pro = |tokens| rates("gemini", "gemini-2.5-pro", tokens);
    assert_eq!((pro(200_000).input_per_mtok, pro(200_001).input_per_mtok), (usd(125), usd(250)));
    assert_eq!((pro(200_000).output_per_mtok, pro(200_001).output_per_mtok), (usd(1_000), usd(1_500)));
    for (provider, model) in
        [("perplexity", "sonar"), ("openai", "gpt-4o-search-preview"), ("openai", "gpt-audio")]
    {
        assert!(matches!(table.price(provider, model), Err(NoPrice::Unbounded { .. })), "{model}");
    }
    assert!(matches!(table.price("ollama", "llama3"), Err(NoPrice::UnknownProvider { .. })));
}

#[test]
fn parameters_that_cost_more_than_a_hold_are_refused() {
    for name in ["service_tier", "tools", "web_search_options", "n", "modalities", "max_tokens", "models"] {
        assert!(refused_param(name).is_some(), "{name}");
    }
    for name in ["temperature", "top_p", "seed", "stop", "reasoning_effort"] {
        assert_eq!(refused_param(name), None, "{name}");
    }
}
