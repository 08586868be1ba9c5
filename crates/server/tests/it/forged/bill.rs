//! What a provider bills, by a second reading of the price data: the source itself, and not the table that the gateway is
//! built with. It shares no code with the gateway, so a mistake in one of the two shows.

use std::sync::LazyLock;

use serde_json::Value;
use spinney::clock::{Clock as _, SystemClock};

static SOURCE: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(include_str!("../../../../drivers/prices/source.json")).unwrap());

/// What a call used, in classes that do not overlap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Billed {
    pub(super) plain: u64,
    pub(super) cached: u64,
    pub(super) written_5m: u64,
    pub(super) written_1h: u64,
    pub(super) output: u64,
    /// What is billed beside the tokens, in nano-dollars.
    pub(super) apart_nanos: u64,
}

impl Billed {
    pub(super) const fn input(&self) -> u64 {
        self.plain + self.cached + self.written_5m + self.written_1h
    }

    /// In millionths of nano-dollars, so nothing is rounded.
    pub(super) fn cost(&self, provider: &str, model: &str) -> u128 {
        let rates = Rates::find(provider, model, self.input());
        let parts = [
            (self.plain, rates.input),
            (self.cached, rates.cached),
            (self.written_5m, rates.written_5m),
            (self.written_1h, rates.written_1h),
            (self.output, rates.output),
            (self.apart_nanos, 1_000_000),
        ];
        parts.iter().map(|(count, rate)| u128::from(*count) * u128::from(*rate)).sum()
    }
}

/// In nano-dollars per million tokens.
struct Rates {
    input: u64,
    cached: u64,
    written_5m: u64,
    written_1h: u64,
    output: u64,
}

impl Rates {
    fn find(provider: &str, model: &str, input_tokens: u64) -> Self {
        let providers = SOURCE.as_array().unwrap();
        let provider_data = providers.iter().find(|known| known["id"] == provider).unwrap();
        let mut models = provider_data["models"].as_array().unwrap().iter();
        let found = models.find(|known| is_meant(&known["match"], model)).unwrap();
        let prices = today(&found["prices"]);
        let rate = |name: &str| prices.get(name).map(|price| at_length(price, input_tokens));
        let input = rate("input_mtok").unwrap();
        // Anthropic's list: a quarter more for five minutes, twice as much for an hour.
        let (more_5m, more_1h) = if provider == "anthropic" { (input / 4, input) } else { (0, 0) };
        let written_5m = rate("cache_write_mtok").unwrap_or(input + more_5m);
        let is_divided = provider == "anthropic";
        Self {
            input,
            cached: rate("cache_read_mtok").unwrap_or(input),
            written_5m,
            written_1h: rate("cache_write_1h_mtok").unwrap_or(if is_divided {
                input + more_1h
            } else {
                written_5m
            }),
            output: rate("output_mtok").unwrap(),
        }
    }
}

/// The models that are called here are named by their beginnings or as a whole.
fn is_meant(rule: &Value, model: &str) -> bool {
    let (kind, what) = rule.as_object().unwrap().iter().next().unwrap();
    let text = what.as_str().unwrap_or_default();
    match kind.as_str() {
        "equals" => model == text,
        "starts_with" => model.starts_with(text),
        "ends_with" => model.ends_with(text),
        "contains" => model.contains(text),
        "or" => what.as_array().unwrap().iter().any(|rule| is_meant(rule, model)),
        "and" => what.as_array().unwrap().iter().all(|rule| is_meant(rule, model)),
        _ => false,
    }
}

/// The last of several prices whose day has come.
fn today(prices: &Value) -> &Value {
    let Some(dated) = prices.as_array() else { return prices };
    let today = date(SystemClock::new().now_ms() / 86_400_000);
    let has_come = |entry: &&Value| {
        let start = entry["constraint"]["start_date"].as_str();
        start.is_none_or(|start| start <= today.as_str())
    };
    &dated.iter().rfind(has_come).unwrap()["prices"]
}

/// A day as `2026-11-17`, from the days since 1970.
fn date(mut days: u64) -> String {
    let is_leap =
        |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let (mut year, mut month) = (1970, 0);
    while days >= 365 + u64::from(is_leap(year)) {
        days -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let lengths = [31, 28 + u64::from(is_leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    while days >= lengths[month] {
        days -= lengths[month];
        month += 1;
    }
    format!("{year:04}-{:02}-{:02}", month + 1, days + 1)
}

/// Above the beginning of a tier, every token of a call has the price of that tier.
fn at_length(price: &Value, input_tokens: u64) -> u64 {
    let Some(tiers) = price["tiers"].as_array() else { return nanos(price) };
    let reached = tiers.iter().rfind(|tier| input_tokens > tier["start"].as_u64().unwrap());
    nanos(reached.map_or(&price["base"], |tier| &tier["price"]))
}

/// Dollars as nano-dollars, from their digits.
fn nanos(dollars: &Value) -> u64 {
    let text = dollars.to_string();
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    format!("{whole}{fraction:0<9}").parse().unwrap()
}

#[test]
fn the_second_reading_knows_tiers_dates_and_classes() {
    let cost = |billed: Billed, provider, model| billed.cost(provider, model) / 1_000_000;
    let all = Billed {
        plain: 1_000,
        cached: 1_000,
        written_5m: 1_000,
        written_1h: 1_000,
        output: 1_000,
        apart_nanos: 7,
    };
    // 3 + 0.3 + 3.75 + 6 + 15 dollars per million.
    assert_eq!(cost(all, "anthropic", "claude-sonnet-4-5"), 28_050_007);
    let long = Billed { plain: 200_001, ..Billed::default() };
    assert_eq!(cost(long, "anthropic", "claude-sonnet-4-5"), 200_001 * 6_000);
    assert_eq!(cost(long, "anthropic", "claude-sonnet-5"), 200_001 * 2_000);
    assert_eq!(cost(Billed { output: 1_000, ..all }, "openai", "gpt-6.1-sol"), 17_100_007);
    // It cost 10 dollars until 2025-06-10.
    assert_eq!(cost(Billed { plain: 1_000, ..Billed::default() }, "openai", "o3"), 2_000_000);
    assert_eq!(
        [date(0), date(59), date(789), date(20_774)],
        ["1970-01-01", "1970-03-01", "1972-02-29", "2026-11-17"]
    );
}
