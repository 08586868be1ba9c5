//! The language by example: what it reads, what it refuses and with which words, and its limits.

use serde_json::{Map, Value, json};

use super::*;

fn values() -> Map<String, Value> {
    let values = json!({
        "report": {"score": 7, "title": "Rust", "tags": ["a", "b"], "two words": 1, "ok": true, "nothing": null},
        "items": [{"name": "x"}, {"name": "y"}, 3],
        "big": 9_007_199_254_740_993_u64,
        "empty": "",
        "place": 1,
    });
    let mut values = values.as_object().cloned().unwrap();
    values.insert("ratio".into(), decimal("0.25"));
    values
}

/// The kernel has no type for it.
fn decimal(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn value(source: &str) -> Value {
    Expression::parse(source).unwrap().value(&values()).unwrap()
}

fn fault(source: &str) -> String {
    Expression::parse(source).unwrap().value(&values()).unwrap_err().to_string()
}

fn error(source: &str) -> String {
    Expression::parse(source).unwrap_err().to_string()
}

fn holds(source: &str) -> bool {
    Condition::parse(source).unwrap().holds(&values()).unwrap()
}

#[test]
fn paths_lead_to_values() {
    assert_eq!(value("report.score"), json!(7));
    assert_eq!(value("report['two words']"), json!(1));
    assert_eq!(value(" items[0].name "), json!("x"));
    assert_eq!(value("items.1.name"), json!("y"));
    assert_eq!(value("items[-1]"), json!(3));
    assert_eq!(value("items[place]['name']"), json!("y"));
    assert_eq!(value("(items | first).name"), json!("x"));
    assert_eq!(value("report.title[0]"), json!("R"));
}

#[test]
fn conditions_hold_or_do_not() {
    for source in [
        "report.score > 6 and report.score <= 7",
        "not report.missing is defined",
        "report.missing is not defined",
        "report.missing.deeper is not defined",
        "report.nothing is defined",
        "report.nothing == none",
        "'b' in report.tags",
        "'z' not in report.tags",
        "'us' in report.title",
        "'score' in report",
        "report.title | lower == 'rust'",
        "report.score in [1, 7, -2.5, 'x', none, true]",
        "big > 9007199254740992.0",
        "big != 9007199254740992.0",
        "ratio == 0.25",
        "empty or report.ok",
        "report.missing | default(3) == 3",
        "empty | default('x', true) == 'x'",
        "items | length == 3",
        "'12' | int > 5",
        "'a' < 'b'",
    ] {
        assert!(holds(source), "{source}");
    }
    for source in ["empty", "none", "0", "0.0", "[]", "false", "report.nothing", "not report.ok", "1 == '1'"]
    {
        assert!(!holds(source), "{source}");
    }
}

#[test]
fn and_and_or_are_worth_the_part_that_decides() {
    assert_eq!(value("empty or report.title"), json!("Rust"));
    assert_eq!(value("report.score and ratio"), decimal("0.25"));
    assert_eq!(value("empty and missing"), json!(""));
}

#[test]
fn filters_change_values() {
    assert_eq!(value("report.tags | join(', ')"), json!("a, b"));
    assert_eq!(value("items | join"), json!(r#"{"name":"x"}{"name":"y"}3"#));
    assert_eq!(value("report.tags | json"), json!(r#"["a","b"]"#));
    assert_eq!(value("report.tags | last | upper"), json!("B"));
    assert_eq!(value("'  x ' | trim"), json!("x"));
    assert_eq!(value("'12.9' | int"), json!(12));
    assert_eq!(value("'x' | int(0)"), json!(0));
    assert_eq!(value("missing | default"), json!(""));
}

#[test]
fn a_template_has_the_values_in_its_text() {
    let template =
        Template::parse("Score of {{ report.title }}: {{report.score}} {{ report.tags }} { }} {{ '{{' }}\n")
            .unwrap();
    assert_eq!(template.render(&values()).unwrap(), "Score of Rust: 7 [\"a\",\"b\"] { }} {{\n");
    assert_eq!(template.names().collect::<Vec<_>>(), ["report"]);
}

#[test]
fn names_are_listed_once() {
    let condition = Condition::parse("a.b == c or a[d | default(e)] in ['f'] and a.g").unwrap();
    assert_eq!(condition.names().collect::<Vec<_>>(), ["a", "c", "d", "e"]);
}

#[test]
fn what_has_no_value_says_which_part() {
    assert_eq!(
        fault("report.mising.x == 1"),
        "`report.mising` is not defined: test it with `is defined`, or give it a value with `| default(…)`"
    );
    assert_eq!(
        fault("report.title > 3"),
        "`report.title > 3` compares a text with a number: only two numbers or two texts have an order"
    );
    assert_eq!(fault("report.score | lower"), "`report.score` is a number, not a text");
    assert_eq!(fault("1 in report.score"), "`report.score` is a number, not a text, a list or an object");
    assert_eq!(
        fault("report.title | int"),
        "`report.title | int` is no integer, not a number that fits 64 bits, or a text that is one"
    );
    assert_eq!(fault("items[report.ok]"), "`report.ok` is true or false, not an integer or a text");
}

#[test]
fn an_error_names_the_place_and_the_remedy() {
    for (source, text) in [
        (
            "a * 2",
            "found `*` at byte 2: there is no arithmetic and no joining of texts; in a template write `{{ a }}{{ b }}`",
        ),
        (
            "a ~ b",
            "found `~` at byte 2: there is no arithmetic and no joining of texts; in a template write `{{ a }}{{ b }}`",
        ),
        ("range(9)", "found `(` at byte 5: nothing can be called: use a filter, as in `name | length`"),
        ("a = 1", "found `=` at byte 2: write `==` to compare"),
        ("a && b", "found `&&` at byte 2: write `and`"),
        ("a || b", "found `||` at byte 2: write `or`"),
        (
            "1 < a < 5",
            "found `<` at byte 6: one comparison at a time: join two with `and`, as in `1 < a and a < 5`",
        ),
        ("a if b else c", "found `if` at byte 2: there is no `if`: use `and`, `or` and `default`"),
        ("{{ a }}", "found `{{` at byte 0: this is an expression already: write it without `{{` and `}}`"),
        ("a[1:2]", "found `:` at byte 3: there are no slices: write one index, as in `name[0]`"),
        ("a is none", "found `none` at byte 5: expected `defined`; compare with `== none` for none"),
        (
            "[a]",
            "found `a` at byte 1: a list holds constants: texts in quotes, numbers, `true`, `false`, `none` and lists",
        ),
        ("(a", "found the end at byte 2: expected `)`"),
        ("'a", "found `'` at byte 0: expected `'` at the end of this text"),
        ("'\\x'", "found `\\` at byte 1: the escapes are `\\\\`, `\\'`, `\\\"`, `\\n`, `\\r` and `\\t`"),
        (
            "18446744073709551616",
            "found `1` at byte 0: an integer is from -9223372036854775808 to 18446744073709551615",
        ),
        (
            "1e5",
            "found `e5` at byte 1: a number is written with digits and at most one point, as in `10` or `0.5`",
        ),
        (
            "a|first.b",
            "found `.` at byte 7: put what is before it in parentheses, as in `(names | first).key`",
        ),
        ("a | length(1)", "found `length` at byte 4: `length` takes at most 0 arguments, not 1"),
    ] {
        assert_eq!(error(source), text);
    }
    assert!(error("").starts_with("found the end at byte 0: expected a name"));
    assert!(error("-a").starts_with("found `-` at byte 0: there is no arithmetic"));
    assert!(error("a | tojson").contains("write `json`; all filters are `default`, `first`"));
    assert!(error("a b").contains("expected an operator"));
    assert!(error("grün").starts_with("found `ü` at byte 2"));
}

#[test]
fn a_template_refuses_everything_but_expressions() {
    let error = |source: &str| Template::parse(source).unwrap_err().to_string();
    assert_eq!(
        error("x {% set a = 1 %}"),
        "found `{%` at byte 2: a template has `{{ expression }}` and nothing else; for the characters write `{{ '{%' }}`"
    );
    assert!(error("{# x #}").contains("write `{{ '{#' }}`"));
    assert_eq!(
        error("{{- a }}"),
        "found `-` at byte 2: white space is never trimmed: write a space after `{{`"
    );
    assert_eq!(error("{{ a -}}"), "found `-` at byte 5: white space is never trimmed: write `}}`");
    assert_eq!(error("{{ a"), "found the end at byte 4: expected `}}`");
    assert!(error("{{ }}").starts_with("found `}}` at byte 3: expected a name"));
}

#[test]
fn a_source_has_limits() {
    let long = format!("'{}'", "a".repeat(limit::EXPRESSION_BYTES_MAX));
    assert_eq!(error(&long), "found 4098 bytes at byte 4096: at most 4096 bytes are allowed");
    let deep = |levels: usize| format!("{}a{}", "(".repeat(levels), ")".repeat(levels));
    assert!(Expression::parse(&deep(limit::EXPRESSION_DEPTH_MAX)).is_ok());
    assert!(
        error(&deep(limit::EXPRESSION_DEPTH_MAX + 1)).contains("at most 16 levels of nesting are allowed")
    );
    assert!(error(&"not ".repeat(1_000)).contains("at most 16 levels"));
    let many = |names: usize| vec!["a"; names].join(" or ");
    assert!(Expression::parse(&many(limit::EXPRESSION_NODES_MAX - 1)).is_ok());
    assert!(error(&many(limit::EXPRESSION_NODES_MAX)).contains("at most 512 names, constants and operators"));
}

#[test]
fn large_values_are_refused_before_they_are_copied() {
    let mut values = Map::new();
    values.insert("text".into(), Value::from("ß".repeat(600_000)));
    values.insert("list".into(), Value::from(vec!["x".repeat(20_000); 60]));
    values.insert("numbers".into(), Value::from(vec![1; 2_000_000]));
    let mut deep = Value::Null;
    for _ in 0..1_000 {
        deep = Value::from(vec![deep]);
    }
    values.insert("deep".into(), deep);
    let fault = |source: &str| Expression::parse(source).unwrap().value(&values).unwrap_err();
    let large = |part: &str| ExpressionFault::TooLarge { part: part.into(), bytes_max: 1_048_576 };
    assert_eq!(fault("text | upper"), large("text"));
    assert_eq!(fault("list"), large("list"));
    assert_eq!(fault("list | join(', ')"), large("list | join(', ')"));
    assert_eq!(fault("list | json"), large("list | json"));
    assert_eq!(fault("numbers == numbers"), ExpressionFault::TooLong { steps_max: 1_000_000 });
    assert_eq!(fault("2 in numbers"), ExpressionFault::TooLong { steps_max: 1_000_000 });
    assert_eq!(fault("deep"), ExpressionFault::TooDeep { part: "deep".into(), depth_max: 128 });
    assert_eq!(
        fault("deep == deep"),
        ExpressionFault::TooDeep { part: "deep == deep".into(), depth_max: 128 }
    );
    let render = |source: &str| Template::parse(source).unwrap().render(&values);
    let too_long = ExpressionFault::TooLarge { part: "list[0]".into(), bytes_max: limit::TEXT_BYTES_MAX };
    assert_eq!(render("{{ list[0] }} {{ list[0] }}"), Err(too_long));
    assert_eq!(render("{{ text | length }}"), Ok("600000".to_owned()));
    // Each use of the text costs its length, however often it is used.
    let often = vec!["'x' in text"; 60].join(" or ");
    assert_eq!(fault(&often), ExpressionFault::TooLong { steps_max: 1_000_000 });
}

#[test]
fn they_are_stored_as_their_source() {
    let condition = Condition::parse("a.b > 1").unwrap();
    assert_eq!(serde_json::to_value(&condition).unwrap(), json!("a.b > 1"));
    assert_eq!(serde_json::from_value::<Condition>(json!("a.b > 1")).unwrap(), condition);
    assert_eq!(format!("{condition:?}"), "Condition(\"a.b > 1\")");
    let error = serde_json::from_value::<Template>(json!("{{ a * 2 }}")).unwrap_err().to_string();
    assert!(error.starts_with("found `*` at byte 5"), "{error}");
}
