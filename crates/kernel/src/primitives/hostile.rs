//! Characters that make a text look like another one, or do something to a terminal.

/// Whether a terminal would act on this character, reorder others by it, or show nothing for it.
#[must_use]
pub const fn is_hostile(c: char) -> bool {
    match c {
        // Used by our own lines.
        '\n' | '\t' => false,
        // Control characters of ASCII and Latin-1: includes escape, delete, and both forms of CSI and OSC.
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}'
        // Marks, overrides and isolates that reorder text.
        | '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        // Line and paragraph separators.
        | '\u{2028}' | '\u{2029}'
        // Zero width or invisible. Joined emoji and some scripts use two of them, but seeing everything matters more.
        | '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2065}' | '\u{206a}'..='\u{206f}' | '\u{3164}' | '\u{feff}'
        | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        // Tags, and other invisible characters of their plane.
        | '\u{e0000}'..='\u{e0fff}' => true,
        _ => false,
    }
}
