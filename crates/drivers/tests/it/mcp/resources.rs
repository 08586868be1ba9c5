//! Resources and prompts of servers, as tools.

use serde_json::json;

use super::Setting;

const ALL: [&str; 4] = ["list_resources", "read_resource", "list_prompts", "get_prompt"];

#[tokio::test]
async fn resources_and_prompts_are_tools() {
    let running = Setting::new("rich").with_tools(&ALL).start().await;
    assert_eq!(
        running.said("list_resources", json!({})).await,
        "note://milk  milk  What to [2J buy.\nnote://picture  picture\nnote://{name}  by name"
    );
    assert_eq!(running.said("read_resource", json!({ "uri": "note://milk" })).await, "two bottles");
    let picture = running.call("read_resource", json!({ "uri": "note://picture" })).await;
    assert_eq!((picture.parts.len(), picture.parts[0].media.as_str()), (1, "image/png"));
    let missing = running.call("read_resource", json!({ "uri": "note://none" })).await;
    assert_eq!(
        (missing.text.as_str(), missing.is_error),
        ("server `test`: error -32002: no such resource", true)
    );
    assert_eq!(running.said("list_prompts", json!({})).await, "greet  (who, how?)  Greets.");
    let greet = json!({ "name": "greet", "arguments": { "who": "Ada" } });
    assert_eq!(running.said("get_prompt", greet).await, "[user]\nGreet Ada.");
}

/// P17: they are listed like other tools, and a server may be kept from offering them.
#[tokio::test]
async fn p17_resources_are_read_only_where_they_are_listed() {
    let mut setting = Setting::new("rich").with_tools(&["read_resource"]);
    setting.server.tools = Some(["echo".to_owned()].into());
    let error = setting.try_start().await.map(drop).unwrap_err();
    assert!(error.starts_with("server `test` has no tool `test__read_resource`"), "{error}");
    // A server that has none of them offers none.
    let error = Setting::new("plain").with_tools(&["read_resource"]).try_start().await.map(drop).unwrap_err();
    assert!(error.starts_with("server `test` has no tool `test__read_resource`"), "{error}");
    // One that has nothing else is asked for no tools.
    let books = Setting::new("books").with_tools(&["read_resource"]).start().await;
    assert_eq!(books.said("read_resource", json!({ "uri": "note://milk" })).await, "two bottles");
}

/// G28 (endless lists): a list of resources has an end.
#[tokio::test]
async fn g28_an_endless_list_of_resources_is_cut() {
    let running = Setting::new("rich_endless").with_tools(&["list_resources", "echo"]).start().await;
    let listed = running.call("list_resources", json!({})).await;
    assert!(
        listed.text.ends_with("[it lists more than 2000; the others are not shown]\nnote://{name}  by name")
    );
    assert!(!listed.is_error && listed.text.len() < 3_000_000, "{}", listed.text.len());
    assert_eq!(running.said("echo", json!({ "text": "still" })).await, "still");
}
