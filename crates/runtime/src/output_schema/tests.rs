//! What fits and what does not.

use super::*;

#[test]
fn probes() {
    use std::time::Instant;
    let time = |name: &str, schema: &str, answer: &str| {
        let start = Instant::now();
        let r = fit(schema, answer);
        let r = match r {
            Ok(b) => format!("ok {}", &b[..b.len().min(60)]),
            Err(m) => m.told(),
        };
        println!("{name}: {:?} {r}", start.elapsed());
    };
    time("self", r##"{"$ref":"#"}"##, "1");
    time(
        "loop",
        r##"{"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}},"$ref":"#/$defs/a"}"##,
        "1",
    );
    let mut defs = String::new();
    for i in 0..40 {
        defs.push_str(&format!(
            r##""d{i}":{{"allOf":[{{"$ref":"#/$defs/d{}"}},{{"$ref":"#/$defs/d{}"}}]}},"##,
            i + 1,
            i + 1
        ));
    }
    defs.push_str(r#""d40":{"type":"integer"}"#);
    let doubling = format!(r##"{{"$defs":{{{defs}}},"$ref":"#/$defs/d0"}}"##);
    let start = Instant::now();
    println!("compile doubling {:?} {:?}", check(&doubling), start.elapsed());
    time("doubling", &doubling, "1");
    let nest = r##"{"$defs":{"t":{"allOf":[{"properties":{"a":{"$ref":"#/$defs/t"}}},{"properties":{"a":{"$ref":"#/$defs/t"}}}]}},"$ref":"#/$defs/t"}"##;
    let deep = "{\"a\":".repeat(100) + "1" + &"}".repeat(100);
    time("nest", nest, &deep);
    let rec = r##"{"properties":{"a":{"$ref":"#"}},"type":["object","integer"]}"##;
    time("rec", rec, &deep);
    time("remote", r#"{"$ref":"https://example.com/x.json"}"#, "1");
    time("file", r#"{"$ref":"file:///etc/passwd"}"#, "1");
    time("lookahead", r#"{"pattern":"(?=a)b"}"#, "\"b\"");
    let s = format!("\"{}\"", "a".repeat(200_000));
    time("redos", r#"{"pattern":"^(a+)+$"}"#, &format!("\"{}!\"", "a".repeat(60_000)));
    time("redos2", r#"{"pattern":"^(\\w+\\s?)*$"}"#, &format!("\"{}!\"", "a".repeat(60_000)));
    time("reps", r#"{"pattern":"^(\\w{1,5}[ab]?){1,5}$"}"#, &s);
    time("bigrep", r#"{"pattern":"(a?){500}a{500}"}"#, &format!("\"{}\"", "a".repeat(400)));
    time("bigrep2", r#"{"pattern":"(.*.*.*.*=.*){9}x"}"#, &format!("\"{}\"", "=".repeat(50_000)));
    let branches: Vec<String> = (0..1200).map(|_| r#"{"type":"null"}"#.to_owned()).collect();
    let many = format!(r#"{{"anyOf":[{}]}}"#, branches.join(","));
    let list = format!("[{}]", vec!["1"; 800].join(","));
    time("anyof", &many, &list);
    let list = format!("[{}]", vec!["1"; 100_000].join(","));
    time("anyof big", &many, &list);
    time(
        "unique",
        r#"{"uniqueItems":true}"#,
        &format!("[{}]", (0..60_000).map(|n| n.to_string()).collect::<Vec<_>>().join(",")),
    );
    time("items", r#"{"items":{"type":"string"}}"#, &list);
    time("enum", r#"{"enum":["a","b"]}"#, "\"c\"");
    time("addl", r#"{"properties":{"a":{}},"additionalProperties":false}"#, r#"{"a":1,"b":2}"#);
    time(
        "req",
        r#"{"required":["a"],"properties":{"n":{"properties":{"x":{"type":"integer"}}}}}"#,
        r#"{"n":{"x":"y"}}"#,
    );
    time("bad type", r#"{"type":"strin"}"#, "1");
    time("bad nested", r#"{"properties":{"a":{"minimum":"x"}}}"#, "1");
    time("deep json", "{}", &("[".repeat(200) + &"]".repeat(200)));
    time("mult", r#"{"multipleOf":1e-300}"#, "1e300");
    time("$schema", r#"{"$schema":"https://example.com/meta","type":"string"}"#, "1");
    time(
        "draft4",
        r#"{"$schema":"http://json-schema.org/draft-04/schema#","id":"http://x/y","type":"string"}"#,
        "\"a\"",
    );
    time("fence", r#"{"type":"integer"}"#, "```json\n5\n```");
    let chain = (0..254).fold(String::from(r#"{"type":"integer"}"#), |_, _| String::new());
    let _ = chain;
    let mut defs = String::new();
    for i in 0..200 {
        defs.push_str(&format!(r##""d{i}":{{"anyOf":[{{"$ref":"#/$defs/d{}"}}]}},"##, i + 1));
    }
    defs.push_str(r#""d200":{"type":"integer"}"#);
    let chain = format!(r##"{{"$defs":{{{defs}}},"$ref":"#/$defs/d0"}}"##);
    time("chain", &chain, "\"x\"");
    println!("{}", chain.len());
}
