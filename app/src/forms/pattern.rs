//! A schema's `pattern` and lengths as an input's `pattern`: anchored, counted in characters, and written as the
//! browsers' `v` flag wants it, where some characters must be escaped inside a class.

/// The input's `pattern` for these rules; nothing if there is none to check.
pub(crate) fn html_pattern(pattern: Option<&str>, least: Option<u64>, most: Option<u64>) -> Option<String> {
    let length = (least.is_some() || most.is_some()).then(|| {
        let most = most.map(|most| most.to_string()).unwrap_or_default();
        format!(".{{{},{most}}}", least.unwrap_or(0))
    });
    let shape = pattern.map(|pattern| format!(".*(?:{}).*", escape_classes(pattern)));
    match (length, shape) {
        (Some(length), Some(shape)) => Some(format!("(?={length}$){shape}")),
        (length, shape) => length.or(shape),
    }
}

fn escape_classes(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len());
    let mut chars = pattern.chars().peekable();
    let mut class: Option<usize> = None;
    while let Some(char) = chars.next() {
        match (class, char) {
            (_, '\\') => {
                out.push(char);
                out.extend(chars.next());
                class = class.map(|atoms| atoms + 1);
            }
            (None, '[') => {
                out.push(char);
                if chars.next_if_eq(&'^').is_some() {
                    out.push('^');
                }
                class = Some(0);
            }
            (None, _) => out.push(char),
            (Some(_), ']') => {
                out.push(char);
                class = None;
            }
            (Some(atoms), '-') if atoms > 0 && chars.peek().is_some_and(|next| *next != ']') => {
                out.push(char);
            }
            (Some(atoms), _) => {
                if "()[{}/-|".contains(char) {
                    out.push('\\');
                }
                out.push(char);
                class = Some(atoms + 1);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_escaped_for_the_v_flag() {
        for (given, written) in [
            ("^[a-z0-9-]+$", r"^[a-z0-9\-]+$"),
            ("[-a-z]", r"[\-a-z]"),
            ("[^-a]", r"[^\-a]"),
            ("[A-Za-z0-9._/-]", r"[A-Za-z0-9._\/\-]"),
            (r"[a\-]{2}(b|c)", r"[a\-]{2}(b|c)"),
            ("a{1,2}/-", "a{1,2}/-"),
        ] {
            assert_eq!(escape_classes(given), written);
        }
    }

    #[test]
    fn lengths_and_shape_are_checked_together() {
        assert_eq!(html_pattern(None, None, None), None);
        assert_eq!(html_pattern(None, None, Some(5)).as_deref(), Some(".{0,5}"));
        assert_eq!(html_pattern(None, Some(2), None).as_deref(), Some(".{2,}"));
        assert_eq!(html_pattern(Some("^a"), Some(1), Some(3)).as_deref(), Some("(?=.{1,3}$).*(?:^a).*"));
    }
}
