//! Any bytes as a batch. What decodes is encoded and decoded alike, folded or not.

use spinney_journal::Batch;

pub(crate) fn run(bytes: &[u8]) {
    let Ok(batch) = serde_json::from_slice::<Batch>(bytes) else { return };
    assert_eq!(again(&batch), batch);
    let mut whole = batch;
    whole.unfold();
    let mut folded = whole.clone();
    folded.fold();
    let mut back = again(&folded);
    back.unfold();
    assert_eq!(back, whole);
}

fn again(batch: &Batch) -> Batch {
    let bytes = serde_json::to_vec(batch).expect("a batch is encoded");
    serde_json::from_slice(&bytes).expect("an encoded batch is decoded")
}
