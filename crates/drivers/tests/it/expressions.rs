//! The kernel's expressions are a part of minijinja's: what they accept means the same there. And no source, whatever
//! wrote it, makes them panic or pass their limits.

use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, Output, State, UndefinedBehavior};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use spinney_kernel::definition::{Condition, Expression, ExpressionFault, Template};
use spinney_kernel::primitives::limit;

fn values() -> Map<String, Value> {
    let values = json!({
        "n": 7, "m": -3, "z": 0, "f": 2.5, "one": 1.0,
        "big": 9_007_199_254_740_993_u64, "near": 9_007_199_254_740_992.0, "most": u64::MAX,
        "s": "Ab ", "t": "", "digits": "12", "word": "straße",
        "xs": [1, "Ab ", 2.5, null, true], "ys": [], "texts": ["a", "b", "a"],
        "o": {"a": {"b": 1, "list": [[1], [2, 3]]}, "two words": "x", "z": null},
        "y": true, "no": false, "nothing": null,
    });
    values.as_object().cloned().unwrap_or_default()
}

/// What a part of the language stands for in minijinja: values print as JSON, and `json` escapes nothing for HTML.
fn environment(undefined: UndefinedBehavior) -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(undefined);
    environment.set_syntax(SyntaxConfig::builder().keep_trailing_newline(true).build().unwrap());
    environment.add_filter("json", |value: &minijinja::Value| match value.is_undefined() {
        true => Err(minijinja::Error::from(minijinja::ErrorKind::UndefinedError)),
        false => Ok(as_json(value).to_string()),
    });
    environment.set_formatter(|out: &mut Output<'_>, _: &mut State<'_, '_>, value: &minijinja::Value| {
        let text = value.as_str().map_or_else(|| as_json(value).to_string(), str::to_owned);
        out.write_str(&text).map_err(minijinja::Error::from)
    });
    environment
}

fn context() -> minijinja::Value {
    minijinja::value::Serde(values()).into()
}

fn as_json(value: &minijinja::Value) -> Value {
    serde_json::to_value(value).unwrap_or_else(|error| panic!("{value}: {error}"))
}

/// The value of an expression there; `None` if it is not defined or fails.
fn reference(source: &str, undefined: UndefinedBehavior) -> Option<Value> {
    let environment = environment(undefined);
    let expression =
        environment.compile_expression(source).unwrap_or_else(|error| panic!("{source}: {error}"));
    let value = expression.eval(context()).ok()?;
    (!value.is_undefined()).then(|| as_json(&value))
}

fn path() -> impl Strategy<Value = String> {
    let name = prop::sample::select(vec![
        "n", "m", "z", "f", "one", "big", "near", "most", "s", "t", "digits", "word", "xs", "ys", "texts",
        "o", "y", "no", "nothing", "missing",
    ]);
    let key = prop::sample::select(vec![
        "",
        "",
        "",
        "[0]",
        "[-1]",
        "[9]",
        "[-9]",
        ".a",
        ".a.b",
        ".a.list",
        ".a.list[1][0]",
        ".0",
        "['two words']",
        "['a']",
        ".z",
        ".none",
    ]);
    // Other items are printed in another way there.
    let joined = prop::sample::select(vec![
        "texts | join",
        "texts | join(s)",
        "o.a.list[5] | default(texts) | join('-')",
    ]);
    prop_oneof![9 => (name, key).prop_map(|(name, key)| format!("{name}{key}")), 1 => joined.prop_map(str::to_owned)]
}

fn constant() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<i16>().prop_map(|number| number.to_string()),
        (any::<i8>(), 0_u8..100).prop_map(|(whole, fraction)| format!("{whole}.{fraction}")),
        any::<u64>().prop_map(|number| number.to_string()),
        prop::sample::select(vec![
            "true",
            "false",
            "none",
            "True",
            "None",
            "''",
            "'a'",
            "\"Ab \"",
            "'x\\n\\'\\\\y'",
            "[]",
            "[1, 'a', none]",
            "[[1], 2.5, true,]",
            "9007199254740992",
            "9007199254740992.0",
            "'3.9'",
            "'-4'",
            "'1e3'",
        ])
        .prop_map(str::to_owned),
    ]
}

fn filter() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "| length",
        "| lower",
        "| upper",
        "| trim",
        "| first",
        "| last",
        "| json",
        "| int",
        "| int(5)",
        "| default",
        "| default('d')",
        "|default(0, true)",
        "| default(missing)",
        "is defined",
        "is not defined",
    ])
}

fn expression() -> impl Strategy<Value = String> {
    let operand = prop_oneof![4 => path(), 2 => constant()];
    let filtered = (operand, prop::collection::vec(filter(), 0..3))
        .prop_map(|(operand, filters)| [vec![operand.as_str()], filters].concat().join(" "));
    filtered.prop_recursive(4, 24, 3, |inner| {
        let sign = prop::sample::select(vec!["==", "!=", "<", "<=", ">", ">=", "in", "not in", "and", "or"]);
        prop_oneof![
            (inner.clone(), sign, inner.clone())
                .prop_map(|(left, sign, right)| format!("({left}) {sign} ({right})")),
            (inner.clone(), inner.clone(), inner.clone())
                .prop_map(|(a, b, c)| format!("{a} and not {b} or ({c})")),
            inner.clone().prop_map(|inner| format!("not {inner}")),
            (inner, filter()).prop_map(|(inner, filter)| format!("({inner}) {filter}")),
        ]
    })
}

/// Two comparisons in one are not in the language, and nothing else that is generated here.
fn parsed(source: &str) -> Option<Expression> {
    match Expression::parse(source) {
        Ok(expression) => Some(expression),
        Err(error) => {
            assert!(error.expected.starts_with("one comparison at a time"), "{source}: {error}");
            None
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, ..ProptestConfig::default() })]

    #[test]
    fn a_value_is_what_minijinja_says(source in expression()) {
        let Some(expression) = parsed(&source) else { return Ok(()) };
        match expression.value(&values()) {
            Ok(value) => {
                prop_assert_eq!(reference(&source, UndefinedBehavior::Chainable), Some(value), "{}", source);
            }
            // A missing value is also a fault there if it is strict, but `in` finds it nowhere.
            Err(ExpressionFault::NotDefined { .. }) if !source.contains(" in ") => {
                prop_assert_eq!(reference(&source, UndefinedBehavior::Strict), None, "{}", source);
            }
            Err(_) => {}
        }
    }

    #[test]
    fn a_condition_holds_where_minijinja_says_so(source in expression()) {
        if parsed(&source).is_none() {
            return Ok(());
        }
        if let Ok(holds) = Condition::parse(&source).unwrap().holds(&values()) {
            let there = environment(UndefinedBehavior::Chainable);
            let value = there.compile_expression(&source).unwrap().eval(context()).unwrap();
            prop_assert_eq!(value.is_true(), holds, "{}", source);
        }
    }

    #[test]
    fn a_template_renders_as_in_minijinja(
        parts in prop::collection::vec(("[a-z {}\\n]{0,6}", expression()), 0..4),
        end in "[a-z }\\n]{0,4}",
    ) {
        let parts: Vec<String> =
            parts.into_iter().map(|(text, source)| format!("{}{{{{ {source} }}}}", text.replace("{{", "{ {"))).collect();
        let source = parts.concat() + &end;
        // A brace before a placeholder moves its start, in both.
        let Ok(template) = Template::parse(&source) else { return Ok(()) };
        if let Ok(text) = template.render(&values()) {
            let there = environment(UndefinedBehavior::Chainable);
            prop_assert_eq!(there.render_str(&source, context()).unwrap(), text, "{}", source);
        }
    }

    #[test]
    fn no_source_panics_or_passes_a_limit(
        source in "(\\{\\{|\\}\\}|\\{%|\\{#|[a-z]{1,3}|xs|o|s|'|\"|\\\\|[0-9]{1,21}|\\.|\\[|\\]|\\(|\\)|,|\\||==|<|>=| in | not | is defined| and | or |-|length|join|json|default|int|ß|🌲| |\n){0,40}",
    ) {
        bounded(&source);
    }

    #[test]
    fn no_text_panics_or_passes_a_limit(source in any::<String>()) {
        bounded(&source);
        bounded(&format!("{{{{ {source} }}}}"));
    }
}

fn bounded(source: &str) {
    let values = values();
    if let Ok(expression) = Expression::parse(source) {
        assert_eq!(serde_json::from_value::<Expression>(json!(source)).unwrap(), expression);
        assert!(expression.names().count() <= limit::EXPRESSION_NODES_MAX);
        if let Ok(value) = expression.value(&values) {
            assert!(value.to_string().len() <= limit::EXPRESSION_VALUE_BYTES_MAX);
        }
    }
    match Template::parse(source) {
        Ok(template) => {
            if let Ok(text) = template.render(&values) {
                assert!(text.len() <= limit::TEXT_BYTES_MAX);
            }
        }
        Err(error) => assert!(source.is_char_boundary(error.at) && error.at <= source.len(), "{error}"),
    }
}
