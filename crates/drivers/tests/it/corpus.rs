//! Texts of every kind that models read, written for this purpose or made from a seed.

/// Each by its name. Some begin or end with what goes on after a line break.
pub(crate) fn corpus() -> Vec<(&'static str, String)> {
    let english = "The lead read both reports before lunch. It's clear that she'd rather wait: the figures don't agree, and nobody can say why.\nTwo of them were counted twice!";
    let code = "fn main() {\n    let total: u64 = (1..=10).map(|n| n * n).sum();\n    println!(\"{total}\"); // 385\n}\n";
    let german = "Größere Bäume wachsen langsamer; außerdem übersieht man leicht, wie weit ihre Wurzeln reichen. Maß für Maß.";
    let chinese = "这棵树每年长高一米。工人们在春天种下它，没有人知道它会活多久！第二天下雨了。";
    let russian = "Лес стоял тихо, и никто не знал дороги домой.";
    let thai = "ต้นไม้สูงขึ้นทุกปี ไม่มีใครรู้ว่ามันจะอยู่ได้นานแค่ไหน";
    let json = r#"{"agents":[{"id":"helper-0a1b2c3d","spent":{"cost_nanos":147250,"tokens":497}}],"ok":true,"note":null}"#;
    let special = "before <|endoftext|> and <|im_start|>system<|im_end|> after <|fim_prefix|>";
    vec![
        ("english", english.to_owned()),
        ("code", code.to_owned()),
        ("german", german.to_owned()),
        ("chinese", chinese.to_owned()),
        ("russian", russian.to_owned()),
        ("thai", thai.to_owned()),
        ("emoji", "👍🏽 done 🎉🎉 👩‍👩‍👧‍👦❤️‍🔥 ok 🇩🇪".to_owned()),
        ("base64", base64(3_000)),
        ("json", json.to_owned()),
        ("special tokens", special.to_owned()),
        ("random bytes", String::from_utf8_lossy(&random(4_000)).into_owned()),
        ("digits", "31415926535897932384626433832795028841971".repeat(20)),
        ("spaces", format!("{}x{}", " ".repeat(700), "\t \n".repeat(300))),
        ("line breaks", "\n".repeat(500)),
        ("exclamation marks", "!".repeat(3_000)),
        ("slashes", format!("//{}//", "/a/b".repeat(200))),
        ("one letter", "a".repeat(5_000)),
        ("capitals", "ABCDEFG漢字XYZ".repeat(60)),
        ("apostrophes", "it's they'LL '' 's'S 'tis".repeat(30)),
        ("combining marks", "e\u{301}o\u{308}\u{301} n\u{303}!".repeat(80)),
        ("long", format!("{english}\n{code}\n").repeat(200)),
        ("short", "k".to_owned()),
    ]
}

/// Bytes from a seed.
pub(crate) fn random(count: usize) -> Vec<u8> {
    let mut state: u64 = 0x9e37_79b9_7f4a_7c15;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    std::iter::repeat_with(next).take(count).collect()
}

fn base64(count: usize) -> String {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    random(count).into_iter().map(|byte| char::from(LETTERS[usize::from(byte) % LETTERS.len()])).collect()
}
